#include "model/llama/llama.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>

#include "model/config_fields.h"
#include "model/decoder.h"
#include "ops/layer_tail_ops.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

// A property that an architecture fixes, or that a config field decides.
enum class Trait { kNo, kYes, kFromConfig };

// The layers that have a sliding window.
enum class WindowRule {
  kNone,         // the field is ignored
  kEveryLayer,   // sliding_window applies to all layers
  kFromLayerUp,  // with use_sliding_window, layers from max_window_layers up, or layer_types
};

// The differences between the architectures. Defaults are those of each architecture's
// configuration class in transformers.
struct Traits {
  Trait qkv_bias = Trait::kNo;  // kFromConfig: attention_bias
  Trait o_bias = Trait::kNo;    // kFromConfig: attention_bias
  Trait mlp_bias = Trait::kNo;  // kFromConfig: mlp_bias
  bool qk_norm = false;
  WindowRule window = WindowRule::kNone;
  int default_window = 0;  // if the config has no sliding_window field
  std::optional<int> default_head_dim = {};
  double default_theta = RopeConfig().theta;
  // Reads DecoderConfig::mla; null: grouped-query attention.
  void (*read_mla)(ConfigFields& fields, DecoderConfig& decoder) = nullptr;
  // Reads DecoderConfig::moe; null: every layer is dense.
  void (*read_moe)(ConfigFields& fields, const ModelConfig& config,
                   DecoderConfig& decoder) = nullptr;
  bool has_mtp_layers = false;  // num_nextn_predict_layers of them
};

// read_deepseek_mla() sets the size of heads; hidden_size / num_attention_heads need not be a whole
// number.
constexpr int kReplacedHeadDim = 64;

bool resolve(Trait trait, ConfigFields& fields, std::string_view key) {
  if (trait == Trait::kFromConfig) return fields.boolean(key, false);
  return trait == Trait::kYes;
}

bool is_sliding(const std::vector<std::string>& layer_types, int layer, int first_sliding) {
  if (layer_types.empty()) return layer >= first_sliding;
  return layer_types[static_cast<size_t>(layer)] == "sliding_attention";
}

std::vector<int> read_windows(ConfigFields& fields, const Traits& traits, int num_layers) {
  constexpr int kMax = std::numeric_limits<int>::max();
  std::vector<int> windows(static_cast<size_t>(num_layers), 0);
  if (traits.window == WindowRule::kNone) return windows;
  const int absent = fields.mentions("sliding_window") ? 0 : traits.default_window;
  const int window = fields.integer("sliding_window", 1, kMax, absent);
  int first_sliding = 0;
  std::vector<std::string> layer_types;
  if (traits.window == WindowRule::kFromLayerUp) {
    if (!fields.boolean("use_sliding_window", false)) return windows;
    first_sliding = fields.integer("max_window_layers", 0, kMax, 28);
    layer_types = read_layer_types(fields, num_layers);
  }
  for (int layer = 0; layer < num_layers; ++layer) {
    if (is_sliding(layer_types, layer, first_sliding)) {
      windows[static_cast<size_t>(layer)] = window;
    }
  }
  return windows;
}

std::shared_ptr<const FamilyConfig> parse(ConfigFields& fields, const Traits& traits,
                                          ModelConfig& config) {
  auto decoder = std::make_shared<DecoderConfig>();
  const std::string activation = fields.optional_text("hidden_act").value_or("silu");
  if (activation != "silu") fields.fail("hidden_act", quote_name(activation), "\"silu\"");
  read_decoder_sizes(fields, {.head_dim = traits.default_head_dim}, config, *decoder);
  if (!fields.status().ok()) return nullptr;
  read_decoder_rope(fields, config, *decoder, traits.default_theta);
  if (traits.read_mla != nullptr) traits.read_mla(fields, *decoder);
  decoder->layer_windows = read_windows(fields, traits, config.num_layers);
  decoder->tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  decoder->qkv_bias = resolve(traits.qkv_bias, fields, "attention_bias");
  decoder->o_bias = resolve(traits.o_bias, fields, "attention_bias");
  decoder->mlp_bias = resolve(traits.mlp_bias, fields, "mlp_bias");
  decoder->qk_norm = traits.qk_norm;
  if (traits.read_moe != nullptr) traits.read_moe(fields, config, *decoder);
  if (traits.has_mtp_layers) {
    decoder->num_mtp_layers = fields.integer("num_nextn_predict_layers", 0, kMaxLayers, 0);
  }
  for (int i = 0; i < decoder->num_mtp_layers; ++i) {
    // DeepSeek numbers them after the layers of the model.
    config.layout.ignored_prefixes.push_back(
        decoder->mla ? fmt::format("model.layers.{}.", config.num_layers + i)
                     : fmt::format("model.mtp_layers.{}.", i));
  }
  return decoder;
}

struct LlamaLayer : DecoderLayer {
  Tensor input_norm;           // [hidden]
  Tensor post_attention_norm;  // [hidden]; before the MLP
};

struct LlamaWeights {
  DecoderEnds ends;
  std::vector<LlamaLayer> layers;
};

WeightList list_llama_weights(const ModelConfig& config, LlamaWeights& weights) {
  WeightList list;
  list.groups.push_back(embedding_weights(config, "model.", weights.ends));
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LlamaLayer& layer = weights.layers[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const std::optional<MoeConfig>& moe = decoder_config(config).moe;
    WeightGroup group = moe && moe->layers[i] ? moe_layer_weights(config, prefix, layer)
                                              : decoder_layer_weights(config, prefix, layer);
    group.vectors.push_back(
        {&layer.input_norm, prefix + "input_layernorm.weight", config.hidden_size});
    group.vectors.push_back({&layer.post_attention_norm, prefix + "post_attention_layernorm.weight",
                             config.hidden_size});
    list.groups.push_back(std::move(group));
  }
  list.groups.push_back(head_weights(config, "model.", weights.ends));
  const bool has_head = !decoder_config(config).tie_word_embeddings && !config.embeds;
  if (!has_head) list.ignored_prefixes.push_back("lm_head.weight");
  return list;
}

class LlamaModel final : public DecoderModel {
 public:
  LlamaModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, LlamaWeights weights)
      : DecoderModel(config, limits, ops, std::move(weights.ends)),
        layers_(std::move(weights.layers)) {}

  Status forward(const StepInput& input) override;
  Result<int> add_kv_scales(std::span<const KvScaleValues> by_layer) override {
    return add_kv_scales_to(layers_, by_layer);
  }

 private:
  // The operations after attention, up to the next layer's queries, keys and values.
  LayerTail tail_of(size_t layer_idx, int64_t num_tokens) const;

  std::vector<LlamaLayer> layers_;
};

Status LlamaModel::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_step(input, 1.0F);
  LayerTailOps* const tails = ops().layer_tails();
  bool has_qkv = false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LlamaLayer& layer = layers_[i];
    if (!has_qkv) {
      project_qkv(layer, i == 0 ? norm_of_residual(layer.input_norm, num_tokens)
                                : norm_of_sum(layer.input_norm, num_tokens));
    }
    tap_residual(i, num_tokens);
    QUIRE_RETURN_IF_ERROR(attend(i, layer, input));
    const bool may_have_tail =
        tails != nullptr && layer.qkv != nullptr && layer.moe.experts == nullptr;
    has_qkv = may_have_tail && tails->try_layer_tail(tail_of(i, num_tokens));
    if (has_qkv) continue;
    project_output(layer, num_tokens);
    mlp(layer, norm_of_sum(layer.post_attention_norm, num_tokens));
  }
  tap_output(num_tokens);
  return {};
}

LayerTail LlamaModel::tail_of(size_t layer_idx, int64_t num_tokens) const {
  const LlamaLayer& layer = layers_[layer_idx];
  LayerTail tail;
  tail.o = layer.o.get();
  tail.post_attention_norm = layer.post_attention_norm.view.as<float>();
  tail.gate_up = layer.gate_up.get();
  tail.down = layer.down.get();
  if (layer_idx + 1 < layers_.size()) {
    const LlamaLayer& next = layers_[layer_idx + 1];
    tail.next_norm = next.input_norm.view.as<float>();
    tail.next_qkv = next.qkv.get();
  }
  tail.norm_eps = decoder().rms_norm_eps;
  tail.attention = attention_view(num_tokens);
  tail.residual = residual(num_tokens);
  tail.delta = delta(num_tokens);
  tail.qkv = qkv_view(num_tokens);
  tail.normed = normed(num_tokens);
  tail.gate_up_out = gate_up_view(layer, num_tokens);
  tail.product = product_view(layer, num_tokens);
  return tail;
}

}  // namespace

std::shared_ptr<const FamilyConfig> parse_llama(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.qkv_bias = Trait::kFromConfig,
                .o_bias = Trait::kFromConfig,
                .mlp_bias = Trait::kFromConfig},
               config);
}

std::shared_ptr<const FamilyConfig> parse_mistral(ConfigFields& fields, ModelConfig& config) {
  return parse(fields, {.window = WindowRule::kEveryLayer, .default_window = 4096}, config);
}

std::shared_ptr<const FamilyConfig> parse_qwen2(ConfigFields& fields, ModelConfig& config) {
  return parse(
      fields, {.qkv_bias = Trait::kYes, .window = WindowRule::kFromLayerUp, .default_window = 4096},
      config);
}

std::shared_ptr<const FamilyConfig> parse_qwen3(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.qkv_bias = Trait::kFromConfig,
                .o_bias = Trait::kFromConfig,
                .qk_norm = true,
                .window = WindowRule::kFromLayerUp,
                .default_window = 4096,
                .default_head_dim = 128},
               config);
}

std::shared_ptr<const FamilyConfig> parse_qwen3_moe(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.qkv_bias = Trait::kFromConfig,
                .o_bias = Trait::kFromConfig,
                .qk_norm = true,
                .read_moe = read_qwen3_moe},
               config);
}

std::shared_ptr<const FamilyConfig> parse_mixtral(ConfigFields& fields, ModelConfig& config) {
  config.layout.renames = {
      {"block_sparse_moe", "mlp"}, {"w1", "gate_proj"}, {"w3", "up_proj"}, {"w2", "down_proj"}};
  return parse(
      fields,
      {.window = WindowRule::kEveryLayer, .default_theta = 1e6, .read_moe = read_mixtral_moe},
      config);
}

std::shared_ptr<const FamilyConfig> parse_deepseek_v2(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.default_head_dim = kReplacedHeadDim,
                .read_mla = read_deepseek_mla,
                .read_moe = read_deepseek_v2_moe},
               config);
}

std::shared_ptr<const FamilyConfig> parse_deepseek_v3(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.default_head_dim = kReplacedHeadDim,
                .read_mla = read_deepseek_mla,
                .read_moe = read_deepseek_v3_moe,
                .has_mtp_layers = true},
               config);
}

std::shared_ptr<const FamilyConfig> parse_mimo(ConfigFields& fields, ModelConfig& config) {
  return parse(fields,
               {.qkv_bias = Trait::kYes,
                .window = WindowRule::kFromLayerUp,
                .default_window = 4096,
                .has_mtp_layers = true},
               config);
}

std::vector<TensorSpec> list_llama_tensors(const ModelConfig& config) {
  LlamaWeights weights;
  return list_tensors(list_llama_weights(config, weights));
}

Result<std::unique_ptr<Model>> load_llama(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options) {
  return load_decoder<LlamaModel>(list_llama_weights, config, source, ops, limits, options);
}

}  // namespace quire
