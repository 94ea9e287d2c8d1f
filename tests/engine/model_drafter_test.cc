// A model drafts for another one. The output equals the output of an ordinary run. If a model
// drafts for itself, all drafts are accepted. This shows that its keys and values are right in
// every page: after chunks of prompts, prefix hits, preemptions and rejected drafts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "engine/two_models.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Collected> ordinary(const EngineConfig& config, const std::vector<Request>& requests) {
  return run_all(*make_engine(config), requests);
}

// 64 tokens per step and 20 blocks for all requests, each with pages of two models of this size.
EngineConfig small(EngineConfig config) {
  config.max_model_len = 256;
  config.max_num_batched_tokens = 64;
  config.kv_cache_memory = 20 * 2 * 8192;
  return config;
}

class SelfDrafterTest : public ::testing::TestWithParam<int> {
 protected:
  // Runs all requests twice: the second time, their prompts are in the prefix cache.
  static void expect_all_accepted(const EngineConfig& config, int num_drafts) {
    const auto engine = make_engine(with_drafter(config, config.model, num_drafts));
    const std::vector<Collected> expected = ordinary(config, greedy_requests());
    for (int round = 0; round < 2; ++round) {
      expect_same(run_all(*engine, greedy_requests()), expected);
      const EngineStats stats = stats_at_rest(*engine);
      EXPECT_GT(stats.speculation.num_drafts, 100);
      EXPECT_EQ(stats.speculation.num_accepted, stats.speculation.num_drafts);
      if (round == 1) {
        EXPECT_GT(stats.prefix_cache_hits, 0);
      }
    }
  }
};

TEST_P(SelfDrafterTest, SeesAllDraftsAccepted) {
  expect_all_accepted(tiny_config(), GetParam());
}

TEST_P(SelfDrafterTest, SeesAllDraftsAcceptedInSmallStepsAndFewBlocks) {
  expect_all_accepted(small(tiny_config()), GetParam());
}

TEST_P(SelfDrafterTest, SeesAllDraftsAcceptedWithSlidingWindows) {
  expect_all_accepted(tiny_windows_config(), GetParam());
}

// A step may run for a sequence that has ended at the end of its last page. The page is in the
// prefix cache by then and must stay as it is.
TEST_P(SelfDrafterTest, LeavesTheLastPageOfAnEndedSequence) {
  const EngineConfig config = tiny_config();
  const auto engine = make_engine(with_drafter(config, config.model, GetParam()));
  const auto plain = make_engine(config);
  for (int i = 0; i < 30; ++i) {
    const int num_output = 1 + i;
    const int num_prompt = 16 * 4 + 1 - num_output;
    Request request = greedy(tiny_prompt(num_prompt, static_cast<uint64_t>(i)), num_output);
    const Collected first = run_all(*engine, {request}).front();
    request.prompt_token_ids.insert(request.prompt_token_ids.end(), first.token_ids.begin(),
                                    first.token_ids.end());
    request.sampling.logprobs = 1;
    const std::vector<Collected> next = run_all(*engine, {request});
    EXPECT_EQ(next.front().num_cached_tokens, 64);
    expect_same(next, run_all(*plain, {request}));
  }
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, SelfDrafterTest, ::testing::Values(1, 2, 3, 5, 8, 15));

class ModelDrafterTest : public ::testing::TestWithParam<int> {};

TEST_P(ModelDrafterTest, BringsTheBitsOfAnOrdinaryRun) {
  const std::vector<std::pair<EngineConfig, EngineConfig>> pairs = {
      {tiny_config(), tiny_windows_config()}, {tiny_windows_config(), tiny_config()}};
  for (const auto& [target, drafter] : pairs) {
    const auto engine = make_engine(with_drafter(target, drafter.model, GetParam()));
    const std::vector<Collected> expected = ordinary(target, sampled_requests());
    expect_same(run_all(*engine, sampled_requests()), expected);
    expect_same(run_all(*engine, sampled_requests()), expected);
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_drafts, 0);
    EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
  }
}

TEST_P(ModelDrafterTest, SurvivesPreemptionAndSmallSteps) {
  const EngineConfig target = small(tiny_config());
  const auto engine = make_engine(with_drafter(target, tiny_windows_config().model, GetParam()));
  expect_same(run_all(*engine, sampled_requests()), ordinary(target, sampled_requests()));
  EXPECT_GT(stats_at_rest(*engine).num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, ModelDrafterTest, ::testing::Values(1, 4, 7));

// A sequence outgrows the drafter's context while its prompt is computed, while it decodes, or in
// the cached prefix of its prompt.
TEST_P(ModelDrafterTest, StopsAtTheEndOfTheDraftersContext) {
  const std::string drafter = write_config("quire_short_drafter", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
      "intermediate_size": 112, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 60,
      "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
      "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  EngineConfig config = tiny_config();
  config.max_num_batched_tokens = 20 + GetParam();  // less than the drafter's context
  config.max_num_seqs = 2;
  const auto engine = make_engine(with_drafter(config, drafter, GetParam()));
  const std::vector<Collected> expected = ordinary(config, sampled_requests());
  for (int round = 0; round < 2; ++round)
    expect_same(run_all(*engine, sampled_requests()), expected);
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_GT(stats.speculation.num_drafts, 0);
  EXPECT_GT(stats.prefix_cache_hits, 1000);
}

// ---- EAGLE-3

SpeculationStats drafts_of(Engine& engine, const std::vector<Collected>& expected) {
  const SpeculationStats before = stats_at_rest(engine).speculation;
  expect_same(run_all(engine, eagle_requests()), expected);
  SpeculationStats drafts = stats_at_rest(engine).speculation;
  drafts.num_drafts -= before.num_drafts;
  drafts.num_accepted -= before.num_accepted;
  return drafts;
}

EngineConfig without_drafts(EngineConfig config) {
  config.speculative_config.clear();
  return config;
}

// A draft depends on its sequence alone, not on the way in which the drafter computed its tokens.
// Every step has at most 40 tokens beside the drafts.
void expect_as_much_after_chunks_and_prefix_hits(EngineConfig config, int num_drafts) {
  const std::vector<Collected> expected = ordinary(without_drafts(config), eagle_requests());
  config.enable_prefix_caching = false;
  const SpeculationStats whole = drafts_of(*make_engine(config), expected);
  EXPECT_GT(whole.num_accepted, 50);
  EXPECT_LT(whole.num_accepted, whole.num_drafts);
  config.enable_prefix_caching = true;
  config.max_num_batched_tokens = 40 + num_drafts;
  config.max_num_seqs = std::min(5, config.max_num_batched_tokens / (1 + num_drafts));
  const auto engine = make_engine(config);
  for (int round = 0; round < 2; ++round) {
    const SpeculationStats drafts = drafts_of(*engine, expected);
    EXPECT_EQ(drafts.num_drafts, whole.num_drafts);
    EXPECT_EQ(drafts.num_accepted, whole.num_accepted);
  }
  EXPECT_GT(stats_at_rest(*engine).prefix_cache_hits, 1000);
}

void expect_as_much_with_preemption(const EngineConfig& config) {
  const auto engine = make_engine(config);
  const SpeculationStats drafts =
      drafts_of(*engine, ordinary(without_drafts(config), eagle_requests()));
  EXPECT_GT(drafts.num_accepted, 50);
  EXPECT_GT(stats_at_rest(*engine).num_preemptions, 0);
}

class EagleDrafterTest : public ::testing::TestWithParam<int> {};

TEST_P(EagleDrafterTest, AcceptsAsMuchAfterChunksAndPrefixHits) {
  expect_as_much_after_chunks_and_prefix_hits(
      with_drafter(eagle_target(), eagle_head(), GetParam(), "eagle3"), GetParam());
}

TEST_P(EagleDrafterTest, SurvivesPreemptionAndSmallSteps) {
  expect_as_much_with_preemption(
      with_drafter(small(eagle_target()), eagle_head(), GetParam(), "eagle3"));
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, EagleDrafterTest, ::testing::Values(1, 2, 4, 7));

// ---- MTP

class MtpDrafterTest : public ::testing::TestWithParam<int> {
 protected:
  static EngineConfig with_mtp(const EngineConfig& target) {
    return with_drafter(target, "", GetParam(), "mtp");
  }
};

TEST_P(MtpDrafterTest, AcceptsAsMuchAfterChunksAndPrefixHits) {
  for (const EngineConfig& target : {mimo_target(), qwen_target(false), qwen_target(true)}) {
    SCOPED_TRACE(target.model);
    expect_as_much_after_chunks_and_prefix_hits(with_mtp(target), GetParam());
  }
}

TEST_P(MtpDrafterTest, SurvivesPreemptionAndSmallSteps) {
  expect_as_much_with_preemption(with_mtp(small(mimo_target())));
  for (const bool has_experts : {false, true}) {
    SCOPED_TRACE(has_experts);
    EngineConfig target = small(qwen_target(has_experts));
    target.kv_cache_memory *= 2;  // for the states
    expect_as_much_with_preemption(with_mtp(target));
  }
}

INSTANTIATE_TEST_SUITE_P(NumDrafts, MtpDrafterTest, ::testing::Values(1, 2, 4, 7));

// ---- Block drafters

class BlockDrafterTest : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static EngineConfig with_block(const EngineConfig& config, int vocab_size = 8) {
    const auto [method, num_drafts] = GetParam();
    return with_drafter(config, block_drafter(method, vocab_size), num_drafts, method);
  }
};

TEST_P(BlockDrafterTest, AcceptsAsMuchAfterChunksAndPrefixHits) {
  expect_as_much_after_chunks_and_prefix_hits(with_block(eagle_target()), std::get<1>(GetParam()));
}

TEST_P(BlockDrafterTest, DraftsFromAPartOfTheVocabulary) {
  const auto [method, num_drafts] = GetParam();
  expect_as_much_after_chunks_and_prefix_hits(
      with_drafter(eagle_target(), speculators_block_drafter(method), num_drafts, method),
      num_drafts);
}

TEST_P(BlockDrafterTest, SurvivesPreemptionAndSmallSteps) {
  expect_as_much_with_preemption(with_block(small(eagle_target())));
}

TEST_P(BlockDrafterTest, BringsTheBitsOfAnOrdinaryRun) {
  const EngineConfig target = tiny_windows_config();
  const auto engine = make_engine(with_block(target, 96));
  const std::vector<Collected> expected = ordinary(target, sampled_requests());
  for (int round = 0; round < 2; ++round) {
    expect_same(run_all(*engine, sampled_requests()), expected);
  }
  EXPECT_GT(stats_at_rest(*engine).speculation.num_drafts, 0);
}

INSTANTIATE_TEST_SUITE_P(MethodAndDrafts, BlockDrafterTest,
                         ::testing::Combine(::testing::Values("dflash", "dspark"),
                                            ::testing::Values(1, 2, 4, 7)));

// ---- The models that may be drafters

std::string error_of(const EngineConfig& config) {
  return std::string(Engine::create(config).status().message());
}

TEST(DraftModel, IsRefusedWithItsReason) {
  EXPECT_THAT(error_of(with_drafter(tiny_config(), other_config_path(), 4)),
              HasSubstr("vocab_size; got 128, expected the 96 of the model that it drafts for"));
  EXPECT_THAT(error_of(with_drafter(tiny_config(), "/nowhere/drafter", 4)),
              HasSubstr("`speculative_config`: model; /nowhere/drafter"));
  EXPECT_THAT(error_of(with_drafter(eagle_target(), eagle_head(16), 4, "eagle3")),
              HasSubstr("vocab_size is not that of the target; got 16, expected 8"));
  EXPECT_THAT(error_of(with_drafter(eagle_target(), block_drafter("dflash"), 8, "dflash")),
              HasSubstr("num_speculative_tokens; got 8, expected at most 7, because the DFlash "
                        "drafter's block_size is 8"));
  EXPECT_THAT(error_of(with_drafter(eagle_target(), block_drafter("dspark"), 9, "dspark")),
              HasSubstr("num_speculative_tokens; got 9, expected at most 8, because the DSpark"));
  EXPECT_THAT(error_of(with_drafter(eagle_target(), block_drafter("dflash"), 4, "dspark")),
              HasSubstr("architectures; got \"DFlashDraftModel\", expected one of Qwen3DSpark"));
  EXPECT_THAT(error_of(with_drafter(tiny_config(), block_drafter("dflash"), 4, "dflash")),
              HasSubstr("vocab_size is not that of the target; got 8, expected 96"));
  EngineConfig config = tiny_config();
  config.speculative_config = R"({"method": "draft_model", "num_speculative_tokens": 4})";
  EXPECT_THAT(error_of(config), HasSubstr("model; got nothing, expected the drafter's directory"));
  config.speculative_config = R"({"method": "dflash", "num_speculative_tokens": 4})";
  EXPECT_THAT(error_of(config), HasSubstr("model; got nothing, expected the drafter's directory"));
  config.speculative_config = R"({"method": "eagle3", "model": "", "num_speculative_tokens": 4})";
  EXPECT_THAT(error_of(config), HasSubstr("model; got an empty text, expected the drafter's"));
  EngineConfig few_tokens = with_drafter(tiny_config(), tiny_config().model, 4);
  few_tokens.max_num_batched_tokens = 4;
  EXPECT_THAT(error_of(few_tokens), HasSubstr("`max_num_batched_tokens`: got 4, expected at least "
                                              "5"));
  config.speculative_config = R"({"method": "draft_model", "model": "x"})";
  EXPECT_THAT(error_of(config), HasSubstr("num_speculative_tokens; got nothing"));
  config.speculative_config = R"({"method": "draft_model", "model": "x",
      "num_speculative_tokens": 4, "rejection_sample_method": "block"})";
  EXPECT_THAT(error_of(config), HasSubstr("rejection_sample_method; got block, expected standard, "
                                          "or draft_sample_method probabilistic"));
  EXPECT_THAT(error_of(with_drafter(mimo_target(), "x", 1, "mtp")),
              HasSubstr("`speculative_config`: model; x is neither a directory nor"));
  EXPECT_THAT(error_of(with_drafter(mimo_target(2), "", 1, "mtp")),
              HasSubstr("num_nextn_predict_layers of a model that drafts with method mtp; got 2"));
  EXPECT_THAT(error_of(with_drafter(tiny_config(), "", 1, "mtp")),
              HasSubstr("not served for this architecture; got LlamaForCausalLM"));
  EXPECT_THAT(error_of(with_drafter({}, "", 1, "mtp")), HasSubstr("not served for this"))
      << "the embedded model";
  config.speculative_config = R"({"method": "suffix", "model": "x"})";
  EXPECT_THAT(error_of(config), HasSubstr("model; got it with method suffix"));
}

}  // namespace
}  // namespace quire::testing
