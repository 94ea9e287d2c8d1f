#include "cpu/platform/host_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/cpu_topology.h"
#include "cpu/platform/lookup_drafter.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

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
  Status forward(const StepInput& input) override {
    tokens_.assign(input.token_ids, input.token_ids + input.num_tokens);
    affinity_ = thread_affinity();
    return {};
  }
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits) override {
    for (int i = 0; i < num_rows; ++i) {
      const int32_t token = tokens_[static_cast<size_t>(rows[i])];
      float* row = logits.as<float>() + int64_t{i} * kVocabSize;
      std::fill_n(row, kVocabSize, 0.0F);
      row[(token + 1) % kVocabSize] = token == broken_token_ ? kNan : 5.0F;
    }
    return {};
  }

  Status hidden_states(const int32_t*, int, TensorView) override { return {}; }

  const std::vector<int32_t>& tokens() const { return tokens_; }  // of the last step
  const std::vector<int>& affinity() const { return affinity_; }  // of the thread that ran it

 private:
  int32_t broken_token_;
  ModelConfig config_;
  std::vector<KvGroup> groups_ = std::vector<KvGroup>(1);
  std::vector<int32_t> tokens_;
  std::vector<int> affinity_;
};

std::shared_ptr<const SamplingSpec> greedy_spec(std::optional<int> prompt_logprobs) {
  SamplingParams params;
  params.temperature = 0;
  params.prompt_logprobs = prompt_logprobs;
  return std::make_shared<SamplingSpec>(
      SamplingSpec{.params = std::make_shared<SamplingParams>(params)});
}

StepResult run_step(Runner& runner, std::shared_ptr<const BatchPlan> plan) {
  runner.enqueue(std::move(plan));
  StepResult result = runner.wait();
  EXPECT_TRUE(result.error.ok()) << result.error.message();
  return result;
}

// Runs one prompt in chunks of two tokens, with log probabilities of all of it.
SpanResult run_prompt(CountingModel& model, const std::vector<int32_t>& prompt,
                      const std::vector<ThreadPlace>& places = std::vector<ThreadPlace>(2)) {
  HostDevice device(places);
  RunnerParts parts;
  parts.instance = {.model = &model};
  const ModelLimits limits = {.max_num_tokens = 16, .max_num_logit_rows = 2, .max_model_len = 64};
  parts.sizes = {.limits = limits, .max_num_seqs = 2, .vocab_size = kVocabSize};
  std::unique_ptr<Runner> runner = value_of(HostRunner::create(parts, device));
  const auto spec = greedy_spec(1);
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
    StepResult result = run_step(*runner, plan);
    if (!result.spans.empty()) sampled = std::move(result.spans.front());
  }
  return sampled;
}

TEST(HostRunner, BindsItsThreadAndNotTheCallers) {
  const std::vector<int> before = thread_affinity();
  ASSERT_FALSE(before.empty());
  CountingModel model(-1);
  run_prompt(model, {1, 2, 3}, {{.cpus = {before.back()}}, {.cpus = {before.front()}}});
  EXPECT_THAT(model.affinity(), ElementsAre(before.back()));
  EXPECT_EQ(thread_affinity(), before);
  run_prompt(model, {1, 2, 3});
  EXPECT_EQ(model.affinity(), before) << "a pool that is not pinned";
}

// The scratch of matrix products.
TEST(CpuPlatform, MemoryOfARunnerGrowsWithThreadsAndMatrices) {
  const auto bytes_with = [](int num_threads, const RunnerSizes& sizes) {
    ThreadChoice threads;
    threads.places.resize(static_cast<size_t>(num_threads));
    return make_cpu_platform({.threads = threads}).value()->runner_bytes(sizes, {}).buffers;
  };
  RunnerSizes sizes;
  sizes.max_columns = 1024;
  const int64_t one = bytes_with(1, sizes);
  // The activations of 256 rows in F32, and 96 KiB per thread.
  EXPECT_GE(one, (1 << 20) + (96 << 10));
  EXPECT_GE(bytes_with(3, sizes), one + 2 * (96 << 10));
  RunnerSizes wider = sizes;
  wider.max_columns = 2048;
  EXPECT_GE(bytes_with(1, wider), one + (1 << 20));
  RunnerSizes latent = sizes;
  latent.latent_head_width = 640;
  EXPECT_EQ(bytes_with(1, latent), one + 256 * 640 * 4);
}

TEST(HostDevice, ChoosesTheThreadsOfAStepByItsRows) {
  HostDevice device(std::vector<ThreadPlace>(3), {.decode = 1, .prefill = 2});
  EXPECT_EQ(device.num_threads_for(1), 1);
  EXPECT_EQ(device.num_threads_for(kMaxDecodeRows), 1);
  EXPECT_EQ(device.num_threads_for(kMaxDecodeRows + 1), 2);
  device.step_threads = {};
  EXPECT_EQ(device.num_threads_for(1), 3);
  EXPECT_EQ(device.num_threads_for(kMaxDecodeRows + 1), 3);
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
  EXPECT_THAT(sampled.error.message(), HasSubstr("position 3; got NaN for token 4"));
}

// Proposes the right tokens, but a wrong one at the position wrong_at of every slot's drafts.
class CountingDrafter final : public HostDrafter {
 public:
  static constexpr int kNumDrafts = 4;

  std::vector<int> most = {};  // proposals by slot
  int wrong_at = kNumDrafts;
  std::vector<int32_t> num_wanted = {};  // of the last step's spans

  Status update_slots(const BatchPlan& /*plan*/) override { return {}; }
  Status propose(const HostDraftCall& call) override {
    num_wanted.assign(call.num_wanted, call.num_wanted + call.num_spans);
    for (int i = 0; i < call.num_spans; ++i) {
      const int slot = call.slots[i];
      if (slot < 0) continue;
      int32_t* next = call.next_tokens + slot * (1 + kNumDrafts);
      for (int k = 0; k < kNumDrafts; ++k) {
        next[1 + k] = (next[0] + 1 + k + (k == wrong_at ? 1 : 0)) % kVocabSize;
      }
      call.num_proposed[slot] = std::min(most[static_cast<size_t>(slot)], call.num_wanted[i]);
    }
    return {};
  }
};

class HostRunnerDraftsTest : public ::testing::Test {
 protected:
  void SetUp() override { make_runner({}); }

  void make_runner(const Verification& verification) {
    RunnerParts parts;
    parts.instance = {.model = &model_};
    const ModelLimits limits = {.max_num_tokens = 64,
                                .max_num_logit_rows = 8,  // less than a step's rows
                                .max_model_len = 64,
                                .num_drafts = CountingDrafter::kNumDrafts};
    parts.sizes = {.limits = limits, .max_num_seqs = 4, .vocab_size = kVocabSize};
    parts.drafts = drafter_;
    parts.verification = verification;
    runner_ = value_of(HostRunner::create(parts, device_));
  }

  // Starts a sequence in each slot; its prompt is the token slot + 1. The slots then have the token
  // slot + 2, and as many drafts as the drafter proposes.
  void start(std::vector<int> num_proposals) {
    drafter_->most = std::move(num_proposals);
    auto plan = std::make_shared<BatchPlan>();
    plan->decode_q_len = 1 + CountingDrafter::kNumDrafts;
    for (int slot = 0; slot < 4; ++slot) {
      plan->slots_added.push_back({.slot = slot,
                                   .token_ids = std::vector<int32_t>{slot + 1},
                                   .num_prompt_tokens = 1,
                                   .sampling = greedy_spec({})});
      plan->block_appends.push_back({.slot = slot, .block_ids = {slot + 1}});
      plan->spans.push_back(
          {.slot = slot, .num_tokens = 1, .first_token = slot, .num_blocks = 1, .samples = true});
      plan->token_ids.push_back(slot + 1);
    }
    run_step(*runner_, plan);
  }

  // Verifies num_drafts[i] drafts of slots[i], in spans of one length.
  std::vector<SpanResult> decode(const std::vector<int>& slots,
                                 const std::vector<int>& num_drafts) {
    auto plan = std::make_shared<BatchPlan>();
    plan->decode_q_len = 1 + CountingDrafter::kNumDrafts;
    for (size_t i = 0; i < slots.size(); ++i) {
      plan->spans.push_back({.slot = slots[i],
                             .decodes = true,
                             .num_computed = 12,
                             .num_tokens = plan->decode_q_len,
                             .first_token = plan->num_tokens(),
                             .num_blocks = 1,
                             .samples = true,
                             .num_drafts = num_drafts[i]});
      plan->token_ids.resize(plan->spans.size() * static_cast<size_t>(plan->decode_q_len),
                             kPlaceholderToken);
    }
    plan->num_decode = static_cast<int>(slots.size());
    return run_step(*runner_, plan).spans;
  }

  // The verified drafts and the tokens of each span.
  static std::vector<std::pair<int, int>> counts(const std::vector<SpanResult>& spans) {
    std::vector<std::pair<int, int>> all;
    for (const SpanResult& span : spans) {
      EXPECT_TRUE(span.error.ok()) << span.error.message();
      all.emplace_back(span.num_drafts, static_cast<int>(span.tokens.size()));
    }
    return all;
  }

  CountingModel model_{-1};
  std::shared_ptr<CountingDrafter> drafter_ = std::make_shared<CountingDrafter>();
  HostDevice device_{2};
  std::unique_ptr<Runner> runner_;
};

TEST_F(HostRunnerDraftsTest, ComputesOnlyTheDraftsThatWereProposed) {
  start({4, 4, 0, 2});
  EXPECT_THAT(drafter_->num_wanted, ElementsAre(4, 4, 4, 4));
  drafter_->most = {1, 0, 0, 0};
  const std::vector<SpanResult> spans = decode({0, 1, 2, 3}, {4, 4, 4, 4});
  EXPECT_THAT(model_.tokens(), ElementsAre(2, 3, 4, 5, 6, 3, 4, 5, 6, 7, 4, 5, 6, 7));
  EXPECT_THAT(counts(spans), ElementsAre(Pair(4, 5), Pair(4, 5), Pair(0, 1), Pair(2, 3)));
  EXPECT_EQ(spans[0].tokens.back().token_id, 7);
  EXPECT_EQ(spans[1].tokens.back().token_id, 0);
  EXPECT_EQ(spans[2].tokens.back().token_id, 5);
  EXPECT_EQ(spans[3].tokens.back().token_id, 0);
  EXPECT_THAT(counts(decode({0, 1}, {4, 4})), ElementsAre(Pair(1, 2), Pair(0, 1)));
  EXPECT_THAT(model_.tokens(), ElementsAre(7, 0, 0));
}

TEST_F(HostRunnerDraftsTest, VerifiesNoMoreDraftsThanPlanned) {
  start({4, 4, 4, 4});
  const std::vector<SpanResult> spans = decode({0, 1, 2}, {1, 0, 4});
  EXPECT_THAT(model_.tokens(), ElementsAre(2, 3, 3, 4, 5, 6, 7, 0));
  EXPECT_THAT(counts(spans), ElementsAre(Pair(1, 2), Pair(0, 1), Pair(4, 5)));
  EXPECT_THAT(drafter_->num_wanted, ElementsAre(1, 0, 4));
}

TEST_F(HostRunnerDraftsTest, CountsRejectedDraftsAsVerified) {
  drafter_->wrong_at = 1;
  start({4, 1, 0, 2});
  EXPECT_THAT(counts(decode({0, 1, 2, 3}, {4, 4, 4, 4})),
              ElementsAre(Pair(4, 2), Pair(1, 2), Pair(0, 1), Pair(2, 2)));
}

// One step of a size is not enough to tell its time: the first may contain first-use costs.
TEST_F(HostRunnerDraftsTest, MeasuresAStepBeforeItVerifiesDraftsAdaptively) {
  make_runner({.is_adaptive = true});
  start({4, 4, 4, 4});
  EXPECT_THAT(counts(decode({0, 1, 2, 3}, {4, 4, 4, 4})),
              ElementsAre(Pair(0, 1), Pair(0, 1), Pair(0, 1), Pair(0, 1)));
  EXPECT_THAT(model_.tokens(), ElementsAre(2, 3, 4, 5));
}

// Runs the lookup drafter on one slot, as a runner does after a step.
class LookupDrafterTest : public ::testing::Test {
 protected:
  static constexpr int kNumDrafts = 3;

  void start(const std::vector<int32_t>& prompt) {
    BatchPlan plan;
    plan.slots_added = {{.token_ids = prompt,
                         .num_prompt_tokens = static_cast<int>(prompt.size()),
                         .sampling = {}}};
    ASSERT_TRUE(drafter_->update_slots(plan).ok());
    num_computed_ = static_cast<int32_t>(prompt.size());
  }

  // Continues the sequence with the accepted drafts and one more token; returns the new drafts.
  std::vector<int32_t> propose(int num_accepted, int32_t newest, int32_t num_wanted) {
    num_computed_ += num_accepted;
    next_tokens_[0] = newest;
    const int32_t slot = 0;
    int32_t num_proposed = -1;
    const HostDraftCall call = {.slots = &slot,
                                .num_spans = 1,
                                .num_wanted = &num_wanted,
                                .num_computed = &num_computed_,
                                .next_tokens = next_tokens_.data(),
                                .num_proposed = &num_proposed,
                                .confidences = confidences_.data()};
    EXPECT_TRUE(drafter_->propose(call).ok());
    num_computed_ += 1;
    return {next_tokens_.begin() + 1, next_tokens_.begin() + 1 + num_proposed};
  }

  ThreadPool pool_{1};
  std::shared_ptr<HostDrafter> drafter_ =
      make_lookup_drafter({.min_match = 2, .max_match = 2},
                          {.num_drafts = kNumDrafts, .max_num_seqs = 1, .vocab_size = 100}, pool_);
  int32_t num_computed_ = 0;
  std::vector<int32_t> next_tokens_ = std::vector<int32_t>(1 + kNumDrafts);
  std::vector<float> confidences_ = std::vector<float>(kNumDrafts);
};

TEST_F(LookupDrafterTest, ProposesTheTokensAfterAMatch) {
  start({1, 2, 3, 4, 5, 1});
  EXPECT_THAT(propose(0, 9, kNumDrafts), IsEmpty());
  EXPECT_THAT(propose(0, 1, kNumDrafts), IsEmpty());
  EXPECT_THAT(propose(0, 2, kNumDrafts), ElementsAre(3, 4, 5));
  EXPECT_THAT(propose(2, 9, kNumDrafts), IsEmpty());  // ... 1 2 3 4 9
  EXPECT_THAT(propose(0, 1, 2), ElementsAre(2, 3));   // ... 9 1, as after the prompt
}

TEST_F(LookupDrafterTest, RemembersTheTokensOfStepsThatWantedNoDrafts) {
  start({7, 8});
  for (const int32_t token : {1, 2, 3, 4, 1, 2}) EXPECT_THAT(propose(0, token, 0), IsEmpty());
  EXPECT_THAT(propose(0, 3, 1), ElementsAre(4));
}

}  // namespace
}  // namespace quire::testing
