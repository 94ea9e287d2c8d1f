#include "engine/engine_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace quire::testing {

EngineConfig cpu_config(const std::filesystem::path& model, int num_threads) {
  EngineConfig config;
  config.model = model.string();
  config.device = "cpu";
  config.num_threads = num_threads;
  config.kv_cache_memory = int64_t{8} << 20;
  config.kv_cache_dtype = "f32";
  return config;
}

EngineConfig with_ranks(EngineConfig config, int num_ranks) {
  config.device = "cpu";
  config.tensor_parallel_size = num_ranks;
  config.num_threads = num_ranks;
  config.kv_cache_memory = int64_t{8} << 20;
  config.kv_cache_dtype = "f32";
  return config;
}

EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              std::span<const std::byte> weights) {
  directory.write("config.json", config);
  directory.write("model.safetensors", weights);
  return cpu_config(directory.path());
}

EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              std::string_view weights) {
  return write_checkpoint(directory, config, std::as_bytes(std::span(weights)));
}

EngineConfig write_checkpoint(const ScratchDirectory& directory, std::string_view config,
                              const StoredTensors& weights) {
  return write_checkpoint(directory, config, safetensors_file(weights));
}

std::vector<Request> logprob_requests(std::initializer_list<int> lengths, int max_tokens) {
  std::vector<Request> all;
  for (const int length : lengths) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (i * 29 + length) % 60);
    all.push_back(greedy(std::move(prompt), max_tokens));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

std::vector<Request> abacus_questions() {
  std::vector<Request> all;
  for (const std::string text :
       {"What is 12 + 30?", "Tom has 17 apples and buys 5 more. How many has he now?",
        "Who are you?"}) {
    Request request;
    request.prompt = "<|user|>" + text + "<|end|><|assistant|>";
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = 40;
    request.sampling.logprobs = 1;
    request.sampling.prompt_logprobs = 1;
    all.push_back(request);
  }
  return all;
}

Outcome run(const EngineConfig& config, const std::vector<Request>& requests) {
  const auto engine = make_engine(config);
  const ModelInfo info = engine->model_info();
  return {run_all(*engine, requests), info.weight_bytes, info.weight_dtype};
}

std::vector<Collected> outputs_of(const EngineConfig& config,
                                  const std::vector<Request>& requests) {
  return run(config, requests).outputs;
}

std::string error_of(const EngineConfig& config) {
  const auto engine = Engine::create(config);
  return engine.ok() ? "" : engine.status().message();
}

namespace {

double difference(const std::vector<PositionLogprobs>& got,
                  const std::vector<PositionLogprobs>& expected) {
  double largest = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_EQ(got[i].empty(), expected[i].empty());
    if (got[i].empty() || expected[i].empty()) continue;  // a prompt's first token has none
    largest = std::max(largest, std::abs(got[i][0].logprob - double{expected[i][0].logprob}));
    if (got[i][0].token_id != expected[i][0].token_id) break;
  }
  return largest;
}

}  // namespace

double largest_difference(const std::vector<Collected>& got,
                          const std::vector<Collected>& expected) {
  double largest = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    EXPECT_FALSE(expected[i].token_ids.empty());
    largest = std::max({largest, difference(got[i].logprobs, expected[i].logprobs),
                        difference(got[i].prompt_logprobs, expected[i].prompt_logprobs)});
  }
  return largest;
}

void expect_close(const std::vector<Collected>& got, const std::vector<Collected>& expected,
                  double bound) {
  EXPECT_LT(largest_difference(got, expected), bound);
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_EQ(got[i].token_ids, expected[i].token_ids) << "request " << i;
  }
}

}  // namespace quire::testing
