// Speculation stays as good over many requests with a prefix cache: pages of a drafter's keys and
// values that were wrong or stale would lower the accepted length a little more with each reuse.
// Every tenth of the soak has the same requests in another order, so that its figures can be
// compared exactly. QUIRE_SOAK_REQUESTS sets the number of requests per test; 100000 take minutes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <random>
#include <string>

#include "engine/tiny_engine.h"

namespace quire::testing {
namespace {

constexpr size_t kNumTenths = 10;
constexpr int kVocabSize = 8;  // so small that a random head is often right

size_t num_requests_per_tenth() {
  const char* total = std::getenv("QUIRE_SOAK_REQUESTS");
  return std::max<size_t>(1, (total != nullptr ? std::stoul(total) : 2000) / kNumTenths);
}

constexpr int64_t kTargetPageBytes = 4 * 2048;  // 2 KiB per layer
constexpr int64_t kHeadPageBytes = 2048;

EngineConfig soak_config() {
  static const std::string path = write_config("quire_soak_target", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
      "intermediate_size": 112, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 8, "max_position_embeddings": 512,
      "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
      "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  EngineConfig config = tiny_config();
  config.model = path;
  config.num_threads = 1;
  config.max_model_len = 160;
  config.max_num_seqs = 16;
  config.max_num_batched_tokens = 128;
  return config;
}

std::string eagle_head() {
  return write_config("quire_soak_head", R"({
      "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64,
      "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 8, "draft_vocab_size": 6,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 2, 3]}})");
}

EngineConfig with_drafter(EngineConfig config, std::string_view method, const std::string& model) {
  config.speculative_config = fmt::format(
      R"({{"method": "{}", "model": "{}", "num_speculative_tokens": 4,
           "enable_adaptive_verification": false}})",
      method, model);
  return config;
}

// 40 prefixes of one to five pages are shared; the rest of a prompt is its own.
Request soak_request(size_t idx, float temperature) {
  std::vector<int32_t> prompt =
      tiny_prompt(16 * (1 + static_cast<int>(idx % 5)), static_cast<uint64_t>(idx % 40));
  const std::vector<int32_t> own =
      tiny_prompt(static_cast<int>(idx * 7 % 21), static_cast<uint64_t>(100 + idx));
  prompt.insert(prompt.end(), own.begin(), own.end());
  for (int32_t& id : prompt) id %= kVocabSize;
  Request request = greedy(std::move(prompt), 1 + static_cast<int>(idx * 11 % 24));
  request.sampling.seed = idx;
  if (idx % 3 == 0) request.sampling.temperature = temperature;
  return request;
}

std::vector<std::vector<int32_t>> ordinary_outputs(size_t num_requests, float temperature) {
  EngineConfig config = soak_config();
  config.enable_prefix_caching = false;
  const auto engine = make_engine(config);
  std::vector<Request> requests;
  for (size_t i = 0; i < num_requests; ++i) requests.push_back(soak_request(i, temperature));
  std::vector<std::vector<int32_t>> outputs;
  for (Collected& sample : run_all(*engine, requests)) {
    outputs.push_back(std::move(sample.token_ids));
  }
  return outputs;
}

// The figures of one tenth.
struct Tenth {
  int64_t num_spans = 0;
  int64_t num_drafts = 0;
  int64_t num_accepted = 0;
  int64_t num_looked_up = 0;  // prompt tokens
  int64_t num_cached = 0;
  double elapsed_s = 0.0;
};

Tenth difference(const EngineStats& now, const EngineStats& before) {
  return {
      .num_spans = now.speculation.num_spans - before.speculation.num_spans,
      .num_drafts = now.speculation.num_drafts - before.speculation.num_drafts,
      .num_accepted = now.speculation.num_accepted - before.speculation.num_accepted,
      .num_looked_up = now.prefix_cache_queries - before.prefix_cache_queries,
      .num_cached = now.prefix_cache_hits - before.prefix_cache_hits,
  };
}

void print(size_t idx, const Tenth& tenth) {
  fmt::print(
      "tenth {}: mean accepted length {:.4f}, {} of {} drafts accepted, {:.1f} % of prompt tokens "
      "cached, {:.1f} s\n",
      idx, 1 + static_cast<double>(tenth.num_accepted) / static_cast<double>(tenth.num_spans),
      tenth.num_accepted, tenth.num_drafts,
      100 * static_cast<double>(tenth.num_cached) / static_cast<double>(tenth.num_looked_up),
      tenth.elapsed_s);
  std::fflush(stdout);
}

class Soak {
 public:
  struct Options {
    float temperature = 0.0F;  // of every third request
    bool cancels = false;
  };

  Soak(const EngineConfig& config, const Options& options)
      : engine_(make_engine(config)),
        options_(options),
        expected_(ordinary_outputs(num_requests_per_tenth(), options.temperature)) {}

  std::vector<Tenth> run() {
    std::vector<Tenth> tenths;
    EngineStats before = stats_at_rest(*engine_);
    for (size_t i = 0; i < kNumTenths && !::testing::Test::HasFailure(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      run_tenth(i);
      const EngineStats now = stats_at_rest(*engine_);
      tenths.push_back(difference(now, before));
      tenths.back().elapsed_s =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      print(i + 1, tenths.back());
      before = now;
    }
    return tenths;
  }

  EngineStats stats() const { return engine_->stats(); }

 private:
  struct InFlight {
    size_t idx;
    std::unique_ptr<RequestStream> stream;
  };

  // Keeps twice as many requests in flight as can run.
  void run_tenth(size_t tenth) {
    std::vector<size_t> order(expected_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(tenth));
    std::deque<InFlight> in_flight;
    for (const size_t idx : order) {
      in_flight.push_back(
          {idx, value_of(engine_->submit(soak_request(idx, options_.temperature)))});
      if (in_flight.size() < 32) continue;
      finish(in_flight.front());
      in_flight.pop_front();
    }
    for (const InFlight& request : in_flight) finish(request);
  }

  // Compares the output. Every eighth request may be cancelled after its first output.
  void finish(const InFlight& request) {
    const std::vector<int32_t>& expected = expected_[request.idx];
    std::vector<int32_t> token_ids;
    bool is_cancelled = false;
    while (const auto output = request.stream->next()) {
      EXPECT_TRUE(output->error.ok()) << output->error.message();
      token_ids.insert(token_ids.end(), output->token_ids.begin(), output->token_ids.end());
      if (!options_.cancels || request.idx % 8 != 0 || is_cancelled) continue;
      request.stream->cancel();
      is_cancelled = true;
    }
    if (is_cancelled) {
      ASSERT_LE(token_ids.size(), expected.size()) << "request " << request.idx;
      token_ids.insert(token_ids.end(), expected.begin() + std::ssize(token_ids), expected.end());
    }
    ASSERT_EQ(token_ids, expected) << "request " << request.idx;
  }

  std::unique_ptr<Engine> engine_;
  Options options_;
  std::vector<std::vector<int32_t>> expected_;
};

// A draft of the head depends on its sequence alone. Therefore each tenth accepts exactly as many,
// although other prefixes are found in the cache.
TEST(Soak, AHeadAcceptsAsMuchInEveryTenth) {
  constexpr int64_t kNumBlocks = 144;  // more than 16 sequences can fill, so none is preempted
  EngineConfig config = with_drafter(soak_config(), "eagle3", eagle_head());
  config.kv_cache_memory = kNumBlocks * (kTargetPageBytes + kHeadPageBytes);
  Soak soak(config, {.temperature = 0.8F, .cancels = false});
  const std::vector<Tenth> tenths = soak.run();
  ASSERT_EQ(tenths.size(), kNumTenths);
  const Tenth& first = tenths.front();
  EXPECT_GT(first.num_accepted, first.num_drafts / 20);
  EXPECT_LT(first.num_accepted, first.num_drafts);
  int64_t num_computed = 0;
  for (const Tenth& tenth : tenths) {
    EXPECT_EQ(tenth.num_spans, first.num_spans);
    EXPECT_EQ(tenth.num_drafts, first.num_drafts);
    EXPECT_EQ(tenth.num_accepted, first.num_accepted);
    EXPECT_GT(tenth.num_cached, 0);
    num_computed += tenth.num_looked_up - tenth.num_cached;
  }
  EXPECT_GT(num_computed, 5 * kNumBlocks * 16) << "cached pages were hardly ever replaced";
  EXPECT_EQ(soak.stats().num_preemptions, 0);
}

// A model that drafts for itself is always right, also after preemptions and cancellations.
TEST(Soak, AModelThatDraftsForItselfIsRightInEveryTenth) {
  EngineConfig config = with_drafter(soak_config(), "draft_model", soak_config().model);
  config.kv_cache_memory = 48 * 2 * kTargetPageBytes;  // 48 blocks for all requests
  Soak soak(config, {.temperature = 0.0F, .cancels = true});
  const std::vector<Tenth> tenths = soak.run();
  ASSERT_EQ(tenths.size(), kNumTenths);
  for (const Tenth& tenth : tenths) {
    EXPECT_GT(tenth.num_drafts, 0);
    EXPECT_EQ(tenth.num_accepted, tenth.num_drafts);
    EXPECT_GT(tenth.num_cached, 0);
  }
  EXPECT_GT(soak.stats().num_preemptions, 0);
}

}  // namespace
}  // namespace quire::testing
