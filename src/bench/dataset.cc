#include "bench/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text_input.h"

namespace quire::bench {
namespace {

int uniform_between(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(uniform_below(random, static_cast<uint64_t>(high - low) + 1));
}

// Consecutive token ids from a random start.
std::vector<int32_t> random_ids(std::mt19937_64& random, int length, int vocab_size) {
  const uint64_t first = uniform_below(random, static_cast<uint64_t>(vocab_size));
  std::vector<int32_t> ids(static_cast<size_t>(length));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>((first + i) % static_cast<uint64_t>(vocab_size));
  }
  return ids;
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

constexpr int kMaxLen = 1 << 24;

// Most vocabularies have about one token per word. The server's usage field gives the true count.
std::string random_words(std::mt19937_64& random, int num_words) {
  static constexpr std::string_view kWords[] = {"time",  "year", "people", "way",  "day",  "man",
                                                "thing", "life", "world",  "hand", "part", "place",
                                                "week",  "work", "point",  "home"};
  std::string text;
  for (int i = 0; i < num_words; ++i) {
    if (i > 0) text += ' ';
    text += kWords[uniform_below(random, std::size(kWords))];
  }
  return text;
}

Result<std::vector<DatasetRequest>> random_requests(const ServeDatasetConfig& config,
                                                    const ServerQueries& queries) {
  RandomDataset dataset = {.input_len = config.input_len,
                           .output_len = config.output_len,
                           .range_ratio = config.range_ratio,
                           .num_prompts = config.num_prompts,
                           .seed = config.seed,
                           .vocab_size = 1};
  if (!config.wants_text) {
    QUIRE_ASSIGN_OR_RETURN(dataset.vocab_size, queries.vocab_size());
  }
  std::vector<DatasetRequest> requests = dataset.sample();
  std::mt19937_64 random(config.seed);
  for (DatasetRequest& request : requests) {
    if (!config.wants_text) break;
    request.text = random_words(random, static_cast<int>(request.token_ids.size()));
  }
  return requests;
}

Result<std::vector<DatasetRequest>> sharegpt_requests(const ServeDatasetConfig& config,
                                                      const ServerQueries& queries) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load(config.dataset_path));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Dialogue> dialogues,
                         parse_sharegpt(document, config.dataset_path));
  const ShareGptDataset dataset = {.num_prompts = config.num_prompts,
                                   .output_len = config.sharegpt_output_len,
                                   .seed = config.seed,
                                   .count_tokens = queries.count_tokens};
  return dataset.sample(std::move(dialogues));
}

// Reads trace lines. Asks for the vocabulary size once, when a line first needs it.
class TraceReader {
 public:
  TraceReader(const ServeDatasetConfig& config, const ServerQueries& queries)
      : config_(config), queries_(queries), random_(config.seed) {}

  Result<DatasetRequest> read(std::string_view line, const std::string& source) {
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                           parse_json_line(line, source, "a JSON object of a request"));
    const auto wrong = [&](std::string_view what) {
      return invalid_argument(fmt::format("[dataset] {}: expected {}", source, what));
    };
    const simdjson::dom::element root = document.root();
    DatasetRequest request;
    int64_t length = 0;
    if (root["output_length"].get_int64().get(length) || length < 1 || length > kMaxLen) {
      return wrong("'output_length', a number of tokens");
    }
    request.output_len = static_cast<int>(length);
    double timestamp_ms = 0;
    if (!root["timestamp_ms"].get_double().get(timestamp_ms)) {
      if (!(timestamp_ms >= 0)) return wrong("'timestamp_ms' of 0 or more");
      request.arrival_s = timestamp_ms / 1e3;
    }
    return with_content(root, std::move(request), wrong);
  }

 private:
  template <typename Wrong>
  Result<DatasetRequest> with_content(simdjson::dom::element root, DatasetRequest request,
                                      const Wrong& wrong) {
    std::string_view text;
    simdjson::dom::element ids;
    int64_t length = 0;
    if (!root["prompt"].get_string().get(text) && !text.empty()) {
      request.text = text;
      return request;
    }
    if (!root["prompt_token_ids"].get(ids)) {
      if (config_.wants_text) return wrong("'prompt' or 'input_length': a chat takes no ids");
      const auto token_ids = read_token_ids(ids);
      if (!token_ids.ok() || token_ids->empty())
        return wrong("'prompt_token_ids', a list of token ids");
      request.token_ids = *token_ids;
      return request;
    }
    if (root["input_length"].get_int64().get(length) || length < 1 || length > kMaxLen) {
      return wrong("'prompt', 'prompt_token_ids' or 'input_length'");
    }
    if (config_.wants_text) {
      request.text = random_words(random_, static_cast<int>(length));
      return request;
    }
    if (vocab_size_ == 0) {
      QUIRE_ASSIGN_OR_RETURN(vocab_size_, queries_.vocab_size());
    }
    request.token_ids = random_ids(random_, static_cast<int>(length), vocab_size_);
    return request;
  }

  const ServeDatasetConfig& config_;
  const ServerQueries& queries_;
  std::mt19937_64 random_;
  int vocab_size_ = 0;
};

// Makes arrival times relative to the first one. Either all requests have a time or none has.
Status make_arrivals_relative(std::vector<DatasetRequest>& requests, std::string_view source) {
  const auto num_timed = std::count_if(requests.begin(), requests.end(),
                                       [](const auto& request) { return request.arrival_s; });
  if (num_timed == 0) return {};
  if (static_cast<size_t>(num_timed) != requests.size()) {
    return invalid_argument(
        fmt::format("[dataset] {}: expected 'timestamp_ms' in every line or in none", source));
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const auto& a, const auto& b) { return *a.arrival_s < *b.arrival_s; });
  const double first = *requests.front().arrival_s;
  for (DatasetRequest& request : requests) *request.arrival_s -= first;
  return {};
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

std::vector<DatasetRequest> RandomDataset::sample() const {
  std::mt19937_64 random(seed);
  const LengthRange inputs = length_range(input_len, range_ratio);
  const LengthRange outputs = length_range(output_len, range_ratio);
  std::vector<DatasetRequest> requests(static_cast<size_t>(num_prompts));
  for (DatasetRequest& request : requests) {
    const int length = uniform_between(random, inputs.low, inputs.high);
    request.output_len = uniform_between(random, outputs.low, outputs.high);
    request.token_ids = random_ids(random, length, vocab_size);
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

Result<std::vector<DatasetRequest>> ShareGptDataset::sample(std::vector<Dialogue> dialogues) const {
  constexpr int kMinLen = 4;
  std::mt19937_64 random(seed);
  for (size_t i = dialogues.size(); i > 1; --i) {
    std::swap(dialogues[i - 1], dialogues[uniform_below(random, i)]);
  }
  std::vector<DatasetRequest> requests;
  for (const Dialogue& dialogue : dialogues) {
    if (static_cast<int>(requests.size()) == num_prompts) break;
    DatasetRequest request;
    request.text = dialogue.prompt;
    request.output_len = output_len;
    QUIRE_ASSIGN_OR_RETURN(const int prompt_len, count_tokens(dialogue.prompt));
    if (output_len == 0) {
      QUIRE_ASSIGN_OR_RETURN(request.output_len, count_tokens(dialogue.completion));
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
        "most {} with the answer; ask for shorter answers, or use a model with a longer context",
        dialogues.size(), kMinLen, max_prompt_len, max_total_len));
  }
  for (size_t distinct = requests.size(); static_cast<int>(requests.size()) < num_prompts;) {
    requests.push_back(requests[uniform_below(random, distinct)]);
  }
  return requests;
}

Result<std::vector<DatasetRequest>> parse_trace(std::string_view text, std::string_view source,
                                                const ServeDatasetConfig& config,
                                                const ServerQueries& queries) {
  TraceReader reader(config, queries);
  std::vector<DatasetRequest> requests;
  for (const Line& line : split_lines(text)) {
    if (static_cast<int>(requests.size()) == config.num_prompts) break;
    QUIRE_ASSIGN_OR_RETURN(DatasetRequest request,
                           reader.read(line.text, line_source(source, line)));
    requests.push_back(std::move(request));
  }
  if (requests.empty()) {
    return invalid_argument(fmt::format("[dataset] {} has no requests", source));
  }
  QUIRE_RETURN_IF_ERROR(make_arrivals_relative(requests, source));
  return requests;
}

Result<std::vector<DatasetRequest>> make_requests(const ServeDatasetConfig& config,
                                                  const ServerQueries& queries) {
  if (config.dataset_name == "random") return random_requests(config, queries);
  if (config.dataset_name == "sharegpt") return sharegpt_requests(config, queries);
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_input(config.dataset_path));
  return parse_trace(text, config.dataset_path, config, queries);
}

}  // namespace quire::bench
