// Schemas as clients write them, in the forms that are enforced; and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/check_spec.h"

namespace quire::grammar {
namespace {

using ::testing::HasSubstr;

std::string plain(std::string_view json) {
  const Result<std::string> text = plain_schema(json, {});
  return text.ok() ? *text : text.status().message();
}

TEST(PlainSchema, AnnotationsSayNothing) {
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
  EXPECT_EQ(plain(R"({"const":"a","type":"string"})"), R"({"enum":["a"]})");
  EXPECT_EQ(plain(R"({"enum":["a",1,2.5,3.0,null],"type":["integer","null"]})"),
            R"({"enum":[1,3.0,null]})");
  EXPECT_EQ(plain(R"({"enum":["a","b"],"const":"b"})"), R"({"enum":["b"]})");
  EXPECT_THAT(plain(R"({"const":"a","type":"integer"})"), HasSubstr("no value of the \"type\""));
  EXPECT_THAT(plain(R"({"enum":["aaaa","b"],"maxLength":1})"),
              HasSubstr("\"maxLength\" beside \"enum\""));
  EXPECT_THAT(plain(R"({"enum":"a"})"), HasSubstr("no array"));
}

TEST(PlainSchema, ATypeBesideBranchesIsHandedToThem) {
  EXPECT_EQ(plain(R"({"type":"string","anyOf":[{"maxLength":3},{"enum":["abcd",5]}]})"),
            R"({"anyOf":[{"type":"string","maxLength":3},{"enum":["abcd"]}]})");
  EXPECT_EQ(plain(R"({"type":"number","oneOf":[{"type":"integer"},{"const":0.5}]})"),
            R"({"oneOf":[{"type":"integer"},{"enum":[0.5]}]})");
  EXPECT_THAT(plain(R"({"type":"string","anyOf":[{"type":"null"},{"type":"string"}]})"),
              HasSubstr("contradicts"));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs/a","type":"string","$defs":{"a":{"type":"null"}}})"),
              HasSubstr("\"type\" beside \"$ref\""));
}

TEST(PlainSchema, RefusesWhatWouldBePassedOver) {
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
  EXPECT_THAT(plain(R"({"type":[]})"), HasSubstr("no type"));
  EXPECT_THAT(plain(R"({"anyOf":[]})"), HasSubstr("no list of schemas"));
}

TEST(PlainSchema, ReferencesNameSchemas) {
  EXPECT_THAT(plain(R"({"properties":{"a":{"enum":[{"minimum":1}]},
                        "b":{"$ref":"#/properties/a/enum/0"}}})"),
              HasSubstr("names no schema"));
  EXPECT_THAT(plain(R"({"$ref":"#/$defs","$defs":{}})"), HasSubstr("names no schema"));
  EXPECT_THAT(plain(R"({"$ref":"#/default","default":{"maxLength":1}})"),
              HasSubstr("names no schema"));
}

TEST(PlainSchema, RequiredPropertiesAreNamed) {
  EXPECT_EQ(plain(R"({"type":"object","properties":{"a":{}},"required":["a","b","b"]})"),
            R"({"type":"object","required":["a","b","b"],"properties":{"a":{},"b":{}}})");
  EXPECT_THAT(plain(R"({"type":"object","required":["b"],"additionalProperties":false})"),
              HasSubstr("\"b\", which its \"additionalProperties\" forbids"));
}

TEST(PlainSchema, WhatIsWrittenLikeAnObjectIsOne) {
  EXPECT_EQ(plain(R"({"properties":{"n":{"type":"null"}}})"),
            R"({"type":"object","properties":{"n":{"type":"null"}}})");
  EXPECT_EQ(plain(R"({"items":{"type":"null"}})"), R"({"type":"array","items":{"type":"null"}})");
  EXPECT_EQ(plain(R"({"type":"array"})"), R"({"type":"array","items":{}})");
}

}  // namespace
}  // namespace quire::grammar
