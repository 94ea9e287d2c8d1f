#include "model/config.h"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "model/config_fields.h"
#include "model/families.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr JsonLimits kConfigLimits = {.max_bytes = size_t{16} << 20, .max_depth = 32};
constexpr int kMaxId = std::numeric_limits<int>::max();
constexpr size_t kMaxEosIds = 1024;

Result<simdjson::dom::object> root_object(const JsonDocument& document, std::string_view source) {
  simdjson::dom::object object;
  if (document.root().get(object)) {
    return invalid_argument(fmt::format("[config] {}: not a JSON object", source));
  }
  return object;
}

// The family of an architecture's layers without lm_head, as sentence-transformers saves embedding
// models: "Qwen3Model" for Qwen3ForCausalLM. Null: there is none.
const ModelFamily* find_headless_family(std::string_view architecture) {
  constexpr std::string_view kSuffix = "Model";
  if (!architecture.ends_with(kSuffix)) return nullptr;
  architecture.remove_suffix(kSuffix.size());
  return find_family(std::string(architecture) + "ForCausalLM");
}

Result<const ModelFamily*> read_family(ConfigFields& fields, std::string_view source,
                                       ModelConfig& config) {
  const std::vector<std::string> architectures = fields.texts("architectures", 16);
  QUIRE_RETURN_IF_ERROR(fields.status());
  for (const std::string& architecture : architectures) {
    if (const ModelFamily* family = find_family(architecture)) return family;
    if (const ModelFamily* family = find_headless_family(architecture)) {
      config.is_headless = true;
      return family;
    }
  }
  const std::string got = architectures.empty() ? "nothing" : quote_name(architectures.front());
  return unimplemented(
      fmt::format("[config] {}: unsupported architectures; got {}, expected one "
                  "of {}",
                  source, got, supported_architectures()));
}

void read_dtype(ConfigFields& fields, ModelConfig& config) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";
  const std::optional<std::string> name = fields.optional_text(key);
  if (!name) return;
  config.dtype = parse_dtype(*name);
  if (!config.dtype || !is_weight_dtype(*config.dtype)) {
    fields.fail(key, quote_name(*name), "float32, float16 or bfloat16");
  }
}

// The first of several fields, which tools spell differently, that is an integer.
std::optional<int> first_integer(ConfigFields& fields,
                                 std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto value = fields.optional_integer(key, 1, kMaxId)) return value;
  }
  return std::nullopt;
}

// The scheme of a quantized checkpoint, such as "gptq, 4 bits, groups of 128".
std::string describe_quantization(ConfigFields& scheme) {
  std::string text = quote_name(scheme.optional_text("quant_method").value_or("unknown method"));
  if (const auto format = scheme.optional_text("format")) text += ", " + quote_name(*format);
  if (const auto bits = first_integer(scheme, {"bits", "w_bit"})) {
    text += fmt::format(", {} bits", *bits);
  }
  if (const auto size = first_integer(scheme, {"group_size", "q_group_size"})) {
    text += fmt::format(", groups of {}", *size);
  }
  if (scheme.optional_boolean("load_in_4bit").value_or(false)) text += ", 4 bits";
  if (scheme.optional_boolean("load_in_8bit").value_or(false)) text += ", 8 bits";
  return text;
}

void refuse_quantized(ConfigFields& fields, std::string_view source) {
  std::optional<ConfigFields> scheme = fields.object("quantization_config");
  if (!scheme) return;
  // Errors inside the object do not matter: the checkpoint is refused in any case.
  fields.keep(unimplemented(fmt::format(
      "[config] {}: the checkpoint is quantized ({}), and quantization_config is not supported; "
      "expected the checkpoint in float32, float16 or bfloat16 that it was made from",
      source, describe_quantization(*scheme))));
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  ModelConfig config;
  QUIRE_ASSIGN_OR_RETURN(const ModelFamily* const family, read_family(fields, source, config));
  config.architecture = family->architecture;
  refuse_quantized(fields, source);
  config.family = family->parse(fields, config);
  read_dtype(fields, config);
  config.bos_token_id = fields.optional_integer("bos_token_id", 0, kMaxId);
  config.eos_token_ids = fields.integers("eos_token_id", 0, kMaxId, kMaxEosIds);
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
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
