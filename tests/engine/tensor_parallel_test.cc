// Several ranks of one CPU give the tokens and, within float32's rounding, the log probabilities of
// one rank: for every family and kind of drafter.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine_case.h"
#include "engine/tiny_drafters.h"
#include "engine/tiny_families.h"
#include "start/model_files.h"
#include "start/plan.h"
#include "start/platform_choice.h"
#include "support/integer_checkpoint.h"
#include "support/source_models.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

// Sums of the same terms in another order.
constexpr double kRounding = 1e-5;

std::vector<Request> requests() {
  return logprob_requests({1, 7, 30, 64}, 12);
}

class Families : public ::testing::TestWithParam<TinyFamily> {};

// Two of 4 ranks share a head of keys and values, and the last rank has fewer tokens of the
// vocabulary.
TEST_P(Families, GiveTheLogitsOfOneRank) {
  const EngineConfig config = config_of(GetParam());
  const std::vector<Collected> expected = outputs_of(with_ranks(config, 1), requests());
  for (const int size : {2, 4}) {
    SCOPED_TRACE(fmt::format("{} ranks", size));
    expect_close(outputs_of(with_ranks(config, size), requests()), expected, kRounding);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(tiny_families()),
                         [](const auto& family) { return std::string(family.param.name); });

TEST(TensorParallel, RunsTwiceWithTheSameBits) {
  const EngineConfig config = with_ranks(tiny_windows_config(), 2);
  expect_same(outputs_of(config, sampled_requests()), outputs_of(config, sampled_requests()));
}

TEST(TensorParallel, SamplesAsOneRank) {
  const EngineConfig config = tiny_config();
  const auto expected = outputs_of(with_ranks(config, 1), sampled_requests());
  const auto got = outputs_of(with_ranks(config, 2), sampled_requests());
  ASSERT_EQ(got.size(), expected.size());
  size_t num_equal = 0;
  for (size_t i = 0; i < got.size(); ++i) num_equal += got[i].token_ids == expected[i].token_ids;
  // A number next to the border between two tokens may fall on its other side.
  EXPECT_GE(num_equal + 1, got.size());
}

// Requests without log probabilities are chosen from the ranks' parts of the logits, and those with
// them from whole rows of the same logits.
TEST(TensorParallel, ChoosesTheSameTokensFromPartsAndFromWholeRows) {
  const auto with_logprobs = [](std::vector<Request> all, size_t first) {
    for (size_t i = first; i < all.size(); ++i) all[i].sampling.logprobs = 0;
    return all;
  };
  std::vector<Request> all = sampled_requests();
  for (const Request& request : requests()) {
    all.push_back(request);
    all.back().sampling.logprobs = std::nullopt;
    all.back().sampling.prompt_logprobs = std::nullopt;
  }
  for (const TinyFamily& family : tiny_families()) {
    SCOPED_TRACE(family.name);
    const EngineConfig config = config_of(family);
    const auto expected = outputs_of(with_ranks(config, 2), with_logprobs(all, 0));
    const auto from_parts = outputs_of(with_ranks(config, 2), all);
    const auto mixed = outputs_of(with_ranks(config, 2), with_logprobs(all, all.size() / 2));
    ASSERT_EQ(expected.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_FALSE(expected[i].token_ids.empty());
      EXPECT_EQ(from_parts[i].token_ids, expected[i].token_ids) << i;
      EXPECT_EQ(mixed[i].token_ids, expected[i].token_ids) << i;
    }
  }
}

TEST(TensorParallel, ChoosesTheTokensOfOneRankFromParts) {
  std::vector<Request> all = requests();
  for (Request& request : all) {
    request.sampling.logprobs = std::nullopt;
    request.sampling.prompt_logprobs = std::nullopt;
  }
  for (const TinyFamily& family : tiny_families()) {
    SCOPED_TRACE(family.name);
    const auto expected = outputs_of(with_ranks(config_of(family), 1), all);
    const auto got = outputs_of(with_ranks(config_of(family), 2), all);
    ASSERT_EQ(got.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(got[i].token_ids, expected[i].token_ids) << i;
  }
}

struct DrafterCase {
  const char* name;
  EngineConfig (*config)();
};

class Drafters : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(Drafters, AreDividedWithTheirTargets) {
  const EngineConfig config = GetParam().config();
  const std::vector<Request> all = eagle_requests();
  const auto drafted = [&](int num_ranks, int64_t& num_accepted) {
    const auto engine = make_engine(with_ranks(config, num_ranks));
    std::vector<Collected> outputs = run_all(*engine, all);
    num_accepted = stats_at_rest(*engine).speculation.num_accepted;
    return outputs;
  };
  int64_t expected_accepted = 0;
  int64_t accepted = 0;
  const auto expected = drafted(1, expected_accepted);
  const auto got = drafted(2, accepted);
  ASSERT_EQ(got.size(), expected.size());
  size_t num_equal = 0;
  for (size_t i = 0; i < got.size(); ++i) num_equal += got[i].token_ids == expected[i].token_ids;
  EXPECT_GE(num_equal + 1, got.size());
  EXPECT_GT(expected_accepted, 0);
  EXPECT_NEAR(static_cast<double>(accepted), static_cast<double>(expected_accepted),
              0.02 * static_cast<double>(expected_accepted));
}

INSTANTIATE_TEST_SUITE_P(
    All, Drafters,
    ::testing::Values(
        DrafterCase{"ngram", [] { return with_drafter(eagle_target(), "", 3, "ngram"); }},
        DrafterCase{"model", [] { return with_drafter(eagle_target(), eagle_target().model, 3); }},
        DrafterCase{"eagle3",
                    [] { return with_drafter(eagle_target(), eagle_head(), 3, "eagle3"); }},
        DrafterCase{"mtp", [] { return with_drafter(mimo_target(), "", 1, "mtp"); }},
        DrafterCase{"mtp_of_a_hybrid",
                    [] { return with_drafter(qwen_target(false), "", 3, "mtp"); }},
        DrafterCase{"mtp_with_experts",
                    [] { return with_drafter(qwen_target(true), "", 3, "mtp"); }},
        DrafterCase{
            "dflash",
            [] { return with_drafter(eagle_target(), block_drafter("dflash"), 3, "dflash"); }},
        DrafterCase{
            "dspark",
            [] { return with_drafter(eagle_target(), block_drafter("dspark"), 3, "dspark"); }}),
    [](const auto& drafter) { return std::string(drafter.param.name); });

// Rank 0 measures its steps, and all ranks leave out the same drafts.
TEST(TensorParallel, RanksLeaveOutTheSameDrafts) {
  EngineConfig config = eagle_target();
  config.speculative_config =
      R"({"method": "ngram", "num_speculative_tokens": 3, "enable_adaptive_verification": true})";
  for (const Collected& output : outputs_of(with_ranks(config, 2), eagle_requests())) {
    EXPECT_TRUE(output.error.ok()) << output.error.message();
    EXPECT_FALSE(output.token_ids.empty());
  }
}

// The plan, which `quire doctor` prints, refuses them as the load does.
TEST(TensorParallel, RefusesToCutGroupsAndColumnsInTheirOrder) {
  const SourceModel embedded = abacus_model();
  struct Case {
    int num_ranks;
    int group_size;
    bool act_order;
    std::string error;
  };
  for (const Case& one : {Case{2, 32, true, "are in an order of groups (act-order)"},
                          Case{8, 128, false, "cuts a group with one scale; got 64 of its"}}) {
    const IntegerCheckpoint checkpoint = quantize_integers(embedded.config, embedded.bytes(),
                                                           {.tool = IntegerTool::kGptq,
                                                            .bits = 4,
                                                            .group_size = one.group_size,
                                                            .act_order = one.act_order});
    const ScratchDirectory scratch;
    const EngineConfig config =
        write_checkpoint(scratch, checkpoint.config_json, checkpoint.tensors);
    const auto plan_error = [&](int num_ranks) {
      const EngineConfig ranks = with_ranks(config, num_ranks);
      const ModelFiles files = open_model_files(ranks).value();
      const std::unique_ptr<Platform> platform = make_platform(ranks, files).value();
      return std::string(plan_ranks(ranks, files, *platform, {}).status().message());
    };
    EXPECT_EQ(plan_error(1), "");
    const std::string error = plan_error(one.num_ranks);
    EXPECT_THAT(error, HasSubstr(one.error));
    EXPECT_EQ(Engine::create(with_ranks(config, one.num_ranks)).status().message(), error);
  }
}

// ---- Refusals

TEST(TensorParallel, RefusesModelsThatDoNotDivide) {
  EXPECT_THAT(error_of(with_ranks(tiny_config(), 3)),
              HasSubstr("does not divide num_attention_heads; got 4"));
  EXPECT_THAT(error_of(with_ranks(tiny_config(), 65)), HasSubstr("tensor_parallel_size"));
  EXPECT_THAT(error_of(with_ranks(tiny_config(), 0)), HasSubstr("tensor_parallel_size"));
  EngineConfig few_threads = with_ranks(tiny_config(), 4);
  few_threads.num_threads = 2;
  EXPECT_THAT(error_of(few_threads), HasSubstr("4 ranks for 2 threads"));
}

// The ranks that load without an error must not wait for one that fails.
TEST(TensorParallel, ReportsAnErrorWhileRanksLoad) {
  SourceModel embedded = abacus_model();
  const size_t at = embedded.weights.find("layers.1.mlp.down_proj");
  ASSERT_NE(at, std::string::npos);
  embedded.weights.replace(at, 8, "layers.9");
  const ScratchDirectory scratch;
  const EngineConfig config = write_checkpoint(scratch, embedded.config, embedded.weights);
  EXPECT_THAT(error_of(with_ranks(config, 2)), HasSubstr("down_proj"));
}

}  // namespace
}  // namespace quire::testing
