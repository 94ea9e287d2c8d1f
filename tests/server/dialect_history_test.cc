// The server accepts every answer that it gave as history of the next turn.
#include <gmock/gmock.h>

#include <thread>

#include "base/file.h"
#include "base/json_writer.h"
#include "jinja/chat_template.h"
#include "server/dialect_answers.h"
#include "server/service_fixture.h"
#include "server/tools/call_template.h"
#include "server/tools/dialect_corpus.h"
#include "server/tools/dialects.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;

// Needs the arguments of calls as a dict.
constexpr const char* kTemplate =
    "{{ tools | tojson }}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}("
    "{% for name, value in c.function.arguments.items() %}{{ name }}={{ value | tojson }}, "
    "{% endfor %}){% endfor %}{% endfor %}";

constexpr const char* kPaths[] = {"/v1/chat/completions", "/v1/responses", "/v1/messages",
                                  "/api/chat"};
constexpr std::string_view kUser = R"({"role":"user","content":"Q"})";

std::string minify_at(simdjson::dom::element object, const char* name) {
  simdjson::dom::element value;
  return object[name].get(value) ? std::string() : std::string(simdjson::minify(value));
}

// The items of a list without its brackets.
std::string items_at(simdjson::dom::element object, const char* name) {
  const std::string list = minify_at(object, name);
  return list.size() < 2 ? std::string() : list.substr(1, list.size() - 2);
}

// Appends `,ITEM`.
void append_item(std::string& list, std::string_view item) {
  if (!item.empty()) (list += ',') += item;
}

std::string tools_of(Api api, const OutputParserConfig& config) {
  std::string tools;
  for (size_t i = 0; i < config.tool_names.size(); ++i) {
    const std::string name = fmt::format(R"("name":"{}")", config.tool_names[i]);
    const std::string& schema = config.tool_schemas[i];
    const std::string tool =
        api == Api::kMessages ? fmt::format(R"({{{},"input_schema":{}}})", name, schema)
        : api == Api::kResponses
            ? fmt::format(R"({{"type":"function",{},"parameters":{}}})", name, schema)
            : fmt::format(R"({{"type":"function","function":{{{},)"
                          R"("parameters":{}}}}})",
                          name, schema);
    tools += (i == 0 ? "" : ",") + tool;
  }
  return tools;
}

// A request with these messages or items, as JSON without the list's brackets.
std::string request_of(Api api, const OutputParserConfig& config, std::string_view messages) {
  const bool is_responses = api == Api::kResponses;
  return fmt::format(R"({{"{}":[{}],"tools":[{}],"{}":9,"stream":false}})",
                     is_responses ? "input" : "messages", messages, tools_of(api, config),
                     is_responses ? "max_output_tokens" : "max_tokens");
}

// Returns the messages of the next turn, after the user's and the answer: a result per call.
std::string results_of(Api api, simdjson::dom::element answer) {
  std::string results;
  simdjson::dom::array list;
  switch (api) {
    case Api::kChat:
    case Api::kOllama:
      if (answer["tool_calls"].get(list)) return results;
      for (const simdjson::dom::element call : list) {
        append_item(results, fmt::format(R"({{"role":"tool","tool_call_id":"{}","content":"R"}})",
                                         text_at(call, "id")));
      }
      return results;
    case Api::kResponses:
      for (const simdjson::dom::element item : answer["output"].get_array()) {
        if (text_at(item, "type") != "function_call") continue;
        append_item(results,
                    fmt::format(R"({{"type":"function_call_output","call_id":"{}","output":"R"}})",
                                text_at(item, "call_id")));
      }
      return results;
    case Api::kMessages:
      for (const simdjson::dom::element block : answer["content"].get_array()) {
        if (text_at(block, "type") != "tool_use") continue;
        append_item(results,
                    fmt::format(R"({{"type":"tool_result","tool_use_id":"{}","content":"R"}})",
                                text_at(block, "id")));
      }
      return results;
  }
  return results;
}

// Returns the messages of the next turn. `answer` is the message of the assistant, or the body.
std::string next_turn(Api api, simdjson::dom::element answer) {
  std::string messages(kUser);
  const std::string results = results_of(api, answer);
  switch (api) {
    case Api::kChat:
    case Api::kOllama:
      append_item(messages, std::string(simdjson::minify(answer)));
      messages += results;
      append_item(messages, kUser);
      return messages;
    case Api::kResponses:
      append_item(messages, items_at(answer, "output"));
      messages += results;
      append_item(messages, kUser);
      return messages;
    case Api::kMessages:
      append_item(messages, fmt::format(R"({{"role":"assistant","content":{}}})",
                                        minify_at(answer, "content")));
      append_item(messages, fmt::format(R"({{"role":"user","content":[{{"type":"text",)"
                                        R"("text":"Q"}}{}]}})",
                                        results));
      return messages;
  }
  return messages;
}

simdjson::dom::element message_of(Api api, simdjson::dom::element body) {
  if (api == Api::kChat) return body["choices"].at(0)["message"].value();
  return api == Api::kOllama ? body["message"].value() : body;
}

// A history whose calls the chat template cannot write has them in the model's dialect.
TEST(CallTemplate, WritesCallsThatTheDialectReads) {
  size_t num_written = 0;
  for (const ResponseTemplate& dialect : dialects()) {
    const std::string source = call_template(dialect);
    if (source.empty()) continue;
    ++num_written;
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_TRUE(parsed.ok()) << source << '\n' << parsed.status().message();
    const auto calls = JsonDocument::parse(
        R"([{"function":{"name":"get_weather","arguments":{"city":"Bonn \"x\"","days":2}}},)"
        R"({"function":{"name":"now","arguments":{}}}])",
        "calls");
    const auto text =
        parsed->render(jinja::Value::dict({{"calls", value_from_json(calls->root(), 0)}}));
    ASSERT_TRUE(text.ok()) << source << '\n' << text.status().message();
    OutputParserConfig config;
    config.tool_call_parser = dialect.names.front();
    add_tools(config);
    const ParsedMessage message = parse_output(**make_output_parser(config), text->text);
    EXPECT_THAT(blocks_of(message),
                ::testing::ElementsAre(R"(get_weather: {"city":"Bonn \"x\"","days":2})", "now: {}"))
        << dialect.names.front() << '\n'
        << text->text;
  }
  EXPECT_GE(num_written, 31U);
}

class DialectHistory : public ServiceTest, public ::testing::WithParamInterface<Api> {
 protected:
  void SetUp() override { engine_.info_.max_model_len = 1 << 20; }

  void serve(const OutputParserConfig& config) {
    end();
    engine_.use_template(kTemplate);
    start({.num_workers = 1,
           .tool_call_parser = config.tool_call_parser,
           .reasoning_parser = config.reasoning_parser});
  }

  // Returns the response to a request whose output is the text. Sets `prompt`; empty: refused.
  std::string ask(const std::string& body, const std::string& text, FinishReason reason,
                  std::string& prompt) {
    const auto exchange = call("POST", kPaths[static_cast<size_t>(GetParam())], body);
    prompt.clear();
    while (!exchange->has_ended() && !engine_.has_submitted(num_requests_ + 1)) {
      std::this_thread::yield();
    }
    if (exchange->has_ended()) return exchange->wait().body;
    const Request request = engine_.wait_for(++num_requests_);
    prompt.assign(request.prompt_token_ids.begin(), request.prompt_token_ids.end());
    engine_.say(num_requests_, text, reason);
    return exchange->wait().body;
  }

  // Expects that the messages are accepted. Returns the prompt.
  std::string accept(const OutputParserConfig& config, const std::string& messages) {
    std::string prompt;
    const std::string body =
        ask(request_of(GetParam(), config, messages), "ok", FinishReason::kStop, prompt);
    EXPECT_NE(prompt, "") << body << "\n" << messages;
    return prompt;
  }

  void expect_accepted_next_turn(const OutputParserConfig& config, const std::string& text,
                                 FinishReason reason) {
    std::string prompt;
    const std::string body = ask(request_of(GetParam(), config, kUser), text, reason, prompt);
    const auto document = JsonDocument::parse(body, "body");
    ASSERT_TRUE(document.ok()) << body;
    ASSERT_NE(prompt, "") << body;
    accept(config, next_turn(GetParam(), message_of(GetParam(), document->root())));
  }

  RequestId num_requests_ = 0;
};

TEST_P(DialectHistory, HasEachAnswerOfTheCorpus) {
  for (const DialectCorpus& corpus : dialect_corpora()) {
    serve(corpus.config);
    for (const DialectCase& c : corpus.cases) {
      SCOPED_TRACE(corpus.config.tool_call_parser + ": " + c.about + "\n" + c.text);
      expect_accepted_next_turn(corpus.config, c.text, FinishReason::kStop);
    }
  }
}

TEST_P(DialectHistory, HasAnswersThatALimitHasCut) {
  size_t num_cases = 0;
  for (const DialectCorpus& corpus : dialect_corpora()) {
    serve(corpus.config);
    for (const DialectCase& c : corpus.cases) {
      const std::string text = c.text.substr(0, c.text.size() * (1 + num_cases++ % 3) / 4);
      if (!simdjson::validate_utf8(text)) continue;  // within a character
      SCOPED_TRACE(corpus.config.tool_call_parser + ": " + c.about + "\n" + text);
      expect_accepted_next_turn(corpus.config, text, FinishReason::kLength);
    }
  }
}

// Arguments with halves of surrogate pairs, which no reader of JSON accepts, and at the deepest
// level.
TEST_P(DialectHistory, HasArgumentsAtTheLimitsOfJson) {
  OutputParserConfig config;
  config.tool_call_parser = "hermes";
  config.tool_names = {"f"};
  config.tool_schemas = {"{}"};
  serve(config);
  std::vector<std::string> values = {R"("\ud83e")", R"("\udd17\ud83e")", R"("\ud83e\udd17")",
                                     R"("\ud83e\n\ud83ex")", "123456789012345678901234567890"};
  for (const size_t depth : {50, 54, 55, 56, 57, 60, 64}) {
    values.push_back(std::string(depth, '[') + std::string(depth, ']'));
  }
  for (const std::string& value : values) {
    SCOPED_TRACE(value);
    expect_accepted_next_turn(
        config, R"(<tool_call>{"name":"f","arguments":{"a":)" + value + "}}</tool_call>",
        FinishReason::kStop);
  }
}

// A stream may have begun a call whose arguments a limit has cut. Clients send them back as they
// are, as a text, or the value that they parsed from it.
TEST_P(DialectHistory, HasArgumentsThatAreNoObject) {
  const DialectCorpus& corpus = dialect_corpora().front();
  serve(corpus.config);
  const auto quoted = [](std::string_view text) {
    JsonWriter json;
    json.value(text);
    return json.take();
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {quoted(R"({"city": "Bo)"), R"({"city": "Bo)"},
      {quoted("[1]"), "[1]"},
      {quoted("text"), "text"},
      {quoted("{"), "{"},
      {quoted(R"({"a": "\ud83e"})"), R"({"a": "\ud83e"})"},
      {R"([1,"b"])", R"([1,"b"])"},
      {"7", "7"},
      {"true", "true"}};
  for (const auto& [text, shown] : cases) {
    std::string messages(kUser);
    switch (GetParam()) {
      case Api::kChat:
      case Api::kOllama:
        append_item(
            messages,
            fmt::format(R"({{"role":"assistant","content":"C","tool_calls":[{{"id":"c1",)"
                        R"("type":"function","function":{{"name":"now","arguments":{}}}}}]}})",
                        text));
        break;
      case Api::kResponses:
        append_item(messages,
                    fmt::format(R"({{"role":"assistant","content":"C"}},{{"type":"function_call",)"
                                R"("call_id":"c1","name":"now","arguments":{}}})",
                                text));
        break;
      case Api::kMessages:
        append_item(messages,
                    fmt::format(R"({{"role":"assistant","content":[{{"type":"text","text":"C"}},)"
                                R"({{"type":"tool_use","id":"c1","name":"now","input":{}}}]}})",
                                text));
        break;
    }
    append_item(messages, kUser);
    EXPECT_THAT(accept(corpus.config, messages), HasSubstr("<assistant>C\n" + shown + "now()"));
  }
}

INSTANTIATE_TEST_SUITE_P(Api, DialectHistory, kAllApis, name_of_api);

}  // namespace
}  // namespace quire::server
