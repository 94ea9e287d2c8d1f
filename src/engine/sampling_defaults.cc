#include "engine/sampling_defaults.h"

#include <fmt/format.h>

#include <variant>

#include "sample/sampling_fields.h"

namespace quire {
namespace {

SamplingParams fallback_params(SamplingFallback fallback) {
  SamplingParams params;
  if (fallback == SamplingFallback::kNone) return params;
  params.temperature = 0.8F;
  params.top_p = 0.95F;
  params.top_k = 40;
  params.min_p = 0.05F;
  return params;
}

}  // namespace

SamplingDefaults choose_sampling_defaults(const GenerationConfig& model,
                                          SamplingFallback fallback) {
  const bool is_stated = model.states_distribution();
  SamplingParams params = is_stated ? SamplingParams() : fallback_params(fallback);
  if (is_stated) {
    params.temperature = model.temperature.value_or(params.temperature);
    if (model.do_sample == false) params.temperature = 0.0F;
    params.top_p = model.top_p.value_or(params.top_p);
    params.top_k = model.top_k.value_or(params.top_k);
    params.min_p = model.min_p.value_or(params.min_p);
  }
  std::string source = is_stated ? model.source : "Quire";
  if (model.repetition_penalty) {
    params.repetition_penalty = *model.repetition_penalty;
    if (!is_stated) source += fmt::format(", repetition_penalty from {}", model.source);
  }
  return {std::move(params), std::move(source)};
}

std::vector<std::pair<std::string_view, std::string>> default_values(const SamplingParams& params) {
  std::vector<std::pair<std::string_view, std::string>> values;
  for (const SamplingField& field : sampling_fields()) {
    if (!field.has_model_default) continue;
    if (const auto* number = std::get_if<float SamplingParams::*>(&field.member)) {
      values.emplace_back(field.name, fmt::format("{}", params.*(*number)));
    } else if (const auto* count = std::get_if<int SamplingParams::*>(&field.member)) {
      values.emplace_back(field.name, fmt::format("{}", params.*(*count)));
    }
  }
  return values;
}

std::string describe(const SamplingParams& params) {
  std::string text;
  for (const auto& [name, number] : default_values(params)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number);
  }
  return text;
}

std::string describe(const SamplingDefaults& defaults) {
  return fmt::format("{}; from {}", describe(defaults.params), defaults.source);
}

}  // namespace quire
