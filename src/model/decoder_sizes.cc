#include "model/decoder_sizes.h"

#include <algorithm>

#include "base/numbers.h"
#include "model/weights.h"
#include "ops/expert_ops.h"
#include "ops/state_ops.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

Saturated bytes_of(DType dtype) {
  return static_cast<int64_t>(dtype_bytes(dtype));
}

// The widths, without DecoderWidths::intermediate.
DecoderWidths attention_widths(const ModelConfig& config, const Parallel& parallel) {
  const DecoderConfig& decoder = decoder_config(config);
  DecoderWidths widths;
  for (size_t layer = 0; layer < decoder.layer_windows.size(); ++layer) {
    if (has_state(decoder, layer)) {
      const StateWidths state = state_widths(config, layer, parallel);
      widths.qkv = std::max(widths.qkv, state.in);
      widths.out = std::max(widths.out, state.out);
      continue;
    }
    const LayerHeads heads = rank_heads(decoder, layer, parallel);
    const int64_t q = int64_t{heads.num_heads} * heads.head_dim;
    widths.num_heads = std::max(widths.num_heads, heads.num_heads);
    widths.q = std::max(widths.q, q);
    widths.qkv = std::max(widths.qkv, q + kv_width(decoder, layer, heads));
    widths.out = std::max(widths.out, int64_t{heads.num_heads} * heads.head_dim_v);
  }
  const GateWidth gate = decoder.output_gate.width;
  int64_t gates = gate == GateWidth::kNone      ? 0
                  : gate == GateWidth::kPerHead ? widths.num_heads
                                                : widths.out;
  if (decoder.deltas) {
    gates = std::max(gates, int64_t{2} * rank_shape(decoder.deltas->shape, parallel).num_v_heads);
  }
  widths.attention = decoder.mla ? MlaViews::width(*decoder.mla, widths.num_heads)
                                 : widths.qkv + widths.q + widths.out + gates;
  return widths;
}

AttentionShape attention_shape(const DecoderConfig& decoder, const ModelLimits& limits,
                               DType activation, size_t layer) {
  const LayerHeads heads = rank_heads(decoder, layer, limits.parallel);
  AttentionShape shape;
  shape.num_heads = heads.num_heads;
  shape.num_kv_heads = heads.num_kv_heads;
  shape.head_dim = heads.head_dim;
  shape.head_dim_v = heads.head_dim_v;
  if (decoder.mla) {
    shape.num_kv_heads = 1;
    shape.head_dim = decoder.mla->latent_head_dim();
    shape.head_dim_v = decoder.mla->kv_lora_rank;
    shape.is_latent = true;
    shape.expanded_key_dim = decoder.mla->q_head_dim();
    shape.expanded_value_dim = decoder.mla->v_head_dim;
  }
  shape.page_size = limits.page_size;
  shape.q = shape.out = activation;
  shape.kv = limits.kv_dtype;
  shape.scale = decoder.attention_scale;
  shape.softcap = decoder.attention_softcap;
  // A window that no sequence outgrows has no effect, so such layers join the group of full
  // attention.
  const int window = decoder.layer_windows[layer];
  shape.window = window < limits.max_model_len ? window : 0;
  shape.chunked = decoder.has_chunks && shape.window > 0;
  shape.causal = decoder.is_causal;
  shape.sinks = !decoder.layer_sinks.empty() && decoder.layer_sinks[layer];
  return shape;
}

}  // namespace

int64_t rotation_width(const DecoderConfig& decoder) {
  int64_t width = decoder.qk_norm == QkNorm::kWholeWidth ? 2 : 0;
  for (const RopeConfig& rope : decoder.ropes) {
    width += rotated_dim(rope, decoder.head_dim) + (rope.query_scale.beta != 0.0 ? 1 : 0);
  }
  return width;
}

LayerHeads rank_heads(const DecoderConfig& decoder, size_t layer, const Parallel& parallel) {
  LayerHeads heads = heads_of(decoder, layer);
  heads.num_heads = static_cast<int>(shard(heads.num_heads, parallel).count);
  heads.num_kv_heads =
      static_cast<int>(shard_heads(heads.num_kv_heads, heads.num_kv_heads, parallel).count);
  return heads;
}

int64_t kv_width(const DecoderConfig& decoder, size_t layer, const LayerHeads& heads) {
  if (!owns_cache(decoder, layer)) return 0;
  const int value_dim = has_k_for_v(decoder, layer) ? 0 : heads.head_dim_v;
  return int64_t{heads.num_kv_heads} * (heads.head_dim + value_dim);
}

int64_t conv_channels(const ModelConfig& config, const Parallel& parallel) {
  return shard(config.hidden_size, parallel).count;
}

DeltaNetShape rank_shape(DeltaNetShape shape, const Parallel& parallel) {
  shape.num_k_heads = static_cast<int>(shard(shape.num_k_heads, parallel).count);
  shape.num_v_heads = static_cast<int>(shard(shape.num_v_heads, parallel).count);
  return shape;
}

StateWidths state_widths(const ModelConfig& config, size_t layer, const Parallel& parallel) {
  const DecoderConfig& decoder = decoder_config(config);
  if (has_conv(decoder, layer)) {
    const int64_t channels = conv_channels(config, parallel);
    return {3 * channels, channels};
  }
  const DeltaNetShape shape = rank_shape(decoder.deltas->shape, parallel);
  return {shape.num_channels() + shape.width(), shape.width()};
}

int conv_state_rows(const ShortConvConfig& conv, const ModelLimits& limits) {
  return conv.kernel - 1 + limits.num_drafts;
}

DecoderWidths decoder_widths(const ModelConfig& config, const Parallel& parallel, const Ops& ops) {
  const DecoderConfig& decoder = decoder_config(config);
  DecoderWidths widths = attention_widths(config, parallel);
  const int dense = has_dense_layers(decoder) ? largest_intermediate_size(decoder) : 0;
  const int shared = decoder.moe ? decoder.moe->shared_intermediate_size : 0;
  for (const int inner : {dense, shared}) {
    widths.intermediate =
        std::max(widths.intermediate,
                 shard_inner(inner, config.format, ops.weights(), parallel).slice.count);
  }
  if (decoder.moe && decoder.moe->has_branch_norms) widths.experts = config.hidden_size;
  widths.layer_inputs = int64_t{config.num_layers} * decoder.layer_input_size;
  return widths;
}

int64_t num_gathered_logits(const ModelConfig& config, const ModelLimits& limits) {
  const int num_ranks = limits.parallel.size;
  if (num_ranks == 1) return 0;
  return ceil_div(int64_t{config.vocab_size}, num_ranks) * (1 + num_ranks);
}

std::vector<KvGroup> decoder_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                       DType activation) {
  const DecoderConfig& decoder = decoder_config(config);
  std::vector<KvGroup> groups;
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const bool reads_target = !decoder.target_layers.empty();
    if (!reads_target && !owns_cache(decoder, static_cast<size_t>(layer))) continue;
    const AttentionShape shape =
        attention_shape(decoder, limits, activation, static_cast<size_t>(layer));
    auto group = std::ranges::find(groups, shape, &KvGroup::decode);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), KvGroup{kv_layout(shape), shape, shape});
    }
    group->layers.push_back(layer);
    if (!reads_target) continue;
    group->target_layers.push_back(decoder.target_layers[static_cast<size_t>(layer)]);
  }
  assign_tables(groups);
  return groups;
}

StateGroup decoder_state_group(const ModelConfig& config, const ModelLimits& limits) {
  const DecoderConfig& decoder = decoder_config(config);
  StateGroup group;
  for (int layer = 0; layer < config.num_layers; ++layer) {
    if (has_state(decoder, static_cast<size_t>(layer))) group.layers.push_back(layer);
  }
  if (group.layers.empty()) return group;
  const int64_t num_elements =
      decoder.convs
          ? conv_state_rows(*decoder.convs, limits) * conv_channels(config, limits.parallel)
          : DeltaNetPage(rank_shape(decoder.deltas->shape, limits.parallel), limits.num_drafts)
                .size;
  group.page_bytes =
      round_up(num_elements * static_cast<int64_t>(dtype_bytes(DType::kF32)), int64_t{64});
  return group;
}

int64_t decoder_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                 const Ops& ops) {
  const DecoderConfig& decoder = decoder_config(config);
  const Saturated num_tokens = limits.max_num_tokens;
  const auto num_taps = static_cast<int64_t>(limits.tapped_layers.size());
  const DecoderWidths widths = decoder_widths(config, limits.parallel, ops);
  const Saturated per_token = (3 + num_taps) * Saturated(config.hidden_size) + widths.scratch() +
                              Saturated(widths.layer_inputs);
  const Saturated angles = num_tokens * rotation_width(decoder);
  const Saturated logits =
      Saturated(limits.max_num_logit_rows) *
      (config.embeds ? int64_t{config.hidden_size}
                     : config.vocab_size + num_gathered_logits(config, limits));
  const int64_t moe = decoder.moe ? MoeStep::num_bytes(config, limits.max_num_tokens) : int64_t{0};
  return (num_tokens * per_token * bytes_of(ops.activation_dtype()) +
          (angles + logits) * bytes_of(DType::kF32) + moe)
      .get();
}

Result<int64_t> state_workspace_bytes(const ModelConfig& config, const ModelLimits& limits,
                                      const Ops& ops) {
  const DecoderConfig& decoder = decoder_config(config);
  if (!decoder.convs && !decoder.deltas) return int64_t{0};
  const StateOps* const states = ops.states();
  if (states == nullptr) {
    return unimplemented(
        "[model] the device does not compute recurrent states; got a model that has them, expected "
        "one with attention in every layer, or `device` cpu");
  }
  if (!decoder.deltas) return int64_t{0};
  const DeltaNetShape shape = rank_shape(decoder.deltas->shape, limits.parallel);
  QUIRE_RETURN_IF_ERROR(states->supports(shape));
  return states->workspace_bytes(shape, limits.num_drafts, limits.max_num_tokens,
                                 limits.max_num_logit_rows / limits.decode_q_len());
}

Result<int64_t> experts_workspace_bytes(const ModelConfig& config, const ModelLimits& limits,
                                        const Ops& ops) {
  const std::optional<MoeConfig>& moe = decoder_config(config).moe;
  if (!moe) return int64_t{0};
  QUIRE_ASSIGN_OR_RETURN(const ExpertOps* const experts, expert_ops_of(ops));
  return experts->workspace_bytes(MoeStep::experts_shape(config, limits.parallel, ops),
                                  limits.max_num_tokens);
}

}  // namespace quire
