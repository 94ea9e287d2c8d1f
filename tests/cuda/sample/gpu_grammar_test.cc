// On a GPU, the embedded model's outputs match their grammars, in a batch with unconstrained
// requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "engine/tiny_engine.h"
#include "grammar/apples.h"
#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"
#include "platform/platform.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

constexpr std::string_view kPattern = "\\d{2} apples( and \\d+)?\\.";

class GpuGrammar : public ::testing::TestWithParam<bool> {};

TEST_P(GpuGrammar, EachKindInABatchWithFreeRequests) {
  if (const Status gpu = cuda_status(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  EngineConfig config;
  config.device = "cuda";
  config.max_num_seqs = 32;
  config.kv_cache_memory = int64_t{256} << 20;
  config.enforce_eager = GetParam();
  const auto engine = make_engine(config);
  GrammarCompiler compiler(*embedded_tokenizer(), std::array{kEmbeddedEosId}, ample_time());
  const std::array<GrammarSpec, 3> specs = {
      GrammarSpec{.kind = Kind::kJsonSchema, .text = std::string(kApplesSchema)},
      GrammarSpec{.kind = Kind::kChoice, .text = "", .choices = {"few", "many apples"}},
      GrammarSpec{.kind = Kind::kRegex, .text = std::string(kPattern)}};
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (int i = 0; i < 32; ++i) {
    Request request = apples_question(*engine, 20 + i, 200);
    const auto kind = static_cast<size_t>(i % 4);
    if (kind < specs.size()) {
      request.make_constraint = value_of(compiler.compile(specs[kind]));
    }
    streams.push_back(value_of(engine->submit(request)));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const Collected answer = collect(*streams[i]);
    const std::string& text = answer.text;
    EXPECT_EQ(answer.finish_reason, FinishReason::kStop) << text << answer.error.message();
    if (i % 4 == 0) {
      EXPECT_EQ(validate_json(text, kApplesSchema), "") << text;
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
  EXPECT_TRUE(engine->health().ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, GpuGrammar, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "eager" : "graphs"; });

}  // namespace
}  // namespace quire::testing
