// Requests of coding agents: roles and fields beyond the plain conversation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "server/agents_fixture.h"
#include "server/conversation_prompt.h"
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
  engine_.use_template(std::string(kChatMl) + "{% set developer = '' %}{{ developer }}");
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>system\nD<|im_end|>"));
  engine_.use_template(std::string(kChatMl) + "{% if role == 'developer' %}{% endif %}");
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>developer\nD<|im_end|>"));
}

TEST_F(AgentsTest, AnUnknownRoleIsRefusedUnlessTheTemplateNamesIt) {
  const std::string messages = R"({"role":"user","content":"Q"},{"role":"critic","content":"C"})";
  engine_.use_template(std::string(kChatMl));
  EXPECT_THAT(chat(messages), HasSubstr("messages[1].role; got 'critic', expected"));
  engine_.use_template(std::string(kChatMl) + "{% if role == \"critic\" %}{% endif %}");
  EXPECT_THAT(chat(messages), HasSubstr("<|im_start|>critic\nC"));
}

TEST_F(AgentsTest, AMessageOfWhichNothingReachesThePromptIsRefused) {
  engine_.use_template(std::string(kTwoRoles));
  const std::string user = R"({"role":"user","content":" Q "})";
  EXPECT_EQ(chat(user), "U:Q");
  EXPECT_THAT(chat(R"({"role":"system","content":"S"},)" + user),
              AllOf(HasSubstr("messages[0]; got a message of the role 'system'"),
                    HasSubstr(R"("param":"messages[0]")")));
  // A message without text has nothing to lose, and reasoning is dropped by intent.
  EXPECT_EQ(chat(user + R"(,{"role":"assistant","content":" "},)" + user), "U:QA: U:Q");
  EXPECT_EQ(chat(R"({"role":"user","content":"\u2003\u00a0\f"},)" + user), "U:U:Q");
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

TEST_F(AgentsTest, ARequestSaysWhereItsLastMessageBegins) {
  engine_.use_template(std::string(kChatMl));
  const auto history_of = [&](const std::string& messages) {
    const std::string prompt = chat(messages);
    return prompt.substr(0, static_cast<size_t>(request_.num_history_tokens));  // token: one byte
  };
  const std::string two = R"({"role":"user","content":"Q"},{"role":"assistant","content":"A"},)"
                          R"({"role":"user","content":"R"})";
  EXPECT_EQ(history_of(two), "");
  engine_.info_.has_states = true;
  EXPECT_EQ(
      history_of(two),
      "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\n");
}

// The embedded model's template has no tools, calls or results, either.
constexpr std::string_view kNoTools =
    "{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('no role ' + m.role) }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";
// Requires that turns of the user and of the assistant alternate.
constexpr std::string_view kAlternating =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}";
constexpr std::string_view kUser = R"({"role":"user","content":"Q"})";

std::string call_of(const std::string& id, const std::string& arguments = R"({\"a\":1})") {
  return R"({"id":")" + id + R"(","type":"function","function":{"name":"f","arguments":")" +
         arguments + R"("}})";
}

std::string result_of(const std::string& id, const std::string& content) {
  return R"({"role":"tool","tool_call_id":")" + id + R"(","content":")" + content + R"("})";
}

class HistoryTest : public AgentsTest {
 protected:
  // Starts the server, which decides by the template how it writes calls and results.
  void start_with(std::string_view chat_template, const std::string& tool_call_parser = "") {
    end();
    engine_.use_template(std::string(chat_template));
    ServiceConfig config;
    config.tool_call_parser = tool_call_parser;
    config.constraints.compile = [](const GrammarSpec&) -> Result<ConstraintFactory> {
      return ConstraintFactory([] { return std::unique_ptr<TokenConstraint>(); });
    };
    start(std::move(config));
  }
};

TEST_F(HistoryTest, EveryForcedCallIsTakenBackByATemplateWithoutTools) {
  start_with(kNoTools);
  struct Api {
    std::string path;
    std::string first;        // fields of the request that forces a call
    std::string before_user;  // the next request, up to the list's first message
    std::string answer;       // JSON pointer of the response's messages
    std::string before_answer;
    std::string after_answer;  // with $ for the call's id
    std::string id;            // JSON pointer
  };
  const std::string function = R"("name":"f","description":"does")";
  const std::vector<Api> apis = {
      {"/v1/chat/completions",
       R"("tool_choice":"required","tools":[{"type":"function","function":{)" + function + "}}]",
       R"("messages":[)", "/choices/0/message", "",
       R"(,{"role":"tool","tool_call_id":"$","content":"42"}])",
       "/choices/0/message/tool_calls/0/id"},
      {"/v1/responses",
       R"("tool_choice":"required","tools":[{"type":"function",)" + function + "}]", R"("input":[)",
       "/output/0", "", R"(,{"type":"function_call_output","call_id":"$","output":"42"}])",
       "/output/0/call_id"},
      {"/v1/messages",
       R"("tool_choice":{"type":"any"},"tools":[{"input_schema":{},)" + function + "}]",
       R"("max_tokens":99,"messages":[)", "/content", R"({"role":"assistant","content":)",
       R"(},{"role":"user","content":[{"type":"tool_result","tool_use_id":"$","content":"42"}]}])",
       "/content/0/id"},
      {"/v1/chat/completions",
       R"("tool_choice":{"type":"function","function":{"name":"f"}},)"
       R"("tools":[{"type":"function","function":{)" +
           function + "}}]",
       R"("messages":[)", "/choices/0/message", "",
       R"(,{"role":"tool","tool_call_id":"$","content":"42"}])",
       "/choices/0/message/tool_calls/0/id"}};
  const std::string asked = "<|user|>Q<|end|><|assistant|>";
  const std::string arguments = R"({"a": [1, "<|end|>"]})";
  const std::string called = R"([{"name": "f", "parameters": )" + arguments + "}]";
  for (const Api& api : apis) {
    const bool is_named = api.first.find("required") == std::string::npos &&
                          api.first.find("any") == std::string::npos;
    EXPECT_EQ(
        prompt_of(api.path, "{" + api.before_user + std::string(kUser) + "]," + api.first + "}",
                  is_named ? arguments : called),
        asked)
        << api.path;
    const auto response = JsonDocument::parse(response_.body, "the response").value();
    const std::string answer = simdjson::minify(response.root().at_pointer(api.answer).value());
    std::string after = api.after_answer;
    after.replace(after.find('$'), 1,
                  std::string(response.root().at_pointer(api.id).get_string().value()));
    // The next prompt repeats the call as the model wrote it, so that the prefix cache hits.
    EXPECT_EQ(prompt_of(api.path, "{" + api.before_user + std::string(kUser) + "," +
                                      api.before_answer + answer + after + "}"),
              asked + called + "<|end|><|user|>42<|end|><|assistant|>")
        << api.path << ' ' << answer;
  }
  // Ollama's API forces no calls; a client may have them from elsewhere.
  EXPECT_EQ(prompt_of("/api/chat", R"({"messages":[)" + std::string(kUser) +
                                       R"(,{"role":"assistant","content":"So:","tool_calls":[)"
                                       R"({"function":{"name":"f","arguments":{"a":1}}}]},)"
                                       R"({"role":"tool","tool_name":"f","content":"42"}]})"),
            asked + "So:\n" + R"([{"name": "f", "parameters": {"a": 1}}])" +
                "<|end|><|user|>42<|end|><|assistant|>");
  EXPECT_THAT(call("POST", "/tokenize",
                   R"({"messages":[{"role":"user","content":"Q"},{"role":"assistant",)"
                   R"("tool_calls":[)" +
                       call_of("c") + "]}," + result_of("c", "42") + "]}")
                  ->wait(200)
                  .body,
              HasSubstr(R"("count":)"));
}

TEST_F(HistoryTest, ResultsJoinTheTurnsOfTheUserWhereTurnsAlternate) {
  start_with(kAlternating);
  const std::string history = std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" +
                              call_of("c") + "," + call_of("d", "") + "]}," + result_of("c", "1") +
                              "," + result_of("d", "2");
  const std::string expected = R"([user]Q[assistant][{"name": "f", "parameters": {"a": 1}}, )"
                               R"({"name": "f", "parameters": {}}][user]1)"
                               "\n2";
  EXPECT_EQ(chat(history), expected);
  EXPECT_EQ(chat(history + R"(,{"role":"user","content":"R"})"), expected + "\nR");
  EXPECT_EQ(chat(history + R"(,{"role":"assistant","content":"A"},{"role":"user","content":"R"})"),
            expected + "[assistant]A[user]R");
  // Other turns are the client's own.
  EXPECT_THAT(chat(std::string(kUser) + "," + std::string(kUser)), HasSubstr("must alternate"));
}

// The next prompt then has the call as the model wrote it.
TEST_F(HistoryTest, CallsThatTheTemplateCannotWriteAreInTheModelsDialect) {
  const std::string calls = std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" +
                            call_of("c") + "," + call_of("d", "") + "]}";
  const std::vector<std::pair<std::string, std::string>> dialects = {
      {"hermes", R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"
                 R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)"},
      {"granite",
       R"(<|tool_call|>[{"name": "f", "arguments": {"a": 1}},{"name": "f", "arguments": {}}])"},
      {"qwen3_coder",
       "<tool_call><function=f><parameter=a>\n1\n</parameter></function></tool_call>"
       "<tool_call><function=f></function></tool_call>"}};
  for (const auto& [dialect, text] : dialects) {
    start_with(kNoTools, dialect);
    EXPECT_EQ(chat(calls), "<|user|>Q<|end|><|assistant|>" + text + "<|end|><|assistant|>");
  }
}

// The text of a call that the template cannot write belongs to the message that is continued.
TEST_F(HistoryTest, AMessageIsContinuedAfterItsCallsThatAreText) {
  const std::string history = std::string(kUser) + R"(,{"role":"assistant","content":"So: ",)" +
                              R"("tool_calls":[)" + call_of("c") + "]}";
  const std::string more = R"(,"continue_final_message":true)";
  start_with(kNoTools);
  const std::string prompt = R"(<|user|>Q<|end|><|assistant|>So: )"
                             "\n"
                             R"([{"name": "f", "parameters": {"a": 1}}])";
  EXPECT_EQ(chat(history, more), prompt);
  EXPECT_THAT(
      call("POST", "/tokenize", R"({"messages":[)" + history + "]" + more + "}")->wait().body,
      HasSubstr(fmt::format("\"count\":{},", prompt.size())));
  // The text of arguments that are no object belongs to it, too.
  EXPECT_EQ(chat(std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" +
                     call_of("c", R"({\"a\": )") + "]}",
                 more),
            R"(<|user|>Q<|end|><|assistant|>{"a": )"
            "\n"
            R"([{"name": "f", "parameters": {}}])");
  start_with(kChatMl);
  EXPECT_THAT(chat(history, more), AllOf(HasSubstr("got tool_calls in the last message"),
                                         HasSubstr("leave out continue_final_message"),
                                         HasSubstr(R"("param":"messages")")));
}

TEST_F(HistoryTest, TheTemplatesOwnFormIsKept) {
  const std::string history = std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" +
                              call_of("c") + "]}," + result_of("c", "42");
  start_with(kChatMl);
  EXPECT_THAT(chat(history), AllOf(HasSubstr(R"("arguments": {"a": 1})"), HasSubstr("tool\n42")));
  start_with("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
  EXPECT_EQ(chat(history), R"([user]Q[assistant][{"name": "f", "parameters": {"a": 1}}][tool]42)");
  start_with(
      "{% for m in messages if m.role != 'tool' %}[{{ m.role }}]{{ m.content }}"
      "{{ m.tool_calls | default('') }}{% endfor %}");
  EXPECT_THAT(chat(history), AllOf(HasSubstr("'arguments': {'a': 1}"), HasSubstr("[user]42")));
}

// As Llama 3.1's own template does.
constexpr std::string_view kOneCall =
    "{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}"
    "{{ raise_exception('only one call at once') }}{% endif %}"
    "{{ m.content }}{{ m.tool_calls[0].id }}{{ m.tool_calls[0].function.arguments }}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}";

TEST_F(HistoryTest, CallsArePartedWhereTheTemplateAllowsOne) {
  start_with(kOneCall);
  const std::string history = std::string(kUser) +
                              R"(,{"role":"assistant","content":"So:","tool_calls":[)" +
                              call_of("c") + "," + call_of("d", R"({\"a\":2})") + "]},";
  const std::string first = "[user]Q[assistant]So:c{'a': 1}";
  const std::string second = "[assistant]d{'a': 2}";
  EXPECT_EQ(chat(history + result_of("c", "1") + "," + result_of("d", "2") +
                 R"(,{"role":"user","content":"R"})"),
            first + "[tool]1" + second + "[tool]2[user]R");
  EXPECT_EQ(chat(history + result_of("d", "2") + "," + result_of("c", "1")),
            first + "[tool]1" + second + "[tool]2");
  // A result of no call stays.
  EXPECT_EQ(chat(history + result_of("c", "1") + "," + result_of("x", "2")),
            first + "[tool]1" + second + "[tool]2");
  // A template that writes only the first of several calls allows one, too.
  start_with(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments }}{% endif %}{% endfor %}");
  EXPECT_EQ(chat(history + result_of("d", "2") + "," + result_of("c", "1")),
            "[user]Q[assistant]So:{'a': 1}[tool]1[assistant]{'a': 2}[tool]2");
}

TEST_F(HistoryTest, ArgumentsThatAreNoJsonReachThePromptOfATemplateWithoutContentBesideCalls) {
  // Refuses a result without a call.
  const std::string strict =
      "{% set ns = namespace(calls=0) %}{% for m in messages %}[{{ m.role }}]"
      "{% if m.tool_calls %}{% set ns.calls = ns.calls + 1 %}"
      "{{ m.tool_calls[0].function.arguments }}"
      "{% else %}{% if m.role == 'tool' and ns.calls == 0 %}{{ raise_exception('no call') }}"
      "{% endif %}{{ m.content }}{% endif %}{% endfor %}";
  start_with(strict);
  const std::string cut = R"({\"a\": 1, cut)";
  const std::string expected = R"([user]Q[assistant]{"a": 1, cut)"
                               "\n"
                               R"([{"name": "f", "parameters": {}}][user]42)";
  EXPECT_EQ(chat(std::string(kUser) + R"(,{"role":"assistant","content":null,"tool_calls":[)" +
                 call_of("c", cut) + "]}," + result_of("c", "42")),
            expected);
  EXPECT_EQ(
      prompt_of("/v1/responses",
                R"({"input":[{"role":"user","content":"Q"},{"type":"function_call",)"
                R"("call_id":"c","name":"f","arguments":")" +
                    cut + R"("},{"type":"function_call_output","call_id":"c","output":"42"}]})"),
      expected);
  // Other calls keep the template's form, which drops the content.
  const std::string whole = std::string(kUser) + R"(,{"role":"assistant","content":"So:",)" +
                            R"("tool_calls":[)" + call_of("c") + "]}," + result_of("c", "42");
  EXPECT_EQ(chat(whole), "[user]Q[assistant]{'a': 1}[tool]42");
  // A template that writes the content keeps the call.
  start_with(kOneCall);
  EXPECT_EQ(chat(std::string(kUser) + R"(,{"role":"assistant","content":null,"tool_calls":[)" +
                 call_of("c", cut) + "]}," + result_of("c", "42")),
            R"([user]Q[assistant]{"a": 1, cutc{}[tool]42)");
}

TEST_F(HistoryTest, AToolGetsTheFieldsWithoutWhichTheTemplateFails) {
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}},)"
                            R"({"type":"function","function":{"name":"g","description":null}}])";
  const std::string tail = "{% endfor %}{{ messages[0].content }}";
  start_with("{% for t in tools %}{{ t.function.name + ':' + t.function.description }} " + tail);
  EXPECT_EQ(chat(std::string(kUser), tools), "f: g: Q");
  EXPECT_EQ(prompt_of("/v1/messages",
                      R"({"max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[)" +
                          std::string(kUser) + "]}"),
            "f: Q");
  start_with("{% for t in tools %}{{ t.function.parameters | tojson }} " + tail);
  const std::string empty = R"({"type": "object", "properties": {}} )";
  EXPECT_EQ(chat(std::string(kUser), tools), empty + empty + "Q");
  // Other templates get the tool as it is.
  start_with("{% for t in tools %}{{ t.function | tojson }} " + tail);
  EXPECT_EQ(chat(std::string(kUser), tools),
            R"({"name": "f"} {"name": "g", "description": null} Q)");
}

// The examples of harmony's documentation, as the template of gpt-oss writes them: the recipient of
// a call comes first, and a result is a JSON string.
TEST_F(HistoryTest, HarmonysExamplesAreThePrompts) {
  const auto path = quire::testing::shared_data_path("chat_templates/openai-gpt-oss-120b.jinja");
  QUIRE_REQUIRE_SHARED(path);
  start_with(read_file(path, 1 << 20).value());
  const auto without_date = [](std::string prompt) {
    constexpr std::string_view kDate = "Current date: ";
    return prompt.erase(prompt.find(kDate) + kDate.size(), std::string_view("2025-06-28").size());
  };
  const auto system = [](const std::string& effort, const std::string& after) {
    return "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
           "Knowledge cutoff: 2024-06\nCurrent date: \n\nReasoning: " +
           effort +
           "\n\n# Valid channels: analysis, commentary, final. Channel must be included for every "
           "message." +
           after + "<|end|>";
  };
  const std::string tools =
      R"(,"reasoning_effort":"high","tools":[{"type":"function","function":{)"
      R"("name":"get_location","description":"Gets the location of the user.",)"
      R"("parameters":{"type":"object","properties":{}}}},{"type":"function","function":{)"
      R"("name":"get_weather","description":"Gets the current weather in the provided location.",)"
      R"("parameters":{"type":"object","properties":{"location":{"type":"string",)"
      R"("description":"The city and state, e.g. San Francisco, CA"},)"
      R"("format":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location"]}}}])";
  const std::string question = R"({"role":"system","content":"Use a friendly tone."},)"
                               R"({"role":"user","content":"What is the weather like in SF?"})";
  const std::string asked =
      system("high", "\nCalls to these tools must go to the commentary channel: 'functions'.") +
      "<|start|>developer<|message|># Instructions\n\nUse a friendly tone.\n\n# Tools\n\n"
      "## functions\n\nnamespace functions {\n\n// Gets the location of the user.\n"
      "type get_location = () => any;\n\n"
      "// Gets the current weather in the provided location.\ntype get_weather = (_: {\n"
      "// The city and state, e.g. San Francisco, CA\nlocation: string,\n"
      "format?: \"celsius\" | \"fahrenheit\",\n}) => any;\n\n} // namespace functions<|end|>"
      "<|start|>user<|message|>What is the weather like in SF?<|end|>";
  EXPECT_EQ(without_date(chat(question, tools)), asked + "<|start|>assistant");
  const std::string called =
      R"(,{"role":"assistant","reasoning_content":"Need to use function get_weather.",)"
      R"("tool_calls":[{"id":"c","type":"function","function":{"name":"get_weather",)"
      R"("arguments":"{\"location\":\"San Francisco\"}"}}]},)" +
      result_of("c", "20");
  EXPECT_EQ(without_date(chat(question + called, tools)),
            asked +
                "<|start|>assistant<|channel|>analysis<|message|>Need to use function get_weather."
                "<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json"
                "<|message|>{\"location\": \"San Francisco\"}<|call|>"
                "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>\"20\""
                "<|end|><|start|>assistant");
  // The reasoning of an earlier turn is dropped.
  EXPECT_EQ(without_date(chat(R"({"role":"user","content":"What is 2 + 2?"},{"role":"assistant",)"
                              R"("reasoning_content":"Simple arithmetic.","content":"2 + 2 = 4."},)"
                              R"({"role":"user","content":"What about 9 / 2?"})")),
            system("medium", "") +
                "<|start|>user<|message|>What is 2 + 2?<|end|>"
                "<|start|>assistant<|channel|>final<|message|>2 + 2 = 4.<|end|>"
                "<|start|>user<|message|>What about 9 / 2?<|end|><|start|>assistant");
}

TEST_F(HistoryTest, PublishedTemplatesHaveTheseForms) {
  // A template may require these tokens, which a checkpoint has.
  constexpr std::string_view kTokens = "{%- set bos_token = '<s>' %}{%- set eos_token = '</s>' %}";
  const std::vector<std::pair<std::string, HistoryForm>> forms = {
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use",
       {.has_content_beside_calls = false, .has_tools_without_parameters = false}},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
       {.has_content_beside_calls = false,
        .has_tools_without_description = false,
        .has_tools_without_parameters = false}},
      {"Qwen-Qwen2.5-7B-Instruct", {}},
      {"google-gemma-2-2b-it",
       {.has_calls = false, .has_results = false, .has_successive_users = false}},
      {"ibm-granite-granite-3.3-2B-Instruct", {.has_calls = false}},
      {"meta-llama-Llama-3.1-8B-Instruct",
       {.has_parallel_calls = false, .has_content_beside_calls = false}},
      {"mistralai-Mistral-Nemo-Instruct-2407",
       {.has_successive_users = false, .has_content_beside_calls = false, .has_long_ids = false}},
      {"microsoft-Phi-3.5-mini-instruct", {.has_calls = false, .has_results = false}},
      {"openai-gpt-oss-120b",
       {.has_parallel_calls = false, .has_tools_without_description = false}}};
  for (const auto& [name, expected] : forms) {
    const auto path = quire::testing::shared_data_path("chat_templates/" + name + ".jinja");
    QUIRE_REQUIRE_SHARED(path);
    engine_.use_template(std::string(kTokens) + read_file(path, 1 << 20).value());
    const HistoryForm form = find_history_form(engine_, nullptr);
    EXPECT_EQ(form.has_calls, expected.has_calls) << name;
    EXPECT_EQ(form.has_results, expected.has_results) << name;
    EXPECT_EQ(form.has_successive_users, expected.has_successive_users) << name;
    EXPECT_EQ(form.has_parallel_calls, expected.has_parallel_calls) << name;
    EXPECT_EQ(form.has_content_beside_calls, expected.has_content_beside_calls) << name;
    EXPECT_EQ(form.has_long_ids, expected.has_long_ids) << name;
    EXPECT_EQ(form.has_tools_without_description, expected.has_tools_without_description) << name;
    EXPECT_EQ(form.has_tools_without_parameters, expected.has_tools_without_parameters) << name;
  }
}

TEST_F(HistoryTest, IdsAreShortWhereTheTemplateRefusesOthers) {
  start_with(
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}"
      "{{ raise_exception('nine') }}{% endif %}[{{ c.id }} {{ c.function.arguments | tojson }}]{% "
      "endfor "
      "%}"
      "{% if m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('nine') }}"
      "{% endif %}({{ m.tool_call_id }}){% endif %}{{ m.content }}{% endfor %}");
  const auto turn = [](const std::string& id) {
    return std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" + call_of(id) + "]}," +
           result_of(id, "42");
  };
  EXPECT_EQ(chat(turn("abcdef123")), "Q[abcdef123 {\"a\": 1}](abcdef123)42");
  // The start of the id's SHA-256.
  EXPECT_EQ(chat(turn("call_7")), "Q[e61e4bcd9 {\"a\": 1}](e61e4bcd9)42");
  EXPECT_THAT(chat(turn("call-7890")), HasSubstr("Q[")) << "no letters or digits only";
}

TEST_F(HistoryTest, ACallOfWhichNothingReachesThePromptIsRefused) {
  start_with("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  const std::string called =
      std::string(kUser) + R"(,{"role":"assistant","tool_calls":[)" + call_of("c") + "]}";
  EXPECT_THAT(chat(called), HasSubstr("messages[1]; got a message of the role 'assistant'"));
  start_with("{{ messages[0].content }}");
  EXPECT_THAT(chat(std::string(kUser) + "," + result_of("c", "42")),
              HasSubstr("messages[1]; got a message of the role 'tool'"));
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
        prompt_of("/api/chat", R"({"stream":false,)" + user + R"(,"think":)" + value + "}"),
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
  output.cache_miss = CacheMiss::kChangedPrompt;
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
  EXPECT_THAT(get("/v1/models/other", version).body,
              HasSubstr(R"({"type":"error","error":{"type":"not_found_error","message":)"));
  EXPECT_THAT(get("/v1/models/other").body, HasSubstr(R"({"error":{"message":)"));
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
