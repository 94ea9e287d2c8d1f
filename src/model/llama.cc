#include "model/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/footprint.h"
#include "model/rope.h"
#include "model/shard.h"

namespace quire {
namespace {

TensorView first_rows(const Tensor& tensor, int64_t num_rows) {
  return tensor.view.rows(0, num_rows);
}

const float* weights_of(const Tensor& vector) {
  return vector.view.as<float>();
}

}  // namespace

Result<std::unique_ptr<Model>> LlamaModel::create(const ModelConfig& config,
                                                  const ModelLimits& limits, Ops& ops,
                                                  LlamaWeights weights) {
  QUIRE_RETURN_IF_ERROR(check_shards(config, limits.parallel));
  std::unique_ptr<LlamaModel> model(new LlamaModel(config, limits, ops, std::move(weights)));
  QUIRE_RETURN_IF_ERROR(model->allocate_buffers());
  return std::unique_ptr<Model>(std::move(model));
}

LlamaModel::LlamaModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops,
                       LlamaWeights weights)
    : config_(config), limits_(limits), ops_(ops), weights_(std::move(weights)) {
  const Parallel& parallel = limits.parallel;
  num_heads_ = static_cast<int>(shard(config.num_heads, parallel).count);
  num_kv_heads_ = static_cast<int>(shard(config.num_kv_heads, parallel).count);
  q_size_ = int64_t{num_heads_} * config.head_dim;
  qkv_size_ = q_size_ + 2 * int64_t{num_kv_heads_} * config.head_dim;
  intermediate_size_ = shard(config.intermediate_size, parallel).count;
  kv_groups_ = make_kv_groups(config, limits, ops.activation_dtype());
  places_.resize(static_cast<size_t>(config.num_layers));
  for (size_t g = 0; g < kv_groups_.size(); ++g) {
    const std::vector<int>& layers = kv_groups_[g].layers;
    for (size_t i = 0; i < layers.size(); ++i) places_[static_cast<size_t>(layers[i])] = {g, i};
  }
}

Status LlamaModel::allocate_buffers() {
  const int64_t num_tokens = limits_.max_num_tokens;
  const int64_t hidden = config_.hidden_size;
  const DType dtype = ops_.activation_dtype();
  for (Tensor* buffer : {&residual_, &normed_, &delta_}) {
    QUIRE_ASSIGN_OR_RETURN(*buffer, ops_.allocate({num_tokens, hidden}, dtype));
  }
  QUIRE_ASSIGN_OR_RETURN(cos_sin_, ops_.allocate({num_tokens, config_.head_dim}, DType::kF32));
  const int64_t num_elements =
      std::max(num_tokens * scratch_elements_per_token(config_, limits_.parallel),
               limits_.max_num_logit_rows * 3 * hidden);
  QUIRE_ASSIGN_OR_RETURN(scratch_, ops_.allocate({num_elements}, dtype));

  const RopeFrequencies rope = rope_frequencies(
      config_.rope, config_.head_dim, config_.max_position_embeddings, limits_.max_model_len);
  std::vector<float> inv_freq(rope.inv_freq.begin(), rope.inv_freq.end());
  QUIRE_ASSIGN_OR_RETURN(inv_freq_,
                         ops_.make_vector({inv_freq.data(), DType::kF32, {config_.head_dim / 2}}));
  attention_factor_ = static_cast<float>(rope.attention_factor);
  return {};
}

TensorView LlamaModel::scratch(int64_t offset, int64_t rows, int64_t width) const {
  const DType dtype = scratch_.view.dtype;
  auto* base = scratch_.view.as<std::byte>() + offset * static_cast<int64_t>(dtype_bytes(dtype));
  return {base, dtype, {rows, width}};
}

Status LlamaModel::forward(const StepInput& input, Stream& stream) {
  QUIRE_CHECK(input.num_tokens > 0 && input.num_tokens <= limits_.max_num_tokens,
              "[model] a step has 1 to max_num_tokens tokens");
  QUIRE_CHECK(input.kv_groups.size() == kv_groups_.size(), "[model] a step knows every KV group");
  const int64_t num_tokens = input.num_tokens;
  ops_.embed(*weights_.embed, input.token_ids, 1.0F, first_rows(residual_, num_tokens), stream);
  ops_.rope_angles(weights_of(inv_freq_), attention_factor_, input.positions,
                   first_rows(cos_sin_, num_tokens), stream);
  bool has_qkv = false;
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    if (!has_qkv) project_qkv(i, num_tokens, stream);
    QUIRE_RETURN_IF_ERROR(attention(i, input, stream));
    has_qkv = ops_.try_layer_tail(tail_of(i, num_tokens), stream);
    if (has_qkv) continue;
    project_output(i, num_tokens, stream);
    mlp(i, num_tokens, stream);
  }
  return {};
}

// Scratch memory holds what attention reads and writes. The MLP's inner values overwrite it, and
// the next layer's queries, keys and values overwrite those.
TensorView LlamaModel::qkv_view(int64_t num_tokens) const {
  return scratch(0, num_tokens, qkv_size_);
}

TensorView LlamaModel::attention_view(int64_t num_tokens) const {
  return scratch(num_tokens * (qkv_size_ + q_size_), num_tokens, q_size_);
}

TensorView LlamaModel::gate_up_view(int64_t num_tokens) const {
  return scratch(0, num_tokens, 2 * intermediate_size_);
}

TensorView LlamaModel::product_view(int64_t num_tokens) const {
  return scratch(num_tokens * 2 * intermediate_size_, num_tokens, intermediate_size_);
}

// residual_, with what the layer before adds → qkv_view
void LlamaModel::project_qkv(size_t layer_idx, int64_t num_tokens, Stream& stream) {
  const LlamaLayer& layer = weights_.layers[layer_idx];
  const TensorView residual = first_rows(residual_, num_tokens);
  const TensorView normed = first_rows(normed_, num_tokens);
  const float* norm = weights_of(layer.input_norm);
  if (layer_idx == 0) {
    ops_.rms_norm(residual, norm, config_.rms_norm_eps, normed, stream);
  } else {
    ops_.add_rms_norm(residual, first_rows(delta_, num_tokens), norm, config_.rms_norm_eps, normed,
                      stream);
  }
  ops_.linear(*layer.qkv, normed, qkv_view(num_tokens), stream);
}

// qkv_view → attention_view
Status LlamaModel::attention(size_t layer_idx, const StepInput& input, Stream& stream) {
  const LlamaLayer& layer = weights_.layers[layer_idx];
  const LayerPlace place = places_[layer_idx];
  const KvGroupStep& step = input.kv_groups[place.group];
  const int64_t num_tokens = input.num_tokens;
  const TensorView q = scratch(num_tokens * qkv_size_, num_tokens, q_size_);
  const Shape per_head = {num_tokens, num_heads_, config_.head_dim};

  RopeAndCache rope;
  rope.qkv = qkv_view(num_tokens);
  rope.q_out = {q.data, q.dtype, per_head};
  rope.cos_sin = first_rows(cos_sin_, num_tokens);
  rope.q_norm = config_.qk_norm ? weights_of(layer.q_norm) : nullptr;
  rope.k_norm = config_.qk_norm ? weights_of(layer.k_norm) : nullptr;
  rope.norm_eps = config_.rms_norm_eps;
  rope.num_heads = num_heads_;
  rope.num_kv_heads = num_kv_heads_;
  rope.head_dim = config_.head_dim;
  rope.page_size = limits_.page_size;
  rope.kv = step.caches[place.index];
  rope.slot_mapping = step.batch->slot_mapping;
  ops_.rope_and_cache(rope, stream);

  AttentionCall call;
  call.q = rope.q_out;
  call.out = {attention_view(num_tokens).data, q.dtype, per_head};
  call.kv = rope.kv;
  call.workspace = step.workspace;
  if (step.decode != nullptr) QUIRE_RETURN_IF_ERROR(step.decode->run(call, stream));
  if (step.prefill != nullptr) QUIRE_RETURN_IF_ERROR(step.prefill->run(call, stream));
  return {};
}

// attention_view → delta_
void LlamaModel::project_output(size_t layer_idx, int64_t num_tokens, Stream& stream) {
  const TensorView delta = first_rows(delta_, num_tokens);
  ops_.linear(*weights_.layers[layer_idx].o, attention_view(num_tokens), delta, stream);
  ops_.all_reduce(delta, stream);
}

// residual_ and delta_ → delta_
void LlamaModel::mlp(size_t layer_idx, int64_t num_tokens, Stream& stream) {
  const LlamaLayer& layer = weights_.layers[layer_idx];
  const TensorView delta = first_rows(delta_, num_tokens);
  const TensorView normed = first_rows(normed_, num_tokens);
  const TensorView gate_up = gate_up_view(num_tokens);
  const TensorView product = product_view(num_tokens);
  ops_.add_rms_norm(first_rows(residual_, num_tokens), delta, weights_of(layer.post_attention_norm),
                    config_.rms_norm_eps, normed, stream);
  ops_.linear(*layer.gate_up, normed, gate_up, stream);
  ops_.gated_mul(Activation::kSilu, gate_up, product, stream);
  ops_.linear(*layer.down, product, delta, stream);
  ops_.all_reduce(delta, stream);
}

LayerTail LlamaModel::tail_of(size_t layer_idx, int64_t num_tokens) const {
  const LlamaLayer& layer = weights_.layers[layer_idx];
  LayerTail tail;
  tail.o = layer.o.get();
  tail.post_attention_norm = weights_of(layer.post_attention_norm);
  tail.gate_up = layer.gate_up.get();
  tail.down = layer.down.get();
  if (layer_idx + 1 < weights_.layers.size()) {
    const LlamaLayer& next = weights_.layers[layer_idx + 1];
    tail.next_norm = weights_of(next.input_norm);
    tail.next_qkv = next.qkv.get();
  }
  tail.norm_eps = config_.rms_norm_eps;
  tail.attention = attention_view(num_tokens);
  tail.residual = first_rows(residual_, num_tokens);
  tail.delta = first_rows(delta_, num_tokens);
  tail.qkv = qkv_view(num_tokens);
  tail.normed = first_rows(normed_, num_tokens);
  tail.gate_up_out = gate_up_view(num_tokens);
  tail.product = product_view(num_tokens);
  return tail;
}

// Only the rows that are asked for go through the final norm and the largest matrix.
Status LlamaModel::compute_logits(const int32_t* rows, int num_rows, TensorView logits,
                                  Stream& stream) {
  QUIRE_CHECK(num_rows > 0 && num_rows <= limits_.max_num_logit_rows,
              "[model] 1 to max_num_logit_rows rows of logits at a time");
  const int64_t hidden = config_.hidden_size;
  const TensorView residual = scratch(0, num_rows, hidden);
  const TensorView delta = scratch(num_rows * hidden, num_rows, hidden);
  const TensorView normed = scratch(2 * num_rows * hidden, num_rows, hidden);
  ops_.gather_rows(residual_.view, rows, residual, stream);
  ops_.gather_rows(delta_.view, rows, delta, stream);
  ops_.add_rms_norm(residual, delta, weights_of(weights_.final_norm), config_.rms_norm_eps, normed,
                    stream);
  ops_.linear(weights_.lm_head != nullptr ? *weights_.lm_head : *weights_.embed, normed, logits,
              stream);
  return {};
}

}  // namespace quire
