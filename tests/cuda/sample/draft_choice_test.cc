#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "cuda/sample/draft_rig.h"
#include "cuda/sample/sampler_rig.h"

namespace quire::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kVocab = 152000;

#define SKIP_WITHOUT_DEVICE() \
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message()

DeviceSamplerLimits limits(int num_slots, int vocab_size, int num_drafts) {
  return {.max_num_seqs = num_slots,
          .max_rule_seqs = 1,
          .max_rows = num_slots * (1 + num_drafts),
          .vocab_size = vocab_size,
          .max_tokens_per_seq = 64,
          .num_drafts = num_drafts};
}

// Rows whose most likely token is easily missed, or that have none.
std::vector<std::vector<float>> hard_rows(size_t width, std::mt19937& random) {
  const auto blank = [&](float x) { return std::vector<float>(width, x); };
  const auto with = [&](std::vector<float> row, size_t id, float x) {
    row[id] = x;
    return row;
  };
  const std::vector<float> smooth = random_logits(static_cast<int>(width), 3.0F, 0, random);
  return {smooth,
          random_logits(static_cast<int>(width), 1.0F, 2, random),  // ties
          blank(0),
          blank(-kInf),
          with(blank(-kInf), width - 1, -3e38F),
          with(blank(-kInf), width / 2, 1e-40F),
          with(with(blank(-1), width - 1, 0.0F), width / 2, -0.0F),  // equal zeros
          with(with(smooth, width / 3, 100.0F), width - 1, 100.0F),
          with(smooth, 0, kNan),
          with(smooth, width - 1, kNan),
          with(smooth, width / 2, kInf),
          blank(kNan)};
}

struct Spread {
  std::vector<int32_t> slots;
  std::vector<float> logits;
};

// The rows in random slots, with a row of padding after the first.
Spread spread(const std::vector<std::vector<float>>& rows, std::mt19937& random) {
  Spread made;
  for (size_t i = 0; i < rows.size(); ++i) made.slots.push_back(static_cast<int32_t>(i));
  std::shuffle(made.slots.begin(), made.slots.end(), random);
  for (const std::vector<float>& row : rows) {
    made.logits.insert(made.logits.end(), row.begin(), row.end());
    if (made.logits.size() == row.size()) {
      made.logits.insert(made.logits.end(), row.begin(), row.end());
    }
  }
  made.slots.insert(made.slots.begin() + 1, -1);
  return made;
}

class MostLikelyDrafts : public testing::TestWithParam<int> {};

TEST_P(MostLikelyDrafts, AreThoseOfTheCpu) {
  SKIP_WITHOUT_DEVICE();
  const auto width = static_cast<size_t>(GetParam());
  constexpr int kNumDrafts = 3;
  std::mt19937 random(static_cast<uint32_t>(width));
  const std::vector<std::vector<float>> rows = hard_rows(width, random);
  const auto num_slots = static_cast<int>(rows.size()) + 1;
  auto created = DraftRig::create(limits(num_slots, kVocab, kNumDrafts));
  ASSERT_TRUE(created.ok()) << created.status().message();
  DraftRig& rig = **created;
  std::vector<int32_t> target_ids(kVocab);
  std::iota(target_ids.begin(), target_ids.end(), 0);
  std::shuffle(target_ids.begin(), target_ids.end(), random);
  target_ids.resize(width);
  const std::vector<int32_t> before(static_cast<size_t>(num_slots) * (1 + kNumDrafts), -7);
  for (const bool is_mapped : {false, true}) {
    for (int draft_idx = 0; draft_idx < kNumDrafts; ++draft_idx) {
      rig.set_drafts(before, {});
      const auto [slots, logits] = spread(rows, random);
      rig.choose(logits, slots, draft_idx,
                 is_mapped ? std::span<const int32_t>(target_ids) : std::span<const int32_t>(),
                 draft_idx == 1);
      std::vector<int32_t> expected = before;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i] < 0) continue;
        const std::span<const float> row = std::span(logits).subspan(i * width, width);
        const int32_t draft = most_likely_token(row).value_or(0);
        expected[static_cast<size_t>(slots[i] * (1 + kNumDrafts) + 1 + draft_idx)] =
            is_mapped ? target_ids[static_cast<size_t>(draft)] : draft;
      }
      EXPECT_EQ(rig.next_tokens(), expected) << "draft " << draft_idx << " mapped " << is_mapped;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, MostLikelyDrafts,
                         testing::Values(1, 2, 3, 17, 1000, 8192, 8193, 32000, 151937, kVocab));

TEST(MostLikelyDraftsOfMany, RowsAreThoseOfTheCpu) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kWidth = 32003;
  constexpr int kRows = 256;
  std::mt19937 random(3);
  auto created = DraftRig::create(limits(kRows, kWidth, 1));
  ASSERT_TRUE(created.ok()) << created.status().message();
  const std::vector<float> logits = random_logits(kRows * kWidth, 2.0F, 4, random);
  std::vector<int32_t> slots(kRows);
  std::iota(slots.begin(), slots.end(), 0);
  for (int repeat = 0; repeat < 3; ++repeat) {  // the arrival counters are zero again
    (*created)->choose(logits, slots, 0);
    const std::vector<int32_t> tokens = (*created)->next_tokens();
    for (size_t i = 0; i < kRows; ++i) {
      const std::span<const float> row = std::span(logits).subspan(i * kWidth, kWidth);
      ASSERT_EQ(tokens[i * 2 + 1], *most_likely_token(row)) << "row " << i;
    }
  }
}

SamplingParams random_params(std::mt19937& random) {
  SamplingParams params;
  params.temperature = random() % 6 == 0 ? 0.0F : 0.5F + 0.25F * static_cast<float>(random() % 4);
  if (random() % 2 == 0) params.top_k = 1 + static_cast<int>(random() % 40);
  if (random() % 2 == 0) params.top_p = 0.3F + 0.2F * static_cast<float>(random() % 4);
  if (random() % 3 == 0) params.min_p = 0.05F;
  return params;
}

// A sampled draft and its distribution are those of sample_draft(), over the target's ids.
TEST(SampledDrafts, AreThoseOfTheCpu) {
  SKIP_WITHOUT_DEVICE();
  constexpr int kNumDrafts = 2;
  constexpr int kSmallVocab = 4001;
  for (const int width : {kSmallVocab, 17, 1000}) {
    std::mt19937 random(static_cast<uint32_t>(width));
    constexpr int kRows = 64;
    DeviceSamplerLimits sampled = limits(kRows, kSmallVocab, kNumDrafts);
    sampled.verification.samples_drafts = true;
    auto created = DraftRig::create(sampled);
    ASSERT_TRUE(created.ok()) << created.status().message();
    DraftRig& rig = **created;
    std::vector<SamplingParams> params;
    std::vector<SlotAdded> added;
    std::vector<int32_t> slots(kRows), target_ids(kSmallVocab);
    std::iota(slots.begin(), slots.end(), 0);
    std::iota(target_ids.begin(), target_ids.end(), 0);
    std::shuffle(target_ids.begin(), target_ids.end(), random);
    target_ids.resize(static_cast<size_t>(width));
    const bool is_mapped = width == 1000;
    for (const int slot : slots) {
      params.push_back(random_params(random));
      added.push_back(make_draft_slot(slot, params.back(), random(), {1, 2, 3}));
    }
    ASSERT_TRUE(rig.add_slots(added).ok());
    std::vector<float> logits = random_logits(kRows * width, 2.0F, 8, random);
    logits[static_cast<size_t>(5 * width)] = kNan;
    for (int draft_idx = 0; draft_idx < kNumDrafts; ++draft_idx) {
      rig.choose(logits, slots, draft_idx,
                 is_mapped ? std::span<const int32_t>(target_ids) : std::span<const int32_t>(),
                 draft_idx == 1);
      const std::vector<int32_t> tokens = rig.next_tokens();
      const std::vector<float> all_probs = rig.draft_probs();
      for (size_t slot = 0; slot < kRows; ++slot) {
        const auto size = static_cast<size_t>(width);
        std::vector<float> probs(size);
        const TokenNoise noise =
            rig.state(static_cast<int>(slot)).draft_noise().draft(static_cast<size_t>(draft_idx));
        const std::optional<int32_t> draft =
            sample_draft(std::span(logits).subspan(slot * size, size), params[slot], noise, probs);
        const auto target_id = [&](int32_t id) {
          return is_mapped ? target_ids[static_cast<size_t>(id)] : id;
        };
        ASSERT_EQ(tokens[slot * (1 + kNumDrafts) + 1 + static_cast<size_t>(draft_idx)],
                  target_id(draft.value_or(0)))
            << "slot " << slot;
        std::vector<float> expected(kSmallVocab);
        for (int32_t id = 0; draft && id < width; ++id) {
          expected[static_cast<size_t>(target_id(id))] = probs[static_cast<size_t>(id)];
        }
        const size_t first = (slot * kNumDrafts + static_cast<size_t>(draft_idx)) * kSmallVocab;
        for (size_t id = 0; id < kSmallVocab; ++id) {
          ASSERT_NEAR(all_probs[first + id], expected[id], 1e-6F * expected[id])
              << "slot " << slot << " token " << id;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire::cuda
