#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "model/weights.h"
#include "ops/collectives.h"
#include "ops/expert_ops.h"
#include "ops/state_ops.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

const float* weights_of(const Tensor& vector) {
  return vector.view.as<float>();
}

// Rows of heads as [num_tokens, num_heads, size of a head].
TensorView by_head(const TensorView& rows, int num_heads) {
  return {rows.data, rows.dtype, {rows.shape[0], num_heads, rows.shape[1] / num_heads}};
}

// The scale of the second table of embeddings, with the divisor of compute_layer_inputs().
float layer_input_scale(const DecoderConfig& decoder) {
  return static_cast<float>(std::sqrt(decoder.layer_input_size) / std::numbers::sqrt2);
}

}  // namespace

float first_scale(const DecoderConfig& decoder, DType activation) {
  auto scale = static_cast<float>(decoder.embedding_scale);
  if (decoder.rounds_embedding_scale && activation == DType::kBF16) {
    scale = bf16_to_f32(f32_to_bf16(scale));
  } else if (decoder.rounds_embedding_scale && activation == DType::kF16) {
    scale = f16_to_f32(f32_to_f16(scale));
  }
  return static_cast<float>(scale / decoder.residual_scale);
}

DecoderModel::DecoderModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops,
                           DecoderEnds ends)
    : config_(config),
      decoder_(decoder_config(config_)),
      limits_(limits),
      ops_(ops),
      ends_(std::move(ends)),
      kv_groups_(decoder_kv_groups(config, limits, ops.activation_dtype())),
      states_(decoder_state_group(config, limits)),
      places_(static_cast<size_t>(config.num_layers)),
      widths_(decoder_widths(config, limits.parallel, ops)),
      embedding_scale_(first_scale(decoder_, ops.activation_dtype())),
      norm_eps_(residual_norm_eps(decoder_)) {
  for (size_t g = 0; g < kv_groups_.size(); ++g) {
    const std::vector<int>& layers = kv_groups_[g].layers;
    for (size_t i = 0; i < layers.size(); ++i) places_[static_cast<size_t>(layers[i])] = {g, i};
  }
  for (size_t i = 0; i < places_.size(); ++i) places_[i] = places_[kv_source_of(decoder_, i)];
  for (size_t i = 0; i < states_.layers.size(); ++i) {
    places_[static_cast<size_t>(states_.layers[i])].index = i;
  }
  for (size_t i = 0; i < limits_.tapped_layers.size(); ++i) {
    const int layer = limits_.tapped_layers[i];
    QUIRE_CHECK(layer >= 0 && layer <= config.num_layers &&
                    (i == 0 || limits_.tapped_layers[i - 1] < layer),
                "[model] the tapped layers are not ascending layers of the model");
  }
}

const Linear* DecoderModel::embeddings() const {
  return ends_.embed != nullptr ? ends_.embed.get() : ends_.shared_embed;
}

const Linear* DecoderModel::lm_head() const {
  if (ends_.lm_head != nullptr) return ends_.lm_head.get();
  if (ends_.shared_lm_head != nullptr) return ends_.shared_lm_head;
  return config_.embeds ? nullptr : embeddings();
}

Status DecoderModel::allocate_buffers() {
  const int64_t num_tokens = limits_.max_num_tokens;
  const int64_t hidden = config_.hidden_size;
  const DType dtype = ops_.activation_dtype();
  for (Tensor* buffer : {&residual_, &normed_, &delta_}) {
    QUIRE_ASSIGN_OR_RETURN(*buffer, ops_.allocate({num_tokens, hidden}, dtype));
  }
  const int64_t num_elements =
      std::max(num_tokens * widths_.scratch(), limits_.max_num_logit_rows * 3 * hidden);
  QUIRE_ASSIGN_OR_RETURN(scratch_, ops_.allocate({num_elements}, dtype));
  if (limits_.parallel.size > 1 && lm_head() != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(logits_parts_, ops_.allocate({limits_.max_num_logit_rows *
                                                         num_gathered_logits(config_, limits_)},
                                                        DType::kF32));
  }
  if (const auto num_taps = static_cast<int64_t>(limits_.tapped_layers.size()); num_taps > 0) {
    QUIRE_ASSIGN_OR_RETURN(taps_, ops_.allocate({num_tokens, num_taps * hidden}, dtype));
  }
  if (widths_.layer_inputs > 0) {
    QUIRE_ASSIGN_OR_RETURN(layer_inputs_, ops_.allocate({num_tokens, widths_.layer_inputs}, dtype));
  }
  if (decoder_.qk_norm == QkNorm::kWholeWidth) {
    QUIRE_ASSIGN_OR_RETURN(qk_sums_, ops_.allocate({round_up(num_tokens, 2), 2}, DType::kF32));
  }
  if (decoder_.moe) {
    QUIRE_RETURN_IF_ERROR(moe_.allocate(config_, limits_, ops_));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t state_bytes, state_workspace_bytes(config_, limits_, ops_));
  if (state_bytes > 0) {
    QUIRE_ASSIGN_OR_RETURN(state_workspace_, ops_.allocate({state_bytes}, DType::kI8));
  }
  for (const RopeConfig& rope : decoder_.ropes) QUIRE_RETURN_IF_ERROR(add_rotation(rope));
  return {};
}

Status DecoderModel::add_rotation(const RopeConfig& rope) {
  const int rope_dim = rotated_dim(rope, decoder_.head_dim);
  const RopeFrequencies frequencies =
      rope_frequencies(rope, rope_dim, decoder_.max_position_embeddings, limits_.max_model_len);
  std::vector<float> inv_freq(frequencies.inv_freq.begin(), frequencies.inv_freq.end());
  Rotation rotation;
  rotation.attention_factor = static_cast<float>(frequencies.attention_factor);
  rotation.query_scale = rope.query_scale;
  QUIRE_ASSIGN_OR_RETURN(rotation.inv_freq, ops_.weights().make_vector(
                                                {inv_freq.data(), DType::kF32, {rope_dim / 2}}));
  QUIRE_ASSIGN_OR_RETURN(rotation.cos_sin,
                         ops_.allocate({limits_.max_num_tokens, rope_dim}, DType::kF32));
  if (rope.query_scale.beta != 0.0) {
    QUIRE_ASSIGN_OR_RETURN(rotation.query_scales,
                           ops_.allocate({limits_.max_num_tokens}, DType::kF32));
  }
  rotations_.push_back(std::move(rotation));
  return {};
}

TensorView DecoderModel::scratch(int64_t offset, int64_t rows, int64_t width) const {
  const DType dtype = scratch_.view.dtype;
  auto* base = scratch_.view.as<std::byte>() + offset * static_cast<int64_t>(dtype_bytes(dtype));
  return {base, dtype, {rows, width}};
}

void DecoderModel::begin_step(const StepInput& input) {
  begin_rotation(input);
  const TensorView embedded = residual(input.num_tokens);
  ops_.embed(*embeddings(), input.token_ids, embedding_scale_, embedded);
  if (embeddings()->first_token_id()) ops_.collectives()->all_reduce(embedded);
  if (ends_.embedding_norm.view.data != nullptr) {
    const float* const weights = weights_of(ends_.embedding_norm);
    ops_.residual_norm({.residual = embedded, .weight = weights, .eps = decoder_.rms_norm_eps},
                       embedded);
  }
  if (decoder_.layer_input_size > 0) compute_layer_inputs(input);
}

// The input of a layer is the sum of two vectors, divided by sqrt(2): of a product with the
// embedding, normed per layer, and of a row of a second table of embeddings. The norm's weights and
// the table's scale include the divisor. The published model divides the product by
// sqrt(hidden_size) before the norm. Here, the norm's epsilon is multiplied by hidden_size instead.
void DecoderModel::compute_layer_inputs(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  const int64_t width = decoder_.layer_input_size;
  const auto by_layer = [&](const TensorView& rows) {
    return TensorView{rows.data, rows.dtype, {num_tokens * config_.num_layers, width}};
  };
  const TensorView projected = scratch(0, num_tokens, widths_.layer_inputs);
  const TensorView inputs = layer_inputs_.view.rows(0, num_tokens);
  ops_.linear(*ends_.layer_projection, residual(num_tokens), projected);
  ops_.residual_norm({.residual = by_layer(projected),
                      .weight = weights_of(ends_.layer_projection_norm),
                      .eps = decoder_.rms_norm_eps * static_cast<float>(config_.hidden_size)},
                     by_layer(projected));
  ops_.embed(*ends_.layer_embed, input.token_ids, layer_input_scale(decoder_), inputs);
  ops_.residual_norm({.residual = inputs, .delta = projected}, inputs);
}

void DecoderModel::add_layer_input(size_t layer_idx, const DecoderLayer& layer,
                                   int64_t num_tokens) {
  if (layer.input_gate == nullptr) return;
  const int64_t width = decoder_.layer_input_size;
  const TensorView sum = residual(num_tokens);
  const TensorView gates = scratch(0, num_tokens, width);
  const TensorView product = scratch(num_tokens * width, num_tokens, width);
  ops_.residual_norm({.residual = sum, .delta = delta(num_tokens)}, sum);
  ops_.linear(*layer.input_gate, sum, gates);
  ops_.gated_mul_columns(decoder_.activation, gates, layer_inputs_.view.rows(0, num_tokens),
                         static_cast<int64_t>(layer_idx) * width, product);
  ops_.linear(*layer.input_projection, product, delta(num_tokens));
  norm_whole(layer.input_output_norm, delta(num_tokens));
}

void DecoderModel::begin_rotation(const StepInput& input) {
  QUIRE_CHECK(input.num_tokens > 0 && input.num_tokens <= limits_.max_num_tokens,
              "[model] a step has no tokens, or more than max_num_tokens");
  QUIRE_CHECK(input.kv_groups.size() == kv_groups_.size(),
              "[model] a step does not have every KV group");
  for (const Rotation& rotation : rotations_) {
    ops_.rope_angles(weights_of(rotation.inv_freq), rotation.attention_factor, input.positions,
                     rotation.cos_sin.view.rows(0, input.num_tokens));
    const QueryScale& scale = rotation.query_scale;
    if (scale.beta == 0.0) continue;
    ops_.position_scales({.beta = static_cast<float>(scale.beta),
                          .period = static_cast<float>(scale.period),
                          .offset = static_cast<float>(scale.offset)},
                         input.positions, rotation.query_scales.view.rows(0, input.num_tokens));
  }
}

void DecoderModel::tap_residual(size_t layer_idx, int64_t num_tokens) {
  const std::vector<int>& tapped = limits_.tapped_layers;
  const auto found = std::ranges::find(tapped, static_cast<int>(layer_idx));
  if (found == tapped.end()) return;
  ops_.write_columns(residual(num_tokens), taps_.view.rows(0, num_tokens),
                     (found - tapped.begin()) * config_.hidden_size);
}

bool DecoderModel::taps_output() const {
  return !limits_.tapped_layers.empty() && limits_.tapped_layers.back() == config_.num_layers;
}

void DecoderModel::tap_output(int64_t num_tokens) {
  if (!taps_output()) return;
  add_and_norm(ends_.final_norm, num_tokens, ends_.output_scale);
  tap_residual(static_cast<size_t>(config_.num_layers), num_tokens);
}

ResidualNorm DecoderModel::norm_of_residual(const Tensor& weight, int64_t num_tokens) const {
  return {.residual = residual(num_tokens), .weight = weights_of(weight), .eps = norm_eps_};
}

ResidualNorm DecoderModel::norm_of_sum(const Tensor& weight, int64_t num_tokens,
                                       const Tensor& scale) const {
  ResidualNorm norm = norm_of_residual(weight, num_tokens);
  norm.delta = delta(num_tokens);
  norm.sums_ranks = divides_delta();
  norm.scale = weights_of(scale);
  return norm;
}

void DecoderModel::norm_residual(const Tensor& weight, int64_t num_tokens) {
  ops_.residual_norm(norm_of_residual(weight, num_tokens), normed(num_tokens));
}

void DecoderModel::add_and_norm(const Tensor& weight, int64_t num_tokens, const Tensor& scale) {
  ops_.residual_norm(norm_of_sum(weight, num_tokens, scale), normed(num_tokens));
}

void DecoderModel::norm_delta(const Tensor& weight, int64_t num_tokens) {
  if (weight.view.data == nullptr) return;
  if (Collectives* const ranks = ops_.collectives()) ranks->all_reduce(delta(num_tokens));
  norm_whole(weight, delta(num_tokens));
}

void DecoderModel::norm_whole(const Tensor& weight, const TensorView& x) {
  ops_.residual_norm({.residual = x,
                      .weight = weights_of(weight),
                      .eps = decoder_.output_norm_eps.value_or(decoder_.rms_norm_eps)},
                     x);
}

TensorView DecoderModel::qkv_view(size_t layer_idx, int64_t num_tokens) const {
  if (has_state(decoder_, layer_idx)) {
    return scratch(0, num_tokens, state_widths(config_, layer_idx, limits_.parallel).in);
  }
  const LayerHeads heads = rank_heads(decoder_, layer_idx, limits_.parallel);
  return scratch(0, num_tokens,
                 int64_t{heads.num_heads} * heads.head_dim + kv_width(decoder_, layer_idx, heads));
}

TensorView DecoderModel::query_view(size_t layer_idx, int64_t num_tokens) const {
  const AttentionShape& shape = shape_of(layer_idx);
  return scratch(num_tokens * widths_.qkv, num_tokens, int64_t{shape.num_heads} * shape.head_dim);
}

TensorView DecoderModel::attention_view(size_t layer_idx, int64_t num_tokens) const {
  if (!decoder_.mla) {
    int64_t width = 0;
    if (has_state(decoder_, layer_idx)) {
      width = state_widths(config_, layer_idx, limits_.parallel).out;
    } else {
      const AttentionShape& shape = shape_of(layer_idx);
      width = int64_t{shape.num_heads} * shape.head_dim_v;
    }
    return scratch(num_tokens * (widths_.qkv + widths_.q), num_tokens, width);
  }
  const TensorView out = mla_views(num_tokens).out;
  return {out.data, out.dtype, {num_tokens, out.shape[1] * out.shape[2]}};
}

MlaViews DecoderModel::mla_views(int64_t num_tokens) const {
  return {*decoder_.mla, widths_.num_heads, scratch(0, num_tokens, widths_.attention)};
}

void DecoderModel::project_qkv(size_t layer_idx, const DecoderLayer& layer,
                               const ResidualNorm& norm) {
  const int64_t num_tokens = norm.residual.shape[0];
  if (decoder_.mla) {
    ops_.residual_norm(norm, normed(num_tokens));
    return project_latent(layer.mla, normed(num_tokens), mla_views(num_tokens), ops_);
  }
  const TensorView qkv = qkv_view(layer_idx, num_tokens);
  if (layer.gate == nullptr) return ops_.norm_linear(norm, *layer.qkv, normed(num_tokens), qkv);
  ops_.residual_norm(norm, normed(num_tokens));
  ops_.linear(*layer.qkv, normed(num_tokens), qkv);
  ops_.linear(*layer.gate, normed(num_tokens), gate_view(layer, num_tokens));
}

void DecoderModel::gate_attention(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens) {
  if (layer.gate == nullptr) return;
  ops_.gate({.x = attention_view(layer_idx, num_tokens),
             .gates = gate_view(layer, num_tokens),
             .function = decoder_.output_gate.function});
}

RopeAndCache DecoderModel::rope_and_cache(size_t layer_idx, const DecoderLayer& layer,
                                          const StepInput& input) const {
  const LayerPlace place = places_[layer_idx];
  const KvGroupStep& step = input.kv_groups[place.group];
  const auto& rotation = rotations_[static_cast<size_t>(decoder_.layer_ropes[layer_idx])];
  RopeAndCache rope;
  rope.cos_sin = rotation.cos_sin.view.rows(0, input.num_tokens);
  rope.pairs = decoder_.rotary_pairs;
  rope.q_scale = weights_of(rotation.query_scales);
  if (decoder_.qk_norm != QkNorm::kWholeWidth) {  // null without a norm
    rope.q_norm = weights_of(layer.q_norm);
    rope.k_norm = weights_of(layer.k_norm);
  }
  rope.v_norm = weights_of(layer.v_norm);
  rope.k_is_v = has_k_for_v(decoder_, layer_idx);
  rope.norms_after_rotation = decoder_.qk_norm == QkNorm::kRotatedHeads;
  rope.norm_eps = decoder_.rms_norm_eps;
  const LayerHeads heads = heads_of(decoder_, layer_idx);
  rope.num_kv_heads = owns_cache(decoder_, layer_idx) ? shape_of(layer_idx).num_kv_heads : 0;
  rope.head_dim = heads.head_dim;
  rope.head_dim_v = heads.head_dim_v;
  rope.value_scale = decoder_.value_scale;
  rope.page_size = limits_.page_size;
  rope.kv = cache_of(layer_idx, layer, input);
  rope.kv_slots = step.batch->kv_slots;
  return rope;
}

void DecoderModel::cache_keys_values(size_t layer_idx, const DecoderLayer& layer,
                                     TensorView keys_values, const StepInput& input) {
  RopeAndCache rope = rope_and_cache(layer_idx, layer, input);
  rope.qkv = keys_values;
  rope.q_out = {keys_values.data, keys_values.dtype, {input.num_tokens, 0, rope.head_dim}};
  ops_.rope_and_cache(rope);
}

void DecoderModel::rotate_and_cache(size_t layer_idx, const DecoderLayer& layer,
                                    const StepInput& input) {
  if (decoder_.qk_norm == QkNorm::kWholeWidth) {
    norm_whole_width(layer_idx, layer, input.num_tokens);
  }
  RopeAndCache rope = rope_and_cache(layer_idx, layer, input);
  rope.num_heads = shape_of(layer_idx).num_heads;
  rope.qkv = qkv_view(layer_idx, input.num_tokens);
  rope.q_out = by_head(query_view(layer_idx, input.num_tokens), rope.num_heads);
  ops_.rope_and_cache(rope);
}

void DecoderModel::norm_whole_width(size_t layer_idx, const DecoderLayer& layer,
                                    int64_t num_tokens) {
  const AttentionShape& shape = shape_of(layer_idx);
  WideNorm norm;
  norm.qkv = qkv_view(layer_idx, num_tokens);
  norm.q_width = int64_t{shape.num_heads} * shape.head_dim;
  norm.k_width = int64_t{shape.num_kv_heads} * shape.head_dim;
  norm.q_norm = weights_of(layer.q_norm);
  norm.k_norm = weights_of(layer.k_norm);
  norm.eps = decoder_.rms_norm_eps;
  norm.sums = qk_sums_.view.rows(0, num_tokens);
  ops_.wide_norm(norm);
}

StatePages DecoderModel::state_pages(size_t layer_idx, const StepInput& input) const {
  QUIRE_CHECK(input.states.batch != nullptr, "[model] a step has no states");
  const AttentionBatch& batch = *input.states.batch;
  return {.first = input.states.pages[places_[layer_idx].index],
          .page_bytes = states_.page_bytes,
          .block_size = limits_.page_size,
          .num_seqs = batch.decode.num_reqs + batch.prefill.num_reqs,
          .num_decode_seqs = batch.decode.num_reqs,
          .query_start = batch.query_start.device,
          .seq_lens = batch.seq_lens,
          .page_table = batch.block_table,
          .max_pages = batch.max_pages,
          .kv_slots = batch.kv_slots};
}

void DecoderModel::convolve(size_t layer_idx, const DecoderLayer& layer, const StepInput& input) {
  ShortConv conv;
  conv.bgx = qkv_view(layer_idx, input.num_tokens);
  conv.w = weights_of(layer.conv);
  conv.kernel = decoder_.convs->kernel;
  conv.num_rows = conv_state_rows(*decoder_.convs, limits_);
  conv.states = state_pages(layer_idx, input);
  conv.out = attention_view(layer_idx, input.num_tokens);
  ops_.states()->short_conv(conv);
}

void DecoderModel::run_delta_net(size_t layer_idx, const DecoderLayer& layer,
                                 const StepInput& input) {
  DeltaNet net;
  net.shape = rank_shape(decoder_.deltas->shape, limits_.parallel);
  net.x = qkv_view(layer_idx, input.num_tokens);
  net.ba = gate_view(layer, input.num_tokens);
  net.conv = weights_of(layer.conv);
  net.a_log = weights_of(layer.a_log);
  net.dt_bias = weights_of(layer.dt_bias);
  net.norm = weights_of(layer.delta_norm);
  net.norm_eps = decoder_.rms_norm_eps;
  net.num_drafts = limits_.num_drafts;
  net.states = state_pages(layer_idx, input);
  net.out = attention_view(layer_idx, input.num_tokens);
  net.workspace = {state_workspace_.view.as<std::byte>(), state_workspace_.view.num_bytes()};
  ops_.states()->delta_net(net);
}

Status DecoderModel::attend(size_t layer_idx, const DecoderLayer& layer, const StepInput& input) {
  if (has_conv(decoder_, layer_idx)) {
    convolve(layer_idx, layer, input);
    return {};
  }
  if (has_delta(decoder_, layer_idx)) {
    run_delta_net(layer_idx, layer, input);
    return {};
  }
  if (decoder_.mla) return attend_latent(layer_idx, layer, input);
  rotate_and_cache(layer_idx, layer, input);
  const KvGroupStep& step = input.kv_groups[places_[layer_idx].group];
  const int num_heads = shape_of(layer_idx).num_heads;
  QUIRE_RETURN_IF_ERROR(
      run_attention(layer_idx, layer, by_head(query_view(layer_idx, input.num_tokens), num_heads),
                    by_head(attention_view(layer_idx, input.num_tokens), num_heads), input,
                    {step.decode, step.prefill}));
  gate_attention(layer_idx, layer, input.num_tokens);
  return {};
}

// Tokens with absorbed attention (mla.h) come first, because a batch begins with its decode range.
// Their attention must end before expanded attention begins, whose output overwrites the absorbed
// queries.
Status DecoderModel::attend_latent(size_t layer_idx, const DecoderLayer& layer,
                                   const StepInput& input) {
  const KvGroupStep& step = input.kv_groups[places_[layer_idx].group];
  ExpandingPlan* const expanding =
      step.prefill == nullptr ? nullptr : step.prefill->expanding_plan();
  const int64_t num_absorbed =
      expanding == nullptr ? input.num_tokens : step.batch->prefill.first_token;
  const MlaViews views = mla_views(input.num_tokens);
  const RopeAndCache common = rope_and_cache(layer_idx, layer, input);
  LatentRopeAndCache rope;
  rope.cos_sin = common.cos_sin;
  rope.page_size = common.page_size;
  rope.kv = common.kv;
  rope.kv_slots = common.kv_slots;
  rope.q_scale = common.q_scale;
  rotate_and_cache_latent(*decoder_.mla, layer.mla, views, num_absorbed, rope, ops_);
  QUIRE_RETURN_IF_ERROR(
      run_attention(layer_idx, layer, views.q_absorbed, views.attended, input,
                    {step.decode, expanding == nullptr ? step.prefill : nullptr}));
  project_values(layer.mla, views, num_absorbed, ops_);
  if (expanding == nullptr) return {};
  MlaExpander expander(layer.mla, *ops_.latents()->expansion());
  ExpandedCall call;
  call.q = views.q;
  call.out = views.out;
  call.scratch = views.expanded;
  call.kv = rope.kv;
  call.expander = &expander;
  call.workspace = step.workspace;
  return expanding->run_expanded(call, ops_.stream());
}

KvCacheView DecoderModel::cache_of(size_t layer_idx, const DecoderLayer& layer,
                                   const StepInput& input) const {
  const LayerPlace place = places_[layer_idx];
  KvCacheView cache = input.kv_groups[place.group].caches[place.index];
  if (cache.dtype != DType::kF8E4M3) return cache;
  const KvScales& scales = layer.source_scales == nullptr ? layer.kv_scales : *layer.source_scales;
  cache.k_scale = scales.k.view.as<float>();
  // The values of a latent cache are a part of its keys.
  cache.v_scale = (decoder_.mla ? scales.k : scales.v).view.as<float>();
  return cache;
}

Status DecoderModel::run_attention(size_t layer_idx, const DecoderLayer& layer, TensorView q,
                                   TensorView out, const StepInput& input,
                                   std::initializer_list<AttentionPlan*> plans) {
  const KvGroupStep& step = input.kv_groups[places_[layer_idx].group];
  AttentionCall call;
  call.q = q;
  call.out = out;
  call.kv = cache_of(layer_idx, layer, input);
  call.sinks = layer.sinks.view.as<float>();
  call.workspace = step.workspace;
  for (AttentionPlan* const plan : plans) {
    if (plan != nullptr) QUIRE_RETURN_IF_ERROR(plan->run(call, ops_.stream()));
  }
  return {};
}

void DecoderModel::project_output(size_t layer_idx, const DecoderLayer& layer, int64_t num_tokens) {
  ops_.linear(*layer.o, attention_view(layer_idx, num_tokens), delta(num_tokens));
}

void DecoderModel::run_after_attention(size_t layer_idx, const DecoderLayer& layer,
                                       int64_t num_tokens) {
  project_output(layer_idx, layer, num_tokens);
  norm_delta(layer.attention_output_norm, num_tokens);
  mlp(layer, norm_of_sum(layer.mlp_norm, num_tokens));
}

void DecoderModel::mlp(const DecoderLayer& layer, const ResidualNorm& norm) {
  const int64_t num_tokens = norm.residual.shape[0];
  const bool has_experts = layer.moe.experts != nullptr;
  if (layer.moe.output_norm.view.data != nullptr) return mlp_and_experts(layer, norm);
  ExpertsCall call;
  // The router, the experts and the shared expert all read the norm.
  if (has_experts) moe_.route(layer.moe, norm, normed(num_tokens), call, ops_);
  if (layer.gate_up != nullptr) {
    GatedMlp mlp;
    mlp.gate_up = layer.gate_up.get();
    mlp.down = layer.down.get();
    mlp.activation = decoder_.activation;
    if (!has_experts) mlp.norm = norm;
    mlp.x = normed(num_tokens);
    mlp.out = delta(num_tokens);
    mlp.gate_up_out = gate_up_view(layer, num_tokens);
    mlp.product = product_view(layer, num_tokens);
    ops_.gated_mlp(mlp);
    if (layer.moe.shared_gate != nullptr) {
      moe_.gate_shared(layer.moe, mlp.x, mlp.out, ops_);
    }
  }
  if (has_experts) {
    call.activation = decoder_.activation;
    call.x = normed(num_tokens);
    call.out = delta(num_tokens);
    call.adds = layer.gate_up != nullptr;
    moe_.run_experts(layer.moe, call, ops_);
  }
  norm_delta(layer.mlp_output_norm, num_tokens);
}

void DecoderModel::mlp_and_experts(const DecoderLayer& layer, const ResidualNorm& norm) {
  const int64_t num_tokens = norm.residual.shape[0];
  const TensorView out = delta(num_tokens);
  const TensorView x = normed(num_tokens);
  GatedMlp mlp;
  mlp.gate_up = layer.gate_up.get();
  mlp.down = layer.down.get();
  mlp.activation = decoder_.activation;
  mlp.norm = norm;
  mlp.x = x;
  mlp.out = out;
  mlp.gate_up_out = gate_up_view(layer, num_tokens);
  mlp.product = product_view(layer, num_tokens);
  ops_.gated_mlp(mlp);
  norm_delta(layer.moe.mlp_output_norm, num_tokens);
  ExpertsCall call;
  call.activation = decoder_.activation;
  call.x = x;
  call.out = scratch(0, num_tokens, config_.hidden_size);
  moe_.route(layer.moe, norm_of_residual(layer.moe.router_norm, num_tokens), x, call, ops_);
  norm_residual(layer.moe.input_norm, num_tokens);
  moe_.run_experts(layer.moe, call, ops_);
  if (Collectives* const ranks = ops_.collectives()) ranks->all_reduce(call.out);
  norm_whole(layer.moe.output_norm, call.out);
  ops_.residual_norm({.residual = out, .delta = call.out}, out);
  norm_whole(layer.mlp_output_norm, out);
}

void DecoderModel::last_output(const int32_t* rows, int num_rows, TensorView output,
                               TensorView norm) {
  QUIRE_CHECK(num_rows > 0 && num_rows <= limits_.max_num_logit_rows,
              "[model] a step has no logits rows, or more than max_num_logit_rows");
  const int64_t hidden = config_.hidden_size;
  const float* weights = weights_of(ends_.final_norm);
  ops_.gather_rows(residual_.view, rows, output);
  if (taps_output()) {
    return ops_.residual_norm({.residual = output, .weight = weights, .eps = norm_eps_}, norm);
  }
  const TensorView last_delta = scratch(num_rows * hidden, num_rows, hidden);
  ops_.gather_rows(delta_.view, rows, last_delta);
  ops_.residual_norm({.residual = output,
                      .delta = last_delta,
                      .weight = weights,
                      .eps = norm_eps_,
                      .sums_ranks = divides_delta(),
                      .scale = weights_of(ends_.output_scale)},
                     norm);
}

// Only rows whose logits are requested go through the final norm and lm_head, the largest matrix.
Status DecoderModel::compute_logits(const int32_t* rows, int num_rows, TensorView logits) {
  if (divides_logits()) {
    QUIRE_RETURN_IF_ERROR(compute_logits_part(rows, num_rows));
    gather_logits(num_rows, logits);
  } else {
    project_last(rows, num_rows, logits);
  }
  return {};
}

bool DecoderModel::divides_logits() const {
  return lm_head() != nullptr && lm_head()->first_token_id();
}

Status DecoderModel::compute_logits_part(const int32_t* rows, int num_rows) {
  project_last(rows, num_rows, logits_part(num_rows).logits);
  return {};
}

void DecoderModel::project_last(const int32_t* rows, int num_rows, TensorView logits) {
  const TensorView normed = last_norm_view(num_rows);
  last_output(rows, num_rows, last_output_view(num_rows), normed);
  ops_.linear(*lm_head(), normed, logits);
  if (decoder_.logits_softcap != 0.0F) ops_.soft_cap(decoder_.logits_softcap, logits);
}

LogitsPart DecoderModel::logits_part(int num_rows) const {
  const Linear& head = *lm_head();
  return {.logits = {logits_parts_.view.data, DType::kF32, {num_rows, head.out_features()}},
          .first_id = static_cast<int32_t>(head.first_token_id().value_or(0))};
}

void DecoderModel::gather_logits(int num_rows, TensorView logits) {
  const int64_t num_in_part =
      limits_.max_num_logit_rows * ceil_div(int64_t{config_.vocab_size}, limits_.parallel.size);
  const TensorView gathered =
      logits_parts_.view.rows(num_in_part, num_in_part * limits_.parallel.size);
  ops_.collectives()->all_gather_columns(logits_part(num_rows).logits, logits, gathered);
}

Status DecoderModel::hidden_states(const int32_t* rows, int num_rows, TensorView out) {
  last_output(rows, num_rows, last_output_view(num_rows), out);
  return {};
}

}  // namespace quire
