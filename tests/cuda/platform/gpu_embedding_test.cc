// Embeddings on a GPU, compared with those of transformers for a tiny random model in F32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/platform/gpu_engine.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

EngineConfig embedding_config(const std::string& device) {
  EngineConfig config;
  config.model = source_path("tests/golden/pooling/embedding").string();
  config.device = device;
  config.num_threads = 2;
  config.kv_cache_dtype = "f32";
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

// Prompts of 1 to 300 tokens, all submitted at once.
std::vector<std::vector<float>> embeddings(Engine& engine) {
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (int i = 0; i < 24; ++i) {
    Request request;
    request.prompt_token_ids = tiny_prompt(1 + (i * 53) % 300, static_cast<uint64_t>(i));
    request.embedding.emplace();
    streams.push_back(value_of(engine.submit(std::move(request))));
  }
  std::vector<std::vector<float>> all;
  for (const auto& stream : streams) {
    while (std::optional<Output> output = stream->next()) all.push_back(output->embedding);
  }
  return all;
}

class GpuEmbedding : public GpuTest {};

TEST_F(GpuEmbedding, IsThatOfTheCpuWholeAndInChunks) {
  const std::vector<std::vector<float>> expected =
      embeddings(*make_engine(embedding_config("cpu")));
  ASSERT_EQ(expected.size(), 24U);
  for (const int max_num_batched_tokens : {0, 16}) {
    EngineConfig config = embedding_config("cuda");
    config.max_num_batched_tokens = max_num_batched_tokens;
    const auto engine = make_engine(config);
    for (int round = 0; round < 2; ++round) {  // the second finds the prompts in the prefix cache
      const std::vector<std::vector<float>> got = embeddings(*engine);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_THAT(got[i], ::testing::Pointwise(::testing::FloatNear(1e-4F), expected[i]))
            << "prompt " << i << ", " << max_num_batched_tokens << " tokens per step";
      }
    }
    // A step that ends no prompt copies nothing.
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_LE(stats.num_device_to_host_copies, stats.num_steps);
    EXPECT_EQ(stats.num_device_waits, stats.num_steps);
  }
}

TEST_F(GpuEmbedding, ComesFromABf16ModelInF32) {
  EngineConfig config = embedding_config("cuda");
  config.load_format = "dummy";
  config.dtype = "bf16";
  config.kv_cache_dtype = "auto";
  const auto engine = make_engine(config);
  for (const std::vector<float>& embedding : embeddings(*engine)) {
    double length = 0;
    for (const float value : embedding) length += static_cast<double>(value) * value;
    EXPECT_NEAR(length, 1, 1e-5);
  }
}

}  // namespace
}  // namespace quire::testing
