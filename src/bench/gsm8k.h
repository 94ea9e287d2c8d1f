// GSM8K as in SGLang's benchmark/gsm8k/bench_sglang.py: the prompts, their run through an engine,
// and the scoring of answers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "quire/engine.h"

namespace quire::bench {

struct WordProblem {
  std::string question;
  std::string answer;       // the steps, then "#### 18"
  std::string source = {};  // file and line: "FILE:3"
};

// Parses {"question": "…", "answer": "…"}; ignores other fields.
Result<WordProblem> parse_word_problem(std::string_view line, std::string_view source);

// Returns "Question: …\nAnswer:". shots_prompt() adds the answer after each such text.
std::string question_prompt(const WordProblem& problem);
std::string shots_prompt(std::span<const WordProblem> shots);

// The stop strings that end an answer.
std::vector<std::string> gsm8k_stops();

// Returns the last number of the text, without commas, its sign, and zeros at the end of its
// decimals: "$1,061.50" gives 1061.5. SGLang's benchmark, which takes the last run of digits, would
// read 50. Returns nullopt if there are no digits or if Python's literal_eval rejects them (a
// leading zero of a whole number, digits other than 0-9).
std::optional<std::string> answer_value(std::string_view text);

struct Gsm8kScore {
  double accuracy = 0.0;
  double invalid = 0.0;  // share of answers without a value
  int num_correct = 0;
};
// `answers` has one entry per problem.
Gsm8kScore score_answers(std::span<const WordProblem> problems,
                         std::span<const std::string> answers);

struct Gsm8kOptions {
  std::string data;   // JSON lines of question and answer
  std::string shots;  // where the shots come from; empty: the first lines of the data
  int num_shots = 8;
  int num_questions = 1000;
  int parallel = 1000;
  int max_tokens = 512;
  bool ignore_eos = false;
};

// The problems to ask, each with a number as its answer, and the solved problems (shots) that
// precede each question in its prompt.
struct Gsm8kData {
  std::vector<WordProblem> problems;
  std::vector<WordProblem> shots;
};
Result<Gsm8kData> load_gsm8k(const Gsm8kOptions& options);

struct Gsm8kResult {
  Gsm8kScore score;
  size_t num_questions = 0;
  // Questions that the engine refused, for example because they are too long. They count as
  // invalid.
  std::vector<std::string> refusals;  // "FILE:3: …"
  int64_t num_output_tokens = 0;
  double latency_s = 0.0;

  double output_tokens_per_s() const { return static_cast<double>(num_output_tokens) / latency_s; }
};

// Fails if the engine fails, if it refuses every question, or after an interrupt.
Result<Gsm8kResult> evaluate_gsm8k(Engine& engine, const Gsm8kOptions& options,
                                   const Gsm8kData& data, const Hooks& hooks);
std::string to_text(const Gsm8kResult& result);
std::string to_json(const Gsm8kResult& result, const Gsm8kOptions& options);

}  // namespace quire::bench
