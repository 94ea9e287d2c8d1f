// Tests the compiler: its cache, its refusals, and the cost of hostile grammars.
#include "grammar/grammar_compiler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/machine.h"
#include "grammar/walk.h"
#include "grammar/work_budget.h"
#include "support/eventually.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;
using Kind = GrammarSpec::Kind;

constexpr std::array kEos = {kEmbeddedEosId};

GrammarSpec choice(std::vector<std::string> choices) {
  return {.kind = Kind::kChoice, .text = "", .choices = std::move(choices)};
}

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(GrammarCompiler, CachesCompiledGrammars) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  EXPECT_TRUE(compiler.compile({.kind = Kind::kRegex, .text = "a+"}).ok());
  EXPECT_TRUE(compiler.compile({.kind = Kind::kRegex, .text = "a+"}).ok());
  EXPECT_TRUE(compiler.compile({.kind = Kind::kJsonObject}).ok());
  EXPECT_TRUE(compiler.compile({.kind = Kind::kJsonObject, .text = "unused"}).ok());
  // Choices of equal letters, cut elsewhere, are another grammar.
  EXPECT_TRUE(compiler.compile(choice({"a", "b1:c"})).ok());
  EXPECT_TRUE(compiler.compile(choice({"a", "b", "c"})).ok());
  const GrammarStats stats = compiler.stats();
  EXPECT_EQ(stats.num_compiled, 4);
  EXPECT_EQ(stats.num_hits, 2);
  EXPECT_GT(stats.cache_bytes, 1000U);
}

TEST(GrammarCompiler, KeepsRefusalsToo) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const GrammarSpec bad = {.kind = Kind::kGrammar, .text = "root ::= \"a\" undefined"};
  const auto first = compiler.compile(bad);
  const auto second = compiler.compile(bad);
  EXPECT_EQ(first.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(first.status().message(), HasSubstr("undefined"));
  EXPECT_EQ(first.status().message(), second.status().message());
  EXPECT_EQ(compiler.stats().num_compiled, 1);
}

TEST(GrammarCompiler, ARefusalForItsWorkIsKept) {
  GrammarLimits limits;
  limits.compile_work = 1;
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  const GrammarSpec slow = {.kind = Kind::kRegex, .text = "([a-z]{1,40} ){1,40}"};
  EXPECT_THAT(compiler.compile(slow).status().message(), HasSubstr("takes more work"));
  EXPECT_TRUE(compiler.find(slow));
  EXPECT_THAT(compiler.compile(slow).status().message(), HasSubstr("takes more work"));
  EXPECT_EQ(compiler.stats().num_compiled, 1);
}

TEST(StopScope, EndsWorkOnceTheFlagIsSet) {
  std::atomic<bool> stop = false;
  {
    const grammar::StopScope scope(stop);
    grammar::check_clock();
    stop = true;
    EXPECT_THROW(grammar::check_clock(), grammar::WorkStopped);
  }
  grammar::check_clock();
  EXPECT_THROW(grammar::StopScope scope(stop), grammar::WorkStopped) << "set before";
  grammar::check_clock();
}

TEST(GrammarCompiler, StopEndsCompilationsWhoseOutcomeIsNotKept) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const GrammarSpec known = {.kind = Kind::kRegex, .text = "a+"};
  ASSERT_TRUE(compiler.compile(known).ok());
  std::string properties;
  for (int i = 0; i < 300; ++i) {
    properties += fmt::format(R"({}"p{}":{{"type":["string","null"]}})", i > 0 ? "," : "", i);
  }
  // Unless it is stopped, this schema is refused after the limit of 200 million steps.
  const GrammarSpec slow = {.kind = Kind::kJsonSchema,
                            .text = R"({"type":"object","minProperties":150,"maxProperties":200,)"
                                    R"("properties":{)" +
                                    properties + "}}"};
  std::thread stopping([&] {
    EXPECT_TRUE(eventually([&] { return compiler.stats().num_compiled >= 2; }));
    compiler.stop();
  });
  const auto stopped = compiler.compile(slow);
  stopping.join();
  EXPECT_EQ(stopped.status().code(), StatusCode::kUnavailable) << stopped.status().message();
  EXPECT_FALSE(compiler.find(slow));
  EXPECT_EQ(compiler.compile(slow).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(compiler.compile(known).ok());
}

TEST(GrammarCompiler, GrammarsInUseAreBoundedInAndOutsideTheCache) {
  // Each digit is one token, so that the grammars have one size.
  GrammarLimits limits;
  GrammarCompiler probe(*embedded_tokenizer(), kEos, limits);
  ASSERT_TRUE(probe.compile(choice({"1111"})).ok());
  const size_t one = probe.stats().held_bytes;
  ASSERT_GT(one, 0U);
  limits.cache_bytes = one * 2;       // holds one grammar with its key
  limits.shared_bytes = one * 5 / 2;  // holds two
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  auto first = compiler.compile(choice({"1111"}));
  auto second = compiler.compile(choice({"2222"}));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(compiler.stats().held_bytes, 2 * one);
  const auto third = compiler.compile(choice({"3333"}));
  EXPECT_EQ(third.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(third.status().message(), HasSubstr("try again later"));
  first = second;  // the first grammar is no longer cached, and this drops its last user
  EXPECT_EQ(compiler.stats().held_bytes, one);
  EXPECT_TRUE(compiler.compile(choice({"3333"})).ok());
}

TEST(GrammarCompiler, ParsesShareTheMemory) {
  GrammarLimits limits;
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  const auto factory = value_of(compiler.compile({.kind = Kind::kJsonObject}));
  const size_t before = compiler.stats().held_bytes;
  {
    const auto constraint = factory();
    EXPECT_TRUE(constraint->accept(*embedded_tokenizer()->token_to_id("{")));
    EXPECT_GT(compiler.stats().held_bytes, before);
  }
  EXPECT_EQ(compiler.stats().held_bytes, before);

  limits.shared_bytes = before + 60;
  GrammarCompiler small(*embedded_tokenizer(), kEos, limits);
  const auto tight = value_of(small.compile({.kind = Kind::kJsonObject}));
  const auto constraint = tight();
  EXPECT_FALSE(constraint->accept(*embedded_tokenizer()->token_to_id("{")));
  EXPECT_EQ(constraint->status().code(), StatusCode::kResourceExhausted);
}

// All sequences together take at most the shared time, however many follow a hostile grammar.
TEST(GrammarCompiler, SequencesShareTheEnginesTime) {
  GrammarLimits limits;
  limits.shared_burst_ns = 0;
  limits.sequence_floor_ns = 0;
  limits.sequence_burst_ns = 1'000'000'000;
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  const auto factory = value_of(compiler.compile({.kind = Kind::kRegex, .text = "[a-z]{1,4000}"}));
  int num_refused = 0;
  for (int i = 0; i < 3; ++i) {
    const auto constraint = factory();
    const auto walk = random_walk(*constraint, *embedded_tokenizer(), kEos, 1, 3000, 3000);
    if (constraint->status().ok()) continue;
    ++num_refused;
    EXPECT_EQ(constraint->status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(constraint->status().message(), HasSubstr("together"));
  }
  EXPECT_GT(num_refused, 0);
}

TEST(SharedTime, FillsWithTheClockByHalf) {
  using std::chrono::nanoseconds;
  const grammar::SharedTime::Clock::time_point start{};
  grammar::SharedTime time(100, start);
  EXPECT_EQ(time.refill(start), 100);
  time.spend(150);
  EXPECT_EQ(time.refill(start + nanoseconds(40)), 0);  // the balance is -30
  EXPECT_EQ(time.refill(start + nanoseconds(140)), 20);
  EXPECT_EQ(time.refill(start + nanoseconds(9999)), 100);
}

TEST(GrammarCompiler, DropsTheLeastRecentlyUsedFirst) {
  GrammarCompiler probe(*embedded_tokenizer(), kEos);
  ASSERT_TRUE(probe.compile(choice({"aaaa"})).ok());
  const size_t one = probe.stats().cache_bytes;
  GrammarLimits limits;
  limits.cache_bytes = one * 5 / 2;  // holds two grammars
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  const auto kept = compiler.compile(choice({"aaaa"}));
  ASSERT_TRUE(compiler.compile(choice({"bbbb"})).ok());
  ASSERT_TRUE(compiler.compile(choice({"aaaa"})).ok());
  ASSERT_TRUE(compiler.compile(choice({"cccc"})).ok());  // drops bbbb
  ASSERT_TRUE(compiler.compile(choice({"aaaa"})).ok());
  EXPECT_EQ(compiler.stats().num_compiled, 3);
  ASSERT_TRUE(compiler.compile(choice({"bbbb"})).ok());
  EXPECT_EQ(compiler.stats().num_compiled, 4);
  EXPECT_LE(compiler.stats().cache_bytes, limits.cache_bytes);
  // A grammar that a sequence uses stays valid after the cache has dropped it.
  EXPECT_FALSE((*kept)()->allowed_tokens().empty());
}

TEST(GrammarCompiler, EqualCompilationsAtOnceShareOne) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  std::vector<std::thread> threads;
  std::atomic<int> num_ok = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const GrammarSpec spec = {.kind = Kind::kRegex, .text = i % 2 == 0 ? "[a-z]{9}x" : "(y|z)+"};
      if (compiler.compile(spec).ok()) ++num_ok;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_ok, 8);
  EXPECT_EQ(compiler.stats().num_compiled, 2);
  EXPECT_EQ(compiler.stats().num_hits, 6);
}

TEST(GrammarCompiler, FindsCachedGrammarsWithoutCompiling) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const GrammarSpec good = {.kind = Kind::kRegex, .text = "[a-z]{3}"};
  const GrammarSpec bad = {.kind = Kind::kRegex, .text = "a(b"};
  for (const GrammarSpec& spec : {good, bad}) EXPECT_FALSE(compiler.find(spec).has_value());
  EXPECT_TRUE(compiler.compile(good).ok());
  EXPECT_FALSE(compiler.compile(bad).ok());
  const auto found = compiler.find(good);
  ASSERT_TRUE(found.has_value() && found->ok());
  EXPECT_FALSE((**found)()->allowed_tokens().empty());
  const auto refused = compiler.find(bad);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status().message(), compiler.compile(bad).status().message());
  EXPECT_EQ(compiler.stats().num_compiled, 2);
}

TEST(GrammarCompiler, AnEndIsAllowedOnlyWhereTheGrammarEnds) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const auto factory = value_of(compiler.compile(choice({"7", "77"})));
  const auto constraint = factory();
  const auto ids = [&] {
    return allowed_ids(constraint->allowed_tokens(), embedded_tokenizer()->vocab_size());
  };
  const int32_t seven = *embedded_tokenizer()->token_to_id("7");
  EXPECT_EQ(std::ranges::count(ids(), kEmbeddedEosId), 0);
  EXPECT_FALSE(constraint->accept(kEmbeddedEosId));
  EXPECT_TRUE(constraint->accept(seven));
  EXPECT_THAT(ids(), ::testing::UnorderedElementsAre(seven, kEmbeddedEosId));
  EXPECT_TRUE(constraint->accept(seven));
  EXPECT_THAT(ids(), ::testing::ElementsAre(kEmbeddedEosId));
  EXPECT_FALSE(constraint->accept(seven));
  EXPECT_TRUE(constraint->accept(kEmbeddedEosId));
  // With ignore_eos the output continues, with further end tokens.
  EXPECT_THAT(ids(), ::testing::ElementsAre(kEmbeddedEosId));
  EXPECT_TRUE(constraint->accept(kEmbeddedEosId));
}

// Otherwise a weak model could output only white space until its tokens run out.
TEST(GrammarCompiler, JsonMayBeCompactSpacedOrIndented) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const auto factory =
      compiler.compile({.kind = Kind::kJsonSchema,
                        .text = R"({"type": "object", "properties": {"a": {"type": "array", "items":
                   {"type": "integer"}}, "b": {"type": "string"}}, "required": ["a", "b"]})"});
  ASSERT_TRUE(factory.ok()) << factory.status().message();
  const auto allows = [&](std::string_view text) {
    const auto constraint = (*factory)();
    const auto ids = embedded_tokenizer()->encode(text, false);
    return std::ranges::all_of(*ids, [&](int32_t id) { return constraint->accept(id); });
  };
  for (const char* text :
       {R"({"a":[1,2],"b":"x"})", R"({"a": [1, 2], "b": "x"})", R"({ "a" : [ ] , "b" : "" })",
        "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"x  \"\n}",
        "{\n\t\"a\": [\n\t\t1\n\t],\n\t\"b\": \"x\"\n}",
        "{\n                    \"a\": [], \"b\": \"x\"}"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  for (const char* text : {"{  \"a\"", "{\n\n", "{\"a\":  [", "{\"a\": [1  ", "{\"a\": [1,  ",
                           "{\"a\": [] \n", "{\n                     \"a"}) {
    EXPECT_FALSE(allows(text)) << text;
  }
}

TEST(GrammarCompiler, RefusesWithAReason) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const std::pair<GrammarSpec, const char*> cases[] = {
      {{.kind = Kind::kRegex, .text = "a(b"}, "has a ( at character 2 that is not closed"},
      {{.kind = Kind::kRegex, .text = "(?=a)b"}, "lookahead"},
      {{.kind = Kind::kRegex, .text = "(a)\\1"}, "backreference"},
      {{.kind = Kind::kRegex, .text = "ab^c"}, "has ^ at character 3"},
      {{.kind = Kind::kRegex, .text = "*"}, "[grammar]"},
      {{.kind = Kind::kRegex, .text = "a**"}, "second repeat"},
      {{.kind = Kind::kGrammar, .text = ""}, "root"},
      {{.kind = Kind::kGrammar, .text = "start: \"a\""}, "[grammar]"},
      {{.kind = Kind::kGrammar, .text = "root ::= root"}, "allows no text"},
      {{.kind = Kind::kGrammar, .text = "root ::= \"a\" root"}, ""},
      {{.kind = Kind::kJsonSchema, .text = R"({"type": "tuple"})"}, "tuple"},
      {{.kind = Kind::kJsonSchema, .text = R"({"$ref": "#/$defs/nowhere"})"}, "nowhere"},
      {{.kind = Kind::kJsonSchema, .text = R"({"allOf": [{"type": "string"}, {"enum": ["a"]}]})"},
       "allOf"},
      {{.kind = Kind::kJsonSchema, .text = R"({"type": "integer", "minimum": 3, "maximum": 1})"},
       "minimum"},
  };
  for (const auto& [spec, reason] : cases) {
    const Status status = compiler.compile(spec).status();
    if (*reason == '\0') {  // an endless output is not a reason to refuse
      EXPECT_TRUE(status.ok()) << status.message();
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << spec.text;
    EXPECT_THAT(status.message(), HasSubstr(reason)) << spec.text;
  }
}

TEST(GrammarCompiler, WithoutAnEndNothingIsCompiled) {
  GrammarCompiler compiler(*embedded_tokenizer(), {});
  EXPECT_THAT(compiler.compile(choice({"a"})).status().message(), HasSubstr("end-of-sequence"));
}

// The grammars have cyclic rules, long chains of rules, alternatives that multiply, and automata of
// exponential size.
std::vector<GrammarSpec> hostile_specs() {
  std::vector<GrammarSpec> specs;
  const auto add = [&](Kind kind, std::string text) {
    specs.push_back({.kind = kind, .text = std::move(text), .choices = {}});
  };
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 3500; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  add(Kind::kGrammar, chain + "r3500 ::= \"a\"\n");
  std::string doubling = "root ::= r0 r0\n";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " " + next + "\n";
  }
  add(Kind::kGrammar, doubling + "r40 ::= \"a\" | \"\"\n");
  add(Kind::kGrammar, "root ::= root root | root | \"\" | \"a\"");
  add(Kind::kGrammar, "root ::= (root? root? root?)* \"a\"*");
  add(Kind::kGrammar, "root ::= ((\"a\"*)*)* ((\"a\"{0,100000}){0,100000}){0,100000}");
  add(Kind::kRegex, "(a|b)*a" + repeated("(a|b)", 800));
  add(Kind::kRegex, repeated("(.{0,100000}", 30) + repeated("){0,100000}", 30));
  add(Kind::kRegex, repeated("(", 60) + "a*" + repeated(")*", 60));
  add(Kind::kRegex, repeated("[^a-z]|", 1000) + "x");
  add(Kind::kRegex, repeated("\\w{0,999}", 800));
  add(Kind::kRegex, repeated("(x+x+)+", 1000) + "y");
  std::string properties;
  for (int i = 0; i < 2400; ++i) {
    properties += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{\"type\":\"string\"}";
  }
  add(Kind::kJsonSchema, R"({"type":"object","properties":{)" + properties + "}}");
  add(Kind::kJsonSchema, R"({"type":"array","minItems":100000,"items":{"type":"array",)"
                         R"("minItems":100000,"items":{"type":"string","minLength":100000}}})");
  std::string refs;
  for (int i = 0; i < 1200; ++i) {
    refs += (i > 0 ? ",\"d" : "\"d") + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" +
            std::to_string((i + 1) % 1200) + "\"}";
  }
  add(Kind::kJsonSchema, R"({"$ref":"#/$defs/d0","$defs":{)" + refs + "}}");
  add(Kind::kJsonSchema, R"({"$ref":"#"})");
  std::string any_of = R"({"type":"string"})";
  for (int i = 0; i < 10; ++i) any_of = R"({"anyOf":[)" + any_of + "," + any_of + "]}";
  add(Kind::kJsonSchema, any_of);
  add(Kind::kJsonSchema, R"({"type":"integer","minimum":-9223372036854775808,)"
                         R"("maximum":9223372036854775807})");
  std::vector<std::string> choices;
  for (int i = 0; i < 1000; ++i) choices.push_back(std::to_string(i * 7919) + std::string(55, 'a'));
  specs.push_back(choice(std::move(choices)));
  return specs;
}

#ifdef __has_feature
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

TEST(GrammarCompiler, HostileGrammarsStayWithinTheLimits) {
  constexpr double kSlowdown = kIsSanitized ? 10.0 : 1.0;
  GrammarLimits limits;
  limits.compile_work = 30'000'000;
  limits.sequence_burst_ns = 20'000'000;
  limits.sequence_token_ns = 1'000'000;
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  for (const GrammarSpec& spec : hostile_specs()) {
    const std::string name = spec.text.substr(0, 60);
    const auto seconds_since = [](int64_t ns) { return double(process_cpu_ns() - ns) * 1e-9; };
    int64_t start = process_cpu_ns();
    const auto factory = compiler.compile(spec);
    const double compile_seconds = seconds_since(start);
    // The bound is a few times the limit, because XGrammar's loops without a braced body and its
    // frees are not charged.
    EXPECT_LT(compile_seconds, kSlowdown * 1.5) << name;
    start = process_cpu_ns();
    int num_tokens = 0;
    if (factory.ok()) {
      const auto constraint = (*factory)();
      num_tokens = static_cast<int>(
          random_walk(*constraint, *embedded_tokenizer(), kEos, 1, 100, 100).token_ids.size());
    }
    const double walk_seconds = seconds_since(start);
    EXPECT_LT(walk_seconds, kSlowdown * (0.5 + 0.01 * num_tokens)) << name;
    RecordProperty("cost", name);
    std::printf("%6.3f s compile, %6.3f s for %3d tokens, %s: %.60s\n", compile_seconds,
                walk_seconds, num_tokens,
                factory.ok() ? "ok" : factory.status().message().substr(0, 50).c_str(),
                name.c_str());
  }
}

}  // namespace
}  // namespace quire::testing
