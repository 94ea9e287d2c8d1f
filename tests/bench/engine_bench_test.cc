#include "bench/engine_bench.h"

#include <gmock/gmock.h>

#include "engine/tiny_engine.h"

namespace quire::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Statistics, AgreeWithNumpy) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(mean(values), 2.5);
  EXPECT_DOUBLE_EQ(standard_deviation(values), 1.118033988749895);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 3.7);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1.0);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 4.0);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0.0);
  EXPECT_EQ(percentiles(values).size(), 6U);
}

TEST(Summarize, CountsTokensAndTimes) {
  RequestResult request;
  request.prompt_token_ids = {1, 2, 3};
  request.submit_time = SampleResult::TimePoint(std::chrono::seconds(10));
  SampleResult sample;
  sample.token_ids = {4, 5, 6};
  sample.first_token_time = SampleResult::TimePoint(std::chrono::seconds(12));
  sample.last_token_time = SampleResult::TimePoint(std::chrono::seconds(16));
  request.samples = {sample};
  const EngineBenchResult result = summarize(std::vector{request}, 4.0);
  EXPECT_EQ(result.num_prompt_tokens, 3);
  EXPECT_EQ(result.num_output_tokens, 3);
  EXPECT_THAT(result.first_token_s, ElementsAre(2.0));
  EXPECT_THAT(result.per_token_s, ElementsAre(2.0));
  EXPECT_DOUBLE_EQ(result.total_tokens_per_s(), 1.5);
}

TEST(CheckLengths, CountsPromptAndOutput) {
  EXPECT_TRUE(check_lengths(3, 5, 8, "").ok());
  EXPECT_THAT(check_lengths(3, 5, 7, "--input-len").message(),
              AllOf(HasSubstr("3 + 5"), EndsWith("lower --input-len")));
  EXPECT_FALSE(check_lengths(INT32_MAX, INT32_MAX, INT32_MAX, "").ok());
}

TEST(Throughput, IsWholeIfTheInterruptComesAfterTheLastOutput) {
  const auto engine = testing::make_engine(testing::tiny_config());
  bool is_interrupted = false;
  const Hooks hooks = {.interrupted = [&] { return is_interrupted; },
                       .on_progress =
                           [&](size_t, size_t, const Hooks::Note&) {
                             is_interrupted = true;  // with the only output of the only request
                           }};
  const auto result = measure_throughput(
      *engine, {.input_len = 8, .output_len = 1, .num_prompts = 1}, nullptr, hooks);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(is_interrupted);
  EXPECT_TRUE(result->requests.end.ok()) << result->requests.end.message();
  EXPECT_EQ(result->requests.num_requests, 1);
}

}  // namespace
}  // namespace quire::bench
