#include "bench/thread_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/check.h"
#include "bench/engine_bench.h"
#include "engine/engine_internals.h"
#include "start/model_files.h"
#include "start/platform_choice.h"
#include "start/setting_values.h"
#include "start/settings.h"

namespace quire::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatch = 8;
constexpr int kPromptLen = 512;
constexpr int kNumRounds = 5;
// No round begins after this time, so that a large model is measured less often.
constexpr std::chrono::seconds kTimeLimit(60);

std::string count_of_threads(int count) {
  return fmt::format("{} thread{}", count, count == 1 ? "" : "s");
}

double shortest(std::span<const double> values) {
  return values.empty() ? std::numeric_limits<double>::infinity()
                        : *std::ranges::min_element(values);
}

// One batch of equal sequences.
Result<LatencyResult> run_batch(Engine& engine, const LatencyOptions& options, const Hooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(LatencyResult result,
                         measure_latency(engine, options, {.interrupted = hooks.interrupted}));
  if (!result.requests.end.ok()) return cancelled("[tune] interrupted; nothing was written");
  return result;
}

// The times of one number of threads, by repeat.
struct Repeats {
  std::vector<double> decode_s = {};
  std::vector<double> batch_decode_s = {};
  std::vector<double> prefill_s = {};
};

// The share by which the second shortest time exceeds the shortest.
double scatter(std::vector<double> times) {
  if (times.size() < 2) return 0.0;
  std::ranges::sort(times);
  return times[1] / times[0] - 1.0;
}

void summarize(const Repeats& repeats, ThreadTimes& times) {
  times.decode_s = shortest(repeats.decode_s);
  times.batch_decode_s = shortest(repeats.batch_decode_s);
  times.prefill_s = shortest(repeats.prefill_s);
  times.scatter = std::max(
      {scatter(repeats.decode_s), scatter(repeats.batch_decode_s), scatter(repeats.prefill_s)});
}

class Measurement {
 public:
  Measurement(Engine& engine, const Hooks& hooks)
      : engine_(engine),
        hooks_(hooks),
        prompt_len_(std::min(kPromptLen, engine.model_info().max_model_len - 1)) {}

  int prompt_len() const { return prompt_len_; }

  // Measures one number of threads once more.
  Status add(int num_threads, Repeats& repeats) {
    EngineInternals::platform(engine_).set_step_threads(
        {.decode = num_threads, .prefill = num_threads});
    QUIRE_RETURN_IF_ERROR(add_decode(1, repeats.decode_s));
    QUIRE_RETURN_IF_ERROR(add_decode(kBatch, repeats.batch_decode_s));
    QUIRE_ASSIGN_OR_RETURN(const LatencyResult prompt,
                           run_batch(engine_, options(prompt_len_, 1, 1), hooks_));
    repeats.prefill_s.push_back(shortest(prompt.requests.first_token_s));
    return {};
  }

 private:
  static LatencyOptions options(int input_len, int output_len, int batch_size) {
    return {.input_len = input_len,
            .output_len = output_len,
            .batch_size = batch_size,
            .num_iters_warmup = 0,
            .num_iters = 1};
  }

  Status add_decode(int batch_size, std::vector<double>& seconds) {
    constexpr int kInputLen = 8;
    const int output_len = std::min(24, engine_.model_info().max_model_len - kInputLen);
    QUIRE_ASSIGN_OR_RETURN(const LatencyResult result,
                           run_batch(engine_, options(kInputLen, output_len, batch_size), hooks_));
    seconds.push_back(shortest(result.requests.per_token_s));
    return {};
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
  return invalid_argument(fmt::format("[tune] `max_model_len`: got a context of {}, expected {}",
                                      info.max_model_len, kShortest));
}

Status measure(Engine& engine, bool quick, const Hooks& hooks, ThreadTuneResult& result) {
  Measurement measurement(engine, hooks);
  result.prompt_len = measurement.prompt_len();
  Repeats warm_up;
  QUIRE_RETURN_IF_ERROR(measurement.add(result.times.back().num_threads, warm_up));
  std::vector<Repeats> repeats(result.times.size());
  // Rounds alternate between the numbers of threads, so that a temporary slowdown of the machine
  // affects all of them.
  const Clock::time_point start = Clock::now();
  const size_t num_rounds = quick ? 1 : kNumRounds;
  const size_t num_total = num_rounds * result.times.size();
  for (size_t i = 0; i < num_total; ++i) {
    ThreadTimes& times = result.times[i % result.times.size()];
    if (&times == result.times.data() && i > 0 && Clock::now() - start > kTimeLimit) break;
    hooks.on_progress(i, num_total, [&] { return "with " + count_of_threads(times.num_threads); });
    Repeats& own = repeats[i % repeats.size()];
    QUIRE_RETURN_IF_ERROR(measurement.add(times.num_threads, own));
    summarize(own, times);
  }
  hooks.on_progress(num_total, num_total, [] { return std::string(); });
  return {};
}

// The default, unless another number's cost is clearly lower.
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
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const int count : counts) result.times.push_back({count, kNone, kNone, kNone});
  QUIRE_RETURN_IF_ERROR(measure(*engine, options.quick, hooks, result));
  result.best = {.cpus = cpus_key(choice),
                 .model = model_key(options.engine, files),
                 .threads = fastest_threads(result.times, num_threads)};
  result.file = tuned_threads_file();
  QUIRE_RETURN_IF_ERROR(keep_tuned_threads(result.file, result.best));
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
  const StepThreads& best = result.best.threads;
  text += fmt::format("chosen: {} for decode, {} for prompts; kept in {}, which may be deleted\n",
                      count_of_threads(best.decode), count_of_threads(best.prefill),
                      result.file.string());
  constexpr double kMuch = 0.1;
  const double most = std::ranges::max_element(result.times, {}, &ThreadTimes::scatter)->scatter;
  if (most > kMuch) {
    text += fmt::format(
        "Repeats differ by up to {:.0f} %, as if other work ran beside them. Repeat this on an "
        "idle "
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
