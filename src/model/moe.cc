#include "model/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/numbers.h"
#include "model/config_fields.h"
#include "model/decoder_config.h"

namespace quire {
namespace {

// Upper bound of the experts of all layers, because each has names in a list of weights. The
// largest models have about 25,000.
constexpr int64_t kMaxExpertsInAll = 1 << 16;

// Reads the number of experts per layer (field `name`) and the number per token.
ExpertRouting read_routing(ConfigFields& fields, const ModelConfig& config, std::string_view name,
                           std::optional<int> default_num_experts,
                           std::optional<int> default_top_k) {
  ExpertRouting routing;
  routing.num_experts = fields.integer(name, 1, kMaxExperts, default_num_experts);
  routing.top_k = fields.integer("num_experts_per_tok", 1, kMaxExperts, default_top_k);
  if (routing.top_k > routing.num_experts) {
    fields.fail("num_experts_per_tok", std::to_string(routing.top_k),
                fmt::format("at most {}, {}", name, routing.num_experts));
  }
  if (int64_t{routing.num_experts} * config.num_layers > kMaxExpertsInAll) {
    fields.fail(name, fmt::format("{} in {} layers", routing.num_experts, config.num_layers),
                fmt::format("at most {} in all layers", kMaxExpertsInAll));
  }
  return routing;
}

// The defaults of an architecture of DeepSeek for fields that a config.json may omit.
struct DeepseekDefaults {
  int num_groups = 1;
  int top_groups = 1;
  int num_shared_experts = 0;
  int num_dense_layers = 0;
  double scale = 1.0;
};
constexpr DeepseekDefaults kDeepseekV2 = {};
constexpr DeepseekDefaults kDeepseekV3 = {
    .num_groups = 8, .top_groups = 4, .num_shared_experts = 1, .num_dense_layers = 3, .scale = 2.5};

void read_groups(ConfigFields& fields, const DeepseekDefaults& defaults, ExpertRouting& routing) {
  routing.num_groups = fields.integer("n_group", 1, kMaxExperts, defaults.num_groups);
  routing.top_groups = fields.integer("topk_group", 1, kMaxExperts, defaults.top_groups);
  if (is_valid(routing)) return;
  fields.fail("n_group",
              fmt::format("{} with topk_group {}, {} experts and {} per token", routing.num_groups,
                          routing.top_groups, routing.num_experts, routing.top_k),
              "equal groups, of which the best ones have enough experts for a token");
}

// The number of experts, the scale of their weights, their sizes, and the layers that have them.
MoeConfig read_deepseek_experts(ConfigFields& fields, const ModelConfig& config,
                                const DeepseekDefaults& defaults) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, "n_routed_experts", {}, {});
  moe.routing.scale =
      static_cast<float>(fields.number("routed_scaling_factor", 1e-6, 1e6, defaults.scale));
  moe.intermediate_size = fields.integer("moe_intermediate_size", 1, kMaxIntermediateSize);
  const int num_shared =
      fields.integer("n_shared_experts", 0, kMaxExperts, defaults.num_shared_experts);
  if (num_shared > kMaxIntermediateSize / moe.intermediate_size) {
    fields.fail("n_shared_experts", std::to_string(num_shared),
                fmt::format("at most {} elements in all", kMaxIntermediateSize));
    return moe;
  }
  moe.shared_intermediate_size = num_shared * moe.intermediate_size;
  const int num_dense =
      fields.integer("first_k_dense_replace", 0, kMaxLayers, defaults.num_dense_layers);
  const int frequency = fields.integer("moe_layer_freq", 1, kMaxLayers, 1);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    moe.layers.push_back(layer >= num_dense && layer % frequency == 0);
  }
  return moe;
}

}  // namespace

void read_deepseek_v2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.has("n_routed_experts")) return;
  MoeConfig moe = read_deepseek_experts(fields, config, kDeepseekV2);
  require_text(fields, "scoring_func", "softmax");
  const std::string method = fields.optional_text("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    read_groups(fields, kDeepseekV2, moe.routing);
  } else if (method != "greedy") {
    fields.fail("topk_method", quote_name(method), "greedy or group_limited_greedy");
  }
  moe.routing.renormalize = fields.boolean("norm_topk_prob", false);
  if (moe.routing.renormalize && moe.routing.scale != 1.0F) {
    fields.fail("norm_topk_prob", "true",
                "false, or a routed_scaling_factor of 1: implementations of DeepSeek-V2 differ in "
                "whether normalized weights are scaled");
  }
  decoder.moe = std::move(moe);
}

void read_deepseek_v3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  if (!fields.has("n_routed_experts")) return;
  MoeConfig moe = read_deepseek_experts(fields, config, kDeepseekV3);
  require_text(fields, "scoring_func", "sigmoid");
  require_text(fields, "topk_method", "noaux_tc");
  moe.routing.scores = RouterScores::kSigmoid;
  moe.routing.group_scores = GroupScores::kTwoLargest;
  moe.has_correction_bias = true;
  read_groups(fields, kDeepseekV3, moe.routing);
  moe.routing.renormalize = fields.boolean("norm_topk_prob", true);
  decoder.moe = std::move(moe);
}

void read_qwen3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, "num_experts", 128, 8);
  moe.routing.renormalize = fields.boolean("norm_topk_prob", false);
  moe.intermediate_size = fields.integer("moe_intermediate_size", 1, kMaxIntermediateSize, 768);
  const int sparse_step = fields.integer("decoder_sparse_step", 1, kMaxLayers, 1);
  const std::vector<int> dense = fields.integers("mlp_only_layers", 0, kMaxLayers, kMaxLayers);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const bool is_dense = std::ranges::find(dense, layer) != dense.end();
    moe.layers.push_back(!is_dense && (layer + 1) % sparse_step == 0);
  }
  if (fields.boolean("use_sliding_window", false)) {
    fields.fail("use_sliding_window", "true", "false: windows of Qwen3-MoE are not supported");
  }
  decoder.moe = std::move(moe);
}

void read_mixtral_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder) {
  MoeConfig moe;
  moe.routing = read_routing(fields, config, "num_local_experts", 8, 2);
  moe.routing.renormalize = true;
  moe.intermediate_size = decoder.intermediate_size;
  moe.layers.assign(static_cast<size_t>(config.num_layers), true);
  decoder.moe = std::move(moe);
}

void add_moe_weights(const MoeConfig& config, int64_t hidden_size, const std::string& prefix,
                     const std::optional<WeightFormat>& format, MoeLayer& layer,
                     WeightGroup& group) {
  const std::string block = prefix + "mlp.";
  const int num_experts = config.routing.num_experts;
  group.matrices.push_back({&layer.router, {{block + "gate", num_experts}}, hidden_size});
  if (config.has_correction_bias) {
    group.vectors.push_back(
        {&layer.correction_bias, block + "gate.e_score_correction_bias", num_experts});
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
                     false,
                     format},
         .down = {nullptr,
                  {{expert + "down_proj", hidden_size}},
                  inner,
                  Split::kInnerColumns,
                  false,
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
  const int64_t per_token =
      decoder_config(config).moe->routing.num_experts + 2 * max_experts_per_token(config);
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
  const ExpertsShape shape = experts_shape(config, limits.parallel, ops);
  QUIRE_ASSIGN_OR_RETURN(const ExpertOps* const experts, expert_ops_of(ops));
  const int64_t num_bytes = experts->workspace_bytes(shape, num_tokens);
  QUIRE_ASSIGN_OR_RETURN(workspace_, ops.allocate({num_bytes}, DType::kI8));
  return {};
}

void MoeStep::run(const MoeLayer& layer, ExpertsCall call, Ops& ops) const {
  const int64_t num_tokens = call.x.shape[0];
  ExpertRouting routing = routing_;
  routing.num_shared = layer.experts->shape().num_shared;
  const Shape chosen = {num_tokens, routing.num_per_token()};
  const TensorView logits = logits_.view.rows(0, num_tokens);
  call.experts = layer.experts.get();
  call.ids = {ids_.view.data, DType::kI32, chosen};
  call.weights = {weights_.view.data, DType::kF32, chosen};
  call.workspace = {workspace_.view.as<std::byte>(), workspace_.view.num_bytes()};
  const float* const bias = layer.correction_bias.view.as<float>();  // null: none
  ops.linear(*layer.router, call.x, logits);
  ExpertOps& experts = *ops.experts();
  experts.route(routing, logits, bias, call.ids, call.weights);
  experts.run_experts(call);
}

}  // namespace quire
