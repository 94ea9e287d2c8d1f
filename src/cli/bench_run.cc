#include "cli/bench_run.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/statistics.h"

namespace quire::cli {
namespace {

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void add_times(const Completion& completion, BenchResult& result) {
  for (const Answer& answer : completion.answers) {
    if (answer.token_ids.empty()) continue;
    result.first_token_s.push_back(seconds(answer.first_token_time - completion.submit_time));
    if (answer.token_ids.size() < 2) continue;
    result.per_token_s.push_back(seconds(answer.last_token_time - answer.first_token_time) /
                                 static_cast<double>(answer.token_ids.size() - 1));
  }
}

void print_times(const char* name, std::span<const double> values) {
  print_stdout("{}: mean {:.2f} ms", name, mean(values) * 1e3);
  for (const int percent : {50, 90, 99}) {
    print_stdout(", p{} {:.2f} ms", percent, percentile(values, percent) * 1e3);
  }
  print_stdout("\n");
}

}  // namespace

BenchResult summarize(std::span<const Completion> completions, double elapsed_s) {
  BenchResult result;
  result.elapsed_s = elapsed_s;
  result.num_requests = static_cast<int64_t>(completions.size());
  for (const Completion& completion : completions) {
    result.num_prompt_tokens += static_cast<int64_t>(completion.prompt_token_ids.size());
    result.num_output_tokens += completion.num_output_tokens();
    add_times(completion, result);
  }
  return result;
}

std::vector<Request> to_requests(std::span<const BenchRequest> requests) {
  std::vector<Request> all;
  for (const BenchRequest& bench : requests) {
    Request request;
    request.prompt_token_ids = bench.prompt_token_ids;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = bench.output_len;
    all.push_back(std::move(request));
  }
  return all;
}

Status check_lengths(int64_t prompt_len, int64_t output_len, int max_model_len,
                     std::string_view flags) {
  if (prompt_len + output_len <= max_model_len) return {};
  return invalid_argument(fmt::format(
      "[bench] a request does not fit the context; got {} + {} tokens, expected at most {}; "
      "lower {}",
      prompt_len, output_len, max_model_len, flags));
}

Result<BenchResult> run_bench(Engine& engine, std::vector<Request> requests,
                              std::string progress_label) {
  const size_t total = requests.size();
  const bool shows_progress = !progress_label.empty();
  std::optional<Progress> progress;
  if (shows_progress) progress.emplace(std::move(progress_label), total);
  const Clock::time_point start = Clock::now();
  size_t num_done = 0;
  int64_t num_tokens = 0;
  const auto show = [&] {
    const double rate = static_cast<double>(num_tokens) / seconds(Clock::now() - start);
    progress->update(num_done, fmt::format("{:.0f} output tokens/s", rate));
  };
  const RunOptions options = {.on_output =
                                  [&](size_t, const Output& output) {
                                    num_tokens += static_cast<int64_t>(output.token_ids.size());
                                    if (progress && progress->is_due()) show();
                                    return true;
                                  },
                              .on_done =
                                  [&](size_t, const Completion& completion) {
                                    if (completion.was_cancelled()) return;
                                    ++num_done;
                                    if (progress) show();
                                  },
                              .interrupted = CancelScope::interrupted};
  auto completions = run_requests(engine_port(engine), std::move(requests), options);
  const double elapsed_s = seconds(Clock::now() - start);
  const bool interrupted = CancelScope::interrupted();
  if (interrupted) std::erase_if(completions, [](const auto& one) { return one.was_cancelled(); });
  for (const Completion& completion : completions) QUIRE_RETURN_IF_ERROR(completion.first_error());
  BenchResult result = summarize(completions, elapsed_s);
  if (interrupted) {
    result.end =
        cancelled(fmt::format("[bench] interrupted after {} of {} requests", num_done, total));
  }
  return result;
}

void print_partial(const Status& end) {
  print_stdout("Partial: {}\n", end.message());
}

void print_token_times(const BenchResult& result) {
  print_times("Time to first token", result.first_token_s);
  print_times("Time per output token", result.per_token_s);
}

void write_token_times(JsonWriter& json, const BenchResult& result) {
  write_summary(json, "time_to_first_token_s", result.first_token_s);
  write_summary(json, "time_per_output_token_s", result.per_token_s);
}

}  // namespace quire::cli
