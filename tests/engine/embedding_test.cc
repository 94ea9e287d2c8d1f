// Embeddings of the whole engine, compared with those of transformers for a tiny random model that
// tools/golden/pooling.py made.
#include "engine/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "engine/tiny_engine.h"
#include "support/eventually.h"
#include "support/gguf_bytes.h"
#include "support/gguf_conversion.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kHidden = 32;
constexpr int kMaxModelLen = 1024;

// `length` ids, which depend only on `salt`.
std::vector<int32_t> prompt(int length, uint64_t salt) {
  return tiny_prompt(length, salt);
}

Output only_output(RequestStream& stream) {
  std::optional<Output> output = stream.next();
  EXPECT_TRUE(output.has_value());
  EXPECT_FALSE(stream.next().has_value());
  return output.value_or(Output());
}

// Submits all requests at once.
std::vector<Output> run(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (const Request& request : requests) {
    streams.push_back(value_of(engine.submit(request)));
  }
  std::vector<Output> outputs;
  for (const auto& stream : streams) outputs.push_back(only_output(*stream));
  return outputs;
}

std::string refusal(Engine& engine, const Request& request) {
  const auto stream = engine.submit(request);
  return stream.ok() ? "" : stream.status().message();
}

struct Golden {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<float> embedding;
};

std::vector<Golden> read_golden() {
  const JsonDocument document =
      JsonDocument::load(source_path("tests/golden/pooling/embedding/cases.json")).value();
  std::vector<Golden> all;
  for (const simdjson::dom::element entry : document.root().get_array()) {
    Golden& golden = all.emplace_back();
    golden.text = entry["text"].get_string().value();
    for (const simdjson::dom::element id : entry["ids"].get_array()) {
      golden.ids.push_back(static_cast<int32_t>(id.get_int64().value()));
    }
    for (const simdjson::dom::element number : entry["embedding"].get_array()) {
      golden.embedding.push_back(static_cast<float>(number.get_double().value()));
    }
  }
  return all;
}

TEST(Embedding, PackedWeightsAreKept) {
  const ScratchDirectory scratch;
  EngineConfig config = embedding_config();
  config.packed_weights = "off";
  const Request request = embed(prompt(7, 1));
  const std::vector<float> expected = run(*make_engine(config), {request}).front().embedding;
  config.packed_weights = scratch.path();
  for (const char* const in_log : {"MiB of packed weights to", "packed weights are mapped from"}) {
    ::testing::internal::CaptureStderr();
    const std::vector<float> got = run(*make_engine(config), {request}).front().embedding;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(in_log));
    EXPECT_EQ(got, expected);
  }
}

TEST(Embedding, IsThatOfTransformers) {
  const auto engine = make_engine(embedding_config());
  EXPECT_EQ(engine->model_info().embedding_size, kHidden);
  for (const Golden& golden : read_golden()) {
    Request request;
    request.prompt = golden.text;
    request.embedding.emplace();
    const std::vector<Output> outputs = run(*engine, {request});
    ASSERT_EQ(outputs.size(), 1U);
    const Output& output = outputs.front();
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
    EXPECT_TRUE(output.token_ids.empty());
    ASSERT_NE(output.prompt_token_ids, nullptr);
    EXPECT_EQ(*output.prompt_token_ids, golden.ids);  // the tokenizer appends its last token
    EXPECT_THAT(output.embedding,
                ::testing::Pointwise(::testing::FloatNear(1e-5F), golden.embedding));
  }
}

// The kind of pooling makes a GGUF file an embedding model.
TEST(Embedding, OfAGgufFileIsThatOfTransformers) {
  const ScratchDirectory scratch;
  const std::string folder = "tests/golden/pooling/embedding/";
  const std::string config = read_file(source_path(folder + "config.json"), 1 << 20).value();
  const std::string weights = read_file(source_path(folder + "model.safetensors"), 1 << 20).value();
  GgufSource source = {config, bytes_of(weights)};
  const auto with_pooling = [&](std::optional<uint32_t> pooling) {
    source.pooling = pooling;
    EngineConfig model = embedding_config();
    model.model = scratch.write("m.gguf", convert_to_gguf(source, "qwen3", kAsStored));
    return model;
  };
  const auto engine = make_engine(with_pooling(3));
  EXPECT_EQ(engine->model_info().embedding_size, kHidden);
  for (const Golden& golden : read_golden()) {
    const std::vector<Output> outputs = run(*engine, {embed(golden.ids)});
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_THAT(outputs.front().embedding,
                ::testing::Pointwise(::testing::FloatNear(1e-5F), golden.embedding));
  }
  for (const std::optional<uint32_t> none : {std::optional<uint32_t>(), {0U}}) {
    EXPECT_EQ(make_engine(with_pooling(none))->model_info().embedding_size, 0);
  }
  EXPECT_THAT(Engine::create(with_pooling(1)).status().message(),
              HasSubstr("m.gguf: metadata \"qwen3.pooling_type\"; got 1 (mean), expected 0 (none) "
                        "or 3 (last)"));
  EXPECT_THAT(Engine::create(with_pooling(4)).status().message(), HasSubstr("got 4 (rank)"));
  EXPECT_THAT(Engine::create(with_pooling(5)).status().message(),
              HasSubstr("got 5, expected 0 to 4"));
}

std::vector<Request> mixed_lengths() {
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(embed(prompt(1 + (i * 53) % 300, static_cast<uint64_t>(i))));
  }
  return requests;
}

// The first engine computes each prompt alone and at once.
TEST(Embedding, HasTheSameBitsInAnyBatch) {
  const std::vector<Request> requests = mixed_lengths();
  EngineConfig alone = embedding_config();
  alone.enable_prefix_caching = false;
  const auto reference = make_engine(alone);
  std::vector<std::vector<float>> expected;
  for (const Request& request : requests) {
    expected.push_back(run(*reference, {request}).front().embedding);
    EXPECT_EQ(expected.back().size(), size_t{kHidden});
  }
  EngineConfig chunked = embedding_config();
  chunked.max_num_batched_tokens = 7;
  chunked.max_num_seqs = 7;
  EngineConfig few_blocks = embedding_config();
  few_blocks.max_model_len = 320;
  few_blocks.kv_cache_memory = int64_t{160} << 10;
  few_blocks.block_size = 64;
  for (const EngineConfig& config : {embedding_config(), chunked, few_blocks}) {
    const auto engine = make_engine(config);
    for (int round = 0; round < 2; ++round) {  // the second finds the prompts in the prefix cache
      const std::vector<Output> outputs = run(*engine, requests);
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(outputs[i].embedding, expected[i]) << "prompt " << i << ", round " << round;
      }
    }
    const EngineStats stats = stats_at_rest(*engine);
    if (config.kv_cache_memory == 0) {
      EXPECT_GT(stats.prefix_cache_hits, 0);
    }
    EXPECT_EQ(stats.num_generated_tokens, 0);
  }
}

// An urgent prompt takes the only slot from a chunked one, which is computed again.
TEST(Embedding, SurvivesPreemptionAndCancellation) {
  EngineConfig config = embedding_config();
  config.max_num_seqs = 1;
  config.max_num_batched_tokens = 4;
  const auto engine = make_engine(config);
  const Request slow = embed(prompt(1000, 1));
  const std::vector<float> expected = run(*engine, {slow}).front().embedding;
  Request other = embed(prompt(1000, 2));
  auto preempted = engine->submit(other).value();
  EXPECT_TRUE(eventually([&] { return engine->stats().num_running > 0; }));
  Request urgent = slow;
  urgent.priority = -1;
  EXPECT_EQ(run(*engine, {urgent}).front().embedding, expected);
  EXPECT_EQ(only_output(*preempted).embedding.size(), size_t{kHidden});
  auto cancelled = engine->submit(embed(prompt(1000, 3))).value();
  cancelled->cancel();
  EXPECT_EQ(only_output(*cancelled).finish_reason, FinishReason::kCancelled);
}

TEST(Embedding, IsShortenedAndNormalizedAgain) {
  const auto engine = make_engine(embedding_config());
  const std::vector<Output> outputs =
      run(*engine, {embed(prompt(9, 1)), embed(prompt(9, 1), 4), embed(prompt(9, 1), kHidden)});
  const std::vector<float>& whole = outputs[0].embedding;
  const std::vector<float>& part = outputs[1].embedding;
  EXPECT_EQ(outputs[2].embedding, whole);
  ASSERT_EQ(part.size(), 4U);
  double length = 0;
  for (const float value : part) length += static_cast<double>(value) * value;
  EXPECT_NEAR(length, 1, 1e-6);
  EXPECT_NEAR(part[1] / part[0], whole[1] / whole[0], 1e-5);
}

TEST(Embedding, FillsTheContext) {
  const auto engine = make_engine(embedding_config());
  EXPECT_EQ(run(*engine, {embed(prompt(kMaxModelLen, 1))}).front().embedding.size(),
            size_t{kHidden});
  EXPECT_THAT(refusal(*engine, embed(prompt(kMaxModelLen + 1, 1))),
              HasSubstr("got 1025 tokens, expected at most 1024"));
}

TEST(Embedding, IsRefusedWithTheReason) {
  const auto embedding = make_engine(embedding_config());
  EXPECT_THAT(refusal(*embedding, greedy({5}, 1)), HasSubstr("does not generate text"));
  EXPECT_THAT(refusal(*embedding, embed({5}, kHidden + 1)),
              HasSubstr("dimensions; got 33, expected 1 to 32"));
  const auto generating = make_engine(tiny_config());
  EXPECT_THAT(refusal(*generating, embed({5})), HasSubstr("use an embedding model"));
}

TEST(Embedding, HasNoSpeculation) {
  EngineConfig config = embedding_config();
  config.speculative_config = R"({"method": "suffix"})";
  EXPECT_THAT(Engine::create(config).status().message(), HasSubstr("never decodes"));
}

TEST(MakeEmbedding, RefusesNumbersThatAreNotFinite) {
  const auto embedding = make_embedding({1, NAN}, {.params = {}, .normalizes = true});
  EXPECT_THAT(embedding.status().message(), HasSubstr("got NaN or infinity"));
  EXPECT_THAT(*make_embedding({0, 0}, {.params = {}, .normalizes = true}),
              ::testing::ElementsAre(0, 0));
  EXPECT_THAT(*make_embedding({3, 4}, {.params = {}, .normalizes = false}),
              ::testing::ElementsAre(3, 4));
}

// sentence-transformers saves models by the class of their layers.
TEST(Embedding, ModulesAreNeededByAModelWithoutHead) {
  const fs::path golden = source_path("tests/golden/pooling/embedding");
  const ScratchDirectory scratch;
  const fs::path& directory = scratch.path();
  fs::copy(golden, directory, fs::copy_options::recursive);
  std::string config = read_file(golden / "config.json", 1 << 20).value();
  config.replace(config.find("Qwen3ForCausalLM"), 16, "Qwen3Model");
  scratch.write("config.json", config);
  EngineConfig headless = embedding_config();
  headless.model = directory.string();
  const auto engine = make_engine(headless);
  const std::vector<float> expected =
      run(*make_engine(embedding_config()), {embed(prompt(9, 1))}).front().embedding;
  EXPECT_EQ(run(*engine, {embed(prompt(9, 1))}).front().embedding, expected);
  fs::remove(directory / "modules.json");
  EXPECT_THAT(Engine::create(headless).status().message(), HasSubstr("the model can only embed"));
}

}  // namespace
}  // namespace quire::testing
