// Drafts that the device verifies are those that the CPU accepts, and keep the target's
// distribution: chi-squared tests of the joint distribution of several tokens.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>

#include "cuda/sample/draft_rig.h"
#include "cuda/sample/sampler_rig.h"
#include "sample/chi_square.h"

namespace quire::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr RejectionMethod kMethods[] = {RejectionMethod::kStandard, RejectionMethod::kBlock};

#define SKIP_WITHOUT_DEVICE() \
  if (const Status gpu = open_test_device(); !gpu.ok()) GTEST_SKIP() << gpu.message()

DeviceSamplerLimits limits(int num_slots, int vocab_size, int num_drafts,
                           Verification verification) {
  return {.max_num_seqs = num_slots,
          .max_rule_seqs = num_slots,
          .max_rows = num_slots * (1 + num_drafts),
          .vocab_size = vocab_size,
          .max_tokens_per_seq = 64,
          .num_drafts = num_drafts,
          .verification = std::move(verification)};
}

void expect_same(const SpanResult& device, const SpanResult& host, const std::string& where) {
  EXPECT_EQ(device.error.message(), host.error.message()) << where;
  ASSERT_EQ(device.tokens.size(), host.tokens.size()) << where;
  for (size_t i = 0; i < host.tokens.size(); ++i) {
    EXPECT_EQ(device.tokens[i].token_id, host.tokens[i].token_id) << where << " token " << i;
    const PositionLogprobs& got = device.tokens[i].logprobs;
    const PositionLogprobs& want = host.tokens[i].logprobs;
    ASSERT_EQ(got.size(), want.size()) << where << " token " << i;
    for (size_t k = 0; k < want.size(); ++k) {
      EXPECT_EQ(got[k].token_id, want[k].token_id) << where << " token " << i;
      EXPECT_NEAR(got[k].logprob, want[k].logprob, 1e-4F) << where << " token " << i;
    }
  }
}

SamplingParams random_params(std::mt19937& random) {
  SamplingParams params;
  params.temperature = random() % 6 == 0 ? 0.0F : 0.5F + 0.25F * static_cast<float>(random() % 4);
  if (random() % 2 == 0) params.top_k = 1 + static_cast<int>(random() % 12);
  if (random() % 2 == 0) params.top_p = 0.3F + 0.2F * static_cast<float>(random() % 4);
  if (random() % 4 == 0) params.min_p = 0.05F;
  if (random() % 3 == 0) params.frequency_penalty = 0.5F;
  if (random() % 3 == 0) params.repetition_penalty = 1.2F;
  if (random() % 4 == 0) params.logit_bias = {{3, 1.5F}};
  if (random() % 3 == 0) params.logprobs = 2;
  return params;
}

std::vector<int32_t> all_slots(int count) {
  std::vector<int32_t> slots(static_cast<size_t>(count));
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

// ---- Equality with the CPU

struct Agreement {
  Verification verification;
  int vocab_size = 0;
  int num_drafts = 0;
};

// Steps of slots whose drafts are chosen on the device. Returns the number of accepted drafts.
size_t compare_with_host(const Agreement& agreement) {
  constexpr int kSlots = 48;
  constexpr int kSteps = 6;
  const auto vocab = static_cast<size_t>(agreement.vocab_size);
  const auto num_drafts = static_cast<size_t>(agreement.num_drafts);
  std::mt19937 random(static_cast<uint32_t>(vocab + num_drafts));
  auto created = DraftRig::create(
      limits(kSlots, agreement.vocab_size, agreement.num_drafts, agreement.verification));
  EXPECT_TRUE(created.ok()) << created.status().message();
  if (!created.ok()) return 0;
  DraftRig& rig = **created;
  std::vector<SlotAdded> added;
  for (int slot = 0; slot < kSlots; ++slot) {
    added.push_back(make_draft_slot(slot, random_params(random), random(), {1, 2, 3}));
  }
  EXPECT_TRUE(rig.add_slots(added).ok());
  std::vector<int32_t> slots = all_slots(kSlots);
  size_t num_accepted = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::shuffle(slots.begin(), slots.end(), random);
    const std::string where = "step " + std::to_string(step) + " slot ";
    const auto rows = static_cast<int>(slots.size() * (1 + num_drafts));
    std::vector<float> logits =
        random_logits(rows * agreement.vocab_size, 2.0F, step % 2 * 16, random);
    // The drafter's logits are near the target's.
    std::normal_distribution<float> noise(0.0F, 0.5F);
    for (size_t d = 0; d < num_drafts; ++d) {
      std::vector<float> drafter;
      for (size_t i = 0; i < slots.size(); ++i) {
        for (size_t id = 0; id < vocab; ++id) {
          drafter.push_back(logits[(i * (1 + num_drafts) + d) * vocab + id] + noise(random));
        }
      }
      if (step % 3 == 1) drafter[2 * vocab] = kNan;
      rig.choose(drafter, slots, static_cast<int>(d));
    }
    const std::vector<int32_t> tokens = rig.next_tokens();
    const std::vector<float> probs =
        agreement.verification.samples_drafts ? rig.draft_probs() : std::vector<float>();
    // After accepted drafts, a row without a distribution ends the tokens.
    if (step % 3 == 2) logits[((1 + num_drafts) * 4 - 1) * vocab] = kNan;
    const std::vector<SpanResult> device = rig.verify(logits, slots, step % 2 == 1);
    std::vector<int32_t> left;
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto slot = static_cast<size_t>(slots[i]);
      const std::span<const float> slot_probs =
          probs.empty() ? std::span<const float>()
                        : std::span(probs).subspan(slot * num_drafts * vocab, num_drafts * vocab);
      const SpanResult host = rig.verify_on_host(
          slots[i], std::span(logits).subspan(i * (1 + num_drafts) * vocab),
          std::span(tokens).subspan(slot * (1 + num_drafts) + 1, num_drafts), slot_probs);
      expect_same(device[i], host, where + std::to_string(slots[i]));
      if (testing::Test::HasFailure()) return 0;
      if (!host.error.ok()) continue;
      num_accepted += host.tokens.size() - 1;
      left.push_back(slots[i]);
    }
    // The next step continues from the same tokens.
    const std::vector<int32_t> after = rig.next_tokens();
    for (const int32_t slot : left) {
      EXPECT_EQ(after[static_cast<size_t>(slot) * (1 + num_drafts)], rig.state(slot).last_token());
    }
    slots = left;
  }
  return num_accepted;
}

TEST(Verification, AcceptsTheDraftsOfTheCpu) {
  SKIP_WITHOUT_DEVICE();
  for (const RejectionMethod method : kMethods) {
    for (const int vocab_size : {17, 1000, 32003}) {
      for (const int num_drafts : {1, 2, 5}) {
        SCOPED_TRACE(std::to_string(vocab_size) + " tokens, " + std::to_string(num_drafts) +
                     (method == RejectionMethod::kBlock ? " block" : " standard"));
        EXPECT_GT(compare_with_host({.verification = {.method = method, .samples_drafts = true},
                                     .vocab_size = vocab_size,
                                     .num_drafts = num_drafts}),
                  50U);
        if (HasFailure()) return;
      }
    }
  }
}

// Synthetic acceptance takes as many drafts as on the CPU, bit for bit, with either kind of drafts.
TEST(Verification, SyntheticCountsAreThoseOfTheCpu) {
  SKIP_WITHOUT_DEVICE();
  for (const bool samples_drafts : {false, true}) {
    SCOPED_TRACE(samples_drafts ? "sampled drafts" : "most likely drafts");
    const Agreement agreement = {.verification = {.method = RejectionMethod::kSynthetic,
                                                  .samples_drafts = samples_drafts,
                                                  .synthetic_rates = {0.9, 0.6, 0.6, 0.1}},
                                 .vocab_size = 1000,
                                 .num_drafts = 4};
    const size_t num_accepted = compare_with_host(agreement);
    // 48 slots and 6 steps accept 2.2 drafts each; the standard deviation of the sum is below 25.
    EXPECT_NEAR(static_cast<double>(num_accepted), 48 * 6 * 2.2, 100);
  }
}

// ---- The distribution of the output

constexpr int kVocab = 3;
constexpr int kTokens = 4;  // of one sequence
constexpr size_t kOutputs = 81;
constexpr int kSlots = 4096;
constexpr int kRounds = 50;  // 204,800 sequences

using Chain = std::array<std::array<float, kVocab>, kVocab>;  // by the last token

// The two models disagree in every context, each in another way.
constexpr Chain kTarget = {{{0.2F, 0.3F, 0.5F}, {0.45F, 0.25F, 0.3F}, {0.25F, 0.5F, 0.25F}}};
constexpr Chain kDrafter = {{{0.5F, 0.3F, 0.2F}, {0.2F, 0.2F, 0.6F}, {0.3F, 0.3F, 0.4F}}};

void append_logits(const Chain& chain, int32_t last, std::vector<float>& logits) {
  for (const float prob : chain[static_cast<size_t>(last)]) logits.push_back(std::log(prob));
}

struct Drafting {
  RejectionMethod method = RejectionMethod::kStandard;
  int num_drafts = 1;
  SamplingParams params = {};
  // The stream of the drafter's noise if the host chooses the drafts; absent: the device does.
  std::optional<NoiseStream> host_stream = {};
};

using Outputs = std::vector<std::vector<int32_t>>;  // by slot: the tokens, from the prompt's on

class Sequences {
 public:
  Sequences(const Drafting& drafting, DraftRig& rig, int num_slots)
      : drafting_(drafting), rig_(rig), slots_(all_slots(num_slots)) {}

  // Samples the outputs of sequences with these seeds.
  Outputs run(uint64_t first_seed) {
    std::vector<SlotAdded> added;
    for (const int32_t slot : slots_) {
      added.push_back(
          make_draft_slot(slot, drafting_.params, first_seed + static_cast<uint64_t>(slot)));
    }
    EXPECT_TRUE(rig_.add_slots(added).ok());
    outputs_.assign(slots_.size(), {0});
    first_seed_ = first_seed;
    for (int num_steps = 0; num_steps < kTokens; ++num_steps) step();
    return outputs_;
  }

 private:
  void step() {
    contexts_.clear();
    for (const std::vector<int32_t>& output : outputs_) contexts_.push_back({output.back()});
    if (drafting_.host_stream) {
      choose_on_host();
    } else {
      choose_on_device();
    }
    std::vector<float> logits;
    for (const std::vector<int32_t>& context : contexts_) {
      for (const int32_t last : context) append_logits(kTarget, last, logits);
    }
    const std::vector<SpanResult> results = rig_.verify(logits, slots_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      for (const SampledToken& token : results[i].tokens) outputs_[i].push_back(token.token_id);
    }
  }

  void choose_on_device() {
    const auto q_len = static_cast<size_t>(1 + drafting_.num_drafts);
    for (int d = 0; d < drafting_.num_drafts; ++d) {
      std::vector<float> logits;
      for (const std::vector<int32_t>& context : contexts_) {
        append_logits(kDrafter, context.back(), logits);
      }
      rig_.choose(logits, slots_, d);
      const std::vector<int32_t> tokens = rig_.next_tokens();
      for (size_t i = 0; i < slots_.size(); ++i) {
        contexts_[i].push_back(tokens[i * q_len + 1 + static_cast<size_t>(d)]);
      }
    }
  }

  void choose_on_host() {
    std::vector<int32_t> tokens;
    std::vector<float> probs;
    for (size_t i = 0; i < slots_.size(); ++i) {
      std::vector<int32_t>& context = contexts_[i];
      for (int d = 0; d < drafting_.num_drafts; ++d) {
        const TokenNoise noise(first_seed_ + i, outputs_[i].size(), *drafting_.host_stream,
                               static_cast<uint32_t>(d));
        std::vector<float> logits;
        append_logits(kDrafter, context.back(), logits);
        std::array<float, kVocab> mine;
        context.push_back(*sample_draft(logits, drafting_.params, noise, mine));
        probs.insert(probs.end(), mine.begin(), mine.end());
      }
      tokens.insert(tokens.end(), context.begin(), context.end());
    }
    rig_.set_drafts(tokens, probs);
  }

  const Drafting& drafting_;
  DraftRig& rig_;
  std::vector<int32_t> slots_;
  uint64_t first_seed_ = 0;
  Outputs outputs_;
  Outputs contexts_;  // by slot: the newest token, then the drafts
};

Result<std::unique_ptr<DraftRig>> make_rig(const Drafting& drafting, int num_slots) {
  return DraftRig::create(limits(num_slots, kVocab, drafting.num_drafts,
                                 {.method = drafting.method, .samples_drafts = true}));
}

// The first `count` tokens after the prompt, in base kVocab.
size_t number_of(const std::vector<int32_t>& tokens, int count) {
  size_t number = 0;
  for (int i = 1; i <= count; ++i) {
    number = number * kVocab + static_cast<size_t>(tokens[static_cast<size_t>(i)]);
  }
  return number;
}

// The shares of the outputs of `count` tokens, by the CPU's distributions without drafts.
std::vector<double> expected_shares(const SamplingParams& params, int count) {
  std::vector<double> shares;
  const auto num_outputs = static_cast<size_t>(std::pow(kVocab, count));
  for (size_t number = 0; number < num_outputs; ++number) {
    std::vector<int32_t> tokens;
    size_t rest = number;
    for (int i = 0; i < count; ++i, rest /= kVocab) {
      tokens.insert(tokens.begin(), static_cast<int32_t>(rest % kVocab));
    }
    const std::vector<int32_t> prompt = {0};
    SamplerState state(std::make_shared<SamplingParams>(params), 0, prompt, 1, {}, {}, kVocab);
    double share = 1;
    for (const int32_t token : tokens) {
      std::vector<float> logits;
      append_logits(kTarget, state.last_token(), logits);
      TokenDistribution target;
      EXPECT_TRUE(state.distribution(logits, {}, target).ok());
      double prob = 0;
      for (const Candidate& candidate : target.candidates) {
        if (candidate.token_id == token) prob = candidate.weight / target.total;
      }
      share *= prob;
      state.append(token);
    }
    shares.push_back(share);
  }
  return shares;
}

struct Fit {
  double chi = 0;
  double limit = 0;
};

Fit fit(const std::vector<int>& counts, const std::vector<double>& shares) {
  size_t num_cells = 0;
  for (const double share : shares) num_cells += share > 0 ? 1 : 0;
  return {.chi = chi_square(counts, [&](size_t i) { return shares[i]; }),
          .limit = bound(num_cells)};
}

struct Measured {
  Fit outputs;
  Fit pairs;  // the first two tokens of neighbors in a batch
};

// Seeds are fixed, so the result never changes.
Measured measure(const Drafting& drafting) {
  auto rig = make_rig(drafting, kSlots);
  EXPECT_TRUE(rig.ok()) << rig.status().message();
  if (!rig.ok()) return {};
  Sequences sequences(drafting, **rig, kSlots);
  std::vector<int> counts(kOutputs), pairs(81);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const Outputs outputs = sequences.run(round * kSlots);
    for (const std::vector<int32_t>& tokens : outputs) ++counts[number_of(tokens, kTokens)];
    for (size_t i = 0; i + 1 < outputs.size(); i += 2) {
      ++pairs[9 * number_of(outputs[i], 2) + number_of(outputs[i + 1], 2)];
    }
  }
  const std::vector<double> two = expected_shares(drafting.params, 2);
  std::vector<double> pair_shares;
  for (const double first : two) {
    for (const double second : two) pair_shares.push_back(first * second);
  }
  return {.outputs = fit(counts, expected_shares(drafting.params, kTokens)),
          .pairs = fit(pairs, pair_shares)};
}

std::vector<SamplingParams> settings() {
  std::vector<SamplingParams> all(5);
  all[1].temperature = 0.6F;
  all[2].top_k = 2;
  all[3].top_p = 0.7F;
  all[3].temperature = 1.3F;
  all[4].presence_penalty = 0.4F;
  all[4].frequency_penalty = 0.3F;
  all[4].repetition_penalty = 1.2F;
  return all;
}

class KeptDistribution : public testing::TestWithParam<std::tuple<RejectionMethod, int>> {};

TEST_P(KeptDistribution, IsTheTargets) {
  SKIP_WITHOUT_DEVICE();
  const auto [method, num_drafts] = GetParam();
  const std::vector<SamplingParams> all = settings();
  for (size_t i = 0; i < all.size(); ++i) {
    const Measured measured =
        measure({.method = method, .num_drafts = num_drafts, .params = all[i]});
    EXPECT_LT(measured.outputs.chi, measured.outputs.limit) << "setting " << i;
    EXPECT_LT(measured.pairs.chi, measured.pairs.limit) << "setting " << i;
  }
}

// The outputs of a batch of 4,096, whose distribution is tested above, are those of small batches.
TEST_P(KeptDistribution, DoesNotDependOnTheBatch) {
  SKIP_WITHOUT_DEVICE();
  const auto [method, num_drafts] = GetParam();
  for (const SamplingParams& params : settings()) {
    const Drafting drafting = {.method = method, .num_drafts = num_drafts, .params = params};
    auto large = make_rig(drafting, kSlots);
    ASSERT_TRUE(large.ok()) << large.status().message();
    const Outputs together = Sequences(drafting, **large, kSlots).run(0);
    for (const int batch_size : {1, 2, 5}) {
      auto small = make_rig(drafting, batch_size);
      ASSERT_TRUE(small.ok()) << small.status().message();
      Sequences sequences(drafting, **small, batch_size);
      for (uint64_t seed = 0; seed < 200; seed += static_cast<uint64_t>(batch_size)) {
        const Outputs outputs = sequences.run(seed);
        for (size_t i = 0; i < outputs.size(); ++i) ASSERT_EQ(outputs[i], together[seed + i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MethodAndDrafts, KeptDistribution,
                         testing::Combine(testing::ValuesIn(kMethods), testing::Values(1, 2, 4)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) == RejectionMethod::kBlock
                                                  ? "block_"
                                                  : "standard_") +
                                  std::to_string(std::get<1>(param.param));
                         });

// The tests above can fail: drafts that share a stream with the acceptance or the residual change
// the distribution visibly, and drafts of their own stream do not.
TEST(Verification, ASharedNoiseStreamIsDetected) {
  SKIP_WITHOUT_DEVICE();
  for (const RejectionMethod method : kMethods) {
    Drafting drafting = {.method = method, .num_drafts = 2};
    for (const NoiseStream stream : {NoiseStream::kAcceptance, NoiseStream::kResidual}) {
      drafting.host_stream = stream;
      const Fit shared = measure(drafting).outputs;
      EXPECT_GT(shared.chi, 1.5 * shared.limit);
    }
    drafting.host_stream = NoiseStream::kDraft;
    const Fit own = measure(drafting).outputs;
    EXPECT_LT(own.chi, own.limit);
  }
}

}  // namespace
}  // namespace quire::cuda
