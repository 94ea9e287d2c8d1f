// Sequences under a constraint have drafts as well: the output equals the output of a run without
// drafts, and no draft that the constraint forbids is verified.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "cpu/platform/host_drafter.h"
#include "engine/recorded_drafter.h"
#include "engine/tiny_engine.h"

namespace quire::testing {
namespace {

constexpr int kVocabSize = 96;

// The tokens that may come next depend on all tokens before, as in a grammar. About
// 1 - 1 / `strictness` of all tokens are allowed.
class HashedMasks final : public TokenConstraint {
 public:
  HashedMasks(uint64_t seed, uint64_t strictness) : strictness_(strictness), states_{mix(seed)} {}

  std::vector<uint32_t> allowed_tokens() override {
    std::vector<uint32_t> mask(kVocabSize / 32);
    for (size_t id = 0; id < kVocabSize; ++id) {
      if (allows(id)) mask[id / 32] |= 1U << (id % 32);
    }
    return mask;
  }
  bool accept(int32_t token_id) override {
    if (!allows(static_cast<size_t>(token_id))) return false;
    states_.push_back(mix(states_.back() + static_cast<uint64_t>(token_id)));
    return true;
  }
  bool can_roll_back() const override { return true; }
  bool rollback(int num_tokens) override {
    if (static_cast<size_t>(num_tokens) >= states_.size()) return false;
    states_.resize(states_.size() - static_cast<size_t>(num_tokens));
    return true;
  }

 private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  bool allows(size_t id) const { return mix(states_.back() ^ (id << 32)) % strictness_ != 0; }

  uint64_t strictness_;
  std::vector<uint64_t> states_;  // after each number of tokens
};

// Greedy and random requests with rules, log probabilities and ends; some share a prefix.
std::vector<Request> constrained_requests() {
  std::vector<Request> all;
  for (int i = 0; i < 24; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    Request request;
    request.prompt_token_ids = tiny_prompt(3 + (i * 37) % 120, static_cast<uint64_t>(i % 10));
    SamplingParams& sampling = request.sampling;
    sampling.max_tokens = 1 + (i * 13) % 60;
    sampling.ignore_eos = i % 3 != 0;
    sampling.logprobs = 1;
    sampling.temperature = i % 2 == 0 ? 0.0F : 0.8F;
    sampling.seed = seed;
    if (i % 4 == 1) sampling.repetition_penalty = 1.2F;
    if (i % 5 == 0) sampling.min_tokens = std::min(12, sampling.max_tokens);
    if (i % 6 == 0) sampling.top_p = 0.8F;
    const uint64_t strictness = i % 4 == 0 ? 2 : 6;
    request.make_constraint = [seed, strictness] {
      return std::make_unique<HashedMasks>(seed, strictness);
    };
    all.push_back(request);
  }
  return all;
}

std::vector<Request> mixed_requests() {
  std::vector<Request> all = constrained_requests();
  for (int i = 0; i < 12; ++i) {
    all.insert(all.begin() + 3 * i,
               greedy(tiny_prompt(3 + i * 11, static_cast<uint64_t>(40 + i)), 50));
  }
  return all;
}

EngineConfig with_drafts(std::string_view method, int num_drafts) {
  EngineConfig config = tiny_config();
  const std::string model =
      method == "draft_model" ? fmt::format(R"(, "model": "{}")", config.model) : std::string();
  config.speculative_config = fmt::format(
      R"({{"method": "{}", "num_speculative_tokens": {}{}{},
           "enable_adaptive_verification": false}})",
      method, num_drafts, model,
      method == "ngram" ? R"(, "prompt_lookup_max": 2, "prompt_lookup_min": 1)" : "");
  return config;
}

class ConstrainedSpeculation : public ::testing::TestWithParam<std::tuple<std::string_view, int>> {
 protected:
  static EngineConfig config() {
    const auto [method, num_drafts] = GetParam();
    return with_drafts(method, num_drafts);
  }
};

TEST_P(ConstrainedSpeculation, BringsTheBitsOfARunWithoutDrafts) {
  static const std::vector<Collected> ordinary =
      run_all(*make_engine(tiny_config()), mixed_requests());
  expect_same(run_all(*make_engine(config()), mixed_requests()), ordinary);
}

TEST_P(ConstrainedSpeculation, AcceptsDraftsOfConstrainedSequences) {
  static const std::vector<Collected> ordinary =
      run_all(*make_engine(tiny_config()), constrained_requests());
  const auto engine = make_engine(config());
  expect_same(run_all(*engine, constrained_requests()), ordinary);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, 0);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
}

TEST_P(ConstrainedSpeculation, SurvivesPreemptionAndSmallSteps) {
  EngineConfig small = config();
  small.max_model_len = 256;
  small.max_num_batched_tokens = 64;
  small.kv_cache_memory = 2 * 16 * 8192;  // 16 or 32 blocks for all requests
  static const std::vector<Collected> ordinary =
      run_all(*make_engine(tiny_config()), mixed_requests());
  const auto engine = make_engine(small);
  expect_same(run_all(*engine, mixed_requests()), ordinary);
}

INSTANTIATE_TEST_SUITE_P(MethodAndDrafts, ConstrainedSpeculation,
                         ::testing::Combine(::testing::Values("ngram", "suffix", "draft_model"),
                                            ::testing::Values(1, 4, 8)),
                         [](const auto& param) {
                           return fmt::format("{}_{}", std::get<0>(param.param),
                                              std::get<1>(param.param));
                         });

// ---- Recorded drafts, of which a pseudo-random one is wrong: spans of every length occur

class RecordedConstrained : public ::testing::TestWithParam<int> {};

TEST_P(RecordedConstrained, BringsTheBitsAndAcceptsAllThatIsRight) {
  // The drafter finds an output by its prompt, so each prompt is used once.
  std::vector<Request> all = constrained_requests();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].prompt_token_ids = tiny_prompt(3 + static_cast<int>(i * 37) % 120, 100 + i);
  }
  const std::vector<Collected> ordinary = run_all(*make_engine(tiny_config()), all);
  RecordedOutputs recorded;
  for (size_t i = 0; i < all.size(); ++i) {
    recorded[all[i].prompt_token_ids] = ordinary[i].token_ids;
  }
  const auto make_drafter = [&](DeviceContext&, const DrafterLimits& limits) {
    return Result(make_recorded_drafter(recorded, limits));
  };
  auto engine = value_of(
      start_engine(tiny_config(), {.num_drafts = GetParam(), .make_drafter = make_drafter}));
  expect_same(run_all(*engine, all), ordinary);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, 100);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, RecordedConstrained, ::testing::Values(1, 2, 4, 8, 15));

// ---- A forbidden draft is cut before verification

// Allows one token per position, and counts nothing else.
class Script final : public TokenConstraint {
 public:
  explicit Script(std::vector<int32_t> ids) : ids_(std::move(ids)) {}
  std::vector<uint32_t> allowed_tokens() override {
    std::vector<uint32_t> mask(kVocabSize / 32);
    const auto id = static_cast<size_t>(ids_[num_accepted_]);
    mask[id / 32] |= 1U << (id % 32);
    return mask;
  }
  bool accept(int32_t token_id) override { return ids_.at(num_accepted_++) == token_id; }
  bool can_roll_back() const override { return true; }
  bool rollback(int num_tokens) override {
    num_accepted_ -= static_cast<size_t>(num_tokens);
    return true;
  }

 private:
  std::vector<int32_t> ids_;
  size_t num_accepted_ = 0;
};

// With drafts that are the script, but for each third token, every verified draft is accepted.
TEST(ConstrainedDraftsInARun, AreCutAtTheFirstThatIsForbidden) {
  std::vector<int32_t> script;
  for (int i = 0; i < 60; ++i) script.push_back(3 + (i * 29) % 90);
  std::vector<int32_t> drafts = script;
  for (size_t i = 2; i < drafts.size(); i += 3) drafts[i] = drafts[i] == 5 ? 6 : 5;
  const std::vector<int32_t> prompt = {7, 8, 9};

  class Fixed final : public HostDrafter {
   public:
    Fixed(std::vector<int32_t> drafts, const DrafterLimits& limits)
        : drafts_(std::move(drafts)), limits_(limits) {}
    Status update_slots(const BatchPlan&) override { return {}; }
    Status propose(const HostDraftCall& call) override {
      for (int i = 0; i < call.num_spans; ++i) {
        const int slot = call.slots[i];
        if (slot < 0) continue;
        int32_t* next = call.next_tokens + slot * (1 + limits_.num_drafts);
        for (int k = 0; k < call.num_wanted[i]; ++k) {
          // The prompt has three tokens, and the newest token is not computed.
          const auto at = static_cast<size_t>(call.num_computed[slot] - 3 + 1 + k);
          next[1 + k] = at < drafts_.size() ? drafts_[at] : 0;
        }
        call.num_proposed[slot] = call.num_wanted[i];
      }
      return {};
    }

   private:
    std::vector<int32_t> drafts_;
    DrafterLimits limits_;
  };
  const auto make_drafter = [&](DeviceContext&, const DrafterLimits& limits) {
    return Result(std::shared_ptr<Drafter>(new Fixed(drafts, limits)));
  };
  auto engine =
      value_of(start_engine(tiny_config(), {.num_drafts = 5, .make_drafter = make_drafter}));
  Request request = greedy(prompt, 40);
  request.make_constraint = [&] { return std::make_unique<Script>(script); };
  EXPECT_TRUE(std::ranges::equal(run_all(*engine, {request}).front().token_ids,
                                 std::span(script).first(40)));
  const SpeculationStats stats = stats_at_rest(*engine).speculation;
  EXPECT_EQ(stats.num_accepted, stats.num_drafts) << "a forbidden draft was verified";
  EXPECT_GE(stats.num_drafts, 20);
}

}  // namespace
}  // namespace quire::testing
