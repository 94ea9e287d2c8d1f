// Runs Gemma 2 and 3 through the whole engine: greedy ids equal those of the operations'
// definitions, and text goes in and out.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "cpu/attention/reference.h"
#include "engine/tiny_engine.h"
#include "model/families.h"
#include "parity/golden_models.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "tokenizer/tokenizer.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kNumTokens = 40;  // several windows of 12

std::vector<GoldenCase> gemma_cases() {
  std::vector<GoldenCase> cases = read_golden_cases().cases;
  std::erase_if(cases, [](const GoldenCase& golden) { return !golden.name.starts_with("gemma"); });
  return cases;
}

// Continues one token by the definitions of the operations and of attention.
std::vector<int32_t> expected_ids(const GoldenCase& golden, int32_t first) {
  ModelLimits limits;
  limits.max_num_tokens = limits.max_num_logit_rows = 4;
  limits.max_model_len = kNumTokens;
  limits.kv_dtype = DType::kF32;
  ReferenceOps ops;
  const auto attention = make_reference_attention();
  const ModelConfig config = read_config(golden.config);
  const auto weights = apply_layout(Checkpoint::open(golden.weights).value(), config).value();
  const auto model = load_model(config, *weights, ops, limits).value();
  ModelHarness harness(*model, *attention, limits);
  return greedy(harness, 0, first, kNumTokens).value();
}

class GemmaEngine : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GemmaEngine, GreedyIdsAreThoseOfTheDefinitions) {
  const ScratchDirectory directory;
  directory.copy(GetParam().config, "config.json");
  directory.copy(GetParam().weights / "model.safetensors", "model.safetensors");
  EngineConfig config;
  config.model = directory.path();
  config.device = "cpu";
  config.num_threads = 2;
  config.kv_cache_dtype = "f32";
  const auto engine = make_engine(config);
  std::vector<Request> requests;
  std::vector<std::vector<int32_t>> expected;
  for (const int32_t first : {1, 17, 66}) {
    expected.push_back(expected_ids(GetParam(), first));
    requests.push_back(testing::greedy({first}, kNumTokens - 1));
    // A prompt that is the first half is continued by the second half.
    const std::vector<int32_t>& all = expected.back();
    requests.push_back(testing::greedy({all.begin(), all.begin() + 20}, kNumTokens - 20));
  }
  const std::vector<Collected> answers = run_all(*engine, requests);
  ASSERT_EQ(answers.size(), requests.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    std::vector<int32_t> whole = requests[i].prompt_token_ids;
    whole.insert(whole.end(), answers[i].token_ids.begin(), answers[i].token_ids.end());
    EXPECT_EQ(whole, expected[i / 2]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GemmaEngine, ::testing::ValuesIn(gemma_cases()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

// The model has a tokenizer like Gemma's, Gemma's template, and random weights.
TEST(GemmaText, GoesInAndComesOut) {
  const ScratchDirectory directory;
  directory.write("config.json",
                  R"({"architectures":["Gemma3ForCausalLM"],"hidden_size":32,)"
                  R"("intermediate_size":48,"num_hidden_layers":3,"num_attention_heads":2,)"
                  R"("num_key_value_heads":1,"head_dim":16,"vocab_size":600,)"
                  R"("max_position_embeddings":256,"sliding_window":16,)"
                  R"("sliding_window_pattern":3,"eos_token_id":[1,5],"torch_dtype":"bfloat16"})");
  const JsonDocument golden =
      JsonDocument::load(source_path("tests/tokenizer/golden/gemma.json")).value();
  const std::string tokenizer_json =
      simdjson::minify(simdjson::dom::element(golden.root().at(0)["tokenizer"]));
  directory.write("tokenizer.json", tokenizer_json);
  directory.write("tokenizer_config.json", R"({"tokenizer_class":"GemmaTokenizer",)"
                                           R"("add_bos_token":true,"bos_token":"<bos>"})");
  EngineConfig config;
  config.model = directory.path();
  config.load_format = "dummy";
  config.device = "cpu";
  config.num_threads = 2;
  const auto engine = make_engine(config);
  const auto tokenizer = Tokenizer::from_json(tokenizer_json, "gemma.json").value();
  const std::string text = "<start_of_turn>user\nHello  world<end_of_turn>\n";
  std::vector<int32_t> prompt = tokenizer->encode(text, false).value();
  EXPECT_EQ(tokenizer->decode(prompt, false), text);
  prompt.insert(prompt.begin(), 2);  // <bos>

  Request by_text = testing::greedy({}, 24);
  by_text.prompt = text;
  const std::vector<Collected> answers = run_all(*engine, {by_text, testing::greedy(prompt, 24)});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].token_ids, answers[1].token_ids) << "<bos> goes before a prompt once";
  EXPECT_EQ(answers[0].token_ids.size(), 24U);
  EXPECT_EQ(answers[0].text, tokenizer->decode(answers[0].token_ids, true));
}

}  // namespace
}  // namespace quire::testing
