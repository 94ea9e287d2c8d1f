#include "cli/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "sample/sampler.h"

namespace quire::cli {
namespace {

constexpr Range kPenalty = {.min = -2, .max = 2};
constexpr Range kBias = {.min = -100, .max = 100};
constexpr Range kAny = {};
// Lists longer than this are a mistake or an attack.
constexpr size_t kMaxListItems = 1 << 20;

using P = SamplingParams;

constexpr auto kFields = std::to_array<SamplingField>({
    {"max_tokens", &P::max_tokens, {.min = 1}, "Most tokens of an answer"},
    {"temperature", &P::temperature, {.min = 0}, "0 is greedy", true},
    {"top_p",
     &P::top_p,
     {.min = 0, .max = 1, .min_excluded = true},
     "Sample from the most likely tokens of this total probability",
     true},
    {"top_k", &P::top_k, {.min = -1}, "Sample from this many tokens; 0 or -1: all", true},
    {"min_p",
     &P::min_p,
     {.min = 0, .max = 1},
     "Least probability of a token, relative to the most likely one",
     true},
    {"seed", &P::seed, kAny,
     "Of the random choices; without it each prompt has its own, the same in every run"},
    {"stop", &P::stop, kAny, "Text that ends an answer; may be repeated"},
    {"stop_token_ids", &P::stop_token_ids, kAny, "Token ids that end an answer"},
    {"include_stop_str_in_output", &P::include_stop_str_in_output, kAny,
     "Keep the stop text in the answer"},
    {"ignore_eos", &P::ignore_eos, kAny, "Go on after the end-of-sequence token"},
    {"min_tokens", &P::min_tokens, {.min = 0}, "No end before this many tokens"},
    {"n", &P::n, {.min = 1, .max = kMaxAnswers}, "Answers to each prompt"},
    {"logprobs",
     &P::logprobs,
     {.min = 0, .max = kMaxLogprobs},
     "Log probabilities of this many tokens at each position"},
    {"prompt_logprobs",
     &P::prompt_logprobs,
     {.min = 0, .max = kMaxLogprobs},
     "The same for each token of the prompt"},
    {"repetition_penalty",
     &P::repetition_penalty,
     {.min = 0, .min_excluded = true},
     "Above 1: tokens seen in prompt or answer become less likely",
     true},
    {"presence_penalty", &P::presence_penalty, kPenalty, "On tokens that the answer has"},
    {"frequency_penalty", &P::frequency_penalty, kPenalty, "The same, for each time"},
    {"logit_bias", &P::logit_bias, kAny, "Added to logits: ID:BIAS, parted by commas"},
    {"bad_words", &P::bad_words, kAny, "Text that no answer has; may be repeated"},
    {"allowed_token_ids", &P::allowed_token_ids, kAny, "The only tokens an answer may have"},
    {"skip_special_tokens", &P::skip_special_tokens, kAny, "Keep special tokens in the text"},
});

Status expected(std::string_view what, const Range& range = {}) {
  const std::string bounds = range.text();
  return invalid_argument(fmt::format("expected {}{}{}", what, bounds.empty() ? "" : " ", bounds));
}

// Narrowed, a number must neither become infinite nor, without being it, zero.
bool fits_float(double number) {
  return std::abs(number) <= std::numeric_limits<float>::max() &&
         (number == 0) == (static_cast<float>(number) == 0.0F);
}

Result<double> read_number(simdjson::dom::element value, const Range& range, const char* what) {
  double number = 0;
  if (value.get_double().get(number) || !range.contains(number)) return expected(what, range);
  return number;
}

Result<int> read_int(simdjson::dom::element value, Range range) {
  range.min = std::max<double>(range.min, INT32_MIN);
  range.max = std::min<double>(range.max, INT32_MAX);
  int64_t number = 0;
  if (value.get_int64().get(number) || !range.contains(static_cast<double>(number))) {
    return expected("an integer", range);
  }
  return static_cast<int>(number);
}

Result<int32_t> read_id(simdjson::dom::element value) {
  return read_int(value, {.min = 0});
}

Result<std::pair<int32_t, float>> read_bias(std::string_view id_text, simdjson::dom::element bias) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t id,
                         parse_integer(id_text, {.min = 0, .max = double{INT32_MAX}}));
  QUIRE_ASSIGN_OR_RETURN(const double number,
                         read_number(bias, kBias, "for each token id a number"));
  return std::pair(static_cast<int32_t>(id), static_cast<float>(number));
}

// Reads a JSON value into a member; one overload a type.
struct JsonReader {
  simdjson::dom::element value;
  const Range& range;

  Status operator()(int& out) const {
    QUIRE_ASSIGN_OR_RETURN(out, read_int(value, range));
    return {};
  }
  Status operator()(float& out) const {
    QUIRE_ASSIGN_OR_RETURN(const double number, read_number(value, range, "a number"));
    if (!fits_float(number)) return expected("a number that 32 bits can hold");
    out = static_cast<float>(number);
    return {};
  }
  Status operator()(bool& out) const {
    if (value.get_bool().get(out)) return expected("true or false");
    return {};
  }
  Status operator()(std::optional<int>& out) const {
    if (value.is_null()) return out.reset(), Status();
    QUIRE_ASSIGN_OR_RETURN(out, read_int(value, range));
    return {};
  }
  Status operator()(std::optional<uint64_t>& out) const {
    if (value.is_null()) return out.reset(), Status();
    uint64_t number = 0;
    if (value.get_uint64().get(number)) return expected("an integer in [0, 2^64 - 1]");
    out = number;
    return {};
  }
  Status operator()(std::vector<std::string>& out) const {
    out.clear();
    std::string_view text;
    if (!value.get_string().get(text)) return out.emplace_back(text), Status();
    simdjson::dom::array items;
    if (value.get_array().get(items) || items.size() > kMaxListItems) {
      return expected("a string or a list of strings");
    }
    for (const simdjson::dom::element item : items) {
      if (item.get_string().get(text)) return expected("a string or a list of strings");
      out.emplace_back(text);
    }
    return {};
  }
  Status operator()(std::vector<int32_t>& out) const {
    out.clear();
    simdjson::dom::array items;
    if (value.get_array().get(items)) return expected("a list of token ids");
    for (const simdjson::dom::element item : items) {
      QUIRE_ASSIGN_OR_RETURN(const int32_t id, read_id(item));
      out.push_back(id);
    }
    return {};
  }
  Status operator()(std::vector<std::pair<int32_t, float>>& out) const {
    out.clear();
    simdjson::dom::object entries;
    if (value.get_object().get(entries)) return expected("an object of token id to bias");
    for (const auto& [id, bias] : entries) {
      QUIRE_ASSIGN_OR_RETURN(auto entry, read_bias(id, bias));
      out.push_back(entry);
    }
    return {};
  }
};

Result<std::vector<std::pair<int32_t, float>>> parse_biases(std::string_view text) {
  std::vector<std::pair<int32_t, float>> biases;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    const size_t colon = std::min(part.find(':'), part.size());
    const auto id = parse_integer(part.substr(0, colon), {.min = 0, .max = double{INT32_MAX}});
    const auto bias = parse_number(part.substr(std::min(colon + 1, part.size())), kBias);
    if (!id.ok() || !bias.ok()) {
      return unexpected(text,
                        "ID:BIAS pairs of biases " + kBias.text() + ", such as 15:-2.5,7:100");
    }
    biases.emplace_back(static_cast<int32_t>(*id), static_cast<float>(*bias));
    if (comma == rest.size()) return biases;
    rest.remove_prefix(comma + 1);
  }
}

// Reads a flag's text as a member's value; one overload a type. Lists of text grow with each use
// of their flag, all else is replaced.
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
  Result<bool> operator()(const bool& before) const { return !before; }
  Result<std::optional<int>> operator()(const std::optional<int>&) const {
    QUIRE_ASSIGN_OR_RETURN(const int number, (*this)(int{}));
    return std::optional(number);
  }
  Result<std::optional<uint64_t>> operator()(const std::optional<uint64_t>&) const {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t number, parse_seed(text));
    return std::optional(number);
  }
  Result<std::vector<std::string>> operator()(const std::vector<std::string>&) const {
    if (text.empty() || !is_valid_utf8(text)) return unexpected(text, "text in valid UTF-8");
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

// What --help shows; empty where nothing is asked for unless the flag is given.
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
  return field.is_of_model ? fmt::format("the model's, else {}", text) : text;
}

}  // namespace

std::span<const SamplingField> sampling_fields() {
  return kFields;
}

const SamplingField* find_sampling_field(std::string_view name) {
  const auto* found = std::find_if(kFields.begin(), kFields.end(),
                                   [&](const SamplingField& field) { return field.name == name; });
  return found == kFields.end() ? nullptr : found;
}

bool asks_for_logprobs(const SamplingParams& params) {
  return params.logprobs || params.prompt_logprobs;
}

Status set_sampling_field(const SamplingField& field, simdjson::dom::element value,
                          SamplingParams& params) {
  return std::visit(
      [&](auto member) -> Status {
        QUIRE_RETURN_IF_ERROR((JsonReader{value, field.range}(params.*member)));
        // To the sampler an empty list allows every token; whoever writes one means none.
        const bool allows_none =
            field.name == "allowed_token_ids" && params.allowed_token_ids.empty();
        return allows_none ? expected("at least one token id") : Status();
      },
      field.member);
}

void SamplingFlags::add_to(FlagSet& flags) {
  flags.begin_group("Sampling");
  for (const SamplingField& field : kFields) {
    const auto* toggle = std::get_if<bool P::*>(&field.member);
    const bool on_by_default = toggle != nullptr && SamplingParams().*(*toggle);
    const bool repeatable = std::holds_alternative<std::vector<std::string> P::*>(field.member);
    flags.add({.name = flag_name(field, on_by_default),
               .kind = toggle != nullptr ? ValueKind::kNone : ValueKind::kText,
               .value_name = value_name(field.member),
               .help = std::string(field.help),
               .default_text =
                   field.name == "max_tokens" ? std::to_string(max_tokens_) : default_text(field),
               .repeatable = repeatable,
               .set = [this, &field](std::string_view text) {
                 return std::visit(
                     [&](auto member) -> Status {
                       QUIRE_ASSIGN_OR_RETURN(
                           auto value, (TextReader{text, field.range}(SamplingParams().*member)));
                       edits_.push_back([member, value](SamplingParams& params) {
                         if constexpr (std::is_same_v<decltype(value), std::vector<std::string>>) {
                           auto& list = params.*member;
                           list.insert(list.end(), value.begin(), value.end());
                         } else {
                           params.*member = value;
                         }
                       });
                       return {};
                     },
                     field.member);
               }});
  }
}

SamplingParams SamplingFlags::over(SamplingParams defaults) const {
  defaults.max_tokens = max_tokens_;
  for (const auto& edit : edits_) edit(defaults);
  return defaults;
}

}  // namespace quire::cli
