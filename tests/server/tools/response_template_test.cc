// Templates of checkpoints: what is read, what is refused, and how patterns are bounded.
#include "server/tools/response_template.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "server/tools/dialect_choice.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;

Result<ResponseTemplate> parse_fields(const std::string& fields) {
  return parse_response_template("{\"start_anchor\": \"x\", \"fields\": " + fields + "}", "a test");
}

// The message of an output, as "reasoning|content|f({…})".
std::string read(const std::string& fields, std::string_view text) {
  auto own = parse_fields(fields);
  EXPECT_TRUE(own.ok()) << own.status().message();
  if (!own.ok()) return {};
  OutputParserConfig config;
  config.tool_names = {"f", "g"};
  config.tool_schemas = {R"({"properties": {"n": {"type": "integer"}}})", "{}"};
  config.call_template = std::make_shared<const ResponseTemplate>(std::move(*own));
  config.reasoning_template = config.call_template;
  const auto show = [](const ParsedMessage& message) {
    std::string shown = message.reasoning + "|" + message.content + "|";
    for (const ToolCall& call : message.tool_calls) shown += call.name + call.arguments;
    return shown;
  };
  const std::string whole = show(parse_output(**make_output_parser(config), text));
  for (size_t i = 1; i < text.size(); ++i) {
    auto parser = *make_output_parser(config);
    ParsedMessage message;
    append(message, parser->feed(text.substr(0, i)));
    append(message, parser->feed(text.substr(i)));
    append(message, parser->finish(TextEnd::kModel));
    EXPECT_EQ(show(message), whole) << "cut at " << i;
  }
  return whole;
}

constexpr const char* kNamed =
    R"("transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}})";

TEST(ResponseTemplate, ReadsLiteralsAndTransforms) {
  const std::string fields = R"({
    "thinking": {"open": "<t>", "close": "</t>", "repeats": true, "join": "; "},
    "tool_calls": {"open": "<call>", "close": "</call>", "content": "json", "repeats": true,
                   "transform": {"type": "function", "function": "{content}"}},
    "content": {}})";
  EXPECT_EQ(read(fields, "<t> a </t>b<t>c\n</t><call>{\"name\": \"f\", \"arguments\": {}}</call>"),
            "a; c|b|f{}");
  const std::string keys = R"({
    "tool_calls": {"open": "<a>", "close": "</a>", "content": "json", "transform_each": true,
                   "transform": {"type": "function", "function":
                     {"name": "{tool_name}", "arguments": "{parameters}"}}}})";
  EXPECT_EQ(read(keys,
                 "<a>[{\"tool_name\": \"f\", \"parameters\": {\"n\": 1}},\n"
                 "{\"tool_name\": \"g\", \"parameters\": {}}]</a>"),
            "||f{\"n\": 1}g{}");
  const std::string python = R"({
    "tool_calls": {"open": "<p>", "close": "</p>", "content": "python-call-list",
                   "transform_each": true, "transform": {"type": "function", "function":
                     {"name": "{name}", "arguments": "{arguments}"}}}})";
  EXPECT_EQ(read(python, "<p>[f(n=1, s='x'), g()]</p>"), "||f{\"n\":1,\"s\":\"x\"}g{}");
}

TEST(ResponseTemplate, ReadsPatterns) {
  const std::string fields = fmt::format(R"({{
    "tool_calls": {{"open_pattern": "<call>\\s*<function=(?P<name>\\w+)>", "close": "</call>",
      "content": "xml-inline", "content_args": {{
        "tag_pattern": "<p=(?P<key>\\w+)>(?P<value>.*?)</p>"}}, {}}}}})",
                                         kNamed);
  EXPECT_EQ(read(fields, "a<call>\n<function=f><p=n>12</p>\n<p=s>x\ny</p></call>b"),
            "|ab|f{\"n\": 12, \"s\": \"x\\ny\"}");
  EXPECT_EQ(read(fields, "<call><function=h></call>"), "|<call><function=h></call>|");
  // A call that a limit has cut is no call: its arguments may be incomplete.
  EXPECT_EQ(read(fields, "<call><function=f><p=n>12</p>"), "|<call><function=f><p=n>12</p>|");
}

TEST(ResponseTemplate, ReadsLinesOfKeysAndValues) {
  const auto fields = [](const char* parser) {
    return fmt::format(R"({{"tool_calls": {{"open_pattern": "CALL (?P<name>\\w+)\n", "close": "END",
      "content": "kv-lines", "content_args": {{"kv_sep": "=", "value_parser": {{"name": "{}"}}}},
      {}}}}})",
                       parser, kNamed);
  };
  EXPECT_EQ(read(fields("text"), "CALL f\nn = 1\ns= a=b\nEND"),
            "||f{\"n\": \"1\", \"s\": \"a=b\"}");
  EXPECT_EQ(read(fields("int"), "CALL f\nn=0012\nEND"), "|CALL f\nn=0012\nEND|");
  EXPECT_EQ(read(fields("int"), "CALL f\nn=12\nEND"), "||f{\"n\": 12}");
  EXPECT_EQ(read(fields("float"), "CALL f\nn=1.50\nEND"), "||f{\"n\": 1.50}");
  EXPECT_EQ(read(fields("bool"), "CALL f\nn=True\nm=no\nEND"), "||f{\"n\": true, \"m\": false}");
  EXPECT_EQ(read(fields("json"), "CALL f\nn=[1, \"a\"]\ns=\"x\"\nEND"),
            "||f{\"n\": [1, \"a\"], \"s\": \"x\"}");
}

TEST(ResponseTemplate, RefusesOtherTemplates) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "'fields'"},
      {"{}", "'fields'"},
      {R"({"a": 1})", "must be an object"},
      {R"({"a": {"opens": "x"}})", "unknown key 'opens'"},
      {R"({"a": {"open": ""}})", "'open'"},
      {R"({"a": {"open": []}})", "'open'"},
      {R"({"a": {"open_pattern": "("}})", "not valid at byte"},
      {R"({"a": {"open_forms": ["{name}<"]}})", "must open with a literal"},
      {R"({"tool_calls": {"open": "<", "content": "yaml"}})", "'yaml'"},
      {R"({"tool_calls": {"open": "<", "content": "json"}})", "'transform'"},
      {R"({"tool_calls": {"open": "<", "content": "xml-inline", "transform": {}}})", "tag_pattern"},
      {R"({"tool_calls": {"open": "<", "content": "json", "transform":
          {"function": {"name": "{name}", "arguments": "{content}"}}}})",
       "needs {name}"},
      {R"({"tool_calls": {"open": "<", "content": "json", "transform":
          {"function": {"name": "x{name}", "arguments": "{content}"}}}})",
       "expected {name} and {content}"},
  };
  for (const auto& [fields, expected] : cases) {
    const auto result = parse_fields(fields);
    ASSERT_FALSE(result.ok()) << fields;
    EXPECT_THAT(result.status().message(), HasSubstr(expected)) << fields;
    EXPECT_EQ(result.status().message().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(parse_response_template("{", "a test").ok());
  EXPECT_FALSE(parse_response_template(R"({"version": 2, "fields": {"a": {}}})", "a test").ok());
  const std::string deep = "{\"a\": {\"open_pattern\": \"" + std::string(200, '(') + "\"}}";
  EXPECT_FALSE(parse_fields(deep).ok());
}

// The steps of one match are limited; a pattern that needs more does not match.
TEST(ResponseTemplate, BoundsPatterns) {
  const std::string fields = R"({"reasoning": {"open_pattern": "(a+)+b", "close": "c"}})";
  const std::string text(3'000, 'a');
  EXPECT_EQ(
      read(R"({"reasoning": {"open_pattern": "x(a+)+b", "close": "c"}})", "x" + text.substr(0, 40)),
      "|x" + text.substr(0, 40) + "|");
  auto own = parse_fields(fields);
  ASSERT_TRUE(own.ok());
  OutputParserConfig config;
  config.call_template = std::make_shared<const ResponseTemplate>(std::move(*own));
  config.reasoning_template = config.call_template;
  EXPECT_EQ(parse_output(**make_output_parser(config), text).content, text);
}

TEST(DialectChoice, PrefersTheCheckpointsOwnTemplate) {
  constexpr const char* kOwn = R"({"fields": {"reasoning": {"open": "<r>", "close": "</r>"}}})";
  const DialectChoices own = choose_dialects("auto", "auto", "<tool_call> </think>", kOwn);
  EXPECT_EQ(own.calls.name, "hermes") << "its template has no calls";
  EXPECT_EQ(own.calls.checkpoint_template, nullptr);
  EXPECT_EQ(own.calls.description(), "hermes (by the chat template)");
  ASSERT_NE(own.reasoning.checkpoint_template, nullptr);
  EXPECT_EQ(own.reasoning.name, "");
  EXPECT_THAT(own.reasoning.description(), HasSubstr("the checkpoint's own (response_template"));
  const DialectChoices flags = choose_dialects("none", "mistral", "<tool_call>", kOwn);
  EXPECT_TRUE(flags.calls.is_none());
  EXPECT_EQ(flags.calls.description(), "none (--tool-call-parser)");
  EXPECT_EQ(flags.reasoning.description(), "mistral (--reasoning-parser)");
  EXPECT_EQ(flags.reasoning.checkpoint_template, nullptr);
  for (const char* const unread : {"", "{", R"({"type": "object"})"}) {
    const DialectChoices other = choose_dialects("auto", "auto", "</think>", unread);
    EXPECT_TRUE(other.calls.is_none());
    EXPECT_EQ(other.reasoning.name, "think");
  }
}

}  // namespace
}  // namespace quire::server
