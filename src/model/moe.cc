#include "model/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers.h"
#include "model/decoder_config.h"
#include "ops/layer_tail_ops.h"

namespace quire {

void add_moe_weights(const MoeConfig& config, int64_t hidden_size, const std::string& prefix,
                     const std::optional<WeightFormat>& format, MoeLayer& layer,
                     WeightGroup& group) {
  const std::string block = prefix + "mlp.";
  const int num_experts = config.routing.num_experts;
  group.matrices.push_back({&layer.router,
                            {{block + "gate", num_experts}},
                            hidden_size,
                            Split::kNone,
                            config.has_biases});
  if (config.has_correction_bias) {
    group.vectors.push_back(
        {&layer.correction_bias, block + "gate.e_score_correction_bias", num_experts});
  }
  if (config.has_shared_gate) {
    group.matrices.push_back(
        {&layer.shared_gate, {{block + "shared_expert_gate", 1}}, hidden_size});
  }
  if (config.has_branch_norms) {
    // The router multiplies its norm by 1 / sqrt(hidden_size).
    const auto router_factor =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(hidden_size)));
    group.vectors.push_back(
        {&layer.router_norm, block + "gate.scale", hidden_size, 0.0F, 0, router_factor});
    group.vectors.push_back({&layer.expert_scales, block + "gate.per_expert_scale", num_experts});
    group.vectors.push_back(
        {&layer.input_norm, prefix + "pre_feedforward_layernorm_2.weight", hidden_size});
    group.vectors.push_back(
        {&layer.mlp_output_norm, prefix + "post_feedforward_layernorm_1.weight", hidden_size});
    group.vectors.push_back(
        {&layer.output_norm, prefix + "post_feedforward_layernorm_2.weight", hidden_size});
  }
  ExpertsBinding experts = {&layer.experts,
                            {.num_experts = num_experts,
                             .top_k = config.routing.top_k,
                             .hidden_size = hidden_size,
                             .intermediate_size = config.intermediate_size},
                            {}};
  const int64_t inner = config.intermediate_size;
  for (int i = 0; i < num_experts; ++i) {
    const std::string expert = fmt::format("{}experts.{}.", block, i);
    experts.each.push_back(
        {.gate_up = {nullptr,
                     {{expert + "gate_proj", inner}, {expert + "up_proj", inner}},
                     hidden_size,
                     Split::kInnerRows,
                     config.has_biases,
                     format},
         .down = {nullptr,
                  {{expert + "down_proj", hidden_size}},
                  inner,
                  Split::kInnerColumns,
                  config.has_biases,
                  format}});
  }
  group.experts.push_back(std::move(experts));
}

Result<ExpertOps*> expert_ops_of(const Ops& ops) {
  if (ops.experts() != nullptr) return ops.experts();
  return unimplemented(
      "[model] the device does not compute mixture-of-experts layers; got a model that has them, "
      "expected a dense model, or `device` cpu");
}

int num_mergeable_experts(const ModelConfig& config) {
  const DecoderConfig& decoder = decoder_config(config);
  const MoeConfig& moe = *decoder.moe;
  const int inner = moe.intermediate_size;
  const int num_shared = moe.shared_intermediate_size / inner;
  // Merged experts would read the weighted input, or miss the gate or the norms.
  if (moe.weighs_input || moe.has_shared_gate || moe.has_branch_norms) return 0;
  if (num_shared * inner != moe.shared_intermediate_size || decoder.mlp_bias ||
      moe.routing.num_experts + num_shared > kMaxExperts) {
    return 0;
  }
  if (config.format && config.format->scheme.scales == ScaleLayout::kBlocks) {
    const WeightScheme& scheme = config.format->scheme;
    if (inner % scheme.block_rows != 0 || inner % scheme.block_columns != 0) return 0;
  }
  return num_shared;
}

namespace {

int64_t max_experts_per_token(const ModelConfig& config) {
  return int64_t{decoder_config(config).moe->routing.top_k} + num_mergeable_experts(config);
}

}  // namespace

int64_t MoeStep::num_bytes(const ModelConfig& config, int64_t max_num_tokens) {
  static_assert(sizeof(float) == sizeof(int32_t));
  const MoeConfig& moe = *decoder_config(config).moe;
  const int64_t per_token =
      moe.routing.num_experts + 2 * max_experts_per_token(config) + (moe.weighs_input ? 1 : 0);
  return (Saturated(max_num_tokens) * per_token * static_cast<int64_t>(sizeof(float))).get();
}

ExpertsShape MoeStep::experts_shape(const ModelConfig& config, const Parallel& parallel,
                                    const Ops& ops) {
  const MoeConfig& moe = *decoder_config(config).moe;
  const ExpertsShape chosen = {
      .num_experts = moe.routing.num_experts,
      .top_k = moe.routing.top_k,
      .hidden_size = config.hidden_size,
      .intermediate_size =
          shard_inner(moe.intermediate_size, config.format, ops.weights(), parallel).slice.count};
  const ExpertsShape all = with_shared_experts(chosen, num_mergeable_experts(config));
  return ops.weights().merges_shared_experts(all) ? all : chosen;
}

Status MoeStep::allocate(const ModelConfig& config, const ModelLimits& limits, Ops& ops) {
  const int64_t num_tokens = limits.max_num_tokens;
  routing_ = decoder_config(config).moe->routing;
  const int64_t num_chosen = max_experts_per_token(config);
  QUIRE_ASSIGN_OR_RETURN(logits_, ops.allocate({num_tokens, routing_.num_experts}, DType::kF32));
  QUIRE_ASSIGN_OR_RETURN(ids_, ops.allocate({num_tokens * num_chosen}, DType::kI32));
  QUIRE_ASSIGN_OR_RETURN(weights_, ops.allocate({num_tokens * num_chosen}, DType::kF32));
  if (decoder_config(config).moe->weighs_input) {
    std::vector<float> ones(static_cast<size_t>(num_tokens), 1.0F);
    QUIRE_ASSIGN_OR_RETURN(ones_,
                           ops.weights().make_vector({ones.data(), DType::kF32, {num_tokens}}));
  }
  const ExpertsShape shape = experts_shape(config, limits.parallel, ops);
  QUIRE_ASSIGN_OR_RETURN(const ExpertOps* const experts, expert_ops_of(ops));
  const int64_t num_bytes = experts->workspace_bytes(shape, num_tokens);
  QUIRE_ASSIGN_OR_RETURN(workspace_, ops.allocate({num_bytes}, DType::kI8));
  return {};
}

void MoeStep::gate_shared(const MoeLayer& layer, TensorView x, TensorView output, Ops& ops) const {
  const TensorView gates = {logits_.view.data, DType::kF32, {x.shape[0], 1}};
  ops.linear(*layer.shared_gate, x, gates);
  ops.gate({.x = output, .gates = gates, .function = GateFunction::kSigmoid});
}

void MoeStep::route(const MoeLayer& layer, const ResidualNorm& norm, TensorView x,
                    ExpertsCall& call, Ops& ops) const {
  const int64_t num_tokens = x.shape[0];
  RouterCall router;
  router.routing = routing_;
  router.routing.num_shared = layer.experts->shape().num_shared;
  router.routing.expert_scales = layer.expert_scales.view.as<float>();  // null: none
  const Shape chosen = {num_tokens, router.routing.num_per_token()};
  call.ids = {ids_.view.data, DType::kI32, chosen};
  call.weights = {weights_.view.data, DType::kF32, chosen};
  router.router = layer.router.get();
  router.norm = norm;
  router.x = x;
  router.logits = logits_.view.rows(0, num_tokens);
  router.bias = layer.correction_bias.view.as<float>();  // null: none
  router.ids = call.ids;
  router.weights = call.weights;
  run_router(ops, router);
}

void MoeStep::run_experts(const MoeLayer& layer, ExpertsCall call, Ops& ops) const {
  call.experts = layer.experts.get();
  call.workspace = {workspace_.view.as<std::byte>(), workspace_.view.num_bytes()};
  if (ones_.view.data != nullptr) {
    ops.gate({.x = call.x, .gates = call.weights, .function = GateFunction::kIdentity});
    call.weights.data = ones_.view.data;
  }
  ops.experts()->run_experts(call);
}

}  // namespace quire
