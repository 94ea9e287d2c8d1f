#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "model/gguf/gguf_config_writer.h"

namespace quire {
namespace {

constexpr std::string_view kTemperature = "attention.temperature_scale";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";

}  // namespace

std::vector<float> numbers_of(const GgufTensor& tensor) {
  const auto block_bytes = static_cast<size_t>(tensor.type->block_bytes);
  const auto block_size = static_cast<size_t>(tensor.type->block_elements);
  std::vector<float> numbers(tensor.bytes.size() / block_bytes * block_size);
  for (size_t i = 0; i * block_size < numbers.size(); ++i) {
    dequantize(*tensor.type, tensor.bytes.data() + i * block_bytes,
               numbers.data() + i * block_size);
  }
  return numbers;
}

void GgufConfigWriter::check_divisors(std::string_view tensor) {
  const GgufTensor* const divisors = gguf_.tensor(tensor);
  if (divisors == nullptr || divisors->shape == std::vector<int64_t>{rotated_dim_ / 2}) return;
  fail("rope.dimension_count", fmt::format("tensor \"{}\" of another size", tensor),
       fmt::format("one number per frequency, {}", rotated_dim_ / 2));
}

// Writes the numbers of a tensor, one per frequency, as a list.
void GgufConfigWriter::write_divisors(std::string_view field, std::string_view tensor) {
  check_divisors(tensor);
  if (!status_.ok()) return;
  json_.key(field);
  json_.begin_array();
  for (const float divisor : numbers_of(*gguf_.tensor(tensor))) {
    if (divisor > 0 && std::isfinite(divisor)) {
      json_.value(double{divisor});
    } else if (status_.ok()) {
      status_ = invalid_argument(
          fmt::format("[gguf] {}: tensor \"{}\"; got {}, expected positive finite numbers: the "
                      "file is damaged; download it again",
                      gguf_.source(), tensor, divisor));
    }
  }
  json_.end_array();
}

// llama.cpp stores the scaling of Llama 3 as a divisor per frequency in a tensor, and LongRoPE's
// divisors in two. A factor without a type is linear, also under the key of old files.
void GgufConfigWriter::write_rope() {
  constexpr std::string_view kType = "rope.scaling.type";
  constexpr std::string_view kFactor = "rope.scaling.factor";
  constexpr std::string_view kOldFactor = "rope.scale_linear";
  constexpr std::string_view kDivisors = "rope_freqs.weight";
  const std::string_view factor = find(kFactor) != nullptr ? kFactor : kOldFactor;
  const bool has_factor = find(factor) != nullptr;
  const bool has_long = row_.has_longrope && has(kLongFactors);
  const GgufValue* const type_value = find(kType);
  const std::optional<std::string_view> type = type_value != nullptr ? type_value->text()
                                               : has_factor          ? "linear"
                                                                     : "none";
  const bool takes_longrope = row_.has_longrope && type == "longrope";
  if (!type || (*type != "none" && *type != "linear" && *type != "yarn" && !takes_longrope)) {
    return fail(kType, type ? quote_name(*type) : "no text",
                row_.has_longrope ? "none, linear, yarn or longrope" : "none, linear or yarn");
  }
  if (row_.temperature && is_set(kTemperature) && *type != "yarn") {
    return fail(kType, quote_name(*type), fmt::format("yarn beside \"{}\"", kTemperature));
  }
  const std::string_view tensor = has(kDivisors) ? kDivisors : kLongFactors;
  const bool fits = *type == "none" || (takes_longrope && tensor == kLongFactors);
  if ((has(kDivisors) || has_long) && !fits) {
    return fail(kType, quote_name(*type), fmt::format("none beside tensor \"{}\"", tensor));
  }
  if (*type == "none" && !has_long && !has(kDivisors)) return;
  json_.key("rope_scaling");
  json_.begin_object();
  if (has_long || *type == "longrope") {
    write_longrope();
  } else if (has(kDivisors)) {
    json_.field("rope_type", "divisors");
    write_divisors("divisors", kDivisors);
  } else if (!has_factor) {
    fail(kFactor, "nothing", fmt::format("a factor beside the type {}", *type));
  } else {
    json_.field("rope_type", *type);
    write_field({factor, "factor"});
    if (*type == "yarn") write_yarn();
  }
  json_.end_object();
}

// The choice between the two lists depends on the context, as in transformers.
void GgufConfigWriter::write_longrope() {
  for (const std::string_view tensor : {kShortFactors, kLongFactors}) {
    if (has(tensor)) continue;
    return fail("rope.scaling.type", fmt::format("no tensor \"{}\"", tensor),
                "one beside the type longrope");
  }
  json_.field("rope_type", "longrope");
  write_divisors("short_factor", kShortFactors);
  write_divisors("long_factor", kLongFactors);
  write_field({"rope.scaling.original_context_length", "original_max_position_embeddings"});
  write_field({"rope.scaling.attn_factor", "attention_factor"});
}

void GgufConfigWriter::write_yarn() {
  write_field({"rope.scaling.original_context_length", "original_max_position_embeddings"});
  write_field({"rope.scaling.yarn_beta_fast", "beta_fast"});
  write_field({"rope.scaling.yarn_beta_slow", "beta_slow"});
  if (row_.has_exact_yarn) json_.field("truncate", false);
  write_yarn_factor();
  write_temperature();
}

void GgufConfigWriter::write_yarn_factor() {
  constexpr std::string_view kMultiplier = "rope.scaling.yarn_log_multiplier";
  constexpr std::string_view kFactor = "rope.scaling.yarn_attn_factor";
  const auto write_mscale = [&](double scale, std::optional<double> mscale) {
    const double all_dim = scale * number(kMultiplier, 0.0);
    if (all_dim == 0.0) return;
    json_.field("mscale", mscale.value_or(all_dim));
    json_.field("mscale_all_dim", all_dim);
  };
  switch (row_.yarn_factor) {
    case GgufYarnFactor::kDerived:
      break;
    case GgufYarnFactor::kAllDim:
      return write_mscale(1.0, 1.0);
    case GgufYarnFactor::kTenthOfAllDim:
      return write_mscale(10.0, std::nullopt);
    case GgufYarnFactor::kStated:
      return write_field({kFactor, "attention_factor"});
    case GgufYarnFactor::kStatedOrDerived:
      if (number(kFactor, 1.0) != 1.0) write_field({kFactor, "attention_factor"});
      break;
  }
}

// In llama.cpp, the period of the positions' scale is the context's length before YaRN.
void GgufConfigWriter::write_temperature() {
  constexpr std::string_view kLength = "attention.temperature_length";
  constexpr std::string_view kOriginal = "rope.scaling.original_context_length";
  if (!row_.temperature) return;
  const bool is_stated = is_set(kTemperature);
  if (!is_stated && *row_.temperature == 0.0) return;
  json_.field("llama_4_scaling_beta", is_stated ? number(kTemperature, 0.0) : *row_.temperature);
  const int64_t original =
      integer(find(kOriginal) != nullptr ? kOriginal : "context_length", 0, kAnyInteger, 0);
  const int64_t length = integer(kLength, 0, kAnyInteger, original);
  if (length == original) return;
  fail(kLength, std::to_string(length),
       fmt::format("the context's length before scaling, {}", original));
}

}  // namespace quire
