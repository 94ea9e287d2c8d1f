// Tests the rewriting of clients' schemas into forms that can be enforced, the refusals, and the
// size of the output.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/machine.h"
#include "grammar/check_spec.h"
#include "grammar/nested_schema.h"
#include "grammar/work_budget.h"

namespace quire::grammar {
namespace {

using ::testing::HasSubstr;
using testing::nested_schema;
using testing::wide_schema;

std::string plain(std::string_view json) {
  const Result<std::string> text = plain_schema(json, {});
  return text.ok() ? *text : text.status().message();
}

TEST(PlainSchema, AnnotationsHaveNoEffect) {
  EXPECT_EQ(plain(R"({"$schema":"x","$id":"y","title":"T","description":"d","default":3,"x-a":{},
                      "examples":[1],"deprecated":true,"type":"string","maxLength":3})"),
            R"({"type":"string","maxLength":3})");
  EXPECT_EQ(plain(R"({"$ref":"#/$defs/a","description":"d","default":null,"$defs":{"a":true}})"),
            R"({"$defs":{"a":{}},"$ref":"#/$defs/a"})");
  EXPECT_EQ(plain(R"({"type":"integer","format":"int64","maxLength":3,"minimum":2})"),
            R"({"type":"integer","minimum":2})");
  EXPECT_EQ(plain(R"({"type":"string","format":"password"})"), R"({"type":"string"})");
}

TEST(PlainSchema, ValuesOfTheType) {
  EXPECT_EQ(plain(R"({"const":"a","type":"string"})"), R"({"enum":["\"a\""]})");
  EXPECT_EQ(plain(R"({"enum":["a",1,2.5,3.0,null],"type":["integer","null"]})"),
            R"({"enum":["1","3.0","null"]})");
  EXPECT_EQ(plain(R"({"enum":[0.1,18446744073709551615,{"a":1.3}]})"),
            R"({"enum":["0.1","18446744073709551615","{\"a\":1.3}"]})");
  EXPECT_EQ(plain(R"({"enum":["a","b"],"const":"b"})"), R"({"enum":["\"b\""]})");
  EXPECT_THAT(plain(R"({"const":"a","type":"integer"})"), HasSubstr("no value of the \"type\""));
  EXPECT_THAT(plain(R"({"enum":["aaaa","b"],"maxLength":1})"),
              HasSubstr("\"maxLength\" beside \"enum\""));
  EXPECT_THAT(plain(R"({"enum":"a"})"), HasSubstr("not an array"));
}

TEST(PlainSchema, ValuesAreComparedAsValues) {
  EXPECT_EQ(plain(R"({"const":1,"enum":[1.0,2]})"), R"({"enum":["1.0"]})");
  EXPECT_EQ(plain(R"({"const":[{"a":1,"b":"x"}],"enum":[[{"b":"x","a":1.0}]]})"),
            R"({"enum":["[{\"b\":\"x\",\"a\":1.0}]"]})");
  for (const char* schema :
       {R"({"const":9007199254740993,"enum":[9007199254740992.0]})",
        R"({"const":18446744073709551615,"enum":[-1]})", R"({"const":1,"enum":[true,"1",[1]]})",
        R"({"const":[1],"enum":[[1,1],[]]})", R"({"const":{"a":1},"enum":[{"b":1},{"a":2}]})"}) {
    EXPECT_THAT(plain(schema), HasSubstr("leaves no value")) << schema;
  }
}

TEST(PlainSchema, ATypeBesideBranchesIsHandedToThem) {
  EXPECT_EQ(plain(R"({"type":"string","anyOf":[{"maxLength":3},{"enum":["abcd",5]}]})"),
            R"({"anyOf":[{"type":"string","maxLength":3},{"enum":["\"abcd\""]}]})");
  EXPECT_EQ(plain(R"({"type":"number","oneOf":[{"type":"integer"},{"const":0.5}]})"),
            R"({"oneOf":[{"type":"integer"},{"enum":["0.5"]}]})");
  EXPECT_THAT(plain(R"({"type":"string","anyOf":[{"type":"null"},{"type":"string"}]})"),
              HasSubstr("contradicts"));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs/a","type":"string","$defs":{"a":{"type":"null"}}})"),
              HasSubstr("\"type\" beside \"$ref\""));
}

TEST(PlainSchema, RefusesKeywordsThatWouldBeIgnored) {
  EXPECT_THAT(plain(R"({"type":"object","properties":{"a":{}},"required":["a"],
                        "additionalProperties":false,"anyOf":[{"properties":{"b":{}}}]})"),
              HasSubstr("\"properties\" beside \"anyOf\""));
  EXPECT_THAT(plain(R"({"$ref":"#","maxLength":2})"), HasSubstr("\"maxLength\" beside \"$ref\""));
  EXPECT_THAT(plain(R"({"anyOf":[{}],"oneOf":[{}]})"), HasSubstr("\"oneOf\" beside \"anyOf\""));
  EXPECT_THAT(plain(R"({"pattern":"^ab$"})"), HasSubstr("\"pattern\" without a \"type\""));
  EXPECT_THAT(plain(R"({"minimum":5})"), HasSubstr("\"minimum\" without a \"type\""));
  EXPECT_THAT(plain(R"({"required":["a"]})"), HasSubstr("\"required\" without a \"type\""));
  EXPECT_THAT(plain(R"({"properties":{},"items":{}})"), HasSubstr("\"items\" without"));
  EXPECT_THAT(plain(R"({"type":"string","format":"isbn"})"), HasSubstr("\"isbn\""));
  EXPECT_THAT(plain(R"({"type":"string","format":"date","pattern":"^1"})"),
              HasSubstr("\"format\" beside \"pattern\""));
  EXPECT_THAT(plain(R"({"type":"object","patternProperties":{"a":{},"b":{}}})"),
              HasSubstr("more than one"));
  EXPECT_THAT(plain(R"({"type":"object","properties":{"a":{}},"propertyNames":{"maxLength":3}})"),
              HasSubstr("\"propertyNames\" beside \"properties\""));
  EXPECT_THAT(plain(R"({"type":"object","type":"string"})"), HasSubstr("twice"));
  EXPECT_THAT(plain(R"({"type":[]})"), HasSubstr("not name a type"));
  EXPECT_THAT(plain(R"({"type":["string","tuple"]})"), HasSubstr("\"type\" \"tuple\""));
  EXPECT_THAT(plain(R"({"anyOf":[]})"), HasSubstr("not a list of schemas"));
}

TEST(PlainSchema, ReferencesNameSchemas) {
  EXPECT_THAT(plain(R"({"properties":{"a":{"enum":[{"minimum":1}]},
                        "b":{"$ref":"#/properties/a/enum/0"}}})"),
              HasSubstr("does not name a schema"));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs/x"})"),
              HasSubstr("to a schema that it does not contain; got \"#/$defs/x\""));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs","$defs":{}})"), HasSubstr("does not name a schema"));
  EXPECT_THAT(plain(R"({"$ref":"#/default","default":{"maxLength":1}})"),
              HasSubstr("does not name a schema"));
}

TEST(PlainSchema, ReferencesReachASchema) {
  for (const char* schema :
       {R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"},{"oneOf":[{"$ref":"#/"}]}]})",
        R"({"type":"object","required":["a"],"additionalProperties":)"
        R"({"$ref":"#/additionalProperties"}})",
        R"({"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/b"},)"
        R"("b":{"anyOf":[{"$ref":"#/$defs/a"}]}}})"}) {
    EXPECT_THAT(plain(schema), HasSubstr("refers only to itself")) << schema;
  }
  for (const char* schema :
       {R"({"type":"array","items":{"$ref":"#"}})", R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
        R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]},)"
        R"("b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/b"})"}) {
    EXPECT_EQ(plain(schema), schema);
  }
}

TEST(PlainSchema, RequiredPropertiesAreNamed) {
  EXPECT_EQ(plain(R"({"type":"object","properties":{"a":{}},"required":["a","b","b"]})"),
            R"({"type":"object","required":["a","b","b"],"properties":{"a":{},"b":{}}})");
  EXPECT_THAT(plain(R"({"type":"object","required":["b"],"additionalProperties":false})"),
              HasSubstr("\"b\", which its \"additionalProperties\" forbids"));
}

TEST(PlainSchema, ATypeListedTwiceCountsOnce) {
  EXPECT_EQ(plain(R"({"type":["null","boolean","null"]})"), R"({"type":["null","boolean"]})");
  EXPECT_EQ(plain(R"({"type":["null","null"]})"), R"({"type":"null"})");
}

TEST(PlainSchema, AddedPropertiesShareOneSchema) {
  EXPECT_EQ(plain(R"({"type":"object","required":["a","b"],
                      "additionalProperties":{"type":"null"}})"),
            R"({"type":"object","additionalProperties":{"$ref":"#/~rest/0"},)"
            R"("required":["a","b"],"properties":{"a":{"$ref":"#/~rest/0"},)"
            R"("b":{"$ref":"#/~rest/0"}},"~rest":{"0":{"type":"null"}}})");
  EXPECT_EQ(plain(R"({"type":"object","required":["a"],"unevaluatedProperties":{"type":"null"}})"),
            R"({"type":"object","unevaluatedProperties":{"$ref":"#/~rest/0"},)"
            R"("required":["a"],"properties":{"a":{"$ref":"#/~rest/0"}},)"
            R"("~rest":{"0":{"type":"null"}}})");
  // With additionalProperties, unevaluatedProperties has no effect.
  EXPECT_EQ(plain(R"({"type":"object","required":["a"],"unevaluatedProperties":{"type":"null"},
                      "additionalProperties":{"type":"string"}})"),
            R"({"type":"object","unevaluatedProperties":{"type":"null"},)"
            R"("additionalProperties":{"$ref":"#/~rest/0"},"required":["a"],)"
            R"("properties":{"a":{"$ref":"#/~rest/0"}},"~rest":{"0":{"type":"string"}}})");
}

TEST(PlainSchema, SchemaOfNoAddedPropertyStaysInPlace) {
  for (const char* schema :
       {R"({"type":"object","additionalProperties":{"type":"null"},"required":["a"],)"
        R"("properties":{"a":{}}})",
        R"({"type":"object","additionalProperties":{},"required":["a"],"properties":{"a":{}}})",
        R"({"type":"object","additionalProperties":{"type":"null"},"properties":{}})"}) {
    EXPECT_EQ(plain(schema), schema);
  }
  EXPECT_EQ(plain(R"({"type":"object","required":["a"],"additionalProperties":true})"),
            R"({"type":"object","additionalProperties":{},"required":["a"],)"
            R"("properties":{"a":{}}})");
}

TEST(PlainSchema, NestedSharedSchemasAreWrittenSideBySide) {
  EXPECT_EQ(plain(R"({"anyOf":[{"type":"object","required":["a"],"additionalProperties":
                      {"type":"object","required":["b"],"additionalProperties":{"$ref":"#"}}}]})"),
            R"({"anyOf":[{"type":"object","additionalProperties":{"$ref":"#/~rest/0"},)"
            R"("required":["a"],"properties":{"a":{"$ref":"#/~rest/0"}}}],"~rest":{)"
            R"("0":{"type":"object","additionalProperties":{"$ref":"#/~rest/1"},)"
            R"("required":["b"],"properties":{"b":{"$ref":"#/~rest/1"}}},"1":{"$ref":"#"}}})");
}

// A pointer in the document leads to the same schema as before, wherever the shared schema is moved
// from.
TEST(PlainSchema, RewritesReferencesIntoSharedSchemas) {
  EXPECT_EQ(plain(R"({"type":"object","properties":{
                        "p":{"$ref":"#/additionalProperties/properties/x"},
                        "q":{"$ref":"#/additionalProperties"},
                        "r":{"$ref":"#//additionalProperties/additionalProperties/items"}},
                      "required":["a"],"additionalProperties":{"type":"object",
                        "properties":{"x":{"type":"null"}},"required":["y"],
                        "additionalProperties":{"type":"array","items":{"type":"boolean"}}}})"),
            R"({"type":"object","additionalProperties":{"$ref":"#/~rest/0"},"required":["a"],)"
            R"("properties":{"p":{"$ref":"#/~rest/0/properties/x"},"q":{"$ref":"#/~rest/0"},)"
            R"("r":{"$ref":"#/~rest/1/items"},"a":{"$ref":"#/~rest/0"}},"~rest":{)"
            R"("0":{"type":"object","additionalProperties":{"$ref":"#/~rest/1"},)"
            R"("required":["y"],"properties":{"x":{"type":"null"},"y":{"$ref":"#/~rest/1"}}},)"
            R"("1":{"type":"array","items":{"type":"boolean"}}}})");
  // A property of that name is not a keyword.
  const std::string named = R"({"type":"object","properties":{"additionalProperties":{"type":)"
                            R"("null"},"b":{"$ref":"#/properties/additionalProperties"}}})";
  EXPECT_EQ(plain(named), named);
}

TEST(PlainSchema, TheNameOfSharedSchemasIsOutOfADocumentsReach) {
  EXPECT_EQ(plain_schema(R"({"$ref":"#/~rest/0"})", {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(plain(R"({"~rest":{"0":{}},"type":"object","required":["a"],
                      "additionalProperties":{"type":"null"}})"),
            R"({"type":"object","additionalProperties":{"$ref":"#/~rest/0"},"required":["a"],)"
            R"("properties":{"a":{"$ref":"#/~rest/0"}},"~rest":{"0":{"type":"null"}}})");
}

// The largest factor is 8, of `"a",` in "required" that becomes `"a":{"$ref":"#/~rest/1234"},` too.
constexpr size_t kMaxFactor = 10;
// About 1 us per byte in a release build, 50 times as much with a sanitizer on a loaded machine.
constexpr int64_t kFixedNs = 50'000'000;
constexpr int64_t kMaxNsPerByte = 50'000;

void expect_linear(const std::string& schema) {
  SCOPED_TRACE(schema.substr(0, 80) + "... of " + std::to_string(schema.size()) + " bytes");
  Result<std::string> text = std::string();
  const int64_t ns = cpu_ns_of([&] { text = plain_schema(schema, {}); });
  ASSERT_TRUE(text.ok()) << text.status().message();
  ASSERT_LE(text->size(), kMaxFactor * schema.size());
  ASSERT_LE(ns, kFixedNs + kMaxNsPerByte * static_cast<int64_t>(schema.size()));
}

// With a copy of the schema in each added property, the text grew as (R+1)^L.
TEST(PlainSchema, NestedRequiredNamesGrowLinearly) {
  for (const int num_required : {1, 3, 20}) {
    for (int num_levels = 1; num_levels <= 30; ++num_levels) {
      expect_linear(nested_schema(num_levels, num_required));
      if (HasFatalFailure()) return;
    }
  }
}

// With copies, this schema grew to 120 MB.
TEST(PlainSchema, ManyRequiredNamesGrowLinearly) {
  for (const int num_required : {10, 100, 1000, 2500}) {
    expect_linear(wide_schema(num_required, /*rest_bytes=*/32 << 10));
    if (HasFatalFailure()) return;
  }
}

// Each reference is followed once, however many lead to it.
TEST(PlainSchema, ChainsOfReferencesAreFollowedInLinearTime) {
  std::string defs = R"("d0":{"type":"null"})";
  for (int i = 1; i < 1500; ++i) {
    defs += fmt::format(R"(,"d{}":{{"$ref":"#/$defs/d{}"}})", i, i - 1);
  }
  expect_linear(R"({"$ref":"#/$defs/d1499","$defs":{)" + defs + "}}");
}

TEST(PlainSchema, RefusesTextBeyondItsBound) {
  const std::string schema = wide_schema(/*num_required=*/8000, /*rest_bytes=*/64);
  const Status status = plain_schema(schema, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("got more than 262144 bytes"));
}

TEST(PlainSchema, SpendsOfTheWorkBudget) {
  const std::string schema = wide_schema(/*num_required=*/2500, /*rest_bytes=*/64);
  const WorkBudget budget({.work = 1});
  EXPECT_THROW((void)plain_schema(schema, {}), BudgetExceeded);
}

TEST(PlainSchema, BoundsOfIntegersAreRoundedInward) {
  EXPECT_EQ(plain(R"({"type":"integer","minimum":1.5,"maximum":9.5})"),
            R"({"type":"integer","minimum":2,"maximum":9})");
  EXPECT_EQ(plain(R"({"type":"integer","exclusiveMinimum":-1.5,"exclusiveMaximum":9.5})"),
            R"({"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":10})");
  EXPECT_EQ(plain(R"({"type":"integer","minimum":1e3,"maximum":9223372036854775807})"),
            R"({"type":"integer","minimum":1000,"maximum":9223372036854775807})");
  EXPECT_EQ(plain(R"({"type":["integer","number"],"minimum":1.5})"),
            R"({"type":"number","minimum":1.5})");
  for (const char* bound : {"9223372036854775808", "1e30", "-1e30"}) {
    EXPECT_THAT(
        plain(R"({"type":"integer","maximum":)" + std::string(bound) + "}"),
        HasSubstr("\"maximum\" must be from -9223372036854775808 to 9223372036854775807 with"))
        << bound;
  }
  EXPECT_THAT(plain(R"({"type":"number","minimum":"5"})"),
              HasSubstr("\"minimum\" must be a number; got \"5\""));
}

TEST(PlainSchema, MultiplesAreOfIntegersInASmallRange) {
  EXPECT_EQ(plain(R"({"type":"integer","multipleOf":5.0})"),
            R"({"type":"integer","multipleOf":5})");
  EXPECT_EQ(plain(R"({"type":"integer","multipleOf":5,"minimum":0,"exclusiveMaximum":10000})"),
            R"({"type":"integer","minimum":0,"exclusiveMaximum":10000,"multipleOf":5})");
  EXPECT_THAT(plain(R"({"type":"number","multipleOf":0.01})"),
              HasSubstr("\"multipleOf\" with the \"type\" \"number\""));
  for (const char* divisor : {"0", "-2", "2.5", "1025", "18446744073709551615"}) {
    EXPECT_THAT(plain(R"({"type":"integer","multipleOf":)" + std::string(divisor) + "}"),
                HasSubstr("\"multipleOf\" must be an integer from 1 to 1024"))
        << divisor;
  }
  for (const char* bounds :
       {R"("minimum":0)", R"("exclusiveMaximum":9)", R"("minimum":0,"maximum":10000)",
        R"("minimum":-9223372036854775808,"maximum":9223372036854775807)"}) {
    EXPECT_THAT(plain(R"({"type":"integer","multipleOf":5,)" + std::string(bounds) + "}"),
                HasSubstr("without a range of at most 10000 integers"))
        << bounds;
  }
}

TEST(PlainSchema, PropertiesAndItemsImplyTheirType) {
  EXPECT_EQ(plain(R"({"properties":{"n":{"type":"null"}}})"),
            R"({"type":"object","properties":{"n":{"type":"null"}}})");
  EXPECT_EQ(plain(R"({"items":{"type":"null"}})"), R"({"type":"array","items":{"type":"null"}})");
  EXPECT_EQ(plain(R"({"type":"array"})"), R"({"type":"array","items":{}})");
}

TEST(PlainSchema, TuplesOfDraft7AreThoseOf2020) {
  EXPECT_EQ(plain(R"({"type":"array","minItems":2,"maxItems":2,
                      "items":[{"type":"integer"},{"type":"string"}]})"),
            R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],)"
            R"("minItems":2,"maxItems":2})");
  EXPECT_EQ(plain(R"({"items":[{"type":"null"}],"additionalItems":{"type":"integer"}})"),
            R"({"type":"array","items":{"type":"integer"},"prefixItems":[{"type":"null"}]})");
  EXPECT_EQ(plain(R"({"type":"array","items":[{"type":"null"}],"additionalItems":false})"),
            R"({"type":"array","items":false,"prefixItems":[{"type":"null"}]})");
  EXPECT_EQ(plain(R"({"type":"array","items":[],"additionalItems":{"type":"null"}})"),
            R"({"type":"array","items":{"type":"null"}})");
  EXPECT_EQ(plain(R"({"type":"array","items":{"type":"null"},"additionalItems":false})"),
            R"({"type":"array","items":{"type":"null"}})");
  EXPECT_THAT(plain(R"({"type":"array","prefixItems":[{}],"additionalItems":false})"),
              HasSubstr(R"(as "items")"));
  EXPECT_THAT(plain(R"({"type":"array","prefixItems":[{}],"items":[{}]})"),
              HasSubstr(R"(a list of "items" beside "prefixItems")"));
  EXPECT_THAT(plain(R"({"type":"array","items":[{"type":"null"},{"type":"x"}]})"),
              HasSubstr("#/items/1: the JSON schema has the \"type\" \"x\""));
  EXPECT_THAT(plain(R"({"type":"array","items":[{}],"additionalItems":{"type":"x"}})"),
              HasSubstr("#/additionalItems: "));
}

TEST(PlainSchema, ExclusiveBoundsOfDraft4AreNumbers) {
  EXPECT_EQ(plain(R"({"type":"integer","minimum":3,"exclusiveMinimum":true,"maximum":9,
                      "exclusiveMaximum":false})"),
            R"({"type":"integer","maximum":9,"exclusiveMinimum":3})");
  EXPECT_EQ(plain(R"({"type":"number","maximum":0.5,"exclusiveMaximum":true})"),
            R"({"type":"number","exclusiveMaximum":0.5})");
  EXPECT_THAT(plain(R"({"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":1})"),
              HasSubstr("which leave no value"));
  EXPECT_THAT(plain(R"({"properties":{"a":{"type":"number","exclusiveMinimum":true}}})"),
              HasSubstr(R"(#/properties/a: the JSON schema has "exclusiveMinimum" true without a )"
                        R"("minimum", which is not supported; write the bound itself)"));
}

TEST(PlainSchema, NullableAddsNull) {
  EXPECT_EQ(plain(R"({"type":"string","nullable":true,"maxLength":3})"),
            R"({"type":["string","null"],"maxLength":3})");
  EXPECT_EQ(plain(R"({"type":"string","enum":["a",null,3],"nullable":true})"),
            R"({"enum":["\"a\"","null"]})");
  for (const char* schema : {R"({"type":"string","nullable":false})", R"({"nullable":true})"}) {
    EXPECT_EQ(plain(schema).find("null"), std::string::npos) << schema;
  }
  EXPECT_EQ(plain(R"({"type":"null","nullable":true})"), R"({"type":"null"})");
  EXPECT_EQ(plain(R"({"type":"string","anyOf":[{"type":"string","nullable":true}]})"),
            R"({"anyOf":[{"type":"string"}]})");
  for (const char* keyword : {R"("$ref":"#/$defs/a")", R"("allOf":[{}])", R"("anyOf":[{}])"}) {
    EXPECT_THAT(plain(R"({"$defs":{"a":{}},"nullable":true,)" + std::string(keyword) + "}"),
                HasSubstr(R"(write "anyOf" of the schema and {"type": "null"})"))
        << keyword;
  }
  for (const char* values : {R"("enum":["a"])", R"("const":"a")"}) {
    EXPECT_THAT(plain(R"({"type":"string","nullable":true,)" + std::string(values) + "}"),
                HasSubstr(R"(add null to the "enum" and to the "type")"));
  }
  EXPECT_THAT(plain(R"({"properties":{"a":{}},"nullable":true})"),
              HasSubstr(R"("nullable" without a "type")"));
  EXPECT_THAT(plain(R"({"type":"string","nullable":"yes"})"), HasSubstr("true or false"));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs/a","type":"string","$defs":{"a":{"type":"string",
                        "nullable":true}}})"),
              HasSubstr("\"type\" beside \"$ref\""));
}

TEST(PlainSchema, BranchesWithoutAValueAreLeftOut) {
  EXPECT_EQ(plain(R"({"anyOf":[{"not":{}},{"type":"string"},false,{"not":true}]})"),
            R"({"anyOf":[{"type":"string"}]})");
  EXPECT_EQ(plain(R"({"type":"object","additionalProperties":{"not":{}}})"),
            R"({"type":"object","additionalProperties":false,"properties":{}})");
  EXPECT_EQ(plain(R"({"type":"array","items":{"not":{}}})"), R"({"type":"array","items":false})");
  EXPECT_THAT(plain(R"({"oneOf":[{"not":{}},false]})"),
              HasSubstr(R"(an "oneOf" whose schemas allow no value)"));
  EXPECT_THAT(plain(R"({"properties":{"a":{"not":{}}}})"),
              HasSubstr(R"(#/properties/a: the JSON schema has {"not": {}} in place of a schema)"));
  EXPECT_THAT(plain(R"({"not":{}})"), HasSubstr("in place of a schema"));
  EXPECT_THAT(plain(R"({"anyOf":[{"not":{}},{"$ref":"#"}]})"), HasSubstr("refers only to itself"));
  EXPECT_THAT(plain(R"({"properties":{"a":{"not":{"type":"null"}}}})"),
              HasSubstr("#/properties/a: the JSON schema has \"not\", which is not supported"));
}

TEST(PlainSchema, APatternOfTheGeneratorDefinesItsFormat) {
  const auto schema = [](std::string_view format, std::string_view pattern) {
    return fmt::format(R"({{"type":"string","format":"{}","pattern":"{}"}})", format, pattern);
  };
  for (const auto& [format, pattern] : std::initializer_list<std::pair<const char*, const char*>>{
           {"uuid",
            "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-"
            "[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$"},
           {"time", R"(^(?:[01]\\d|2[0-3]):[0-5]\\d$)"},
           {"cuid", R"(^[cC][^\\s-]{8,}$)"},
           {"e164", R"(^\\+[1-9]\\d{6,14}$)"}}) {
    EXPECT_THAT(plain(schema(format, pattern)), HasSubstr(std::string(R"("pattern":)"))) << format;
  }
  EXPECT_THAT(plain(schema("date", "^1")), HasSubstr("\"format\" beside \"pattern\""));
  EXPECT_THAT(plain(schema("uuid", "^P(")), HasSubstr("\"format\" beside \"pattern\""));
  EXPECT_THAT(plain(schema("emoji", R"(^(\\p{Extended_Pictographic})+$)")), HasSubstr("\\p"));
}

TEST(PlainSchema, ErrorsNameTheToolAndThePlace) {
  const std::vector<ToolSchema> tools = {{.path = "#/$defs/0", .tool = "look"},
                                         {.path = "#/$defs/1", .tool = "book"}};
  const auto refusal = [&](std::string_view json) {
    return plain_schema(json, {}, tools).status().message();
  };
  EXPECT_EQ(refusal(R"({"$defs":{"0":{"type":"string"},"1":{"type":"object","properties":{
                        "tags":{"type":"array","items":{"type":"string","contains":{}}}}}}})"),
            "[grammar] tool \"book\", #/properties/tags/items: the JSON schema has \"contains\", "
            "which is not supported; restrict all items by \"items\"");
  EXPECT_THAT(refusal(R"({"$defs":{"0":{"type":"tuple"}}})"),
              HasSubstr("[grammar] tool \"look\": the JSON schema has the \"type\" \"tuple\""));
  EXPECT_THAT(refusal(R"({"$defs":{"10":{"type":"tuple"}}})"), HasSubstr("] #/$defs/10: the"));
  EXPECT_THAT(refusal(R"({"type":"object","properties":{"a\nb":{"required":true}}})"),
              HasSubstr(R"(#/properties/a\nb: the JSON schema has "required" true)"));
  const std::vector<ToolSchema> whole = {{.path = "#", .tool = "f"}};
  EXPECT_THAT(
      plain_schema(R"({"properties":{"a":{"minLength":-1}}})", {}, whole).status().message(),
      HasSubstr("[grammar] tool \"f\", #/properties/a: the JSON schema's \"minLength\""));
}

}  // namespace
}  // namespace quire::grammar
