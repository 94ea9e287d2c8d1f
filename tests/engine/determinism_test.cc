// On a CPU, greedy output is bit-identical for every batch, chunking, page size and number of
// threads, with or without prefix hits and preemptions. Log probabilities are compared as well,
// because they show differences in the bits of the logits.
#include <gtest/gtest.h>

#include "engine/tiny_engine.h"

namespace quire::testing {
namespace {

constexpr int kNumRequests = 64;

// Prompts of 1 to 160 tokens, some of which share long prefixes.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < kNumRequests; ++i) {
    Request request;
    request.prompt_token_ids = tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 20));
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = 12 + i % 9;
    request.sampling.ignore_eos = true;
    request.sampling.logprobs = 1;
    all.push_back(request);
  }
  return all;
}

// Runs the requests one at a time, each with an empty cache.
const std::vector<Collected>& baseline() {
  static const std::vector<Collected> outputs = [] {
    EngineConfig config = tiny_config();
    config.num_threads = 1;
    config.enable_prefix_caching = false;
    const auto engine = make_engine(config);
    std::vector<Collected> alone;
    for (const Request& request : requests()) {
      alone.push_back(run_all(*engine, {request}).front());
    }
    return alone;
  }();
  return outputs;
}

int count_differences(const std::vector<Collected>& outputs) {
  int num_different = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Collected& got = outputs[i];
    const Collected& expected = baseline()[i];
    bool same =
        got.token_ids == expected.token_ids && got.logprobs.size() == expected.logprobs.size();
    for (size_t t = 0; same && t < got.logprobs.size(); ++t) {
      same = got.logprobs[t][0].logprob == expected.logprobs[t][0].logprob;
    }
    num_different += same ? 0 : 1;
  }
  return num_different;
}

struct Variant {
  const char* name;
  int batch;  // requests submitted together
  void (*change)(EngineConfig&);
};

class Determinism : public ::testing::TestWithParam<Variant> {};

TEST_P(Determinism, SameBitsAsAlone) {
  EngineConfig config = tiny_config();
  GetParam().change(config);
  const auto engine = make_engine(config);
  const std::vector<Request> all = requests();
  std::vector<Collected> outputs;
  for (size_t begin = 0; begin < all.size(); begin += static_cast<size_t>(GetParam().batch)) {
    const size_t end = std::min(all.size(), begin + static_cast<size_t>(GetParam().batch));
    for (Collected& output : run_all(*engine, {all.begin() + begin, all.begin() + end})) {
      outputs.push_back(std::move(output));
    }
  }
  EXPECT_EQ(count_differences(outputs), 0);
  // The prompts are cached now, so these requests hit the prefix cache.
  const std::vector<Collected> again = run_all(*engine, all);
  EXPECT_EQ(count_differences(again), 0);
  if (!config.enable_prefix_caching) return;
  int num_cached_tokens = 0;
  for (const Collected& output : again) num_cached_tokens += output.num_cached_tokens;
  EXPECT_GT(num_cached_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Determinism,
    ::testing::Values(
        Variant{"batch1", 1, [](EngineConfig&) {}}, Variant{"batch2", 2, [](EngineConfig&) {}},
        Variant{"batch7", 7, [](EngineConfig&) {}}, Variant{"batch64", 64, [](EngineConfig&) {}},
        Variant{"chunk16", 64, [](EngineConfig& c) { c.max_num_batched_tokens = 16; }},
        Variant{"chunk33", 64, [](EngineConfig& c) { c.max_num_batched_tokens = 33; }},
        Variant{"chunk2048", 64, [](EngineConfig& c) { c.max_num_batched_tokens = 2048; }},
        Variant{"page32", 64, [](EngineConfig& c) { c.block_size = 32; }},
        Variant{"page64", 64, [](EngineConfig& c) { c.block_size = 64; }},
        Variant{"no_prefix_cache", 64, [](EngineConfig& c) { c.enable_prefix_caching = false; }},
        Variant{"three_rows", 64, [](EngineConfig& c) { c.max_num_seqs = 3; }},
        Variant{"one_thread", 64, [](EngineConfig& c) { c.num_threads = 1; }},
        Variant{"three_threads", 64, [](EngineConfig& c) { c.num_threads = 3; }},
        Variant{"not_pinned", 64, [](EngineConfig& c) { c.cpu_pinning = "off"; }},
        Variant{"preemption", 64,
                [](EngineConfig& c) {
                  c.max_model_len = 192;
                  c.kv_cache_memory = 16 * 4096;  // 16 blocks: 15 * 16 tokens for all requests
                }}),
    [](const auto& variant) { return std::string(variant.param.name); });

// Runs a request long enough that attention is split into parts of 512 positions and over threads.
Collected run_long(int num_threads, int max_num_batched_tokens, bool hit_prefix) {
  EngineConfig config = tiny_config();
  config.allow_long_max_model_len = true;
  config.max_model_len = 2048;
  config.num_threads = num_threads;
  config.max_num_batched_tokens = max_num_batched_tokens;
  const auto engine = make_engine(config);
  Request request;
  request.prompt_token_ids = tiny_prompt(1500, 3);
  request.sampling.temperature = 0.0F;
  request.sampling.max_tokens = 12;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = 1;
  if (hit_prefix) run_all(*engine, {request});
  Collected output = run_all(*engine, {request}).front();
  EXPECT_EQ(output.num_cached_tokens > 0, hit_prefix);
  return output;
}

TEST(DeterminismLong, SameBitsHoweverTheCacheIsSplit) {
  const Collected expected = run_long(1, 2048, false);
  ASSERT_EQ(expected.token_ids.size(), 12U);
  for (const int num_threads : {1, 2, 3}) {
    for (const int budget : {2048, 512, 97}) {
      for (const bool hit_prefix : {false, true}) {
        const Collected got = run_long(num_threads, budget, hit_prefix);
        EXPECT_EQ(got.token_ids, expected.token_ids);
        for (size_t i = 0; i < got.logprobs.size(); ++i) {
          EXPECT_EQ(got.logprobs[i][0].logprob, expected.logprobs[i][0].logprob);
        }
      }
    }
  }
}

// In a model with sliding windows, freeing, sharing or recomputing blocks changes no bit of the
// output.
TEST(DeterminismWindows, SameBitsWhateverTheWindowsHaveFreed) {
  EngineConfig alone = tiny_windows_config();
  alone.enable_prefix_caching = false;
  alone.block_size = 64;
  std::vector<Collected> expected;
  const auto baseline_engine = make_engine(alone);
  for (const Request& request : requests()) {
    expected.push_back(run_all(*baseline_engine, {request}).front());
  }
  constexpr void (*kChanges[])(EngineConfig&) = {
      [](EngineConfig&) {}, [](EngineConfig& c) { c.max_num_batched_tokens = 33; },
      [](EngineConfig& c) { c.block_size = 32; },
      [](EngineConfig& c) { c.enable_prefix_caching = false; },
      [](EngineConfig& c) {
        c.max_model_len = 192;
        c.max_num_seqs = 8;
        c.kv_cache_memory = 2 * 14 * 4096;  // 13 usable blocks in each of the two tables
      }};
  for (const auto& change : kChanges) {
    EngineConfig config = tiny_windows_config();
    change(config);
    const auto engine = make_engine(config);
    for (int round = 0; round < 2; ++round) {
      const std::vector<Collected> got = run_all(*engine, requests());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].token_ids, expected[i].token_ids) << "request " << i;
        ASSERT_EQ(got[i].logprobs.size(), expected[i].logprobs.size());
        for (size_t t = 0; t < got[i].logprobs.size(); ++t) {
          EXPECT_EQ(got[i].logprobs[t][0].logprob, expected[i].logprobs[t][0].logprob);
        }
      }
      int num_cached_tokens = 0;
      for (const Collected& output : got) num_cached_tokens += output.num_cached_tokens;
      EXPECT_EQ(num_cached_tokens > 0,
                config.enable_prefix_caching && (round > 0 || num_cached_tokens > 0))
          << round;
    }
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_EQ(stats.num_free_blocks, stats.num_total_blocks);
  }
}

// Keys and values in 8-bit integers: one scale per head and token, regardless of the other tokens
// of the step.
EngineConfig int8_cache_config() {
  EngineConfig config = tiny_config();
  config.device = "cpu";
  config.kv_cache_dtype = "int8";
  return config;
}

EngineConfig int8_latent_cache_config() {
  EngineConfig config = tiny_deepseek_config();
  config.device = "cpu";
  config.kv_cache_dtype = "int8";
  return config;
}

EngineConfig int8_gemma4_config() {
  EngineConfig config = tiny_gemma4_config();
  config.device = "cpu";
  config.kv_cache_dtype = "int8";
  return config;
}

EngineConfig fp8_gemma4_config() {
  EngineConfig config = int8_gemma4_config();
  config.kv_cache_dtype = "fp8";
  return config;
}

// Metrics show this name.
TEST(Int8Cache, HasTheNameOfItsSetting) {
  EXPECT_EQ(make_engine(int8_cache_config())->model_info().kv_cache_dtype, "int8");
}

// A token's experts and latent vectors have the same bits regardless of the other tokens of its
// step.
class DeterminismOfFamilies : public ::testing::TestWithParam<EngineConfig (*)()> {};

TEST_P(DeterminismOfFamilies, SameBitsWhateverTheBatch) {
  EngineConfig alone = GetParam()();
  alone.enable_prefix_caching = false;
  alone.num_threads = 1;
  std::vector<Collected> expected;
  const auto baseline_engine = make_engine(alone);
  for (const Request& request : requests()) {
    expected.push_back(run_all(*baseline_engine, {request}).front());
  }
  constexpr void (*kChanges[])(EngineConfig&) = {
      [](EngineConfig&) {},
      [](EngineConfig& c) { c.max_num_batched_tokens = 33; },
      [](EngineConfig& c) { c.max_num_batched_tokens = 2048; },
      [](EngineConfig& c) { c.enable_prefix_caching = false; },
      [](EngineConfig& c) { c.block_size = 64; },
      [](EngineConfig& c) {
        c.speculative_config = R"({"method":"ngram","num_speculative_tokens":3})";
      }};
  for (const auto& change : kChanges) {
    EngineConfig config = GetParam()();
    change(config);
    const auto engine = make_engine(config);
    for (int round = 0; round < 2; ++round) {
      expect_same(run_all(*engine, requests()), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeterminismOfFamilies,
                         ::testing::Values(tiny_experts_config, tiny_deepseek_config,
                                           tiny_hybrid_config, tiny_delta_config, tiny_tiled_config,
                                           int8_cache_config, int8_latent_cache_config,
                                           tiny_gemma4_config, int8_gemma4_config,
                                           fp8_gemma4_config));

// Layers that read another layer's cache have none: a block has 16 tokens of one layer with 2 heads
// of 16 elements, or of one with 1 head of 512, and its keys and values have 16 bits.
TEST(DeterminismOfGemma4, SameBitsAfterPreemption) {
  constexpr int64_t kBlockBytes = int64_t{16} * 2 * 2 * (2 * 16);
  constexpr int64_t kGlobalBlockBytes = int64_t{16} * 2 * 2 * 512;
  EngineConfig roomy = tiny_gemma4_config();
  roomy.device = "cpu";
  roomy.kv_cache_dtype = "bf16";
  roomy.enable_prefix_caching = false;
  const std::vector<Collected> expected = run_all(*make_engine(roomy), requests());
  EngineConfig small = roomy;
  small.max_model_len = 192;
  small.kv_cache_memory = 16 * (kBlockBytes + kGlobalBlockBytes);
  const auto engine = make_engine(small);
  expect_same(run_all(*engine, requests()), expected);
  EXPECT_GT(engine->stats().num_preemptions, 0);
}

// A preempted sequence computes its integers and scales again, to the same bits.
TEST(DeterminismOfInt8Caches, SameBitsAfterPreemption) {
  EngineConfig roomy = int8_cache_config();
  roomy.enable_prefix_caching = false;
  std::vector<Collected> expected = run_all(*make_engine(roomy), requests());
  EngineConfig small = roomy;
  small.max_model_len = 192;
  small.kv_cache_memory = 16 * 2560;  // 16 blocks
  const auto engine = make_engine(small);
  expect_same(run_all(*engine, requests()), expected);
  EXPECT_GT(engine->stats().num_preemptions, 0);
}

TEST(DeterminismSetup, TheSmallCacheDoesPreempt) {
  EngineConfig config = tiny_config();
  config.max_model_len = 192;
  config.kv_cache_memory = 16 * 4096;
  const auto engine = make_engine(config);
  run_all(*engine, requests());
  EXPECT_GT(engine->stats().num_preemptions, 0);
}

}  // namespace
}  // namespace quire::testing
