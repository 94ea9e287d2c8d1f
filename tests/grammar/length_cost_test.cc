// Compiles bounded strings at a vocabulary of 152 k tokens: the CPU time does not depend on the
// bounds, and the limits that hold in a server allow it. Prints the times.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"
#include "support/shared_data.h"

namespace quire {
namespace {

std::string schema_of(const std::string& keywords) {
  return R"({"type":"object","properties":{"x":{"type":"string")" + keywords +
         R"(}},"required":["x"],"additionalProperties":false})";
}

// Returns the milliseconds of CPU time that all threads of the process take to compile, without the
// cache. A refusal is 0.
double compile_ms(const Tokenizer& tokenizer, std::span<const int32_t> eos,
                  const std::string& schema) {
  GrammarCompiler compiler(tokenizer, eos);
  const std::clock_t start = std::clock();
  const auto factory = compiler.compile({.kind = GrammarSpec::Kind::kJsonSchema, .text = schema});
  const double ms = 1e3 * double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!factory.ok()) std::printf("%s\n", factory.status().message().c_str());
  return factory.ok() ? ms : 0;
}

TEST(LengthCost, DoesNotDependOnTheBounds) {
  const auto dir = testing::shared_data_path("tokenizers/qwen2_5");
  QUIRE_REQUIRE_SHARED(dir);
  const auto tokenizer = Tokenizer::load(dir);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::array eos = {*(*tokenizer)->token_to_id("<|endoftext|>")};
  std::vector<std::string> cases;
  for (const int most : {16, 40, 64, 100, 128, 256, 1000}) {
    cases.push_back(R"(,"maxLength":)" + std::to_string(most));
  }
  for (const int least : {1, 10, 17, 64, 100}) {
    cases.push_back(R"(,"minLength":)" + std::to_string(least));
  }
  cases.emplace_back(R"(,"pattern":"^.{1,64}$")");
  cases.emplace_back(R"(,"pattern":"^[a-z0-9_-]{1,64}$")");
  const std::string plain = schema_of("");
  (void)compile_ms(**tokenizer, eos, plain);  // reads the vocabulary's pages
  for (const std::string& keywords : cases) {
    // Other programs disturb single times, so the ratio is of the least of alternate times.
    double plain_ms = 1e9;
    double bounded_ms = 1e9;
    for (int i = 0; i < 2; ++i) {
      plain_ms = std::min(plain_ms, compile_ms(**tokenizer, eos, plain));
      bounded_ms = std::min(bounded_ms, compile_ms(**tokenizer, eos, schema_of(keywords)));
    }
    std::printf("%-34s %7.0f ms, plain %7.0f ms, ratio %5.2f\n", keywords.c_str() + 1, bounded_ms,
                plain_ms, bounded_ms / plain_ms);
    EXPECT_GT(bounded_ms, 0) << keywords;
    EXPECT_LT(bounded_ms, 5 * plain_ms) << keywords;
  }
}

// Near the end of a string, the matcher leaves out the tokens that are too long.
TEST(LengthCost, MasksNearTheEndAreCheap) {
  const auto dir = testing::shared_data_path("tokenizers/qwen2_5");
  QUIRE_REQUIRE_SHARED(dir);
  const auto tokenizer = Tokenizer::load(dir);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::array eos = {*(*tokenizer)->token_to_id("<|endoftext|>")};
  GrammarCompiler compiler(**tokenizer, eos, testing::ample_time());
  for (const char* keywords : {"", R"(,"maxLength":40)", R"(,"minLength":30,"maxLength":40)",
                               R"(,"pattern":"^.{1,40}$")"}) {
    const auto factory =
        compiler.compile({.kind = GrammarSpec::Kind::kJsonSchema, .text = schema_of(keywords)});
    ASSERT_TRUE(factory.ok()) << factory.status().message();
    const auto constraint = (*factory)();
    const int32_t letter = *(*tokenizer)->token_to_id("q");
    const auto prefix = (*tokenizer)->encode("{\"x\":\"", false);
    for (const int32_t id : *prefix) ASSERT_TRUE(constraint->accept(id));
    std::vector<double> ms;
    for (int i = 0; i <= 40; ++i) {
      const std::clock_t start = std::clock();
      (void)constraint->allowed_tokens();
      ms.push_back(1e3 * double(std::clock() - start) / CLOCKS_PER_SEC);
      if (i == 40) break;
      ASSERT_TRUE(constraint->accept(letter)) << i;
    }
    std::ranges::sort(ms);
    std::printf("mask of a string of 40 characters%-40s p50 %6.3f ms, most %6.3f ms\n", keywords,
                ms[20], ms[40]);
    EXPECT_LT(ms[20], 2) << keywords;  // the server's allowance per token
  }
}

// The least work that suffices is the same while other threads take the processor.
TEST(CompileWork, IsTheSameUnderLoad) {
  constexpr std::array kEos = {testing::kEmbeddedEosId};
  const auto compiles = [&](int64_t work) {
    GrammarLimits limits = testing::ample_time();
    limits.compile_work = work;
    return GrammarCompiler(*testing::embedded_tokenizer(), kEos, limits)
        .compile({.kind = GrammarSpec::Kind::kJsonSchema, .text = schema_of(R"(,"maxLength":64)")})
        .ok();
  };
  int64_t refused = 0;
  int64_t allowed = int64_t{1} << 30;
  while (allowed - refused > 1) {
    const int64_t middle = refused + (allowed - refused) / 2;
    (compiles(middle) ? allowed : refused) = middle;
  }
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i)
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(compiles(allowed));
    EXPECT_FALSE(compiles(refused));
  }
  stop = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace quire
