// GSM8K as SGLang's benchmark/gsm8k/bench_sglang.py defines it: prompts, and how answers count.
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
  std::string answer;       // steps and "#### 18"
  std::string source = {};  // where it stands: "FILE:3"
};

// {"question": "…", "answer": "…"}; other fields are ignored.
Result<WordProblem> parse_word_problem(std::string_view line, std::string_view source);

// "Question: …\nAnswer:", and with the answer behind it for a shot.
std::string question_prompt(const WordProblem& problem);
std::string shots_prompt(std::span<const WordProblem> shots);

// The text that ends an answer.
std::vector<std::string> gsm8k_stops();

// The last run of decimal digits once commas are gone, as a canonical decimal number. Nothing where
// there is none, or where Python's literal_eval refuses it: a leading zero, digits other than 0-9.
std::optional<std::string> answer_value(std::string_view text);

struct Gsm8kScore {
  double accuracy = 0.0;
  double invalid = 0.0;  // the share of answers without a value
  int num_correct = 0;
};
// One answer a problem.
Gsm8kScore score_answers(std::span<const WordProblem> problems,
                         std::span<const std::string> answers);

}  // namespace quire::cli
