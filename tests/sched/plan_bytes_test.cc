// Plans survive the way to another node, and malformed bytes are refused.
#include "sched/plan_bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "support/shared_data.h"

namespace quire {
namespace {

constexpr int kVocabSize = 96;
const SchedulerConfig kLimits = {.max_num_seqs = 8,
                                 .max_num_batched_tokens = 64,
                                 .max_model_len = 512,
                                 .block_size = 16,
                                 .tables = {{.num_blocks = 40}, {.num_blocks = 20}},
                                 .num_drafts = 8};

Result<BatchPlan> read_back(std::string_view bytes) {
  return plan_from_bytes(bytes, kLimits, kVocabSize);
}

class PlanMaker {
 public:
  explicit PlanMaker(unsigned seed) : random_(seed) {}

  BatchPlan plan() {
    BatchPlan plan;
    plan.step_id = random_();
    plan.decode_q_len = number(1, 4);
    plan.max_next_drafts = number(0, 4);
    for (int i = number(0, 3); i > 0; --i) plan.slots_removed.push_back(number(0, 7));
    for (int i = number(0, 3); i > 0; --i) plan.slots_added.push_back(slot());
    for (int i = number(0, 3); i > 0; --i) {
      plan.block_appends.push_back({.slot = number(0, 7),
                                    .table = 1,
                                    .first = number(0, 27),
                                    .block_ids = numbers(number(0, 5), 0, 19)});
    }
    for (int i = number(0, 3); i > 0; --i) plan.token_masks.push_back({7U, 1U << 31, 0U});
    const int num_spans = number(1, 5);
    plan.num_decode = number(0, num_spans);
    for (int i = 0; i < num_spans; ++i) {
      const int num_tokens = i < plan.num_decode ? plan.decode_q_len : number(1, 9);
      const bool is_constrained = plan.token_masks.size() > 1 && flip();
      plan.spans.push_back({.seq_id = random_(),
                            .slot = number(0, 7),
                            .decodes = flip(),
                            .num_computed = number(0, 400),
                            .num_tokens = num_tokens,
                            .first_token = plan.num_tokens(),
                            .num_blocks = number(26, 32),
                            .samples = flip(),
                            .token_after = number(0, kVocabSize - 1),
                            .num_drafts = is_constrained ? 0 : number(0, num_tokens - 1),
                            .num_prompt_logprobs = number(-1, 5),
                            .mask_idx = is_constrained ? 1 : -1,
                            .reports_drafts = flip()});
      const auto ids = numbers(num_tokens, kPlaceholderToken, kVocabSize - 1);
      plan.token_ids.insert(plan.token_ids.end(), ids.begin(), ids.end());
    }
    return plan;
  }

  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  bool flip() { return number(0, 1) == 1; }
  std::vector<int32_t> numbers(int count, int low, int high) {
    std::vector<int32_t> all;
    for (int i = 0; i < count; ++i) all.push_back(number(low, high));
    return all;
  }

  SlotAdded slot() {
    SamplingParams params;
    params.n = number(1, 3);
    params.temperature = 0.1F * static_cast<float>(number(0, 20));
    params.top_p = 0.9F;
    params.top_k = number(-1, 50);
    params.min_p = 0.05F;
    if (flip()) params.seed = random_();
    params.repetition_penalty = 1.1F;
    params.presence_penalty = -0.5F;
    params.frequency_penalty = 0.25F;
    params.logit_bias = {{3, -1.5F}, {95, 2.0F}};
    params.allowed_token_ids = numbers(number(0, 3), 0, kVocabSize - 1);
    params.bad_words = {"bad", std::string("w\0rd", 4)};
    params.max_tokens = 17;
    params.min_tokens = 2;
    params.stop = {"", "stop"};
    params.stop_token_ids = {4};
    params.include_stop_str_in_output = flip();
    params.ignore_eos = flip();
    if (flip()) params.logprobs = number(0, 20);
    if (flip()) params.prompt_logprobs = number(0, 20);
    params.skip_special_tokens = flip();
    params.detokenize = flip();
    SamplingSpec spec = {.params = std::make_shared<const SamplingParams>(std::move(params)),
                         .seed = random_(),
                         .end_token_ids = {2, 200},  // beyond the vocabulary: it is never sampled
                         .bad_words_ids = {{1, 2}, {}, {3}}};
    const int num_tokens = number(1, 40);
    return {.slot = number(0, 7),
            .seq_id = random_(),
            .token_ids = numbers(num_tokens, 0, kVocabSize - 1),
            .num_prompt_tokens = number(0, num_tokens),
            .sampling = std::make_shared<const SamplingSpec>(std::move(spec))};
  }

  std::mt19937_64 random_;
};

void expect_same(const SamplingParams& a, const SamplingParams& b) {
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.temperature, b.temperature);
  EXPECT_EQ(a.top_p, b.top_p);
  EXPECT_EQ(a.top_k, b.top_k);
  EXPECT_EQ(a.min_p, b.min_p);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.repetition_penalty, b.repetition_penalty);
  EXPECT_EQ(a.presence_penalty, b.presence_penalty);
  EXPECT_EQ(a.frequency_penalty, b.frequency_penalty);
  EXPECT_EQ(a.logit_bias, b.logit_bias);
  EXPECT_EQ(a.allowed_token_ids, b.allowed_token_ids);
  EXPECT_EQ(a.bad_words, b.bad_words);
  EXPECT_EQ(a.max_tokens, b.max_tokens);
  EXPECT_EQ(a.min_tokens, b.min_tokens);
  EXPECT_EQ(a.stop, b.stop);
  EXPECT_EQ(a.stop_token_ids, b.stop_token_ids);
  EXPECT_EQ(a.include_stop_str_in_output, b.include_stop_str_in_output);
  EXPECT_EQ(a.ignore_eos, b.ignore_eos);
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
  EXPECT_EQ(a.skip_special_tokens, b.skip_special_tokens);
  EXPECT_EQ(a.detokenize, b.detokenize);
}

void expect_same(const SlotAdded& a, const SlotAdded& b) {
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.seq_id, b.seq_id);
  EXPECT_EQ(a.token_ids.get(), b.token_ids.get());
  EXPECT_EQ(a.num_prompt_tokens, b.num_prompt_tokens);
  EXPECT_EQ(a.sampling->seed, b.sampling->seed);
  EXPECT_EQ(a.sampling->end_token_ids, b.sampling->end_token_ids);
  EXPECT_EQ(a.sampling->bad_words_ids, b.sampling->bad_words_ids);
  expect_same(*a.sampling->params, *b.sampling->params);
}

void expect_same(const SeqSpan& a, const SeqSpan& b) {
  EXPECT_EQ(a.seq_id, b.seq_id);
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.decodes, b.decodes);
  EXPECT_EQ(a.num_computed, b.num_computed);
  EXPECT_EQ(a.num_tokens, b.num_tokens);
  EXPECT_EQ(a.first_token, b.first_token);
  EXPECT_EQ(a.num_blocks, b.num_blocks);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.token_after, b.token_after);
  EXPECT_EQ(a.num_drafts, b.num_drafts);
  EXPECT_EQ(a.num_prompt_logprobs, b.num_prompt_logprobs);
  EXPECT_EQ(a.mask_idx, b.mask_idx);
  EXPECT_EQ(a.reports_drafts, b.reports_drafts);
}

void expect_same(const BatchPlan& a, const BatchPlan& b) {
  EXPECT_EQ(a.step_id, b.step_id);
  EXPECT_EQ(a.slots_removed, b.slots_removed);
  ASSERT_EQ(a.slots_added.size(), b.slots_added.size());
  for (size_t i = 0; i < a.slots_added.size(); ++i) expect_same(a.slots_added[i], b.slots_added[i]);
  ASSERT_EQ(a.block_appends.size(), b.block_appends.size());
  for (size_t i = 0; i < a.block_appends.size(); ++i) {
    EXPECT_EQ(a.block_appends[i].slot, b.block_appends[i].slot);
    EXPECT_EQ(a.block_appends[i].table, b.block_appends[i].table);
    EXPECT_EQ(a.block_appends[i].first, b.block_appends[i].first);
    EXPECT_EQ(a.block_appends[i].block_ids, b.block_appends[i].block_ids);
  }
  EXPECT_EQ(a.decode_q_len, b.decode_q_len);
  EXPECT_EQ(a.max_next_drafts, b.max_next_drafts);
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (size_t i = 0; i < a.spans.size(); ++i) expect_same(a.spans[i], b.spans[i]);
  EXPECT_EQ(a.num_decode, b.num_decode);
  EXPECT_EQ(a.token_ids, b.token_ids);
  EXPECT_EQ(a.token_masks, b.token_masks);
}

TEST(PlanBytes, GiveTheSamePlan) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const BatchPlan plan = PlanMaker(seed).plan();
    const Result<BatchPlan> read = read_back(plan_to_bytes(plan));
    ASSERT_TRUE(read.ok()) << seed << " " << read.status().message();
    expect_same(*read, plan);
  }
}

// The fuzzer starts from these plans. A seed that is refused would lead it nowhere.
TEST(PlanBytes, ReadTheSeedsOfTheFuzzer) {
  for (int i = 0; i < 6; ++i) {
    const auto bytes =
        read_file(testing::source_path(fmt::format("fuzz/corpus/plan_bytes/plan{}", i)), 4096);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_TRUE(read_back(*bytes).ok()) << i;
  }
}

TEST(PlanBytes, RefuseMissingAndFurtherBytes) {
  const std::string bytes = plan_to_bytes(PlanMaker(7).plan());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(read_back(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(read_back(bytes + '\0').ok());
}

// A plan that is read is within the bounds.
TEST(PlanBytes, SurviveChangedBytes) {
  PlanMaker maker(1);
  int num_read = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string bytes = plan_to_bytes(PlanMaker(seed % 20).plan());
    for (int i = maker.number(1, 4); i > 0; --i) {
      bytes[static_cast<size_t>(maker.number(0, static_cast<int>(bytes.size()) - 1))] =
          static_cast<char>(maker.number(0, 255));
    }
    const Result<BatchPlan> read = read_back(bytes);
    if (!read.ok()) continue;
    ++num_read;
    for (const SeqSpan& span : read->spans) {
      ASSERT_LE(int64_t{span.first_token} + span.num_tokens, read->num_tokens());
      ASSERT_LT(span.slot, kLimits.max_num_seqs);
    }
  }
  EXPECT_GT(num_read, 100);
}

TEST(PlanBytes, RefuseIndicesBeyondTheBounds) {
  const auto is_refused = [](auto change) {
    for (unsigned seed = 0;; ++seed) {
      BatchPlan plan = PlanMaker(seed).plan();
      if (plan.slots_added.empty() || plan.slots_removed.empty() || plan.block_appends.empty() ||
          plan.block_appends[0].block_ids.empty() || plan.token_masks.empty()) {
        continue;
      }
      change(plan);
      return !read_back(plan_to_bytes(plan)).ok();
    }
  };
  EXPECT_FALSE(is_refused([](BatchPlan&) {}));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.slots_removed[0] = 8; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.slots_added[0].slot = -1; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.slots_added[0].token_ids.push_back(96); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.slots_added[0].num_prompt_tokens = 50; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.block_appends[0].block_ids[0] = 20; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.block_appends[0].table = 2; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.block_appends[0].first = -1; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.block_appends[0].first = 32; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) {
    plan.block_appends[0].block_ids.resize(33 - static_cast<size_t>(plan.block_appends[0].first));
  }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].num_blocks = 33; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) {
    plan.spans[0].num_computed = plan.spans[0].num_blocks * kLimits.block_size;
  }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].num_prompt_logprobs = 21; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].num_prompt_logprobs = -2; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) {
    SlotAdded& added = plan.slots_added[0];
    SamplingSpec spec = *added.sampling;
    SamplingParams params = *spec.params;
    params.logprobs = 21;
    spec.params = std::make_shared<const SamplingParams>(std::move(params));
    added.sampling = std::make_shared<const SamplingSpec>(std::move(spec));
  }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) {  // more tokens than a step may have
    const int num_more = kLimits.max_num_batched_tokens + 1 - plan.num_tokens();
    plan.spans.back().num_tokens += num_more;
    plan.token_ids.resize(plan.token_ids.size() + static_cast<size_t>(num_more));
  }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.token_ids.push_back(1); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans.push_back(plan.spans.back()); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.max_next_drafts = 9; }));
  EXPECT_TRUE(
      is_refused([](BatchPlan& plan) { plan.token_masks.resize(static_cast<size_t>(8 * 9 + 1)); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].slot = 8; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].first_token = 1 << 30; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].num_tokens = 0; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.spans[0].num_drafts = 10; }));
  EXPECT_TRUE(is_refused(
      [](BatchPlan& plan) { plan.spans[0].mask_idx = static_cast<int>(plan.token_masks.size()); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.num_decode = 6; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.token_ids[0] = -2; }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) { plan.token_masks[0].resize(4); }));
  EXPECT_TRUE(is_refused([](BatchPlan& plan) {  // a chunk among the decodes
    plan.num_decode = 1;
    plan.decode_q_len = plan.spans[0].num_tokens % 8 + 1;
  }));
}

TEST(PlanBytes, RefuseAnyLengthOfDecodesBeyondTheBounds) {
  BatchPlan plan;
  plan.token_ids = {1};
  plan.spans.push_back({.num_tokens = 1, .num_blocks = 1});
  for (const int length : {1, 9}) {
    plan.decode_q_len = length;
    EXPECT_TRUE(read_back(plan_to_bytes(plan)).ok()) << length;
  }
  for (const int length :
       {0, 10, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    plan.decode_q_len = length;
    EXPECT_FALSE(read_back(plan_to_bytes(plan)).ok()) << length;
  }
}

}  // namespace
}  // namespace quire
