// Requests of coding agents: roles and fields beyond the plain conversation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "server/agents_fixture.h"
#include "support/shared_data.h"

namespace quire::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Allows one system message, at the start.
constexpr std::string_view kLeadingSystem =
    "{%- for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('system must be first') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}";
// Writes nothing of other roles.
constexpr std::string_view kTwoRoles =
    "{%- for m in messages %}{% if m.role == 'user' %}U:{{ m.content | trim }}"
    "{% elif m.role == 'assistant' %}A:{{ m.content }}{% endif %}{% endfor %}";

TEST_F(AgentsTest, DeveloperIsSystemWhereTheTemplateDoesNotKnowIt) {
  const std::string messages =
      R"({"role":"developer","content":"D"},{"role":"user","content":"Q"})";
  engine_.use_template(std::string(kChatMl));
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>system\nD<|im_end|>"));
  engine_.use_template(std::string(kChatMl) + "{# developer #}");
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>developer\nD<|im_end|>"));
}

TEST_F(AgentsTest, AnUnknownRoleIsRefusedUnlessTheTemplateNamesIt) {
  const std::string messages = R"({"role":"user","content":"Q"},{"role":"critic","content":"C"})";
  engine_.use_template(std::string(kChatMl));
  EXPECT_THAT(chat(messages), HasSubstr("messages[1].role; got 'critic', expected"));
  engine_.use_template(std::string(kChatMl) + "{# critic #}");
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>critic\nC"));
}

TEST_F(AgentsTest, AMessageOfWhichNothingReachesThePromptIsRefused) {
  engine_.use_template(std::string(kTwoRoles));
  const std::string user = R"({"role":"user","content":" Q "})";
  EXPECT_EQ(chat(user), "U:Q");
  EXPECT_THAT(chat(R"({"role":"system","content":"S"},)" + user),
              AllOf(HasSubstr("messages[0]; got a message of the role 'system'"),
                    HasSubstr(R"("param":"messages[0]")")));
  EXPECT_THAT(chat(user + R"(,{"role":"tool","tool_call_id":"c","content":"42"})"),
              HasSubstr("messages[1]; got a message of the role 'tool'"));
  // Calls that a template does not write are a part of the conversation, too.
  EXPECT_THAT(chat(user + R"(,{"role":"assistant","tool_calls":[{"id":"c","type":"function",)"
                          R"("function":{"name":"f","arguments":"{}"}}]})"),
              HasSubstr("messages[1]; got a message of the role 'assistant'"));
  // A message without text has nothing to lose, and reasoning is dropped by intent.
  EXPECT_EQ(chat(user + R"(,{"role":"assistant","content":" "},)" + user), "U:QA: U:Q");
  EXPECT_EQ(chat(user + R"(,{"role":"assistant","content":"","reasoning":"hm"},)" + user),
            "U:QA:U:Q");
  EXPECT_THAT(prompt_of("/v1/responses", R"({"instructions":"S","input":"Q"})"),
              HasSubstr("instructions; got a message of the role 'system'"));
  EXPECT_THAT(
      prompt_of("/v1/messages", R"({"max_tokens":9,"system":"S","messages":[)" + user + "]}"),
      HasSubstr("system; got a message of the role 'system'"));
  EXPECT_THAT(
      prompt_of("/api/chat", R"({"messages":[{"role":"system","content":"S"},)" + user + "]}"),
      HasSubstr("messages[0]; got a message of the role 'system'"));
  EXPECT_THAT(
      call("POST", "/tokenize", R"({"messages":[{"role":"system","content":"S"}]})")->wait().body,
      HasSubstr("messages[0]; got a message of the role 'system'"));
}

TEST_F(AgentsTest, LaterSystemMessagesAreMergedWhereOnlyALeadingOneIsAllowed) {
  const std::string messages = R"({"role":"system","content":"A"},{"role":"user","content":"Q"},)"
                               R"({"role":"system","content":"B"},{"role":"user","content":"R"})";
  engine_.use_template(std::string(kLeadingSystem));
  EXPECT_EQ(chat(messages), "[system]A\n\nB[user]Q[user]R");
  EXPECT_EQ(chat(R"({"role":"user","content":"Q"},{"role":"system","content":"B"})"),
            "[system]B[user]Q");
  engine_.use_template("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
  EXPECT_EQ(chat(messages), "[system]A[user]Q[system]B[user]R");
  // The template's own error stays if merging does not help.
  engine_.use_template("{{ raise_exception('never') }}{{ messages }}");
  EXPECT_THAT(chat(messages), HasSubstr("never"));
}

TEST_F(AgentsTest, TheBillingHeaderIsNoPartOfThePrompt) {
  engine_.use_template(std::string(kChatMl));
  const auto body = [](const std::string& system) {
    return R"({"max_tokens":9,"messages":[{"role":"user","content":"Q"}],"system":)" + system + "}";
  };
  const auto prompt = [&](const std::string& system) {
    return prompt_of("/v1/messages", body(system));
  };
  const std::string header = "x-anthropic-billing-header: cc_version=2.1.0; cch=8f21c;";
  const std::string plain = prompt(R"("Be brief.\nNow.")");
  EXPECT_THAT(plain, HasSubstr("system\nBe brief.\nNow."));
  EXPECT_EQ(prompt('"' + header + R"(\nBe brief.\nNow.")"), plain);
  EXPECT_EQ(prompt(R"([{"type":"text","text":")" + header +
                   R"("},{"type":"text","text":"Be brief.\nNow."}])"),
            plain);
  EXPECT_THAT(prompt('"' + header + '"'), Not(HasSubstr("system")));
  EXPECT_THAT(prompt(R"("Not )" + header + '"'), HasSubstr("billing"));
}

TEST_F(AgentsTest, EffortsMeanTheSameOnAllRoutes) {
  ServiceConfig config;
  config.reasoning_parser = "think";
  start(std::move(config));
  const auto efforts = [&](const std::string& effort) {
    const std::string user = R"("messages":[{"role":"user","content":"Q"}])";
    const std::string value = '"' + effort + '"';
    return std::vector<std::string>{
        prompt_of("/v1/chat/completions", "{" + user + R"(,"reasoning_effort":)" + value + "}"),
        prompt_of("/v1/responses", R"({"input":"Q","reasoning":{"effort":)" + value + "}}"),
        prompt_of("/v1/messages", R"({"max_tokens":9,"thinking":{"type":"adaptive"},)" + user +
                                      R"(,"output_config":{"effort":)" + value + "}}")};
  };
  constexpr std::string_view kShow =
      "{{ messages[0].content }} {{ enable_thinking }} {{ reasoning_effort }}";
  engine_.use_template(std::string(kShow));
  EXPECT_THAT(efforts("none"), ::testing::Each("Q False low"));
  EXPECT_THAT(efforts("minimal"), ::testing::Each("Q True low"));
  EXPECT_THAT(efforts("high"), ::testing::Each("Q True high"));
  engine_.use_template(std::string(kShow) +
                       "{% if reasoning_effort == 'none' or "
                       "reasoning_effort == \"minimal\" %}!{% endif %}");
  EXPECT_THAT(efforts("none"), ::testing::Each("Q False none!"));
  EXPECT_THAT(efforts("minimal"), ::testing::Each("Q True minimal!"));
  // A template that cannot read the effort: the response says so.
  engine_.use_template("{{ messages[0].content }}");
  EXPECT_THAT(efforts("high"), ::testing::Each("Q"));
  EXPECT_EQ(header(response_, "x-quire-ignored"), "output_config.effort");
  engine_.use_template("{{ messages[0].content }} {{ enable_thinking }}");
  EXPECT_THAT(efforts("none"), ::testing::Each("Q False"));
  EXPECT_EQ(header(response_, "x-quire-ignored"), "");
}

TEST_F(AgentsTest, EmptyListsMeanAbsent) {
  engine_.use_template(std::string(kChatMl));
  const std::string user = R"({"role":"user","content":"Q"})";
  const std::string plain = chat(user);
  for (const char* const field : {"tools", "stop", "bad_words", "documents", "guided_choice",
                                  "allowed_token_ids", "stop_token_ids", "modalities"}) {
    EXPECT_EQ(chat(user, R"(,")" + std::string(field) + R"(":[])"), plain) << field;
  }
  EXPECT_EQ(chat(user, R"(,"structured_outputs":{"choice":[]})"), plain);
  EXPECT_EQ(prompt_of("/v1/responses", R"({"input":"Q","tools":[],"include":[]})"), plain);
  EXPECT_EQ(prompt_of("/v1/messages", R"({"max_tokens":9,"tools":[],"system":[],)"
                                      R"("stop_sequences":[],"messages":[)" +
                                          user + "]}"),
            plain);
  engine_.use_template(
      "{% for m in messages %}{{ m.content }}{{ m.tool_calls is defined }}"
      "{% endfor %}");
  EXPECT_EQ(chat(R"({"role":"assistant","content":"A","tool_calls":[]})"), "AFalse");
}

TEST_F(AgentsTest, BothNamesOfReasoningAreRead) {
  engine_.use_template(
      "{% for m in messages %}{{ m.reasoning_content }}-{{ m.thinking }}-"
      "{{ m.content }}{% endfor %}");
  for (const std::string name : {"reasoning", "reasoning_content"}) {
    EXPECT_EQ(chat(R"({"role":"assistant","content":"A",")" + name + R"(":"hm"})"), "hm-hm-A");
  }
  EXPECT_EQ(prompt_of("/v1/messages", R"({"max_tokens":9,"messages":[{"role":"user","content":[]},)"
                                      R"({"role":"assistant","content":[{"type":"thinking",)"
                                      R"("thinking":"hm","signature":"s"},{"type":"text",)"
                                      R"("text":"A"}]},{"role":"user","content":"B"}]})"),
            "hm-hm-A--B");
}

TEST_F(AgentsTest, UsageNamesHitsAndMisses) {
  const auto exchange = call("POST", "/v1/responses", R"({"input":"Q"})");
  engine_.wait_for(1);
  Output output;
  output.finish_reason = FinishReason::kStop;
  output.num_cached_tokens = 16;
  output.cache_miss = CacheMiss::kDiverged;
  engine_.send(1, std::move(output));
  EXPECT_THAT(exchange->wait().body,
              HasSubstr(R"("input_tokens_details":{"cached_tokens":16,"cache_write_tokens":6,)"
                        R"("cache_miss_cause":"changed_prompt"})"));
}

TEST_F(AgentsTest, ModelsHaveAnthropicsShapeForItsClients) {
  const http::Headers version = {{"anthropic-version", "2023-06-01"}};
  const std::string list = get("/v1/models", version).body;
  EXPECT_THAT(list,
              AllOf(HasSubstr(R"({"data":[{"type":"model","id":"fake","display_name":"fake",)"),
                    HasSubstr(R"("has_more":false,"first_id":"fake","last_id":"alias"})")));
  EXPECT_THAT(get("/v1/models/alias", version).body, HasSubstr(R"({"type":"model","id":"alias")"));
  EXPECT_THAT(get("/v1/models").body, HasSubstr(R"("object":"list")"));
}

// Returns a stored request with another model, and with `more` at the end of its last list.
std::string stored_request(const std::filesystem::path& path, const std::string& more = "") {
  std::string body = read_file(path, 1 << 20).value();
  const std::string model = R"("model": "any")";
  body.replace(body.find(model), model.size(), R"("model": "fake")");
  return body.insert(body.rfind(']'), more);
}

TEST_F(AgentsTest, ARequestInTheShapeOfClaudeCodeSharesItsPrefixWithTheNextTurn) {
  const auto path = quire::testing::shared_data_path("agents/claude_code_like.json");
  QUIRE_REQUIRE_SHARED(path);
  engine_.use_template(std::string(kChatMl));
  const std::string first = prompt_of("/v1/messages", stored_request(path));
  EXPECT_EQ(header(response_, "x-quire-ignored"), "tools.web_search_20250305");
  EXPECT_THAT(first, AllOf(Not(HasSubstr("billing")), HasSubstr("Make x two in a.py"),
                           HasSubstr(R"("name": "Bash")"), HasSubstr(R"("file_path": "a.py")"),
                           HasSubstr("     1\tx = 1\n"), HasSubstr("150000 tokens left"),
                           HasSubstr("Go on.")));
  std::string next = stored_request(path, R"(,{"role":"assistant","content":"Done."},)"
                                          R"({"role":"user","content":"And y?"})");
  next.replace(next.find("cch=8f21c"), 9, "cch=00000");
  const std::string second = prompt_of("/v1/messages", next);
  EXPECT_EQ(second.substr(0, first.size()), first);
}

TEST_F(AgentsTest, ARequestInTheShapeOfCodexSharesItsPrefixWithTheNextTurn) {
  const auto path = quire::testing::shared_data_path("agents/codex_like.json");
  QUIRE_REQUIRE_SHARED(path);
  engine_.use_template(std::string(kChatMl));
  const std::string first = prompt_of("/v1/responses", stored_request(path));
  EXPECT_EQ(header(response_, "x-quire-ignored"),
            "reasoning.effort, tools.local_shell, tools.web_search, tools.namespace");
  EXPECT_THAT(first,
              AllOf(HasSubstr("in a terminal.\n\nFolder: project."),
                    HasSubstr(R"("name": "apply_patch")"), HasSubstr("x = 1"),
                    HasSubstr(R"(*** Begin Patch\n*** End Patch\n)"), HasSubstr("nothing to do")));
  const std::string second =
      prompt_of("/v1/responses", stored_request(path, R"(,{"role":"assistant","content":"Done."},)"
                                                      R"({"role":"user","content":"And y?"})"));
  EXPECT_EQ(second.substr(0, first.size()), first);
}

}  // namespace
}  // namespace quire::server
