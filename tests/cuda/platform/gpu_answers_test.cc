// Compares the outputs of a GPU with those of a CPU, for the tiny random model in F32.
#include <cmath>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

constexpr int kNumRequests = 64;
// Prompts of 1 to 160 tokens, some sharing long prefixes.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < kNumRequests; ++i) {
    all.push_back(
        greedy(tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 20)), 12 + i % 9));
  }
  return all;
}

const std::vector<Collected>& expected() {
  static const std::vector<Collected> answers = cpu_answers(requests());
  return answers;
}

class GpuAnswers : public GpuTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(GpuAnswers, AreTheCpus) {
  EngineConfig config = tiny_f32("cuda");
  GetParam().change(config);
  const auto engine = make_engine(config);
  EXPECT_LE(count_differences(run_all(*engine, requests()), expected()), kMaxTies);
  // The second run hits the prefix cache.
  const std::vector<Collected> again = run_all(*engine, requests());
  EXPECT_LE(count_differences(again, expected()), kMaxTies);
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_EQ(stats.prefix_cache_hits > 0, config.enable_prefix_caching);
  EXPECT_EQ(stats.num_preemptions > 0, GetParam().name == std::string_view("preemption"));
}

INSTANTIATE_TEST_SUITE_P(Variants, GpuAnswers, ::testing::ValuesIn(common_variants()), name_of);

INSTANTIATE_TEST_SUITE_P(
    Sizes, GpuAnswers,
    ::testing::Values(Variant{"page32", [](EngineConfig& c) { c.block_size = 32; }},
                      Variant{"page64", [](EngineConfig& c) { c.block_size = 64; }},
                      Variant{"no_prefix_cache",
                              [](EngineConfig& c) { c.enable_prefix_caching = false; }},
                      Variant{"six_rows", [](EngineConfig& c) { c.max_num_seqs = 6; }},
                      Variant{"fewer_tokens_than_rows",
                              [](EngineConfig& c) {
                                c.max_num_seqs = 64;
                                c.max_num_batched_tokens = 12;
                              }}),
    name_of);

class GpuSampling : public GpuTest {};

Request seeded(uint64_t seed) {
  Request request = greedy(tiny_prompt(9, 5), 24);
  request.sampling.temperature = 1.3F;
  request.sampling.top_p = 0.95F;
  request.sampling.seed = seed;
  return request;
}

TEST_F(GpuSampling, SeededRequestIsTheSameAloneAndInAFullBatch) {
  const auto engine = make_engine(tiny_f32("cuda"));
  const auto alone = run_all(*engine, {seeded(42)}).front();
  std::vector<Request> crowd;
  for (uint64_t i = 0; i < 40; ++i) {
    Request other = greedy(tiny_prompt(3 + static_cast<int>(i), 100 + i), 20);
    other.sampling.temperature = 1.0F;
    crowd.push_back(other);
  }
  crowd.insert(crowd.begin() + 7, seeded(42));
  EXPECT_EQ(run_all(*engine, crowd)[7].token_ids, alone.token_ids);
  EXPECT_NE(run_all(*engine, {seeded(43)}).front().token_ids, alone.token_ids);
  EXPECT_EQ(cpu_answers({seeded(42)}).front().token_ids, alone.token_ids);
}

TEST_F(GpuSampling, SeveralAnswersToOnePrompt) {
  const auto engine = make_engine(tiny_f32("cuda"));
  Request request = seeded(7);
  request.sampling.n = 4;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  const auto answers = collect_all(**stream);
  ASSERT_EQ(answers.size(), 4U);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(run_all(*engine, {seeded(7 + i)}).front().token_ids, answers[i].token_ids);
  }
  EXPECT_NE(answers[0].token_ids, answers[1].token_ids);
}

void expect_near(const std::vector<PositionLogprobs>& got,
                 const std::vector<PositionLogprobs>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size());
    for (size_t k = 0; k < got[i].size(); ++k) {
      EXPECT_NEAR(got[i][k].logprob, expected[i][k].logprob, 1e-3F);
    }
  }
}

TEST_F(GpuSampling, LogprobsAreTheCpus) {
  Request request = greedy(tiny_prompt(70, 5), 6);
  request.sampling.logprobs = 3;
  request.sampling.prompt_logprobs = 2;
  for (const int budget : {256, 33}) {
    EngineConfig config = tiny_f32("cuda");
    config.max_num_batched_tokens = budget;
    const auto got = run_all(*make_engine(config), {request}).front();
    const auto expected = cpu_answers({request}).front();
    ASSERT_EQ(got.token_ids, expected.token_ids);
    ASSERT_EQ(got.prompt_logprobs.size(), 70U);
    expect_near(got.logprobs, expected.logprobs);
    expect_near(got.prompt_logprobs, expected.prompt_logprobs);
  }
}

// Slots are reused while steps of their earlier sequences are in flight: the engine finds one step
// late that a sequence ended at a stop token, and requests are cancelled at any time. No request
// may get the log probabilities of another's prompt.
TEST_F(GpuSampling, PromptLogprobsStayWithTheirRequest) {
  constexpr int kNumPrompts = 48;
  EngineConfig config = tiny_f32("cuda");
  const auto cpu = make_engine(tiny_f32("cpu"));
  std::vector<Request> requests;
  for (int i = 0; i < kNumPrompts; ++i) {
    Request request = greedy(tiny_prompt(2 + (i * 29) % 90, static_cast<uint64_t>(i)), 1 + i % 4);
    request.sampling.prompt_logprobs = i % 3;
    if (i % 2 == 0) {
      const Collected answer = run_all(*cpu, {request}).front();
      request.sampling.max_tokens = 40;
      request.sampling.stop_token_ids = {answer.token_ids.back()};
    }
    requests.push_back(request);
  }
  const std::vector<Collected> expected = run_all(*cpu, requests);
  for (const int max_num_seqs : {1, 2, 3}) {
    for (const int budget : {256, 17}) {
      config.max_num_seqs = max_num_seqs;
      config.max_num_batched_tokens = budget;
      const auto engine = make_engine(config);
      std::vector<std::unique_ptr<RequestStream>> kept;
      std::vector<std::unique_ptr<RequestStream>> cancelled;
      for (int i = 0; i < kNumPrompts; ++i) {
        kept.push_back(std::move(*engine->submit(requests[static_cast<size_t>(i)])));
        cancelled.push_back(std::move(*engine->submit(requests[static_cast<size_t>(i)])));
        if (i % 3 == 0) cancelled.back()->cancel();
      }
      int num_ties = 0;
      for (int i = 0; i < kNumPrompts; ++i) {
        const auto at = static_cast<size_t>(i);
        if (i % 3 == 1) cancelled[at]->next();
        cancelled[at]->cancel();
        const Collected got = collect(*kept[at]);
        SCOPED_TRACE(i);
        num_ties += got.token_ids == expected[at].token_ids ? 0 : 1;
        EXPECT_EQ(got.prompt_logprobs.size(), requests[at].prompt_token_ids.size());
        expect_near(got.prompt_logprobs, expected[at].prompt_logprobs);
      }
      EXPECT_LE(num_ties, kMaxTies);
      stats_at_rest(*engine);
    }
  }
}

TEST_F(GpuSampling, CancellingOneLeavesTheOthers) {
  const auto engine = make_engine(tiny_f32("cuda"));
  const Request request = greedy(tiny_prompt(30, 3), 200);
  const auto alone = run_all(*engine, {request}).front();
  auto cancelled = engine->submit(greedy(tiny_prompt(50, 1), 400));
  auto kept = engine->submit(request);
  ASSERT_TRUE(cancelled.ok() && kept.ok());
  (*cancelled)->next();
  (*cancelled)->cancel();
  EXPECT_EQ(collect(**cancelled).finish_reason, FinishReason::kCancelled);
  const Collected answer = collect(**kept);
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  EXPECT_EQ(answer.token_ids, alone.token_ids);
  stats_at_rest(*engine);
}

}  // namespace
}  // namespace quire::testing
