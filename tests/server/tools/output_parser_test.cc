#include "server/tools/output_parser.h"

#include <gmock/gmock.h>
#include <openssl/rand.h>

#include <algorithm>
#include <random>

#include "base/json.h"
#include "server/tools/dialects.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string fixed_id() {
  return "abcdefghijklmnopqrstuvwx";
}

OutputParserConfig config_of(std::string tool_parser, std::string reasoning = "") {
  return {.tool_call_parser = std::move(tool_parser),
          .reasoning_parser = std::move(reasoning),
          .tool_names = {"get_weather", "add"},
          .make_id = fixed_id};
}

ParsedMessage parse(const OutputParserConfig& config, std::string_view text) {
  return parse_output(**make_output_parser(config), text);
}

// "f({…}) g({…})"
std::string calls_of(const ParsedMessage& message) {
  std::string text;
  for (const ToolCall& call : message.tool_calls) {
    text += (text.empty() ? "" : " ") + call.name + "(" + call.arguments + ")";
  }
  return text;
}

struct Case {
  const char* parser;
  const char* text;
  const char* content;
  const char* calls;
};

// The cases are written by hand in the formats of the models' own templates.
const Case kCases[] = {
    {"", "plain <tool_call>", "plain <tool_call>", ""},
    {"hermes", "Hello", "Hello", ""},
    {"hermes", " \n", " \n", ""},
    {"hermes", "", "", ""},
    {"hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>", "",
     "add({\"a\": 1})"},
    {"hermes",
     "I look.\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>\n"
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"K\\u00f6ln \\\"}\"}}\n"
     "</tool_call>\n",
     "I look.\n", "add({}) get_weather({\"city\": \"K\\u00f6ln \\\"}\"})"},
    {"hermes", "<tool_call>{\"arguments\":{\"a\":[1,{}]},\"name\":\"add\"}</tool_call> then",
     " then", "add({\"a\":[1,{}]})"},
    {"hermes", "<tool_call>{\"name\":\"add\"}</tool_call>", "", "add({})"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":null}</tool_call>", "", "add({})"},
    // The model omits the last brace.
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}\n</tool_call>", "",
     "add({\"a\":1})"},
    // The name is not a declared tool's, the text is not JSON, or the arguments are not an object.
    {"hermes", "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>",
     "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>", ""},
    {"hermes", "\n<tool_call>\nadd(1)</tool_call>", "\n<tool_call>\nadd(1)</tool_call>", ""},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":[1]}",
     "<tool_call>{\"name\":\"add\",\"arguments\":[1]}", ""},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":\"{}\"}",
     "<tool_call>{\"name\":\"add\",\"arguments\":\"{}\"}", ""},
    // Incomplete tags before the real one are content.
    {"hermes", "a <tool_<tool_call<<tool_call>{\"name\":\"add\"}</tool_call>",
     "a <tool_<tool_call<", "add({})"},
    // The text ends before the call is recognized, within its arguments, or within its end tag.
    {"hermes", "<tool_call>{\"name\":\"ad", "<tool_call>{\"name\":\"ad", ""},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":", "", "add({\"a\":)"},
    {"hermes", "<tool_call>{\"name\":\"add\"}</tool", "", "add({})"},
    // The call becomes invalid after it was recognized: the rest of its text is content.
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\": x}}</tool_call>",
     "x}}</tool_call>", "add({\"a\": )"},

    {"llama3_json", "{\"name\": \"add\", \"parameters\": {\"a\": 1, \"b\": 2}}", "",
     "add({\"a\": 1, \"b\": 2})"},
    {"llama3_json",
     "<|python_tag|>{\"name\":\"add\",\"parameters\":{}}; {\"type\":\"function\",\"name\":\"add\","
     "\"parameters\":{\"a\":2}}",
     "", "add({}) add({\"a\":2})"},
    {"llama3_json", "{\"answer\": 42}", "{\"answer\": 42}", ""},
    {"llama3_json", "Well, {\"name\": \"add\", \"parameters\": {}}",
     "Well, {\"name\": \"add\", \"parameters\": {}}", ""},
    {"llama3_json", "<|python_tag|>print(1)", "<|python_tag|>print(1)", ""},
    {"llama3_json", "Now: <|python_tag|>{\"name\":\"add\",\"parameters\":{}}", "Now: ", "add({})"},
    {"llama3_json", "{\"name\":\"add\",\"parameters\":{}} That was it.", " That was it.",
     "add({})"},

    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"add\", "
     "\"arguments\": {}}]",
     "", "add({\"a\": 1}) add({})"},
    {"mistral", "[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Bonn\"}",
     "", "add({\"a\": 1}) get_weather({\"city\": \"Bonn\"})"},
    {"mistral", "Text[TOOL_CALLS]add[CALL_ID]x1[ARGS]{}", "Text", "add({})"},
    {"mistral", "[TOOL_CALLS]add{\"a\": 1}", "", "add({\"a\": 1})"},
    {"mistral", "[TOOL_CALLS]sub[ARGS]{}", "[TOOL_CALLS]sub[ARGS]{}", ""},
    {"mistral", "[TOOL_CALLS] [1]", "[TOOL_CALLS] [1]", ""},
    {"mistral", "[TOOL_CALLS", "[TOOL_CALLS", ""},
};

TEST(OutputParser, ReadsEachFormat) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const ParsedMessage message = parse(config_of(c.parser), c.text);
    EXPECT_EQ(message.content, c.content);
    EXPECT_EQ(calls_of(message), c.calls);
  }
}

TEST(OutputParser, GivesTheSameMessageHoweverTheTextIsCut) {
  std::mt19937 random(7);
  for (const Case& c : kCases) {
    const std::string text = "<think>a </thin </think>" + std::string(c.text);
    const auto whole = parse(config_of(c.parser, "think"), text);
    for (int round = 0; round < 20; ++round) {
      auto parser = *make_output_parser(config_of(c.parser, "think"));
      ParsedMessage message;
      for (size_t i = 0; i < text.size();) {
        const size_t length = round == 0 ? 1 : 1 + random() % 9;
        append(message, parser->feed(std::string_view(text).substr(i, length)));
        i += length;
      }
      append(message, parser->finish(TextEnd::kModel));
      EXPECT_EQ(message.reasoning, "a </thin ");
      EXPECT_EQ(message.content, whole.content);
      EXPECT_EQ(calls_of(message), calls_of(whole));
    }
  }
}

TEST(OutputParser, StreamsTheNameFirstThenItsArguments) {
  auto parser = *make_output_parser(config_of("hermes"));
  EXPECT_TRUE(parser->feed("<tool_call>\n{\"name\": \"add\", \"argu").empty());
  const std::vector<ToolCallDelta> first = parser->feed("ments\": {\"a\"").at(0).tool_calls;
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].index, 0);
  EXPECT_EQ(first[0].id, "call_abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(first[0].name, "add");
  EXPECT_EQ(first[0].arguments, "{\"a\"");
  const std::vector<ToolCallDelta> second = parser->feed(": 12").at(0).tool_calls;
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].id, "");
  EXPECT_EQ(second[0].name, "");
  EXPECT_EQ(second[0].arguments, ": 12");
  const std::vector<ToolCallDelta> last =
      parser->feed("}}\n</tool_call>\n<tool_call>{\"name\":\"add\"}").at(0).tool_calls;
  ASSERT_THAT(last, SizeIs(2));
  EXPECT_EQ(last[0].arguments, "}");
  EXPECT_EQ(last[1].index, 1);
  EXPECT_EQ(last[1].arguments, "{}");
  EXPECT_TRUE(parser->finish(TextEnd::kModel).empty());
}

// "reasoning|content|call(…)|" by delta.
std::string shown(const MessageDeltas& deltas) {
  std::string text;
  for (const MessageDelta& delta : deltas) {
    text += delta.reasoning + "|" + delta.content + "|";
    for (const ToolCallDelta& call : delta.tool_calls) text += call.name + call.arguments;
    text += delta.cut == CutCall::kNone ? ";" : " cut;";
  }
  return text;
}

TEST(OutputParser, KeepsTheOrderOfTheParts) {
  auto parser = *make_output_parser(config_of("hermes", "think"));
  EXPECT_EQ(shown(parser->feed("<think>a</think>b<tool_call>{\"name\":\"add\"}</tool_call>c")),
            "a|b|add{};|c|;");
}

constexpr const char* kCutCall = "So: <tool_call>{\"name\":\"add\",\"arguments\":{\"a\": 1";

TEST(OutputParser, ACallThatALimitHasCutEndsThere) {
  auto parser = *make_output_parser(config_of("hermes"));
  EXPECT_EQ(shown(parser->feed(kCutCall)), "|So: |add{\"a\": 1;");
  EXPECT_EQ(shown(parser->finish(TextEnd::kCut)), "|| cut;");
}

TEST(OutputParser, AHeldCallThatALimitHasCutIsContent) {
  OutputParserConfig config = config_of("hermes");
  config.held_tools = {"add"};
  auto parser = *make_output_parser(config);
  EXPECT_EQ(shown(parser->feed(kCutCall)), "|So: |;");
  EXPECT_EQ(shown(parser->finish(TextEnd::kCut)),
            "|| cut;|<tool_call>{\"name\":\"add\",\"arguments\":{\"a\": 1|;");
  config.held_tools = {"get_weather"};
  EXPECT_EQ(shown((*make_output_parser(config))->feed(kCutCall)), "|So: |add{\"a\": 1;");
}

TEST(OutputParser, AHeldCallThatIsNotJsonIsContent) {
  OutputParserConfig config = config_of("hermes");
  config.holds_calls = true;
  const std::string bad = "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\": 01}}";
  const ParsedMessage message = parse(config, "<tool_call>{\"name\":\"add\"}</tool_call>\n" + bad);
  EXPECT_EQ(calls_of(message), "add({})");
  EXPECT_EQ(message.content, "\n" + bad);
  EXPECT_TRUE(message.has_cut_call);
}

TEST(OutputParser, BracketsThatTheModelLeftOutAreAdded) {
  auto parser = *make_output_parser(config_of("hermes"));
  parser->feed(kCutCall);
  EXPECT_EQ(shown(parser->finish(TextEnd::kModel)), "||};");
  auto tagged = *make_output_parser(config_of("qwen3_coder"));
  const std::string call = "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n";
  EXPECT_EQ(shown(tagged->feed(call)), "||add{\"a\": \"1;");
  EXPECT_EQ(shown(tagged->finish(TextEnd::kModel)), "||\"};");
  tagged = *make_output_parser(config_of("qwen3_coder"));
  tagged->feed(call);
  EXPECT_EQ(shown(tagged->finish(TextEnd::kCut)), "||\";|| cut;");
}

TEST(OutputParser, ACutCallWithinReasoningIsReasoning) {
  OutputParserConfig config = config_of("hermes", "think");
  const std::string text = std::string("<think>") + kCutCall;
  for (const bool is_held : {false, true}) {
    config.holds_calls = is_held;
    auto parser = *make_output_parser(config);
    ParsedMessage message;
    append(message, parser->feed(text));
    append(message, parser->finish(TextEnd::kCut));
    EXPECT_EQ(message.reasoning, kCutCall);
    EXPECT_THAT(message.tool_calls, IsEmpty());
    EXPECT_FALSE(message.has_cut_call);
  }
}

TEST(OutputParser, AForcedCallThatIsHeldAndCutIsContent) {
  OutputParserConfig config = config_of("hermes");
  config.holds_calls = true;
  config.forced = ForcedCall::kNamed;
  EXPECT_EQ(parse(config, " {\"city\": \"Bo").content, "{\"city\": \"Bo");
  EXPECT_EQ(calls_of(parse(config, " {\"city\": \"Bonn\"} ")), "get_weather({\"city\": \"Bonn\"})");
  config.forced = ForcedCall::kAny;
  const ParsedMessage message =
      parse(config, "[{\"name\":\"add\",\"parameters\":{}}, {\"name\":\"add\",\"parameters\":{\"a");
  EXPECT_EQ(calls_of(message), "add({})");
  EXPECT_EQ(message.content, "{\"name\":\"add\",\"parameters\":{\"a");
}

TEST(OutputParser, MakesIdsOfTheirFormat) {
  EXPECT_EQ(parse(config_of("mistral"), "[TOOL_CALLS]add{}").tool_calls.at(0).id, "abcdefghi");
  OutputParserConfig config = config_of("hermes");
  config.make_id = nullptr;
  const auto one = parse(config, "<tool_call>{\"name\":\"add\"}").tool_calls.at(0).id;
  const auto two = parse(config, "<tool_call>{\"name\":\"add\"}").tool_calls.at(0).id;
  EXPECT_EQ(one.size(), 29U);
  EXPECT_NE(one, two);
}

TEST(OutputParser, DropsFurtherCallsWhereOneIsWanted) {
  OutputParserConfig config = config_of("mistral");
  config.keeps_first_call_only = true;
  const auto message = parse(config, "[TOOL_CALLS]add{\"a\":1}[TOOL_CALLS]add{\"a\":2} end");
  EXPECT_EQ(calls_of(message), "add({\"a\":1})");
  EXPECT_EQ(message.content, " end");
}

TEST(OutputParser, PartsReasoningFromContent) {
  const auto both = [](bool open, std::string_view text) {
    OutputParserConfig config = config_of("hermes", "think");
    config.starts_in_reasoning = open;
    const ParsedMessage message = parse(config, text);
    return message.reasoning + "|" + message.content + "|" + calls_of(message);
  };
  EXPECT_EQ(both(false, "<think>\nhm\n</think>\n\nYes"), "\nhm\n|\n\nYes|");
  EXPECT_EQ(both(false, "\n<think>hm</think>Yes"), "hm|Yes|");
  EXPECT_EQ(both(false, "No <think>hm</think>"), "|No <think>hm</think>|");
  EXPECT_EQ(both(false, "\n<thin"), "|\n<thin|");
  EXPECT_EQ(both(false, "<think>cut </thi"), "cut </thi||");
  EXPECT_EQ(both(true, "hm</think>Yes"), "hm|Yes|");
  EXPECT_EQ(both(true, "<think>hm</think>Yes"), "hm|Yes|");
  EXPECT_EQ(both(true, "<t"), "<t||");
  EXPECT_EQ(both(true,
                 "hm <tool_call>{\"name\":\"add\"}</tool_call></think>\n\n"
                 "<tool_call>{\"name\":\"add\"}</tool_call>"),
            "hm <tool_call>{\"name\":\"add\"}</tool_call>||add({})");
}

TEST(OutputParser, ReadsForcedCalls) {
  for (const char* own_format : {"hermes", "llama3_json", "mistral", ""}) {
    OutputParserConfig config = config_of(own_format);
    config.forced = ForcedCall::kNamed;
    EXPECT_EQ(calls_of(parse(config, " {\"city\":\n \"Bonn\"}\n")),
              "get_weather({\"city\":\n \"Bonn\"})");
    config.forced = ForcedCall::kAny;
    EXPECT_EQ(calls_of(parse(config,
                             "[{\"name\":\"add\",\"parameters\":{\"a\":1}}, "
                             "{\"name\":\"add\",\"parameters\":{}}]")),
              "add({\"a\":1}) add({})");
    config.tool_names.clear();
    EXPECT_FALSE(make_output_parser(config).ok());
  }
}

// Wherever max_tokens cuts the text, the result has the recognized calls, the last one's arguments
// as far as they go, and the text of a call that is not recognized yet.
TEST(OutputParser, AForcedCallThatIsCutIsContentUntilItIsRecognized) {
  OutputParserConfig config = config_of("hermes");
  config.forced = ForcedCall::kAny;
  const std::string one = "[   {\n \"name\": \"add\", \"parameters\": {\"a\": 1}}";
  const std::string two = one + "\n\n ,  {\n\"name\": \"get_weather\", \"parameters\": {\"city";
  for (size_t size = 0; size <= two.size(); ++size) {
    const ParsedMessage message = parse(config, two.substr(0, size));
    const size_t first = one.rfind('{');
    const size_t next = two.find('{', one.size());
    const std::string begun = size <= first ? two.substr(0, size)
                              : size <= next || size > two.rfind('{')
                                  ? std::string()
                                  : two.substr(next, size - next);
    EXPECT_EQ(message.content, begun) << two.substr(0, size);
    const int num_known = int{size > one.rfind('{')} + int{size > two.rfind('{')};
    EXPECT_THAT(message.tool_calls, SizeIs(num_known)) << two.substr(0, size);
  }
  EXPECT_EQ(calls_of(parse(config, one.substr(0, one.size() - 3))), "add({\"a\": )");
  EXPECT_EQ(calls_of(parse(config, two)), "add({\"a\": 1}) get_weather({\"city)");

  config.forced = ForcedCall::kNamed;
  const std::string named = "\n {\"city\": \"Bonn\"}";
  for (size_t size = 0; size <= named.size(); ++size) {
    const ParsedMessage message = parse(config, named.substr(0, size));
    EXPECT_EQ(message.content, "");
    EXPECT_EQ(message.tool_calls.size(), size > 2 ? 1U : 0U);
  }
  EXPECT_EQ(calls_of(parse(config, named.substr(0, 11))), "get_weather({\"city\": )");
}

TEST(OutputParser, HoldsBackABoundedText) {
  // Arguments that do not end before the name: after 64 KiB the text is content.
  const std::string text = "<tool_call>{\"arguments\": {\"a\": \"" + std::string(100'000, 'x') +
                           "\"}, \"name\": \"add\"}";
  auto parser = *make_output_parser(config_of("hermes"));
  EXPECT_TRUE(parser->feed(std::string_view(text).substr(0, 65'000)).empty());
  EXPECT_FALSE(parser->feed(std::string_view(text).substr(65'000, 1'000)).empty());
  EXPECT_EQ(parse(config_of("hermes"), text).content, text);
  const std::string spaces(10'000, '\n');
  EXPECT_EQ(parse(config_of("hermes"), spaces + "x").content, spaces + "x");
  const std::string deep = "<tool_call>{\"name\":\"add\",\"arguments\":" + std::string(100, '[');
  EXPECT_EQ(parse(config_of("hermes"), deep).content, deep);
}

TEST(OutputParser, WithoutToolsAllIsContent) {
  OutputParserConfig config = config_of("hermes");
  config.tool_names.clear();
  const std::string text = "<tool_call>{\"name\":\"add\"}</tool_call>";
  EXPECT_EQ(parse(config, text).content, text);
}

TEST(OutputParser, RefusesUnknownNames) {
  EXPECT_THAT(make_output_parser(config_of("x")).status().message(), HasSubstr("hermes"));
  EXPECT_THAT(make_output_parser(config_of("", "x")).status().message(), HasSubstr("think"));
  for (const std::string& name : tool_call_parser_names()) {
    EXPECT_TRUE(make_output_parser(config_of(name)).ok());
  }
}

// The names of vLLM 0.11 to 0.33 that mean a dialect which is known here.
TEST(OutputParser, AcceptsTheNamesOfVllm) {
  for (const char* const name : {"cohere_command3",
                                 "cohere_command4",
                                 "deepseek_v3",
                                 "deepseek_v31",
                                 "deepseek_v32",
                                 "deepseek_v4",
                                 "deepseek_v41",
                                 "ernie45",
                                 "gemma4",
                                 "glm45",
                                 "glm47",
                                 "granite",
                                 "granite-20b-fc",
                                 "granite4",
                                 "hermes",
                                 "hunyuan_a13b",
                                 "jamba",
                                 "kimi_k2",
                                 "lfm2",
                                 "ling3",
                                 "llama3_json",
                                 "llama4_json",
                                 "llama4_pythonic",
                                 "mimo",
                                 "minimax_m2",
                                 "mistral",
                                 "muse",
                                 "muse_glimmer",
                                 "musespark1x",
                                 "olmo3",
                                 "openai",
                                 "phi4_mini_json",
                                 "poolside_v1",
                                 "pythonic",
                                 "qwen3_coder",
                                 "qwen3_json",
                                 "qwen3_xml",
                                 "seed_oss",
                                 "step3",
                                 "step3p5",
                                 "step5"}) {
    EXPECT_NE(find_dialect(name), nullptr) << name;
  }
  for (const char* const name :
       {"cohere_command3", "cohere_command4", "deepseek_r1", "deepseek_v3",
        "deepseek_v4",     "deepseek_v41",    "ernie45",     "gemma4",
        "glm45",           "glm47",           "granite",     "holo2",
        "hunyuan_a13b",    "kimi_k2",         "ling3",       "mimo",
        "minicpmv",        "minimax_m2",      "mistral",     "muse",
        "muse_glimmer",    "musespark1x",     "nemotron_v3", "olmo3",
        "openai_gptoss",   "poolside_v1",     "qwen3",       "seed_oss",
        "step3",           "step3p5",         "step5",       "granite_thinking_parser"}) {
    EXPECT_NE(find_reasoning_dialect(name), nullptr) << name;
  }
}

TEST(OutputParser, ReplacesHalvesOfSurrogatePairs) {
  const auto read = [](std::string_view text) {
    return calls_of(parse(config_of("hermes"), R"(<tool_call>{"name":"add","arguments":{"a":")" +
                                                   std::string(text) + R"("}}</tool_call>)"));
  };
  EXPECT_EQ(read(R"(\ud83e\udd17)"), R"(add({"a":"\ud83e\udd17"}))");
  EXPECT_EQ(read(R"(\uD83e)"), R"(add({"a":"\ufffd"}))");
  EXPECT_EQ(read(R"(\udd17x)"), R"(add({"a":"\ufffdx"}))");
  EXPECT_EQ(read(R"(\ud83e\ud83e\udd17)"), R"(add({"a":"\ufffd\ud83e\udd17"}))");
  EXPECT_EQ(read(R"(\ud83e\n\u00e9)"), R"(add({"a":"\ufffd\n\u00e9"}))");
  EXPECT_EQ(read(R"(\ud83e\u12)"), R"(add({"a":"\ufffd\\u12"}))");
}

TEST(OutputParser, IsDetectedFromTheTemplate) {
  EXPECT_EQ(detect_tool_call_parser("…{{- '<tool_call>\\n' }}…"), "hermes");
  EXPECT_EQ(detect_tool_call_parser("…[TOOL_CALLS]…"), "mistral");
  EXPECT_EQ(detect_tool_call_parser("<|start_header_id|> '\"parameters\": '"), "llama3_json");
  EXPECT_EQ(detect_tool_call_parser("<tool_call>\n<function=x>"), "qwen3_coder");
  EXPECT_EQ(detect_tool_call_parser("<tool_call>{name}\n<arg_key>"), "glm45");
  EXPECT_EQ(detect_tool_call_parser("{{ messages }}"), "");
  EXPECT_EQ(detect_reasoning_parser("split('</think>')"), "think");
  EXPECT_EQ(detect_reasoning_parser("x"), "");
  EXPECT_EQ(detect_reasoning_parser("'<seed:think>' … '</think>'"), "seed_oss");
  const ResponseTemplate& think = *find_reasoning_dialect("think");
  const ResponseTemplate& seed = *find_reasoning_dialect("seed_oss");
  EXPECT_TRUE(prompt_opens_reasoning("<|im_start|>assistant\n<think>\n", think));
  EXPECT_TRUE(prompt_opens_reasoning("<seed:bos>assistant\n<seed:think>", seed));
  EXPECT_FALSE(prompt_opens_reasoning("<seed:bos>assistant\n<think>", seed));
  EXPECT_EQ(reasoning_end(think), "</think>");
  EXPECT_EQ(reasoning_end(*find_reasoning_dialect("mistral")), "[/THINK]");
  EXPECT_FALSE(prompt_opens_reasoning("<think>\n\n</think>\n\n", think));
  EXPECT_TRUE(prompt_closes_reasoning("<think>\n\n</think>\n\n", think));
  EXPECT_FALSE(prompt_closes_reasoning("<think>\n", think));
}

TEST(OutputParser, ArgumentsAreValidJson) {
  const auto valid = parse(config_of("hermes"),
                           "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":[-0.5e+3,true,null,"
                           "\"\\ud83d\\ude00\"],\"b\":{}}}</tool_call>");
  EXPECT_TRUE(JsonDocument::parse(valid.tool_calls.at(0).arguments, "arguments").ok());
  // None of these is JSON, so the arguments end before it.
  for (const char* bad :
       {"01", "+1", "1.", "1e", ".5", "tru", "'a'", "[1,]", "{\"a\" 1}", "{,}", "-", "1]", "{]"}) {
    const auto message =
        parse(config_of("hermes"),
              std::string("<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":") + bad + " }}x");
    EXPECT_FALSE(JsonDocument::parse(message.tool_calls.at(0).arguments, "arguments").ok()) << bad;
    EXPECT_THAT(message.content, ::testing::EndsWith("x")) << bad;
  }
  // Slips within strings are repaired.
  const std::pair<const char*, const char*> slips[] = {
      {R"("\x")", R"("\\x")"}, {R"("\u12g")", R"("\\u12g")"}, {"\"\t\"", R"("\t")"}};
  for (const auto& [slip, repaired] : slips) {
    const std::string call =
        std::string("<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":") + slip + "}}";
    EXPECT_EQ(calls_of(parse(config_of("hermes"), call)),
              std::string("add({\"a\":") + repaired + "})");
  }
}

// Takes a marker that arrived as one token and is a part of the visible text.
void append_token(ParsedMessage& message, OutputParser& parser, const OutputParserConfig& config,
                  std::string_view marker) {
  const auto known = std::ranges::find(config.token_markers, marker, &TokenMarker::text);
  const bool is_known = known != config.token_markers.end();
  const bool is_hidden = is_known && known->is_hidden;
  append(message, parser.feed_token(is_known ? known->token_id : 99, is_hidden ? "" : marker));
}

// A text that spells a marker is no marker if the tokenizer has a token for it.
TEST(OutputParser, TellsMarkersFromTextThatSpellsThem) {
  OutputParserConfig config = config_of("hermes", "think");
  config.token_markers = {{1, "<tool_call>"}, {2, "</tool_call>"}, {3, "<think>"}, {4, "</think>"}};
  const std::string call = "{\"name\":\"add\",\"arguments\":{\"a\":\"";
  const std::string spelled = "<think>no</think><tool_call>" + call + "1\"}}</tool_call>\xff";
  EXPECT_EQ(parse(config, spelled).content, spelled);

  for (const bool is_hidden : {false, true}) {
    for (TokenMarker& marker : config.token_markers) marker.is_hidden = is_hidden;
    auto parser = *make_output_parser(config);
    ParsedMessage message;
    append_token(message, *parser, config, "<think>");
    append(message, parser->feed("a </think> b"));
    append_token(message, *parser, config, "</think>");
    append_token(message, *parser, config, "<tool_call>");
    append(message, parser->feed(call + "</tool_call>"));
    append_token(message, *parser, config, "<tool_call>");  // in a string it is text
    append(message, parser->feed("\"}}"));
    append_token(message, *parser, config, "</tool_call>");
    append(message, parser->feed("</tool_call>"));
    append_token(message, *parser, config, "<tool_call>");  // no call follows
    append_token(message, *parser, config, "<unknown>");
    append(message, parser->finish(TextEnd::kModel));
    EXPECT_EQ(message.reasoning, "a </think> b");
    EXPECT_EQ(calls_of(message), is_hidden ? "add({\"a\":\"</tool_call>\"})"
                                           : "add({\"a\":\"</tool_call><tool_call>\"})");
    EXPECT_EQ(message.content,
              is_hidden ? "</tool_call><unknown>" : "</tool_call><tool_call><unknown>");
  }
}

// Strings of Gemma's notation end only at their token.
TEST(OutputParser, TellsDelimitersOfStringsFromTextThatSpellsThem) {
  OutputParserConfig config = config_of("gemma4");
  config.token_markers = {
      {1, "<|tool_call>", true}, {2, "<tool_call|>", true}, {3, "<|\"|>", true}};
  auto parser = *make_output_parser(config);
  ParsedMessage message;
  append_token(message, *parser, config, "<|tool_call>");
  append(message, parser->feed("call:get_weather{city:"));
  append_token(message, *parser, config, "<|\"|>");
  append(message, parser->feed("a<|\"|>b"));
  append_token(message, *parser, config, "<|\"|>");
  append(message, parser->feed("}"));
  append_token(message, *parser, config, "<tool_call|>");
  append(message, parser->finish(TextEnd::kModel));
  EXPECT_EQ(calls_of(message), "get_weather({\"city\":\"a<|\\\"|>b\"})");
  EXPECT_EQ(message.content, "");
}

TEST(OutputParser, ACallThatIsCutIsContentUntilItIsRecognized) {
  const auto parse_cut = [](std::string_view text, bool holds_calls) {
    OutputParserConfig config = config_of("hermes", "think");
    config.holds_calls = holds_calls;
    const auto parser = *make_output_parser(config);
    ParsedMessage message;
    append(message, parser->feed(text));
    append(message, parser->finish(TextEnd::kCut));
    return message;
  };
  constexpr std::string_view kCall = R"(<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>)";
  const ParsedMessage whole = parse_cut("<think>hm</think>\n" + std::string(kCall), false);
  EXPECT_EQ(whole.reasoning, "hm");
  EXPECT_EQ(calls_of(whole), R"(add({"a":1}))");
  EXPECT_EQ(whole.content, "");
  for (const bool holds : {false, true}) {
    EXPECT_EQ(parse_cut("<tool_call>{\"na", holds).content, "<tool_call>{\"na");
  }
  const std::string cut(kCall.substr(0, kCall.find("1}")));
  EXPECT_EQ(parse_cut(cut, true).content, cut);
  EXPECT_TRUE(parse_cut(cut, true).has_cut_call);
  EXPECT_EQ(calls_of(parse_cut(cut, false)), "add({\"a\":)");
  EXPECT_EQ(parse_cut(cut, false).content, "");
}

TEST(OutputParser, FindsTheMarkersAmongTheAddedTokens) {
  const std::vector<TokenMarker> added = {
      {1, "<tool_call>"}, {2, "<|im_end|>", true}, {3, "\n"}, {4, "</think>"}, {5, "call"}};
  const auto ids = [&](std::string_view calls, std::string_view reasoning) {
    std::vector<int32_t> found;
    for (const TokenMarker& marker :
         markers_among(added, {find_dialect(calls), find_reasoning_dialect(reasoning)})) {
      found.push_back(marker.token_id);
    }
    return found;
  };
  EXPECT_THAT(ids("hermes", "think"), ::testing::ElementsAre(1, 4));
  EXPECT_THAT(ids("hermes", ""), ::testing::ElementsAre(1, 4));
  EXPECT_THAT(ids("", "mistral"), IsEmpty());
}

// OpenSSL has no random bytes if memory or descriptors are exhausted.
TEST(RandomId, DoesNotNeedOpenSsl) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  RAND_METHOD without{};
  without.bytes = [](unsigned char*, int) { return 0; };
  ::RAND_set_rand_method(&without);
  const std::string one = random_id();
  const std::string other = random_id();
  ::RAND_set_rand_method(nullptr);
#pragma GCC diagnostic pop
  EXPECT_EQ(one.size(), 24U);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace quire::server
