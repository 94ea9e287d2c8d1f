// Constrained outputs on a GPU satisfy their constraint, equal the CPU's, and do not change other
// outputs.
#include <gmock/gmock.h>

#include "base/numbers.h"
#include "cuda/platform/gpu_engine.h"
#include "engine/tiny_drafters.h"

namespace quire::testing {
namespace {

// The allowed next tokens depend on all previous ones, as in a grammar.
class HashedMasks final : public TokenConstraint {
 public:
  explicit HashedMasks(uint64_t seed) : state_(mix(seed)) {}

  std::vector<uint32_t> allowed_tokens() override {
    const uint64_t bits = mix(state_);
    std::vector<uint32_t> mask = {static_cast<uint32_t>(bits) & static_cast<uint32_t>(bits >> 7),
                                  static_cast<uint32_t>(bits >> 32) | 1U,
                                  static_cast<uint32_t>(mix(bits))};
    if (bits % 3 == 0) mask.pop_back();  // forbids all tokens beyond the last word
    return mask;
  }
  bool accept(int32_t token_id) override {
    const bool is_allowed = allows(token_id);
    earlier_.push_back(state_);
    state_ = mix(state_ ^ static_cast<uint64_t>(token_id));
    return is_allowed;
  }
  bool can_roll_back() const override { return true; }
  bool rollback(int num_tokens) override {
    const auto count = static_cast<size_t>(num_tokens);
    if (count == 0 || count > earlier_.size()) return count == 0;
    state_ = earlier_[earlier_.size() - count];
    earlier_.resize(earlier_.size() - count);
    return true;
  }

 private:
  bool allows(int32_t token_id) {
    const std::vector<uint32_t> mask = allowed_tokens();
    const auto word = static_cast<size_t>(token_id / 32);
    return word < mask.size() && (mask[word] >> (token_id % 32) & 1) != 0;
  }

  uint64_t state_;
  std::vector<uint64_t> earlier_;  // before each accepted token
};

class NothingAfter final : public TokenConstraint {
 public:
  explicit NothingAfter(int num_tokens) : num_left_(num_tokens) {}
  std::vector<uint32_t> allowed_tokens() override {
    return num_left_ > 0 ? std::vector<uint32_t>(3, ~0U) : std::vector<uint32_t>();
  }
  bool accept(int32_t /*token_id*/) override { return num_left_-- > 0; }

 private:
  int num_left_;
};

constexpr int kNumConstrained = 24;

// Constrained requests, greedy and seeded, with filters, penalties and log probabilities.
std::vector<Request> constrained_requests() {
  std::vector<Request> all;
  for (int i = 0; i < kNumConstrained; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    Request request = greedy(tiny_prompt(1 + i * 29 % 70, seed), 20 + i % 5);
    SamplingParams& params = request.sampling;
    params.seed = seed;
    if (i % 3 != 0) params.temperature = 1.2F;
    if (i % 4 == 1) params.top_p = 0.9F;
    if (i % 4 == 2) params.top_k = 10;
    if (i % 5 == 0) params.frequency_penalty = 0.7F;
    if (i % 6 == 0) params.logprobs = 3;
    request.make_constraint = [seed] { return std::make_unique<HashedMasks>(seed); };
    all.push_back(request);
  }
  return all;
}

std::vector<Request> free_requests() {
  std::vector<Request> all;
  for (int i = 0; i < 12; ++i) {
    Request request = greedy(tiny_prompt(5 + i * 13 % 60, static_cast<uint64_t>(100 + i)), 40);
    if (i % 2 == 1) request.sampling.temperature = 1.0F;
    request.sampling.seed = static_cast<uint64_t>(i);
    all.push_back(request);
  }
  return all;
}

// Alternates between both lists; the rest of the longer one is at the end.
std::vector<Request> interleave(const std::vector<Request>& a, const std::vector<Request>& b) {
  std::vector<Request> all;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) all.push_back(a[i]);
    if (i < b.size()) all.push_back(b[i]);
  }
  return all;
}

const std::vector<Collected>& expected() {
  static const std::vector<Collected> answers = cpu_answers(constrained_requests());
  return answers;
}

void expect_cpus(const Collected& got, const Collected& cpu, uint64_t seed) {
  EXPECT_TRUE(got.error.ok()) << got.error.message();
  EXPECT_EQ(got.finish_reason, FinishReason::kLength);
  EXPECT_EQ(got.token_ids, cpu.token_ids) << "seed " << seed;
  HashedMasks constraint(seed);
  for (const int32_t id : got.token_ids) EXPECT_TRUE(constraint.accept(id)) << "seed " << seed;
  ASSERT_EQ(got.logprobs.size(), cpu.logprobs.size());
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    for (size_t k = 0; k < got.logprobs[i].size(); ++k) {
      EXPECT_NEAR(got.logprobs[i][k].logprob, cpu.logprobs[i].at(k).logprob, 1e-3F);
    }
  }
}

class GpuConstraints : public GpuTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(GpuConstraints, AreKeptAndLeaveTheOthersAlone) {
  EngineConfig config = tiny_f32("cuda");
  GetParam().change(config);
  const auto engine = make_engine(config);
  const std::vector<Collected> alone = run_all(*engine, free_requests());
  const std::vector<Collected> mixed =
      run_all(*engine, interleave(free_requests(), constrained_requests()));
  size_t at = 0;
  for (size_t i = 0; i < kNumConstrained; ++i) {
    if (i < alone.size()) {
      EXPECT_EQ(mixed[at++].token_ids, alone[i].token_ids) << "free " << i;
    }
    expect_cpus(mixed[at++], expected()[i], i);
  }
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_EQ(stats.num_preemptions > 0, GetParam().name == std::string_view("preemption"));
}

// A constraint cuts the drafts that it forbids, and the others are verified.
TEST_P(GpuConstraints, VerifyTheDraftsThatTheyAllow) {
  EngineConfig config = with_drafter(tiny_f32("cuda"), tiny_f32("cuda").model, 4);
  GetParam().change(config);
  // A variant with little memory means it for a model of two layers, without a drafter.
  if (config.kv_cache_memory < int64_t{1} << 20) config.kv_cache_memory *= 4;
  const auto engine = make_engine(config);
  EXPECT_LE(count_differences(run_all(*engine, constrained_requests()), expected()), kMaxTies);
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_accepted, 50);
  EXPECT_GT(drafts.num_drafts, drafts.num_accepted);
}

INSTANTIATE_TEST_SUITE_P(Variants, GpuConstraints, ::testing::ValuesIn(common_variants()), name_of);

class GpuConstraint : public GpuTest {};

TEST_F(GpuConstraint, CostsOneCopyAndOneWaitAStep) {
  const auto engine = make_engine(tiny_f32("cuda"));
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 4; ++i) {
    requests.push_back(greedy(tiny_prompt(16, i), 30));
    if (i % 2 == 0) {
      requests.back().make_constraint = [i] { return std::make_unique<HashedMasks>(i); };
    }
  }
  run_all(*engine, requests);
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_GE(stats.num_steps, 30);
  EXPECT_EQ(stats.num_device_to_host_copies, stats.num_steps);
  EXPECT_EQ(stats.num_device_waits, stats.num_steps);
}

TEST_F(GpuConstraint, ThatAllowsNothingFailsAlone) {
  Request constrained = greedy(tiny_prompt(12, 2), 10);
  constrained.make_constraint = [] { return std::make_unique<NothingAfter>(3); };
  const std::vector<Request> requests = {constrained, greedy(tiny_prompt(10, 1), 40)};
  const auto engine = make_engine(tiny_f32("cuda"));
  const auto got = run_all(*engine, requests);
  const auto cpu = cpu_answers(requests);
  EXPECT_EQ(got[0].token_ids.size(), 3U);
  EXPECT_EQ(got[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(got[0].error.message(), cpu[0].error.message());
  EXPECT_EQ(got[1].finish_reason, FinishReason::kLength);
  EXPECT_EQ(got[1].token_ids, cpu[1].token_ids);
  EXPECT_TRUE(engine->health().ok());
  stats_at_rest(*engine);
}

}  // namespace
}  // namespace quire::testing
