#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/gsm8k.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_requests.h"
#include "quire/engine.h"

namespace quire::cli {
namespace {

struct Options {
  EngineConfig engine;
  std::string data;
  std::string shots;
  int num_shots = 8;
  int num_questions = 1000;
  int parallel = 1000;
  int max_tokens = 512;
  bool ignore_eos = false;
  std::string json;
};

struct EvalResult {
  Gsm8kScore score;
  size_t num_questions = 0;
  size_t num_refused = 0;  // by the engine; they count as invalid
  int64_t num_output_tokens = 0;
  double latency_s = 0.0;
  double output_tokens_per_s() const { return static_cast<double>(num_output_tokens) / latency_s; }
};

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

// As SGLang's: without a file of their own, the shots are the first lines of the data, which are
// asked as well.
Result<std::vector<WordProblem>> read_shots(const Options& options,
                                            const std::vector<WordProblem>& problems) {
  std::vector<WordProblem> shots = problems;
  if (!options.shots.empty()) {
    QUIRE_ASSIGN_OR_RETURN(shots, read_problems(options.shots));
  }
  if (shots.size() < static_cast<size_t>(options.num_shots)) {
    return invalid_argument(fmt::format("[eval] {} has too few lines for --num-shots {}; got {}",
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
    return invalid_argument(
        fmt::format("[eval] {}: there is no number in the answer", problem.source));
  }
  return {};
}

std::vector<Request> make_requests(const Options& options, const std::vector<WordProblem>& shots,
                                   const std::vector<WordProblem>& problems) {
  const std::string prefix = shots_prompt(shots);
  std::vector<Request> requests;
  for (const WordProblem& problem : problems) {
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

// A question that the engine refuses (it is too long) is named and costs only itself; where all are
// refused, or the engine fails, there is nothing to measure.
Status report_refused(const std::vector<WordProblem>& problems,
                      const std::vector<Completion>& completions, EvalResult& result) {
  for (const Completion& completion : completions) {
    const Status error = completion.first_error();
    if (!error.ok() && error.code() != StatusCode::kInvalidArgument) return error;
    result.num_refused += error.ok() ? 0 : 1;
  }
  if (result.num_refused == completions.size()) return completions[0].first_error();
  for (size_t i = 0; i < completions.size(); ++i) {
    const Status error = completions[i].first_error();
    if (error.ok()) continue;
    print_stderr("quire eval gsm8k: {} counts as invalid: {}\n", one_line(problems[i].source),
                 one_line(error.message()));
  }
  return {};
}

Result<EvalResult> evaluate(const Options& options, Engine& engine,
                            const std::vector<WordProblem>& problems,
                            std::vector<Request> requests) {
  const size_t total = requests.size();
  Progress progress("gsm8k", total);
  size_t num_done = 0;
  int num_right = 0;
  size_t num_tokens = 0;
  const auto show = [&] {
    progress.update(num_done, fmt::format("{} right, {} tokens", num_right, num_tokens));
  };
  const RunOptions run_options = {.max_in_flight = static_cast<size_t>(options.parallel),
                                  .on_output =
                                      [&](size_t, const Output& output) {
                                        num_tokens += output.token_ids.size();
                                        if (progress.is_due()) show();
                                        return true;
                                      },
                                  .on_done =
                                      [&](size_t idx, const Completion& completion) {
                                        if (completion.was_cancelled()) return;
                                        const bool right =
                                            completion.first_error().ok() &&
                                            answer_value(completion.answers[0].text) ==
                                                answer_value(problems[idx].answer);
                                        num_right += right ? 1 : 0;
                                        ++num_done;
                                        show();
                                      },
                                  .interrupted = CancelScope::interrupted};
  const Clock::time_point start = Clock::now();
  const auto completions = run_requests(engine_port(engine), std::move(requests), run_options);
  EvalResult result;
  result.latency_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (CancelScope::interrupted()) {
    return cancelled(fmt::format("[eval] interrupted after {} of {} questions", num_done, total));
  }
  QUIRE_RETURN_IF_ERROR(report_refused(problems, completions, result));
  std::vector<std::string> answers;
  for (const Completion& completion : completions) {
    result.num_output_tokens += completion.num_output_tokens();
    answers.push_back(completion.first_error().ok() ? completion.answers[0].text : "");
  }
  result.num_questions = problems.size();
  result.score = score_answers(problems, answers);
  return result;
}

void print_report(const EvalResult& result) {
  print_stdout("Accuracy: {:.3f}\n", result.score.accuracy);
  print_stdout("Invalid: {:.3f}\n", result.score.invalid);
  print_stdout("Latency: {:.3f} s\n", result.latency_s);
  print_stdout("Output throughput: {:.3f} token/s\n", result.output_tokens_per_s());
}

std::string json_report(const Options& options, const EvalResult& result) {
  JsonWriter json;
  json.begin_object();
  json.field("task", "gsm8k");
  json.field("accuracy", result.score.accuracy);
  json.field("invalid", result.score.invalid);
  json.field("latency", result.latency_s);
  json.field("output_throughput", result.output_tokens_per_s());
  json.field("num_correct", result.score.num_correct);
  json.field("num_questions", result.num_questions);
  json.field("num_refused", result.num_refused);
  json.field("num_output_tokens", result.num_output_tokens);
  json.field("num_shots", options.num_shots);
  json.field("parallel", options.parallel);
  json.end_object();
  return json.text() + "\n";
}

Result<int> run(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<WordProblem> problems, read_problems(options.data));
  QUIRE_ASSIGN_OR_RETURN(const auto shots, read_shots(options, problems));
  problems.resize(std::min(problems.size(), static_cast<size_t>(options.num_questions)));
  QUIRE_RETURN_IF_ERROR(check_labels(problems, options.data));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(
      const EvalResult result,
      evaluate(options, *engine, problems, make_requests(options, shots, problems)));
  print_report(result);
  if (!options.json.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.json, json_report(options, result)));
  }
  return kExitOk;
}

Command gsm8k_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "gsm8k";
  command.summary = "Accuracy on grade-school word problems, as SGLang's benchmark measures it";
  command.example =
      "  quire eval gsm8k --data test.jsonl --shots train.jsonl --num-shots 8 --num-questions 200";
  FlagSet& flags = command.flags;
  flags.begin_group("Evaluation");
  flags.file("--data", &options->data, "JSON lines of question and answer (required)");
  flags.file("--shots", &options->shots,
             "Where the shots come from; without it, the first lines of --data");
  flags.number("--num-shots", &options->num_shots, {.min = 0, .max = 1000},
               "Solved problems before each question");
  flags.number("--num-questions", &options->num_questions, {.min = 1}, "Most questions to ask");
  flags.number("--parallel", &options->parallel, {.min = 1}, "Most questions in flight");
  flags.number("--max-tokens", &options->max_tokens, {.min = 1}, "Most tokens of an answer");
  flags.toggle("--ignore-eos", &options->ignore_eos,
               "Answers of exactly --max-tokens, whatever they say: for measuring speed");
  flags.output_file("--json", &options->json, "Write the results to this file");
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
  command.check = [options] {
    return options->data.empty() ? invalid_argument("expected --data FILE.jsonl") : Status();
  };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace

Command eval_command() {
  Command command;
  command.name = "eval";
  command.summary = "Measure how often a model is right";
  command.example = "  quire eval gsm8k --data test.jsonl";
  command.subcommands.push_back(gsm8k_command());
  return command;
}

}  // namespace quire::cli
