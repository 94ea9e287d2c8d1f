#include "cuda/sample/device_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "cuda/sample/sampler_rig.h"
#include "sample/sampler.h"

namespace quire::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

#define SKIP_WITHOUT_DEVICE() \
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message()

SlotAdded make_slot(int slot, SamplingParams params, std::vector<int32_t> token_ids = {1, 2, 3},
                    int num_prompt_tokens = -1, uint64_t seed = 0) {
  SlotAdded added;
  added.slot = slot;
  added.num_prompt_tokens =
      num_prompt_tokens < 0 ? static_cast<int>(token_ids.size()) : num_prompt_tokens;
  added.token_ids = std::move(token_ids);
  added.sampling = std::make_shared<SamplingSpec>(SamplingSpec{
      .params = std::make_shared<SamplingParams>(std::move(params)), .seed = seed + 77 * slot});
  return added;
}

void expect_same_logprobs(const PositionLogprobs& device, const PositionLogprobs& host,
                          const std::string& where) {
  ASSERT_EQ(device.size(), host.size()) << where;
  for (size_t k = 0; k < host.size(); ++k) {
    const TokenLogprob& got = device[k];
    const TokenLogprob& want = host[k];
    EXPECT_EQ(got.token_id, want.token_id) << where << " top " << k;
    EXPECT_EQ(got.rank, want.rank) << where << " top " << k;
    if (want.logprob == -kInf) {
      EXPECT_EQ(got.logprob, want.logprob) << where;
    } else {
      EXPECT_NEAR(got.logprob, want.logprob, 2e-6F * (1 + std::abs(want.logprob))) << where;
    }
  }
}

void expect_same(const Compared& both, const std::string& where) {
  ASSERT_EQ(both.device.error.message(), both.host.error.message()) << where;
  ASSERT_EQ(both.device.error.code(), both.host.error.code()) << where;
  if (!both.host.error.ok()) return;
  EXPECT_EQ(both.device.token_id, both.host.token_id) << where;
  expect_same_logprobs(both.device.logprobs, both.host.logprobs, where);
}

void expect_same(const ComparedSpan& both, const std::string& where) {
  ASSERT_EQ(both.device.error.message(), both.host.error.message()) << where;
  ASSERT_EQ(both.device.tokens.size(), both.host.tokens.size()) << where;
  for (size_t i = 0; i < both.host.tokens.size(); ++i) {
    const std::string token = where + " token " + std::to_string(i);
    EXPECT_EQ(both.device.tokens[i].token_id, both.host.tokens[i].token_id) << token;
    expect_same_logprobs(both.device.tokens[i].logprobs, both.host.tokens[i].logprobs, token);
  }
}

template <typename T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

SamplingParams random_filter(std::mt19937& random, int vocab_size) {
  SamplingParams params;
  params.temperature = pick(random, {0.0F, 0.1F, 0.7F, 1.0F, 1.0F, 2.5F, 1e-4F, 1e4F});
  params.top_k = pick(random, {0, 0, 1, 2, 50, 1000, 5000, vocab_size - 1, vocab_size, -1});
  params.top_p = pick(random, {1.0F, 1.0F, 0.95F, 0.5F, 0.1F, 0.999F, 1e-6F, 0.9999999F});
  params.min_p = pick(random, {0.0F, 0.0F, 0.0F, 0.05F, 0.5F, 1.0F, 1e-8F});
  return params;
}

void add_rules(SamplingParams& params, SamplingSpec& spec, std::mt19937& random, int vocab_size) {
  const auto any_id = [&] { return static_cast<int32_t>(random() % vocab_size); };
  if (random() % 2 == 0) {
    params.repetition_penalty = pick(random, {1.0F, 1.3F, 0.8F});
    params.presence_penalty = pick(random, {0.0F, 1.5F, -0.5F});
    params.frequency_penalty = pick(random, {0.0F, 0.7F, -0.3F});
  }
  if (random() % 3 == 0) {
    for (int n = 0; n < 7; ++n)
      params.logit_bias.emplace_back(any_id(), 0.5F * static_cast<float>(n) + 0.1F);
    params.logit_bias.push_back(params.logit_bias.front());
  }
  if (random() % 3 == 0) {
    for (int n = 0; n < 9; ++n) params.allowed_token_ids.push_back(any_id());
  }
  if (random() % 2 == 0) {
    params.min_tokens = 3;
    for (int n = 0; n < vocab_size / 4; ++n) spec.end_token_ids.push_back(any_id());
  }
  if (random() % 3 == 0) {
    for (int n = 0; n < 6; ++n) spec.bad_words_ids.push_back({any_id()});
    for (int n = 0; n < 6; ++n) spec.bad_words_ids.push_back({any_id() % 8, any_id() % 8});
    spec.bad_words_ids.push_back({1, vocab_size});
  }
  if (random() % 2 == 0) params.logprobs = pick(random, {0, 1, 5, 20});
}

// A random mask: it allows few tokens, most, or none, and may be shorter than the vocabulary.
std::vector<uint32_t> random_mask(std::mt19937& random, int vocab_size) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocab_size + 31) / 32);
  const uint32_t kind = random() % 8;
  for (uint32_t& word : mask) {
    word = static_cast<uint32_t>(random());
    if (kind < 3) word &= static_cast<uint32_t>(random() & random());
    if (kind == 3) word |= static_cast<uint32_t>(random() | random());
    if (kind == 4) word = 0;
  }
  if (kind == 4 && random() % 2 == 0) mask[random() % mask.size()] = 1U << random() % 32;
  if (kind == 5) mask.resize(random() % (mask.size() + 1));
  return mask;
}

StepMasks random_masks(std::mt19937& random, size_t num_rows, int vocab_size) {
  StepMasks masks;
  masks.masks.resize(num_rows / 2 + 1);
  for (std::vector<uint32_t>& mask : masks.masks) mask = random_mask(random, vocab_size);
  for (size_t i = 0; i < num_rows; ++i) {
    const auto idx = static_cast<int32_t>(random() % masks.masks.size());
    masks.idx.push_back(random() % 3 == 0 ? -1 : idx);
  }
  return masks;
}

struct Kinds {
  bool filters = false;
  bool rules = false;
  bool masks = false;
};

// Rows whose parameters, rules and known tokens are random.
std::vector<SlotAdded> random_rows(const Kinds& with, int num_rows, int vocab,
                                   std::mt19937& random) {
  std::vector<SlotAdded> added;
  for (int slot = 0; slot < num_rows; ++slot) {
    SamplingParams params;
    if (with.filters) params = random_filter(random, vocab);
    if (!with.filters) params.temperature = pick(random, {0.0F, 0.3F, 1.0F, 3.0F});
    SamplingSpec spec;
    if (with.rules) add_rules(params, spec, random, vocab);
    std::vector<int32_t> ids;
    for (int n = 0; n < 12; ++n) ids.push_back(static_cast<int32_t>(random() % vocab));
    added.push_back(make_slot(slot, params, ids, static_cast<int>(random() % 12), random()));
    SamplingSpec whole = *added.back().sampling;
    whole.end_token_ids = spec.end_token_ids;
    whole.bad_words_ids = spec.bad_words_ids;
    added.back().sampling = std::make_shared<SamplingSpec>(whole);
  }
  return added;
}

class SampledAlike : public testing::TestWithParam<int> {
 protected:
  // Samples rows with random parameters on the device and on the host, from the same random logits.
  void run(const Kinds& with, bool captured, int num_rows, int num_steps, int num_ranks = 1);
  // Does what run() does for spans of 1 to 9 logits rows with a random number of correct drafts:
  // tokens, counts and progress equal those of the CPU, which samples one token after another.
  void run_spans(const Kinds& with, int num_ranks = 1);
};

void SampledAlike::run(const Kinds& with, bool captured, int num_rows, int num_steps,
                       int num_ranks) {
  SKIP_WITHOUT_DEVICE();
  const int vocab = GetParam();
  std::mt19937 random(static_cast<uint32_t>(vocab * 8 + with.filters * 4 + with.rules * 2));
  auto created = SamplerRig::create({.max_num_seqs = num_rows,
                                     .max_rule_seqs = num_rows,
                                     .max_rows = num_rows + 1,
                                     .vocab_size = vocab,
                                     .max_tokens_per_seq = 64,
                                     .num_ranks = num_ranks});
  ASSERT_TRUE(created.ok()) << created.status().message();
  SamplerRig& rig = **created;
  const std::vector<SlotAdded> added = random_rows(with, num_rows, vocab, random);
  ASSERT_TRUE(rig.add_slots(added).ok());
  std::vector<bool> has_failed(static_cast<size_t>(num_rows));  // its sequence has ended
  for (int step = 0; step < num_steps; ++step) {
    std::vector<int32_t> slots;
    std::vector<float> logits;
    for (int slot = 0; slot < num_rows; ++slot) {
      if (has_failed[static_cast<size_t>(slot)]) continue;
      slots.push_back(slot);
      const float spread = pick(random, {1.0F, 3.0F, 8.0F});
      const int levels = pick(random, {0, 0, 16, 1, 256});
      std::vector<float> of_row = random_logits(vocab, spread, levels, random);
      if (random() % 4 == 0) {
        for (float& x : of_row) x = random() % 2 == 0 ? -kInf : x;
        of_row[random() % of_row.size()] = 1.0F;
      }
      logits.insert(logits.end(), of_row.begin(), of_row.end());
    }
    std::shuffle(slots.begin(), slots.end(), random);
    slots.push_back(-1);
    logits.insert(logits.end(), static_cast<size_t>(vocab), kNan);
    const StepMasks masks = with.masks ? random_masks(random, slots.size(), vocab) : StepMasks();
    const auto results =
        captured ? rig.step_captured(logits, slots, masks) : rig.step(logits, slots, masks);
    EXPECT_EQ(rig.num_copies(), 1);
    EXPECT_TRUE(num_ranks == 1 || rig.last_plan().chooses_from_parts());
    for (size_t i = 0; i < results.size(); ++i) {
      if (slots[i] < 0) continue;
      has_failed[static_cast<size_t>(slots[i])] = !results[i].host.error.ok();
      const SamplingParams& p = *added[static_cast<size_t>(slots[i])].sampling->params;
      expect_same(results[i], "step " + std::to_string(step) + " slot " + std::to_string(slots[i]) +
                                  " T " + std::to_string(p.temperature) + " k " +
                                  std::to_string(p.top_k) + " p " + std::to_string(p.top_p) +
                                  " min_p " + std::to_string(p.min_p));
      if (results[i].host.error.ok() && i % 7 == 0) {
        EXPECT_EQ(rig.last_token(slots[i]), results[i].host.token_id);
      }
    }
  }
}

TEST_P(SampledAlike, WithoutFilters) {
  run({}, false, 48, 3);
}
TEST_P(SampledAlike, WithFilters) {
  run({.filters = true}, false, 96, 2);
}
TEST_P(SampledAlike, WithRules) {
  run({.filters = true, .rules = true}, false, 48, 5);
}
TEST_P(SampledAlike, InAGraph) {
  run({.filters = true, .rules = true}, true, 16, 4);
}
TEST_P(SampledAlike, UnfilteredInAGraph) {
  run({}, true, 16, 3);
}
TEST_P(SampledAlike, Masked) {
  run({.masks = true}, false, 48, 4);
}
TEST_P(SampledAlike, MaskedWithFilters) {
  run({.filters = true, .masks = true}, false, 96, 3);
}
TEST_P(SampledAlike, MaskedWithRules) {
  run({.filters = true, .rules = true, .masks = true}, false, 64, 6);
}
TEST_P(SampledAlike, MaskedInAGraph) {
  run({.filters = true, .rules = true, .masks = true}, true, 16, 4);
}

// Ranks with parts that are aligned and not, and an empty one for the smallest vocabulary.
TEST_P(SampledAlike, FromPartsOfRanks) {
  for (const int num_ranks : {2, 3, 7}) run({}, false, 48, 3, num_ranks);
}
TEST_P(SampledAlike, FromPartsOfRanksInAGraph) {
  run({}, true, 16, 3, 3);
}

void SampledAlike::run_spans(const Kinds& with, int num_ranks) {
  SKIP_WITHOUT_DEVICE();
  const int vocab = GetParam();
  constexpr int kNumRows = 12;
  for (int num_drafts = 0; num_drafts < 9; ++num_drafts) {
    std::mt19937 random(static_cast<uint32_t>(vocab + num_drafts));
    const int q_len = 1 + num_drafts;
    auto created = SamplerRig::create({.max_num_seqs = kNumRows,
                                       .max_rule_seqs = kNumRows,
                                       .max_rows = kNumRows * q_len,
                                       .vocab_size = vocab,
                                       .max_tokens_per_seq = 256,
                                       .num_drafts = num_drafts,
                                       .num_ranks = num_ranks});
    ASSERT_TRUE(created.ok()) << created.status().message();
    SamplerRig& rig = **created;
    ASSERT_TRUE(rig.add_slots(random_rows(with, kNumRows, vocab, random)).ok());
    std::vector<int32_t> slots;
    for (int slot = 0; slot < kNumRows; ++slot) slots.push_back(slot);
    for (int step = 0; step < 6; ++step) {
      std::shuffle(slots.begin(), slots.end(), random);
      std::vector<int> num_right;
      for (size_t i = 0; i < slots.size(); ++i) {
        num_right.push_back(static_cast<int>(random() % static_cast<uint32_t>(q_len)));
      }
      std::vector<float> logits =
          random_logits(static_cast<int>(slots.size()) * q_len * vocab, 3.0F, 16, random);
      // An error after accepted drafts is reported by the next step.
      logits[(slots.size() * static_cast<size_t>(q_len) - 1) * static_cast<size_t>(vocab)] =
          num_drafts > 0 ? kNan : 0.0F;
      const auto results = rig.step_spans(logits, slots, num_right, step % 2 == 1);
      std::vector<int32_t> left;
      for (size_t i = 0; i < results.size(); ++i) {
        const int slot = slots[i];
        const std::string where = std::to_string(num_drafts) + " drafts, step " +
                                  std::to_string(step) + " slot " + std::to_string(slot);
        expect_same(results[i], where);
        EXPECT_EQ(rig.num_computed(slot), rig.num_tokens_on_host(slot) - 1) << where;
        if (!results[i].host.error.ok()) continue;
        EXPECT_EQ(rig.last_token(slot), results[i].host.tokens.back().token_id) << where;
        left.push_back(slot);
      }
      slots = left;
      if (HasFailure()) return;
    }
  }
}

TEST_P(SampledAlike, InSpans) {
  run_spans({.filters = true, .rules = true});
}
TEST_P(SampledAlike, InSpansFromPartsOfRanks) {
  run_spans({}, 2);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, SampledAlike, testing::Values(17, 1000, 32000, 128256));

// All logits are equal, or nearly: the cut falls within ties that do not fit into the list.
TEST(DeviceSampler, CutsThroughTiesByIdAsTheCpuDoes) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 128256;
  auto created = SamplerRig::create({8, 8, 8, kVocab, 64});
  ASSERT_TRUE(created.ok());
  SamplerRig& rig = **created;
  std::vector<SlotAdded> added;
  std::vector<float> logits;
  for (int slot = 0; slot < 8; ++slot) {
    SamplingParams params;
    params.top_p = slot % 2 == 0 ? 0.3F : 0.77F;
    params.top_k = slot < 4 ? 0 : 30000;
    params.temperature = slot % 4 < 2 ? 1.0F : 0.5F;
    added.push_back(make_slot(slot, params));
    for (int id = 0; id < kVocab; ++id) {
      logits.push_back(id % 3 == 0 ? 2.0F : 1.999F + 1e-6F * static_cast<float>(id % (slot + 1)));
    }
  }
  ASSERT_TRUE(rig.add_slots(added).ok());
  for (int step = 0; step < 6; ++step) {
    const auto results = rig.step(logits, {0, 1, 2, 3, 4, 5, 6, 7});
    for (size_t i = 0; i < results.size(); ++i) {
      expect_same(results[i], "slot " + std::to_string(i) + " step " + std::to_string(step));
    }
  }
}

TEST(DeviceSampler, FailsOnlyTheRowWhoseLogitsAreBroken) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 1000;
  enum class Kind { kGreedy, kRandom, kFiltered, kLogprobs, kRules, kGreedyParts, kRandomParts };
  for (const Kind kind : {Kind::kGreedy, Kind::kRandom, Kind::kFiltered, Kind::kLogprobs,
                          Kind::kRules, Kind::kGreedyParts, Kind::kRandomParts}) {
    const bool is_greedy = kind == Kind::kGreedy || kind == Kind::kGreedyParts;
    const bool has_parts = kind == Kind::kGreedyParts || kind == Kind::kRandomParts;
    auto created = SamplerRig::create({.max_num_seqs = 6,
                                       .max_rule_seqs = 6,
                                       .max_rows = 6,
                                       .vocab_size = kVocab,
                                       .max_tokens_per_seq = 64,
                                       .num_ranks = has_parts ? 3 : 1});
    ASSERT_TRUE(created.ok());
    SamplerRig& rig = **created;
    SamplingParams params;
    params.temperature = is_greedy ? 0.0F : 1.0F;
    if (kind == Kind::kFiltered) params.top_p = 0.9F;
    if (kind == Kind::kLogprobs) params.logprobs = 3;
    if (kind == Kind::kRules) params.frequency_penalty = 0.5F;
    SamplingParams masked = params;
    if (kind == Kind::kRules) masked.allowed_token_ids = {5};
    std::vector<SlotAdded> added;
    for (int slot = 0; slot < 5; ++slot) added.push_back(make_slot(slot, params));
    added.push_back(make_slot(5, masked));
    ASSERT_TRUE(rig.add_slots(added).ok());
    std::mt19937 random(7);
    std::vector<float> logits = random_logits(6 * kVocab, 2.0F, 0, random);
    logits[1 * kVocab + 700] = logits[1 * kVocab + 999] = kNan;
    logits[2 * kVocab + 3] = kInf;
    std::fill_n(logits.begin() + 3 * kVocab, kVocab, -kInf);
    std::fill_n(logits.begin() + 4 * kVocab, kVocab - 1, -kInf);
    logits[5 * kVocab + 5] = -kInf;
    const std::vector<int32_t> slots = {0, 1, 2, 3, 4, 5};
    const auto results = rig.step(logits, slots);
    for (size_t i = 0; i < results.size(); ++i) expect_same(results[i], std::to_string(i));
    EXPECT_TRUE(results[0].device.error.ok());
    EXPECT_FALSE(results[1].device.error.ok());
    EXPECT_FALSE(results[2].device.error.ok());
    EXPECT_FALSE(results[3].device.error.ok());
    EXPECT_EQ(results[4].device.token_id, kVocab - 1);
    EXPECT_EQ(results[5].device.error.ok(), kind != Kind::kRules);
    EXPECT_EQ(rig.last_token(1), 3);  // unchanged
  }
}

TEST(DeviceSampler, AMaskOfNothingFailsItsRowAloneAndForThatStep) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 1000;
  auto created = SamplerRig::create({4, 4, 4, kVocab, 64});
  ASSERT_TRUE(created.ok());
  SamplerRig& rig = **created;
  SamplingParams params;
  params.temperature = 0;
  params.logprobs = 2;
  std::vector<SlotAdded> added;
  for (int slot = 0; slot < 4; ++slot) added.push_back(make_slot(slot, params));
  ASSERT_TRUE(rig.add_slots(added).ok());
  std::mt19937 random(7);
  const std::vector<float> logits = random_logits(4 * kVocab, 2.0F, 0, random);
  const std::vector<int32_t> slots = {2, 0, 3, 1};
  std::vector<uint32_t> one(32, 0);
  one[31] = 1U << 7;  // allows token 999
  const StepMasks masks = {.idx = {0, -1, 2, 1}, .masks = {{}, std::vector<uint32_t>(32, 0), one}};
  const auto results = rig.step(logits, slots, masks);
  for (size_t i = 0; i < results.size(); ++i) expect_same(results[i], std::to_string(i));
  EXPECT_EQ(results[0].device.error.message(), no_token_allowed(3).message());
  EXPECT_TRUE(results[1].device.error.ok());
  EXPECT_EQ(results[2].device.token_id, 999);
  EXPECT_EQ(results[3].device.error.message(), no_token_allowed(3).message());
  EXPECT_EQ(rig.last_token(1), 3);  // unchanged
  for (const Compared& free : rig.step(logits, slots)) {
    expect_same(free, "a step without masks knows nothing of the one before");
    EXPECT_TRUE(free.device.error.ok());
  }
}

TEST(DeviceSampler, StartsASlotAgain) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 1000;
  auto created = SamplerRig::create({2, 2, 2, kVocab, 64});
  ASSERT_TRUE(created.ok());
  SamplerRig& rig = **created;
  std::mt19937 random(3);
  for (int round = 0; round < 3; ++round) {
    SamplingParams params;
    params.temperature = 0;
    params.frequency_penalty = 2.0F;
    params.repetition_penalty = 1.5F;
    ASSERT_TRUE(rig.add_slots({make_slot(1, params, {round, 5 + round, 9}, 1)}).ok());
    const std::vector<float> logits = random_logits(kVocab, 1.0F, 2, random);
    for (int step = 0; step < 8; ++step) {
      expect_same(rig.step(logits, {1})[0], "step " + std::to_string(step));
    }
  }
}

TEST(DeviceSampler, RefusesListsItHasNoRoomFor) {
  SKIP_WITHOUT_DEVICE();
  auto created = SamplerRig::create({2, 2, 2, 1000, 64});
  ASSERT_TRUE(created.ok());
  SamplingParams params;
  params.logit_bias.assign(kMaxBiases + 1, {1, 1.0F});
  const Status refused = (*created)->sampler().check(*make_slot(0, params).sampling);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), testing::HasSubstr("logit_bias"));
}

// Sequences with rules are added and removed: each uses its own rules in a table that another
// sequence used before.
TEST(DeviceSampler, RuleTablesAreAPool) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 1000;
  constexpr int kRows = 8;
  auto created = SamplerRig::create({kRows, 2, kRows, kVocab, 64});
  ASSERT_TRUE(created.ok());
  SamplerRig& rig = **created;
  std::mt19937 random(5);
  std::vector<int32_t> with_rules;  // the rows that hold a table
  for (int round = 0; round < 30; ++round) {
    std::vector<SlotAdded> added;
    if (with_rules.size() == 2) {
      rig.sampler().remove_slots(std::vector<int>{with_rules.front()});
      added.push_back(make_slot(with_rules.front(), {}));
      with_rules.erase(with_rules.begin());
    }
    const auto slot = static_cast<int32_t>(random() % kRows);
    if (std::ranges::find(with_rules, slot) == with_rules.end()) {
      SamplingParams params;
      params.temperature = pick(random, {0.0F, 1.0F});
      params.frequency_penalty = 1.5F;
      params.repetition_penalty = pick(random, {1.0F, 1.4F});
      for (int n = 0; n < 20; ++n) {
        params.logit_bias.emplace_back(static_cast<int32_t>(random() % kVocab), 2.0F);
      }
      added.push_back(make_slot(slot, params, {1, 2, 3, static_cast<int32_t>(round)}, 2));
      with_rules.push_back(slot);
    }
    std::vector<int32_t> slots;
    for (int other = 0; other < kRows; ++other) {
      slots.push_back(other);
      if (round == 0 && other != slot) added.push_back(make_slot(other, {}));
    }
    ASSERT_TRUE(rig.add_slots(added).ok());
    const std::vector<float> logits = random_logits(kRows * kVocab, 1.0F, 4, random);
    const auto results = rig.step(logits, slots);
    EXPECT_EQ(rig.last_plan().num_rows_of(SamplePass::kRules), std::ssize(with_rules));
    for (size_t i = 0; i < results.size(); ++i) {
      expect_same(results[i], "round " + std::to_string(round) + " slot " + std::to_string(i));
    }
  }
}

// 10^8 samples: a token of almost certain probability is always sampled, and a few likely tokens
// are sampled as often as their probabilities predict.
TEST(DeviceSampler, DrawsAsOftenAsProbable) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kVocab = 8;
  constexpr int kRows = 16384;
  constexpr int kSteps = 6104;
  auto created = SamplerRig::create({kRows, 1, kRows, kVocab, 64});
  ASSERT_TRUE(created.ok()) << created.status().message();
  SamplerRig& rig = **created;
  const std::vector<float> certain = {-50, -50, 0, -50, -50, -50, -50, -50};
  const std::vector<float> open = {1.0F, 0.0F, -1.0F, 2.0F, -3.0F, 0.5F, -8.0F, -kInf};
  std::vector<SlotAdded> added;
  std::vector<int32_t> slots;
  std::vector<float> logits;
  for (int slot = 0; slot < kRows; ++slot) {
    added.push_back(make_slot(slot, {}));
    slots.push_back(slot);
    const std::vector<float>& of_row = slot % 2 == 0 ? certain : open;
    logits.insert(logits.end(), of_row.begin(), of_row.end());
  }
  ASSERT_TRUE(rig.add_slots(added).ok());
  CudaStream& stream = rig.stream();
  stream.copy_to_device(rig.logits(), logits.data(), logits.size() * sizeof(float));
  stream.copy_to_device(rig.slots(), slots.data(), slots.size() * sizeof(int32_t));
  auto pinned = pinned_memory(DeviceSampler::results_bytes(kRows, false));
  ASSERT_TRUE(pinned.ok());
  const auto* results = static_cast<const RowResult*>(pinned->data());
  std::array<std::array<int64_t, kVocab>, 2> counts = {};
  const SamplePlan plan = rig.plan(slots);
  for (int step = 0; step < kSteps; ++step) {
    rig.sampler().sample(plan, rig.logits_view(kRows), rig.slots(), rig.offsets(), stream);
    rig.sampler().copy_results(plan, pinned->data(), stream);
    ASSERT_TRUE(stream.synchronize().ok());
    for (size_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(results[i].status, RowStatus::kOk);
      ++counts[i % 2][static_cast<size_t>(results[i].token_id)];
    }
  }
  const auto num_draws = static_cast<double>(kSteps) * kRows / 2;
  EXPECT_EQ(static_cast<double>(counts[0][2]), num_draws) << "the certain token was not sampled";
  double total = 0;
  for (const float x : open) total += std::exp(static_cast<double>(x));
  double chi_square = 0;
  for (size_t id = 0; id + 1 < kVocab; ++id) {
    const double expected = num_draws * std::exp(static_cast<double>(open[id])) / total;
    const double off = static_cast<double>(counts[1][id]) - expected;
    chi_square += off * off / expected;
  }
  EXPECT_EQ(counts[1][kVocab - 1], 0);
  // 6 degrees of freedom: a correct sampler exceeds this for one seed in 100,000, and not for this
  // seed.
  EXPECT_LT(chi_square, 33.1);
}

TEST(DeviceSampler, ReportsItsAllocations) {
  SKIP_WITHOUT_DEVICE();
  const auto mib_of = [](int max_num_seqs, int max_rule_seqs) {
    return DeviceSampler::device_bytes({max_num_seqs, max_rule_seqs, max_num_seqs, 128256, 8192}) >>
           20;
  };
  EXPECT_GT(mib_of(256, 256), 125U);  // the counts of seen tokens alone
  EXPECT_LT(mib_of(256, 256), 250U);
  // Sequences without rules only need memory for masks and for a step's results.
  EXPECT_LT(mib_of(1000, 256) - mib_of(256, 256), 50U);
}

}  // namespace
}  // namespace quire::cuda
