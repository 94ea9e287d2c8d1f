#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/sampler.h"

namespace quire {
namespace {

constexpr size_t kMaxStrings = 1024;
// Upper bound of all strings together, because the engine thread searches for stop strings after
// every token.
constexpr size_t kMaxStringBytes = 4096;

Status refuse(std::string_view field, auto got, std::string_view expected) {
  return invalid_argument(fmt::format("[sampling] {}; got {}, expected {}", field, got, expected));
}

Status check_int(std::string_view field, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  if (most == std::numeric_limits<int>::max()) {
    return refuse(field, value, fmt::format("at least {}", least));
  }
  return refuse(field, value, fmt::format("{} to {}", least, most));
}

// The range includes both ends and excludes NaN.
Status check_float(std::string_view field, float value, float least, float most) {
  if (std::isfinite(value) && value >= least && value <= most) return {};
  if (most == std::numeric_limits<float>::max()) {
    return refuse(field, value, fmt::format("a number of at least {}", least));
  }
  return refuse(field, value, fmt::format("{} to {}", least, most));
}

Status check_ids(std::string_view field, const std::vector<int32_t>& ids, int vocab_size) {
  if (ids.size() > static_cast<size_t>(vocab_size)) {
    return refuse(field, ids.size(), "no more ids than the vocabulary has");
  }
  for (const int32_t id : ids) QUIRE_RETURN_IF_ERROR(check_int(field, id, 0, vocab_size - 1));
  return {};
}

Status check_strings(std::string_view field, const std::vector<std::string>& strings) {
  if (strings.size() > kMaxStrings) {
    return refuse(field, strings.size(), fmt::format("at most {} strings", kMaxStrings));
  }
  size_t num_bytes = 0;
  for (const std::string& text : strings) {
    if (text.empty()) return refuse(field, "an empty string", "none that is empty");
    num_bytes += text.size();
  }
  if (num_bytes > kMaxStringBytes) {
    return refuse(field, num_bytes, fmt::format("at most {} bytes in all", kMaxStringBytes));
  }
  return {};
}

Status check_shape(const SamplingParams& params) {
  constexpr float kAny = std::numeric_limits<float>::max();
  constexpr int kAnyInt = std::numeric_limits<int>::max();
  QUIRE_RETURN_IF_ERROR(check_int("n", params.n, 1, kMaxAnswers));
  QUIRE_RETURN_IF_ERROR(check_float("temperature", params.temperature, 0, kAny));
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return refuse("top_p", params.top_p, "more than 0 and at most 1");
  }
  QUIRE_RETURN_IF_ERROR(check_int("top_k", params.top_k, -1, kAnyInt));
  QUIRE_RETURN_IF_ERROR(check_float("min_p", params.min_p, 0, 1));
  // Outside this range a logit could overflow F32.
  QUIRE_RETURN_IF_ERROR(check_float("repetition_penalty", params.repetition_penalty,
                                    static_cast<float>(kMinRepetitionPenalty),
                                    static_cast<float>(kMaxRepetitionPenalty)));
  QUIRE_RETURN_IF_ERROR(check_float("presence_penalty", params.presence_penalty, -2, 2));
  return check_float("frequency_penalty", params.frequency_penalty, -2, 2);
}

Status check_lengths(const SamplingParams& params) {
  constexpr int kAnyInt = std::numeric_limits<int>::max();
  QUIRE_RETURN_IF_ERROR(check_int("max_tokens", params.max_tokens, 1, kAnyInt));
  QUIRE_RETURN_IF_ERROR(check_int("min_tokens", params.min_tokens, 0, params.max_tokens));
  QUIRE_RETURN_IF_ERROR(check_int("logprobs", params.logprobs.value_or(0), 0, kMaxLogprobs));
  return check_int("prompt_logprobs", params.prompt_logprobs.value_or(0), 0, kMaxLogprobs);
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
  return refuse("logit_bias", fmt::format("token id {} twice", *repeated), "each id once");
}

Status check_bias(const SamplingParams& params, int vocab_size) {
  if (params.logit_bias.size() > static_cast<size_t>(vocab_size)) {
    return refuse("logit_bias", params.logit_bias.size(), "no more ids than the vocabulary has");
  }
  for (const auto& [id, bias] : params.logit_bias) {
    QUIRE_RETURN_IF_ERROR(check_int("logit_bias token id", id, 0, vocab_size - 1));
    QUIRE_RETURN_IF_ERROR(check_float("logit_bias", bias, -100, 100));
  }
  return check_bias_ids(params.logit_bias);
}

}  // namespace

Status validate_sampling_params(const SamplingParams& params, int vocab_size, int max_model_len) {
  QUIRE_RETURN_IF_ERROR(check_shape(params));
  QUIRE_RETURN_IF_ERROR(check_lengths(params));
  if (params.min_tokens >= max_model_len) {
    return refuse("min_tokens", params.min_tokens, fmt::format("fewer than {}", max_model_len));
  }
  QUIRE_RETURN_IF_ERROR(check_bias(params, vocab_size));
  QUIRE_RETURN_IF_ERROR(check_ids("allowed_token_ids", params.allowed_token_ids, vocab_size));
  QUIRE_RETURN_IF_ERROR(check_ids("stop_token_ids", params.stop_token_ids, vocab_size));
  QUIRE_RETURN_IF_ERROR(check_strings("bad_words", params.bad_words));
  return check_strings("stop", params.stop);
}

}  // namespace quire
