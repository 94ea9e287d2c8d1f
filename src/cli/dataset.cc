#include "cli/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quire::cli {
namespace {

int uniform_between(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(uniform_below(random, static_cast<uint64_t>(high - low) + 1));
}

struct LengthRange {
  int low;
  int high;
};

LengthRange length_range(int length, double ratio) {
  const double low = std::floor(length * (1.0 - ratio));
  const double high = std::ceil(length * (1.0 + ratio));
  return {std::max(1, static_cast<int>(low)),
          std::max(1, static_cast<int>(std::min(high, double{INT32_MAX})))};
}

bool string_value(simdjson::dom::element turn, std::string& out) {
  std::string_view text;
  if (turn["value"].get_string().get(text)) return false;
  out = text;
  return true;
}

}  // namespace

uint64_t uniform_below(std::mt19937_64& random, uint64_t bound) {
  // Rejects values at or above the last multiple of `bound`, which would favour small remainders.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = random();
  while (value >= limit) value = random();
  return value % bound;
}

int RandomDataset::max_prompt_len() const {
  return length_range(input_len, range_ratio).high;
}

int RandomDataset::max_output_len() const {
  return length_range(output_len, range_ratio).high;
}

std::vector<BenchRequest> RandomDataset::sample() const {
  std::mt19937_64 random(seed);
  const LengthRange inputs = length_range(input_len, range_ratio);
  const LengthRange outputs = length_range(output_len, range_ratio);
  std::vector<BenchRequest> requests(static_cast<size_t>(num_prompts));
  for (BenchRequest& request : requests) {
    const int length = uniform_between(random, inputs.low, inputs.high);
    request.output_len = uniform_between(random, outputs.low, outputs.high);
    const uint64_t first = uniform_below(random, static_cast<uint64_t>(vocab_size));
    request.prompt_token_ids.resize(static_cast<size_t>(length));
    for (size_t i = 0; i < request.prompt_token_ids.size(); ++i) {
      request.prompt_token_ids[i] =
          static_cast<int32_t>((first + i) % static_cast<uint64_t>(vocab_size));
    }
  }
  return requests;
}

Result<std::vector<Dialogue>> parse_sharegpt(const JsonDocument& document,
                                             std::string_view source) {
  const auto wrong = [&](size_t idx, const char* what) {
    return invalid_argument(fmt::format("[dataset] {}: entry {}: {}", source, idx, what));
  };
  simdjson::dom::array entries;
  if (document.root().get_array().get(entries)) {
    return invalid_argument(fmt::format(
        "[dataset] {}: expected a JSON list of dialogues, as ShareGPT's files have", source));
  }
  std::vector<Dialogue> dialogues;
  size_t idx = 0;
  for (const simdjson::dom::element entry : entries) {
    simdjson::dom::array turns;
    if (!entry.is_object()) return wrong(idx, "expected an object");
    if (entry["conversations"].get_array().get(turns) || turns.size() < 2) {
      ++idx;
      continue;
    }
    Dialogue dialogue;
    if (!string_value(turns.at(0), dialogue.prompt) ||
        !string_value(turns.at(1), dialogue.completion)) {
      return wrong(idx, "field 'conversations': expected objects with a string 'value'");
    }
    dialogues.push_back(std::move(dialogue));
    ++idx;
  }
  return dialogues;
}

Result<std::vector<BenchRequest>> ShareGptDataset::sample(std::vector<Dialogue> dialogues) const {
  constexpr int kMinLen = 4;
  std::mt19937_64 random(seed);
  for (size_t i = dialogues.size(); i > 1; --i) {
    std::swap(dialogues[i - 1], dialogues[uniform_below(random, i)]);
  }
  std::vector<BenchRequest> requests;
  for (const Dialogue& dialogue : dialogues) {
    if (static_cast<int>(requests.size()) == num_prompts) break;
    BenchRequest request;
    QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, tokenize(dialogue.prompt));
    const auto prompt_len = static_cast<int>(request.prompt_token_ids.size());
    request.output_len = output_len;
    if (output_len == 0) {
      QUIRE_ASSIGN_OR_RETURN(const auto answer_ids, tokenize(dialogue.completion));
      request.output_len = static_cast<int>(answer_ids.size());
    }
    const bool too_short =
        prompt_len < kMinLen || (output_len == 0 && request.output_len < kMinLen);
    const bool too_long =
        prompt_len > max_prompt_len || prompt_len + int64_t{request.output_len} > max_total_len;
    if (!too_short && !too_long) requests.push_back(std::move(request));
  }
  if (requests.empty()) {
    return invalid_argument(fmt::format(
        "[dataset] no dialogue fits; got {}, expected some with a prompt of {} to {} tokens and at "
        "most {} with the answer; set --output-len lower, or use a model with a longer context",
        dialogues.size(), kMinLen, max_prompt_len, max_total_len));
  }
  for (size_t distinct = requests.size(); static_cast<int>(requests.size()) < num_prompts;) {
    requests.push_back(requests[uniform_below(random, distinct)]);
  }
  return requests;
}

}  // namespace quire::cli
