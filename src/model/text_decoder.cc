#include "model/text_decoder.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/decoder.h"
#include "ops/layer_tail_ops.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr const char* kRoot = "model.";

struct DecoderWeights {
  DecoderEnds ends;
  std::vector<DecoderLayer> layers;
};

WeightList list_weights(const ModelConfig& config, DecoderWeights& weights) {
  const DecoderConfig& decoder = decoder_config(config);
  WeightList list;
  list.groups.push_back(embedding_weights(config, kRoot, weights.ends));
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    DecoderLayer& layer = weights.layers[i];
    const std::string prefix = fmt::format("{}layers.{}.", kRoot, i);
    list.groups.push_back(decoder_layer_weights(config, prefix, i, layer));
    if (kv_source_of(decoder, i) == i) continue;
    // Checkpoints also have the matrices that the layer does not use.
    for (const char* const unused : {"k_proj.", "v_proj.", "k_norm."}) {
      list.ignored_prefixes.push_back(fmt::format("{}self_attn.{}", prefix, unused));
    }
  }
  list.groups.push_back(head_weights(config, kRoot, weights.ends));
  const bool has_head = !decoder.tie_word_embeddings && !config.embeds;
  if (!has_head) list.ignored_prefixes.push_back("lm_head.weight");
  if (decoder.mtp != nullptr) list.ignored_prefixes.emplace_back(decoder.mtp->prefix);
  return list;
}

class TextDecoder final : public DecoderModel {
 public:
  TextDecoder(const ModelConfig& config, const ModelLimits& limits, Ops& ops,
              DecoderWeights weights)
      : DecoderModel(config, limits, ops, std::move(weights.ends)),
        layers_(std::move(weights.layers)) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      const size_t source = kv_source_of(decoder(), i);
      if (source != i) layers_[i].source_scales = &layers_[source].kv_scales;
    }
  }

  Status forward(const StepInput& input) override;
  const KvScales* kv_scales(int layer) const override {
    return &layers_[static_cast<size_t>(layer)].kv_scales;
  }
  Result<int> add_kv_scales(std::span<const KvScaleValues> by_layer) override {
    return add_kv_scales_to(layers_, by_layer);
  }

 private:
  // Computes the operations after attention, up to the next layer's queries, keys and values, as
  // one kernel. Computes nothing and returns false if the device has no such kernel.
  bool try_tail(size_t layer_idx, int64_t num_tokens);
  LayerTail tail_of(size_t layer_idx, int64_t num_tokens) const;

  std::vector<DecoderLayer> layers_;
};

Status TextDecoder::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_step(input);
  bool has_qkv = false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const DecoderLayer& layer = layers_[i];
    if (!has_qkv) {
      project_qkv(i, layer,
                  i == 0 ? norm_of_residual(layer.input_norm, num_tokens)
                         : norm_of_sum(layer.input_norm, num_tokens, layers_[i - 1].output_scale));
    }
    tap_residual(i, num_tokens);
    QUIRE_RETURN_IF_ERROR(attend(i, layer, input));
    has_qkv = try_tail(i, num_tokens);
    if (has_qkv) continue;
    run_after_attention(i, layer, num_tokens);
    add_layer_input(i, layer, num_tokens);
  }
  tap_output(num_tokens);
  return {};
}

bool TextDecoder::try_tail(size_t layer_idx, int64_t num_tokens) {
  LayerTailOps* const tails = ops().layer_tails();
  const DecoderLayer& layer = layers_[layer_idx];
  const bool is_plain = decoder().norms == kInputNorms && layer.qkv != nullptr &&
                        layer.gate == nullptr && layer.moe.experts == nullptr &&
                        decoder().activation == Activation::kSilu;
  return tails != nullptr && is_plain && tails->try_layer_tail(tail_of(layer_idx, num_tokens));
}

LayerTail TextDecoder::tail_of(size_t layer_idx, int64_t num_tokens) const {
  const DecoderLayer& layer = layers_[layer_idx];
  LayerTail tail;
  tail.o = layer.o.get();
  tail.post_attention_norm = layer.mlp_norm.view.as<float>();
  tail.gate_up = layer.gate_up.get();
  tail.down = layer.down.get();
  tail.qkv = qkv_view(layer_idx, num_tokens);
  if (layer_idx + 1 < layers_.size()) {
    const DecoderLayer& next = layers_[layer_idx + 1];
    tail.next_norm = next.input_norm.view.as<float>();
    tail.next_qkv = next.qkv.get();
    tail.qkv = qkv_view(layer_idx + 1, num_tokens);
  }
  tail.norm_eps = residual_norm_eps(decoder());
  tail.attention = attention_view(layer_idx, num_tokens);
  tail.residual = residual(num_tokens);
  tail.delta = delta(num_tokens);
  tail.normed = normed(num_tokens);
  tail.gate_up_out = gate_up_view(layer, num_tokens);
  tail.product = product_view(layer, num_tokens);
  return tail;
}

}  // namespace

std::vector<TensorSpec> list_decoder_tensors(const ModelConfig& config) {
  DecoderWeights weights;
  return list_tensors(list_weights(config, weights));
}

Result<std::unique_ptr<Model>> load_text_decoder(const ModelConfig& config, WeightSource& source,
                                                 Ops& ops, const ModelLimits& limits,
                                                 const LoadOptions& options) {
  QUIRE_RETURN_IF_ERROR(check_shards(config, limits.parallel));
  DecoderWeights weights;
  QUIRE_RETURN_IF_ERROR(load_weights(list_weights(config, weights), config.architecture, source,
                                     ops, limits.parallel, options));
  auto model = std::make_unique<TextDecoder>(config, limits, ops, std::move(weights));
  QUIRE_RETURN_IF_ERROR(model->allocate_buffers());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace quire
