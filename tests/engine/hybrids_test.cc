// Engines of models with recurrent states: a prefix hit begins where the promise says, and no
// snapshot, preemption or draft changes a bit of the output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/tiny_engine.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

constexpr int kBlockSize = 16;
constexpr const char* kMtp =
    R"({"method":"mtp","num_speculative_tokens":3,"enable_adaptive_verification":false})";

struct Hybrid {
  const char* name;
  EngineConfig (*config)();
  int64_t small_memory;  // of the cache: little more than one sequence of 512 tokens needs
  bool has_mtp = false;  // the checkpoint has a layer that drafts
};

class Hybrids : public ::testing::TestWithParam<Hybrid> {
 protected:
  static EngineConfig hybrid_config(int max_model_len) {
    EngineConfig config = GetParam().config();
    config.max_model_len = max_model_len;
    config.block_size = kBlockSize;
    return config;
  }
};

Request with_logprobs(Request request) {
  request.sampling.logprobs = 1;
  return request;
}

std::vector<int32_t> append(std::vector<int32_t> ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

// The output of each request in an engine of its own, without a prefix cache.
std::vector<Collected> cold(const EngineConfig& config, const std::vector<Request>& requests) {
  EngineConfig alone = config;
  alone.enable_prefix_caching = false;
  alone.num_threads = 1;
  alone.max_num_seqs = 1;
  alone.kv_cache_memory = 0;
  alone.speculative_config.clear();
  const auto engine = make_engine(alone);
  std::vector<Collected> outputs;
  for (const Request& request : requests) outputs.push_back(run_all(*engine, {request}).front());
  return outputs;
}

TEST_P(Hybrids, AFollowUpComputesAtMostABlockOfTheHistoryAgain) {
  const EngineConfig config = hybrid_config(2048);
  const auto engine = make_engine(config);
  std::vector<int32_t> history;
  for (int turn = 0; turn < 8; ++turn) {
    const auto salt = static_cast<uint64_t>(turn);
    const std::vector<int32_t> prompt = append(history, tiny_prompt(20 + 37 * turn, salt));
    const Request request = with_logprobs(greedy(prompt, 30 + turn));
    const Collected got = run_all(*engine, {request}).front();
    expect_same({got}, cold(config, {request}));
    // The last token of an answer is never computed, and a block may not be full.
    const int num_old = static_cast<int>(history.size());
    EXPECT_THAT(got.num_cached_tokens, Ge(num_old - 1 - kBlockSize)) << turn;
    EXPECT_THAT(got.num_cached_tokens, Le(num_old)) << turn;
    history = append(prompt, got.token_ids);
  }
}

TEST_P(Hybrids, ARepeatedPromptBeginsAtItsEnd) {
  const auto engine = make_engine(hybrid_config(2048));
  for (const int length : {17, 40, 64, 65, 1000}) {
    const Request request = greedy(tiny_prompt(length, static_cast<uint64_t>(length)), 40);
    run_all(*engine, {request});
    const Collected again = run_all(*engine, {request}).front();
    EXPECT_EQ(again.num_cached_tokens, (length - 1) / kBlockSize * kBlockSize) << length;
  }
}

// The first prompt writes no state where the others branch off, the second writes one.
TEST_P(Hybrids, PromptsWithACommonBeginningShareIt) {
  const auto engine = make_engine(hybrid_config(2048));
  const std::vector<int32_t> common = tiny_prompt(200, 7);
  std::vector<int> num_cached;
  for (uint64_t i = 0; i < 4; ++i) {
    const Request request = greedy(append(common, tiny_prompt(90, 20 + i)), 40);
    num_cached.push_back(run_all(*engine, {request}).front().num_cached_tokens);
  }
  EXPECT_THAT(num_cached, ElementsAre(0, 0, 192, 192));
}

TEST_P(Hybrids, EveryContinuationBeginsAtTheSameState) {
  const auto engine = make_engine(hybrid_config(2048));
  const std::vector<int32_t> history = tiny_prompt(1000, 7);
  run_all(*engine, {greedy(history, 1)});
  for (uint64_t i = 0; i < 3; ++i) {
    const Request request = greedy(append(history, tiny_prompt(90, 20 + i)), 40);
    EXPECT_EQ(run_all(*engine, {request}).front().num_cached_tokens, 992) << i;
  }
}

TEST_P(Hybrids, SamplesOfARequestShareItsPrompt) {
  const auto engine = make_engine(hybrid_config(2048));
  Request request = greedy(tiny_prompt(100, 7), 10);
  request.sampling.n = 3;
  request.sampling.temperature = 1.0F;
  auto stream = value_of(engine->submit(request));
  EXPECT_EQ(collect_all(*stream).size(), 3);
  EXPECT_EQ(stats_at_rest(*engine).prefix_cache_hits, 2 * 96);
}

// Random trees of conversations: each request continues an earlier one, or changes its end. With
// evictions, preemptions and drafts.
TEST_P(Hybrids, EqualColdRunsWhateverIsKept) {
  constexpr void (*kChanges[])(EngineConfig&) = {
      [](EngineConfig&) {},
      [](EngineConfig& c) { c.max_num_batched_tokens = 33; },
      [](EngineConfig& c) { c.kv_cache_memory = GetParam().small_memory; },
      [](EngineConfig& c) {
        c.speculative_config = R"({"method":"ngram","num_speculative_tokens":3})";
      },
      [](EngineConfig& c) {
        c.kv_cache_memory = GetParam().small_memory;
        c.max_num_batched_tokens = 48;
        c.speculative_config = R"({"method":"suffix","num_speculative_tokens":5})";
      },
      [](EngineConfig& c) { c.speculative_config = kMtp; },
      [](EngineConfig& c) {
        c.kv_cache_memory = GetParam().small_memory * 3 / 2;  // its keys and values, too
        c.max_num_batched_tokens = 48;
        c.speculative_config = kMtp;
      }};
  int64_t num_preemptions = 0;
  for (size_t change = 0; change < std::size(kChanges); ++change) {
    EngineConfig config = hybrid_config(512);
    config.max_num_seqs = 6;
    kChanges[change](config);
    const bool drafts_by_mtp = config.speculative_config == kMtp;
    if (drafts_by_mtp && !GetParam().has_mtp) continue;
    const auto engine = make_engine(config);
    std::mt19937 random(static_cast<unsigned>(change));
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<std::vector<int32_t>> histories = {{}};
    for (int round = 0; round < 6; ++round) {
      std::vector<Request> requests;
      for (int i = 0; i < 8; ++i) {
        std::vector<int32_t> history =
            histories[static_cast<size_t>(below(static_cast<int>(histories.size())))];
        if (below(3) == 0) history.resize(history.size() / 2);
        if (history.size() > 380) history.resize(static_cast<size_t>(below(60)));
        const auto salt = static_cast<uint64_t>(below(5));
        requests.push_back(with_logprobs(
            greedy(append(history, tiny_prompt(1 + below(70), salt)), 1 + below(40))));
      }
      const std::vector<Collected> got = run_all(*engine, requests);
      expect_same(got, cold(config, requests));
      for (size_t i = 0; i < got.size(); ++i) {
        histories.push_back(append(requests[i].prompt_token_ids, got[i].token_ids));
      }
    }
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_EQ(stats.num_free_blocks, stats.num_total_blocks);
    EXPECT_GT(stats.prefix_cache_hits, 0);
    EXPECT_GE(stats.speculation.num_drafts, drafts_by_mtp ? 500 : 0);
    num_preemptions += stats.num_preemptions;
  }
  EXPECT_GT(num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Hybrids,
                         ::testing::Values(Hybrid{"convolutions", tiny_hybrid_config, 240'000},
                                           Hybrid{"delta_nets", tiny_delta_config, 400'000, true},
                                           Hybrid{"delta_nets_with_experts",
                                                  tiny_delta_experts_config, 400'000, true},
                                           Hybrid{"tiled_delta_nets", tiny_tiled_config, 430'000}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace quire::testing
