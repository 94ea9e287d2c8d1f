#include "model/gemma/gemma.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/config_fields.h"
#include "model/decoder.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

struct GemmaConfig final : DecoderConfig {
  float logits_softcap = 0.0F;  // 0: off
};

const GemmaConfig& gemma_config(const ModelConfig& config) {
  const auto* gemma = dynamic_cast<const GemmaConfig*>(config.family.get());
  QUIRE_CHECK(gemma != nullptr, "[model] the configuration is not of the Gemma family");
  return *gemma;
}

// Defaults of both generations' configuration classes in transformers, for fields that published
// configurations omit.
struct Defaults {
  int vocab_size = 0;
  int max_position_embeddings = 0;
  double attention_softcap = 0.0;  // 0: off
  double logits_softcap = 0.0;
  int sliding_window_pattern = 0;  // every n-th layer has full attention
};

// A null field turns the cap off; an absent field means the default.
float read_softcap(ConfigFields& fields, std::string_view key, double fallback) {
  const double absent = fields.mentions(key) ? 0.0 : fallback;
  return static_cast<float>(fields.optional_number(key, 1e-3, 1e6).value_or(absent));
}

void read_activation(ConfigFields& fields) {
  const std::string activation =
      fields.optional_text("hidden_activation").value_or("gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh") {
    fields.fail("hidden_activation", quote_name(activation), "\"gelu_pytorch_tanh\"");
  }
}

// [num_layers]: whether the layer has a window.
std::vector<bool> read_sliding_layers(ConfigFields& fields, int num_layers, int default_pattern) {
  const std::vector<std::string> types = read_layer_types(fields, num_layers);
  const int pattern = fields.integer("sliding_window_pattern", 1, kMaxInt, default_pattern);
  std::vector<bool> sliding;
  for (int layer = 0; layer < num_layers; ++layer) {
    sliding.push_back(types.empty() ? (layer + 1) % pattern != 0
                                    : types[static_cast<size_t>(layer)] == "sliding_attention");
  }
  return sliding;
}

void read_windows(ConfigFields& fields, const std::vector<bool>& sliding, GemmaConfig& gemma) {
  const int window = fields.integer("sliding_window", 1, kMaxInt, 4096);
  for (const bool is_sliding : sliding) gemma.layer_windows.push_back(is_sliding ? window : 0);
}

std::shared_ptr<GemmaConfig> parse(ConfigFields& fields, const Defaults& defaults,
                                   ModelConfig& config) {
  auto gemma = std::make_shared<GemmaConfig>();
  gemma->activation = Activation::kGeluTanh;
  gemma->norms_outputs = true;
  read_activation(fields);
  read_decoder_sizes(fields,
                     {.num_heads = 8,
                      .num_kv_heads = 4,
                      .head_dim = 256,
                      .vocab_size = defaults.vocab_size,
                      .max_position_embeddings = defaults.max_position_embeddings},
                     config, *gemma);
  if (!fields.status().ok()) return nullptr;
  config.longest_model_len = longest_context({}, gemma->max_position_embeddings);
  const double scale = fields.number("query_pre_attn_scalar", 1e-3, 1e6, 256.0);
  gemma->attention_scale = static_cast<float>(1.0 / std::sqrt(scale));
  gemma->attention_softcap =
      read_softcap(fields, "attn_logit_softcapping", defaults.attention_softcap);
  gemma->logits_softcap = read_softcap(fields, "final_logit_softcapping", defaults.logits_softcap);
  gemma->tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  gemma->qkv_bias = gemma->o_bias = fields.boolean("attention_bias", false);
  return gemma;
}

// Layers with a window have their own rotation base and no scaling. transformers 4 has separate
// fields for the two kinds of layers; transformers 5 has rope_parameters per type of layer.
void read_two_ropes(ConfigFields& fields, GemmaConfig& gemma) {
  constexpr double kGlobalTheta = 1e6;
  constexpr double kLocalTheta = 1e4;
  const int positions = gemma.max_position_embeddings;
  std::optional<ConfigFields> by_type = fields.object("rope_parameters");
  if (!by_type || !has_ropes_by_layer_type(*by_type)) {
    RopeConfig local;
    local.theta = fields.number("rope_local_base_freq", kMinRopeTheta, kMaxRopeTheta, kLocalTheta);
    gemma.ropes = {read_rope(fields, positions, kGlobalTheta), local};
    return;
  }
  const auto read = [&](std::string_view type, double theta) {
    std::optional<ConfigFields> parameters = by_type->object(type);
    if (!parameters) {
      by_type->fail(type, "nothing", "an object");
      return RopeConfig();
    }
    const RopeConfig rope = read_rope_parameters(*parameters, positions, theta);
    fields.keep(parameters->status());
    return rope;
  };
  gemma.ropes = {read("full_attention", kGlobalTheta), read("sliding_attention", kLocalTheta)};
  fields.keep(by_type->status());
}

std::shared_ptr<GemmaConfig> parse_gemma3_text(ConfigFields& fields, ModelConfig& config) {
  constexpr Defaults kDefaults = {
      .vocab_size = 262208, .max_position_embeddings = 131072, .sliding_window_pattern = 6};
  std::shared_ptr<GemmaConfig> gemma = parse(fields, kDefaults, config);
  if (gemma == nullptr) return nullptr;
  if (fields.boolean("use_bidirectional_attention", false)) {
    fields.fail("use_bidirectional_attention", "true",
                "false: text generation needs causal attention");
  }
  gemma->qk_norm = true;
  const std::vector<bool> sliding =
      read_sliding_layers(fields, config.num_layers, kDefaults.sliding_window_pattern);
  read_windows(fields, sliding, *gemma);
  read_two_ropes(fields, *gemma);
  for (const bool is_sliding : sliding) gemma->layer_ropes.push_back(is_sliding ? 1 : 0);
  return gemma;
}

struct GemmaLayer : DecoderLayer {
  // [hidden]; 1 was added to each element at load.
  Tensor input_norm;
  Tensor post_attention_norm;
  Tensor pre_feedforward_norm;
  Tensor post_feedforward_norm;
};

struct GemmaWeights {
  DecoderEnds ends;
  std::vector<GemmaLayer> layers;
};

WeightList list_gemma_weights(const ModelConfig& config, GemmaWeights& weights) {
  constexpr float kAddend = 1.0F;
  WeightList list;
  list.groups.push_back(embedding_weights(config, "model.", weights.ends));
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    GemmaLayer& layer = weights.layers[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    WeightGroup group = decoder_layer_weights(config, prefix, layer, kAddend);
    const auto add_norm = [&](Tensor& norm, const char* name) {
      group.vectors.push_back(
          {&norm, fmt::format("{}{}_layernorm.weight", prefix, name), config.hidden_size, kAddend});
    };
    add_norm(layer.input_norm, "input");
    add_norm(layer.post_attention_norm, "post_attention");
    add_norm(layer.pre_feedforward_norm, "pre_feedforward");
    add_norm(layer.post_feedforward_norm, "post_feedforward");
    list.groups.push_back(std::move(group));
  }
  list.groups.push_back(head_weights(config, "model.", weights.ends, kAddend));
  if (gemma_config(config).tie_word_embeddings || config.embeds) {
    list.ignored_prefixes = {"lm_head.weight"};
  }
  return list;
}

// The square root of the width, rounded to the type of the activations as in transformers.
float embedding_scale(int hidden_size, DType activation) {
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(hidden_size)));
  switch (activation) {
    case DType::kBF16:
      return bf16_to_f32(f32_to_bf16(root));
    case DType::kF16:
      return f16_to_f32(f32_to_f16(root));
    default:
      return root;
  }
}

class GemmaModel final : public DecoderModel {
 public:
  GemmaModel(const ModelConfig& config, const ModelLimits& limits, Ops& ops, GemmaWeights weights)
      : DecoderModel(config, limits, ops, std::move(weights.ends)),
        layers_(std::move(weights.layers)),
        embed_scale_(embedding_scale(config.hidden_size, ops.activation_dtype())),
        logits_softcap_(gemma_config(config).logits_softcap) {}

  Status forward(const StepInput& input) override;
  Result<int> add_kv_scales(std::span<const KvScaleValues> by_layer) override {
    return add_kv_scales_to(layers_, by_layer);
  }

 private:
  void finish_logits(TensorView logits) override {
    if (logits_softcap_ != 0.0F) ops().soft_cap(logits_softcap_, logits);
  }

  std::vector<GemmaLayer> layers_;
  float embed_scale_ = 1.0F;
  float logits_softcap_ = 0.0F;
};

Status GemmaModel::forward(const StepInput& input) {
  const int64_t num_tokens = input.num_tokens;
  begin_step(input, embed_scale_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const GemmaLayer& layer = layers_[i];
    project_qkv(layer, i == 0 ? norm_of_residual(layer.input_norm, num_tokens)
                              : norm_of_sum(layer.input_norm, num_tokens));
    tap_residual(i, num_tokens);
    QUIRE_RETURN_IF_ERROR(attend(i, layer, input));
    project_output(layer, num_tokens);
    norm_delta(layer.post_attention_norm, num_tokens);
    mlp(layer, norm_of_sum(layer.pre_feedforward_norm, num_tokens));
    norm_delta(layer.post_feedforward_norm, num_tokens);
  }
  tap_output(num_tokens);
  return {};
}

}  // namespace

std::shared_ptr<const FamilyConfig> parse_gemma2(ConfigFields& fields, ModelConfig& config) {
  constexpr Defaults kDefaults = {.vocab_size = 256000,
                                  .max_position_embeddings = 8192,
                                  .attention_softcap = 50.0,
                                  .logits_softcap = 30.0,
                                  .sliding_window_pattern = 2};
  std::shared_ptr<GemmaConfig> gemma = parse(fields, kDefaults, config);
  if (gemma == nullptr) return nullptr;
  read_decoder_rope(fields, config, *gemma);
  read_windows(fields,
               read_sliding_layers(fields, config.num_layers, kDefaults.sliding_window_pattern),
               *gemma);
  return gemma;
}

std::shared_ptr<const FamilyConfig> parse_gemma3(ConfigFields& fields, ModelConfig& config) {
  return parse_gemma3_text(fields, config);
}

std::shared_ptr<const FamilyConfig> parse_gemma3_multimodal(ConfigFields& fields,
                                                            ModelConfig& config) {
  std::optional<ConfigFields> text = fields.object("text_config");
  if (!text) {
    fields.fail("text_config", "nothing", "an object");
    return nullptr;
  }
  if (text->has("quantization_config")) {
    text->fail("quantization_config", "an object", "none: float32, float16 or bfloat16 weights");
  }
  std::shared_ptr<GemmaConfig> gemma = parse_gemma3_text(*text, config);
  fields.keep(text->status());
  if (gemma == nullptr) return nullptr;
  // transformers ties by either level; the tensor name of an untied lm_head differs
  // between its versions.
  if (!gemma->tie_word_embeddings || !fields.boolean("tie_word_embeddings", true)) {
    fields.fail("tie_word_embeddings", "false", "true in the configuration and in its text_config");
  }
  // transformers 4 and 5 nest the text model differently.
  config.layout.renames = {{"model.language_model", "model"}, {.stored = "language_model"}};
  config.layout.ignored_prefixes = {"vision_tower.", "multi_modal_projector.",
                                    "model.vision_tower.", "model.multi_modal_projector."};
  return gemma;
}

float gemma_logits_softcap(const ModelConfig& config) {
  return gemma_config(config).logits_softcap;
}

std::vector<TensorSpec> list_gemma_tensors(const ModelConfig& config) {
  GemmaWeights weights;
  return list_tensors(list_gemma_weights(config, weights));
}

Result<std::unique_ptr<Model>> load_gemma(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options) {
  return load_decoder<GemmaModel>(list_gemma_weights, config, source, ops, limits, options);
}

}  // namespace quire
