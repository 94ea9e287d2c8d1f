// The tools of coding agents: those that a server cannot run, those with free text, and tools
// beside a format of the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/agents_fixture.h"
#include "server/call_or_text.h"
#include "server/conversation_prompt.h"
#include "server/tools/response_template.h"

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

// The type of a tool decides what the tool is.
TEST_F(AgentToolsTest, OtherMembersOfAToolHaveNoEffect) {
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"({"role":"user","content":"Q"})";
  const std::string prompt = chat(
      user, R"(,"tools":[{"type":"web_search","function":{"name":"f","description":"HIDDEN"}},)"
            R"({"type":"function","function":{"name":"f","description":"REAL"},)"
            R"("custom":{"name":"g"}}])");
  EXPECT_THAT(prompt, AllOf(HasSubstr("REAL"), Not(HasSubstr("HIDDEN"))));
}

// The types that a request names come back in a header.
TEST_F(AgentToolsTest, TheHeaderOfIgnoredPartsIsBounded) {
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"({"role":"user","content":"Q"})";
  const std::string version(100'000, '_');
  EXPECT_THAT(chat(user, R"(,"tools":[{"type":"web_search)" + version + R"("}])"),
              HasSubstr("tools[0].type; got"));
  std::string tools;
  for (int i = 0; i < 100; ++i) {
    tools +=
        (i == 0 ? "" : ",") + std::string(R"({"type":"web_search_)") + std::to_string(i) + R"("})";
  }
  chat(user, R"(,"tools":[)" + tools + "]");
  EXPECT_THAT(header(response_, "x-quire-ignored"), ::testing::EndsWith(" and 80 more"));
  EXPECT_LT(header(response_, "x-quire-ignored").size(), 1000U);
  std::string fields = R"(,"a,b":1)";
  EXPECT_NE(chat(user, fields), "");
  EXPECT_EQ(header(response_, "x-quire-ignored"), "unknown fields: 1");
  for (int i = 0; i < 10'000; ++i) fields += ",\"x" + std::to_string(i) + "\":1";
  chat(user, fields);
  EXPECT_THAT(header(response_, "x-quire-ignored"), ::testing::EndsWith("x19 and 9981 more"));
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

TEST_F(AgentToolsTest, ItemsThatNoModelReadsAreLeftOutAndNamed) {
  engine_.use_template(std::string(kChatMl));
  const std::string plain = chat(R"({"role":"user","content":"Q"},{"role":"assistant",)"
                                 R"("content":"A"},{"role":"user","content":"R"})");
  EXPECT_EQ(prompt_of("/v1/responses",
                      R"({"input":[{"type":"compaction","id":"cm_1","encrypted_content":"zzz"},
                {"type":"mcp_list_tools","id":"ml_1","server_label":"s","tools":[]},
                {"role":"user","content":"Q"},
                {"type":"mcp_approval_request","id":"mr_1","name":"n","arguments":"{}",
                "server_label":"s"},
                {"type":"mcp_approval_response","approval_request_id":"mr_1","approve":true},
                {"type":"mcp_list_tools","id":"ml_2","server_label":"t","tools":[]},
                {"role":"assistant","content":"A"},{"role":"user","content":"R"}]})"),
            plain);
  EXPECT_EQ(header(response_, "x-quire-ignored"),
            "input.compaction, input.mcp_list_tools, input.mcp_approval_request, "
            "input.mcp_approval_response");
  EXPECT_EQ(prompt_of("/v1/messages",
                      R"({"max_tokens":9,"messages":[{"role":"user","content":"Q"},
                {"role":"assistant","content":[{"type":"redacted_thinking","data":"zzz"},
                {"type":"text","text":"A"}]},{"role":"user","content":"R"}]})"),
            plain);
  EXPECT_EQ(header(response_, "x-quire-ignored"), "messages.redacted_thinking");
}

// Allows the bytes of a text, and then nothing.
class OneText final : public TokenConstraint {
 public:
  explicit OneText(std::string text) : text_(std::move(text)) {}
  std::vector<uint32_t> allowed_tokens() override {
    std::vector<uint32_t> mask(256 / 32);
    if (done_ < text_.size()) mask[text_[done_] / 32U] |= 1U << text_[done_] % 32U;
    return mask;
  }
  bool accept(int32_t token_id) override {
    if (done_ >= text_.size() || text_[done_] != token_id) return false;
    ++done_;
    return true;
  }
  bool can_roll_back() const override { return true; }
  bool rollback(int num_tokens) override {
    done_ -= static_cast<size_t>(num_tokens);
    return true;
  }

 private:
  std::string text_;
  size_t done_ = 0;
};

// The characters that a constraint allows after a text; "reject": not the text itself.
std::string allowed_after(TokenConstraint& constraint, std::string_view text) {
  for (const char c : text) {
    if (!constraint.accept(c)) return "reject";
  }
  std::string allowed;
  const std::vector<uint32_t> mask = constraint.allowed_tokens();
  for (uint32_t c = 0; c < 128; ++c) {
    if ((mask[c / 32] >> c % 32 & 1U) != 0) allowed += static_cast<char>(c);
  }
  return allowed;
}

TEST(CallOrText, AllowsTheTextOrACall) {
  const testing::FakeEngine engine;  // one token per byte
  const auto opening = std::make_shared<const CallOpening>(engine, "<tool>");
  const auto make = [&] {
    return call_or_text([] { return std::make_unique<OneText>("<to{}"); }, opening, engine)();
  };
  EXPECT_EQ(allowed_after(*make(), ""), "<");
  EXPECT_EQ(allowed_after(*make(), "<to"), "o{");
  EXPECT_EQ(allowed_after(*make(), "<to{"), "}");
  EXPECT_EQ(allowed_after(*make(), "<to{}"), "");
  EXPECT_EQ(allowed_after(*make(), "<too"), "l");
  EXPECT_EQ(allowed_after(*make(), "<tool>").size(), 128U);
  EXPECT_EQ(allowed_after(*make(), "<tool>anything").size(), 128U);
  EXPECT_EQ(allowed_after(*make(), "<tx"), "reject");
  EXPECT_EQ(allowed_after(*make(), "<to{x"), "reject");
  const std::string call = "<tool>x";
  for (size_t size = 0; size <= call.size(); ++size) {
    for (size_t count = 0; count <= size; ++count) {
      const auto constraint = make();
      allowed_after(*constraint, call.substr(0, size));
      ASSERT_TRUE(constraint->rollback(static_cast<int>(count)));
      EXPECT_EQ(allowed_after(*constraint, ""),
                allowed_after(*make(), call.substr(0, size - count)));
    }
  }
}

TEST(CallOrText, OpensACallOnlyByTheTokenThatTheMarkerIs) {
  testing::FakeEngine engine;
  engine.added_tokens_ = {{.token_id = 1, .text = "<tool>"}};
  const auto opening = std::make_shared<const CallOpening>(engine, "<tool>f", engine.added_tokens_);
  const auto make = [&] {
    return call_or_text([] { return std::make_unique<OneText>("<to{}"); }, opening, engine)();
  };
  EXPECT_EQ(allowed_after(*make(), ""), "\x01<");
  EXPECT_EQ(allowed_after(*make(), "<to"), "{");
  EXPECT_EQ(allowed_after(*make(), "\x01"), "f");
  EXPECT_EQ(allowed_after(*make(),
                          "\x01"
                          "f")
                .size(),
            128U);
}

TEST_F(AgentToolsTest, AMarkerThatIsATokenCountsOnlyAsThisToken) {
  engine_.added_tokens_ = {{.token_id = 1, .text = "<tool_call>", .is_hidden = true},
                           {.token_id = 2, .text = "</tool_call>", .is_hidden = true}};
  start({.tool_call_parser = "hermes"});
  engine_.use_template(std::string(kChatMl));
  const std::string body = R"({"messages":[{"role":"user","content":"Q"}],)"
                           R"("tools":[{"type":"function","function":{"name":"f"}}]})";
  const std::string arguments = R"({"name":"f","arguments":{"a":"<tool_call>"}})";
  const auto as_tokens = call("POST", "/v1/chat/completions", body);
  EXPECT_TRUE(engine_.wait_for(1).sampling.skip_special_tokens);
  Output output;
  output.text = "So" + arguments + "then";
  output.added_tokens = {
      {.token_id = 1, .begin = 2, .end = 2},
      {.token_id = 2, .begin = 2 + arguments.size(), .end = 2 + arguments.size()}};
  output.finish_reason = FinishReason::kStop;
  engine_.send(1, std::move(output));
  const std::string called = as_tokens->wait(200).body;
  EXPECT_THAT(called, HasSubstr(R"("content":"Sothen")"));
  EXPECT_THAT(called, HasSubstr(R"("arguments":"{\"a\":\"<tool_call>\"}")"));
  EXPECT_THAT(called, HasSubstr(R"("finish_reason":"tool_calls")"));

  const auto spelled = call("POST", "/v1/chat/completions", body);
  engine_.wait_for(2);
  engine_.say(2, "<tool_call>{\"name\":\"f\"}</tool_call>", FinishReason::kStop);
  const std::string text = spelled->wait(200).body;
  EXPECT_THAT(text, HasSubstr(R"("content":"<tool_call>{\"name\":\"f\"}</tool_call>")"));
  EXPECT_THAT(text, HasSubstr(R"("finish_reason":"stop")"));
}

// The text of such a grammar is no alternative to a call.
TEST(CallOrText, AGrammarOfCallsStaysAsItIs) {
  const testing::FakeEngine engine;
  const auto opening = std::make_shared<const CallOpening>(engine, "<t>");
  const auto make = [&](const std::string& text) {
    return call_or_text([=] { return std::make_unique<OneText>(text); }, opening, engine)();
  };
  EXPECT_EQ(allowed_after(*make("<t>f</t>"), "<t>"), "f");
  EXPECT_EQ(allowed_after(*make("<t>f</t>"), "<t>g"), "reject");
  EXPECT_EQ(allowed_after(*make("<t"), "<t"), ">");
  EXPECT_EQ(allowed_after(*make("<t"), "<t>").size(), 128U);
}

TEST_F(AgentToolsTest, AFormatLeavesACallPossible) {
  ServiceConfig config;
  config.tool_call_parser = "hermes";
  std::vector<GrammarSpec> compiled;
  config.constraints.compile = [&](const GrammarSpec& wanted) -> Result<ConstraintFactory> {
    compiled.push_back(wanted);
    return ConstraintFactory([] { return std::make_unique<OneText>("{}"); });
  };
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"("messages":[{"role":"user","content":"Q"}])";
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  const std::string format = R"("format":{"type":"json_schema","schema":{"type":"object"}})";
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"/v1/chat/completions", user + tools + R"(,"response_format":{"type":"json_object"})"},
      {"/v1/chat/completions", user + tools + R"(,"guided_json":{"type":"object"})"},
      {"/v1/chat/completions", user + tools + R"(,"structured_outputs":{"regex":"a"})"},
      {"/v1/responses",
       R"("input":"Q","tools":[{"type":"function","name":"f"}],"text":{)" + format + "}"},
      {"/v1/messages", user +
                           R"(,"max_tokens":9,"tools":[{"name":"f","input_schema":{}}],)"
                           R"("output_config":{)" +
                           format + "}"},
      {"/api/chat", user + tools + R"(,"stream":false,"format":"json")"}};
  RequestId id = 0;
  for (const auto& [path, fields] : requests) {
    const auto exchange = call("POST", path, "{" + fields + "}");
    const auto constraint = engine_.wait_for(++id).make_constraint();
    EXPECT_EQ(allowed_after(*constraint, ""), "<{") << path;
    EXPECT_EQ(allowed_after(*constraint, "<tool_call>").size(), 128U) << path;
    engine_.say(id, R"(<tool_call>{"name":"f","arguments":{}}</tool_call>)", FinishReason::kStop);
    EXPECT_THAT(exchange->wait().body, HasSubstr(R"("name":"f")")) << path;
  }
  // A choice that forces a call leaves the format nothing to bind.
  compiled.clear();
  const auto forced = call("POST", "/v1/chat/completions",
                           "{" + requests[0].second + R"(,"tool_choice":"required"})");
  EXPECT_EQ(allowed_after(*engine_.wait_for(++id).make_constraint(), ""), "{");
  engine_.say(id, R"(<tool_call>{"name":"f","arguments":{}}</tool_call>)", FinishReason::kStop);
  EXPECT_THAT(forced->wait().body, HasSubstr(R"("name":"f")"));
  ASSERT_EQ(compiled.size(), 1U);
  EXPECT_EQ(compiled[0].kind, GrammarSpec::Kind::kComposed);
  // Without tools, or with none to call, the format binds all text.
  for (const std::string& more :
       {tools + R"(,"tool_choice":"none")", std::string(R"(,"tools":[])")}) {
    const auto plain = call("POST", "/v1/chat/completions",
                            "{" + user + more + R"(,"response_format":{"type":"json_object"}})");
    EXPECT_EQ(allowed_after(*engine_.wait_for(++id).make_constraint(), ""), "{") << more;
    engine_.say(id, "{}", FinishReason::kStop);
    plain->wait();
  }
}

constexpr const char* kTwoTools = R"(,"tools":[{"type":"function","function":{"name":"f"}},)"
                                  R"({"type":"function","function":{"name":"g"}}],"tool_choice":)";

TEST_F(AgentToolsTest, AForcedCallIsInTheModelsDialect) {
  ServiceConfig config;
  config.tool_call_parser = "qwen3_coder";
  config.reasoning_parser = "think";
  std::vector<GrammarSpec> compiled;
  config.constraints.compile = [&](const GrammarSpec& wanted) -> Result<ConstraintFactory> {
    compiled.push_back(wanted);
    return ConstraintFactory([] { return std::unique_ptr<TokenConstraint>(); });
  };
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string body =
      R"({"messages":[{"role":"user","content":"Q"}])" + std::string(kTwoTools);
  prompt_of("/v1/chat/completions", body + R"("required"})",
            "<think>hm</think>\n<tool_call>\n<function=g>\n</function>\n</tool_call>");
  EXPECT_THAT(response_.body, AllOf(HasSubstr(R"("name":"g","arguments":"{}")"),
                                    HasSubstr(R"("reasoning_content":"hm")")));
  EXPECT_THAT(compiled.back().text,
              AllOf(HasSubstr(R"("<function=")"), HasSubstr(R"("g")"), HasSubstr(R"("<think>")")));
  prompt_of("/v1/chat/completions", body + R"({"type":"function","function":{"name":"f"}}})",
            "<tool_call><function=f></function></tool_call>");
  EXPECT_THAT(response_.body, HasSubstr(R"("name":"f","arguments":"{}")"));
  EXPECT_THAT(compiled.back().text, Not(HasSubstr(R"("g")")));
  // A limit cuts the call before it is one.
  prompt_of("/v1/chat/completions", body + R"("required"})", "<tool_call>\n<funct");
  EXPECT_THAT(response_.body, HasSubstr(R"("content":"<tool_call>\n<funct")"));
}

TEST_F(AgentToolsTest, AStrictToolBindsCallsThatTheModelChooses) {
  ServiceConfig config;
  config.tool_call_parser = "hermes";
  std::vector<GrammarSpec> compiled;
  config.constraints.compile = [&](const GrammarSpec& wanted) -> Result<ConstraintFactory> {
    compiled.push_back(wanted);
    return ConstraintFactory([] { return std::make_unique<OneText>("{}"); });
  };
  engine_.added_tokens_ = {{.token_id = 1, .text = "<tool_call>", .is_hidden = true}};
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"({"messages":[{"role":"user","content":"Q"}],"tools":[)";
  const std::string strict = user + R"({"type":"function","function":{"name":"f","strict":true}}])";
  const auto bound = call("POST", "/v1/chat/completions", strict + "}");
  const auto constraint = engine_.wait_for(1).make_constraint();
  EXPECT_EQ(allowed_after(*constraint, "Text.<tool_call>").size(), 128U) << "no token, so no call";
  EXPECT_EQ(allowed_after(*constraint, "\x01"), "{");
  ASSERT_EQ(compiled.size(), 1U);
  EXPECT_THAT(compiled[0].text, Not(HasSubstr(R"("<tool_call")")));
  EXPECT_EQ(compiled[0].token_ids, std::vector<int32_t>{1}) << "of later calls";
  Output output;
  output.text = R"({"name":"f","arguments":{}}</tool_call>)";
  output.added_tokens = {{.token_id = 1}};
  output.finish_reason = FinishReason::kStop;
  engine_.send(1, std::move(output));
  EXPECT_EQ(header(bound->wait(), "x-quire-ignored"), "");
  // A format of the text has the constraint.
  const auto beside = call("POST", "/v1/chat/completions",
                           strict + R"(,"response_format":{"type":"json_object"}})");
  engine_.wait_for(2);
  engine_.say(2, "{}", FinishReason::kStop);
  EXPECT_EQ(header(beside->wait(), "x-quire-ignored"), "tools.strict");
  const auto free = call("POST", "/v1/chat/completions",
                         user + R"({"type":"function","function":{"name":"f"}}]})");
  EXPECT_EQ(engine_.wait_for(3).make_constraint, nullptr);
  engine_.say(3, "ok", FinishReason::kStop);
  free->wait();
}

TEST_F(AgentToolsTest, AForcedCallOfAnArbitraryPatternIsRefused) {
  ServiceConfig config;
  config.call_template = std::make_shared<const ResponseTemplate>(*parse_response_template(
      R"({"fields":{"tool_calls":{"open_pattern":"CALL (?P<name>\\w+)\\n","close":"END",
          "content":"kv-lines","transform":{"type":"function",
          "function":{"name":"{name}","arguments":"{content}"}}}}})",
      "a test"));
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"({"role":"user","content":"Q"})";
  EXPECT_THAT(chat(user, kTwoTools + std::string(R"("required")")),
              AllOf(HasSubstr("by a regular expression"), HasSubstr(R"("param":"tools")")));
  prompt_of("/v1/chat/completions", R"({"messages":[)" + user + "]" + kTwoTools + R"("auto"})",
            "CALL f\na: 1\nEND");
  EXPECT_THAT(response_.body, HasSubstr(R"("name":"f","arguments":"{\"a\": \"1\"}")"));
}

TEST_F(AgentToolsTest, ToolsNeedAKnownDialect) {
  ServiceConfig config;
  config.lacks_dialect = true;
  start(std::move(config));
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"("messages":[{"role":"user","content":"Q"}])";
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"/v1/chat/completions", "{" + user + tools + "}"},
      {"/v1/responses", R"({"input":"Q","tools":[{"type":"function","name":"f"}]})"},
      {"/v1/messages", "{" + user + R"(,"max_tokens":9,"tools":[{"name":"f","input_schema":{}}]})"},
      {"/api/chat", "{" + user + tools + "}"}};
  for (const auto& [path, body] : requests) {
    const http::Response refused = call("POST", path, body)->wait();
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, AllOf(HasSubstr("is not known"), HasSubstr("tool-call-parser"),
                                    HasSubstr("kimi_k2")))
        << path;
  }
  EXPECT_EQ(chat(R"({"role":"user","content":"Q"})", tools + R"(,"tool_choice":"none")"),
            chat(R"({"role":"user","content":"Q"})"));
}

// A template without tools gets them as text, and the calls of the model and of the history are
// read and written in one dialect.
TEST_F(AgentToolsTest, GenericToolsArePartOfTheSystemMessage) {
  ServiceConfig config;
  config.tool_call_parser = kGenericDialect;
  config.has_generic_tools = true;
  engine_.use_template(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>");
  start(std::move(config));
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"f","description":"D",)"
      R"("parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}])";
  const std::string history =
      R"({"role":"system","content":"SYSTEM"},{"role":"user","content":"Q"},)"
      R"({"role":"assistant","tool_calls":[{"id":"1","type":"function",)"
      R"("function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
      R"({"role":"tool","tool_call_id":"1","content":"RESULT"})";
  const std::string prompt =
      prompt_of("/v1/chat/completions", R"({"messages":[)" + history + "]" + tools + "}",
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 2}}\n</tool_call>");
  EXPECT_THAT(prompt, ::testing::StartsWith("<system>SYSTEM\n\nYou may call tools"));
  EXPECT_THAT(prompt, AllOf(HasSubstr(R"({"name": "f", "description": "D", "parameters")"),
                            HasSubstr("<user>Q<assistant><tool_call>{\"name\": \"f\""),
                            HasSubstr("RESULT<assistant>")));
  EXPECT_THAT(response_.body, HasSubstr(R"("name":"f","arguments":"{\"a\": 2}")"));
  EXPECT_THAT(chat(R"({"role":"user","content":"Q"})", tools),
              AllOf(HasSubstr("<system>You may call tools"), HasSubstr("<user>Q")));
  EXPECT_EQ(chat(R"({"role":"user","content":"Q"})"), "<user>Q<assistant>");
}

TEST_F(AgentToolsTest, GenericToolsArePartOfTheFirstMessageWithoutASystemMessage) {
  ServiceConfig config;
  config.tool_call_parser = kGenericDialect;
  config.has_generic_tools = true;
  engine_.use_template(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  start(std::move(config));
  EXPECT_THAT(
      chat(R"({"role":"user","content":"Q"})",
           R"(,"tools":[{"type":"function","function":{"name":"f"}}])"),
      AllOf(::testing::StartsWith("<user>You may call tools"), ::testing::EndsWith("\n\nQ")));
}

}  // namespace
}  // namespace quire::server
