#include "bench/perplexity.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <utility>

#include "base/json.h"
#include "cpu/ops/gemm_amx.h"
#include "engine/tiny_engine.h"
#include "parity/golden_models.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::bench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_engine;
using testing::tiny_config;
using testing::tiny_prompt;

PerplexityResult evaluate(Engine& engine, const TokenizedText& text,
                          const PerplexityOptions& options) {
  return testing::value_of(evaluate_perplexity(engine, options, text, Hooks()));
}

TEST(SplitWindows, DisjointAndOverlapping) {
  EXPECT_THAT(split_windows(7, {.context = 3, .stride = 3}, true),
              ElementsAre(Window{0, 0, 3}, Window{3, 3, 6}, Window{6, 6, 7}));
  EXPECT_THAT(split_windows(7, {.context = 3, .stride = 3}, false),
              ElementsAre(Window{0, 1, 4}, Window{3, 4, 7}));
  EXPECT_THAT(split_windows(7, {.context = 4, .stride = 2}, false),
              ElementsAre(Window{0, 1, 5}, Window{2, 5, 7}));
  EXPECT_THAT(split_windows(1, {.context = 4, .stride = 2}, false), IsEmpty());
}

// For every small text, context and stride.
TEST(SplitWindows, ScoreEachTokenOnceWithEnoughContext) {
  for (const bool has_bos : {false, true}) {
    for (int context = 1; context <= 9; ++context) {
      for (int stride = 1; stride <= context; ++stride) {
        for (size_t num_tokens = 2; num_tokens <= 40; ++num_tokens) {
          SCOPED_TRACE(fmt::format("{} tokens, context {}, stride {}, BOS {}", num_tokens, context,
                                   stride, has_bos));
          std::vector<int> num_scores(num_tokens);
          for (const Window& window : split_windows(num_tokens, {context, stride}, has_bos)) {
            ASSERT_LT(window.first_scored, window.end);
            ASSERT_LE(window.end, num_tokens);
            const auto num_read = [&](size_t token) {
              return static_cast<int>(token - window.begin) + (has_bos ? 1 : 0);
            };
            EXPECT_LE(num_read(window.end - 1), context);
            EXPECT_GE(num_read(window.first_scored), window.begin == 0 ? 1 : context - stride + 1);
            for (size_t i = window.first_scored; i < window.end; ++i) ++num_scores[i];
          }
          EXPECT_EQ(std::exchange(num_scores[0], 1), has_bos ? 1 : 0);
          EXPECT_THAT(num_scores, Each(1));
        }
      }
    }
  }
}

TEST(WindowSizes, HaveDefaultsAndLimits) {
  const auto sizes = [](int context, int stride, int max_model_len) {
    return window_sizes({.context = context, .stride = stride}, max_model_len);
  };
  EXPECT_EQ(sizes(0, 0, 4096)->context, 512);
  EXPECT_EQ(sizes(0, 0, 4096)->stride, 256);
  EXPECT_EQ(sizes(0, 0, 256)->context, 255);
  EXPECT_EQ(sizes(0, 0, 256)->stride, 128);
  EXPECT_EQ(sizes(1, 0, 256)->stride, 1);
  EXPECT_EQ(sizes(255, 255, 256)->stride, 255);
  EXPECT_THAT(sizes(256, 0, 256).status().message(),
              HasSubstr("`context`: got 256, expected 1 to 255: the engine's context of 256"));
  EXPECT_THAT(sizes(0, 513, 4096).status().message(),
              HasSubstr("`stride`: got 513, expected 1 to 512"));
}

TEST(PerplexityResult, HasItsStatistics) {
  PerplexityResult result;
  result.nlls = {1, 2, 3};
  result.num_bytes = 12;
  result.latency_s = 1.5;
  EXPECT_DOUBLE_EQ(result.mean_nll(), 2);
  EXPECT_DOUBLE_EQ(result.nll_error(), 1 / std::sqrt(3));  // the sample's deviation is 1
  EXPECT_DOUBLE_EQ(result.perplexity(), std::exp(2));
  EXPECT_DOUBLE_EQ(result.perplexity_error(), std::exp(2) / std::sqrt(3));
  EXPECT_DOUBLE_EQ(result.bits_per_byte(), 0.5 / std::numbers::ln2);
  EXPECT_DOUBLE_EQ(result.tokens_per_s(), 2);
  EXPECT_THAT(to_text(result),
              AllOf(HasSubstr("Perplexity: 7.3891 +/- 4.2661\n"), HasSubstr("3 scored (12 bytes)"),
                    HasSubstr("Throughput: 2.0 tokens/s")));
  result.nlls = {2};
  EXPECT_THAT(to_json(result, ModelInfo()), HasSubstr("\"mean_nll_stderr\":null"));
}

TEST(LoadText, NamesTheFirstInvalidByte) {
  const testing::ScratchDirectory scratch;
  const auto load = [&](std::string_view text) { return load_text(scratch.write("a.txt", text)); };
  EXPECT_EQ(*load(" a\r\n\u00e9"), " a\r\n\u00e9");
  EXPECT_THAT(load("").status().message(), HasSubstr("a.txt is empty"));
  EXPECT_THAT(load("\u00e9a\xff").status().message(), HasSubstr("not valid UTF-8 at byte 3"));
  EXPECT_THAT(load("ab\xe2\x82").status().message(), HasSubstr("not valid UTF-8 at byte 2"));
}

TEST(TokenizeText, NeedsATokenizer) {
  const auto engine = make_engine(tiny_config());
  EXPECT_THAT(tokenize_text(*engine, "a text", {}).status().message(),
              HasSubstr("no tokenizer; give one with `tokenizer`"));
}

double negative_log_softmax(std::span<const float> logits, int32_t token_id) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  return std::log(sum) - double{logits[static_cast<size_t>(token_id)]};
}

// Logits that transformers computed in float32, for weights in three types.
TEST(EvaluatePerplexity, AgreesWithTransformers) {
  // AMX takes activations as sums of two BF16 numbers: a result changes by up to 4e-4 here.
  const double tolerance = cpu::amx_usable() ? 6e-4 : 1e-4;
  const testing::GoldenCases golden = testing::read_golden_cases();
  int num_compared = 0;
  for (const testing::GoldenCase& one : golden.cases) {
    if (one.name != "llama.default" && one.name != "llama_f16.default" &&
        one.name != "llama_bf16.default") {
      continue;
    }
    SCOPED_TRACE(one.name);
    const testing::ScratchDirectory scratch;
    scratch.copy(one.config, "config.json");
    scratch.copy(one.weights / "model.safetensors", "model.safetensors");
    EngineConfig config;
    config.model = scratch.path();
    config.device = "cpu";
    config.num_threads = 2;
    config.kv_cache_dtype = "f32";
    const auto engine = make_engine(config);
    const size_t num_tokens = golden.input_ids.size();
    const PerplexityResult result = evaluate(*engine, {.ids = golden.input_ids, .bos = {}}, {});
    ASSERT_EQ(result.nlls.size(), num_tokens - 1);
    EXPECT_EQ(result.num_windows, 1U);
    const auto vocab_size = static_cast<size_t>(engine->model_info().vocab_size);
    const std::vector<float> logits = testing::read_logits(one, num_tokens, vocab_size);
    for (size_t i = 0; i + 1 < num_tokens; ++i) {
      const auto row = std::span(logits).subspan(i * vocab_size, vocab_size);
      EXPECT_NEAR(result.nlls[i], negative_log_softmax(row, golden.input_ids[i + 1]), tolerance)
          << i;
    }
    ++num_compared;
  }
  EXPECT_EQ(num_compared, 3);
}

// Scores a token after the tokens that its window reads before it, found by the definition: it
// belongs to the first window that holds it.
double score_alone(Engine& engine, const TokenizedText& text, const WindowSizes& sizes,
                   size_t token) {
  const size_t num_bos = text.bos ? 1 : 0;
  size_t begin = 0;
  while (token - begin + num_bos > static_cast<size_t>(sizes.context)) {
    begin += static_cast<size_t>(sizes.stride);
  }
  Request request = testing::greedy({}, 1);
  if (text.bos) request.prompt_token_ids = {*text.bos};
  for (size_t i = begin; i < token; ++i) request.prompt_token_ids.push_back(text.ids[i]);
  request.sampling.allowed_token_ids = {text.ids[token]};
  request.sampling.logprobs = 0;
  return -double{testing::run_all(engine, {request}).at(0).logprobs.at(0).at(0).logprob};
}

// On a CPU log probabilities depend on nothing but the tokens before, to the last bit.
TEST(EvaluatePerplexity, EqualsTheScoresOfSingleTokens) {
  EngineConfig config = tiny_config();
  config.max_num_seqs = 3;
  config.max_num_batched_tokens = 32;  // prompts run in chunks
  const auto engine = make_engine(config);
  const std::vector<int32_t> ids = tiny_prompt(100, 1);
  for (const std::optional<int32_t> bos : {std::optional<int32_t>(), std::optional<int32_t>(1)}) {
    for (const WindowSizes sizes :
         {WindowSizes{40, 40}, WindowSizes{40, 7}, WindowSizes{1, 1}, WindowSizes{200, 100}}) {
      SCOPED_TRACE(fmt::format("context {}, stride {}", sizes.context, sizes.stride));
      const TokenizedText text = {ids, bos};
      const PerplexityResult result =
          evaluate(*engine, text, {.context = sizes.context, .stride = sizes.stride});
      const size_t first = bos ? 0 : 1;
      ASSERT_EQ(result.nlls.size(), ids.size() - first);
      for (size_t i = 0; i < result.nlls.size(); ++i) {
        EXPECT_EQ(result.nlls[i], score_alone(*engine, text, sizes, first + i)) << i;
      }
    }
  }
}

TEST(EvaluatePerplexity, ReadsTheWholeContextOfTheModel) {
  const auto engine = make_engine(tiny_config());
  const TokenizedText text = {tiny_prompt(600, 2), 1};
  const PerplexityResult result = evaluate(*engine, text, {.context = 511, .stride = 511});
  EXPECT_EQ(result.nlls.size(), 600U);
  EXPECT_EQ(result.num_read, 600);
  // Random weights make the 96 tokens about equally likely.
  EXPECT_NEAR(result.mean_nll(), std::log(96), 0.5);
}

TEST(EvaluatePerplexity, EndsAfterAnInterrupt) {
  const auto engine = make_engine(tiny_config());
  const Hooks hooks = {.interrupted = [] { return true; }};
  const auto result = evaluate_perplexity(*engine, {}, {tiny_prompt(2000, 3), {}}, hooks);
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
  EXPECT_THAT(result.status().message(), HasSubstr("[eval] interrupted after "));
}

TEST(EvaluatePerplexity, ATrainedModelKnowsItsOwnStory) {
  const fs::path model = testing::shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(model);
  EngineConfig config;
  config.model = model;
  config.device = "cpu";
  config.num_threads = 2;
  const auto engine = make_engine(config);
  const JsonDocument golden = JsonDocument::load(model / "golden_greedy_ids.json").value();
  std::vector<int32_t> ids;
  for (const simdjson::dom::element id : golden.root()["bos_only_greedy_ids"].get_array()) {
    ids.push_back(static_cast<int32_t>(id.get_int64().value()));
  }
  const std::string story = engine->decode(ids, true);
  const auto text = testing::value_of(tokenize_text(*engine, story, {}));
  EXPECT_EQ(text.bos, 1);
  const PerplexityResult result = evaluate(*engine, text, {});
  EXPECT_EQ(result.nlls.size(), text.ids.size());
  // The space that the tokenizer adds before the first word is not a byte of the text.
  EXPECT_EQ(result.num_bytes, std::ssize(story));
  EXPECT_GT(result.perplexity(), 1.0);
  EXPECT_LT(result.perplexity(), 3.0);  // the model's own choices
  const auto start = tokenize_text(*engine, story, {.max_tokens = 5});
  EXPECT_THAT(start->ids, ::testing::SizeIs(5));
}

}  // namespace
}  // namespace quire::bench
