// GSM8K as in SGLang's benchmark/gsm8k/bench_sglang.py: the prompts, and the scoring of answers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

struct WordProblem {
  std::string question;
  std::string answer;       // the steps, then "#### 18"
  std::string source = {};  // file and line: "FILE:3"
};

// Parses {"question": "…", "answer": "…"}; ignores other fields.
Result<WordProblem> parse_word_problem(std::string_view line, std::string_view source);

// "Question: …\nAnswer:". shots_prompt() adds the answer after each.
std::string question_prompt(const WordProblem& problem);
std::string shots_prompt(std::span<const WordProblem> shots);

// The stop strings that end an answer.
std::vector<std::string> gsm8k_stops();

// The last run of decimal digits after commas are removed, as a canonical decimal number. nullopt
// if there is none or if Python's literal_eval rejects it (a leading zero, digits other than 0-9).
std::optional<std::string> answer_value(std::string_view text);

struct Gsm8kScore {
  double accuracy = 0.0;
  double invalid = 0.0;  // share of answers without a value
  int num_correct = 0;
};
// `answers` has one entry per problem.
Gsm8kScore score_answers(std::span<const WordProblem> problems,
                         std::span<const std::string> answers);

}  // namespace quire::cli
