// The tools of coding agents: those that a server cannot run, those with free text, and tools
// beside a format of the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/agents_fixture.h"

namespace quire::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AgentToolsTest : public AgentsTest {};

constexpr const char* kFunctionAndHosted =
    R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}},)"
    R"({"type":"web_search"},{"type":"local_shell"},{"type":"image_generation"},)"
    R"({"type":"web_search","filters":{}},{"type":"namespace","name":"n","tools":[]}])";

TEST_F(AgentToolsTest, HostedToolsAreLeftOutAndNamed) {
  engine_.use_template(std::string(kChatMl));
  const std::string prompt =
      prompt_of("/v1/responses", std::string(R"({"input":"Q",)") + kFunctionAndHosted + "}");
  EXPECT_THAT(prompt, AllOf(HasSubstr(R"("name": "f")"), Not(HasSubstr("web_search"))));
  EXPECT_EQ(header(response_, "x-quire-ignored"),
            "tools.web_search, tools.local_shell, tools.image_generation, tools.namespace");
  const std::string user = R"({"role":"user","content":"Q"})";
  EXPECT_THAT(chat(user, R"(,"tools":[{"type":"web_search"},)"
                         R"({"type":"function","function":{"name":"f"}}])"),
              HasSubstr(R"("name": "f")"));
  EXPECT_EQ(header(response_, "x-quire-ignored"), "tools.web_search");
  EXPECT_THAT(
      prompt_of("/v1/messages", R"({"max_tokens":9,"messages":[)" + user +
                                    R"(],"tools":[{"name":"f","input_schema":{"type":"object"}},)"
                                    R"({"type":"web_search_20250305","name":"web_search"}]})"),
      AllOf(HasSubstr(R"("name": "f")"), Not(HasSubstr("web_search"))));
  EXPECT_EQ(header(response_, "x-quire-ignored"), "tools.web_search_20250305");
  EXPECT_THAT(chat(user, R"(,"tools":[{"type":"web_serch"}])"), HasSubstr("tools[0].type; got"));
  EXPECT_THAT(chat(user, R"(,"tools":[{"type":"web_search"}],"tool_choice":"required")"),
              HasSubstr("tool_choice; got 'required'"));
}

constexpr const char* kCustomCall =
    R"(<tool_call>{"name":"patch","arguments":{"input":"a \"b\"\n"}}</tool_call>)";

TEST_F(AgentToolsTest, CustomToolsAreFunctionsWithOneText) {
  ServiceConfig config;
  config.tool_call_parser = "hermes";
  config.constraints.compile = [](const GrammarSpec&) -> Result<ConstraintFactory> {
    return ConstraintFactory([] { return std::unique_ptr<TokenConstraint>(); });
  };
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string tool = R"("name":"patch","description":"Edits.","format":{"type":"grammar",)"
                           R"("syntax":"lark","definition":"start: /.+/"})";
  const std::string responses = R"({"input":"Q","tools":[{"type":"custom",)" + tool + "}]";
  const std::string shown = prompt_of("/v1/responses", responses + "}", kCustomCall);
  EXPECT_THAT(shown, AllOf(HasSubstr(R"("description": "Edits.\n\nThe input follows this lark )"
                                     R"(grammar:\nstart: /.+/")"),
                           HasSubstr(R"("required": ["input"])")));
  EXPECT_THAT(response_.body, AllOf(HasSubstr(R"("type":"custom_tool_call","status":"completed")"),
                                    HasSubstr(R"("name":"patch","input":"a \"b\"\n"})")));
  prompt_of("/v1/responses", responses + R"(,"stream":true})", kCustomCall);
  EXPECT_THAT(response_.body,
              AllOf(HasSubstr(R"("type":"response.custom_tool_call_input.delta")"),
                    HasSubstr(R"("delta":"a \"b\"\n"})"), HasSubstr(R"("input":"a \"b\"\n"})"),
                    Not(HasSubstr("function_call"))));
  const std::string user = R"({"role":"user","content":"Q"})";
  const std::string tools = R"(,"tools":[{"type":"custom","custom":{)" + tool + "}}]";
  EXPECT_EQ(chat(user, tools).substr(0, shown.find('\n')), shown.substr(0, shown.find('\n')));
  const std::string call = R"("type":"custom","custom":{"name":"patch","input":"a \"b\"\n"})";
  chat(user, tools);
  prompt_of("/v1/chat/completions", R"({"messages":[)" + user + "]" + tools + "}", kCustomCall);
  EXPECT_THAT(response_.body, AllOf(HasSubstr(call), HasSubstr(R"("finish_reason":"tool_calls")")));
  prompt_of("/v1/chat/completions", R"({"stream":true,"messages":[)" + user + "]" + tools + "}",
            kCustomCall);
  EXPECT_THAT(response_.body, HasSubstr(call));
  EXPECT_THAT(response_.body, Not(HasSubstr(R"("arguments")")));
  EXPECT_THAT(chat(user, tools + R"(,"tool_choice":{"type":"custom","custom":{"name":"patch"}})"),
              HasSubstr("user\nQ"));
  EXPECT_THAT(chat(user + R"(,{"role":"assistant","tool_calls":[{"id":"c",)" + call +
                   R"(}]},{"role":"tool","tool_call_id":"c","content":"done"})"),
              AllOf(HasSubstr(R"("input": "a \"b\"\n")"), HasSubstr("tool\ndone")));
}

TEST_F(AgentToolsTest, CallsOfHostedToolsInAHistoryAreRendered) {
  engine_.use_template(std::string(kChatMl));
  EXPECT_THAT(
      prompt_of("/v1/responses",
                R"({"input":[{"role":"user","content":"Q"},
                {"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"x"}},
                {"type":"file_search_call","id":"fs_1","queries":["y"],"results":[{"text":"found"}]},
                {"type":"local_shell_call","call_id":"ls_1","action":{"command":["ls"]}},
                {"type":"local_shell_call_output","id":"ls_1","output":"a.py"},
                {"type":"custom_tool_call","call_id":"c_1","name":"patch","input":"+ 1"},
                {"type":"custom_tool_call_output","call_id":"c_1","output":"patched"},
                {"type":"image_generation_call","id":"ig_1","result":"iVBORw"}]})"),
      AllOf(HasSubstr(R"("name": "web_search")"), HasSubstr(R"("query": "x")"), HasSubstr(R"(tool
[{"text":"found"}])"),
            HasSubstr(R"("command": ["ls"])"), HasSubstr("tool\na.py"),
            HasSubstr(R"("input": "+ 1")"), HasSubstr("tool\npatched"), HasSubstr("an image"),
            Not(HasSubstr("iVBORw"))));
  EXPECT_THAT(prompt_of("/v1/messages",
                        R"({"max_tokens":9,"messages":[{"role":"user","content":"Q"},
                {"role":"assistant","content":[
                {"type":"server_tool_use","id":"s_1","name":"web_search","input":{"query":"x"}},
                {"type":"web_search_tool_result","tool_use_id":"s_1","content":[
                {"type":"web_search_result","url":"u","encrypted_content":"zzz"}]},
                {"type":"text","text":"It is so."}]},{"role":"user","content":"R"}]})"),
              AllOf(HasSubstr(R"("query": "x")"), HasSubstr(R"("url":"u")"), HasSubstr("It is so."),
                    Not(HasSubstr("zzz"))));
}

}  // namespace
}  // namespace quire::server
