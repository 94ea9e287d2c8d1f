// Compiles schemas with unnamed required properties: time, memory, and the texts that they allow.
#include "grammar/nested_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "base/machine.h"
#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;
using Kind = GrammarSpec::Kind;

constexpr std::array kEos = {kEmbeddedEosId};

// Cost of the process while it lives, because compilations have threads of their own. The kernel's
// peak of resident memory is reset at the start: otherwise growth below an earlier peak of the
// process would not show.
class Cost {
 public:
  Cost() : start_ns_(process_cpu_ns()), start_mib_(reset_peak() ? peak_mib() : 0) {}

  // Returns whether this kernel lets a process reset its peak.
  static bool is_measurable() { return reset_peak(); }
  double cpu_seconds() const { return double(process_cpu_ns() - start_ns_) * 1e-9; }
  int64_t memory_mib() const { return peak_mib() - start_mib_; }

 private:
  static bool reset_peak() {
    std::ofstream file("/proc/self/clear_refs");
    return static_cast<bool>(file << "5" << std::flush);
  }
  static int64_t peak_mib() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      int64_t kib = 0;
      if (word == "VmHWM:" && status >> kib) return kib >> 10;
    }
    return 0;
  }

  int64_t start_ns_;
  int64_t start_mib_;
};

class NestedSchema : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Cost::is_measurable()) GTEST_SKIP() << "cannot write /proc/self/clear_refs";
  }
};
using LongNames = NestedSchema;

// With copies, 750 bytes took 21 s and 3.2 GB, of which the process kept 1.7 GB.
TEST_F(NestedSchema, CompilesInBoundedTimeAndMemory) {
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  for (const int num_required : {1, 3}) {
    for (int num_levels = 1; num_levels <= 30; ++num_levels) {
      const Cost cost;
      const auto factory = compiler.compile(
          {.kind = Kind::kJsonSchema, .text = nested_schema(num_levels, num_required)});
      ASSERT_TRUE(factory.ok()) << num_levels << ": " << factory.status().message();
      ASSERT_FALSE((*factory)()->allowed_tokens().empty());
      ASSERT_LT(cost.cpu_seconds(), 1.0) << num_levels;  // the smallest attack took 1.6 s
      ASSERT_LT(cost.memory_mib(), 200) << num_levels;
    }
  }
}

TEST_F(NestedSchema, ManyNamesAreCompiledOrRefusedWithinTheBudget) {
  GrammarLimits limits;
  limits.compile_work = 30'000'000;
  GrammarCompiler compiler(*embedded_tokenizer(), kEos, limits);
  for (const int num_required : {10, 100, 1000, 2500, 8000}) {
    const std::string schema = wide_schema(num_required, /*rest_bytes=*/20 << 10);
    const Cost cost;
    const Status status = compiler.compile({.kind = Kind::kJsonSchema, .text = schema}).status();
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument) << status.message();
    EXPECT_LT(cost.cpu_seconds(), 1.5) << num_required;
    EXPECT_LT(cost.memory_mib(), 200) << num_required;
  }
}

class NestedAnswers : public ::testing::Test {
 protected:
  void compile(const std::string& schema) {
    factory_ = value_of(compiler_.compile({.kind = Kind::kJsonSchema, .text = schema}));
    schema_ = schema;
  }
  // Returns whether the text is a complete match.
  bool allows(std::string_view text) const {
    const auto constraint = factory_();
    const auto ids = embedded_tokenizer()->encode(text, false);
    return std::ranges::all_of(*ids, [&](int32_t id) { return constraint->accept(id); }) &&
           constraint->accept(kEmbeddedEosId);
  }
  void expect_walks_are_valid() const {
    int num_ended = 0;
    for (uint64_t seed = 0; seed < 15; ++seed) {
      const auto constraint = factory_();
      const auto walk = random_walk(*constraint, *embedded_tokenizer(), kEos, seed, 25, 300);
      ASSERT_FALSE(walk.dead_end) << walk.text;
      if (!walk.ended) continue;
      ++num_ended;
      EXPECT_EQ(validate_json(walk.text, schema_), "") << walk.text;
    }
    EXPECT_GT(num_ended, 7);
  }

  GrammarCompiler compiler_{*embedded_tokenizer(), kEos, ample_time()};
  ConstraintFactory factory_;
  std::string schema_;
};

TEST_F(NestedAnswers, FollowTheSchemaOfAdditionalPropertiesAtEachLevel) {
  compile(nested_schema(2, 2));
  EXPECT_TRUE(allows(R"({"p0": {"p0": "x", "p1": "y"}, "p1": {"p0": "", "p1": ""}})"));
  EXPECT_TRUE(
      allows(R"({"p0":{"p0":"","p1":"","q":"z"},"p1":{"p0":"","p1":""},"q":{"p0":"","p1":""}})"));
  EXPECT_FALSE(allows(R"({"p0": {"p0": "x", "p1": "y"}})"));
  EXPECT_FALSE(allows(R"({"p0": {"p0": "x"}, "p1": {"p0": "", "p1": ""}})"));
  EXPECT_FALSE(allows(R"({"p0": {"p0": "x", "p1": 1}, "p1": {"p0": "", "p1": ""}})"));
  EXPECT_FALSE(allows(R"({"p0": "x", "p1": "y"})"));
  EXPECT_FALSE(allows(R"({"p0":{"p0":"","p1":"","q":1},"p1":{"p0":"","p1":""}})"));
  EXPECT_FALSE(allows(R"({"p0":{"p0":"","p1":""},"p1":{"p0":"","p1":""},"q":{}})"));
  expect_walks_are_valid();
}

TEST_F(NestedAnswers, FollowReferencesOutOfAndIntoTheSharedSchema) {
  compile(R"({"$defs": {"n": {"type": "null"}}, "type": "object",
      "properties": {"flag": {"$ref": "#/additionalProperties/properties/on"}},
      "required": ["flag", "item"],
      "additionalProperties": {"type": "object", "properties": {"on": {"type": "boolean"},
        "next": {"anyOf": [{"$ref": "#/additionalProperties"}, {"$ref": "#/$defs/n"}]}},
        "required": ["on", "next"], "additionalProperties": false}})");
  EXPECT_TRUE(allows(R"({"flag": true, "item": {"on": false, "next": null}})"));
  EXPECT_TRUE(allows(R"({"flag":true,"item":{"on":true,"next":{"on":true,"next":null}},"more":)"
                     R"({"on":false,"next":null}})"));
  EXPECT_FALSE(allows(R"({"flag": 1, "item": {"on": false, "next": null}})"));
  EXPECT_FALSE(allows(R"({"flag": true, "item": null})"));
  EXPECT_FALSE(allows(R"({"flag": true, "item": {"on": false, "next": true}})"));
  EXPECT_FALSE(allows(R"({"flag": true, "item": {"on": false, "next": null}, "more": 1})"));
  expect_walks_are_valid();
}

TEST_F(NestedAnswers, FollowTheSchemaOfUnevaluatedProperties) {
  compile(R"({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "object",
      "required": ["a"], "unevaluatedProperties": {"enum": [1, "x"]}}})");
  EXPECT_TRUE(allows(R"([{"a": 1}, {"a": "x", "b": 1}])"));
  EXPECT_FALSE(allows(R"([{"a": 2}])"));
  EXPECT_FALSE(allows(R"([{"b": 1}])"));
  EXPECT_FALSE(allows(R"([{"a": 1, "b": 2}])"));
}

// XGrammar derives a rule's name for each property, and its own count of memory leaves names out.
TEST_F(LongNames, CountAsMemory) {
  const auto named = [](size_t num_bytes, int num_properties) {
    std::string properties = "\"p\":{}";
    for (int i = 1; i < num_properties; ++i) properties += ",\"p" + std::to_string(i) + "\":{}";
    const std::string name(num_bytes, 'x');
    return GrammarSpec{.kind = Kind::kJsonSchema,
                       .text = R"({"$ref":"#/$defs/)" + name + R"(","$defs":{")" + name +
                               R"(":{"type":"object","properties":{)" + properties + "}}}}"};
  };
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  ASSERT_TRUE(compiler.compile(named(1, 200)).ok());
  const size_t short_bytes = compiler.stats().held_bytes;
  ASSERT_TRUE(compiler.compile(named(4000, 200)).ok());
  EXPECT_GT(compiler.stats().held_bytes, 2 * short_bytes + size_t{200} * 4000 / 2);

  const Cost cost;
  EXPECT_THAT(compiler.compile(named(22'000, 1500)).status().message(), HasSubstr("more memory"));
  std::string groups;
  for (int i = 0; i < 4000; ++i) groups += "(\"a\" | b)";
  const std::string rule(20'000, 'r');
  // The rules of a grammar get short names.
  const auto grammar = compiler.compile({.kind = Kind::kGrammar,
                                         .text = "root ::= " + rule + "\nb ::= \"b\"\n" + rule +
                                                 " ::= " + groups.substr(0, 20'000 / 11 * 11)});
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_LT(cost.memory_mib(), 200);
}

}  // namespace
}  // namespace quire::testing
