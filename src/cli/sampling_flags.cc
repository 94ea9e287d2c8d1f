#include "cli/sampling_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "engine/sampling_defaults.h"

namespace quire::cli {
namespace {

using P = SamplingParams;

template <typename T>
constexpr bool kIsList = false;
template <typename T>
constexpr bool kIsList<std::vector<T>> = true;

// Returns whether the number is finite as a float, and becomes 0 only if it is 0.
bool fits_float(double number) {
  return std::abs(number) <= std::numeric_limits<float>::max() &&
         (number == 0) == (static_cast<float>(number) == 0.0F);
}

Result<std::vector<std::pair<int32_t, float>>> parse_biases(std::string_view text) {
  std::vector<std::pair<int32_t, float>> biases;
  for (const std::string_view part : split_list(text)) {
    const size_t colon = std::min(part.find(':'), part.size());
    const auto id = parse_integer(part.substr(0, colon), {.min = 0, .max = double{INT32_MAX}});
    const auto bias = parse_number(part.substr(std::min(colon + 1, part.size())), kBiasRange);
    if (!id.ok() || !bias.ok()) {
      return unexpected(text,
                        "ID:BIAS pairs of biases " + kBiasRange.text() + ", such as 15:-2.5,7:100");
    }
    biases.emplace_back(static_cast<int32_t>(*id), static_cast<float>(*bias));
  }
  return biases;
}

// Parses the text of a flag into the value of a member, with one overload per type. The argument is
// the member's default.
struct TextReader {
  std::string_view text;
  const Range& range;

  Result<int> operator()(const int&) const {
    Range narrow = range;
    narrow.min = std::max<double>(range.min, INT32_MIN);
    narrow.max = std::min<double>(range.max, INT32_MAX);
    QUIRE_ASSIGN_OR_RETURN(const int64_t number, parse_integer(text, narrow));
    return static_cast<int>(number);
  }
  Result<float> operator()(const float&) const {
    QUIRE_ASSIGN_OR_RETURN(const double number, parse_number(text, range));
    if (!fits_float(number)) return unexpected(text, "a number that 32 bits can hold");
    return static_cast<float>(number);
  }
  Result<bool> operator()(const bool& before) const { return (text == "false") == before; }
  Result<std::optional<int>> operator()(const std::optional<int>&) const {
    QUIRE_ASSIGN_OR_RETURN(const int number, (*this)(int{}));
    return std::optional(number);
  }
  Result<std::optional<uint64_t>> operator()(const std::optional<uint64_t>&) const {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t number, parse_seed(text));
    return std::optional(number);
  }
  Result<std::vector<std::string>> operator()(const std::vector<std::string>&) const {
    if (text.empty()) return unexpected(text, "a text that is not empty");
    if (!is_valid_utf8(text)) return unexpected(text, "valid UTF-8");
    return std::vector<std::string>{std::string(text)};
  }
  Result<std::vector<int32_t>> operator()(const std::vector<int32_t>&) const {
    return parse_ids(text);
  }
  Result<std::vector<std::pair<int32_t, float>>> operator()(
      const std::vector<std::pair<int32_t, float>>&) const {
    return parse_biases(text);
  }
};

// Writes a value in the form of a request's field in vLLM's API.
struct ValueWriter {
  JsonWriter& json;

  void operator()(int value) const { json.value(value); }
  void operator()(float value) const { json.raw(fmt::format("{}", value)); }
  void operator()(bool value) const { json.value(value); }
  template <typename T>
  void operator()(const std::optional<T>& value) const {
    value ? json.raw(fmt::format("{}", *value)) : json.null();
  }
  void operator()(const std::vector<std::string>& texts) const {
    json.begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
  }
  void operator()(const std::vector<int32_t>& ids) const { json.ids(ids); }
  void operator()(const std::vector<std::pair<int32_t, float>>& biases) const {
    json.begin_object();
    for (const auto& [id, bias] : biases) {
      json.key(std::string_view(std::to_string(id)));
      json.raw(fmt::format("{}", bias));
    }
    json.end_object();
  }
};

std::string flag_name(const SamplingField& field, bool negated) {
  std::string name = fmt::format("--{}{}", negated ? "no-" : "", field.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const char* value_name(const SamplingField::Member& member) {
  struct Name {
    const char* operator()(int P::*) const { return "N"; }
    const char* operator()(float P::*) const { return "X"; }
    const char* operator()(bool P::*) const { return ""; }
    const char* operator()(std::optional<int> P::*) const { return "N"; }
    const char* operator()(std::optional<uint64_t> P::*) const { return "N"; }
    const char* operator()(std::vector<std::string> P::*) const { return "TEXT"; }
    const char* operator()(std::vector<int32_t> P::*) const { return "IDS"; }
    const char* operator()(std::vector<std::pair<int32_t, float>> P::*) const { return "PAIRS"; }
  };
  return std::visit(Name(), member);
}

// Returns the default that --help shows; empty if the field is unset by default.
std::string default_text(const SamplingField& field) {
  const std::string text = std::visit(
      [](auto member) -> std::string {
        const auto value = SamplingParams().*member;
        using Value = std::remove_const_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, float>) {
          return fmt::format("{}", value);
        }
        return "";
      },
      field.member);
  if (!field.has_model_default) return text;
  const bool has_fallbacks = field.name != "repetition_penalty";
  return has_fallbacks ? "see --generation-config" : fmt::format("the model's, else {}", text);
}

}  // namespace

std::string json_of(const SamplingField& field, const SamplingParams& params) {
  JsonWriter json;
  std::visit([&](auto member) { ValueWriter{json}(params.*member); }, field.member);
  return json.take();
}

bool asks_for_logprobs(const SamplingParams& params) {
  return params.logprobs || params.prompt_logprobs;
}

void SamplingFlags::add_to(FlagSet& flags) {
  flags.begin_group("Sampling");
  for (const SamplingField& field : sampling_fields()) {
    const auto* toggle = std::get_if<bool P::*>(&field.member);
    const bool on_by_default = toggle != nullptr && SamplingParams().*(*toggle);
    const bool repeatable = std::visit([]<typename T>(T P::*) { return kIsList<T>; }, field.member);
    flags.add({.name = flag_name(field, on_by_default),
               .kind = toggle != nullptr ? ValueKind::kNone : ValueKind::kText,
               .value_name = value_name(field.member),
               .help = std::string(field.help),
               .default_text = field.name == "max_tokens" ? max_tokens_ : default_text(field),
               .repeatable = repeatable,
               .set = [this, &field](std::string_view text) { return set(field, text); }});
  }
}

Status SamplingFlags::set(const SamplingField& field, std::string_view text,
                          std::string_view source) {
  return std::visit(
      [&](auto member) -> Status {
        QUIRE_ASSIGN_OR_RETURN(auto value,
                               (TextReader{text, field.range}(SamplingParams().*member)));
        edits_.push_back({&field, source, [member, value](SamplingParams& params) {
                            if constexpr (kIsList<std::remove_cvref_t<decltype(value)>>) {
                              auto& list = params.*member;
                              list.insert(list.end(), value.begin(), value.end());
                            } else {
                              params.*member = value;
                            }
                          }});
        return {};
      },
      field.member);
}

void SamplingFlags::unset(const SamplingField& field) {
  std::erase_if(edits_, [&](const Edit& edit) { return edit.field == &field; });
}

bool SamplingFlags::gives(const SamplingField& field) const {
  return std::ranges::find(edits_, &field, &Edit::field) != edits_.end();
}

void SamplingFlags::write_given(JsonWriter& json) const {
  const SamplingParams params = applied_to(SamplingParams());
  for (const SamplingField& field : sampling_fields()) {
    if (!gives(field)) continue;
    json.key(field.name);
    std::visit([&](auto member) { ValueWriter{json}(params.*member); }, field.member);
  }
}

SamplingParams SamplingFlags::applied_to(SamplingParams defaults) const {
  for (const Edit& edit : edits_) edit.apply(defaults);
  return defaults;
}

SamplingDefaults SamplingFlags::applied_to(SamplingDefaults defaults) const {
  std::string_view last_source;
  for (const Edit& edit : edits_) {
    const std::string before = describe(defaults.params);
    edit.apply(defaults.params);
    if (describe(defaults.params) == before || edit.source == last_source) continue;
    defaults.source += fmt::format(" and {}", edit.source);
    last_source = edit.source;
  }
  return defaults;
}

}  // namespace quire::cli
