#include "cpu/platform/host_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace quire {
namespace {

constexpr int kVocabSize = 8;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A model whose logits predict token n after token n - 1, and are NaN after `broken_token`.
class CountingModel final : public Model {
 public:
  explicit CountingModel(int32_t broken_token) : broken_token_(broken_token) {
    config_.vocab_size = kVocabSize;
  }

  const ModelConfig& config() const override { return config_; }
  const std::vector<KvGroup>& kv_groups() const override { return groups_; }
  Status forward(const StepInput& input, Stream& /*stream*/) override {
    tokens_.assign(input.token_ids, input.token_ids + input.num_tokens);
    return {};
  }
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits,
                        Stream& /*stream*/) override {
    for (int i = 0; i < num_rows; ++i) {
      const int32_t token = tokens_[static_cast<size_t>(rows[i])];
      float* row = logits.as<float>() + int64_t{i} * kVocabSize;
      std::fill_n(row, kVocabSize, 0.0F);
      row[(token + 1) % kVocabSize] = token == broken_token_ ? kNan : 5.0F;
    }
    return {};
  }

  Status hidden_states(const int32_t*, int, TensorView, Stream&) override { return {}; }

 private:
  int32_t broken_token_;
  ModelConfig config_;
  std::vector<KvGroup> groups_ = std::vector<KvGroup>(1);
  std::vector<int32_t> tokens_;
};

// Runs one prompt in chunks of two tokens, with log probabilities of all of it.
SpanResult run_prompt(CountingModel& model, const std::vector<int32_t>& prompt) {
  HostDevice device(2);
  RunnerParts parts;
  parts.instances = {{.model = &model}};
  parts.sizes = {.limits = {.max_num_tokens = 16, .max_num_logit_rows = 2, .max_model_len = 64},
                 .max_num_seqs = 2,
                 .vocab_size = kVocabSize};
  Result<std::unique_ptr<Runner>> runner = HostRunner::create(parts, device);
  EXPECT_TRUE(runner.ok());
  SamplingParams params;
  params.temperature = 0;
  params.prompt_logprobs = 1;
  const auto spec = std::make_shared<SamplingSpec>(
      SamplingSpec{.params = std::make_shared<SamplingParams>(params)});
  const auto size = static_cast<int>(prompt.size());
  SpanResult sampled;
  for (int first = 0; first < size; first += 2) {
    auto plan = std::make_shared<BatchPlan>();
    if (first == 0) {
      plan->slots_added = {
          {.seq_id = 7, .token_ids = prompt, .num_prompt_tokens = size, .sampling = spec}};
      plan->block_appends = {{.slot = 0, .first = 0, .block_ids = {1}}};
    }
    const int count = std::min(2, size - first);
    plan->spans = {{.seq_id = 7,
                    .num_computed = first,
                    .num_tokens = count,
                    .num_blocks = 1,
                    .samples = first + count == size,
                    .num_prompt_logprobs = 1}};
    plan->token_ids.assign(prompt.begin() + first, prompt.begin() + first + count);
    (*runner)->enqueue(plan);
    StepResult result = (*runner)->wait();
    EXPECT_TRUE(result.error.ok()) << result.error.message();
    if (!result.spans.empty()) sampled = std::move(result.spans.front());
  }
  return sampled;
}

TEST(HostRunner, GivesLogProbabilitiesOfThePrompt) {
  CountingModel model(-1);
  const SpanResult sampled = run_prompt(model, {1, 2, 3, 5, 6});
  EXPECT_TRUE(sampled.error.ok()) << sampled.error.message();
  ASSERT_EQ(sampled.tokens.size(), 1U);
  EXPECT_EQ(sampled.tokens[0].token_id, 7);
  ASSERT_EQ(sampled.prompt_logprobs.size(), 5U);
  EXPECT_TRUE(sampled.prompt_logprobs[0].empty());
  EXPECT_EQ(sampled.prompt_logprobs[1][0].rank, 1);  // 2 follows 1
  EXPECT_GT(sampled.prompt_logprobs[3][0].rank, 1);  // 5 does not follow 3
}

// The sampled logits are valid, but those of the prompt are not: the error names the first
// position.
TEST(HostRunner, FailsARequestWhosePromptHasBrokenLogits) {
  CountingModel model(3);
  const SpanResult sampled = run_prompt(model, {1, 2, 3, 4, 3, 6});
  EXPECT_EQ(sampled.error.code(), StatusCode::kInternal);
  EXPECT_THAT(sampled.error.message(), testing::HasSubstr("position 3; got NaN for token 4"));
}

}  // namespace
}  // namespace quire
