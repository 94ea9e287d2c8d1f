#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

Result<const ModelFamily*> read_family(ConfigFields& fields, std::string_view source) {
  const std::vector<std::string> architectures = fields.texts("architectures", 16);
  QUIRE_RETURN_IF_ERROR(fields.status());
  for (const std::string& architecture : architectures) {
    if (const ModelFamily* family = find_family(architecture)) return family;
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
  if (config.dtype != DType::kF32 && config.dtype != DType::kF16 && config.dtype != DType::kBF16) {
    fields.fail(key, quote_name(*name), "float32, float16 or bfloat16");
  }
}

void refuse_quantized(ConfigFields& fields, std::string_view source) {
  if (fields.has("quantization_config")) {
    fields.keep(unimplemented(fmt::format(
        "[config] {}: quantization_config is not supported; expected a checkpoint in float32, "
        "float16 or bfloat16",
        source)));
  }
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, kConfigLimits));
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::object object, root_object(document, source));
  ConfigFields fields(object, source);
  QUIRE_ASSIGN_OR_RETURN(const ModelFamily* const family, read_family(fields, source));
  ModelConfig config;
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

namespace {

// The value of a field, shortened for an error.
std::string shown(simdjson::dom::element value) {
  return quote_name(simdjson::minify(value));
}

}  // namespace

ConfigFields::ConfigFields(simdjson::dom::object object, std::string_view source, std::string path)
    : object_(object), source_(source), path_(std::move(path)) {
  if (const auto key = find_repeated_key(object_)) fail(quote_name(*key), "it twice", "one value");
}

std::optional<simdjson::dom::element> ConfigFields::find(std::string_view key) const {
  simdjson::dom::element value;
  if (object_[key].get(value) || value.is_null()) return std::nullopt;
  return value;
}

bool ConfigFields::mentions(std::string_view key) const {
  return object_[key].error() == simdjson::SUCCESS;
}

bool ConfigFields::has(std::string_view key) const {
  return find(key).has_value();
}

void ConfigFields::keep(const Status& status) {
  if (status_.ok()) status_ = status;
}

void ConfigFields::fail(std::string_view key, std::string_view got, std::string_view expected) {
  keep(invalid_argument(
      fmt::format("[config] {}: {}{}; got {}, expected {}", source_, path_, key, got, expected)));
}

std::optional<int> ConfigFields::read_integer(std::string_view key, simdjson::dom::element value,
                                              int min, int max) {
  double number = 0;  // Python writes 8192.0 for a computed number
  if (!value.get(number) && number >= min && number <= max && number == std::floor(number)) {
    return static_cast<int>(number);
  }
  fail(key, shown(value), fmt::format("a whole number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<int> ConfigFields::optional_integer(std::string_view key, int min, int max) {
  const auto value = find(key);
  return value ? read_integer(key, *value, min, max) : std::nullopt;
}

int ConfigFields::integer(std::string_view key, int min, int max, std::optional<int> fallback) {
  if (!has(key) && !fallback) {
    fail(key, "nothing", fmt::format("a whole number from {} to {}", min, max));
  }
  return optional_integer(key, min, max).value_or(fallback.value_or(min));
}

std::optional<double> ConfigFields::optional_number(std::string_view key, double min, double max) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (!value->get(number) && number >= min && number <= max) return number;
  fail(key, shown(*value), fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

double ConfigFields::number(std::string_view key, double min, double max,
                            std::optional<double> fallback) {
  if (!has(key) && !fallback) fail(key, "nothing", fmt::format("a number from {} to {}", min, max));
  return optional_number(key, min, max).value_or(fallback.value_or(min));
}

std::optional<bool> ConfigFields::optional_boolean(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  bool flag = false;
  if (!value->get(flag)) return flag;
  fail(key, shown(*value), "true or false");
  return std::nullopt;
}

bool ConfigFields::boolean(std::string_view key, bool fallback) {
  return optional_boolean(key).value_or(fallback);
}

std::optional<std::string> ConfigFields::optional_text(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  std::string_view text;
  if (!value->get(text)) return std::string(text);
  fail(key, shown(*value), "a string");
  return std::nullopt;
}

std::vector<int> ConfigFields::integers(std::string_view key, int min, int max, size_t max_count) {
  const auto value = find(key);
  std::vector<int> numbers;
  if (!value) return numbers;
  simdjson::dom::array array;
  if (value->get(array)) {
    numbers.push_back(read_integer(key, *value, min, max).value_or(min));
    return numbers;
  }
  for (const simdjson::dom::element item : array) {
    if (numbers.size() == max_count) {
      fail(key, "a longer list", fmt::format("at most {} numbers", max_count));
      break;
    }
    numbers.push_back(read_integer(key, item, min, max).value_or(min));
  }
  return numbers;
}

std::vector<std::string> ConfigFields::texts(std::string_view key, size_t max_count) {
  const auto value = find(key);
  std::vector<std::string> items;
  if (!value) return items;
  simdjson::dom::array array;
  if (value->get(array)) {
    fail(key, shown(*value), "a list of strings");
    return items;
  }
  for (const simdjson::dom::element item : array) {
    std::string_view text;
    if (item.get(text) || items.size() == max_count) {
      fail(key, shown(item), fmt::format("at most {} strings", max_count));
      break;
    }
    items.emplace_back(text);
  }
  return items;
}

std::optional<ConfigFields> ConfigFields::object(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  simdjson::dom::object nested;
  if (!value->get(nested)) return ConfigFields(nested, source_, fmt::format("{}{}.", path_, key));
  fail(key, shown(*value), "an object");
  return std::nullopt;
}

}  // namespace quire
