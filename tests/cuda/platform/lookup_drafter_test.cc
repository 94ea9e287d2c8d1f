// The drafter by lookup on a GPU against look_up_drafts: sequences that repeat themselves in many
// ways, over steps that accept some of the drafts, in a graph and without.
#include "cuda/platform/lookup_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/step/decode_graphs.h"

namespace quire::cuda {
namespace {

using Tokens = std::vector<int32_t>;

// How a sequence repeats itself: mostly every `period` tokens, and otherwise at random.
struct Pattern {
  int vocab_size = 2;
  int period = 1;
  int percent = 0;  // of tokens that repeat
};

// Sends steps to a drafter, and keeps the tokens of its slots.
class LookupRig {
 public:
  LookupRig(const LookupConfig& config, const DrafterLimits& limits, unsigned seed)
      : config_(config),
        limits_(limits),
        random_(seed),
        num_computed_(num_slots()),
        next_tokens_(num_slots() * q_len()),
        tokens_(num_slots()),
        patterns_(num_slots()) {
    stream_ = std::move(*CudaStream::create());
    drafter_ = std::move(*make_lookup_drafter(config, limits, *stream_));
    const size_t num_words = num_slots() * (2 + q_len());
    memory_ = std::move(*device_memory(num_words * sizeof(int32_t)));
  }

  int uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  Pattern random_pattern() {
    constexpr int kVocabSizes[] = {1, 2, 3, 50, 100'000};
    constexpr int kPercents[] = {0, 80, 98, 100};
    return {.vocab_size = kVocabSizes[uniform(0, 4)],
            .period = uniform(0, 1) == 0 ? uniform(1, 40) : uniform(1, limits_.max_model_len / 2),
            .percent = kPercents[uniform(0, 3)]};
  }

  Tokens random_tokens(const Pattern& pattern, int length) {
    Tokens tokens;
    while (std::ssize(tokens) < length) tokens.push_back(next_token(pattern, tokens));
    return tokens;
  }

  // Starts sequences with these tokens in the slots 0, 1, ...
  void add(const std::vector<Tokens>& sequences) {
    BatchPlan plan;
    for (const Tokens& tokens : sequences) {
      add_to(plan, static_cast<int>(plan.slots_added.size()), tokens);
    }
    ASSERT_TRUE(drafter_->update_slots(plan, *stream_).ok());
  }

  // Starts new sequences in some of the slots, which a step in flight may still use.
  void add_random(int percent_of_slots) {
    BatchPlan plan;
    for (int slot = 0; slot < limits_.max_num_seqs; ++slot) {
      if (uniform(0, 99) >= percent_of_slots) continue;
      Pattern& pattern = patterns_[static_cast<size_t>(slot)] = random_pattern();
      const int longest = uniform(0, 2) == 0 ? 70 : limits_.max_model_len;
      add_to(plan, slot,
             random_tokens(pattern, uniform(1, std::min(longest, limits_.max_model_len))));
    }
    ASSERT_TRUE(drafter_->update_slots(plan, *stream_).ok());
  }

  // The slot accepts its first drafts, and samples `newest` after them.
  void sample(int slot, int num_accepted, int32_t newest) {
    const std::span next = next_tokens(slot);
    Tokens& tokens = tokens_[static_cast<size_t>(slot)];
    tokens.insert(tokens.end(), next.begin() + 1, next.begin() + 1 + num_accepted);
    tokens.push_back(newest);
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(limits_.max_model_len)));
    next[0] = newest;
    num_computed_[static_cast<size_t>(slot)] += 1 + num_accepted;
  }

  void sample_random(int slot) {
    sample(slot, uniform(0, limits_.num_drafts),
           next_token(patterns_[static_cast<size_t>(slot)], tokens_[static_cast<size_t>(slot)]));
  }

  // Lets the drafter propose for some slots, and compares. The other spans are padding.
  void expect_drafts(std::vector<int32_t> slots, bool in_graph) {
    const std::vector<int32_t> before = next_tokens_;
    propose(slots, in_graph);
    for (int slot = 0; slot < limits_.max_num_seqs; ++slot) {
      const std::span<const int32_t> got = next_tokens(slot);
      if (std::ranges::find(slots, slot) != slots.end()) {
        expect_drafts_of(slot, got);
      } else {
        EXPECT_TRUE(std::ranges::equal(
            got, std::span(before).subspan(static_cast<size_t>(slot) * q_len(), q_len())))
            << "the step has no span of slot " << slot;
      }
    }
  }

  int num_found() const { return num_found_; }
  int num_not_found() const { return num_not_found_; }

 private:
  size_t num_slots() const { return static_cast<size_t>(limits_.max_num_seqs); }
  size_t q_len() const { return static_cast<size_t>(1 + limits_.num_drafts); }
  std::span<int32_t> next_tokens(int slot) {
    return std::span(next_tokens_).subspan(static_cast<size_t>(slot) * q_len(), q_len());
  }

  int32_t next_token(const Pattern& pattern, const Tokens& tokens) {
    const auto period = static_cast<size_t>(pattern.period);
    if (tokens.size() >= period && uniform(0, 99) < pattern.percent) {
      return tokens[tokens.size() - period];
    }
    return uniform(0, pattern.vocab_size - 1);
  }

  void add_to(BatchPlan& plan, int slot, const Tokens& tokens) {
    plan.slots_removed.push_back(slot);
    plan.slots_added.push_back({.slot = slot, .token_ids = tokens, .sampling = nullptr});
    tokens_[static_cast<size_t>(slot)] = tokens;
    num_computed_[static_cast<size_t>(slot)] = static_cast<int32_t>(tokens.size()) - 1;
    next_tokens(slot)[0] = tokens.back();
  }

  // The device's arrays: slots, num_computed, next_tokens.
  int32_t* device_array(size_t idx) const {
    return static_cast<int32_t*>(memory_.data()) + idx * num_slots();
  }
  void upload(const std::vector<int32_t>& words, size_t idx) {
    stream_->copy_to_device(device_array(idx), words.data(), words.size() * sizeof(int32_t));
  }

  Status enqueue() {
    return drafter_->propose({.slots = device_array(0),
                              .num_spans = limits_.max_num_seqs,
                              .num_drafts = limits_.num_drafts,
                              .num_computed = device_array(1),
                              .next_tokens = device_array(2)},
                             *stream_);
  }

  void propose(std::vector<int32_t> slots, bool in_graph) {
    slots.resize(num_slots(), -1);
    std::ranges::shuffle(slots, random_);
    upload(slots, 0);
    upload(num_computed_, 1);
    upload(next_tokens_, 2);
    if (in_graph) {
      if (!graph_) graph_ = std::move(*CudaGraph::capture(*stream_, [&] { return enqueue(); }));
      graph_->launch(*stream_);
    } else {
      ASSERT_TRUE(enqueue().ok());
    }
    stream_->copy_to_host(next_tokens_.data(), device_array(2),
                          next_tokens_.size() * sizeof(int32_t));
    const Status status = stream_->synchronize();
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void expect_drafts_of(int slot, std::span<const int32_t> got) {
    const Tokens& tokens = tokens_[static_cast<size_t>(slot)];
    Tokens expected(static_cast<size_t>(limits_.num_drafts));
    std::vector<float> confidences(expected.size());
    const bool found = look_up_drafts(tokens, config_, expected, confidences);
    if (!found) std::ranges::fill(expected, tokens.back());
    ++(found ? num_found_ : num_not_found_);
    EXPECT_EQ(Tokens(got.begin() + 1, got.end()), expected)
        << "slot " << slot << " of " << tokens.size() << " tokens";
  }

  LookupConfig config_;
  DrafterLimits limits_;
  std::mt19937 random_;
  std::vector<int32_t> num_computed_;
  std::vector<int32_t> next_tokens_;
  std::vector<Tokens> tokens_;  // by slot, at most max_model_len
  std::vector<Pattern> patterns_;
  int num_found_ = 0;
  int num_not_found_ = 0;
  std::unique_ptr<CudaStream> stream_;
  std::shared_ptr<CudaDrafter> drafter_;
  Buffer memory_;
  std::optional<CudaGraph> graph_;
};

class LookupDrafterTest : public ::testing::TestWithParam<LookupConfig> {
 protected:
  void SetUp() override {
    const auto device = open_device(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

TEST_P(LookupDrafterTest, EqualsTheDefinition) {
  constexpr int kMaxNumSeqs = 48;
  int num_found = 0;
  int num_not_found = 0;
  for (int num_drafts = 1; num_drafts <= kMaxDrafts && !HasFailure(); ++num_drafts) {
    SCOPED_TRACE(num_drafts);
    // The parts that the warps search have one, two and many tiles.
    const int max_model_len = num_drafts % 3 == 0 ? 700 : num_drafts % 3 == 1 ? 3000 : 12'000;
    LookupRig rig(GetParam(),
                  {.num_drafts = num_drafts,
                   .max_num_seqs = kMaxNumSeqs,
                   .max_model_len = max_model_len,
                   .vocab_size = 100'000},
                  static_cast<unsigned>(num_drafts));
    rig.add_random(100);
    for (int step = 0; step < 12 && !HasFailure(); ++step) {
      rig.add_random(15);
      std::vector<int32_t> slots;
      for (int slot = 0; slot < kMaxNumSeqs; ++slot) {
        if (rig.uniform(0, 4) == 0) continue;
        slots.push_back(slot);
        // The other slots' steps failed.
        if (rig.uniform(0, 9) > 0) rig.sample_random(slot);
      }
      rig.expect_drafts(slots, step % 2 == 1);
    }
    num_found += rig.num_found();
    num_not_found += rig.num_not_found();
  }
  EXPECT_GT(num_found, 1000);
  EXPECT_GT(num_not_found, 100);
}

// Tokens beyond the slot's row would overwrite the next slot's.
TEST_P(LookupDrafterTest, DropsTokensBeyondTheLongestSequence) {
  LookupRig rig(GetParam(), {.num_drafts = 7, .max_num_seqs = 3, .max_model_len = 40}, 1);
  const Pattern pattern = {.vocab_size = 2, .period = 9, .percent = 90};
  rig.add({rig.random_tokens(pattern, 20), rig.random_tokens(pattern, 36),
           rig.random_tokens(pattern, 20)});
  for (int step = 0; step < 5; ++step) {
    rig.sample(1, step % 2 == 0 ? 7 : 2, 1);
    rig.expect_drafts({0, 1, 2}, false);
  }
}

// The pinned ring holds a part of these tokens, and its slots' bounds are within sequences.
TEST_P(LookupDrafterTest, UploadsMoreTokensThanThePinnedRingHolds) {
  constexpr int kMaxNumSeqs = 16;
  constexpr int kLength = 131'072;
  LookupRig rig(GetParam(),
                {.num_drafts = 8, .max_num_seqs = kMaxNumSeqs, .max_model_len = kLength}, 2);
  std::vector<Tokens> sequences;
  std::vector<int32_t> slots;
  for (int slot = 0; slot < kMaxNumSeqs; ++slot) {
    Tokens tokens;
    for (int i = 0; i < kLength - slot; ++i) tokens.push_back(i);
    // The only match is far from the end.
    const auto at = std::min(slot * 8700, kLength - 100);
    std::copy_n(tokens.begin() + at, 6, tokens.end() - 6);
    sequences.push_back(tokens);
    slots.push_back(slot);
  }
  rig.add(sequences);
  rig.expect_drafts(slots, false);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, LookupDrafterTest,
    ::testing::Values(LookupConfig{.min_match = 1, .max_match = 1},
                      LookupConfig{.min_match = 1, .max_match = 5},
                      LookupConfig{.min_match = 5, .max_match = 5},
                      LookupConfig{.min_match = 2, .max_match = 1024},
                      LookupConfig{.min_match = 1, .max_match = 1, .by_vote = true},
                      LookupConfig{.min_match = 3, .max_match = 8, .by_vote = true},
                      LookupConfig{.min_match = 1, .max_match = 24, .by_vote = true}),
    [](const auto& config) {
      return std::to_string(config.param.min_match) + "_to_" +
             std::to_string(config.param.max_match) + (config.param.by_vote ? "_by_vote" : "");
    });

}  // namespace
}  // namespace quire::cuda
