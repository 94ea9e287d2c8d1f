#include "sample/sampling_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/ascii.h"

namespace quire {
namespace {

constexpr Range kPenalty = {.min = -2, .max = 2};
constexpr Range kAny = {};
// The maximum number of strings that are copied before validate_sampling_params() checks them.
constexpr size_t kMaxListItems = 1 << 20;

using P = SamplingParams;

constexpr auto kFields = std::to_array<SamplingField>({
    {"max_tokens", &P::max_tokens, {.min = 1}, "Maximum number of tokens to generate"},
    {"temperature", &P::temperature, {.min = 0}, "Sampling temperature; 0 is greedy", true},
    {"top_p",
     &P::top_p,
     {.min = 0, .max = 1, .min_excluded = true},
     "Sample from the most likely tokens of this total probability",
     true},
    {"top_k", &P::top_k, {.min = -1}, "Sample from this many tokens; 0 or -1: all", true},
    {"min_p",
     &P::min_p,
     {.min = 0, .max = 1},
     "Minimum probability of a token, relative to the most likely one",
     true},
    {"seed", &P::seed, kAny,
     "Seed of the random choices; without it each prompt has its own, the same in every run"},
    {"stop", &P::stop, kAny, "Text that ends the output; may be repeated"},
    {"stop_token_ids", &P::stop_token_ids, kAny, "Token ids that end the output"},
    {"include_stop_str_in_output", &P::include_stop_str_in_output, kAny,
     "Keep the stop text in the output"},
    {"ignore_eos", &P::ignore_eos, kAny, "Continue after the end-of-sequence token"},
    {"min_tokens", &P::min_tokens, {.min = 0}, "Minimum number of tokens to generate"},
    {"n", &P::n, {.min = 1, .max = kMaxSequencesPerPrompt}, "Number of sequences per prompt"},
    {"logprobs",
     &P::logprobs,
     {.min = 0, .max = kMaxLogprobs},
     "Log probabilities of this many tokens at each position"},
    {"prompt_logprobs",
     &P::prompt_logprobs,
     {.min = 0, .max = kMaxLogprobs},
     "Log probabilities of this many tokens at each token of the prompt"},
    {"repetition_penalty",
     &P::repetition_penalty,
     {.min = kMinRepetitionPenalty, .max = kMaxRepetitionPenalty},
     "Above 1: tokens of the prompt and the output become less likely",
     true},
    {"presence_penalty", &P::presence_penalty, kPenalty,
     "Penalty of each token that the output contains"},
    {"frequency_penalty", &P::frequency_penalty, kPenalty,
     "Penalty of a token per occurrence in the output"},
    {"logit_bias", &P::logit_bias, kAny, "Added to the logits: ID:BIAS pairs, separated by commas"},
    {"bad_words", &P::bad_words, kAny,
     "Text whose tokens are never generated in a row; may be repeated"},
    {"allowed_token_ids", &P::allowed_token_ids, kAny, "The only tokens that may be generated"},
    {"skip_special_tokens", &P::skip_special_tokens, kAny, "Keep special tokens in the text"},
});

Status expected(std::string_view what, const Range& range = {}) {
  const std::string bounds = range.text();
  return invalid_argument(fmt::format("expected {}{}{}", what, bounds.empty() ? "" : " ", bounds));
}

Result<double> read_number(simdjson::dom::element value, const Range& range,
                           std::string_view what) {
  double number = 0;
  if (value.get_double().get(number) || !range.contains(number)) return expected(what, range);
  return number;
}

Result<int> read_int(simdjson::dom::element value, Range range) {
  range.min = std::max<double>(range.min, INT32_MIN);
  range.max = std::min<double>(range.max, INT32_MAX);
  double number = 0;  // exact for all 32-bit integers
  if (value.get_double().get(number) || !range.contains(number) || number != std::trunc(number)) {
    return expected("an integer", range);
  }
  return static_cast<int>(number);
}

// A nonzero number that would be rounded to zero as F32 stays nonzero.
Result<float> read_float(simdjson::dom::element value, const Range& range, std::string_view what) {
  QUIRE_ASSIGN_OR_RETURN(const double number, read_number(value, range, what));
  if (std::abs(number) > std::numeric_limits<float>::max()) {
    return expected("a number that 32 bits can hold");
  }
  const auto narrow = static_cast<float>(number);
  if (narrow != 0 || number == 0) return narrow;
  return std::copysign(std::numeric_limits<float>::min(), narrow);
}

Result<int32_t> read_id(simdjson::dom::element value) {
  return read_int(value, {.min = 0});
}

Result<std::pair<int32_t, float>> read_bias(std::string_view id_text, simdjson::dom::element bias) {
  const int32_t id = parse_whole<int32_t>(id_text).value_or(-1);
  if (id < 0) {
    return expected("token ids as the keys, integers of at least 0");
  }
  const std::string what = fmt::format("for token id {} a number", id);
  QUIRE_ASSIGN_OR_RETURN(const float number, read_float(bias, kBiasRange, what));
  return std::pair(id, number);
}

// Reads a JSON value into a member, with one overload per type.
struct JsonReader {
  simdjson::dom::element value;
  const Range& range;

  Status operator()(int& out) const {
    QUIRE_ASSIGN_OR_RETURN(out, read_int(value, range));
    return {};
  }
  Status operator()(float& out) const {
    QUIRE_ASSIGN_OR_RETURN(out, read_float(value, range, "a number"));
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

}  // namespace

std::span<const SamplingField> sampling_fields() {
  return kFields;
}

const SamplingField* find_sampling_field(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &SamplingField::name);
  return found == kFields.end() ? nullptr : found;
}

Status set_sampling_field(const SamplingField& field, simdjson::dom::element value,
                          SamplingParams& params) {
  return std::visit(
      [&](auto member) -> Status {
        QUIRE_RETURN_IF_ERROR((JsonReader{value, field.range}(params.*member)));
        // An empty list allows every token in the sampler, but a user means no token by it.
        const bool allows_none =
            field.name == "allowed_token_ids" && params.allowed_token_ids.empty();
        return allows_none ? expected("at least one token id") : Status();
      },
      field.member);
}

namespace {

constexpr size_t kMaxStrings = 1024;
// The maximum size of all strings together, because the engine thread searches for stop strings
// after every token.
constexpr size_t kMaxStringBytes = 4096;

Status refuse(auto got, std::string_view expected) {
  return invalid_argument(fmt::format("got {}, expected {}", got, expected));
}

// Also refuses NaN and infinity. `noun` precedes the value in errors: "" or "token id ".
Status check_range(auto value, const Range& range, std::string_view noun = "") {
  if (std::isfinite(static_cast<double>(value)) && range.contains(value)) return {};
  const std::string got = fmt::format("{}{}", noun, value);
  if (std::isinf(range.max)) {
    const bool is_integer = std::is_same_v<decltype(value), int>;
    return refuse(got, fmt::format("{}at least {}", is_integer ? "" : "a number of ", range.min));
  }
  return refuse(got, range.min_excluded
                         ? fmt::format("more than {} and at most {}", range.min, range.max)
                         : fmt::format("{} to {}", range.min, range.max));
}

// The biases of one token would add up, and their sum could leave the range. In JSON, "5" and "05"
// are different keys of the same token.
Status check_bias_ids(const std::vector<std::pair<int32_t, float>>& biases) {
  std::vector<int32_t> ids;
  ids.reserve(biases.size());
  for (const auto& [id, bias] : biases) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  const auto repeated = std::adjacent_find(ids.begin(), ids.end());
  if (repeated == ids.end()) return {};
  return refuse(fmt::format("token id {} twice", *repeated), "each id once");
}

// Checks a member: a number against its field's range, a list against the limits of its type.
struct MemberCheck {
  const Range& range;
  int vocab_size;

  Status operator()(int value) const { return check_range(value, range); }
  Status operator()(float value) const { return check_range(value, range); }
  Status operator()(const std::optional<int>& value) const {
    return value ? (*this)(*value) : Status();
  }
  Status operator()(const std::vector<std::string>& strings) const {
    if (strings.size() > kMaxStrings) {
      return refuse(strings.size(), fmt::format("at most {} strings", kMaxStrings));
    }
    size_t num_bytes = 0;
    for (const std::string& text : strings) {
      if (text.empty()) return refuse("an empty string", "only strings that are not empty");
      num_bytes += text.size();
    }
    if (num_bytes <= kMaxStringBytes) return {};
    return refuse(num_bytes, fmt::format("at most {} bytes in all", kMaxStringBytes));
  }
  Status operator()(const std::vector<int32_t>& ids) const {
    QUIRE_RETURN_IF_ERROR(check_count(ids.size()));
    for (const int32_t id : ids) QUIRE_RETURN_IF_ERROR(check_range(id, id_range()));
    return {};
  }
  Status operator()(const std::vector<std::pair<int32_t, float>>& biases) const {
    QUIRE_RETURN_IF_ERROR(check_count(biases.size()));
    for (const auto& [id, bias] : biases) {
      QUIRE_RETURN_IF_ERROR(check_range(id, id_range(), "token id "));
      QUIRE_RETURN_IF_ERROR(check_range(bias, kBiasRange));
    }
    return check_bias_ids(biases);
  }
  Status operator()(const auto& /*other*/) const { return {}; }

 private:
  Range id_range() const { return {.min = 0, .max = static_cast<double>(vocab_size - 1)}; }
  Status check_count(size_t num_ids) const {
    if (num_ids <= static_cast<size_t>(vocab_size)) return {};
    return refuse(num_ids, "no more ids than the vocabulary has");
  }
};

Status with_name(std::string_view field, const Status& status) {
  return invalid_argument(fmt::format("[sampling] {}; {}", field, status.message()));
}

}  // namespace

Status check_sampling_field(const SamplingField& field, const SamplingParams& params,
                            int vocab_size) {
  return std::visit(
      [&](auto member) {
        return MemberCheck{field.range, vocab_size}(params.*member);
      },
      field.member);
}

Status validate_sampling_params(const SamplingParams& params, int vocab_size, int max_model_len) {
  for (const SamplingField& field : kFields) {
    const Status status = check_sampling_field(field, params, vocab_size);
    if (!status.ok()) return with_name(field.name, status);
  }
  const int num_min = params.min_tokens;
  if (num_min > params.max_tokens) {
    return with_name("min_tokens", refuse(num_min, fmt::format("0 to {}", params.max_tokens)));
  }
  if (num_min >= max_model_len) {
    return with_name("min_tokens", refuse(num_min, fmt::format("fewer than {}", max_model_len)));
  }
  return {};
}

}  // namespace quire
