// CPU ranks that choose tokens from parts of the logits choose the tokens that one rank chooses
// from whole logits rows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "cpu/platform/host_runner.h"
#include "model/weights.h"

namespace quire {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// Parts of 2, 3 and 4 ranks begin at ids that are no multiples of 4, and the last has fewer tokens.
constexpr int kVocabSize = 37;
constexpr int kNumDrafts = 3;

using Table = std::vector<std::vector<float>>;  // logits by token

// Many logits of a row are equal, the largest ones often too.
Table random_table(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1.5F);
  Table table(kVocabSize, std::vector<float>(kVocabSize));
  for (auto& row : table) {
    for (float& logit : row) logit = std::round(normal(random));
  }
  return table;
}

int32_t most_likely_after(const Table& table, int32_t token) {
  return *most_likely_token(table[static_cast<size_t>(token)]);
}

// A model whose logits depend on the newest token alone.
class TableModel final : public Model {
 public:
  TableModel(const Table& table, const Parallel& parallel)
      : table_(table), own_(shard(kVocabSize, parallel)) {
    config_.vocab_size = kVocabSize;
  }

  const ModelConfig& config() const override { return config_; }
  const std::vector<KvGroup>& kv_groups() const override { return groups_; }
  Status forward(const StepInput& input) override {
    tokens_.assign(input.token_ids, input.token_ids + input.num_tokens);
    return {};
  }
  Status compute_logits(const int32_t* rows, int num_rows, TensorView logits) override {
    ++num_whole;
    copy_rows(rows, num_rows, {0, kVocabSize}, logits.as<float>());
    return {};
  }
  bool divides_logits() const override { return own_.count < kVocabSize; }
  Status compute_logits_part(const int32_t* rows, int num_rows) override {
    ++num_parts;
    part_.resize(static_cast<size_t>(num_rows * own_.count));
    copy_rows(rows, num_rows, own_, part_.data());
    return {};
  }
  LogitsPart logits_part(int num_rows) const override {
    return {.logits = {const_cast<float*>(part_.data()), DType::kF32, {num_rows, own_.count}},
            .first_id = static_cast<int32_t>(own_.first)};
  }
  Status hidden_states(const int32_t*, int, TensorView) override { return {}; }

  int num_whole = 0;  // calls of compute_logits()
  int num_parts = 0;  // calls of compute_logits_part()

 private:
  void copy_rows(const int32_t* rows, int num_rows, const Slice& part, float* out) const {
    for (int i = 0; i < num_rows; ++i) {
      const auto& row = table_[static_cast<size_t>(tokens_[static_cast<size_t>(rows[i])])];
      out = std::copy_n(row.begin() + part.first, part.count, out);
    }
  }

  const Table& table_;
  Slice own_;
  ModelConfig config_;
  std::vector<KvGroup> groups_;
  std::vector<int32_t> tokens_;
  std::vector<float> part_;
};

// Proposes the most likely tokens, each with probability 1, but a wrong one after every fifth.
class TableDrafter final : public HostDrafter {
 public:
  explicit TableDrafter(const Table& table) : table_(table) {}

  Status update_slots(const BatchPlan& /*plan*/) override { return {}; }
  Status propose(const HostDraftCall& call) override {
    for (int i = 0; i < call.num_spans; ++i) {
      const int slot = call.slots[i];
      int32_t* const next = call.next_tokens + slot * (1 + kNumDrafts);
      for (int k = 0; k < kNumDrafts; ++k) {
        const int32_t likely = most_likely_after(table_, next[k]);
        next[1 + k] = next[k] % 5 == 0 ? (likely + 1) % kVocabSize : likely;
        if (call.probs == nullptr) continue;
        float* const probs = call.probs + int64_t{slot * kNumDrafts + k} * kVocabSize;
        std::fill_n(probs, kVocabSize, 0.0F);
        probs[next[1 + k]] = 1;
      }
      call.num_proposed[slot] = kNumDrafts;
    }
    return {};
  }

 private:
  const Table& table_;
};

struct Steps {
  std::vector<std::vector<SpanResult>> steps;
  int num_whole = 0;
  int num_parts = 0;
};

struct RunOptions {
  std::vector<SamplingParams> requests;  // by slot
  int num_steps = 12;
  bool drafts = false;
  Verification verification = {};
  bool masks = false;  // only even tokens of slot 0 are allowed
};

std::shared_ptr<const BatchPlan> make_plan(const RunOptions& options, bool is_first) {
  auto plan = std::make_shared<BatchPlan>();
  const int num_drafts = options.drafts && !is_first ? kNumDrafts : 0;
  plan->decode_q_len = options.drafts ? 1 + kNumDrafts : 1;
  for (int slot = 0; slot < std::ssize(options.requests); ++slot) {
    if (is_first) {
      auto spec = std::make_shared<SamplingSpec>();
      spec->params = std::make_shared<SamplingParams>(options.requests[static_cast<size_t>(slot)]);
      spec->seed = 100 + static_cast<uint64_t>(slot);
      spec->end_token_ids = {1, 30};
      plan->slots_added.push_back({.slot = slot,
                                   .token_ids = std::vector<int32_t>{slot + 3},
                                   .num_prompt_tokens = 1,
                                   .sampling = std::move(spec)});
      plan->block_appends.push_back({.slot = slot, .block_ids = {slot + 1}});
    }
    plan->spans.push_back({.slot = slot,
                           .decodes = !is_first,
                           .num_computed = is_first ? 0 : 60,
                           .num_tokens = 1 + num_drafts,
                           .first_token = plan->num_tokens(),
                           .num_blocks = 1,
                           .samples = true,
                           .num_drafts = num_drafts,
                           .mask_idx = options.masks && slot == 0 ? 0 : -1});
    for (int i = 0; i <= num_drafts; ++i) {
      plan->token_ids.push_back(is_first ? slot + 3 : kPlaceholderToken);
    }
  }
  if (options.masks)
    plan->token_masks.resize(1 + static_cast<size_t>(num_drafts), {0x55555555U, 0});
  plan->num_decode = is_first ? 0 : static_cast<int>(plan->spans.size());
  return plan;
}

struct Rank {
  Rank(const Table& table, const RunOptions& options, RankGroup* group, const Parallel& parallel)
      : device(std::vector<ThreadPlace>(2), {}, {.ranks = group, .rank = parallel.rank}),
        model(table, parallel) {
    RunnerParts parts;
    parts.instance = {.model = &model};
    const ModelLimits limits = {.max_num_tokens = 64,
                                .max_num_logit_rows = 64,
                                .max_model_len = 64,
                                .num_drafts = options.drafts ? kNumDrafts : 0,
                                .parallel = parallel};
    parts.sizes = {.limits = limits,
                   .max_num_seqs = static_cast<int>(options.requests.size()),
                   .vocab_size = kVocabSize};
    if (options.drafts) parts.drafts = std::make_shared<TableDrafter>(table);
    parts.verification = options.verification;
    runner = std::move(HostRunner::create(parts, device)).value();
  }

  HostDevice device;
  TableModel model;
  std::unique_ptr<Runner> runner;
};

void expect_same(const SpanResult& got, const SpanResult& expected) {
  EXPECT_EQ(got.error.message(), expected.error.message());
  EXPECT_EQ(got.num_drafts, expected.num_drafts);
  ASSERT_EQ(got.tokens.size(), expected.tokens.size());
  for (size_t i = 0; i < got.tokens.size(); ++i) {
    EXPECT_EQ(got.tokens[i].token_id, expected.tokens[i].token_id);
    EXPECT_EQ(got.tokens[i].logprobs.size(), expected.tokens[i].logprobs.size());
  }
}

void expect_same(const std::vector<SpanResult>& got, const std::vector<SpanResult>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(fmt::format("span {}", i));
    expect_same(got[i], expected[i]);
  }
}

Steps run(const Table& table, const RunOptions& options, int num_ranks) {
  RankGroup group(num_ranks);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(table, options, num_ranks == 1 ? nullptr : &group,
                                           Parallel{rank, num_ranks}));
  }
  Steps all;
  for (int step = 0; step < options.num_steps; ++step) {
    const auto plan = make_plan(options, step == 0);
    for (const auto& rank : ranks) rank->runner->enqueue(plan);
    for (const auto& rank : ranks) {
      StepResult result = rank->runner->wait();
      EXPECT_TRUE(result.error.ok()) << result.error.message();
      if (rank != ranks.front()) {
        expect_same(result.spans, all.steps.back());
      } else {
        all.steps.push_back(std::move(result.spans));
      }
    }
  }
  all.num_whole = ranks.back()->model.num_whole;
  all.num_parts = ranks.back()->model.num_parts;
  return all;
}

// Expects the results of one rank. Whether the ranks choose from parts is the same in every step.
void expect_as_one_rank(const Table& table, const RunOptions& options, bool from_parts,
                        std::initializer_list<int> sizes = {2, 3, 4}) {
  const Steps expected = run(table, options, 1);
  EXPECT_EQ(expected.num_parts, 0);
  for (const int num_ranks : sizes) {
    SCOPED_TRACE(fmt::format("{} ranks", num_ranks));
    const Steps got = run(table, options, num_ranks);
    ASSERT_EQ(got.steps.size(), expected.steps.size());
    for (size_t step = 0; step < got.steps.size(); ++step) {
      SCOPED_TRACE(fmt::format("step {}", step));
      expect_same(got.steps[step], expected.steps[step]);
    }
    EXPECT_EQ(got.num_parts, from_parts ? options.num_steps : 0);
    EXPECT_EQ(got.num_whole, from_parts ? 0 : options.num_steps);
  }
}

SamplingParams at_temperature(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

std::vector<SamplingParams> requests_for_parts() {
  SamplingParams greedy_with_filters = at_temperature(0);
  greedy_with_filters.top_k = 5;
  greedy_with_filters.top_p = 0.5F;
  return {at_temperature(0), at_temperature(1), greedy_with_filters, at_temperature(0.3F),
          at_temperature(5.0F)};
}

TEST(HostRanks, ChooseTheTokensOfOneRankFromParts) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    const Table table = random_table(seed);
    expect_as_one_rank(table, {.requests = requests_for_parts()}, true);
    expect_as_one_rank(table, {.requests = {at_temperature(0)}}, true);
  }
}

// The largest logit is in every part, and then only in the last ones.
TEST(HostRanks, ResolveTiesByTheLowestId) {
  Table table(kVocabSize, std::vector<float>(kVocabSize, -0.0F));
  for (int token = 0; token < kVocabSize; token += 2) {
    for (int id = token; id < kVocabSize; ++id)
      table[static_cast<size_t>(token)][static_cast<size_t>(id)] = 0.0F;
  }
  table[4][18] = table[4][19] = table[4][36] = 2;
  // The last of 11 ranks has no tokens.
  expect_as_one_rank(table, {.requests = requests_for_parts()}, true, {2, 3, 4, 11});
}

TEST(HostRanks, GatherWholeRowsIfAnyRequestNeedsThem) {
  const std::vector<std::function<void(SamplingParams&)>> needs = {
      [](SamplingParams& p) { p.top_k = 4; },
      [](SamplingParams& p) { p.top_p = 0.8F; },
      [](SamplingParams& p) { p.min_p = 0.1F; },
      [](SamplingParams& p) { p.logprobs = 2; },
      [](SamplingParams& p) { p.repetition_penalty = 1.5F; },
      [](SamplingParams& p) { p.presence_penalty = 1; },
      [](SamplingParams& p) {
        p.logit_bias = {{3, 2.0F}};
      },
      [](SamplingParams& p) {
        p.allowed_token_ids = {2, 20, 36};
      },
      [](SamplingParams& p) { p.min_tokens = 100; },
  };
  for (size_t i = 0; i < needs.size(); ++i) {
    SCOPED_TRACE(i);
    RunOptions options = {.requests = requests_for_parts()};
    options.requests.push_back(at_temperature(1));
    needs[i](options.requests.back());
    expect_as_one_rank(random_table(5), options, false);
  }
  expect_as_one_rank(random_table(5), {.requests = requests_for_parts(), .masks = true}, false);
}

// min_tokens is a rule until the output has as many.
TEST(HostRanks, ChooseFromPartsOnceMinTokensIsReached) {
  RunOptions options = {.requests = requests_for_parts()};
  options.requests[1].min_tokens = 4;
  const Table table = random_table(6);
  const Steps expected = run(table, options, 1);
  const Steps got = run(table, options, 2);
  for (size_t step = 0; step < got.steps.size(); ++step) {
    expect_same(got.steps[step], expected.steps[step]);
  }
  EXPECT_EQ(got.num_whole, 4);
  EXPECT_EQ(got.num_parts, options.num_steps - 4);
}

TEST(HostRanks, VerifyDraftsFromParts) {
  const Table table = random_table(7);
  RunOptions options = {.requests = requests_for_parts(), .num_steps = 8, .drafts = true};
  expect_as_one_rank(table, options, true);
  const Steps steps = run(table, options, 2);
  size_t num_tokens = 0;
  for (const SpanResult& span : steps.steps[1]) num_tokens += span.tokens.size();
  EXPECT_GT(num_tokens, options.requests.size());  // some drafts are accepted
  options.verification = {.method = RejectionMethod::kSynthetic,
                          .synthetic_rates = {0.8, 0.5, 0.5}};
  expect_as_one_rank(table, options, true);
  // The distributions of the target are of whole rows.
  options.verification = {.samples_drafts = true};
  expect_as_one_rank(table, options, false);
}

TEST(HostRanks, ReportBrokenLogitsAsOneRank) {
  const auto broken = [](std::initializer_list<std::pair<int, float>> logits) {
    Table table = random_table(8);
    for (std::vector<float>& row : table) {
      for (const auto& [id, logit] : logits) row[static_cast<size_t>(id)] = logit;
    }
    return table;
  };
  Table nowhere = random_table(8);
  for (std::vector<float>& row : nowhere) std::ranges::fill(row, -kInf);
  for (const Table& table : {broken({{30, kNan}}), broken({{30, kNan}, {20, kNan}, {3, kInf}}),
                             broken({{25, kInf}}), nowhere}) {
    expect_as_one_rank(table, {.requests = requests_for_parts(), .num_steps = 1}, true);
    EXPECT_FALSE(
        run(table, {.requests = requests_for_parts(), .num_steps = 1}, 2).steps[0][0].error.ok());
  }
}

}  // namespace
}  // namespace quire
