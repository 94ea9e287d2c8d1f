// The grammar of each dialect's calls against the parser of the same dialect.
#include "server/call_grammar/call_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"
#include "server/tools/dialects.h"
#include "server/tools/output_parser.h"
#include "support/shared_data.h"

namespace quire::server {
namespace {

using quire::testing::embedded_tokenizer;
using quire::testing::kEmbeddedEosId;
using quire::testing::validate_json;
using ::testing::HasSubstr;

constexpr std::array kEos = {kEmbeddedEosId};

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all = {
      {"plain", R"({"type":"object","properties":{"city":{"type":"string"},
                    "days":{"type":"integer"}},"required":["city"]})"},
      {"typed", R"({"type":"object","properties":{"unit":{"enum":["C","degrees F"]},
                    "flag":{"type":"boolean"},"ratio":{"type":"number"},
                    "note":{"anyOf":[{"type":"string"},{"type":"null"}]},
                    "mode":{"enum":["auto",1,null,true]}},"required":["unit","note","mode"]})"},
      {"nested", R"({"type":"object","properties":{"items":{"type":"array","items":
                     {"type":"string"},"maxItems":2},"point":{"$ref":"#/$defs/Point"},
                     "either":{"anyOf":[{"type":"integer","minimum":5},{"type":"string"}]}},
                     "required":["items","point","either"],"$defs":{"Point":{"type":"object",
                     "properties":{"x":{"type":"integer"}},"required":["x"],
                     "additionalProperties":false}}})"},
      {"bounded", R"({"type":"object","properties":{"code":{"type":"string",
                      "pattern":"^[A-Z]{2}-[0-9]+$"},"short":{"type":"string","minLength":2,
                      "maxLength":5},"day":{"type":"string","format":"date"}},
                      "required":["code","short"]})"},
      {"nothing", R"({"type":"object","properties":{}})"},
      {"free", "{}"}};
  return all;
}

OutputParserConfig config_of(const std::string& dialect, const std::string& reasoning,
                             std::span<const Tool> offered) {
  OutputParserConfig config;
  config.tool_call_parser = dialect;
  config.reasoning_parser = reasoning;
  for (const Tool& tool : offered) {
    config.tool_names.push_back(tool.name);
    config.tool_schemas.push_back(tool.parameters);
  }
  return config;
}

GrammarCompiler& compiler() {
  static GrammarCompiler compiler(*embedded_tokenizer(), kEos, quire::testing::ample_time());
  return compiler;
}

// The token of each single byte.
const std::map<char, int32_t>& byte_tokens() {
  static const std::map<char, int32_t> ids = [] {
    std::map<char, int32_t> all;
    for (int32_t id = 0; id < embedded_tokenizer()->vocab_size(); ++id) {
      const std::string bytes = embedded_tokenizer()->token_bytes(id);
      if (!embedded_tokenizer()->is_special(id) && bytes.size() == 1) all.emplace(bytes[0], id);
    }
    return all;
  }();
  return ids;
}

// Accepts all bytes of the text, or none.
bool accept_text(TokenConstraint& constraint, std::string_view text) {
  int count = 0;
  for (const char c : text) {
    if (constraint.accept(byte_tokens().at(c))) {
      ++count;
      continue;
    }
    EXPECT_TRUE(constraint.rollback(count));
    return false;
  }
  return true;
}

bool allows(const ConstraintFactory& factory, std::string_view text) {
  const auto constraint = factory();
  for (const char c : text) {
    if (!constraint->accept(byte_tokens().at(c))) return false;
  }
  return constraint->accept(kEmbeddedEosId);
}

// The texts that end what the dialects write between markers; those of reasoning first, because
// reasoning may have the others.
std::vector<std::string> closers_of(const ResponseTemplate& calls,
                                    const ResponseTemplate* reasoning) {
  std::vector<std::string> closers;
  const auto add = [&](const std::string& text) {
    closers.push_back(text);
    closers.push_back("\n" + text);
  };
  if (reasoning != nullptr) {
    for (const Form& form : reasoning->field(TemplateField::Target::kReasoning)->close) {
      add(form.parts.back().text);
    }
  }
  for (const TemplateField& field : calls.fields) {
    for (const ArgumentTag& tag : field.tags) add(tag.close);
    for (const auto* const forms : {&field.close, &field.end}) {
      for (const Form& form : *forms) {
        std::string text;
        for (const FormPart& part : form.parts) text += part.text;
        add(text);
      }
    }
  }
  return closers;
}

// The texts that end or continue a value. A number may go on forever, so what ends it comes first.
constexpr std::array<std::string_view, 16> kSigns = {"\"", "}", "]", ")", ",", ":", "=",  "1",
                                                     "e",  "l", "u", "r", "a", "s", "00", "-"};

// Draws a text at random; "" if it did not end.
std::string draw(const ConstraintFactory& factory, uint64_t seed,
                 const std::vector<std::string>& closers) {
  constexpr int kFree = 60;
  constexpr int kMost = 400;
  const Tokenizer& tokenizer = *embedded_tokenizer();
  std::mt19937_64 random(seed);
  const auto constraint = factory();
  std::string text;
  for (int step = 0; step < kMost; ++step) {
    const auto allowed =
        quire::testing::allowed_ids(constraint->allowed_tokens(), tokenizer.vocab_size());
    if (allowed.empty()) {
      ADD_FAILURE() << "nothing is allowed after " << text;
      return {};
    }
    const bool may_end = std::ranges::count(allowed, kEmbeddedEosId) > 0;
    if (may_end && (step >= kFree || allowed.size() == 1 || random() % 8 == 0)) {
      return is_valid_utf8(text) ? text : "";
    }
    if (step >= kFree) {
      const auto accept_one = [&](const auto& texts) {
        const auto found = std::ranges::find_if(
            texts, [&](std::string_view each) { return accept_text(*constraint, each); });
        if (found == texts.end()) return false;
        text += *found;
        return true;
      };
      // Either kind may be a part of a string that the other ends.
      const bool signs_first = random() % 2 == 0;
      if (signs_first ? accept_one(kSigns) || accept_one(closers)
                      : accept_one(closers) || accept_one(kSigns)) {
        continue;
      }
    }
    int32_t id = kEmbeddedEosId;
    std::string bytes;
    for (int tries = 0; tries < 100 && (id == kEmbeddedEosId || !is_valid_utf8(bytes)); ++tries) {
      id = allowed[random() % allowed.size()];
      bytes = tokenizer.token_bytes(id);
    }
    if (id == kEmbeddedEosId) return {};
    EXPECT_TRUE(constraint->accept(id)) << text;
    text += bytes;
  }
  return {};
}

std::string schema_of(const std::string& name) {
  const auto found = std::ranges::find(tools(), name, &Tool::name);
  return found == tools().end() ? "false" : found->parameters;
}

struct Named {
  std::string calls;
  std::string reasoning;
};

void PrintTo(const Named& named, std::ostream* out) {
  *out << named.calls;
}

std::filesystem::directory_iterator corpora() {
  return std::filesystem::directory_iterator(testing::source_path("tests/server/tools/dialects"));
}

// The dialects of all corpora.
std::vector<Named> all_dialects() {
  std::vector<Named> all;
  for (const auto& entry : corpora()) {
    const auto document = JsonDocument::load(entry.path());
    EXPECT_TRUE(document.ok());
    std::string_view reasoning;
    if (document->root()["reasoning_parser"].get(reasoning)) reasoning = {};
    all.push_back({std::string(document->root()["tool_call_parser"].get_string().value()),
                   std::string(reasoning)});
  }
  std::ranges::sort(all, {}, &Named::calls);
  return all;
}

class CallGrammar : public ::testing::TestWithParam<Named> {};

TEST_P(CallGrammar, AllowsOnlyCallsThatTheParserReads) {
  const Named& named = GetParam();
  const ResponseTemplate* const calls = find_dialect(named.calls);
  const ResponseTemplate* const reasoning = find_reasoning_dialect(named.reasoning);
  const auto spec =
      call_grammar({.calls = *calls, .reasoning = reasoning, .tools = tools(), .several = true});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const auto factory = compiler().compile(*spec);
  ASSERT_TRUE(factory.ok()) << factory.status().message() << "\n" << spec->text;
  const std::vector<std::string> closers = closers_of(*calls, reasoning);
  int num_ended = 0;
  std::set<std::string> called;
  constexpr int kNumWalks = 40;
  for (int i = 0; i < kNumWalks; ++i) {
    const std::string text = draw(*factory, static_cast<uint64_t>(i), closers);
    if (text.empty()) continue;
    ++num_ended;
    const ParsedMessage message =
        parse_output(**make_output_parser(config_of(named.calls, named.reasoning, tools())), text);
    EXPECT_EQ(trimmed(message.content), "") << text;
    EXPECT_FALSE(message.tool_calls.empty()) << text;
    for (const ToolCall& call : message.tool_calls) {
      called.insert(call.name);
      EXPECT_EQ(validate_json(call.arguments, schema_of(call.name)), "")
          << call.name << call.arguments << "\n"
          << text;
    }
  }
  EXPECT_GE(num_ended, 8) << "the walk chooses badly";
  EXPECT_GE(called.size(), 3U);
}

TEST_P(CallGrammar, AllowsOneCallWhereOneIsWanted) {
  const ResponseTemplate* const calls = find_dialect(GetParam().calls);
  const std::vector<Tool> one = {tools()[4]};
  const auto spec = call_grammar({.calls = *calls, .tools = one, .several = false});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const auto factory = compiler().compile(*spec);
  ASSERT_TRUE(factory.ok()) << factory.status().message();
  for (int i = 0; i < 10; ++i) {
    const std::string text = draw(*factory, static_cast<uint64_t>(i), closers_of(*calls, nullptr));
    const ParsedMessage message =
        parse_output(**make_output_parser(config_of(GetParam().calls, "", one)), text);
    ASSERT_EQ(message.tool_calls.size(), 1U) << text;
    EXPECT_EQ(message.tool_calls[0].name, "nothing");
    EXPECT_EQ(validate_json(message.tool_calls[0].arguments,
                            R"({"type":"object","additionalProperties":false})"),
              "");
  }
}

// The usual texts of a dialect are allowed by the grammar of tools that take any arguments.
TEST(CallGrammars, AllowTheCorpora) {
  const std::set<std::string> usual = {"one", "two", "nested", "empty", "unicode"};
  // Its strings have delimiters of their own, for which the grammar requires those of JSON.
  const std::set<std::string> other_notation = {"gemma4"};
  std::vector<Tool> open;
  for (const char* const name : {"get_weather", "add", "now", "write", "store", "typed"}) {
    open.push_back({name, R"({"type":"object","additionalProperties":true})"});
  }
  for (const auto& entry : corpora()) {
    const auto document = JsonDocument::load(entry.path());
    const std::string name(document->root()["tool_call_parser"].get_string().value());
    if (other_notation.contains(name)) continue;
    const auto spec = call_grammar({.calls = *find_dialect(name), .tools = open});
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    const auto factory = compiler().compile(*spec);
    ASSERT_TRUE(factory.ok()) << factory.status().message();
    int num_usual = 0;
    for (const simdjson::dom::element object : document->root()["cases"].get_array()) {
      if (!usual.contains(std::string(object["about"].get_string().value()))) continue;
      ++num_usual;
      const std::string_view text = object["text"].get_string().value();
      EXPECT_TRUE(allows(*factory, text)) << name << ": " << text;
    }
    EXPECT_GE(num_usual, 3) << name;
  }
}

TEST(CallGrammars, RequireTheTokensOfMarkers) {
  const std::vector<Tool> one = {tools()[4]};
  const std::vector<TokenMarker> markers = {{.token_id = 1, .text = "<tool_call>"},
                                            {.token_id = kEmbeddedEosId, .text = "</tool_call>"}};
  const auto spec = call_grammar(
      {.calls = *find_dialect("hermes"), .tools = one, .markers = markers, .end_ids = kEos});
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->text, HasSubstr("Token(1)"));
  EXPECT_EQ(spec->token_ids, std::vector<int32_t>{1});
  const auto factory = compiler().compile(*spec);
  ASSERT_TRUE(factory.ok()) << factory.status().message();
  EXPECT_FALSE(accept_text(*(*factory)(), "<tool_call>"));
  const auto constraint = (*factory)();
  EXPECT_TRUE(embedded_tokenizer()->is_special(1));
  EXPECT_TRUE(constraint->accept(1));
  EXPECT_FALSE(accept_text(*constraint, R"({"name": "nothing", "parameters")"));
  EXPECT_TRUE(accept_text(*constraint, R"({"name": "nothing", "arguments": {}})"));
  EXPECT_FALSE(constraint->accept(1));
  EXPECT_TRUE(constraint->accept(kEmbeddedEosId)) << "the marker ends the sequence";
}

TEST(CallGrammars, RefuseNamesAndValuesThatADialectCannotWrite) {
  const auto refusal = [](const char* dialect, Tool tool) {
    const std::vector<Tool> one = {std::move(tool)};
    const auto spec = call_grammar({.calls = *find_dialect(dialect), .tools = one});
    if (!spec.ok()) return spec.status().message();
    const auto factory = compiler().compile(*spec);
    return factory.ok() ? std::string("accepted") : factory.status().message();
  };
  EXPECT_THAT(refusal("qwen3_coder", {"a>b", "{}"}), HasSubstr("tool \"a>b\": its name"));
  EXPECT_EQ(refusal("hermes", {"a>b", "{}"}), "accepted");
  EXPECT_THAT(refusal("pythonic", {"f", R"({"properties":{"a-b":{}},"required":["a-b"]})"}),
              HasSubstr("the property 'a-b'"));
  EXPECT_THAT(refusal("glm45", {"f", R"({"anyOf":[{"type":"object"}]})"}), HasSubstr("\"anyOf\""));
  EXPECT_THAT(refusal("qwen3_coder", {"f", R"({"properties":{"a":{"enum":["</parameter>"]}}})"}),
              HasSubstr("the value '</parameter>'"));
  EXPECT_THAT(refusal("qwen3_coder", {"f", R"({"properties":{"a":{"type":"array",
                                              "uniqueItems":true}}})"}),
              HasSubstr("tool \"f\", #/properties/a: the JSON schema has \"uniqueItems\""));
  EXPECT_THAT(refusal("qwen3_coder", {"f", R"({"properties":{"a":{"type":"string",
                                              "pattern":"^<.*$"}}})"}),
              HasSubstr("a pattern"));
}

// A pattern opens the calls of many templates that checkpoints carry.
TEST(CallGrammars, RefuseAPattern) {
  const auto own = parse_response_template(
      R"({"fields": {"tool_calls": {"open_pattern": "<call (?P<name>\\w+)>", "close": "</call>",
          "content": "kv-lines", "transform": {"type": "function",
          "function": {"name": "{name}", "arguments": "{content}"}}}}})",
      "a test");
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_THAT(call_grammar({.calls = *own, .tools = tools()}).status().message(),
              HasSubstr("by a regular expression"));
}

// One row per dialect: its names, its models, how its arguments are streamed, and whether a forced
// call is bound.
std::string dialect_table() {
  std::string table =
      "| `--tool-call-parser` | models | arguments are streamed | forced calls are bound |\n"
      "|---|---|---|---|\n";
  for (const ResponseTemplate& dialect : dialects()) {
    if (dialect.names.empty()) continue;
    const TemplateField& calls = *dialect.field(TemplateField::Target::kCalls);
    const bool is_bound = call_grammar({.calls = dialect, .tools = tools()}).ok();
    const bool is_json = calls.notation.string_delims.empty();
    table += fmt::format("| `{}` | {} | {} | {} |\n", fmt::join(dialect.names, "`, `"),
                         dialect.about.substr(0, dialect.about.find(':')),
                         calls.tags.empty() ? "by byte" : "strings by byte, others whole",
                         !is_bound ? "no" : (is_json ? "yes" : "yes, strings as in JSON"));
  }
  return table;
}

TEST(CallGrammars, AreInTheTableOfThePage) {
  const char* const source = std::getenv("QUIRE_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "QUIRE_SOURCE_DIR is not set; ctest sets it";
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(source) / "docs" / "serving.md").rdbuf();
  EXPECT_NE(text.str().find(dialect_table()), std::string::npos)
      << "docs/serving.md lacks this table:\n"
      << dialect_table();
}

INSTANTIATE_TEST_SUITE_P(Dialects, CallGrammar, ::testing::ValuesIn(all_dialects()),
                         [](const auto& instance) {
                           std::string name = instance.param.calls;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace quire::server
