#include "bench/thread_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "bench/engine_bench.h"
#include "engine/engine_internals.h"
#include "measure/rounds.h"
#include "start/model_files.h"
#include "start/platform_choice.h"
#include "start/setting_values.h"
#include "start/settings.h"

namespace quire::bench {
namespace {

constexpr int kBatch = 8;
constexpr int kPromptLen = 512;
constexpr int kNumRounds = 5;
// No round begins after this time, so that a large model is measured less often.
constexpr std::chrono::seconds kTimeLimit(60);

std::string count_of_threads(int count) {
  return fmt::format("{} thread{}", count, count == 1 ? "" : "s");
}

// One batch of equal sequences.
Result<LatencyResult> run_batch(Engine& engine, const LatencyOptions& options, const Hooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(LatencyResult result,
                         measure_latency(engine, options, {.interrupted = hooks.interrupted}));
  if (!result.requests.end.ok()) return cancelled("[tune] interrupted; nothing was written");
  return result;
}

// A kind of step, which is timed with each number of threads.
enum Step : size_t { kDecodeOne, kDecodeBatch, kPrompt };
constexpr size_t kNumSteps = 3;

class StepTimer {
 public:
  StepTimer(Engine& engine, const Hooks& hooks)
      : engine_(engine),
        hooks_(hooks),
        prompt_len_(std::min(kPromptLen, engine.model_info().max_model_len - 1)) {}

  int prompt_len() const { return prompt_len_; }

  // Seconds of the step.
  Result<double> time(int num_threads, size_t step) {
    EngineInternals::platform(engine_).set_step_threads(
        {.decode = num_threads, .prefill = num_threads});
    if (step == kDecodeOne) return time_decode(1);
    if (step == kDecodeBatch) return time_decode(kBatch);
    QUIRE_ASSIGN_OR_RETURN(const LatencyResult prompt,
                           run_batch(engine_, options(prompt_len_, 1, 1), hooks_));
    return Trial{.times = prompt.requests.first_token_s}.shortest();
  }

 private:
  static LatencyOptions options(int input_len, int output_len, int batch_size) {
    return {.input_len = input_len,
            .output_len = output_len,
            .batch_size = batch_size,
            .num_iters_warmup = 0,
            .num_iters = 1};
  }

  Result<double> time_decode(int batch_size) {
    constexpr int kInputLen = 8;
    const int output_len = std::min(24, engine_.model_info().max_model_len - kInputLen);
    QUIRE_ASSIGN_OR_RETURN(const LatencyResult result,
                           run_batch(engine_, options(kInputLen, output_len, batch_size), hooks_));
    return Trial{.times = result.requests.per_token_s}.shortest();
  }

  Engine& engine_;
  const Hooks& hooks_;
  int prompt_len_;
};

// The engine that is measured: every sequence computes its prompt, and all threads are in the pool.
EngineConfig measured_config(const EngineConfig& given, int num_threads) {
  EngineConfig config = given;
  config.packed_weights = "off";  // writing them would take time from the measurement
  config.device = "cpu";
  config.num_threads = num_threads;
  config.max_num_seqs = kBatch;
  config.max_num_batched_tokens = kPromptLen;
  config.enable_prefix_caching = false;
  return config;
}

Status check_tunable(const ModelInfo& info) {
  if (info.embedding_size > 0) {
    return invalid_argument(fmt::format(
        "[tune] {} embeds texts; got a model without decode steps, expected one that generates",
        info.name));
  }
  constexpr int kShortest = 64;
  if (info.max_model_len >= kShortest) return {};
  return invalid_argument(
      fmt::format("[tune] `max_model_len`: got a context of {}, expected at least {}",
                  info.max_model_len, kShortest));
}

// Candidate i of the comparison is the step i % kNumSteps with counts[i / kNumSteps] threads.
Result<std::vector<ThreadTimes>> measure(StepTimer& timer, std::span<const int> counts, bool quick,
                                         const Hooks& hooks) {
  for (size_t step = 0; step < kNumSteps; ++step) {  // warms up
    QUIRE_RETURN_IF_ERROR(timer.time(counts.back(), step).status());
  }
  const Effort effort = {.num_rounds = quick ? 1 : kNumRounds, .time_limit = kTimeLimit};
  const size_t num_candidates = counts.size() * kNumSteps;
  const size_t num_total = static_cast<size_t>(effort.num_rounds) * num_candidates;
  size_t num_done = 0;
  const auto time = [&](size_t i) {
    const int num_threads = counts[i / kNumSteps];
    hooks.on_progress(num_done++, num_total,
                      [&] { return "with " + count_of_threads(num_threads); });
    return timer.time(num_threads, i % kNumSteps);
  };
  QUIRE_ASSIGN_OR_RETURN(const Comparison compared,
                         compare(num_candidates, effort, one_by_one_or_fail(time)));
  hooks.on_progress(num_total, num_total, [] { return std::string(); });
  std::vector<ThreadTimes> all;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto trials = std::span(compared.trials).subspan(i * kNumSteps, kNumSteps);
    all.push_back(
        {.num_threads = counts[i],
         .decode_s = trials[kDecodeOne].shortest(),
         .batch_decode_s = trials[kDecodeBatch].shortest(),
         .prefill_s = trials[kPrompt].shortest(),
         .scatter = std::max({trials[kDecodeOne].scatter(), trials[kDecodeBatch].scatter(),
                              trials[kPrompt].scatter()})});
  }
  return all;
}

// Returns the default number of threads, unless the cost of another number is clearly lower.
template <class Cost>
int clearly_fastest(std::span<const ThreadTimes> times, int default_threads, const Cost& cost) {
  constexpr double kTolerance = 1.02;
  constexpr double kLeastGain = 0.05;
  const auto usual = std::ranges::find(times, default_threads, &ThreadTimes::num_threads);
  QUIRE_CHECK(usual != times.end(), "[tune] the default number of threads is not measured");
  const double lowest = cost(*std::ranges::min_element(times, {}, cost));
  int fewest = default_threads;
  for (const ThreadTimes& one : times) {
    const double gain = 1.0 - cost(one) / cost(*usual);
    const bool is_clear = gain > std::max({kLeastGain, one.scatter, usual->scatter});
    const bool is_among_best = cost(one) <= lowest * kTolerance;
    if (is_clear && is_among_best && (fewest == default_threads || one.num_threads < fewest)) {
      fewest = one.num_threads;
    }
  }
  return fewest;
}

}  // namespace

std::vector<int> thread_counts(int num_cores, int num_cpus) {
  constexpr int kMostHalvings = 3;
  num_cores = std::min(num_cores, kMaxTunedThreads);
  num_cpus = std::min(num_cpus, kMaxTunedThreads);
  std::vector<int> counts = {num_cores};
  for (int i = 0; i < kMostHalvings && counts.back() > 1; ++i) counts.push_back(counts.back() / 2);
  std::ranges::reverse(counts);
  if (num_cpus > num_cores) counts.push_back(num_cpus);
  return counts;
}

StepThreads fastest_threads(std::span<const ThreadTimes> times, int default_threads) {
  const auto one = [](const ThreadTimes& t) { return t.decode_s; };
  const auto batch = [](const ThreadTimes& t) { return t.batch_decode_s; };
  const double shortest_one = one(*std::ranges::min_element(times, {}, one));
  const double shortest_batch = batch(*std::ranges::min_element(times, {}, batch));
  const auto both = [&](const ThreadTimes& t) {
    return one(t) / shortest_one + batch(t) / shortest_batch;
  };
  const auto prompt = [](const ThreadTimes& t) { return t.prefill_s; };
  return {.decode = clearly_fastest(times, default_threads, both),
          .prefill = clearly_fastest(times, default_threads, prompt)};
}

Result<ThreadTuneResult> tune_threads(const ThreadTuneOptions& options, const Hooks& hooks) {
  QUIRE_RETURN_IF_ERROR(check_settings(options.engine));
  ThreadOptions threads = thread_options(options.engine);
  threads.num_threads = 0;
  const ThreadChoice choice = choose_threads(threads);
  const auto num_threads = static_cast<int>(choice.places.size());
  // A quota leaves fewer threads than cores.
  const bool is_limited = num_threads < choice.num_cores;
  const std::vector<int> counts =
      thread_counts(num_threads, is_limited ? num_threads : choice.num_cpus);
  const EngineConfig config = measured_config(options.engine, counts.back());
  QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(config));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(config));
  const ModelInfo& info = engine->model_info();
  QUIRE_RETURN_IF_ERROR(check_tunable(info));
  ThreadTuneResult result;
  result.title = fmt::format("{}: {}", info.name, choice.threads);
  StepTimer timer(*engine, hooks);
  result.prompt_len = timer.prompt_len();
  QUIRE_ASSIGN_OR_RETURN(result.times, measure(timer, counts, options.quick, hooks));
  result.best = fastest_threads(result.times, num_threads);
  MeasuredChoices& choices = *EngineInternals::platform(*engine).choices();
  keep_tuned_threads(threads_key(choice, options.engine, files), result.best, choices);
  result.file = choices.file();
  QUIRE_RETURN_IF_ERROR(choices.keep());
  return result;
}

std::string to_table(const ThreadTuneResult& result) {
  std::string text = fmt::format("{}; shortest times in milliseconds\n", result.title);
  text += fmt::format("{:>8} {:>18} {:>18} {:>18}\n", "threads", "decode of 1, step",
                      fmt::format("decode of {}, step", kBatch),
                      fmt::format("prompt of {}", result.prompt_len));
  for (const ThreadTimes& times : result.times) {
    text += fmt::format("{:>8} {:>18.3f} {:>18.3f} {:>18.3f}\n", times.num_threads,
                        1e3 * times.decode_s, 1e3 * times.batch_decode_s, 1e3 * times.prefill_s);
  }
  const StepThreads& best = result.best;
  text += fmt::format("chosen: {} for decode, {} for prompts; kept in {}, which may be deleted\n",
                      count_of_threads(best.decode), count_of_threads(best.prefill),
                      result.file.string());
  constexpr double kMuch = 0.1;
  const double most = std::ranges::max_element(result.times, {}, &ThreadTimes::scatter)->scatter;
  if (most > kMuch) {
    text += fmt::format(
        "Repeats differ by up to {:.0f} %, probably because of other work. Repeat this on an idle "
        "machine.\n",
        100 * most);
  }
  return text;
}

std::string to_csv(const ThreadTuneResult& result) {
  std::string text = "threads,decode_s,batch_decode_s,prefill_s\n";
  for (const ThreadTimes& times : result.times) {
    text += fmt::format("{},{:.9f},{:.9f},{:.9f}\n", times.num_threads, times.decode_s,
                        times.batch_decode_s, times.prefill_s);
  }
  return text;
}

}  // namespace quire::bench
