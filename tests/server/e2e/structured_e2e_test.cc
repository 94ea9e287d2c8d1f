// Tests structured output through the API of the real binary, with the embedded model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/schema_validator.h"
#include "server/e2e/served.h"

namespace quire::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::string_view kContent = "/choices/0/message/content";
constexpr std::string_view kSchema =
    R"({"type":"object","properties":{"answer":{"type":"integer","minimum":0,"maximum":999},)"
    R"("unit":{"enum":["apples","coins"]}},"required":["answer","unit"],)"
    R"("additionalProperties":false})";

JsonCall chat(std::string_view question, std::string_view more) {
  return {"/v1/chat/completions",
          fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}],"max_tokens":800,)"
                      R"("temperature":0{}{}}})",
                      question, more.empty() ? "" : ",", more)};
}

std::string schema_format() {
  return fmt::format(
      R"("response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":{}}}}})",
      kSchema);
}

class StructuredOutput : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new Served();
    ASSERT_TRUE(server_->is_up());
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(server_->stop(), 0);
    delete server_;
  }
  static inline Served* server_ = nullptr;
};

TEST_F(StructuredOutput, EachKindKeepsToItsFormWholeAndStreamed) {
  const auto ask = [](const std::string& restriction, auto check) {
    const HttpAnswer whole = server_->post(chat("How many apples?", restriction));
    ASSERT_EQ(whole.status, 200) << whole.body;
    const std::string text = string_at(whole.body, kContent);
    check(text);
    EXPECT_EQ(string_at(whole.body, "/choices/0/finish_reason"), "stop") << whole.body;
    const HttpAnswer stream =
        server_->post(chat("How many apples?", restriction + R"(,"stream":true)"));
    ASSERT_EQ(stream.status, 200) << stream.body;
    EXPECT_EQ(streamed_at(stream.body, "/choices/0/delta/content"), text);
    EXPECT_EQ(streamed_at(stream.body, "/choices/0/finish_reason"), "stop");
  };
  const auto is_valid = [](const std::string& text) {
    EXPECT_EQ(validate_json(text, kSchema), "") << text;
  };
  const auto is_choice = [](const std::string& text) {
    EXPECT_THAT(text, AnyOf("few", "many apples"));
  };
  const auto is_match = [](const std::string& text) {
    EXPECT_TRUE(matches_regex(text, "[0-9]{2}-[a-c]{3}")) << text;
  };
  const auto is_sum = [](const std::string& text) {
    EXPECT_TRUE(matches_regex(text, "[0-9]{1,3} \\+ [0-9]{1,3}")) << text;
  };
  ask(schema_format(), is_valid);
  ask(fmt::format(R"("structured_outputs":{{"json":{}}})", kSchema), is_valid);
  ask(fmt::format(R"("guided_json":{})", kSchema), is_valid);
  ask(R"("structured_outputs":{"choice":["few","many apples"]})", is_choice);
  ask(R"("structured_outputs":{"regex":"[0-9]{2}-[a-c]{3}"})", is_match);
  ask(R"("structured_outputs":{"grammar":"root ::= n \" + \" n\nn ::= [0-9]{1,3}"})", is_sum);
}

TEST_F(StructuredOutput, CompletionsToo) {
  const HttpAnswer answer = server_->post(
      {"/v1/completions", R"({"prompt":["Question: 1 + 1?\nAnswer:","Yes?"],"n":2,"max_tokens":40,)"
                          R"("structured_outputs":{"regex":"(yes|no)( [0-9])?"}})"});
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (int i = 0; i < 4; ++i) {
    const std::string text = string_at(answer.body, fmt::format("/choices/{}/text", i));
    EXPECT_TRUE(matches_regex(text, "(yes|no)( [0-9])?")) << text;
  }
}

TEST_F(StructuredOutput, ForcedToolsAreCalled) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"get_weather","parameters":)"
      R"({"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"],)"
      R"("additionalProperties":false}}}],"parallel_tool_calls":false,"tool_choice":)";
  for (const char* choice :
       {R"("required")", R"({"type":"function","function":{"name":"get_weather"}})"}) {
    const HttpAnswer answer = server_->post(chat("Weather?", tools + choice));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::string call = "/choices/0/message/tool_calls/0/function";
    EXPECT_EQ(string_at(answer.body, call + "/name"), "get_weather") << answer.body;
    const std::string arguments = string_at(answer.body, call + "/arguments");
    EXPECT_EQ(validate_json(arguments,
                            R"({"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},)"
                            R"("required":["city"],"additionalProperties":false})"),
              "")
        << answer.body;
    const HttpAnswer stream = server_->post(chat("Weather?", tools + choice + R"(,"stream":true)"));
    const std::string piece = "/choices/0/delta/tool_calls/0/function";
    EXPECT_EQ(streamed_at(stream.body, piece + "/name"), "get_weather") << stream.body;
    EXPECT_EQ(streamed_at(stream.body, piece + "/arguments"), arguments);
    EXPECT_EQ(streamed_at(stream.body, "/choices/0/delta/content"), "");
  }
}

// A call that is cut is text, unless a stream has begun it before.
TEST_F(StructuredOutput, AForcedCallIsWholeOrText) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"get_weather","parameters":)"
      R"({"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"],)"
      R"("additionalProperties":false}}}],"tool_choice":)";
  for (const char* choice :
       {R"("required")", R"({"type":"function","function":{"name":"get_weather"}})"}) {
    for (int max_tokens = 1; max_tokens <= 64; max_tokens += 7) {
      const std::string more =
          fmt::format(R"({}{},"max_completion_tokens":{})", tools, choice, max_tokens);
      const HttpAnswer whole = server_->post(chat("Weather?", more));
      ASSERT_EQ(whole.status, 200) << whole.body;
      const std::string arguments =
          string_at(whole.body, "/choices/0/message/tool_calls/0/function/arguments");
      const std::string content = string_at(whole.body, kContent);
      EXPECT_FALSE(arguments.empty() && content.empty()) << whole.body;
      if (!arguments.empty()) {
        EXPECT_EQ(validate_json(arguments, R"({"type":"object","required":["city"]})"), "");
      }
      const HttpAnswer stream = server_->post(chat("Weather?", more + R"(,"stream":true)"));
      ASSERT_EQ(stream.status, 200) << stream.body;
      const std::string text = streamed_at(stream.body, "/choices/0/delta/content");
      const std::string name =
          streamed_at(stream.body, "/choices/0/delta/tool_calls/0/function/name");
      EXPECT_TRUE(text == content || (text.empty() && !name.empty())) << stream.body;
      EXPECT_EQ(streamed_at(stream.body, "/choices/0/finish_reason"),
                string_at(whole.body, "/choices/0/finish_reason"));
      if (max_tokens == 1) {
        EXPECT_EQ(string_at(whole.body, "/choices/0/finish_reason"), "length");
      }
    }
  }
}

TEST_F(StructuredOutput, LeavesFreeNeighboursAsTheyAre) {
  std::vector<JsonCall> free_calls;
  for (int i = 0; i < 8; ++i) {
    free_calls.push_back(chat(fmt::format("Tom has {} apples and gets 5. How many?", i),
                              fmt::format(R"("seed":{},"logprobs":true)", i)));
  }
  std::vector<std::string> alone;
  for (const JsonCall& call : free_calls) {
    alone.push_back(string_at(server_->post(call).body, kContent));
  }
  std::vector<JsonCall> mixed;
  for (const JsonCall& call : free_calls) {
    mixed.push_back(call);
    mixed.push_back(chat("How many apples?", schema_format()));
  }
  const std::vector<HttpAnswer> answers = server_->post_all(mixed);
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].status, 200) << answers[i].body;
    const std::string text = string_at(answers[i].body, kContent);
    if (i % 2 == 0) {
      EXPECT_EQ(text, alone[i / 2]);
    } else {
      EXPECT_EQ(validate_json(text, kSchema), "") << text;
    }
  }
}

TEST_F(StructuredOutput, AWrongGrammarIsRefusedAndNamed) {
  struct Case {
    const char* restriction;
    const char* param;
    const char* why;
  };
  for (const Case& wrong :
       {Case{R"("structured_outputs":{"grammar":"root ::= ("})", "structured_outputs.grammar", ""},
        Case{R"("structured_outputs":{"regex":"["})", "structured_outputs.regex", ""},
        Case{R"("guided_regex":"a{1,200000}")", "guided_regex", "repeats too often"},
        Case{R"("structured_outputs":{"json":{"not":{}}})", "structured_outputs.json",
             "\\\"not\\\""},
        Case{R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":)"
             R"({"$ref":"http://a.example/b"}}})",
             "response_format.json_schema.schema", "$ref"}}) {
    const HttpAnswer answer = server_->post(chat("Hi", wrong.restriction));
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(string_at(answer.body, "/error/param"), wrong.param) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(wrong.why));
  }
}

TEST_F(StructuredOutput, MinTokensEndsWhereTheGrammarDoes) {
  const std::string choice = R"("structured_outputs":{"choice":["no"]},"min_tokens":50)";
  const HttpAnswer ended = server_->post(chat("Hi", choice));
  ASSERT_EQ(ended.status, 200) << ended.body;
  EXPECT_EQ(string_at(ended.body, kContent), "no");
  EXPECT_EQ(string_at(ended.body, "/choices/0/finish_reason"), "stop");
  // If the grammar allows more tokens, min_tokens applies.
  const HttpAnswer longer =
      server_->post(chat("Hi", R"("structured_outputs":{"regex":"a+"},"min_tokens":30)"));
  ASSERT_EQ(longer.status, 200) << longer.body;
  EXPECT_TRUE(matches_regex(string_at(longer.body, kContent), "a{30,}")) << longer.body;
}

}  // namespace
}  // namespace quire::testing
