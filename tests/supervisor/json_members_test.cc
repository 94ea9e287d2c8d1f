#include "supervisor/json_members.h"

#include <gtest/gtest.h>

namespace quire::supervisor {
namespace {

TEST(JsonMember, IsTheTextOfTheOutermostValue) {
  const std::string_view body =
      R"( {"messages":[{"model":"inner","content":"\"model\":\"x\" \\"}], "n" : -1.5e3 ,
          "nested":{"a":[{}],"model":"no"},"flag":true,"model" : "ll\u0061ma\"", "stop":["}"]} )";
  EXPECT_EQ(json_member(body, "model"), R"("ll\u0061ma\"")");
  EXPECT_EQ(json_string(json_member(body, "model")), "llama\"");
  EXPECT_EQ(json_member(body, "n"), "-1.5e3");
  EXPECT_EQ(json_member(body, "flag"), "true");
  EXPECT_EQ(json_member(body, "stop"), R"(["}"])");
  EXPECT_EQ(json_member(body, "nested"), R"({"a":[{}],"model":"no"})");
  EXPECT_EQ(json_member(body, "content"), "");
  EXPECT_EQ(json_member(R"({"a":"b\\","c":1})", "c"), "1");
  EXPECT_EQ(json_member(R"({"a":"","c":""})", "c"), "\"\"");
  EXPECT_EQ(json_string("12"), "");
}

// No prefix of a document, and no text with a changed byte, is read beyond its end.
TEST(JsonMember, EndsWithinHostileText) {
  const std::string body = R"({"a":[{"b":"\\\"}"},[1,2]],"c":{"d":null},"model":"x"})";
  for (size_t size = 0; size <= body.size(); ++size) {
    for (const char c : {'"', '{', '}', '[', ']', '\\', ',', ':', '\0', 'x'}) {
      std::string text = body.substr(0, size);
      if (!text.empty()) text.back() = c;
      const std::string_view value = json_member(text, "model");
      EXPECT_LE(value.size(), text.size());
      (void)json_string(value);
    }
  }
  EXPECT_EQ(json_member(std::string(1 << 20, '['), "a"), "");
  EXPECT_EQ(json_member("{\"a\":" + std::string(1 << 20, '['), "b"), "");
  EXPECT_EQ(json_member("{\"a\":\"" + std::string(1 << 20, '\\'), "b"), "");
}

TEST(KeepAlive, IsSecondsOrADuration) {
  const auto ms = [](std::string_view value) {
    const auto duration = parse_keep_alive(value);
    return duration ? duration->count() : -777;
  };
  EXPECT_EQ(ms("0"), 0);
  EXPECT_EQ(ms("\"0\""), 0);
  EXPECT_EQ(ms("\"0s\""), 0);
  EXPECT_EQ(ms("300"), 300'000);
  EXPECT_EQ(ms("\"300\""), 300'000);
  EXPECT_EQ(ms("0.25"), 250);
  EXPECT_EQ(ms("\"5m\""), 300'000);
  EXPECT_EQ(ms("\"1h30m\""), 5'400'000);
  EXPECT_EQ(ms("\"1.5s\""), 1500);
  EXPECT_EQ(ms("\"20ms\""), 20);
  EXPECT_EQ(ms("-1"), -1);
  EXPECT_EQ(ms("\"-1m\""), -1);
  EXPECT_EQ(ms("1e300"), 1'000'000'000'000);
  for (const char* wrong :
       {"", "null", "true", "\"\"", "\"m\"", "\"5x\"", "\"5m3\"", "nan", "[]"}) {
    EXPECT_EQ(ms(wrong), -777) << wrong;
  }
}

}  // namespace
}  // namespace quire::supervisor
