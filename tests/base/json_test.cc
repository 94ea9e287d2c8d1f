#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json_writer.h"
#include "base/machine.h"
#include "support/value_of.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

TEST(Json, ReadsADocument) {
  const auto document = testing::value_of(JsonDocument::parse(R"({"a": [1, 2.5, "x"]})", "test"));
  EXPECT_EQ(int64_t(document.root()["a"].at(0)), 1);
}

TEST(Json, NamesTheSourceOfAFault) {
  for (const std::string_view bad :
       {"{"sv, ""sv, std::string_view(), "{\"a\":}"sv, "[1,]"sv, "nul"sv, "\"\xFF\""sv}) {
    const auto document = JsonDocument::parse(bad, "line 3 of prompts.jsonl");
    ASSERT_FALSE(document.ok()) << bad;
    EXPECT_THAT(document.status().message(), HasSubstr("line 3 of prompts.jsonl"));
  }
}

TEST(Json, CapsDepthAndSize) {
  const std::string deep(1000, '[');
  EXPECT_FALSE(JsonDocument::parse(deep + std::string(1000, ']'), "deep").ok());
  const auto large = JsonDocument::parse("[1, 2, 3]", "large", {.max_bytes = 4});
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.status().message(), HasSubstr("got 9 bytes, expected at most 4"));
}

TEST(Json, ReadsIntegersWiderThan64BitsAsNumbers) {
  // Many tokenizer_config.json files write model_max_length this way.
  const auto document = testing::value_of(
      JsonDocument::parse(R"({"model_max_length": 1000000000000000019884624838656})", "test"));
  EXPECT_DOUBLE_EQ(double(document.root()["model_max_length"]), 1e30);
}

TEST(JsonWriter, WritesEveryKindOfValue) {
  JsonWriter json;
  json.begin_object();
  json.field("text", "a\"\\\n\x01\xFF");
  json.field("whole", int64_t{-7});
  json.field("real", 0.1);
  json.field("nan", std::numeric_limits<double>::quiet_NaN());
  json.field("flag", true);
  json.key("ids");
  json.ids({1, 2});
  json.key("empty");
  json.begin_array();
  json.end_array();
  json.end_object();
  EXPECT_EQ(json.text(),
            "{\"text\":\"a\\\"\\\\\\n\\u0001\uFFFD\",\"whole\":-7,\"real\":0.1,"
            "\"nan\":null,\"flag\":true,\"ids\":[1,2],\"empty\":[]}");
  EXPECT_TRUE(JsonDocument::parse(json.text(), "own output").ok());
}

TEST(RepeatedKeys, AreFoundAtEveryDepthByTheirPlace) {
  const auto place = [](std::string_view text) {
    const auto document = JsonDocument::parse(text, "test");
    EXPECT_TRUE(document.ok()) << text;
    return find_nested_repeated_key(document->root()).value_or("none");
  };
  EXPECT_EQ(place(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}]})"), "none");
  EXPECT_EQ(place(R"([1, "a", null, {}])"), "none");
  EXPECT_EQ(place(R"({"a": null, "a": 1})"), ".a");
  EXPECT_EQ(place(R"({"b": 1, "a": 2, "c": 3, "b": 1})"), ".b");
  EXPECT_EQ(place(R"({"a": [0, {"b": {"": 1, "": 2}}]})"), ".a[1].b.");
  EXPECT_EQ(place(R"([{"x": 1}, {"a\nb": 1, "a\u000ab": 1}])"), "[1].a\\nb") << "on one line";
  const std::string longest(5000, 'k');
  EXPECT_EQ(place("{\"" + longest + "\":1,\"" + longest + "\":1}"),
            "." + longest.substr(0, 60) + "…");
}

// Comparing all pairs of these keys would take minutes of CPU time.
TEST(RepeatedKeys, ManyAndLongKeysAreCheckedInTime) {
  std::string many = "{";
  for (int i = 0; i < 300'000; ++i) many += "\"" + std::to_string(i) + "\":0,";
  many.back() = '}';
  std::string alike = "{";
  for (int i = 0; i < 1000; ++i) {
    alike += "\"" + std::string(4000, 'a') + std::to_string(i) + "\":0,";
  }
  alike.back() = '}';
  for (const std::string& text : {many, alike}) {
    const auto document = testing::value_of(JsonDocument::parse(text, "test"));
    const int64_t ns =
        cpu_ns_of([&] { EXPECT_FALSE(find_nested_repeated_key(document.root()).has_value()); });
    EXPECT_LT(ns, 1000 * static_cast<int64_t>(text.size()));
  }
}

}  // namespace
}  // namespace quire
