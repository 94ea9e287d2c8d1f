// Walks through random texts of grammars at a vocabulary of 128 k tokens: each mask allows a token,
// and the grammar accepts each token that its mask allows. Prints the cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>

#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire {
namespace {

using testing::allowed_ids;
using Kind = GrammarSpec::Kind;
using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double quantile(std::vector<double>& values, double q) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * double(values.size() - 1))];
}

TEST(RandomWalk, EveryAllowedTokenIsAccepted) {
  const auto dir = testing::shared_data_path("tokenizers/llama3.2-instruct");
  QUIRE_REQUIRE_SHARED(dir);
  const auto tokenizer = testing::value_of(Tokenizer::load(dir));
  const std::array eos = {*tokenizer->token_to_id("<|eot_id|>")};
  auto start = Clock::now();
  GrammarCompiler compiler(*tokenizer, eos, testing::ample_time());
  std::printf("vocabulary: %.0f ms\n", microseconds_since(start) / 1e3);
  const std::pair<const char*, GrammarSpec> cases[] = {
      {"json_object", {.kind = Kind::kJsonObject}},
      {"json_schema",
       {.kind = Kind::kJsonSchema,
        .text = R"({"type": "object", "properties": {"name": {"type": "string"}, "age":
            {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["name", "age", "tags"]})"}},
      {"choice", {.kind = Kind::kChoice, .text = "", .choices = {"positive", "negative", "mixed"}}},
      {"regex", {.kind = Kind::kRegex, .text = "[\\w.]+@[\\w.]+\\.(com|org)"}},
      {"http_url",
       {.kind = Kind::kJsonSchema,
        .text = R"({"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083})"}},
      {"date-time",
       {.kind = Kind::kJsonSchema, .text = R"({"type": "string", "format": "date-time"})"}},
  };
  for (const auto& [name, spec] : cases) {
    start = Clock::now();
    const auto factory = testing::value_of(compiler.compile(spec));
    const double compile_ms = microseconds_since(start) / 1e3;
    std::vector<double> masks;
    std::vector<double> accepts;
    std::mt19937_64 random(1);
    for (int answer = 0; answer < 20; ++answer) {
      const auto constraint = factory();
      for (int step = 0; step < 50; ++step) {
        start = Clock::now();
        const auto mask = constraint->allowed_tokens();
        masks.push_back(microseconds_since(start));
        const auto allowed = allowed_ids(mask, tokenizer->vocab_size());
        ASSERT_FALSE(allowed.empty());
        const int32_t id = allowed[random() % allowed.size()];
        start = Clock::now();
        ASSERT_TRUE(constraint->accept(id));
        accepts.push_back(microseconds_since(start));
        if (id == eos[0]) break;
      }
    }
    std::printf(
        "%-12s compile %7.1f ms; allowed_tokens p50 %6.1f us, p99 %7.1f us; "
        "accept p50 %5.1f us, p99 %6.1f us\n",
        name, compile_ms, quantile(masks, 0.5), quantile(masks, 0.99), quantile(accepts, 0.5),
        quantile(accepts, 0.99));
  }
}

}  // namespace
}  // namespace quire
