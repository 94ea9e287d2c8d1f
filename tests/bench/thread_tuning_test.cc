#include "bench/thread_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/tiny_engine.h"
#include "start/model_files.h"
#include "start/platform_choice.h"
#include "support/scratch_directory.h"

namespace quire::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ThreadCounts, AreHalvingsOfTheCoresAndAllCpus) {
  EXPECT_THAT(thread_counts(64, 128), ElementsAre(8, 16, 32, 64, 128));
  EXPECT_THAT(thread_counts(12, 12), ElementsAre(1, 3, 6, 12));
  EXPECT_THAT(thread_counts(2, 4), ElementsAre(1, 2, 4));
  EXPECT_THAT(thread_counts(1, 1), ElementsAre(1));
  EXPECT_THAT(thread_counts(1000, 2000), ElementsAre(125, 250, 500, 1000, kMaxTunedThreads));
  EXPECT_THAT(thread_counts(2000, 4000), ElementsAre(128, 256, 512, kMaxTunedThreads));
}

TEST(FastestThreads, AreChosenPerPhase) {
  const std::vector<ThreadTimes> times = {
      {8, 2.0, 4.0, 40.0}, {16, 1.0, 2.0, 20.0}, {32, 1.5, 2.5, 10.0}};
  EXPECT_EQ(fastest_threads(times, 8), (StepThreads{.decode = 16, .prefill = 32}));
}

TEST(FastestThreads, OfDecodeWeighBothBatchesEqually) {
  // 8 threads are best for one sequence and 16 for a batch, by a larger factor.
  const std::vector<ThreadTimes> times = {{8, 1.0, 300.0, 1.0}, {16, 1.5, 100.0, 1.0}};
  EXPECT_EQ(fastest_threads(times, 8).decode, 16);
}

TEST(FastestThreads, AreTheFewestOfThoseThatAreClearlyFaster) {
  const std::vector<ThreadTimes> times = {
      {8, 1.01, 1.01, 1.01}, {16, 1.0, 1.0, 1.0}, {32, 1.2, 1.2, 1.2}};
  EXPECT_EQ(fastest_threads(times, 32), (StepThreads{.decode = 8, .prefill = 8}));
}

// A gain of 5 %, or one within the scatter of either number, may be noise.
TEST(FastestThreads, AreTheDefaultWithoutAClearGain) {
  constexpr StepThreads kDefault = {.decode = 2, .prefill = 2};
  EXPECT_EQ(fastest_threads(std::vector<ThreadTimes>{{1, 0.96, 0.96, 0.96}, {2, 1, 1, 1}}, 2),
            kDefault);
  EXPECT_EQ(fastest_threads(std::vector<ThreadTimes>{{1, 0.9, 0.9, 0.9, 0.2}, {2, 1, 1, 1}}, 2),
            kDefault);
  EXPECT_EQ(fastest_threads(std::vector<ThreadTimes>{{1, 0.9, 0.9, 0.9}, {2, 1, 1, 1, 0.2}}, 2),
            kDefault);
  EXPECT_EQ(fastest_threads(std::vector<ThreadTimes>{{1, 0.9, 0.9, 0.9}, {2, 1, 1, 1, 0.05}}, 2),
            (StepThreads{.decode = 1, .prefill = 1}));
}

TEST(ThreadTuneReport, HasEachNumberOfThreads) {
  ThreadTuneResult result;
  result.title = "model: 4 threads";
  result.prompt_len = 512;
  result.times = {{2, 0.002, 0.004, 0.3}, {4, 0.001, 0.003, 0.2}};
  result.best = {4, 1};
  result.file = "/cache/choices.tsv";
  EXPECT_THAT(to_table(result), HasSubstr("model: 4 threads; shortest times in milliseconds\n"));
  EXPECT_THAT(to_table(result), HasSubstr("prompt of 512"));
  EXPECT_THAT(
      to_table(result),
      HasSubstr("chosen: 4 threads for decode, 1 thread for prompts; kept in /cache/choices.tsv"));
  EXPECT_THAT(to_table(result), Not(HasSubstr("Repeats differ")));
  result.times.back().scatter = 0.23;
  EXPECT_THAT(to_table(result), HasSubstr("Repeats differ by up to 23 %"));
  EXPECT_EQ(to_csv(result),
            "threads,decode_s,batch_decode_s,prefill_s\n"
            "2,0.002000000,0.004000000,0.300000000\n"
            "4,0.001000000,0.003000000,0.200000000\n");
}

TEST(TuneThreads, MeasuresAndKeepsThem) {
  const quire::testing::ScratchDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  ThreadTuneOptions options = {.engine = quire::testing::tiny_config(), .quick = true};
  options.engine.num_threads = 0;
  const auto result = testing::value_of(tune_threads(options, {}));
  std::vector<int> counts;
  for (const ThreadTimes& times : result.times) {
    counts.push_back(times.num_threads);
    for (const double seconds : {times.decode_s, times.batch_decode_s, times.prefill_s}) {
      EXPECT_GT(seconds, 0.0);
      EXPECT_LT(seconds, 60.0);
    }
  }
  EXPECT_THAT(counts, ::testing::Contains(result.best.decode));
  EXPECT_THAT(counts, ::testing::Contains(result.best.prefill));
  const ModelFiles files = open_model_files(options.engine).value();
  const auto platform = testing::value_of(make_platform(options.engine, files));
  EXPECT_EQ(platform->step_threads(), result.best) << "a later start uses them";
  ::unsetenv("XDG_CACHE_HOME");
}

TEST(TuneThreads, EndsWhenItIsInterrupted) {
  ThreadTuneOptions options = {.engine = quire::testing::tiny_config(), .quick = true};
  const auto result = tune_threads(options, {.interrupted = [] { return true; }});
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
}

TEST(TuneThreads, RefusesAWrongConfiguration) {
  ThreadTuneOptions options;
  options.engine.cpu_cores = "some";
  EXPECT_THAT(tune_threads(options, {}).status().message(), HasSubstr("cpu_cores"));
}

}  // namespace
}  // namespace quire::bench
