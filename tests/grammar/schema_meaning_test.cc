// Tests schemas whose meaning depends on names, escapes and numbers: every text that is drawn is
// valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"

namespace quire {
namespace {

using testing::embedded_tokenizer;
using ::testing::HasSubstr;
using testing::kEmbeddedEosId;
using Kind = GrammarSpec::Kind;

constexpr std::array kEos = {kEmbeddedEosId};

class SchemaMeaning : public ::testing::Test {
 protected:
  void compile(const std::string& schema) {
    auto factory = compiler_.compile({.kind = Kind::kJsonSchema, .text = schema});
    ASSERT_TRUE(factory.ok()) << schema << ": " << factory.status().message();
    factory_ = *factory;
  }
  std::string refusal(const std::string& schema) {
    return compiler_.compile({.kind = Kind::kJsonSchema, .text = schema}).status().message();
  }
  // Returns whether the text is a complete match.
  bool allows(std::string_view text) const {
    const auto constraint = factory_();
    const auto ids = embedded_tokenizer()->encode(text, false);
    return std::ranges::all_of(*ids, [&](int32_t id) { return constraint->accept(id); }) &&
           constraint->accept(kEmbeddedEosId);
  }

  GrammarCompiler compiler_{*embedded_tokenizer(), kEos};
  ConstraintFactory factory_;
};

std::string json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string object_of(const std::string& properties, const std::string& required) {
  return R"({"type":"object","additionalProperties":false,"required":[)" + required +
         R"(],"properties":{)" + properties + "}}";
}

TEST_F(SchemaMeaning, SchemasThatDifferBelowAnyNameAreTwo) {
  for (const char* name : {"title", "default", "description", "examples", "deprecated", "readOnly",
                           "writeOnly", "$comment", "$schema", "plain"}) {
    SCOPED_TRACE(name);
    const std::string key = json(name);
    const std::string flag = object_of(key + R"(:{"type":"boolean"})", key);
    const std::string null = object_of(key + R"(:{"type":"null"})", key);
    compile(object_of("\"a\":" + flag + ",\"b\":" + null, R"("a","b")"));
    EXPECT_TRUE(allows("{\"a\":{" + key + ":true},\"b\":{" + key + ":null}}"));
    EXPECT_FALSE(allows("{\"a\":{" + key + ":true},\"b\":{" + key + ":true}}"));
    compile(object_of("\"a\":{\"const\":{" + key + ":1}},\"b\":{\"const\":{" + key + ":2}}",
                      R"("a","b")"));
    EXPECT_TRUE(allows("{\"a\":{" + key + ":1},\"b\":{" + key + ":2}}"));
    EXPECT_FALSE(allows("{\"a\":{" + key + ":1},\"b\":{" + key + ":1}}"));
  }
}

TEST_F(SchemaMeaning, NamesLikeJsonAreNames) {
  const std::string name = json(R"(x":{"type":"null"},"y)");
  const std::string one = object_of(name + R"(:{"type":"null"})", "");
  const std::string two = object_of(R"("x":{"type":"null"},"y":{"type":"null"})", "");
  compile(object_of("\"a\":" + one + ",\"b\":" + two, R"("a","b")"));
  EXPECT_TRUE(allows("{\"a\":{" + name + ":null},\"b\":{\"x\":null,\"y\":null}}"));
  EXPECT_FALSE(allows(R"({"a":{"x":null,"y":null},"b":{"x":null,"y":null}})"));
}

TEST_F(SchemaMeaning, ANamedPropertyIsNeverAnAdditionalOne) {
  compile(R"({"type":"object","properties":{"é":{"type":"null"},"a":{"type":"null"},
      "s/t":{"type":"null"},"q\"\\\n":{"type":"null"},"":{"type":"null"}},
      "additionalProperties":{"type":"string"}})");
  EXPECT_TRUE(allows(R"({"é":null,"a":null,"s/t":null,"q\"\\\n":null,"":null})"));
  for (const char* key :
       {R"(é)", R"(\u00e9)", R"(\u00E9)", "a", R"(\u0061)", "s/t", R"(s\/t)", R"(\u0073/t)",
        R"(s/\u0074)", R"(q\"\\\n)", R"(q\u0022\\\n)", R"(q\"\u005c\n)", R"(q\"\\\u000a)", ""}) {
    EXPECT_FALSE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
  for (const char* key : {"è", "éé", "ab", R"(a\u0061)", "日本", "s", "s/", "s/u", R"(q\")",
                          R"(q\"\\)", R"(q\"\\\n\u0061)", R"(\n)", R"(q\n)", "q "}) {
    EXPECT_TRUE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
  // These keys are not JSON.
  for (const char* key : {"q\"", "q\"\\\n", "q\\\"\\\\\n", "q\\", "\n"}) {
    EXPECT_FALSE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
}

TEST_F(SchemaMeaning, PatternsMatchTheValueAndTextsAreJson) {
  struct Case {
    const char* pattern;  // as JSON
    std::vector<const char*> allowed, refused;
  };
  const Case cases[] = {
      {R"(^a\"b$)", {R"(a\"b)"}, {"a\"b", "ab"}},
      {R"(^(ab\"c|d)$)", {R"(ab\"c)", "d"}, {"ab\"c"}},
      {R"(^a\\\\b$)", {R"(a\\b)"}, {R"(a\b)"}},
      {R"(^a\\nb$)", {R"(a\nb)"}, {"a\nb"}},
      {R"(^a\nb$)", {R"(a\nb)"}, {"a\nb"}},
      {R"(^\\x22\\u0022$)", {R"(\"\")"}, {"\"\""}},
      {R"(^[\"'\\\\x]+$)", {"'x"}, {"\"", "\\"}},
      {R"(^[\\x00-z]+$)", {"ab!"}, {"\"", "\\", "\n"}},
      {R"(^é.[^a]\\S*$)", {"éabc", "é日b"}, {"é\"b", "éa\"", "éa\\", "éa\n", "éab\""}},
      {R"(^é[\"b]*$)", {"é", "ébb"}, {"é\""}},
      {R"(^.[^a]\\S*$)", {"xbc"}, {"x\"", "\"b", "xb\\", "x\n"}},
  };
  const auto check = [&](const Case& pattern, const std::string& before, const std::string& after) {
    for (const char* text : pattern.allowed) EXPECT_TRUE(allows(before + text + after)) << text;
    for (const char* text : pattern.refused) EXPECT_FALSE(allows(before + text + after)) << text;
  };
  for (const Case& pattern : cases) {
    SCOPED_TRACE(pattern.pattern);
    const std::string quoted = std::string("\"") + pattern.pattern + '"';
    const std::string string = R"({"type":"string","pattern":)" + quoted + "}";
    compile(string);
    check(pattern, "\"", "\"");
    compile(R"({"type":"object","patternProperties":{)" + quoted + R"(:{"type":"null"}}})");
    check(pattern, "{\"", "\":null}");
    compile(R"({"type":"object","propertyNames":)" + string + "}");
    check(pattern, "{\"", "\":null}");
  }
  EXPECT_THAT(refusal(R"({"type":"string","pattern":"^é[\"\\n]$"})"), HasSubstr("must escape"));
}

TEST_F(SchemaMeaning, FormatsAreJson) {
  compile(R"({"type":"string","format":"json-pointer"})");
  EXPECT_TRUE(allows(R"("/a/~0b/é")"));
  for (const char* text : {"\"/\"\"", "\"/\\\"", "\"/\n\""}) EXPECT_FALSE(allows(text)) << text;
  compile(R"({"type":"string","format":"email"})");
  EXPECT_TRUE(allows(R"("\"a b\"@x.org")"));
  EXPECT_TRUE(allows(R"("\"\\a\"@x.org")"));
  EXPECT_FALSE(allows(R"("\"\a\"@x.org")"));
  EXPECT_FALSE(allows("\"\"a\"@x.org\""));
}

TEST_F(SchemaMeaning, NumbersKeepTheirSpelling) {
  compile(R"({"enum":[0.1,18446744073709551615,-2.5e-7,{"n":[1.3]}]})");
  for (const char* text : {"0.1", "18446744073709551615", R"({"n":[1.3]})"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  EXPECT_FALSE(allows("0.10000000000000001"));
  EXPECT_FALSE(allows("18446744073709551616"));
}

TEST_F(SchemaMeaning, AReferenceToNoSchemaIsRefused) {
  EXPECT_THAT(refusal(R"({"type":"object","required":["a"],"additionalProperties":
                          {"$ref":"#/additionalProperties"}})"),
              HasSubstr("refers only to itself"));
}

// Draws schemas of names and values that are easily misread.
class RandomSchema {
 public:
  explicit RandomSchema(uint64_t seed) : random_(seed) {}

  std::string draw(int depth) {
    switch (random_() % (depth > 0 ? 9 : 6)) {
      case 0:
        return R"({"type":"null"})";
      case 1:
        return R"({"type":"boolean"})";
      case 2:
        return one_of({R"({"enum":[0.1,-2.5,3.0,18446744073709551615]})",
                       R"({"const":1,"enum":[1.0]})", R"({"enum":["é\"\\\n/"]})"});
      case 3:
        return "{\"const\":{" + name() + ":" + one_of({"1", "2", "\"\\\"\""}) + "}}";
      case 4:
        return R"({"type":"string","pattern":")" +
               one_of({R"(^(a\"|é)b$)", "^[^é]{2}$", R"(^.\\\\\\S$)", R"(^a?\\n$)"}) + "\"}";
      case 5:
        return R"({"type":"string","maxLength":2})";
      case 6:
        return R"({"type":"array","maxItems":2,"items":)" + draw(depth - 1) + "}";
      default:
        return object(depth);
    }
  }

 private:
  std::string one_of(const std::vector<std::string>& texts) {
    return texts[random_() % texts.size()];
  }
  std::string name() {
    return one_of({"\"title\"", "\"default\"", "\"$comment\"", "\"a\"", "\"é\"", "\"\"", R"("q\"")",
                   R"("\\")", R"("n\n")", R"("s/t")", R"("x\":{\"y")"});
  }
  std::string object(int depth) {
    std::set<std::string> names;
    for (uint64_t i = random_() % 4; i > 0; --i) names.insert(name());
    std::string properties, required;
    for (const std::string& key : names) {
      properties += (properties.empty() ? "" : ",") + key + ":" + draw(depth - 1);
      if (random_() % 2 == 0) required += (required.empty() ? "" : ",") + key;
    }
    std::string schema = R"({"type":"object","maxProperties":4,"properties":{)" + properties +
                         R"(},"required":[)" + required + "]";
    if (random_() % 2 == 0) schema += ",\"additionalProperties\":" + draw(depth - 1);
    return schema + "}";
  }

  std::mt19937_64 random_;
};

TEST_F(SchemaMeaning, TextsOfRandomSchemasAreValid) {
  int num_ended = 0;
  constexpr int kNumSchemas = 300;
  constexpr int kNumWalks = 4;
  for (uint64_t seed = 0; seed < kNumSchemas; ++seed) {
    const std::string schema = RandomSchema(seed).draw(3);
    compile(schema);
    if (HasFatalFailure()) return;
    for (uint64_t walk_seed = 0; walk_seed < kNumWalks; ++walk_seed) {
      const auto constraint = factory_();
      const auto walk =
          testing::random_walk(*constraint, *embedded_tokenizer(), kEos, walk_seed, 30, 300);
      ASSERT_FALSE(walk.dead_end) << schema << " after " << walk.text;
      if (!walk.ended) continue;
      ++num_ended;
      ASSERT_EQ(testing::validate_json(walk.text, schema), "") << schema << ": " << walk.text;
    }
  }
  EXPECT_GT(num_ended, kNumSchemas * kNumWalks / 2);
}

}  // namespace
}  // namespace quire
