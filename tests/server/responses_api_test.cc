// POST /v1/responses over a fake engine: the translation of its body, the response, the events, and
// stored responses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/json.h"
#include "server/service_fixture.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPath = "/v1/responses";
const http::Headers kId = {{"x-request-id", "r1"}};
constexpr const char* kTool =
    R"({"type":"function","name":"get_weather","parameters":{"type":"object","properties":{}}})";

// Replaces the parts that differ from run to run.
std::string fixed(const std::string& text) {
  const std::string timeless =
      std::regex_replace(text, std::regex(R"("created_at":\d+)"), R"("created_at":0)");
  return std::regex_replace(timeless, std::regex("call_[0-9A-Za-z]{24}"), "call_1");
}

// The response object of a request without further fields.
std::string response(const std::string& status, const std::string& output, const std::string& usage,
                     const std::string& incomplete = "null", const std::string& tools = "[]") {
  return fmt::format(
      R"({{"id":"resp_r1","object":"response","created_at":0,"status":"{}","background":false,)"
      R"("error":null,"incomplete_details":{},"instructions":null,"max_output_tokens":null,)"
      R"("model":"fake","output":{},"parallel_tool_calls":true,"previous_response_id":null,)"
      R"("reasoning":{{"effort":null,"summary":null}},"store":false,"temperature":0.8,)"
      R"("text":{{"format":{{"type":"text"}}}},"tool_choice":"auto","tools":{},)"
      R"("top_logprobs":0,"top_p":0.95,"truncation":"disabled","usage":{},"metadata":{{}}}})",
      status, incomplete, output, tools, usage);
}

std::string usage(int input, int output, int reasoning = 0) {
  return fmt::format(R"({{"input_tokens":{0},"input_tokens_details":{{"cached_tokens":0,)"
                     R"("cache_write_tokens":{0}}},"output_tokens":{1},)"
                     R"("output_tokens_details":{{"reasoning_tokens":{2}}},"total_tokens":{3}}})",
                     input, output, reasoning, input + output);
}

std::string text_part(const std::string& text) {
  return R"({"type":"output_text","annotations":[],"logprobs":[],"text":")" + text + R"("})";
}

std::string message(int idx, const std::string& status, const std::string& content) {
  return fmt::format(
      R"({{"id":"msg_r1_{}","type":"message","status":"{}","role":"assistant","content":[{}]}})",
      idx, status, content);
}

std::string reasoning(int idx, const std::string& status, const std::string& content) {
  return fmt::format(
      R"({{"id":"rs_r1_{}","type":"reasoning","status":"{}","summary":[],"content":[{}]}})", idx,
      status, content);
}

std::string function_call(int idx, const std::string& status, const std::string& arguments) {
  return fmt::format(R"({{"id":"fc_r1_{}","type":"function_call","status":"{}","call_id":"call_1",)"
                     R"("name":"get_weather","arguments":"{}"}})",
                     idx, status, arguments);
}

// A stream of events in which each has the next number.
class EventList {
 public:
  EventList& add(const std::string& type, const std::string& fields) {
    text_ += fmt::format("event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2}}}\n\n",
                         type, num_events_++, fields);
    return *this;
  }
  EventList& begin(const std::string& tools = "[]") {
    const std::string object =
        R"("response":)" + response("in_progress", "[]", "null", "null", tools);
    return add("response.created", object).add("response.in_progress", object);
  }
  EventList& item(const std::string& step, int idx, const std::string& json) {
    return add("response.output_item." + step,
               fmt::format(R"("output_index":{},"item":{})", idx, json));
  }
  EventList& part(const std::string& step, const std::string& id, int idx,
                  const std::string& json) {
    return add("response.content_part." + step,
               place(id, idx) + R"(,"content_index":0,"part":)" + json);
  }
  static std::string place(const std::string& id, int idx) {
    return fmt::format(R"("item_id":"{}","output_index":{})", id, idx);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int num_events_ = 0;
};

class ResponsesApi : public ServiceTest {
 protected:
  // The rendered prompt has this many tokens.
  static constexpr int kPrompt = 22;

  std::shared_ptr<FakeExchange> post(const std::string& body, http::Headers headers = kId) {
    return call("POST", kPath, body, std::move(headers));
  }
  // Returns the template's variables for this body.
  std::string rendered(const std::string& body) {
    record_variables();
    respond(kPath, body, "a");
    return variables_;
  }
};

TEST_F(ResponsesApi, RespondsWithOneObject) {
  const auto exchange = post(R"({"input":"hi"})");
  engine_.wait_for(1);
  engine_.say(1, "ab");
  engine_.say(1, "c", FinishReason::kStop);
  EXPECT_EQ(fixed(exchange->wait().body),
            response("completed", "[" + message(0, "completed", text_part("abc")) + "]",
                     usage(kPrompt, 3)));
}

TEST_F(ResponsesApi, StreamsTextInTheOfficialOrder) {
  const auto exchange = post(R"({"input":"hi","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "ab");
  exchange->wait_for(R"("delta":"ab")");
  engine_.say(1, "c", FinishReason::kStop);
  const std::string place = EventList::place("msg_r1_0", 0) + R"(,"content_index":0)";
  const std::string done = message(0, "completed", text_part("abc"));
  EXPECT_EQ(fixed(exchange->wait().body),
            EventList()
                .begin()
                .item("added", 0, message(0, "in_progress", ""))
                .part("added", "msg_r1_0", 0, text_part(""))
                .add("response.output_text.delta", place + R"(,"delta":"ab","logprobs":[])")
                .add("response.output_text.delta", place + R"(,"delta":"c","logprobs":[])")
                .add("response.output_text.done", place + R"(,"text":"abc","logprobs":[])")
                .part("done", "msg_r1_0", 0, text_part("abc"))
                .item("done", 0, done)
                .add("response.completed",
                     R"("response":)" + response("completed", "[" + done + "]", usage(kPrompt, 3)))
                .text());
}

TEST_F(ResponsesApi, StreamsReasoningAndACall) {
  start({.tool_call_parser = "hermes", .reasoning_parser = "think"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const std::string tools = std::string("[") + kTool + "]";
  const auto exchange = post(R"({"input":"hi","stream":true,"tools":)" + tools + "}");
  say_thought_and_call(1);
  const std::string of_thought = EventList::place("rs_r1_0", 0) + R"(,"content_index":0)";
  const std::string of_call = EventList::place("fc_r1_1", 1);
  const std::string thought = R"({"type":"reasoning_text","text":"hm"})";
  const std::string arguments = R"({\"a\":1})";
  EXPECT_EQ(fixed(exchange->wait().body),
            EventList()
                .begin(tools)
                .item("added", 0, reasoning(0, "in_progress", ""))
                .part("added", "rs_r1_0", 0, R"({"type":"reasoning_text","text":""})")
                .add("response.reasoning_text.delta", of_thought + R"(,"delta":"hm")")
                .add("response.reasoning_text.done", of_thought + R"(,"text":"hm")")
                .part("done", "rs_r1_0", 0, thought)
                .item("done", 0, reasoning(0, "completed", thought))
                .item("added", 1, function_call(1, "in_progress", ""))
                .add("response.function_call_arguments.delta", of_call + R"(,"delta":"{\"a\":")")
                .add("response.function_call_arguments.delta", of_call + R"(,"delta":"1}")")
                .add("response.function_call_arguments.done",
                     of_call + R"(,"name":"get_weather","arguments":")" + arguments + "\"")
                .item("done", 1, function_call(1, "completed", arguments))
                .add("response.completed",
                     R"("response":)" + response("completed",
                                                 "[" + reasoning(0, "completed", thought) + "," +
                                                     function_call(1, "completed", arguments) + "]",
                                                 usage(kPrompt, kNumThoughtTokens + kNumCallTokens,
                                                       kNumThoughtTokens),
                                                 "null", tools))
                .text());
}

TEST_F(ResponsesApi, ACutResponseIsIncomplete) {
  const auto exchange = post(R"({"input":"hi","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "ab", FinishReason::kLength);
  const std::string body = fixed(exchange->wait().body);
  const std::string item = message(0, "incomplete", text_part("ab"));
  EXPECT_THAT(body, HasSubstr(R"("type":"response.output_item.done","sequence_number":7,)"
                              R"("output_index":0,"item":)" +
                              item));
  EXPECT_THAT(body, HasSubstr("event: response.incomplete\n"));
  EXPECT_THAT(body, HasSubstr(response("incomplete", "[" + item + "]", usage(kPrompt, 2),
                                       R"({"reason":"max_output_tokens"})")));
}

TEST_F(ResponsesApi, AFailureEndsTheStreamWithItsError) {
  const auto exchange = post(R"({"input":"hi","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "ab");
  exchange->wait_for("delta");
  engine_.fail(1);
  const std::string body = exchange->wait().body;
  EXPECT_THAT(body, HasSubstr(R"(event: error
data: {"type":"error","sequence_number":5,"code":"server_error","message":"[server] internal)"));
  EXPECT_THAT(body, HasSubstr(R"(event: response.failed
data: {"type":"response.failed","sequence_number":6,"response":{"id":"resp_r1")"));
  EXPECT_THAT(body, HasSubstr(R"("status":"failed")"));
  EXPECT_THAT(body, HasSubstr(R"("error":{"code":"server_error","message":"[server] internal)"));
  EXPECT_THAT(body, Not(HasSubstr("[DONE]")));
}

TEST_F(ResponsesApi, ADisconnectCancelsTheRequest) {
  start({.stored_responses = {.max_responses = 4}});
  const auto exchange = post(R"({"input":"hi","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "a");
  exchange->wait_for("delta");
  exchange->close();
  EXPECT_FALSE(engine_.is_running(1));
}

TEST_F(ResponsesApi, ShowsTheLogprobsOfText) {
  const auto exchange =
      post(R"({"input":"hi","include":["message.output_text.logprobs"],"top_logprobs":1})");
  EXPECT_EQ(engine_.wait_for(1).sampling.logprobs, 1);
  Output output;
  output.text = "a";
  output.token_ids = {'a'};
  output.logprobs = {{{.token_id = 'a', .logprob = -0.5F, .rank = 1},
                      {.token_id = 'b', .logprob = -1.5F, .rank = 2}}};
  output.finish_reason = FinishReason::kStop;
  engine_.send(1, output);
  EXPECT_THAT(exchange->wait().body,
              HasSubstr(R"("logprobs":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":)"
                        R"([{"token":"b","logprob":-1.5,"bytes":[98]}]}],"text":"a")"));
}

TEST_F(ResponsesApi, JoinsTheItemsOfATurn) {
  EXPECT_THAT(
      rendered(R"({"instructions":"Be brief.","input":[
      {"role":"developer","content":"In French."},
      {"role":"user","content":[{"type":"input_text","text":"Weather?"}]},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]},
      {"type":"function_call","call_id":"c1","name":"get_weather","arguments":"{\"a\":1}"},
      {"type":"function_call","call_id":"c2","name":"get_time","arguments":""},
      {"type":"function_call_output","call_id":"c1","output":"sun"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"noon"}]},
      {"role":"user","content":"Thanks"}]})"),
      HasSubstr("'messages': [{'role': 'system', 'content': 'Be brief.\\n\\nIn French.'}, "
                "{'role': 'user', 'content': 'Weather?'}, "
                "{'role': 'assistant', 'content': 'Let me see.', 'reasoning_content': 'hm', "
                "'tool_calls': [{'id': 'c1', 'type': 'function', 'function': {'name': "
                "'get_weather', 'arguments': {'a': 1}}}, {'id': 'c2', 'type': 'function', "
                "'function': {'name': 'get_time', 'arguments': {}}}]}, "
                "{'role': 'tool', 'content': 'sun', 'tool_call_id': 'c1', 'name': "
                "'get_weather'}, "
                "{'role': 'tool', 'content': 'noon', 'tool_call_id': 'c2', 'name': 'get_time'}, "
                "{'role': 'user', 'content': 'Thanks'}], 'add_generation_prompt': True"));
}

TEST_F(ResponsesApi, ShowsToolsInTheFormOfTemplates) {
  engine_.chat_template_ = "{{ messages }} {{ tools }} {{ enable_thinking }}";
  EXPECT_THAT(rendered(R"({"input":"q","reasoning":{"effort":"none"},"tools":[
                  {"type":"function","name":"f","description":"d","strict":true},
                  {"type":"function","name":"g","parameters":{"type":"object"}}]})"),
              HasSubstr("'enable_thinking': False, 'messages': [{'role': 'user', 'content': 'q'}], "
                        "'add_generation_prompt': True, 'tools': [{'type': 'function', 'function': "
                        "{'name': 'f', 'description': 'd', 'parameters': {'type': 'object', "
                        "'properties': {}}}}, {'type': 'function', 'function': {'name': 'g', "
                        "'parameters': {'type': 'object'}}}]"));
}

TEST_F(ResponsesApi, ReadsSamplingFields) {
  const auto exchange = post(
      R"({"input":"q","max_output_tokens":5,"temperature":0.5,"top_p":0.25,"top_k":3,"metadata":{"a":"b"}})");
  const Request request = engine_.wait_for(1);
  EXPECT_EQ(request.sampling.max_tokens, 5);
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_k, 3);
  engine_.say(1, "a", FinishReason::kStop);
  const std::string body = exchange->wait().body;
  for (const char* field : {R"("max_output_tokens":5)", R"("temperature":0.5)", R"("top_p":0.25)",
                            R"("metadata":{"a":"b"})"}) {
    EXPECT_THAT(body, HasSubstr(field));
  }
}

// A compiler whose grammars the fake engine ignores.
ConstraintCompiler compiler_of_anything() {
  ConstraintCompiler compiler;
  compiler.compile = [](const GrammarSpec&) {
    return ConstraintFactory([] { return std::unique_ptr<TokenConstraint>(); });
  };
  return compiler;
}

TEST_F(ResponsesApi, AForcedCallIsACall) {
  start({.constraints = compiler_of_anything()});
  const auto exchange = post(std::string(R"({"input":"q","tool_choice":{"type":"function",)") +
                             R"("name":"get_weather"},"tools":[)" + kTool + "]}");
  engine_.wait_for(1);
  engine_.say(1, R"({"a":1})", FinishReason::kStop);
  EXPECT_THAT(fixed(exchange->wait().body),
              HasSubstr("\"output\":[" + function_call(0, "completed", R"({\"a\":1})") + "]"));
}

TEST_F(ResponsesApi, OnlyAllowedToolsAreShown) {
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  EXPECT_THAT(rendered(R"({"input":"q","tools":[{"type":"function","name":"f"},
                  {"type":"function","name":"g"}],"tool_choice":{"type":"allowed_tools",
                  "mode":"auto","tools":[{"type":"function","name":"g"}]}})"),
              ::testing::AllOf(HasSubstr("'name': 'g'"), Not(HasSubstr("'name': 'f'"))));
}

TEST_F(ResponsesApi, TemplateKwargsReplaceOtherFields) {
  engine_.chat_template_ = "{{ messages }} {{ reasoning_effort }} {{ enable_thinking }}";
  const std::string kwargs =
      R"("chat_template_kwargs":{"reasoning_effort":"mine","enable_thinking":false})";
  const std::string effort = R"("reasoning":{"effort":"low"})";
  for (const std::string& fields : {kwargs + "," + effort, effort + "," + kwargs}) {
    EXPECT_THAT(rendered(R"({"input":"q",)" + fields + "}"),
                ::testing::AllOf(HasSubstr("'reasoning_effort': 'mine'"),
                                 HasSubstr("'enable_thinking': False"), Not(HasSubstr("low"))));
  }
}

TEST_F(ResponsesApi, RefusesByNameWithTheRemedy) {
  const std::vector<std::pair<std::string, std::string>> refusals = {
      {R"({})", "input; got none, expected a string or a list of items"},
      {R"({"input":7})", "input; got 7, expected a string or a list of items"},
      {R"({"input":[]})", "input; got no message with content"},
      {R"({"input":[7]})", "input[0]; got 7, expected an object"},
      {R"({"input":[{"type":"message"}]})", "input[0].role; got none, expected a string"},
      {R"({"input":[{"role":"tool","content":""}]})",
       "input[0].role; got 'tool', expected 'user', 'assistant', 'system' or 'developer'"},
      {R"({"input":[{"role":"user"}]})", "input[0].content; got none"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})",
       "input[0].content[0].type; got 'input_image', expected 'text'"},
      {R"({"input":[{"type":"web_search_cal"}]})", "input[0].type; got 'web_search_cal'"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "expected the item itself"},
      {R"({"input":[{"type":"function_call_output","call_id":"a","output":""}]})",
       "input[0].call_id; got 'a', expected the id of a call in an earlier message"},
      {R"({"input":[{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}]})",
       "input[0].encrypted_content; got reasoning that this server did not write"},
      {R"({"input":"q","tools":[{"type":"web_serch"}]})",
       "tools[0].type; got 'web_serch', expected 'function', 'custom' or a tool that OpenAI runs"},
      {R"({"input":"q","tools":[{"type":"function"}]})", "tools[0].name; got none"},
      {R"({"input":"q","tool_choice":"required"})", "tool_choice; got 'required', expected this"},
      {R"({"input":"q","tool_choice":{"type":"mcp"}})", "tool_choice.type; got 'mcp'"},
      {R"({"input":"q","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}})",
       "tool_choice.tools; got a list of 0, expected at least one tool"},
      {R"({"input":"q","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"f"}]}})",
       "tool_choice.tools[0].type; got 'f', expected 'function' or 'custom'"},
      {R"({"input":"q","tool_choice":{"type":"allowed_tools","mode":"auto",)"
       R"("tools":[{"type":"function","name":"f"}]}})",
       "tool_choice.tools[0].name; got 'f', expected the name of one of the tools"},
      {R"({"input":"q","tool_choice":{"type":"function","name":"f"}})",
       "tool_choice.name; got 'f', expected the name of one of the tools"},
      {R"({"input":"q","background":true})", "background; got true, expected false"},
      {R"({"input":"q","store":true})", "unless its operator allows it"},
      {R"({"input":"q","previous_response_id":"resp_1"})", "send the whole conversation"},
      {R"({"input":"q","conversation":"c"})", "conversation; got 'c', expected previous_response"},
      {R"({"input":"q","truncation":"auto"})", "truncation; got 'auto', expected 'disabled'"},
      {R"({"input":"q","include":["secrets"]})", "include; got 'secrets'"},
      {R"({"input":"q","top_logprobs":2})", "top_logprobs; got 2 without logprobs"},
      {R"({"input":"q","max_tokens":2})", "max_tokens; got 2, expected max_output_tokens"},
      {R"({"input":"q","max_output_tokens":0})", "max_output_tokens; got 0"},
      {R"({"input":"q","messages":[]})", "messages; got a list of 0, expected input"},
      {R"({"input":"q","n":2})", "n; got 2, expected 1: a request of this API has one response"},
      {R"({"input":"q","metadata":{"a":1}})", "metadata.a; got 1, expected a string"},
      {R"({"input":"q","text":{"format":{"type":"xml"}}})", "text.format.type; got 'xml'"},
      {R"({"input":"q","text":{"format":{"type":"json_schema"}}})",
       "text.format; got the type 'json_schema' without a schema"},
      {R"({"input":"q","temperature":-1})", "temperature"},
  };
  expect_refusals(kPath, refusals);
}

// --- Stored responses ---

// After the head of a stream, a larger first event would close the connection.
TEST_F(ResponsesApi, RefusesFieldsThatAreTooLongToRepeat) {
  const std::string half(kMaxRepeatedBytes / 2, 'x');
  expect_refusals(
      kPath,
      {{R"({"input":"a","metadata":{"a":")" + half + half + R"("}})", "metadata; got 393"},
       {R"({"input":"a","reasoning":{"a":")" + half + R"("},"text":{"a":")" + half + R"("}})",
        "in the fields that the response repeats, expected at most 393216"}});
  respond(kPath, R"({"input":"a","metadata":{"a":")" + half + R"("}})", "b");
}

// The writer keeps parts of the body while it counts.
TEST_F(ResponsesApi, HoldsTheBodysShareUntilTheResponseEnds) {
  start();
  auto share = std::make_shared<int>();
  const auto exchange = std::make_shared<FakeExchange>();
  service_->handle({.method = "POST",
                    .path = kPath,
                    .query = "",
                    .headers = {{"content-type", "application/json"}},
                    .body = R"({"input":"a"})",
                    .peer = "test",
                    .body_share = share},
                   exchange);
  engine_.wait_for(1);
  engine_.say(1, "b");
  EXPECT_GT(share.use_count(), 1);
  engine_.say(1, "c", FinishReason::kStop);
  exchange->wait();
  end();
  EXPECT_EQ(share.use_count(), 1);
}

TEST(ParseResponses, ShareTheItemsOfAStoredConversation) {
  const auto item = std::make_shared<const std::string>(
      R"({"id":"i","type":"message","role":"user","content":"a"})");
  const auto stored = std::make_shared<const StoredResponse>(
      StoredResponse{.items = {item}, .output = {}, .body = {}});
  const StoredResponses responses = {.is_enabled = true,
                                     .find = [&](std::string_view) { return stored; }};
  const auto parsed = parse_responses_request(R"({"input":"b","previous_response_id":"r"})",
                                              RequestDefaults(), responses);
  ASSERT_FALSE(parsed.error) << parsed.error->message;
  ASSERT_EQ(parsed.request.items.size(), 2U);
  EXPECT_EQ(parsed.request.items[0], item);
}

class StoredResponsesTest : public ResponsesApi {
 protected:
  // Responds to a request with this text, and returns the response's id.
  std::string id_of(const std::string& body, const std::string& text, http::Headers headers = {}) {
    const std::string sent = respond(kPath, body, text, std::move(headers));
    const auto document = JsonDocument::parse(sent, "body");
    EXPECT_TRUE(document.ok());
    return std::string(std::string_view(document->root()["id"]));
  }
  std::string path_of(const std::string& id) { return std::string(kPath) + "/" + id; }
};

TEST_F(StoredResponsesTest, ContinueAConversation) {
  start({.stored_responses = {.max_responses = 4}});
  record_variables();
  const std::string first = id_of(R"({"input":"one","instructions":"old"})", "two");
  const std::string second =
      id_of(R"({"input":"three","previous_response_id":")" + first + R"("})", "four");
  EXPECT_THAT(variables_, HasSubstr("[{'role': 'user', 'content': 'one'}, {'role': 'assistant', "
                                    "'content': 'two'}, {'role': 'user', 'content': 'three'}]"));
  const std::string items = get(path_of(second) + "/input_items").body;
  EXPECT_THAT(items, HasSubstr(R"("object":"list")"));
  EXPECT_THAT(items, ::testing::ContainsRegex("three.*two.*one.*has_more\":false"));
  EXPECT_THAT(get(path_of(second)).body, HasSubstr(R"("previous_response_id":")" + first));
}

TEST_F(StoredResponsesTest, ContinueAConversationWithACallThatWasCut) {
  start({.stored_responses = {.max_responses = 4}, .constraints = compiler_of_anything()});
  record_variables();
  const auto cut =
      post(std::string(R"({"input":"one","tool_choice":"required","tools":[)") + kTool + "]}");
  engine_.wait_for(1);
  engine_.say(1, R"([{"name":"get_weather","parameters":{"a)", FinishReason::kLength);
  const std::string body = cut->wait().body;
  EXPECT_THAT(body, HasSubstr(R"("type":"message","status":"incomplete")"));
  std::smatch id;
  ASSERT_TRUE(std::regex_search(body, id, std::regex("resp_[0-9A-Za-z]+")));
  const auto next = post(R"({"input":"two","previous_response_id":")" + id.str() + R"("})");
  engine_.wait_for(2);
  engine_.say(2, "three", FinishReason::kStop);
  EXPECT_EQ(next->wait().status, 200);
  EXPECT_THAT(variables_, HasSubstr("[{'role': 'user', 'content': 'one'}, "
                                    "{'role': 'assistant', 'content': "
                                    "'[{\"name\":\"get_weather\",\"parameters\":{\"a'}, "
                                    "{'role': 'user', 'content': 'two'}]"));
}

TEST(ResponsesRequestTest, ALongStoredConversationIsNotContinued) {
  RequestDefaults defaults;
  defaults.limits.max_stored_conversation = 100;
  const auto continued = [&](size_t num_bytes) {
    const auto response = std::make_shared<StoredResponse>();
    response->items = {std::make_shared<const std::string>(R"({"role":"user","content":")" +
                                                           std::string(num_bytes, 'a') + R"("})")};
    const StoredResponses stored = {.is_enabled = true,
                                    .find = [&](std::string_view) { return response; }};
    return parse_responses_request(R"({"input":"q","previous_response_id":"r"})", defaults, stored)
        .error;
  };
  EXPECT_FALSE(continued(10));
  const auto error = continued(100);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("[request] previous_response_id; got a conversation of "));
}

TEST_F(StoredResponsesTest, AreReadAndDeletedByTheirKeyAlone) {
  Result<ApiKeys> keys = ApiKeys::create({"a", "b"}, "");
  start({.keys = std::move(*keys), .stored_responses = {.max_responses = 4}});
  const http::Headers mine = {{"x-api-key", "a"}};
  const http::Headers others = {{"x-api-key", "b"}};
  const std::string id = id_of(R"({"input":"one"})", "two", mine);
  EXPECT_THAT(get(path_of(id), mine).body, HasSubstr(R"("text":"two")"));
  EXPECT_EQ(get(path_of(id), others).status, 404);
  EXPECT_EQ(call("DELETE", path_of(id), "", others)->wait().status, 404);
  const http::Response refused =
      post(R"({"input":"x","previous_response_id":")" + id + R"("})", others)->wait(400);
  EXPECT_THAT(refused.body, HasSubstr("previous_response_not_found"));
  EXPECT_EQ(call("DELETE", path_of(id), "", mine)->wait().body,
            R"({"id":")" + id + R"(","object":"response","deleted":true})");
  EXPECT_EQ(get(path_of(id), mine).status, 404);
}

TEST_F(StoredResponsesTest, MakeRoomForLaterOnes) {
  start({.stored_responses = {.max_responses = 2}});
  const std::string first = id_of(R"({"input":"one"})", "a");
  const std::string unkept = id_of(R"({"input":"one","store":false})", "a");
  const std::string second = id_of(R"({"input":"two"})", "b");
  EXPECT_EQ(get(path_of(unkept)).status, 404);
  EXPECT_EQ(get(path_of(first)).status, 200);
  const std::string third = id_of(R"({"input":"three"})", "c");
  EXPECT_EQ(get(path_of(first)).status, 404);
  EXPECT_EQ(get(path_of(second)).status, 200);
  EXPECT_EQ(get(path_of(third)).status, 200);
}

TEST(ResponseStoreTest, BoundsItsBytes) {
  ResponseStore store({.max_responses = 100, .max_bytes = 4096});
  const auto of_size = [](size_t num_bytes) {
    return StoredResponse{.items = {}, .output = {}, .body = std::string(num_bytes, 'x')};
  };
  store.add(-1, "a", of_size(1500));
  store.add(-1, "b", of_size(1500));
  store.add(-1, "c", of_size(1500));
  EXPECT_EQ(store.find(-1, "a"), nullptr);
  EXPECT_NE(store.find(-1, "b"), nullptr);
  store.add(-1, "large", of_size(5000));
  EXPECT_EQ(store.find(-1, "large"), nullptr);
  EXPECT_NE(store.find(-1, "b"), nullptr) << "a response that never fits removes no other";
  EXPECT_TRUE(store.remove(-1, "c"));
  EXPECT_FALSE(store.remove(-1, "c"));
}

TEST_F(StoredResponsesTest, TheirItemsComeInPages) {
  start({.stored_responses = {.max_responses = 2}});
  const std::string id = id_of(R"({"input":[{"role":"user","content":"a","id":"i1"},
      {"role":"user","content":"b","id":"i2"},{"role":"user","content":"c","id":"i3"}]})",
                               "d");
  const auto page = [&](const std::string& query) {
    auto exchange = std::make_shared<FakeExchange>();
    service_->handle({.method = "GET",
                      .path = path_of(id) + "/input_items",
                      .query = query,
                      .headers = {},
                      .body = "",
                      .peer = ""},
                     exchange);
    return exchange->wait();
  };
  EXPECT_EQ(page("order=asc&limit=1&after=i1").body,
            R"({"object":"list","data":[{"type":"message","role":"user","content":"b","id":"i2"}],)"
            R"("first_id":"i2","last_id":"i2","has_more":true})");
  EXPECT_THAT(page("limit=2").body, HasSubstr(R"("first_id":"i3","last_id":"i2","has_more":true)"));
  EXPECT_EQ(page("limit=0").status, 400);
  EXPECT_EQ(page("order=up").status, 400);
  EXPECT_THAT(page("after=i9").body, HasSubstr("after; got 'i9', expected the id of one of"));
}

}  // namespace
}  // namespace quire::server
