#include "bench/gsm8k.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <chrono>

#include "base/ascii.h"
#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/text_input.h"
#include "engine/run_requests.h"

namespace quire::bench {
namespace {

using Clock = std::chrono::steady_clock;

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
  if (c < 0x80) return is_digit(static_cast<char>(c));
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}

// Returns the last run of digits, without commas. A decimal point belongs to it if digits follow.
std::string last_number(std::string_view text) {
  std::string run;
  bool in_run = false;
  bool after_point = false;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.num_bytes));
    text.remove_prefix(bytes.size());
    if (bytes == ",") continue;
    const bool digit = is_decimal_digit(c.code_point);
    if (digit && !in_run && !after_point) run.clear();
    if (digit && after_point) run += '.';
    if (digit) run += bytes;
    after_point = in_run && bytes == "." && run.find('.') == std::string::npos;
    in_run = digit;
  }
  return run;
}

Result<std::vector<WordProblem>> read_problems(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_input(path));
  std::vector<WordProblem> problems;
  for (const Line& line : split_lines(text)) {
    QUIRE_ASSIGN_OR_RETURN(WordProblem problem,
                           parse_word_problem(line.text, line_source(path, line)));
    problems.push_back(std::move(problem));
  }
  return problems;
}

// By default, the shots are the first lines of the data, which are also questions, as in SGLang.
Result<std::vector<WordProblem>> read_shots(const Gsm8kOptions& options,
                                            const std::vector<WordProblem>& problems) {
  std::vector<WordProblem> shots = problems;
  if (!options.shots.empty()) {
    QUIRE_ASSIGN_OR_RETURN(shots, read_problems(options.shots));
  }
  if (shots.size() < static_cast<size_t>(options.num_shots)) {
    return invalid_argument(fmt::format("[eval] {} has too few lines for `num_shots` {}; got {}",
                                        options.shots.empty() ? options.data : options.shots,
                                        options.num_shots, shots.size()));
  }
  shots.resize(static_cast<size_t>(options.num_shots));
  return shots;
}

Status check_labels(const std::vector<WordProblem>& problems, const std::string& path) {
  if (problems.empty()) return invalid_argument(fmt::format("[eval] {} has no problems", path));
  for (const WordProblem& problem : problems) {
    if (answer_value(problem.answer)) continue;
    return invalid_argument(fmt::format(
        "[eval] {}: the answer has no number; expected one, such as #### 18", problem.source));
  }
  return {};
}

std::vector<Request> make_requests(const Gsm8kOptions& options, const Gsm8kData& data) {
  const std::string prefix = shots_prompt(data.shots);
  std::vector<Request> requests;
  for (const WordProblem& problem : data.problems) {
    Request request;
    request.prompt = prefix + question_prompt(problem);
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = options.max_tokens;
    request.sampling.ignore_eos = options.ignore_eos;
    if (!options.ignore_eos) request.sampling.stop = gsm8k_stops();
    requests.push_back(std::move(request));
  }
  return requests;
}

// Returns the refused questions. Fails if the engine failed, or if it refused all questions.
Result<std::vector<std::string>> refusals_of(const std::vector<WordProblem>& problems,
                                             const std::vector<RequestResult>& results) {
  std::vector<std::string> refusals;
  for (size_t i = 0; i < results.size(); ++i) {
    const Status error = results[i].first_error();
    if (error.ok()) continue;
    if (error.code() != StatusCode::kInvalidArgument) return error;
    refusals.push_back(fmt::format("{}: {}", problems[i].source, error.message()));
  }
  if (refusals.size() == results.size()) return results[0].first_error();
  return refusals;
}

}  // namespace

Result<WordProblem> parse_word_problem(std::string_view line, std::string_view source) {
  constexpr std::string_view kProblem = "a JSON object with question and answer";
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, parse_json_line(line, source, kProblem));
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
  std::string number = last_number(text);
  const auto is_expected = [](char c) { return is_digit(c) || c == '.'; };
  if (number.empty() || !std::ranges::all_of(number, is_expected)) return std::nullopt;
  const bool has_point = number.find('.') != std::string::npos;
  while (has_point && number.back() == '0') number.pop_back();
  if (number.back() == '.') number.pop_back();
  const size_t first = number.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  // Python's literal_eval accepts 00 as 0 and 07.5 as 7.5, and rejects 007.
  if (first > 0 && !has_point) return std::nullopt;
  number.erase(0, first);
  return number.front() == '.' ? "0" + number : number;
}

Gsm8kScore score_answers(std::span<const WordProblem> problems,
                         std::span<const std::string> answers) {
  QUIRE_CHECK(problems.size() == answers.size(), "[eval] expected one answer per problem");
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

Result<Gsm8kData> load_gsm8k(const Gsm8kOptions& options) {
  Gsm8kData data;
  QUIRE_ASSIGN_OR_RETURN(data.problems, read_problems(options.data));
  QUIRE_ASSIGN_OR_RETURN(data.shots, read_shots(options, data.problems));
  const auto limit = static_cast<size_t>(options.num_questions);
  data.problems.resize(std::min(data.problems.size(), limit));
  QUIRE_RETURN_IF_ERROR(check_labels(data.problems, options.data));
  return data;
}

Result<Gsm8kResult> evaluate_gsm8k(Engine& engine, const Gsm8kOptions& options,
                                   const Gsm8kData& data, const Hooks& hooks) {
  const size_t total = data.problems.size();
  size_t num_done = 0;
  int num_right = 0;
  size_t num_tokens = 0;
  const Hooks::Note note = [&] {
    return fmt::format("{} right, {} tokens", num_right, num_tokens);
  };
  const RunOptions run_options = {.max_in_flight = static_cast<size_t>(options.parallel),
                                  .on_output =
                                      [&](size_t, const Output& output) {
                                        num_tokens += output.token_ids.size();
                                        hooks.on_progress(num_done, total, note);
                                        return true;
                                      },
                                  .on_done =
                                      [&](size_t idx, const RequestResult& result) {
                                        if (result.was_cancelled()) return;
                                        const bool right =
                                            result.first_error().ok() &&
                                            answer_value(result.samples[0].text) ==
                                                answer_value(data.problems[idx].answer);
                                        num_right += right ? 1 : 0;
                                        ++num_done;
                                      },
                                  .interrupted = hooks.interrupted};
  const Clock::time_point start = Clock::now();
  const auto results = run_requests(engine_port(engine), make_requests(options, data), run_options);
  Gsm8kResult summary;
  summary.latency_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (hooks.interrupted()) {
    return cancelled(fmt::format("[eval] interrupted after {} of {} questions", num_done, total));
  }
  QUIRE_ASSIGN_OR_RETURN(summary.refusals, refusals_of(data.problems, results));
  std::vector<std::string> answers;
  for (const RequestResult& result : results) {
    summary.num_output_tokens += result.num_output_tokens();
    answers.push_back(result.first_error().ok() ? result.samples[0].text : "");
  }
  summary.num_questions = total;
  summary.score = score_answers(data.problems, answers);
  return summary;
}

std::string to_text(const Gsm8kResult& result) {
  return fmt::format(
      "Accuracy: {:.3f}\nInvalid: {:.3f}\nLatency: {:.3f} s\nOutput throughput: {:.3f} token/s\n",
      result.score.accuracy, result.score.invalid, result.latency_s, result.output_tokens_per_s());
}

std::string to_json(const Gsm8kResult& result, const Gsm8kOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.field("task", "gsm8k");
  json.field("accuracy", result.score.accuracy);
  json.field("invalid", result.score.invalid);
  json.field("latency", result.latency_s);
  json.field("output_throughput", result.output_tokens_per_s());
  json.field("num_correct", result.score.num_correct);
  json.field("num_questions", result.num_questions);
  json.field("num_refused", result.refusals.size());
  json.field("num_output_tokens", result.num_output_tokens);
  json.field("num_shots", options.num_shots);
  json.field("parallel", options.parallel);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::bench
