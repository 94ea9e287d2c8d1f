// Drafts that the drafter samples keep the target's distribution through the whole engine, with the
// request's rules; synthetic acceptance takes drafts at its rates.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "cpu/platform/host_drafter.h"
#include "engine/tiny_engine.h"
#include "start/start.h"

namespace quire::testing {
namespace {

// Writes the distribution of the draft at `position`, which may depend on the token before it.
using DraftProbs = std::function<void(const SlotAdded& sequence, int position, int32_t last_token,
                                      std::span<float> probs)>;

// Samples its drafts from `draft_probs`, as HostDraftCall asks for.
class SampledDrafter final : public HostDrafter {
 public:
  SampledDrafter(DraftProbs draft_probs, const DrafterLimits& limits)
      : draft_probs_(std::move(draft_probs)),
        limits_(limits),
        slots_(static_cast<size_t>(limits.max_num_seqs)) {}

  Status update_slots(const BatchPlan& plan) override {
    for (const SlotAdded& added : plan.slots_added) slots_[static_cast<size_t>(added.slot)] = added;
    return {};
  }

  Status propose(const HostDraftCall& call) override {
    for (int i = 0; i < call.num_spans; ++i) {
      if (call.slots[i] >= 0) propose(call, call.slots[i], call.num_wanted[i]);
    }
    return {};
  }

 private:
  void propose(const HostDraftCall& call, int slot_idx, int num_wanted) {
    const auto num_drafts = static_cast<size_t>(limits_.num_drafts);
    const auto vocab_size = static_cast<size_t>(limits_.vocab_size);
    const auto slot = static_cast<size_t>(slot_idx);
    const SlotAdded& sequence = slots_[slot];
    const std::span next(call.next_tokens + slot * (1 + num_drafts), 1 + num_drafts);
    const int first = call.num_computed[slot] + 1;
    const DraftNoise noise(sequence.sampling->seed, static_cast<uint64_t>(first));
    for (int i = 0; i < num_wanted; ++i) {
      const auto draft_idx = static_cast<size_t>(i);
      const std::span probs(call.probs + (slot * num_drafts + draft_idx) * vocab_size, vocab_size);
      draft_probs_(sequence, first + i, next[draft_idx], probs);
      std::vector<Candidate> candidates;
      for (size_t id = 0; id < vocab_size; ++id) {
        if (probs[id] > 0) candidates.push_back({probs[id], static_cast<int32_t>(id)});
      }
      next[draft_idx + 1] =
          candidates.empty() ? 0 : sample_gumbel_max(candidates, noise.draft(draft_idx));
    }
    call.num_proposed[slot] = num_wanted;
  }

  DraftProbs draft_probs_;
  DrafterLimits limits_;
  std::vector<SlotAdded> slots_;
};

std::unique_ptr<Engine> start_drafting(int num_drafts, Verification verification,
                                       const DraftProbs& draft_probs) {
  verification.samples_drafts = true;
  const auto make_drafter = [draft_probs](DeviceContext&, const DrafterLimits& limits) {
    return Result(std::shared_ptr<Drafter>(new SampledDrafter(draft_probs, limits)));
  };
  return value_of(start_engine(tiny_config(), {.num_drafts = num_drafts,
                                               .verification = std::move(verification),
                                               .make_drafter = make_drafter}));
}

class SampledDraftsTest : public ::testing::TestWithParam<std::tuple<RejectionMethod, int>> {
 protected:
  std::unique_ptr<Engine> make_engine(const DraftProbs& draft_probs,
                                      bool is_adaptive = false) const {
    const auto [method, num_drafts] = GetParam();
    return start_drafting(num_drafts, {.method = method, .is_adaptive = is_adaptive}, draft_probs);
  }
  static std::unique_ptr<Engine> make_engine_with_drafter(std::string_view drafting_method,
                                                          const std::string& model) {
    const auto [method, num_drafts] = GetParam();
    EngineConfig config = tiny_config();
    config.speculative_config = fmt::format(
        R"({{"method": "{}", "model": "{}", "num_speculative_tokens": {},
             "enable_adaptive_verification": false, "draft_sample_method": "probabilistic",
             "rejection_sample_method": "{}"}})",
        drafting_method, model, num_drafts,
        method == RejectionMethod::kBlock ? "block" : "standard");
    return testing::make_engine(config);
  }
  // The model drafts for itself.
  static std::unique_ptr<Engine> make_engine_with_model() {
    return make_engine_with_drafter("draft_model", tiny_config().model);
  }
  // Transitions make a draft depend on the one before it.
  static std::unique_ptr<Engine> make_engine_with_block_drafter() {
    return make_engine_with_drafter("dspark", write_config("quire_sampled_block", R"({
        "architectures": ["Qwen3DSparkModel"], "model_type": "qwen3", "hidden_size": 64,
        "head_dim": 16, "intermediate_size": 96, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
        "max_position_embeddings": 64, "block_size": 4, "markov_rank": 64,
        "mask_token_id": 3, "target_layer_ids": [0, 1]})"));
  }
};

INSTANTIATE_TEST_SUITE_P(MethodAndDrafts, SampledDraftsTest,
                         ::testing::Combine(::testing::Values(RejectionMethod::kStandard,
                                                              RejectionMethod::kBlock),
                                            ::testing::Values(1, 2, 4)));

// ---- The distribution

constexpr int32_t kFirstAllowed = 10;
constexpr int kNumAllowed = 3;
constexpr int kNumTokens = 4;
constexpr size_t kNumOutputs = 81;
constexpr int kNumRequests = 4000;
// The 99.9999 % point of chi-square with 80 degrees of freedom. The steps of the requests, and thus
// their outputs, depend on the time at which they arrive.
constexpr double kChiBound = 155;

// Requests whose rules depend on the tokens before.
std::vector<Request> ruled_requests(uint64_t first_seed, bool over_three_tokens) {
  std::vector<Request> all;
  for (uint64_t i = 0; i < kNumRequests; ++i) {
    Request request;
    request.prompt_token_ids = tiny_prompt(3, 1);
    request.sampling.max_tokens = kNumTokens;
    request.sampling.ignore_eos = true;
    request.sampling.seed = first_seed + i;
    request.sampling.repetition_penalty = 1.3F;
    request.sampling.frequency_penalty = 0.4F;
    request.sampling.temperature = 0.9F;
    for (int32_t id = 0; over_three_tokens && id < kNumAllowed; ++id) {
      request.sampling.allowed_token_ids.push_back(kFirstAllowed + id);
    }
    all.push_back(request);
  }
  return all;
}

// Counts the outputs by their tokens modulo 3.
std::vector<int> count_outputs(const std::vector<Collected>& outputs) {
  std::vector<int> counts(kNumOutputs);
  for (const Collected& output : outputs) {
    EXPECT_TRUE(output.error.ok()) << output.error.message();
    EXPECT_EQ(output.token_ids.size(), static_cast<size_t>(kNumTokens));
    size_t number = 0;
    for (const int32_t id : output.token_ids) {
      number = number * 3 + static_cast<size_t>(id % 3);
    }
    ++counts.at(number);
  }
  return counts;
}

// Pearson's chi-square of two samples of the same size.
double chi_square(const std::vector<int>& a, const std::vector<int>& b) {
  double chi = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double sum = a[i] + b[i], difference = a[i] - b[i];
    if (sum > 0) chi += difference * difference / sum;
  }
  return chi;
}

const std::vector<int>& ordinary_counts() {
  static const std::vector<int> counts =
      count_outputs(run_all(*testing::make_engine(tiny_config()), ruled_requests(1000000, true)));
  return counts;
}

// Gives one of the three allowed tokens 60 %.
void prefer_one_token(const SlotAdded&, int position, int32_t last_token, std::span<float> probs) {
  std::ranges::fill(probs, 0.F);
  const auto favorite = static_cast<size_t>(position + last_token) % kNumAllowed;
  for (size_t id = 0; id < kNumAllowed; ++id) {
    probs[kFirstAllowed + id] = id == favorite ? 0.6F : 0.2F;
  }
}

TEST_P(SampledDraftsTest, KeepTheDistributionOfARunWithoutThem) {
  const auto engine = make_engine(prefer_one_token);
  const std::vector<int> counts = count_outputs(run_all(*engine, ruled_requests(0, true)));
  EXPECT_LT(chi_square(counts, ordinary_counts()), kChiBound);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, drafts.num_drafts / 4);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
}

// Which drafts are left out depends on the time that steps take.
TEST_P(SampledDraftsTest, KeepTheDistributionIfSomeAreLeftOut) {
  const auto engine = make_engine(prefer_one_token, true);
  const std::vector<int> counts = count_outputs(run_all(*engine, ruled_requests(0, true)));
  EXPECT_LT(chi_square(counts, ordinary_counts()), kChiBound);
}

// The drafter is the target itself, but the rules make the distributions differ; or it is another.
TEST_P(SampledDraftsTest, OfAModelKeepTheDistributionToo) {
  static const std::vector<int> ordinary =
      count_outputs(run_all(*testing::make_engine(tiny_config()), ruled_requests(1000000, false)));
  for (const bool is_block : {false, true}) {
    const auto engine = is_block ? make_engine_with_block_drafter() : make_engine_with_model();
    const std::vector<int> counts = count_outputs(run_all(*engine, ruled_requests(0, false)));
    EXPECT_LT(chi_square(counts, ordinary), kChiBound);
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_accepted, drafts.num_drafts / 4);
    EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
  }
}

// Allows the three tokens that the outputs are counted by.
class ThreeTokens final : public TokenConstraint {
 public:
  std::vector<uint32_t> allowed_tokens() override {
    return {((1U << kNumAllowed) - 1) << kFirstAllowed};
  }
  bool accept(int32_t /*token_id*/) override { return true; }
  bool can_roll_back() const override { return true; }
  bool rollback(int /*num_tokens*/) override { return true; }
};

// Half of the drafts are forbidden and are cut. The others then have another distribution than all
// drafts, which verification must take into account.
TEST_P(SampledDraftsTest, KeepTheDistributionUnderAConstraint) {
  const auto requests = [](uint64_t first_seed) {
    std::vector<Request> all = ruled_requests(first_seed, false);
    for (Request& request : all) {
      request.make_constraint = [] { return std::make_unique<ThreeTokens>(); };
    }
    return all;
  };
  static const std::vector<int> ordinary =
      count_outputs(run_all(*testing::make_engine(tiny_config()), requests(1000000)));
  const auto engine = make_engine([](const SlotAdded&, int, int32_t, std::span<float> probs) {
    std::ranges::fill(probs, 0.F);
    constexpr std::array kProbs = {0.3F, 0.1F, 0.1F, 0.5F};
    std::ranges::copy(kProbs, probs.begin() + kFirstAllowed);
  });
  const std::vector<int> counts = count_outputs(run_all(*engine, requests(0)));
  EXPECT_LT(chi_square(counts, ordinary), kChiBound);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, drafts.num_drafts / 4);
}

// Without rules, the model that drafts has the distribution of the target.
TEST_P(SampledDraftsTest, OfTheTargetItselfAreAllAccepted) {
  const auto engine = make_engine_with_model();
  std::vector<Request> all;
  for (int i = 0; i < 30; ++i) {
    all.push_back(greedy(tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i)), 40));
    all.back().sampling.temperature = i % 5 == 0 ? 0.0F : 0.9F;
    all.back().sampling.seed = static_cast<uint64_t>(i);
    if (i % 2 == 0) all.back().sampling.top_k = 8;
    if (i % 3 == 0) all.back().sampling.top_p = 0.8F;
  }
  for (const Collected& output : run_all(*engine, all)) EXPECT_EQ(output.token_ids.size(), 40U);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_drafts, 500);
  EXPECT_EQ(drafts.num_accepted, drafts.num_drafts);
}

// ---- Requests with every kind of rule

std::vector<Request> requests(float temperature) {
  std::vector<Request> all;
  for (int i = 0; i < 24; ++i) {
    Request request;
    request.prompt_token_ids = tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i));
    request.sampling.max_tokens = 1 + (i * 7) % 60;
    request.sampling.ignore_eos = i % 4 != 0;
    request.sampling.logprobs = 2;
    request.sampling.temperature = temperature;
    request.sampling.seed = 5;
    if (i % 3 == 0) request.sampling.presence_penalty = 0.7F;
    if (i % 5 == 0) request.sampling.min_tokens = std::min(8, request.sampling.max_tokens);
    if (i % 7 == 0) request.sampling.top_p = 0.7F;
    all.push_back(request);
  }
  return all;
}

// The right draft has 60 %.
TEST_P(SampledDraftsTest, GreedyRequestsHaveTheBitsOfARunWithoutThem) {
  static const std::vector<Collected> ordinary =
      run_all(*testing::make_engine(tiny_config()), requests(0));
  const auto engine =
      make_engine([](const SlotAdded& sequence, int position, int32_t, std::span<float> probs) {
        const std::vector<int32_t> prompt(sequence.token_ids.begin(),
                                          sequence.token_ids.begin() + sequence.num_prompt_tokens);
        static const std::vector<Request> all = requests(0);
        const auto found = std::ranges::find(all, prompt, &Request::prompt_token_ids);
        const std::vector<int32_t>& output =
            ordinary[static_cast<size_t>(found - all.begin())].token_ids;
        const auto at = static_cast<size_t>(position) - prompt.size();
        const auto right = static_cast<size_t>(at < output.size() ? output[at] : 0);
        std::ranges::fill(probs, 0.F);
        probs[right] = 0.6F;
        probs[(right + 1) % probs.size()] = 0.4F;
      });
  expect_same(run_all(*engine, requests(0)), ordinary);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, 0);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
}

// The target's token takes the place of each draft, by the noise of a run without drafts.
TEST_P(SampledDraftsTest, ANanInTheirDistributionLeavesTheOrdinaryOutput) {
  static const std::vector<Collected> ordinary =
      run_all(*testing::make_engine(tiny_config()), requests(1));
  const auto engine = make_engine([](const SlotAdded&, int, int32_t, std::span<float> probs) {
    std::ranges::fill(probs, std::numeric_limits<float>::quiet_NaN());
  });
  expect_same(run_all(*engine, requests(1)), ordinary);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_EQ(drafts.num_accepted, 0);
  EXPECT_GT(drafts.num_drafts, 0);
}

// ---- Synthetic acceptance

TEST(SyntheticAcceptance, AcceptsDraftsAtItsRates) {
  const auto engine =
      start_drafting(3, {.method = RejectionMethod::kSynthetic, .synthetic_rates = {0.8, 0.5, 0}},
                     [](const SlotAdded&, int, int32_t, std::span<float> probs) {
                       std::ranges::fill(probs, 0.F);
                       probs[7] = 1;
                     });
  EXPECT_TRUE(engine->model_info().has_synthetic_acceptance);
  std::vector<Request> all;
  for (uint64_t i = 0; i < 64; ++i) {
    all.push_back(greedy(tiny_prompt(4, i), 100));
    all.back().sampling.seed = i;
  }
  for (const Collected& output : run_all(*engine, all)) {
    EXPECT_EQ(output.token_ids.size(), 100U);
    EXPECT_GT(std::ranges::count(output.token_ids, 7), 30);
  }
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  const auto share = [&](size_t position) {
    return static_cast<double>(drafts.accepted_by_position[position]) /
           static_cast<double>(drafts.num_spans);
  };
  EXPECT_GT(drafts.num_spans, 2000);
  EXPECT_NEAR(share(0), 0.8, 0.05);
  EXPECT_NEAR(share(1), 0.5, 0.06);
  EXPECT_EQ(share(2), 0);
}

}  // namespace
}  // namespace quire::testing
