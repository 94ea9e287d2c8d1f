#include "cli/bench_serve_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/json.h"
#include "cli/dataset.h"
#include "cli/input.h"
#include "cli/request_json.h"

namespace quire::cli {
namespace {

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

// Consecutive token ids from a random start, as in RandomDataset.
std::vector<int32_t> random_ids(std::mt19937_64& random, int length, int vocab_size) {
  const uint64_t first = uniform_below(random, static_cast<uint64_t>(vocab_size));
  std::vector<int32_t> ids(static_cast<size_t>(length));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>((first + i) % static_cast<uint64_t>(vocab_size));
  }
  return ids;
}

Result<std::vector<ServePrompt>> random_prompts(const ServePromptConfig& config,
                                                const ServerFacts& facts) {
  RandomDataset dataset = {.input_len = config.input_len,
                           .output_len = config.output_len,
                           .range_ratio = config.range_ratio,
                           .num_prompts = config.num_prompts,
                           .seed = config.seed,
                           .vocab_size = 1};
  if (!config.wants_text) {
    QUIRE_ASSIGN_OR_RETURN(dataset.vocab_size, facts.vocab_size());
  }
  std::mt19937_64 random(config.seed);
  std::vector<ServePrompt> prompts;
  for (BenchRequest& request : dataset.sample()) {
    ServePrompt prompt;
    prompt.output_len = request.output_len;
    if (config.wants_text) {
      prompt.text = random_words(random, static_cast<int>(request.prompt_token_ids.size()));
    } else {
      prompt.token_ids = std::move(request.prompt_token_ids);
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// ShareGptDataset works on token ids, of which only the count matters here, and only the server can
// count them. So each text's ids are its index in `texts`, repeated once per token.
Result<std::vector<ServePrompt>> sharegpt_prompts(const ServePromptConfig& config,
                                                  const ServerFacts& facts) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load(config.dataset_path));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Dialogue> dialogues,
                         parse_sharegpt(document, config.dataset_path));
  std::vector<std::string> texts;
  ShareGptDataset dataset;
  dataset.num_prompts = config.num_prompts;
  dataset.output_len = config.sharegpt_output_len;
  dataset.seed = config.seed;
  Status failure;
  dataset.tokenize = [&](std::string_view text) {
    const Result<int> count = failure.ok() ? facts.count_tokens(text) : Result<int>(failure);
    if (!count.ok()) failure = count.status();
    texts.emplace_back(text);
    return std::vector<int32_t>(static_cast<size_t>(count.ok() ? *count : 0),
                                static_cast<int32_t>(texts.size() - 1));
  };
  const auto requests = dataset.sample(std::move(dialogues));
  QUIRE_RETURN_IF_ERROR(failure);
  QUIRE_RETURN_IF_ERROR(requests.status());
  std::vector<ServePrompt> prompts;
  for (const BenchRequest& request : *requests) {
    ServePrompt prompt;
    prompt.text = texts[static_cast<size_t>(request.prompt_token_ids.front())];
    prompt.output_len = request.output_len;
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

bool read_ids(simdjson::dom::array values, std::vector<int32_t>& ids) {
  for (const simdjson::dom::element value : values) {
    int64_t id = 0;
    if (value.get_int64().get(id) || id < 0 || id > INT32_MAX) return false;
    ids.push_back(static_cast<int32_t>(id));
  }
  return !ids.empty();
}

// Reads trace lines. Asks for the vocabulary size once, when a line first needs it.
class TraceReader {
 public:
  TraceReader(const ServePromptConfig& config, const ServerFacts& facts)
      : config_(config), facts_(facts), random_(config.seed) {}

  Result<ServePrompt> read(std::string_view line, const std::string& source) {
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                           parse_line(line, source, "a JSON object of a request"));
    const auto wrong = [&](std::string_view what) {
      return invalid_argument(fmt::format("[dataset] {}: expected {}", source, what));
    };
    const simdjson::dom::element root = document.root();
    ServePrompt prompt;
    int64_t length = 0;
    if (root["output_length"].get_int64().get(length) || length < 1 || length > kMaxLen) {
      return wrong("'output_length', a number of tokens");
    }
    prompt.output_len = static_cast<int>(length);
    double timestamp_ms = 0;
    if (!root["timestamp_ms"].get_double().get(timestamp_ms)) {
      if (!(timestamp_ms >= 0)) return wrong("'timestamp_ms' of 0 or more");
      prompt.arrival_s = timestamp_ms / 1e3;
    }
    return with_content(root, std::move(prompt), wrong);
  }

 private:
  template <typename Wrong>
  Result<ServePrompt> with_content(simdjson::dom::element root, ServePrompt prompt,
                                   const Wrong& wrong) {
    std::string_view text;
    simdjson::dom::array ids;
    int64_t length = 0;
    if (!root["prompt"].get_string().get(text) && !text.empty()) {
      prompt.text = text;
      return prompt;
    }
    if (!root["prompt_token_ids"].get_array().get(ids)) {
      if (config_.wants_text) return wrong("'prompt' or 'input_length': a chat takes no ids");
      if (!read_ids(ids, prompt.token_ids)) return wrong("token ids of 0 or more");
      return prompt;
    }
    if (root["input_length"].get_int64().get(length) || length < 1 || length > kMaxLen) {
      return wrong("'prompt', 'prompt_token_ids' or 'input_length'");
    }
    if (config_.wants_text) {
      prompt.text = random_words(random_, static_cast<int>(length));
      return prompt;
    }
    if (vocab_size_ == 0) {
      QUIRE_ASSIGN_OR_RETURN(vocab_size_, facts_.vocab_size());
    }
    prompt.token_ids = random_ids(random_, static_cast<int>(length), vocab_size_);
    return prompt;
  }

  const ServePromptConfig& config_;
  const ServerFacts& facts_;
  std::mt19937_64 random_;
  int vocab_size_ = 0;
};

// Makes arrival times relative to the first one. Either all prompts have a time or none has.
Status settle_arrivals(std::vector<ServePrompt>& prompts, std::string_view source) {
  const auto num_timed = std::count_if(prompts.begin(), prompts.end(),
                                       [](const auto& prompt) { return prompt.arrival_s; });
  if (num_timed == 0) return {};
  if (static_cast<size_t>(num_timed) != prompts.size()) {
    return invalid_argument(
        fmt::format("[dataset] {}: expected 'timestamp_ms' in every line or in none", source));
  }
  std::stable_sort(prompts.begin(), prompts.end(),
                   [](const auto& a, const auto& b) { return *a.arrival_s < *b.arrival_s; });
  const double first = *prompts.front().arrival_s;
  for (ServePrompt& prompt : prompts) *prompt.arrival_s -= first;
  return {};
}

}  // namespace

Result<std::vector<ServePrompt>> parse_trace(std::string_view text, std::string_view source,
                                             const ServePromptConfig& config,
                                             const ServerFacts& facts) {
  TraceReader reader(config, facts);
  std::vector<ServePrompt> prompts;
  for (const Line& line : split_lines(text)) {
    if (static_cast<int>(prompts.size()) == config.num_prompts) break;
    QUIRE_ASSIGN_OR_RETURN(ServePrompt prompt, reader.read(line.text, line_source(source, line)));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) {
    return invalid_argument(fmt::format("[dataset] {} has no requests", source));
  }
  QUIRE_RETURN_IF_ERROR(settle_arrivals(prompts, source));
  return prompts;
}

Result<std::vector<ServePrompt>> make_prompts(const ServePromptConfig& config,
                                              const ServerFacts& facts) {
  if (config.dataset_name == "random") return random_prompts(config, facts);
  if (config.dataset_name == "sharegpt") return sharegpt_prompts(config, facts);
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_input(config.dataset_path));
  return parse_trace(text, config.dataset_path, config, facts);
}

std::string call_body(const ServePrompt& prompt, const CallConfig& config) {
  JsonWriter json;
  json.begin_object();
  json.field("model", config.model);
  if (config.is_chat) {
    json.key("messages");
    json.begin_array();
    json.begin_object();
    json.field("role", "user");
    json.field("content", prompt.text);
    json.end_object();
    json.end_array();
    json.field("max_completion_tokens", prompt.output_len);
  } else {
    json.key("prompt");
    if (prompt.text.empty()) {
      json.ids(prompt.token_ids);
    } else {
      json.value(prompt.text);
    }
    json.field("max_tokens", prompt.output_len);
  }
  json.field("temperature", config.temperature);
  if (config.ignore_eos) json.field("ignore_eos", true);
  json.field("stream", true);
  json.key("stream_options");
  json.begin_object();
  json.field("include_usage", true);
  json.end_object();
  json.end_object();
  return json.text();
}

}  // namespace quire::cli
