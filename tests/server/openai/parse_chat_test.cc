#include <gmock/gmock.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/machine.h"
#include "jinja/chat_template.h"
#include "server/openai/requests.h"
#include "support/value_of.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kHello = R"("messages": [{"role": "user", "content": "hi"}])";
constexpr std::string_view kTools = R"("tools": [
  {"type": "function", "function": {"name": "add", "description": "d",
   "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/N"}},
                  "$defs": {"N": {"type": "integer"}}}}},
  {"type": "function", "function": {"name": "now"}}])";

// Returns the compact JSON of a template's value.
std::string json_of(const jinja::Value& value) {
  const auto dump = ChatTemplate::parse("{{ value | tojson(separators=(',', ':')) }}");
  const MarkedText text = testing::value_of(dump->render(jinja::Value::dict({{"value", value}})));
  return text.text;
}

Parsed<ChatRequest> parse(std::string_view body) {
  return parse_chat_request(body, {});
}

ChatRequest parsed(std::string_view fields) {
  auto result = parse("{" + std::string(fields) + "}");
  EXPECT_FALSE(result.error) << result.error->message;
  return std::move(result.request);
}

ChatRequest hello(std::string_view fields) {
  return parsed(std::string(kHello) + (fields.empty() ? "" : ", ") + std::string(fields));
}

// Returns the `param` of the error that these fields cause, or "accepted".
std::string refused_param(std::string_view fields) {
  const auto result = parse("{" + std::string(fields) + "}");
  if (!result.error) return "accepted";
  EXPECT_EQ(result.error->http_status, 400);
  EXPECT_THAT(result.error->message, HasSubstr("[request] " + result.error->param));
  return result.error->param;
}

std::string refused_hello(std::string_view fields) {
  return refused_param(std::string(kHello) + ", " + std::string(fields));
}

std::string refused_message(std::string_view message) {
  return refused_param("\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, " +
                       std::string(message) + "]");
}

TEST(ParseChat, GivesTheTemplateItsVariables) {
  const ChatRequest request = parsed(R"("messages": [
      {"content": "be brief", "role": "system"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}],
       "name": "Ann"},
      {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments":
          "{\"x\": [1, 2.5], \"s\": \"\\u00e9\"}"}},
        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": "42"}],
    "chat_template_kwargs": {"enable_thinking": false}, "documents": [{"title": "t"}],
    "reasoning_effort": "low")");
  EXPECT_EQ(json_of(request.conversation.variables),
            R"({"messages":[{"role":"system","content":"be brief"},)"
            R"({"role":"user","content":"a\nb\n","name":"Ann"},)"
            R"({"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[)"
            R"({"id":"call_1","type":"function","function":{"name":"f","arguments":)"
            R"({"x":[1,2.5],"s":"é"}}},)"
            R"({"id":"call_2","type":"function","function":{"name":"g","arguments":{}}}]},)"
            R"({"role":"tool","content":"42","tool_call_id":"call_1"}],)"
            R"("add_generation_prompt":true,"documents":[{"title":"t"}],)"
            R"("reasoning_effort":"low","enable_thinking":false})");
  EXPECT_FALSE(request.engine_request.add_special_tokens);
  EXPECT_EQ(request.engine_request.sampling.max_tokens, 0);
}

TEST(ParseChat, TakesTheFieldsOfChats) {
  const ChatRequest request =
      hello(R"("model": "m", "logprobs": true, "top_logprobs": 4, "max_tokens": 5,
      "max_completion_tokens": 7, "parallel_tool_calls": false, "include_reasoning": false,
      "echo": true, "stream": true, "n": 3, "store": 1, "metadata": {}, "modalities": ["text"],
      "response_format": {"type": "json_object"})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.engine_request.sampling.logprobs, 4);
  EXPECT_EQ(request.engine_request.sampling.max_tokens, 7);
  EXPECT_EQ(request.engine_request.sampling.n, 3);
  EXPECT_FALSE(request.parallel_tool_calls);
  EXPECT_FALSE(request.include_reasoning);
  EXPECT_TRUE(request.streaming.stream);
  EXPECT_EQ(request.echoed_message, "");
  EXPECT_EQ(request.restriction.value().grammar.kind, GrammarSpec::Kind::kJsonObject);
  EXPECT_THAT(request.ignored, ::testing::ElementsAre("store", "metadata"));
  EXPECT_EQ(hello(R"("max_tokens": -1)").engine_request.sampling.max_tokens, 0);
  EXPECT_EQ(
      hello(R"("max_completion_tokens": -1, "max_tokens": 5)").engine_request.sampling.max_tokens,
      0);
  EXPECT_EQ(hello(R"("logprobs": true)").engine_request.sampling.logprobs, 0);
  EXPECT_EQ(hello(R"("logprobs": false, "top_logprobs": 0)").engine_request.sampling.logprobs,
            std::nullopt);
}

TEST(ParseChat, RefusesWrongFields) {
  EXPECT_EQ(refused_hello(R"("top_logprobs": 4)"), "top_logprobs");
  EXPECT_EQ(refused_hello(R"("logprobs": 3)"), "logprobs");
  EXPECT_EQ(refused_hello(R"("logprobs": true, "top_logprobs": 21)"), "top_logprobs");
  EXPECT_EQ(refused_hello(R"("max_completion_tokens": 0)"), "max_completion_tokens");
  EXPECT_EQ(refused_hello(R"("max_completion_tokens": -2)"), "max_completion_tokens");
  EXPECT_EQ(refused_hello(R"("max_tokens": 0)"), "max_tokens");
  EXPECT_EQ(refused_hello(R"("chat_template": "{{ 1 }}")"), "chat_template");
  EXPECT_EQ(refused_hello(R"("chat_template_kwargs": {"chat_template": "x"})"),
            "chat_template_kwargs.chat_template");
  EXPECT_EQ(refused_hello(R"("chat_template_kwargs": [1])"), "chat_template_kwargs");
  EXPECT_EQ(refused_hello(R"("documents": {})"), "documents");
  EXPECT_EQ(refused_hello(R"("modalities": ["audio"])"), "modalities");
  EXPECT_EQ(refused_hello(R"("reasoning_effort": 1)"), "reasoning_effort");
  EXPECT_EQ(refused_hello(R"("parallel_tool_calls": "no")"), "parallel_tool_calls");
}

TEST(ParseChat, RefusesWrongMessages) {
  EXPECT_EQ(refused_param(""), "messages");
  EXPECT_EQ(refused_param(R"("messages": "hi")"), "messages");
  EXPECT_EQ(refused_param(R"("messages": [])"), "messages");
  EXPECT_EQ(refused_message(R"("hi")"), "messages[1]");
  EXPECT_EQ(refused_message(R"({"content": "x"})"), "messages[1].role");
  EXPECT_EQ(refused_message(R"({"role": 1, "content": "x"})"), "messages[1].role");
  EXPECT_EQ(refused_message(R"({"role": "", "content": "x"})"), "messages[1].role");
  EXPECT_EQ(refused_message(R"({"role": "user"})"), "messages[1].content");
  EXPECT_EQ(refused_message(R"({"role": "assistant"})"), "accepted");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": 5})"), "messages[1].content");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": [5]})"), "messages[1].content[0]");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": [{"type": "text"}]})"),
            "messages[1].content[0].text");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": [
              {"type": "image_url", "image_url": {"url": "data:"}}]})"),
            "messages[1].content[0].type");
  // For every model, also those whose checkpoints have a tower for images.
  for (const char* const part : {"image_url", "image", "input_image", "video_url"}) {
    const auto refused =
        parse(std::string(R"({"messages": [{"role": "user", "content": [)") +
              R"({"type": "text", "text": "hi"}, {"type": ")" + part + R"("}]}]})");
    ASSERT_TRUE(refused.error) << part;
    EXPECT_EQ(refused.error->http_status, 400);
    EXPECT_EQ(refused.error->param, "messages[0].content[1].type");
    EXPECT_THAT(refused.error->message,
                HasSubstr(std::string("got '") + part + "', expected 'text'"));
  }
  const auto call = [](std::string_view call_text) {
    return refused_message("{\"role\": \"assistant\", \"tool_calls\": [" + std::string(call_text) +
                           "]}");
  };
  EXPECT_EQ(call("1"), "messages[1].tool_calls[0]");
  EXPECT_EQ(call("{}"), "messages[1].tool_calls[0].function");
  EXPECT_EQ(call(R"({"function": {}})"), "messages[1].tool_calls[0].function.name");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": "{"}})"), "accepted");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": 1}})"), "accepted");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": {"a": 1}}})"), "accepted");
  EXPECT_EQ(call(R"({"function": {"name": "f"}})"), "accepted");
  const auto nested = [&](int num_levels) {
    std::string text;
    for (int i = 0; i < num_levels; ++i) text += "{\\\"a\\\":";
    text += '1' + std::string(static_cast<size_t>(num_levels), '}');
    return call(R"({"function": {"name": "f", "arguments": ")" + text + "\"}}");
  };
  EXPECT_EQ(nested(50), "accepted");
  EXPECT_EQ(nested(60), "accepted");  // as text
}

TEST(ParseChat, ArgumentsThatAreNoObjectAreContent) {
  const ChatRequest request = parsed(R"("messages": [{"role": "assistant", "content": "C",
      "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1"}},
                     {"function": {"name": "g", "arguments": "[1]"}},
                     {"function": {"name": "h", "arguments": [ 2 ]}}]}])");
  EXPECT_THAT(json_of(request.conversation.variables),
              HasSubstr(R"("content":"C\n{\"a\": 1\n[1]\n[2]","tool_calls":)"
                        R"([{"function":{"name":"f","arguments":{}}},)"
                        R"({"function":{"name":"g","arguments":{}}},)"
                        R"({"function":{"name":"h","arguments":{}}}])"));
  EXPECT_THAT(request.conversation.unread_arguments,
              ::testing::ElementsAre("messages[0].tool_calls[0].function.arguments",
                                     "messages[0].tool_calls[1].function.arguments",
                                     "messages[0].tool_calls[2].function.arguments"));
}

TEST(ParseChat, NullMeansNoArguments) {
  const ChatRequest request = parsed(R"("messages": [{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": null}}, {"function": {"name": "g"}}]}])");
  EXPECT_THAT(
      json_of(request.conversation.variables),
      HasSubstr(
          R"([{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}])"));
}

TEST(ParseChat, TakesTools) {
  const std::string tools(kTools);
  const ChatRequest automatic = hello(tools);
  EXPECT_EQ(automatic.tool_choice, ToolChoice::kAuto);
  ASSERT_THAT(automatic.tools, SizeIs(2));
  EXPECT_EQ(automatic.tools[0].name, "add");
  EXPECT_THAT(automatic.tools[0].parameters, HasSubstr(R"("$ref":"#/$defs/N")"));
  EXPECT_EQ(automatic.tools[1].parameters, "{}");
  EXPECT_THAT(json_of(automatic.conversation.variables),
              HasSubstr(R"("tools":[{"type":"function")"));
  const ChatRequest none = hello(tools + R"(, "tool_choice": "none")");
  EXPECT_EQ(none.tool_choice, ToolChoice::kNone);
  EXPECT_THAT(json_of(none.conversation.variables), ::testing::Not(HasSubstr("tools")));
  EXPECT_EQ(hello(tools + R"(, "tool_choice": "required")").tool_choice, ToolChoice::kRequired);
  const ChatRequest named =
      hello(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "now"}})");
  EXPECT_EQ(named.tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(named.named_tool, "now");
  EXPECT_EQ(hello(R"("tools": [], "tool_choice": "auto")").tool_choice, ToolChoice::kNone);

  EXPECT_EQ(refused_hello(R"("tool_choice": "required")"), "tool_choice");
  EXPECT_EQ(refused_hello(tools + R"(, "tool_choice": "any")"), "tool_choice");
  EXPECT_EQ(refused_hello(tools + R"(, "tool_choice": 1)"), "tool_choice");
  EXPECT_EQ(refused_hello(tools + R"(, "tool_choice": {"function": {"name": "x"}})"),
            "tool_choice.function.name");
  EXPECT_EQ(refused_hello(R"("tools": {})"), "tools");
  EXPECT_EQ(refused_hello(R"("tools": [{"type": "web_serch"}])"), "tools[0].type");
  EXPECT_EQ(refused_hello(R"("tools": [{"function": {}}])"), "tools[0].function.name");
  EXPECT_EQ(refused_hello(R"("tools": [{"function": {"name": "f", "parameters": 1}}])"),
            "tools[0].function.parameters");
}

TEST(ParseChat, TakesAllowedTools) {
  const std::string tools(kTools);
  const auto allow = [&](std::string_view mode, std::string_view name) {
    return tools + R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": ")" +
           std::string(mode) + R"(", "tools": [{"type": "function", "function": {"name": ")" +
           std::string(name) + "\"}}]}}";
  };
  const ChatRequest automatic = hello(allow("auto", "now"));
  EXPECT_EQ(automatic.tool_choice, ToolChoice::kAuto);
  ASSERT_THAT(automatic.tools, SizeIs(1));
  EXPECT_EQ(automatic.tools[0].name, "now");
  const std::string shown = json_of(automatic.conversation.variables);
  EXPECT_THAT(shown, HasSubstr(R"("name":"now")"));
  EXPECT_THAT(shown, ::testing::Not(HasSubstr(R"("name":"add")")));
  const ChatRequest required = hello(allow("required", "add"));
  EXPECT_EQ(required.tool_choice, ToolChoice::kRequired);
  EXPECT_THAT(forced_call_schema(required).grammar.text, HasSubstr(R"("enum":["add"])"));
  EXPECT_THAT(forced_call_schema(required).grammar.text, ::testing::Not(HasSubstr("now")));

  constexpr const char* kAllowed = "tool_choice.allowed_tools";
  const auto refused = [&](std::string_view allowed) {
    return refused_hello(tools + R"(, "tool_choice": {"type": "allowed_tools")" +
                         std::string(allowed) + "}");
  };
  EXPECT_EQ(refused(""), kAllowed);
  EXPECT_EQ(refused(R"(, "allowed_tools": [])"), kAllowed);
  EXPECT_EQ(refused(R"(, "allowed_tools": {"tools": []})"), std::string(kAllowed) + ".mode");
  EXPECT_EQ(refused(R"(, "allowed_tools": {"mode": "none", "tools": []})"),
            std::string(kAllowed) + ".mode");
  EXPECT_EQ(refused(R"(, "allowed_tools": {"mode": "auto"})"), std::string(kAllowed) + ".tools");
  EXPECT_EQ(refused(R"(, "allowed_tools": {"mode": "auto", "tools": []})"),
            std::string(kAllowed) + ".tools");
  EXPECT_EQ(refused_hello(allow("auto", "x")), std::string(kAllowed) + ".tools[0].function.name");
}

TEST(ParseChat, ToolsHaveDifferentNames) {
  const auto result = parse("{" + std::string(kHello) +
                            R"(, "tools": [{"function": {"name": "f"}}, {"function": {"name": "g"}},
                                           {"function": {"name": "f"}}]})");
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->message,
            "[request] tools[2].function.name; got 'f' twice, expected a different name for each "
            "tool");
}

TEST(ParseChat, MessagesHaveTextFields) {
  for (const std::string name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) {
    const std::string before = R"({"role": "user", "content": "x", ")" + name + "\": ";
    EXPECT_EQ(refused_message(before + "\"a\"}"), "accepted");
    EXPECT_EQ(refused_message(before + "null}"), "accepted");
    for (const char* value : {"1", "{}", "[\"a\"]", "true"}) {
      EXPECT_EQ(refused_message(before + value + "}"), "messages[1]." + name) << value;
    }
  }
  const auto result = parse(R"({"messages": [{"role": "", "content": "x"}]})");
  ASSERT_TRUE(result.error);
  EXPECT_THAT(result.error->message,
              HasSubstr("got '', expected 'system', 'developer', 'user', 'assistant', 'tool', or "
                        "another role that the model's chat template names"));
}

TEST(ParseChat, AFormatMayStandBesideAForcedCall) {
  const std::string tools(kTools);
  for (const char* choice : {R"("required")", R"({"function": {"name": "now"}})"}) {
    const std::string forced = tools + R"(, "tool_choice": )" + choice;
    EXPECT_EQ(refused_hello(forced + R"(, "response_format": {"type": "json_object"})"),
              "accepted");
    EXPECT_EQ(refused_hello(forced + R"(, "guided_regex": "a")"), "accepted");
    EXPECT_EQ(refused_hello(forced + R"(, "response_format": {"type": "text"})"), "accepted");
  }
  EXPECT_EQ(refused_hello(tools + R"(, "response_format": {"type": "json_object"})"), "accepted");
}

TEST(ParseChat, RefusesFieldsThatTheTemplateIgnores) {
  const auto param = [](std::string_view chat_template, std::string_view fields) -> std::string {
    RequestDefaults defaults;
    defaults.chat_template = chat_template;
    const auto result =
        parse_chat_request("{" + std::string(kHello) + ", " + std::string(fields) + "}", defaults);
    return result.error ? result.error->param : "accepted";
  };
  const std::string tools(kTools);
  constexpr std::string_view kPlain = "{{ messages }}{{ custom_tools }}{{ tools_in_user }}";
  EXPECT_EQ(param(kPlain, tools), "tools");
  EXPECT_EQ(param(kPlain, tools + R"(, "tool_choice": "auto")"), "tools");
  EXPECT_EQ(param(kPlain, tools + R"(, "tool_choice": "none")"), "accepted");
  EXPECT_EQ(param(kPlain, tools + R"(, "tool_choice": "required")"), "accepted");
  EXPECT_EQ(param(kPlain, R"("tools": [])"), "accepted");
  EXPECT_EQ(param("{% if tools %}", tools), "accepted");
  EXPECT_EQ(param(kPlain, R"("documents": [{"title": "t"}])"), "documents");
  EXPECT_EQ(param("{{documents}}", R"("documents": [{"title": "t"}])"), "accepted");
  EXPECT_EQ(param(kPlain, R"("documents": [])"), "accepted");
  EXPECT_EQ(param(kPlain, R"("reasoning_effort": "low")"), "accepted");
  EXPECT_EQ(param("{{ reasoning_effort", R"("reasoning_effort": "low")"), "accepted");
}

TEST(ParseChat, NamesTheNewerFieldsOfFunctions) {
  EXPECT_EQ(refused_hello(R"("functions": [{"name": "f"}])"), "functions");
  EXPECT_EQ(refused_hello(R"("function_call": "auto")"), "function_call");
  EXPECT_EQ(refused_hello(R"("functions": null, "function_call": null)"), "accepted");
}

TEST(ParseChat, MarksTheMessageToContinue) {
  const std::string messages =
      R"("messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "So: "}])";
  const ChatRequest request =
      parsed(messages + R"(, "continue_final_message": true, "echo": true)");
  ASSERT_TRUE(request.conversation.continuation);
  EXPECT_EQ(request.conversation.continuation->content, "So: ");
  EXPECT_EQ(request.echoed_message, "So: ");
  EXPECT_THAT(json_of(request.conversation.variables),
              HasSubstr(R"("add_generation_prompt":false)"));
  EXPECT_THAT(json_of(request.conversation.variables), HasSubstr(R"("content":"x")"));
  EXPECT_THAT(json_of(request.conversation.variables),
              HasSubstr(R"("content":"So:)" + request.conversation.continuation->marker + R"( ")"));
  EXPECT_NE(
      parsed(messages + R"(, "continue_final_message": true)").conversation.continuation->marker,
      request.conversation.continuation->marker);
  EXPECT_FALSE(parsed(messages).conversation.continuation);
  EXPECT_EQ(refused_param(messages +
                          R"(, "continue_final_message": true, "add_generation_prompt": true)"),
            "continue_final_message");
}

TEST(ParseChat, AMessageToContinueNeedsText) {
  for (const char* content : {"", R"(, "content": "")", R"(, "content": " \n\u00a0\u3000")"}) {
    EXPECT_EQ(refused_param(R"("messages": [{"role": "assistant")" + std::string(content) +
                            R"(}], "continue_final_message": true)"),
              "messages");
  }
}

// The templates below cover the forms of most real templates.
constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}"
    "{% endfor %}";
constexpr const char* kTrimming =
    "{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + "
    "m.content | trim + '<|eot_id|>' }}{% endfor %}";
constexpr const char* kStripping =
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content.strip() + '</s>' }}{% endfor %}";

// Returns the prompt of this conversation, or the param of its error.
std::string continued(std::string_view chat_template, const std::string& content,
                      const std::string& user = "hi") {
  JsonWriter json;
  json.begin_object();
  json.key("messages");
  json.begin_array();
  for (const auto& [role, text] : {std::pair("user", user), std::pair("assistant", content)}) {
    json.begin_object();
    json.field("role", role);
    json.field("content", text);
    json.end_object();
  }
  json.end_array();
  json.field("continue_final_message", true);
  json.end_object();
  const auto result = parse(json.text());
  if (result.error) return result.error->param;
  auto rendered = testing::value_of(
      ChatTemplate::parse(chat_template)->render(result.request.conversation.variables));
  if (auto error = continue_from(*result.request.conversation.continuation, rendered)) {
    EXPECT_THAT(error->message, HasSubstr("[request] messages; the template changes or drops"));
    return error->param;
  }
  return rendered.text;
}

// The templates' own texts contain these messages, too.
TEST(ParseChat, ContinuesAMessageThatTheTemplateContains) {
  for (const char* content : {"end", "im", "i", ">", "<", "|", "<|im_end|>", "eot_id", "_", "t",
                              "assistant", "hi", "<|im_end|>\n<|im_start|>assistant"}) {
    const std::string text = content;
    EXPECT_EQ(continued(kChatMl, text),
              "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n" + text);
    EXPECT_EQ(continued(kTrimming, text),
              "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\n" +
                  text);
    EXPECT_EQ(continued(kStripping, text), "<|user|>hi</s><|assistant|>" + text);
    EXPECT_EQ(continued(kStripping, text, text), "<|user|>" + text + "</s><|assistant|>" + text);
  }
}

// `trim` in templates strips Unicode's white space, not only ASCII's.
TEST(ParseChat, ContinuesAMessageThatTheTemplateTrims) {
  for (const std::string_view space : {" ", "\n\n", "\u00a0", "\u3000\t", "\u2028", "\x1f"}) {
    const std::string content = std::string(space) + "end" + std::string(space);
    EXPECT_EQ(continued(kStripping, content), "<|user|>hi</s><|assistant|>end") << content;
    EXPECT_EQ(continued("<a>{{ messages[-1].content }}<end>", content), "<a>" + content);
  }
  EXPECT_EQ(continued("<a>{{ messages[-1].content }}", "So \n"), "<a>So \n") << "nothing follows";
  EXPECT_EQ(continued(kStripping, "So\u200b"), "<|user|>hi</s><|assistant|>So\u200b")
      << "no white space";
}

TEST(ParseChat, RefusesToContinueAMessageThatTheTemplateChanges) {
  for (const char* chat_template :
       {"<a>{{ messages[0].content }}<end>", "{{ messages[-1].content | upper }}",
        "{{ messages[-1].content | replace('So', 'to') }}", "{{ messages[-1].content[:2] }}",
        "{% for i in [0, 1] %}{{ messages[-1].content }}{% endfor %}"}) {
    EXPECT_EQ(continued(chat_template, "So <a>", "So <a>"), "messages") << chat_template;
  }
}

// A search that compares the message at each position takes about 30 s of CPU time for the first
// case.
TEST(ParseChat, ContinuingTakesTimeLinearInTheTexts) {
  const std::string user(2'000'000, 'a');
  const std::string message(1'000'000, 'a');
  const std::string marker(24, 'a');  // the slowest marker to search for
  const auto check = [&](const std::string& rendered, const std::string& content, bool is_found) {
    MarkedText cut = {rendered, {}};
    const int64_t ns = cpu_ns_of([&] {
      EXPECT_EQ(!continue_from({.content = content, .marker = marker + "b"}, cut), is_found);
    });
    EXPECT_LT(ns, 500 * static_cast<int64_t>(rendered.size() + content.size()));
  };
  check("<u>" + user + "<a><end>", message + "b", false);  // the template drops the message
  check("<u>" + user + "<a>" + message + marker + "b<end>", "b" + message, false);  // or changes it
  check("<u>" + user + "<a>" + message + marker + "b<end>", message + "\u00a0", true);
  check("<u>" + user + "<a>" + message + marker + "b<end>", std::string(1'000'000, ' ') + message,
        true);
}

TEST(ParseChat, NamesAMissingKey) {
  const auto refused = [](std::string_view fields, std::string_view expected) {
    const auto result = parse("{" + std::string(fields) + "}");
    ASSERT_TRUE(result.error) << fields;
    EXPECT_EQ(result.error->message, "[request] " + std::string(expected));
  };
  const auto refused_beside = [&](const std::string& fields, std::string_view expected) {
    refused(std::string(kHello) + ", " + fields, expected);
  };
  const std::string tools = std::string(kTools) + ", ";
  refused(R"("messages": [{"content": "x"}])", "messages[0].role; got none, expected a string");
  refused(R"("messages": [{"role": "user"}])",
          "messages[0].content; got none, expected a string or a list of parts");
  refused(R"("messages": [{"role": "user", "content": [{"type": "text"}]}])",
          "messages[0].content[0].text; got none, expected a string");
  refused(R"("messages": [{"role": "assistant", "tool_calls": [{}]}])",
          "messages[0].tool_calls[0].function; got none, expected an object");
  refused(R"("messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}])",
          "messages[0].tool_calls[0].function.name; got none, expected a string");
  refused_beside(R"("tools": [{}])", "tools[0].function; got none, expected an object");
  refused_beside(R"("tools": [{"function": {}}])",
                 "tools[0].function.name; got none, expected a string");
  refused_beside(tools + R"("tool_choice": {"type": "function"})",
                 "tool_choice.function; got none, expected an object");
  refused_beside(tools + R"("tool_choice": {"function": {}})",
                 "tool_choice.function.name; got none, expected a string");
  refused_beside(R"("response_format": {})",
                 "response_format.type; got none, expected 'text', 'json_object' or 'json_schema'");
  refused_beside(R"("response_format": {"type": "json_schema"})",
                 "response_format; got the type 'json_schema' without a schema, expected one as "
                 "schema or json_schema.schema");
  refused_beside(R"("response_format": {"type": "json_schema", "json_schema": {}})",
                 "response_format.json_schema.schema; got none, expected a JSON schema");
}

TEST(ParseChat, RefusesAKeyThatIsThereTwice) {
  EXPECT_EQ(refused_hello(kHello), "messages");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": "x", "role": "system"})"), "messages");
  EXPECT_EQ(refused_message(R"({"role": "user", "content": [{"text": "a", "text": "b"}]})"),
            "messages");
  EXPECT_EQ(refused_hello(R"("tools": [{"function": {"name": "f", "name": "g"}}])"), "tools");
  EXPECT_EQ(refused_hello(R"("chat_template_kwargs": {"a": 1, "a": 2})"), "chat_template_kwargs");
  const auto refused = parse(R"({"messages": [{"role": "user", "content": "x", "content": "y"}]})");
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->message,
            "[request] messages[0].content; got it twice, expected it once");
  // The arguments of a tool call are text of a model, which may repeat keys.
  EXPECT_EQ(refused_message(R"({"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": "{\"a\": 1, \"a\": 2}"}}]})"),
            "accepted");
  for (const char* body : {R"({"prompt": "a", "prompt": "b"})",
                           R"({"messages": [{"role": "user", "content": "x", "content": "y"}]})"}) {
    EXPECT_TRUE(parse_tokenize_request(body, {}).error) << body;
  }
  EXPECT_EQ(parse_detokenize_request(R"({"tokens": [1], "tokens": [2]})", {}).error->param,
            "tokens");
}

TEST(ParseChat, BoundsTheValuesOfTheTemplate) {
  RequestDefaults defaults;
  defaults.limits.max_template_values = 6;
  const auto refused = [&](const std::string& fields) {
    const auto result =
        parse_chat_request("{" + std::string(kHello) + ", " + fields + "}", defaults);
    return result.error ? result.error->param : "accepted";
  };
  EXPECT_EQ(refused(R"("chat_template_kwargs": {"a": [1, 2, 3, 4, 5]})"), "accepted");
  EXPECT_EQ(refused(R"("chat_template_kwargs": {"a": [1, 2, 3, 4, 5, 6]})"),
            "chat_template_kwargs.a");
  EXPECT_EQ(refused(R"("chat_template_kwargs": {"a": {"b": 1, "c": {}}, "d": []})"), "accepted");
  EXPECT_EQ(refused(R"("chat_template_kwargs": {"a": {"b": 1, "c": {}}, "d": [[]]})"),
            "chat_template_kwargs.d")
      << "all fields count together, and keys count too";
  EXPECT_EQ(refused(R"("documents": [1, 2, 3, 4, 5, 6])"), "documents");
  const auto arguments = parse_chat_request(R"({"messages": [{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"a\": [1, 2, 3, 4]}"}}]}]})",
                                            defaults);
  ASSERT_TRUE(arguments.error);
  EXPECT_EQ(arguments.error->param, "messages[0].tool_calls[0].function.arguments");
}

TEST(ForcedCall, HasASchema) {
  const auto schema_of = [](const std::string& fields) {
    const ChatRequest request = hello(fields);
    const GrammarSpec schema = forced_call_schema(request).grammar;
    EXPECT_EQ(schema.kind, GrammarSpec::Kind::kJsonSchema);
    EXPECT_TRUE(JsonDocument::parse(schema.text, "schema").ok()) << schema.text;
    return schema.text;
  };
  const std::string tools(kTools);
  EXPECT_EQ(schema_of(tools + R"(, "tool_choice": {"function": {"name": "now"}})"),
            R"({"type":"object"})");
  EXPECT_THAT(schema_of(tools + R"(, "tool_choice": {"function": {"name": "add"}})"),
              HasSubstr(R"("$defs":{"N")"));
  // Definitions stay with their tool, where references find them.
  EXPECT_EQ(schema_of(tools + R"(, "tool_choice": "required", "parallel_tool_calls": false)"),
            R"({"type":"array","minItems":1,"maxItems":1,"items":{"anyOf":[)"
            R"({"type":"object","properties":{"name":{"type":"string","enum":["add"]},)"
            R"("parameters":{"$ref":"#/$defs/0"}},)"
            R"("required":["name","parameters"],"additionalProperties":false},)"
            R"({"type":"object","properties":{"name":{"type":"string","enum":["now"]},)"
            R"("parameters":{"$ref":"#/$defs/1"}},)"
            R"("required":["name","parameters"],"additionalProperties":false}]},)"
            R"("$defs":{"0":{"type":"object","properties":{"a":{"$ref":"#/$defs/0/$defs/N"}},)"
            R"("$defs":{"N":{"type":"integer"}}},"1":{"type":"object"}}})");
}

TEST(ForcedCall, ToolsKeepTheirOwnDefinitions) {
  const ChatRequest request = hello(R"("tool_choice": "required", "tools": [
      {"function": {"name": "f", "parameters": {"$ref": "#/definitions/P", "definitions":
        {"P": {"properties": {"default": {"$ref": "#"}}, "default": {"$ref": "#/x"}}}}}},
      {"function": {"name": "g", "parameters": {"$ref": "#/definitions/P", "definitions":
        {"P": {"type": "null"}}}}}])");
  EXPECT_THAT(
      forced_call_schema(request).grammar.text,
      HasSubstr(R"("$defs":{"0":{"$ref":"#/$defs/0/definitions/P","definitions":{"P":)"
                R"({"properties":{"default":{"$ref":"#/$defs/0"}},"default":{"$ref":"#/x"}}}},)"
                R"("1":{"$ref":"#/$defs/1/definitions/P","definitions":{"P":{"type":"null"}}}}})"));
}

TEST(ParseTokenize, TakesAPromptOrMessages) {
  const auto prompt = parse_tokenize_request(R"({"model": "m", "prompt": "a"})", {});
  ASSERT_FALSE(prompt.error);
  EXPECT_EQ(prompt.request.prompt, "a");
  EXPECT_EQ(prompt.request.model, "m");
  EXPECT_TRUE(prompt.request.add_special_tokens);
  const auto chat = parse_tokenize_request(
      "{" + std::string(kHello) + R"(, "return_token_strs": true, "add_generation_prompt": false})",
      {});
  ASSERT_FALSE(chat.error);
  EXPECT_FALSE(chat.request.add_special_tokens);
  EXPECT_TRUE(chat.request.return_token_strs);
  EXPECT_EQ(json_of(chat.request.conversation->variables),
            R"({"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":false})");
  EXPECT_EQ(parse_tokenize_request("{}", {}).error->param, "prompt");
  EXPECT_EQ(parse_tokenize_request(R"({"content": "a"})", {}).request.prompt, "a");
  for (const char* both :
       {R"({"prompt": "a", "content": "b"})", R"({"content": "b", "prompt": "a"})"}) {
    EXPECT_EQ(parse_tokenize_request(both, {}).error->message,
              "[request] content; got both prompt and content, expected one of them");
  }
  EXPECT_EQ(parse_tokenize_request("{\"content\": \"a\", " + std::string(kHello) + "}", {})
                .error->message,
            "[request] content; got both content and messages, expected one of them");
  EXPECT_EQ(
      parse_tokenize_request("{\"prompt\": \"a\", " + std::string(kHello) + "}", {}).error->param,
      "prompt");
  EXPECT_EQ(parse_tokenize_request(R"({"prompt": ["a"]})", {}).error->param, "prompt");

  EXPECT_THAT(parse_detokenize_request(R"({"tokens": [1, 2]})", {}).request.tokens,
              ::testing::ElementsAre(1, 2));
  EXPECT_FALSE(parse_detokenize_request(R"({"tokens": []})", {}).error);
  EXPECT_EQ(parse_detokenize_request("{}", {}).error->param, "tokens");
  EXPECT_EQ(parse_detokenize_request(R"({"tokens": [1, -2]})", {}).error->param, "tokens[1]");
}

}  // namespace
}  // namespace quire::server
