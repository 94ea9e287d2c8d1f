#include "cli/gsm8k.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "cli/request_json.h"

namespace quire::cli {
namespace {

Result<std::string> string_field(simdjson::dom::object object, std::string_view name,
                                 std::string_view source) {
  std::string_view text;
  if (object.at_key(name).get_string().get(text)) {
    return invalid_argument(fmt::format("[input] {}: field '{}': expected a string", source, name));
  }
  return std::string(text);
}

// Matches the same characters as Python's \d on str.
bool is_decimal_digit(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}

std::string last_digits(std::string_view text) {
  std::string run;
  bool in_run = false;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.num_bytes));
    text.remove_prefix(bytes.size());
    if (bytes == ",") continue;
    const bool digit = is_decimal_digit(c.code_point);
    if (digit && !in_run) run.clear();
    if (digit) run += bytes;
    in_run = digit;
  }
  return run;
}

}  // namespace

Result<WordProblem> parse_word_problem(std::string_view line, std::string_view source) {
  constexpr std::string_view kProblem = "a JSON object with question and answer";
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, parse_line(line, source, kProblem));
  simdjson::dom::object object;
  if (document.root().get_object().get(object)) {
    return invalid_argument(fmt::format("[input] {}: expected {}", source, kProblem));
  }
  WordProblem problem;
  problem.source = source;
  QUIRE_ASSIGN_OR_RETURN(problem.question, string_field(object, "question", source));
  QUIRE_ASSIGN_OR_RETURN(problem.answer, string_field(object, "answer", source));
  return problem;
}

std::string question_prompt(const WordProblem& problem) {
  return fmt::format("Question: {}\nAnswer:", problem.question);
}

std::string shots_prompt(std::span<const WordProblem> shots) {
  std::string prompt;
  for (const WordProblem& shot : shots) {
    prompt += fmt::format("{} {}\n\n", question_prompt(shot), shot.answer);
  }
  return prompt;
}

std::vector<std::string> gsm8k_stops() {
  return {"Question", "Assistant:", "<|separator|>"};
}

std::optional<std::string> answer_value(std::string_view text) {
  const std::string digits = last_digits(text);
  if (digits.empty()) return std::nullopt;
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  // Python's literal_eval accepts 00 as 0 and rejects 007.
  if (digits.find_first_not_of('0') == std::string::npos) return "0";
  return digits.front() == '0' ? std::nullopt : std::optional(digits);
}

Gsm8kScore score_answers(std::span<const WordProblem> problems,
                         std::span<const std::string> answers) {
  QUIRE_CHECK(problems.size() == answers.size(), "[eval] one answer a problem");
  Gsm8kScore score;
  int num_invalid = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    const auto value = answer_value(answers[i]);
    num_invalid += value ? 0 : 1;
    score.num_correct += value && value == answer_value(problems[i].answer) ? 1 : 0;
  }
  if (problems.empty()) return score;
  score.accuracy = static_cast<double>(score.num_correct) / static_cast<double>(problems.size());
  score.invalid = static_cast<double>(num_invalid) / static_cast<double>(problems.size());
  return score;
}

}  // namespace quire::cli
