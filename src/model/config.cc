#include "model/config.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "base/json.h"
#include "model/config_fields.h"
#include "model/families.h"
#include "tensor/quote_name.h"

namespace quire {
namespace {

constexpr JsonLimits kConfigLimits = {.max_bytes = size_t{16} << 20, .max_depth = 32};
constexpr int kMaxId = std::numeric_limits<int>::max();
constexpr size_t kMaxEosIds = 1024;

// Far above any model there is, and small enough that no product of these sizes leaves 63 bits.
// Products with limits that flags set are Saturated.
constexpr int kMaxHiddenSize = 1 << 17;
constexpr int kMaxIntermediateSize = 1 << 20;
constexpr int kMaxLayers = 1024;
constexpr int kMaxHeads = 1024;
constexpr int kMaxHeadDim = 512;
constexpr int kMaxVocabSize = 1 << 23;
constexpr int kMaxPositions = 1 << 28;

Result<simdjson::dom::object> root_object(const JsonDocument& document, std::string_view source) {
  simdjson::dom::object object;
  if (document.root().get(object)) {
    return invalid_argument(fmt::format("[config] {}: not a JSON object", source));
  }
  return object;
}

Result<const FamilyTraits*> read_family(ConfigFields& fields, std::string_view source) {
  const std::vector<std::string> architectures = fields.texts("architectures", 16);
  QUIRE_RETURN_IF_ERROR(fields.status());
  for (const std::string& architecture : architectures) {
    if (const FamilyTraits* family = find_family(architecture)) return family;
  }
  const std::string got = architectures.empty() ? "nothing" : quote_name(architectures.front());
  return unimplemented(
      fmt::format("[config] {}: unsupported architectures; got {}, expected one "
                  "of {}",
                  source, got, supported_architectures()));
}

bool resolve(Trait trait, ConfigFields& fields, std::string_view key) {
  if (trait == Trait::kFromConfig) return fields.boolean(key, false);
  return trait == Trait::kYes;
}

void read_sizes(ConfigFields& fields, const FamilyTraits& family, ModelConfig& config) {
  config.hidden_size = fields.integer("hidden_size", 1, kMaxHiddenSize);
  config.intermediate_size = fields.integer("intermediate_size", 1, kMaxIntermediateSize);
  config.num_layers = fields.integer("num_hidden_layers", 1, kMaxLayers);
  config.num_heads = fields.integer("num_attention_heads", 1, kMaxHeads);
  config.num_kv_heads = fields.integer("num_key_value_heads", 1, kMaxHeads, config.num_heads);
  config.vocab_size = fields.integer("vocab_size", 1, kMaxVocabSize);
  config.max_position_embeddings = fields.integer("max_position_embeddings", 1, kMaxPositions);
  config.rms_norm_eps = static_cast<float>(fields.number("rms_norm_eps", 0.0, 1.0, 1e-6));
  if (!fields.status().ok()) return;
  if (config.num_heads % config.num_kv_heads != 0) {
    fields.fail("num_key_value_heads", std::to_string(config.num_kv_heads),
                fmt::format("a divisor of num_attention_heads, {}", config.num_heads));
  }
  const bool derives_head_dim = !fields.has("head_dim") && family.default_head_dim == 0;
  if (derives_head_dim && config.hidden_size % config.num_heads != 0) {
    fields.fail("hidden_size", std::to_string(config.hidden_size),
                fmt::format("a multiple of num_attention_heads, {}, where there is no head_dim",
                            config.num_heads));
  }
  config.head_dim = fields.integer(
      "head_dim", 2, kMaxHeadDim,
      derives_head_dim ? config.hidden_size / config.num_heads : family.default_head_dim);
  if (config.head_dim < 2 || config.head_dim > kMaxHeadDim || config.head_dim % 2 != 0) {
    fields.fail("head_dim", std::to_string(config.head_dim),
                fmt::format("an even number from 2 to {}", kMaxHeadDim));
  }
}

std::optional<RopeType> parse_rope_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, RopeType>, 5> kTypes = {{
      {"default", RopeType::kDefault},
      {"linear", RopeType::kLinear},
      {"dynamic", RopeType::kDynamic},
      {"llama3", RopeType::kLlama3},
      {"yarn", RopeType::kYarn},
  }};
  for (const auto& [type_name, type] : kTypes) {
    if (type_name == name) return type;
  }
  return std::nullopt;
}

void read_llama3(ConfigFields& fields, RopeConfig& rope) {
  rope.low_freq_factor = fields.number("low_freq_factor", 1e-3, 1e6);
  rope.high_freq_factor = fields.number("high_freq_factor", 1e-3, 1e6);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    fields.fail("high_freq_factor", fmt::format("{}", rope.high_freq_factor),
                fmt::format("more than low_freq_factor, {}", rope.low_freq_factor));
  }
}

void read_yarn(ConfigFields& fields, RopeConfig& rope) {
  rope.beta_fast = fields.number("beta_fast", 1e-3, 1e6, rope.beta_fast);
  rope.beta_slow = fields.number("beta_slow", 1e-3, 1e6, rope.beta_slow);
  rope.truncate = fields.boolean("truncate", true);
  rope.attention_factor = fields.optional_number("attention_factor", 1e-3, 1e3);
  rope.mscale = fields.optional_number("mscale", 0.0, 1e3);
  rope.mscale_all_dim = fields.optional_number("mscale_all_dim", 0.0, 1e3);
}

void read_whole_head_rotation(ConfigFields& fields) {
  if (fields.number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0) {
    fields.fail("partial_rotary_factor", "a part of the head", "1: the whole head is rotated");
  }
}

// The part of the scaling that depends on its type.
void read_rope_scaling(ConfigFields& fields, int max_position_embeddings, RopeConfig& rope) {
  read_whole_head_rotation(fields);
  const std::string old_spelling = fields.optional_text("type").value_or("default");
  const std::string type = fields.optional_text("rope_type").value_or(old_spelling);
  const std::optional<RopeType> known = parse_rope_type(type);
  if (!known) {
    fields.fail("rope_type", quote_name(type), "default, linear, dynamic, llama3 or yarn");
    return;
  }
  rope.type = *known;
  if (rope.type == RopeType::kDefault) return;
  rope.original_max_position_embeddings =
      fields.integer("original_max_position_embeddings", 1, kMaxPositions, max_position_embeddings);
  // YaRN's factor may be left to the ratio of the two lengths.
  const double ratio =
      static_cast<double>(max_position_embeddings) / rope.original_max_position_embeddings;
  rope.factor = fields.number(
      "factor", 1.0, 1e6,
      rope.type == RopeType::kYarn && ratio >= 1.0 ? std::optional(ratio) : std::nullopt);
  if (rope.type == RopeType::kLlama3) read_llama3(fields, rope);
  if (rope.type == RopeType::kYarn) read_yarn(fields, rope);
}

// rope_theta beside rope_scaling (transformers 4), or both inside rope_parameters (5).
void read_rope(ConfigFields& fields, ModelConfig& config) {
  constexpr double kMinTheta = 1.001;  // YaRN divides by its logarithm
  constexpr double kMaxTheta = 1e15;
  RopeConfig& rope = config.rope;
  rope.theta = fields.number("rope_theta", kMinTheta, kMaxTheta, rope.theta);
  read_whole_head_rotation(fields);
  std::optional<ConfigFields> scaling = fields.object("rope_parameters");
  if (!scaling) scaling = fields.object("rope_scaling");
  if (!scaling) return;
  rope.theta = scaling->number("rope_theta", kMinTheta, kMaxTheta, rope.theta);
  read_rope_scaling(*scaling, config.max_position_embeddings, rope);
  fields.keep(scaling->status());
}

bool is_sliding(const std::vector<std::string>& layer_types, int layer, int first_sliding) {
  if (layer_types.empty()) return layer >= first_sliding;
  return layer_types[static_cast<size_t>(layer)] == "sliding_attention";
}

std::vector<std::string> read_layer_types(ConfigFields& fields, int num_layers) {
  std::vector<std::string> types = fields.texts("layer_types", kMaxLayers);
  if (!types.empty() && types.size() != static_cast<size_t>(num_layers)) {
    fields.fail("layer_types", fmt::format("{} entries", types.size()),
                fmt::format("one a layer, {}", num_layers));
    return {};
  }
  for (const std::string& type : types) {
    if (type == "full_attention" || type == "sliding_attention") continue;
    fields.fail("layer_types", quote_name(type), "full_attention or sliding_attention");
  }
  return types;
}

void read_windows(ConfigFields& fields, const FamilyTraits& family, ModelConfig& config) {
  config.layer_windows.assign(static_cast<size_t>(config.num_layers), 0);
  if (family.window == WindowRule::kNone) return;
  const int absent = fields.mentions("sliding_window") ? 0 : family.default_window;
  const int window = fields.integer("sliding_window", 1, kMaxId, absent);
  int first_sliding = 0;
  std::vector<std::string> layer_types;
  if (family.window == WindowRule::kFromLayerUp) {
    if (!fields.boolean("use_sliding_window", false)) return;
    first_sliding = fields.integer("max_window_layers", 0, kMaxId, 28);
    layer_types = read_layer_types(fields, config.num_layers);
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    if (is_sliding(layer_types, layer, first_sliding)) {
      config.layer_windows[static_cast<size_t>(layer)] = window;
    }
  }
}

void read_dtype(ConfigFields& fields, ModelConfig& config) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";
  const std::optional<std::string> name = fields.optional_text(key);
  if (!name) return;
  config.dtype = parse_dtype(*name);
  if (config.dtype != DType::kF32 && config.dtype != DType::kF16 && config.dtype != DType::kBF16) {
    fields.fail(key, quote_name(*name), "float32, float16 or bfloat16");
  }
}

void refuse_unsupported(ConfigFields& fields, std::string_view source) {
  if (fields.has("quantization_config")) {
    fields.keep(unimplemented(fmt::format(
        "[config] {}: quantization_config is not supported; expected a checkpoint in float32, "
        "float16 or bfloat16",
        source)));
  }
  const std::string activation = fields.optional_text("hidden_act").value_or("silu");
  if (activation != "silu") fields.fail("hidden_act", quote_name(activation), "\"silu\"");
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  QUIRE_ASSIGN_OR_RETURN(const FamilyTraits* const family, read_family(fields, source));
  ModelConfig config;
  config.architecture = family->architecture;
  refuse_unsupported(fields, source);
  read_sizes(fields, *family, config);
  QUIRE_RETURN_IF_ERROR(fields.status());
  read_rope(fields, config);
  read_windows(fields, *family, config);
  read_dtype(fields, config);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  config.qkv_bias = resolve(family->qkv_bias, fields, "attention_bias");
  config.o_bias = resolve(family->o_bias, fields, "attention_bias");
  config.mlp_bias = resolve(family->mlp_bias, fields, "mlp_bias");
  config.qk_norm = family->qk_norm;
  config.bos_token_id = fields.optional_integer("bos_token_id", 0, kMaxId);
  config.eos_token_ids = fields.integers("eos_token_id", 0, kMaxId, kMaxEosIds);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

int64_t num_parameters(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t q_size = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv_size = int64_t{config.num_kv_heads} * config.head_dim;
  int64_t layer = hidden * (q_size + 2 * kv_size) + q_size * hidden;
  layer += 3 * hidden * config.intermediate_size + 2 * hidden;
  if (config.qkv_bias) layer += q_size + 2 * kv_size;
  if (config.o_bias) layer += hidden;
  if (config.mlp_bias) layer += 2 * int64_t{config.intermediate_size} + hidden;
  if (config.qk_norm) layer += 2 * int64_t{config.head_dim};
  const int64_t num_embeddings = config.tie_word_embeddings ? 1 : 2;
  return config.num_layers * layer + hidden + num_embeddings * config.vocab_size * hidden;
}

Result<GenerationConfig> parse_generation_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  const auto optional_float = [&fields](std::string_view key, double min,
                                        double max) -> std::optional<float> {
    const std::optional<double> number = fields.optional_number(key, min, max);
    return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
  };
  GenerationConfig config;
  config.bos_token_id = fields.optional_integer("bos_token_id", 0, kMaxId);
  config.eos_token_ids = fields.integers("eos_token_id", 0, kMaxId, kMaxEosIds);
  config.do_sample = fields.optional_boolean("do_sample");
  config.temperature = optional_float("temperature", 0.0, 1e3);
  config.top_p = optional_float("top_p", 0.0, 1.0);
  config.top_k = fields.optional_integer("top_k", -1, kMaxId);
  config.min_p = optional_float("min_p", 0.0, 1.0);
  config.repetition_penalty = optional_float("repetition_penalty", 1e-3, 1e3);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

}  // namespace quire
