// Several ranks of one CPU give the tokens and, within float32's rounding, the log probabilities of
// one rank: for every family, scheme of weights and kind of drafter.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "engine/tiny_families.h"
#include "start/model_files.h"
#include "start/plan.h"
#include "start/platform_choice.h"
#include "support/fp8_checkpoint.h"
#include "support/gguf_conversion.h"
#include "support/integer_checkpoint.h"
#include "support/scratch_directory.h"
#include "support/source_models.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::Collected;
using ::testing::HasSubstr;
using testing::run_all;
using testing::ScratchDirectory;

// Sums of the same terms in another order.
constexpr double kRounding = 1e-5;

EngineConfig with_ranks(EngineConfig config, int num_ranks) {
  config.device = "cpu";
  config.tensor_parallel_size = num_ranks;
  config.num_threads = num_ranks;
  config.kv_cache_memory = int64_t{8} << 20;
  config.kv_cache_dtype = "f32";  // a narrower cache would round a small difference to a large one
  return config;
}

std::vector<Request> requests(int vocab_size = 60) {
  std::vector<Request> all;
  for (const int length : {1, 7, 30, 64}) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back((3 + i * 29 + length) % vocab_size);
    all.push_back(testing::greedy(std::move(prompt), 12));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

void expect_close(const std::vector<PositionLogprobs>& got,
                  const std::vector<PositionLogprobs>& expected, double bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].empty(), expected[i].empty());
    if (got[i].empty()) continue;
    ASSERT_EQ(got[i][0].token_id, expected[i][0].token_id) << i;
    ASSERT_NEAR(got[i][0].logprob, expected[i][0].logprob, bound) << i;
  }
}

void expect_close(const std::vector<Collected>& got, const std::vector<Collected>& expected,
                  double bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(fmt::format("request {}", i));
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    ASSERT_FALSE(expected[i].token_ids.empty());
    EXPECT_EQ(got[i].token_ids, expected[i].token_ids);
    expect_close(got[i].logprobs, expected[i].logprobs, bound);
    expect_close(got[i].prompt_logprobs, expected[i].prompt_logprobs, bound);
  }
}

std::vector<Collected> run(const EngineConfig& config, const std::vector<Request>& all) {
  const auto engine = testing::make_engine(config);
  return engine == nullptr ? std::vector<Collected>() : run_all(*engine, all);
}

void expect_ranks_agree(const EngineConfig& config, std::initializer_list<int> sizes,
                        double bound = kRounding) {
  const std::vector<Collected> expected = run(with_ranks(config, 1), requests());
  for (const int size : sizes) {
    SCOPED_TRACE(fmt::format("{} ranks", size));
    expect_close(run(with_ranks(config, size), requests()), expected, bound);
  }
}

class Families : public ::testing::TestWithParam<testing::TinyFamily> {};

// Two of 4 ranks share a head of keys and values, and the last rank has fewer tokens of the
// vocabulary.
TEST_P(Families, GiveTheLogitsOfOneRank) {
  expect_ranks_agree(testing::config_of(GetParam()), {2, 4});
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(testing::tiny_families()),
                         [](const auto& family) { return std::string(family.param.name); });

TEST(TensorParallel, RunsTwiceWithTheSameBits) {
  const EngineConfig config = with_ranks(testing::tiny_windows_config(), 2);
  testing::expect_same(run(config, testing::sampled_requests()),
                       run(config, testing::sampled_requests()));
}

TEST(TensorParallel, SamplesAsOneRank) {
  const EngineConfig config = testing::tiny_config();
  const auto expected = run(with_ranks(config, 1), testing::sampled_requests());
  const auto got = run(with_ranks(config, 2), testing::sampled_requests());
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
  std::vector<Request> all = testing::sampled_requests();
  for (const Request& request : requests()) {
    all.push_back(request);
    all.back().sampling.logprobs = std::nullopt;
    all.back().sampling.prompt_logprobs = std::nullopt;
  }
  for (const testing::TinyFamily& family : testing::tiny_families()) {
    SCOPED_TRACE(family.name);
    const EngineConfig config = testing::config_of(family);
    const auto expected = run(with_ranks(config, 2), with_logprobs(all, 0));
    const auto from_parts = run(with_ranks(config, 2), all);
    const auto mixed = run(with_ranks(config, 2), with_logprobs(all, all.size() / 2));
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
  for (const testing::TinyFamily& family : testing::tiny_families()) {
    SCOPED_TRACE(family.name);
    const auto expected = run(with_ranks(testing::config_of(family), 1), all);
    const auto got = run(with_ranks(testing::config_of(family), 2), all);
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
  const std::vector<Request> all = testing::eagle_requests();
  const auto drafted = [&](int num_ranks, int64_t& num_accepted) {
    const auto engine = testing::make_engine(with_ranks(config, num_ranks));
    std::vector<Collected> outputs = run_all(*engine, all);
    num_accepted = testing::stats_at_rest(*engine).speculation.num_accepted;
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
        DrafterCase{"ngram",
                    [] { return testing::with_drafter(testing::eagle_target(), "", 3, "ngram"); }},
        DrafterCase{"model",
                    [] {
                      return testing::with_drafter(testing::eagle_target(),
                                                   testing::eagle_target().model, 3);
                    }},
        DrafterCase{"eagle3",
                    [] {
                      return testing::with_drafter(testing::eagle_target(), testing::eagle_head(),
                                                   3, "eagle3");
                    }},
        DrafterCase{"mtp",
                    [] { return testing::with_drafter(testing::mimo_target(), "", 1, "mtp"); }},
        DrafterCase{"dflash",
                    [] {
                      return testing::with_drafter(testing::eagle_target(),
                                                   testing::block_drafter("dflash"), 3, "dflash");
                    }},
        DrafterCase{"dspark",
                    [] {
                      return testing::with_drafter(testing::eagle_target(),
                                                   testing::block_drafter("dspark"), 3, "dspark");
                    }}),
    [](const auto& drafter) { return std::string(drafter.param.name); });

// Rank 0 measures its steps, and all ranks leave out the same drafts.
TEST(TensorParallel, RanksLeaveOutTheSameDrafts) {
  EngineConfig config = testing::eagle_target();
  config.speculative_config =
      R"({"method": "ngram", "num_speculative_tokens": 3, "enable_adaptive_verification": true})";
  for (const Collected& output : run(with_ranks(config, 2), testing::eagle_requests())) {
    EXPECT_TRUE(output.error.ok()) << output.error.message();
    EXPECT_FALSE(output.token_ids.empty());
  }
}

// ---- Quantized weights

// BF16 weights are multiplied by activations in two BF16 terms, which keep 16 bits.
constexpr double kTwoTerms = 1e-3;
// Activations are rounded before the products with integers. Where the ranks' sums differ in their
// last bits, a rounded activation differs by one step.
constexpr double kSteps = 0.02;

TEST(TensorParallel, DividesBlocksOfFp8) {
  const testing::SourceModel embedded = testing::abacus_model();
  for (const testing::Fp8Tool tool :
       {testing::Fp8Tool::kHuggingFaceBlock, testing::Fp8Tool::kCompressedChannel}) {
    const testing::Fp8Checkpoint checkpoint =
        testing::quantize_checkpoint(embedded.config, embedded.bytes(), tool);
    const ScratchDirectory scratch;
    scratch.write("config.json", checkpoint.config_json);
    scratch.write("model.safetensors", testing::safetensors_file(checkpoint.tensors));
    EngineConfig config;
    config.model = scratch.path();
    expect_ranks_agree(config, {2, 4}, kTwoTerms);
  }
}

TEST(TensorParallel, DividesIntegers) {
  const testing::SourceModel embedded = testing::abacus_model();
  for (const testing::IntegerTool tool : {testing::IntegerTool::kAwq, testing::IntegerTool::kGptq,
                                          testing::IntegerTool::kCompressedPack}) {
    const testing::IntegerCheckpoint checkpoint = testing::quantize_integers(
        embedded.config, embedded.bytes(), {.tool = tool, .bits = 4, .group_size = 32});
    const ScratchDirectory scratch;
    scratch.write("config.json", checkpoint.config_json);
    scratch.write("model.safetensors", testing::safetensors_file(checkpoint.tensors));
    EngineConfig config;
    config.model = scratch.path();
    expect_ranks_agree(config, {2}, kSteps);
  }
}

// The plan, which `quire doctor` prints, refuses them as the load does.
TEST(TensorParallel, RefusesToCutGroupsAndColumnsInTheirOrder) {
  const testing::SourceModel embedded = testing::abacus_model();
  struct Case {
    int num_ranks;
    int group_size;
    bool act_order;
    std::string error;
  };
  for (const Case& one : {Case{2, 32, true, "are in an order of groups (act-order)"},
                          Case{8, 128, false, "cuts a group with one scale; got 64 of its"}}) {
    const testing::IntegerCheckpoint checkpoint =
        testing::quantize_integers(embedded.config, embedded.bytes(),
                                   {.tool = testing::IntegerTool::kGptq,
                                    .bits = 4,
                                    .group_size = one.group_size,
                                    .act_order = one.act_order});
    const ScratchDirectory scratch;
    scratch.write("config.json", checkpoint.config_json);
    scratch.write("model.safetensors", testing::safetensors_file(checkpoint.tensors));
    EngineConfig config;
    config.model = scratch.path();
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

// Rows of 128 numbers or more are blocks of 32 that the border between two ranks does not cut.
TEST(TensorParallel, DividesGgufBlocks) {
  const testing::SourceModel embedded = testing::abacus_model();
  for (const std::string_view matrices : {"Q8_0", "Q4_0", "Q4_K"}) {
    const ScratchDirectory scratch;
    EngineConfig config;
    config.model = scratch.write(
        "model.gguf",
        testing::convert_to_gguf({embedded.config, embedded.bytes()}, "llama", matrices));
    expect_ranks_agree(config, {2}, kSteps);
  }
}

// ---- Refusals

TEST(TensorParallel, RefusesModelsThatDoNotDivide) {
  const auto error = [](EngineConfig config) {
    return std::string(Engine::create(config).status().message());
  };
  EXPECT_THAT(error(with_ranks(testing::tiny_config(), 3)),
              HasSubstr("does not divide num_attention_heads; got 4"));
  EXPECT_THAT(error(with_ranks(testing::tiny_config(), 65)), HasSubstr("tensor_parallel_size"));
  EXPECT_THAT(error(with_ranks(testing::tiny_config(), 0)), HasSubstr("tensor_parallel_size"));
  EngineConfig few_threads = with_ranks(testing::tiny_config(), 4);
  few_threads.num_threads = 2;
  EXPECT_THAT(error(few_threads), HasSubstr("4 ranks for 2 threads"));
}

// The ranks that load without an error must not wait for one that fails.
TEST(TensorParallel, ReportsAnErrorWhileRanksLoad) {
  testing::SourceModel embedded = testing::abacus_model();
  const size_t at = embedded.weights.find("layers.1.mlp.down_proj");
  ASSERT_NE(at, std::string::npos);
  embedded.weights.replace(at, 8, "layers.9");
  const ScratchDirectory scratch;
  scratch.write("config.json", embedded.config);
  scratch.write("model.safetensors", embedded.weights);
  EngineConfig config;
  config.model = scratch.path();
  const auto engine = Engine::create(with_ranks(config, 2));
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.status().message(), HasSubstr("down_proj"));
}

}  // namespace
}  // namespace quire
