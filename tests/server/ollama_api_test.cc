// Ollama's routes over a fake engine: the translation of their bodies, the object, the stream, the
// model's description, and the shape of errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "server/service_fixture.h"

namespace quire::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kChat = "/api/chat";
constexpr const char* kGenerate = "/api/generate";
constexpr int kPrompt = 22;  // tokens of the rendered prompt
constexpr const char* kTool =
    R"({"type":"function","function":{"name":"get_weather","description":"d",)"
    R"("parameters":{"type":"object","properties":{}}}})";

std::string chat_with(const std::string& fields = "") {
  return R"({"model":"fake","messages":[{"role":"user","content":"hi"}])" +
         (fields.empty() ? "" : "," + fields) + "}";
}
std::string generate_with(const std::string& fields = "") {
  return R"({"model":"fake","prompt":"hi")" + (fields.empty() ? "" : "," + fields) + "}";
}
std::string options(const std::string& fields) {
  return chat_with(R"("options":{)" + fields + "}");
}

// Replaces the times and the ids of calls, which differ from run to run.
std::string fixed(std::string text) {
  text = std::regex_replace(text, std::regex("call_[0-9A-Za-z]{24}"), "call_1");
  text = std::regex_replace(text,
                            std::regex(R"("created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")"),
                            R"("created_at":"T")");
  return std::regex_replace(text, std::regex(R"(_duration":\d+)"), R"(_duration":1)");
}

std::string object(const std::string& text, const std::string& rest) {
  return R"({"model":"fake","created_at":"T",)" + text + rest + "}";
}
std::string message(const std::string& content, const std::string& more = "") {
  return R"("message":{"role":"assistant","content":")" + content + "\"" + more + "}";
}
std::string ending(const std::string& reason, int num_tokens) {
  return fmt::format(R"(,"done":true,"done_reason":"{}","total_duration":1,"load_duration":1,)"
                     R"("prompt_eval_count":{},"prompt_eval_duration":1,"eval_count":{},)"
                     R"("eval_duration":1)",
                     reason, kPrompt, num_tokens);
}
constexpr const char* kMore = R"(,"done":false)";

class OllamaApi : public ServiceTest {
 protected:
  std::string rendered(const std::string& body, const std::string& path = kChat) {
    record_variables();
    respond(path, body, "a");
    return variables_;
  }
  // The sampling parameters of a request with these options, by the order of requests.
  SamplingParams sampling(const std::string& fields) {
    const auto exchange = call("POST", kChat, options(fields));
    const SamplingParams params = engine_.wait_for(++num_sent_).sampling;
    engine_.say(num_sent_, "a", FinishReason::kStop);
    EXPECT_EQ(exchange->wait().status, 200);
    return params;
  }

  RequestId num_sent_ = 0;
};

TEST_F(OllamaApi, RespondsWithOneObject) {
  const auto exchange = call("POST", kChat, chat_with(R"("stream":false)"));
  engine_.wait_for(1);
  engine_.say(1, "ab");
  engine_.say(1, "c", FinishReason::kLength);
  const http::Response response = exchange->wait();
  EXPECT_EQ(fixed(response.body), object(message("abc"), ending("length", 3)));
  EXPECT_EQ(response.content_type, "application/json");
}

TEST_F(OllamaApi, StreamsObjectsByDefault) {
  const auto exchange = call("POST", kChat, chat_with());
  engine_.wait_for(1);
  engine_.say(1, "ab");
  exchange->wait_for("ab");
  engine_.say(1, "c", FinishReason::kStop);
  const http::Response response = exchange->wait();
  EXPECT_EQ(fixed(response.body), object(message("ab"), kMore) + "\n" +
                                      object(message("c"), kMore) + "\n" +
                                      object(message(""), ending("stop", 3)) + "\n");
  EXPECT_EQ(response.content_type, "application/x-ndjson");
}

TEST_F(OllamaApi, GeneratesFromAPrompt) {
  const auto whole = call("POST", kGenerate, generate_with(R"("stream":false)"));
  engine_.wait_for(1);
  engine_.say(1, "ab", FinishReason::kStop);
  EXPECT_EQ(fixed(whole->wait().body), object(R"("response":"ab")", ending("stop", 2)));
  const auto stream = call("POST", kGenerate, generate_with());
  engine_.wait_for(2);
  engine_.say(2, "ab", FinishReason::kStop);
  EXPECT_EQ(fixed(stream->wait().body), object(R"("response":"ab")", kMore) + "\n" +
                                            object(R"("response":"")", ending("stop", 2)) + "\n");
  record_variables();
  call("POST", kGenerate, generate_with(R"("system":"s")"));
  engine_.wait_for(3);
  EXPECT_THAT(variables_, HasSubstr("'messages': [{'role': 'system', 'content': 's'}, {'role': "
                                    "'user', 'content': 'hi'}], 'add_generation_prompt': True"));
}

TEST_F(OllamaApi, ARawPromptHasNoTemplate) {
  const auto exchange =
      call("POST", kGenerate, generate_with(R"("raw":true,"stream":false,"options":{"seed":7})"));
  const Request request = engine_.wait_for(1);
  EXPECT_EQ(request.prompt_token_ids, (std::vector<int32_t>{'h', 'i'}));
  EXPECT_TRUE(request.add_special_tokens);
  EXPECT_EQ(request.sampling.seed, 7U);
  EXPECT_EQ(request.sampling.max_tokens, engine_.info_.max_model_len - 2);
  engine_.say(1, "<think>ab", FinishReason::kStop);
  EXPECT_THAT(exchange->wait().body, HasSubstr(R"("response":"<think>ab")"));
}

TEST_F(OllamaApi, SendsThinkingAndCalls) {
  start({.tool_call_parser = "hermes", .reasoning_parser = "think"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const std::string more = std::string(R"("tools":[)") + kTool + "]";
  const std::string calls =
      R"(,"tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_weather",)"
      R"("arguments":{"a":1}}}])";
  const std::string end = ending("stop", kNumThoughtTokens + kNumCallTokens);
  const auto stream = call("POST", kChat, chat_with(more));
  say_thought_and_call(1);
  EXPECT_EQ(fixed(stream->wait().body), object(message("", R"(,"thinking":"hm")"), kMore) + "\n" +
                                            object(message("", calls), kMore) + "\n" +
                                            object(message(""), end) + "\n");
  const auto whole = call("POST", kChat, chat_with(R"("stream":false,)" + more));
  say_thought_and_call(2);
  EXPECT_EQ(fixed(whole->wait().body), object(message("", R"(,"thinking":"hm")" + calls), end));
  const auto silent = call("POST", kChat, chat_with(R"("think":false,)" + more));
  say_thought_and_call(3);
  EXPECT_THAT(silent->wait().body, Not(HasSubstr("hm")));
}

// A model may write its arguments in several lines; an object of a stream has one.
TEST_F(OllamaApi, ACallIsOneLine) {
  start({.tool_call_parser = "hermes"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const auto exchange = call("POST", kChat, chat_with(std::string(R"("tools":[)") + kTool + "]"));
  engine_.wait_for(1);
  engine_.say(1,
              "<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\r\n\"a\": \"x\\ny\"\n}}\n"
              "</tool_call>",
              FinishReason::kStop);
  const std::string body = exchange->wait().body;
  EXPECT_THAT(body, HasSubstr(R"("arguments":{  "a": "x\ny" }}})"));
  EXPECT_EQ(std::ranges::count(body, '\n'), 2);  // the call, and the end
  EXPECT_EQ(std::ranges::count(body, '\r'), 0);
}

TEST_F(OllamaApi, ACutCallIsText) {
  start({.tool_call_parser = "hermes"});
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  const auto exchange = call("POST", kChat, chat_with(std::string(R"("tools":[)") + kTool + "]"));
  engine_.wait_for(1);
  engine_.say(1, R"(<tool_call>{"name":"get_weather","arguments":{"a":)", FinishReason::kLength);
  const std::string body = exchange->wait().body;
  EXPECT_THAT(body, HasSubstr(R"("content":"<tool_call>{\"name\":\"get_weather\",)"
                              R"(\"arguments\":{\"a\":")"));
  EXPECT_THAT(body, HasSubstr(R"("done_reason":"length")"));
}

TEST_F(OllamaApi, SendsLogprobsOfEveryToken) {
  const auto send = [&](RequestId id) {
    EXPECT_EQ(engine_.wait_for(id).sampling.logprobs, 1);
    Output output;
    output.token_ids = {'a'};  // the first half of a character, for instance
    output.logprobs = {{{'a', -0.5F, 1}, {'b', -1.0F, 2}}};
    engine_.send(id, output);
    output.text = "ac";
    output.token_ids = {'c'};
    output.logprobs = {{{'c', -0.25F, 1}, {'d', -2.0F, 2}}};
    output.finish_reason = FinishReason::kStop;
    engine_.send(id, std::move(output));
  };
  const std::string logprobs =
      R"(,"logprobs":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
      R"({"token":"b","logprob":-1,"bytes":[98]}]},{"token":"c","logprob":-0.25,"bytes":[99],)"
      R"("top_logprobs":[{"token":"d","logprob":-2,"bytes":[100]}]}])";
  const std::string fields = R"("logprobs":true,"top_logprobs":1)";
  const auto stream = call("POST", kChat, chat_with(fields));
  send(1);
  EXPECT_EQ(fixed(stream->wait().body), object(message("ac"), kMore + logprobs) + "\n" +
                                            object(message(""), ending("stop", 2)) + "\n");
  const auto whole = call("POST", kGenerate, generate_with(R"("stream":false,)" + fields));
  send(2);
  EXPECT_EQ(fixed(whole->wait().body), object(R"("response":"ac")", ending("stop", 2) + logprobs));
}

TEST_F(OllamaApi, TranslatesOptions) {
  const SamplingParams params = sampling(
      R"("temperature":0.5,"top_k":3,"top_p":0.25,"min_p":0.125,"stop":["#"],"seed":-5,)"
      R"("repeat_penalty":1.5,"presence_penalty":1,"frequency_penalty":-1,"num_predict":9,)"
      R"("repeat_last_n":-1,"penalize_newline":true)");
  EXPECT_EQ(params.temperature, 0.5F);
  EXPECT_EQ(params.top_k, 3);
  EXPECT_EQ(params.top_p, 0.25F);
  EXPECT_EQ(params.min_p, 0.125F);
  EXPECT_EQ(params.stop, std::vector<std::string>{"#"});
  EXPECT_EQ(params.seed, static_cast<uint64_t>(-5));
  EXPECT_EQ(params.repetition_penalty, 1.5F);
  EXPECT_EQ(params.presence_penalty, 1.0F);
  EXPECT_EQ(params.frequency_penalty, -1.0F);
  EXPECT_EQ(params.max_tokens, 9);
}

TEST_F(OllamaApi, AcceptsOptionsThatChangeNothing) {
  const SamplingParams params = sampling(
      R"("mirostat":0,"mirostat_tau":5,"mirostat_eta":0.1,"tfs_z":1,"typical_p":1.0,"num_keep":4,)"
      R"("num_ctx":64,"num_gpu":99,"num_thread":8,"use_mmap":true,"seed":-1,"num_predict":-1,)"
      R"("repeat_last_n":33,"penalize_newline":false,"temperature":null)");
  EXPECT_FALSE(params.seed.has_value());
  EXPECT_EQ(params.max_tokens, engine_.info_.max_model_len - kPrompt);
  EXPECT_EQ(sampling(R"("repeat_last_n":0,"repeat_penalty":1.5)").repetition_penalty, 1.0F);
}

// Clients send Ollama's usual window of 64 without knowing of the model's penalty.
TEST_F(OllamaApi, AcceptsAWindowBesideAPenaltyOfTheModelsFiles) {
  engine_.repetition_penalty_ = 1.25F;
  start({});
  EXPECT_EQ(sampling(R"("repeat_last_n":33)").repetition_penalty, 1.25F);
  EXPECT_EQ(sampling(R"("repeat_last_n":0)").repetition_penalty, 1.0F);
}

// A client that sends them all is served, and the header says what it does not get.
TEST_F(OllamaApi, NamesOptionsThatItIgnores) {
  const auto ignored = [&](const std::string& members, const char* path = kChat) {
    const auto exchange = call("POST", path, options(members));
    engine_.wait_for(++num_sent_);
    engine_.say(num_sent_, "x", FinishReason::kStop);
    return header(exchange->wait(200), "x-quire-ignored");
  };
  EXPECT_EQ(ignored(R"("num_ctx":65,"repeat_last_n":32,"repeat_penalty":1.1)"),
            "options.num_ctx, options.repeat_last_n");
  EXPECT_EQ(ignored(R"("penalize_newline":false,"presence_penalty":1)"),
            "options.penalize_newline");
  EXPECT_EQ(ignored(R"("num_ctx":64,"repeat_last_n":-1,"repeat_penalty":1.1)"), "");
  EXPECT_EQ(ignored(R"("num_ctx":2048,"repeat_last_n":64)"), "options.num_ctx");
  EXPECT_EQ(ignored(R"("typical_p":1)"), "");
  // The example of Ollama's documentation that has all options.
  EXPECT_EQ(
      ignored(R"("num_keep":5,"seed":42,"num_predict":40,"top_k":20,"top_p":0.9,"min_p":0.0,)"
              R"("typical_p":0.7,"repeat_last_n":33,"temperature":0.8,"repeat_penalty":1.2,)"
              R"("presence_penalty":1.5,"frequency_penalty":1.0,"penalize_newline":true,)"
              R"("stop":["\n","user:"],"numa":false,"num_ctx":1024,"num_batch":2,"num_gpu":1,)"
              R"("main_gpu":0,"use_mmap":true,"num_thread":8)"),
      "options.typical_p, options.num_ctx, options.repeat_last_n");
}

TEST_F(OllamaApi, ATopPOf0LeavesOneToken) {
  const SamplingParams params = sampling(R"("top_p":0)");
  EXPECT_GT(params.top_p, 0.0F);
  EXPECT_LT(params.top_p, 1e-30F);
}

TEST_F(OllamaApi, TakesOllamasDefaultsForLongConversations) {
  respond(kChat, chat_with(R"("truncate":true,"shift":true)"), "a");
}

TEST_F(OllamaApi, AServedModelIsPulled) {
  const http::Response stream = call("POST", "/api/pull", R"({"model":"Alias:latest"})")->wait(200);
  EXPECT_EQ(stream.body, "{\"status\":\"pulling manifest\"}\n{\"status\":\"success\"}\n");
  EXPECT_EQ(stream.content_type, "application/x-ndjson");
  const http::Response whole =
      call("POST", "/api/pull", R"({"name":"fake","stream":false})")->wait(200);
  EXPECT_EQ(whole.body, R"({"status":"success"})");
  EXPECT_EQ(whole.content_type, "application/json");
  for (const char* both : {R"({"model":"fake","name":"x"})", R"({"name":"x","model":"fake"})"}) {
    EXPECT_EQ(call("POST", "/api/pull", both)->wait().status, 200) << both;
    EXPECT_EQ(call("POST", "/api/show", both)->wait().status, 200) << both;
  }
  for (const char* none : {"{}", R"({"name":""})", R"({"model":"","name":null})"}) {
    EXPECT_THAT(call("POST", "/api/pull", none)->wait(400).body, HasSubstr("got no model")) << none;
  }
  EXPECT_EQ(call("POST", "/api/pull", R"({"model":"llama3.2"})")->wait(404).body,
            R"({"error":"the model 'llama3.2' is not served; expected one of 'fake', 'alias'. The )"
            R"(server downloads no models: run 'quire pull NAME' on its machine, then start it )"
            R"(with that model"})");
}

// The supervisor reports how long the request waited for the model's process.
TEST_F(OllamaApi, TheLoadTimeIsPartOfTheWholeTime) {
  const auto exchange =
      call("POST", kChat, chat_with(R"("stream":false)"), {{"x-quire-load-ns", "5000000000"}});
  engine_.wait_for(1);
  engine_.say(1, "a", FinishReason::kStop);
  const std::string body = exchange->wait().body;
  EXPECT_THAT(body, HasSubstr(R"("load_duration":5000000000,)"));
  EXPECT_TRUE(std::regex_search(body, std::regex(R"("total_duration":[5-9]\d{9},)"))) << body;
}

TEST_F(OllamaApi, RestrictsTheText) {
  ServiceConfig config;
  GrammarSpec compiled;
  config.constraints.compile = [&](const GrammarSpec& wanted) -> Result<ConstraintFactory> {
    compiled = wanted;
    return invalid_argument("[grammar] not here");
  };
  start(std::move(config));
  const std::string refused = R"({"error":"[grammar] not here"})";
  EXPECT_EQ(call("POST", kChat, chat_with(R"("format":"json")"))->wait().body, refused);
  EXPECT_EQ(compiled.kind, GrammarSpec::Kind::kJsonObject);
  const std::string schema = R"({"type":"object"})";
  EXPECT_EQ(call("POST", kGenerate, generate_with(R"("format":)" + schema))->wait().body, refused);
  EXPECT_EQ(compiled.kind, GrammarSpec::Kind::kJsonSchema);
  EXPECT_EQ(compiled.text, schema);
  respond(kChat, chat_with(R"("format":"")"), "a");
}

TEST_F(OllamaApi, TranslatesAConversationWithTools) {
  EXPECT_THAT(
      rendered(R"({"messages":[{"role":"system","content":"Be brief."},
          {"role":"user","content":"Weather?","images":[]},
          {"role":"assistant","content":"","thinking":"hm","tool_calls":[
            {"function":{"name":"get_weather","arguments":{"a":1}}},
            {"id":"t2","function":{"name":"get_time","arguments":{}}},
            {"function":{"name":"get_time"}}]},
          {"role":"tool","tool_name":"get_time","content":"noon"},
          {"role":"tool","content":"sun"},
          {"role":"tool","tool_name":"other","content":"x"},
          {"role":"user","content":"And?"}]})"),
      HasSubstr("'messages': [{'role': 'system', 'content': 'Be brief.'}, "
                "{'role': 'user', 'content': 'Weather?'}, "
                "{'role': 'assistant', 'content': '', 'reasoning_content': 'hm', "
                "'tool_calls': [{'id': 'call00000', 'type': 'function', 'function': {'name': "
                "'get_weather', 'arguments': {'a': 1}}}, {'id': 't2', 'type': 'function', "
                "'function': {'name': 'get_time', 'arguments': {}}}, {'id': 'call00001', 'type': "
                "'function', 'function': {'name': 'get_time', 'arguments': {}}}]}, "
                "{'role': 'tool', 'content': 'noon', 'tool_call_id': 't2', 'name': 'get_time'}, "
                "{'role': 'tool', 'content': 'sun', 'tool_call_id': 'call00000', 'name': "
                "'get_weather'}, "
                "{'role': 'tool', 'content': 'x', 'tool_call_id': 'call00002', 'name': 'other'}, "
                "{'role': 'user', 'content': 'And?'}], 'add_generation_prompt': True"));
}

TEST_F(OllamaApi, SwitchesReasoningInTemplatesThatCan) {
  start({.reasoning_parser = "think"});
  engine_.chat_template_ = "{{ messages }} {{ enable_thinking }} {{ reasoning_effort }}";
  EXPECT_THAT(rendered(chat_with()), Not(HasSubstr("enable_thinking")));
  EXPECT_THAT(rendered(chat_with(R"("think":true)")), HasSubstr("'enable_thinking': True"));
  EXPECT_THAT(rendered(chat_with(R"("think":false)")), HasSubstr("'enable_thinking': False"));
  EXPECT_THAT(rendered(chat_with(R"("think":"low")")), HasSubstr("'reasoning_effort': 'low'"));
}

TEST_F(OllamaApi, ContinuesALastMessageOfTheAssistant) {
  start();  // renders other conversations than the request's
  engine_.render_ = [&](const jinja::Value& variables) -> Result<MarkedText> {
    constexpr int kBudget = 1 << 20;
    jinja::Budget budget(kBudget, kBudget);
    variables_ = jinja::to_repr(variables, budget).text;
    const size_t begin = variables_.find("So it");
    return MarkedText{variables_.substr(begin, 40) + "<|end|>", {}};
  };
  respond(kChat, R"({"messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":"So it"}]})",
          "is");
  EXPECT_THAT(variables_, HasSubstr("'add_generation_prompt': False"));
}

TEST_F(OllamaApi, ARequestWithoutAPromptFindsTheModelLoaded) {
  const std::string end = R"(,"done":true,"done_reason":"load")";
  const auto loaded = [&](const std::string& path, const std::string& body) {
    return fixed(call("POST", path, body)->wait().body);
  };
  EXPECT_EQ(loaded(kGenerate, R"({"model":"fake","keep_alive":"5m"})"),
            object(R"("response":"")", end));
  EXPECT_EQ(loaded(kChat, R"({"model":"fake","messages":[],"keep_alive":-1})"),
            object(message(""), end));
  const http::Response unload =
      call("POST", kChat, R"({"model":"fake","messages":[],"keep_alive":"0s"})")->wait(200);
  EXPECT_EQ(fixed(unload.body), object(message(""), R"(,"done":true,"done_reason":"unload")"));
  EXPECT_EQ(header(unload, "x-quire-ignored"), "keep_alive") << "the model stays loaded";
  EXPECT_EQ(call("POST", kChat, R"({"model":"other"})")->wait().status, 404);
}

TEST_F(OllamaApi, RefusesByNameWithTheRemedy) {
  const auto one = [](const std::string& message) { return R"({"messages":[)" + message + "]}"; };
  expect_refusals(
      kChat,
      {
          {options(R"("mirostat":1)"), "options.mirostat; got 1, expected 0: this server does not"},
          {options(R"("tfs_z":0.5)"), "options.tfs_z; got 0.5, expected 1"},
          {options(R"("typical_p":"a")"), "options.typical_p; got 'a', expected a number"},
          {options(R"("typical_p":2)"), "options.typical_p; got 2, expected a number"},
          {options(R"("top_p":2)"), "options.top_p; got 2, expected a number"},
          {options(R"("repeat_penalty":0)"), "options.repeat_penalty; got 0"},
          {options(R"("temprature":1)"),
           "options; got an unknown member 'temprature', expected one of Ollama's API; did you "
           "mean 'temperature'?"},
          {options(R"("numctx":1)"), "did you mean 'num_ctx'?"},
          {options(R"("xyzzy":1)"), "options; got an unknown member 'xyzzy', expected one of"},
          {options(R"("num_ctx":-1)"), "options.num_ctx; got -1"},
          {options(R"("num_predict":-3)"), "options.num_predict; got -3"},
          {options(R"("seed":1.5)"), "options.seed; got 1.5"},
          {options(R"("stop":["a",7])"), "options.stop; got"},
          {options(R"("stop":[""])"), "[request] options.stop; got an empty string, expected"},
          {chat_with(R"("n":5)"), "n; got 5, expected 1: a request of this API has one response"},
          {options(R"("repeat_last_n":-2)"), "options.repeat_last_n; got -2"},
          {chat_with(R"("options":[1])"), "options; got a list of 1"},
          {chat_with(R"("format":"xml")"), "format; got 'xml', expected 'json' or a JSON schema"},
          {chat_with(R"("format":true)"), "format; got true"},
          {chat_with(R"("think":true)"), "think; got it, but the server reads no reasoning"},
          {chat_with(R"("think":"much")"),
           "think; got 'much', expected true, false, 'none', 'minimal', 'low'"},
          {chat_with(R"("think":"low")"), "think; got it, but the server reads no reasoning"},
          {chat_with(R"("keep_alive":"soon")"), "keep_alive; got 'soon', expected seconds"},
          {chat_with(R"("top_logprobs":2)"), "top_logprobs; got 2 without logprobs"},
          {chat_with(std::string(R"("tools":[)") + kTool + "]"),
           "tools; got tools, but the model's chat template does not use them"},
          {chat_with(R"("tool_choice":"required")"),
           "tool_choice; got 'required', expected no such field: Ollama's"},
          {chat_with(R"("tools":[{"function":{}}])"), "tools[0].function.name; got none"},
          {one(R"({"role":"user","content":"q","images":["aGk="]})"),
           "messages[0].images; got a list of 1, expected none: this server reads text only"},
          {one(R"({"role":"developer","content":"q"})"), "messages[0].role; got 'developer'"},
          {one(R"({"content":"q"})"), "messages[0].role; got none"},
          {one(R"({"role":"user","content":7})"), "messages[0].content; got 7, expected a string"},
          {one(R"({"role":"user","content":"q","tool_calls":[{}]})"),
           "messages[0].tool_calls; got a list of 1, expected none"},
          {one(R"({"role":"assistant","tool_calls":[{"function":{}}]})"),
           "messages[0].tool_calls[0].function.name; got none"},
          {"[]", "body; got a list"},
      });
  expect_refusals(
      kGenerate,
      {
          {generate_with(R"("suffix":"a")"), "suffix; got 'a', expected no such field"},
          {generate_with(R"("template":"a")"), "template; got 'a', expected none: the operator"},
          {generate_with(R"("context":[1])"), "context; got a list of 1, expected none: POST /api"},
          {generate_with(R"("images":["a"])"), "images; got a list of 1"},
          {generate_with(R"("raw":true,"system":"s")"), "system; got a text beside raw"},
      });
}

TEST_F(OllamaApi, DescribesTheModel) {
  engine_.info_.architecture = "Qwen3ForCausalLM";
  engine_.info_.file_format = "gguf";
  engine_.info_.weight_dtype = "Q4_1, Q8_0";
  engine_.info_.num_parameters = 4'300'000'000;
  engine_.info_.weight_bytes = 8'600'000'000;
  engine_.info_.on_gpu = true;
  engine_.chat_template_ = "{{ messages }} {{ tools }}";
  start({.tool_call_parser = "hermes", .reasoning_parser = "think", .started_at = 86400});
  const std::string details =
      R"("details":{"parent_model":"","format":"gguf","family":"qwen3",)"
      R"("families":["qwen3"],"parameter_size":"4.3B","quantization_level":"Q4_1, Q8_0"})";
  const std::string digest = R"("size":8600000000,"digest":")";
  EXPECT_THAT(
      get("/api/tags").body,
      AllOf(HasSubstr(R"({"models":[{"name":"fake:latest","model":"fake:latest",)" + digest),
            HasSubstr(R"({"name":"alias:latest","model":"alias:latest",)"), HasSubstr(details),
            HasSubstr(R"("modified_at":"1970-01-02T00:00:00.000000Z")")));
  EXPECT_THAT(get("/api/ps").body,
              AllOf(HasSubstr(digest), HasSubstr(details),
                    HasSubstr(R"("size_vram":8600000000,"context_length":64)")));
  engine_.info_.on_gpu = false;
  EXPECT_THAT(get("/api/ps").body, HasSubstr(R"("size_vram":0,)"));
  EXPECT_EQ(get("/api/version").body, R"({"version":"0.12.11","quire_version":"1.2.3"})");
  const auto show = [&](const std::string& body) {
    return call("POST", "/api/show", body)->wait().body;
  };
  EXPECT_EQ(
      show(R"({"model":"alias:latest","verbose":true})"),
      R"({"parameters":"temperature 0.8\ntop_k 0\ntop_p 0.95\nmin_p 0\nrepeat_penalty 1",)"
      R"("template":"{{ messages }} {{ tools }}",)" +
          details +
          R"(,"model_info":{"general.architecture":"qwen3","general.parameter_count":)"
          R"(4300000000,"qwen3.context_length":64,"qwen3.vocab_size":256},"capabilities":)"
          R"(["completion","tools","thinking"],"modified_at":"1970-01-02T00:00:00.000000Z"})");
  EXPECT_EQ(show(R"({"name":"fake"})"), show("{}"));
  EXPECT_EQ(show(R"({"model":"fake:7b"})"),
            R"({"error":"the model 'fake:7b' is not served; expected 'fake', 'alias'"})");
}

TEST_F(OllamaApi, NamesTheMixtureOfAGgufFile) {
  engine_.info_.weight_dtype = "Q4_K, Q6_K";
  engine_.info_.gguf_mixture = "Q4_K_M";
  start();
  EXPECT_THAT(get("/api/tags").body, HasSubstr(R"("quantization_level":"Q4_K_M")"));
}

TEST_F(OllamaApi, ErrorsHaveOllamasShape) {
  Result<ApiKeys> keys = ApiKeys::create({"a"}, "");
  start({.keys = std::move(*keys), .admission = {.max_num_seqs = 1, .max_num_queued_reqs = 0}});
  const http::Headers key = {{"authorization", "Bearer a"}};
  const auto error = [&](const std::string& body, const http::Headers& headers,
                         const char* path = kChat) {
    return call("POST", path, body, headers)->wait().body;
  };
  EXPECT_THAT(error("{}", {}), HasSubstr(R"({"error":"the API key is missing)"));
  EXPECT_THAT(error("[]", key), HasSubstr(R"({"error":"[request] body; got)"));
  EXPECT_EQ(error(R"({"model":"gpt"})", key),
            R"({"error":"the model 'gpt' is not served; expected 'fake', 'alias'"})");
  EXPECT_THAT(
      error(R"({"input":"a"})", key, "/api/embed"),
      HasSubstr(R"({"error":"the model 'fake' generates text and has no embeddings; serve an )"
                "embedding model"));
  EXPECT_THAT(error("{}", key, "/api/pull"),
              HasSubstr(R"({"error":"[request] model; got no model)"));
  const auto running = call("POST", kChat, chat_with(), key);
  engine_.wait_for(1);
  EXPECT_THAT(error(chat_with(), key), HasSubstr(R"({"error":"[server] )"));
  engine_.say(1, "a");
  running->wait_for(R"("content":"a")");
  engine_.fail(1);
  EXPECT_THAT(running->wait().body,
              ::testing::EndsWith(
                  "{\"error\":\"[server] internal error; the server's log has the details\"}\n"));
}

// `curl -d` declares its body a form, and litellm states no type. A page of another site can do so,
// too, and is refused.
TEST_F(OllamaApi, TakesABodyOfAnyTypeUnlessAPageSentIt) {
  start();
  const auto send = [&](const std::string& path, const std::string& type, http::Headers headers) {
    if (!type.empty()) headers.emplace_back("content-type", type);
    auto exchange = std::make_shared<FakeExchange>();
    service_->handle({.method = "POST",
                      .path = path,
                      .query = "",
                      .headers = std::move(headers),
                      .body = R"({"model":"fake"})",
                      .peer = "test"},
                     exchange);
    return exchange->wait().status;
  };
  for (const std::string type :
       {"application/x-www-form-urlencoded", "text/plain", "application/x-ndjson", ""}) {
    EXPECT_EQ(send(kChat, type, {}), 200) << type;
    EXPECT_EQ(send(kChat, type, {{"origin", "https://a.example"}}), 415) << type;
    EXPECT_EQ(send(kChat, type, {{"origin", "null"}}), 415) << type;
    EXPECT_EQ(send(kChat, type, {{"sec-fetch-site", "cross-site"}}), 415) << type;
    // The other APIs expect JSON's type, or none; 400: the body is no request of this route.
    EXPECT_EQ(send("/v1/chat/completions", type, {}), type.empty() ? 400 : 415) << type;
    EXPECT_EQ(send("/v1/chat/completions", type, {{"origin", "https://a.example"}}), 415) << type;
  }
}

TEST_F(OllamaApi, ADisconnectCancelsTheRequest) {
  const auto exchange = call("POST", kChat, chat_with());
  engine_.wait_for(1);
  engine_.say(1, "a");
  exchange->close();
  EXPECT_FALSE(engine_.is_running(1));
}

}  // namespace
}  // namespace quire::server
