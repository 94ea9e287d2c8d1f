// Grammars on a GPU: the embedded model answers within them, in the batch of requests that are
// free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"
#include "platform/platform.h"
#include "quire/engine.h"

namespace quire {
namespace {

using testing::matches_regex;
using testing::validate_json;
using Kind = GrammarSpec::Kind;

constexpr std::string_view kSchema = R"({"type": "object", "properties": {
    "answer": {"type": "integer", "minimum": 0, "maximum": 999},
    "unit": {"enum": ["apples", "coins"]}}, "required": ["answer", "unit"],
    "additionalProperties": false})";
constexpr std::string_view kPattern = "\\d{2} apples( and \\d+)?\\.";

struct Collected {
  std::string text;
  FinishReason finish = FinishReason::kError;
  Status error;
};

Collected collect(RequestStream& stream) {
  Collected answer;
  while (const auto output = stream.next()) {
    answer.text += output->text;
    if (!output->finish_reason) continue;
    answer.finish = *output->finish_reason;
    answer.error = output->error;
  }
  return answer;
}

Request question(const Engine& engine, int number) {
  Request request;
  request.prompt = *engine.render_chat(
      {{"user", "Tom has " + std::to_string(number) + " apples and gets 5 more. How many?"}});
  request.add_special_tokens = false;
  request.sampling.temperature = number % 2 == 0 ? 0.0F : 0.9F;
  request.sampling.seed = static_cast<uint64_t>(number);
  request.sampling.max_tokens = 200;
  return request;
}

class GpuGrammar : public ::testing::TestWithParam<bool> {};

TEST_P(GpuGrammar, EachKindInABatchWithFreeRequests) {
  if (const Status gpu = cuda_status(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  EngineConfig config;
  config.device = "cuda";
  config.max_num_seqs = 32;
  config.kv_cache_memory = int64_t{256} << 20;
  config.enforce_eager = GetParam();
  auto engine = Engine::create(config);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  GrammarCompiler compiler(*testing::embedded_tokenizer(), std::array{testing::kEmbeddedEosId});
  const std::array<GrammarSpec, 3> specs = {
      GrammarSpec{.kind = Kind::kJsonSchema, .text = std::string(kSchema)},
      GrammarSpec{.kind = Kind::kChoice, .text = "", .choices = {"few", "many apples"}},
      GrammarSpec{.kind = Kind::kRegex, .text = std::string(kPattern)}};
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (int i = 0; i < 32; ++i) {
    Request request = question(**engine, 20 + i);
    const auto kind = static_cast<size_t>(i % 4);
    if (kind < specs.size()) {
      const auto factory = compiler.compile(specs[kind]);
      ASSERT_TRUE(factory.ok()) << factory.status().message();
      request.make_constraint = *factory;
    }
    auto stream = (*engine)->submit(request);
    ASSERT_TRUE(stream.ok()) << stream.status().message();
    streams.push_back(std::move(*stream));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const Collected answer = collect(*streams[i]);
    const std::string& text = answer.text;
    EXPECT_EQ(answer.finish, FinishReason::kStop) << text << answer.error.message();
    if (i % 4 == 0) {
      EXPECT_EQ(validate_json(text, kSchema), "") << text;
    }
    if (i % 4 == 1) {
      EXPECT_TRUE(text == "few" || text == "many apples") << text;
    }
    if (i % 4 == 2) {
      EXPECT_TRUE(matches_regex(text, kPattern)) << text;
    }
    if (i % 4 == 3) {
      EXPECT_FALSE(text.empty());
    }
  }
  EXPECT_TRUE((*engine)->health().ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, GpuGrammar, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "eager" : "graphs"; });

}  // namespace
}  // namespace quire
