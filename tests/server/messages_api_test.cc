// POST /v1/messages over a fake engine: the translation of its body, the message, the events, and
// the shape of errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "server/service_fixture.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPath = "/v1/messages";
constexpr int kPrompt = 22;  // tokens of the rendered prompt
constexpr const char* kHello = R"("max_tokens":9,"messages":[{"role":"user","content":"hi"}])";
constexpr const char* kTool =
    R"({"name":"get_weather","input_schema":{"type":"object","properties":{}}})";

std::string body_with(const std::string& fields) {
  return std::string("{") + kHello + "," + fields + "}";
}

// Replaces the ids of calls, which differ from run to run.
std::string fixed(const std::string& text) {
  return std::regex_replace(text, std::regex("call_[0-9A-Za-z]{24}"), "call_1");
}

std::string usage(int output, int thinking = 0) {
  return fmt::format(
      R"("usage":{{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)"
      R"("output_tokens":{},"output_tokens_details":{{"thinking_tokens":{}}}}})",
      kPrompt, output, thinking);
}

std::string message(const std::string& content, const std::string& stop, const std::string& usage) {
  return R"({"id":"msg_r1","type":"message","role":"assistant","model":"fake","content":[)" +
         content + R"(],"stop_reason":)" + stop + R"(,"stop_sequence":null,)" + usage + "}";
}

std::string event(const std::string& type, const std::string& fields = "") {
  return fmt::format("event: {0}\ndata: {{\"type\":\"{0}\"{1}{2}}}\n\n", type,
                     fields.empty() ? "" : ",", fields);
}

std::string begin() {
  return event("message_start", R"("message":)" + message("", "null", usage(0))) + event("ping");
}

std::string block_start(int idx, const std::string& block) {
  return event("content_block_start", fmt::format(R"("index":{},"content_block":{})", idx, block));
}

std::string delta(int idx, const std::string& type, const std::string& name,
                  const std::string& text) {
  return event("content_block_delta", fmt::format(R"("index":{},"delta":{{"type":"{}","{}":"{}"}})",
                                                  idx, type, name, text));
}

std::string block_stop(int idx) {
  return event("content_block_stop", fmt::format(R"("index":{})", idx));
}

std::string ending(const std::string& stop_reason, const std::string& usage) {
  return event("message_delta", R"("delta":{"stop_reason":")" + stop_reason +
                                    R"(","stop_sequence":null},)" + usage) +
         event("message_stop");
}

class MessagesApi : public ServiceTest {
 protected:
  std::shared_ptr<FakeExchange> post(const std::string& body) {
    return call("POST", kPath, body, {{"x-request-id", "r1"}});
  }
  std::string rendered(const std::string& body) {
    record_variables();
    respond(kPath, body, "a");
    return variables_;
  }
};

TEST_F(MessagesApi, RespondsWithOneMessage) {
  const auto exchange = post(body_with(R"("system":"s")"));
  EXPECT_EQ(engine_.wait_for(1).sampling.max_tokens, 9);
  engine_.say(1, "ab");
  engine_.say(1, "c", FinishReason::kStop);
  const http::Response response = exchange->wait();
  EXPECT_EQ(response.body, message(R"({"type":"text","text":"abc"})", R"("end_turn")", usage(3)));
  EXPECT_EQ(header(response, "request-id"), "r1");
}

TEST_F(MessagesApi, StreamsText) {
  const auto exchange = post(body_with(R"("stream":true)"));
  engine_.wait_for(1);
  engine_.say(1, "ab");
  exchange->wait_for("ab");
  engine_.say(1, "c", FinishReason::kStop);
  EXPECT_EQ(exchange->wait().body, begin() + block_start(0, R"({"type":"text","text":""})") +
                                       delta(0, "text_delta", "text", "ab") +
                                       delta(0, "text_delta", "text", "c") + block_stop(0) +
                                       ending("end_turn", usage(3)));
}

TEST_F(MessagesApi, StreamsThinkingAndACall) {
  start({.tool_call_parser = "hermes", .reasoning_parser = "think"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const std::string more = std::string(R"("thinking":{"type":"adaptive"},"tools":[)") + kTool + "]";
  const std::string counts = usage(kNumThoughtTokens + kNumCallTokens, kNumThoughtTokens);
  const auto stream = post(body_with(R"("stream":true,)" + more));
  say_thought_and_call(1);
  EXPECT_EQ(
      fixed(stream->wait().body),
      begin() + block_start(0, R"({"type":"thinking","thinking":"","signature":""})") +
          delta(0, "thinking_delta", "thinking", "hm") +
          delta(0, "signature_delta", "signature", "msg_r1") + block_stop(0) +
          block_start(1, R"({"type":"tool_use","id":"call_1","name":"get_weather","input":{}})") +
          delta(1, "input_json_delta", "partial_json", R"({\"a\":)") +
          delta(1, "input_json_delta", "partial_json", "1}") + block_stop(1) +
          ending("tool_use", counts));
  const auto whole = post(body_with(more));
  say_thought_and_call(2);
  EXPECT_EQ(fixed(whole->wait().body),
            message(R"({"type":"thinking","thinking":"hm","signature":"msg_r1"},)"
                    R"({"type":"tool_use","id":"call_1","name":"get_weather","input":{"a":1}})",
                    R"("tool_use")", counts));
}

// A model may write its arguments in several lines; a line of a batch has a whole response.
TEST_F(MessagesApi, ACallIsOneLine) {
  start({.tool_call_parser = "hermes"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const auto whole = post(body_with(std::string(R"("tools":[)") + kTool + "]"));
  engine_.wait_for(1);
  engine_.say(1,
              "<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\r\n\"a\": \"x\\ny\"\n}}\n"
              "</tool_call>",
              FinishReason::kStop);
  const std::string body = whole->wait().body;
  EXPECT_THAT(body, HasSubstr(R"("input":{  "a": "x\ny" }})"));
  EXPECT_EQ(body.find_first_of("\r\n"), std::string::npos);
}

TEST_F(MessagesApi, ShowsNoThinkingThatWasNotAskedFor) {
  start({.reasoning_parser = "think"});
  const auto exchange = post(body_with(R"("thinking":{"type":"disabled"})"));
  engine_.wait_for(1);
  engine_.say(1, "<think>hm</think>a", FinishReason::kStop);
  EXPECT_THAT(exchange->wait().body, HasSubstr(R"("content":[{"type":"text","text":"a"}])"));
}

TEST_F(MessagesApi, SaysWhyItStopped) {
  const auto stop = [&](RequestId id, FinishReason reason, const std::string& text,
                        const std::string& stop_reason) {
    const auto exchange = post(body_with(R"("stop_sequences":["#","END"])"));
    EXPECT_EQ(engine_.wait_for(id).sampling.stop, (std::vector<std::string>{"#", "END"}));
    Output output;
    output.text = text;
    output.token_ids.assign(text.begin(), text.end());
    output.finish_reason = reason;
    output.stop_reason = stop_reason;
    engine_.send(id, std::move(output));
    return exchange->wait().body;
  };
  EXPECT_THAT(stop(1, FinishReason::kStop, "ab", "END"),
              HasSubstr(R"("stop_reason":"stop_sequence","stop_sequence":"END")"));
  EXPECT_THAT(stop(2, FinishReason::kStop, "ab", "2"),
              HasSubstr(R"("stop_reason":"end_turn","stop_sequence":null)"));
  EXPECT_THAT(stop(3, FinishReason::kLength, "123456789", ""),
              HasSubstr(R"("stop_reason":"max_tokens","stop_sequence":null)"));
  EXPECT_THAT(stop(4, FinishReason::kLength, "ab", ""),
              HasSubstr(R"("stop_reason":"model_context_window_exceeded")"));
}

TEST_F(MessagesApi, ACutCallIsText) {
  start({.tool_call_parser = "hermes"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const auto exchange = post(body_with(std::string(R"("tools":[)") + kTool + "]"));
  engine_.wait_for(1);
  engine_.say(1, R"(<tool_call>{"name":"get_weather","arguments":{"a":)", FinishReason::kLength);
  EXPECT_THAT(fixed(exchange->wait().body),
              HasSubstr(R"({"type":"text","text":"<tool_call>{\"name\":\"get_weather\",)"
                        R"(\"arguments\":{\"a\":"}],"stop_reason":"max_tokens")"));
}

TEST_F(MessagesApi, TranslatesAConversationWithTools) {
  EXPECT_THAT(
      rendered(R"({"max_tokens":9,"system":[{"type":"text","text":"Be brief.",
          "cache_control":{"type":"ephemeral"}}],"messages":[
          {"role":"user","content":"Weather?"},
          {"role":"user","content":[{"type":"text","text":"Now."}]},
          {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"text","text":"Let me see."},
            {"type":"tool_use","id":"t1","name":"get_weather","input":{"a":1}},
            {"type":"tool_use","id":"t2","name":"get_time","input":{}}]},
          {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"t1","content":"sun"},
            {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"noon"}]},
            {"type":"text","text":"And?"}]}]})"),
      HasSubstr("'messages': [{'role': 'system', 'content': 'Be brief.'}, "
                "{'role': 'user', 'content': 'Weather?\\nNow.'}, "
                "{'role': 'assistant', 'content': 'Let me see.', 'reasoning_content': 'hm', "
                "'tool_calls': [{'id': 't1', 'type': 'function', 'function': {'name': "
                "'get_weather', 'arguments': {'a': 1}}}, {'id': 't2', 'type': 'function', "
                "'function': {'name': 'get_time', 'arguments': {}}}]}, "
                "{'role': 'tool', 'content': 'sun', 'tool_call_id': 't1', 'name': 'get_weather'}, "
                "{'role': 'tool', 'content': 'noon', 'tool_call_id': 't2', 'name': 'get_time'}, "
                "{'role': 'user', 'content': 'And?'}], 'add_generation_prompt': True"));
}

TEST_F(MessagesApi, SwitchesReasoningInTemplatesThatCan) {
  engine_.chat_template_ = "{{ messages }} {{ enable_thinking }}";
  const auto with = [&](const std::string& fields) {
    return rendered(R"({"max_tokens":2000,"messages":[{"role":"user","content":"q"}])" + fields +
                    "}");
  };
  EXPECT_THAT(with(""), HasSubstr("'enable_thinking': False"));
  EXPECT_THAT(with(R"(,"thinking":{"type":"enabled","budget_tokens":1024})"),
              HasSubstr("'enable_thinking': True"));
  EXPECT_THAT(with(R"(,"thinking":{"type":"adaptive"})"), Not(HasSubstr("enable_thinking")));
  EXPECT_THAT(with(R"(,"chat_template_kwargs":{"enable_thinking":true})"),
              HasSubstr("'enable_thinking': True"));
}

TEST_F(MessagesApi, ContinuesALastMessageOfTheAssistant) {
  start();  // renders other conversations than the request's
  engine_.render_ = [&](const jinja::Value& variables) -> Result<MarkedText> {
    constexpr int kBudget = 1 << 20;
    jinja::Budget budget(kBudget, kBudget);
    variables_ = jinja::to_repr(variables, budget).text;
    const size_t begin = variables_.find("So it");
    return MarkedText{variables_.substr(begin, 40) + "<|end|>", {}};
  };
  respond(kPath, R"({"max_tokens":9,"messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":"So it"}]})",
          "is");
  EXPECT_THAT(variables_, HasSubstr("'add_generation_prompt': False"));
}

TEST_F(MessagesApi, RefusesByNameWithTheRemedy) {
  const auto with_block = [](const std::string& role, const std::string& block) {
    return R"({"max_tokens":9,"messages":[{"role":")" + role + R"(","content":[)" + block + "]}]}";
  };
  expect_refusals(
      kPath,
      {
          {R"({"max_tokens":9})", "messages; got none, expected at least one message"},
          {R"({"messages":[{"role":"user","content":"a"}]})", "max_tokens; got none"},
          {R"({"max_tokens":9,"messages":[]})", "messages; got a list of 0"},
          {R"({"max_tokens":9,"messages":[{"role":"tool","content":""}]})",
           "messages[0].role; got 'tool'"},
          {R"({"max_tokens":9,"messages":[{"role":"user","content":7}]})",
           "messages[0].content; got 7, expected a string or a list of blocks"},
          {with_block("user", R"({"type":"image","source":{}})"),
           "messages[0].content[0].type; got 'image', expected 'text' or 'tool_result'"},
          {with_block("user", R"({"type":"tool_use","id":"a","name":"f","input":{}})"),
           "got 'tool_use', expected 'text' or 'tool_result'"},
          {with_block("user", R"({"type":"tool_result","tool_use_id":"a"})"),
           "messages[0].content[0].tool_use_id; got 'a', expected the id of a call"},
          {with_block("assistant", R"({"type":"thinking","thinking":"x"})"),
           "got a last message without text, expected text to continue; add text to it, or end "
           "with a message of the user"},
          {with_block("user", ""), "messages; got no message with content"},
          {with_block("assistant", R"({"type":"redacted_thinking","data":"x"})"),
           "got no message with content"},
          {with_block("assistant", R"({"type":"tool_use","id":"a","name":"f","input":{}})"),
           "messages; got a tool_use without a result at the end"},
          {body_with(R"("tools":[{"type":"web_serch_20250305","name":"web_search"}])"),
           "tools[0].type; got 'web_serch_20250305', expected 'custom'"},
          {body_with(R"("tools":[{"name":"f"}])"), "tools[0].input_schema; got none"},
          {body_with(R"("tool_choice":{"type":"any"})"), "tool_choice.type; got 'any'"},
          {body_with(R"("tool_choice":{"type":"tool","name":"f"})"), "tool_choice.name; got 'f'"},
          {body_with(R"("thinking":{"type":"enabled"})"), "thinking.budget_tokens; got none"},
          {body_with(R"("thinking":{"type":"enabled","budget_tokens":9})"),
           "thinking.budget_tokens; got 9, expected an integer in [1024"},
          {body_with(R"("thinking":{"type":"enabled","budget_tokens":1024})"),
           "thinking.budget_tokens; got 1024, expected less than max_tokens, which is 9"},
          {body_with(R"("mcp_servers":[{}])"), "mcp_servers; got a list of 1"},
          {body_with(R"("stop_sequences":[""])"), "stop_sequences; got an empty string"},
          {body_with(R"("n":2)"), "n; got 2"},
      });
}

TEST_F(MessagesApi, ErrorsHaveAnthropicsShape) {
  Result<ApiKeys> keys = ApiKeys::create({"a"}, "");
  start({.keys = std::move(*keys), .admission = {.max_num_seqs = 1, .max_num_queued_reqs = 0}});
  const http::Headers key = {{"x-api-key", "a"}};
  const auto error = [&](const std::string& body, const http::Headers& headers,
                         const char* path = kPath) {
    return call("POST", path, body, headers)->wait().body;
  };
  const auto of_type = [](const std::string& type) {
    return HasSubstr(R"({"type":"error","error":{"type":")" + type + R"(","message":")");
  };
  EXPECT_THAT(error("{}", {}), of_type("authentication_error"));
  EXPECT_THAT(error("{}", key), of_type("invalid_request_error"));
  EXPECT_THAT(error(body_with(R"("model":"gpt")"), key), of_type("not_found_error"));
  EXPECT_THAT(error("{}", key, "/v1/messages/batches"), of_type("not_found_error"));
  EXPECT_THAT(get(kPath, key).body, of_type("invalid_request_error"));
  http::Headers old = key;
  old.emplace_back("anthropic-version", "2023-01-01");
  EXPECT_THAT(error("{}", old), HasSubstr("anthropic-version; got '2023-01-01', expected 2023-06"));
  const auto running = call("POST", kPath, std::string("{") + kHello + R"(,"stream":true})", key);
  engine_.wait_for(1);
  EXPECT_THAT(error("{}", key), of_type("rate_limit_error"));
  engine_.say(1, "a");
  running->wait_for("text_delta");
  engine_.fail(1);
  EXPECT_THAT(
      running->wait().body,
      HasSubstr("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""));
}

TEST_F(MessagesApi, ADisconnectCancelsTheRequest) {
  const auto exchange = post(body_with(R"("stream":true)"));
  engine_.wait_for(1);
  engine_.say(1, "a");
  exchange->close();
  EXPECT_FALSE(engine_.is_running(1));
}

TEST_F(MessagesApi, CountsTokens) {
  const auto count = [&](const std::string& body) {
    return call("POST", "/v1/messages/count_tokens", body)->wait();
  };
  EXPECT_EQ(count(R"({"messages":[{"role":"user","content":"hi"}]})").body,
            R"({"input_tokens":22})");
  EXPECT_EQ(count("{}").status, 400);
  EXPECT_EQ(count(body_with(R"("model":"gpt")")).status, 404);
}

}  // namespace
}  // namespace quire::server
