// Every built-in dialect reads its corpus, wherever the text is cut.
#include "server/tools/dialects.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "base/json.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;

std::string fixed_id() {
  return "abcdefghijklmnopqrstuvwx";
}

struct Case {
  std::string about;
  std::string text;
  std::string expected;      // as shown() writes it
  bool has_prefixes = true;  // a cut text's calls are the beginnings of the whole text's calls
  std::vector<std::string> ids;
};

struct Corpus {
  OutputParserConfig config;
  std::vector<Case> cases;
};

// The tools of all texts.
void add_tools(OutputParserConfig& config) {
  const std::pair<const char*, const char*> tools[] = {
      {"get_weather", R"({"city": {"type": "string"}, "days": {"type": "integer"}})"},
      {"add", R"({"a": {"type": "number"}, "b": {"type": "number"}})"},
      {"now", "{}"},
      {"write", R"({"path": {"type": "string"}, "text": {"type": "string"}})"},
      {"store", R"({"items": {"type": "array"}, "options": {"type": "object"}})"},
      {"typed", R"({"flag": {"type": "boolean"}, "text": {"type": "string"},
                    "opt": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "big": {"type": "integer"}, "list": {"type": "array"},
                    "ref": {"$ref": "#/$defs/Point"}})"},
  };
  for (const auto& [name, properties] : tools) {
    config.tool_names.emplace_back(name);
    config.tool_schemas.push_back(
        fmt::format(R"({{"type": "object", "properties": {}, "$defs": {{"Point": )"
                    R"({{"type": "object"}}}}}})",
                    properties));
  }
}

std::string show(const std::string& reasoning, const std::string& content,
                 const std::vector<std::string>& calls) {
  return fmt::format("reasoning: {}\ncontent: {}\ncalls: {}", reasoning, content,
                     fmt::join(calls, " "));
}

std::string show(const ParsedMessage& message) {
  std::vector<std::string> calls;
  for (const ToolCall& call : message.tool_calls) {
    calls.push_back(fmt::format("{}({})", call.name, call.arguments));
  }
  return show(message.reasoning, message.content, calls);
}

std::string text_of(const Element& object, const char* key) {
  std::string_view text;
  return object[key].get(text) ? std::string() : std::string(text);
}

Case read_case(const Element& object) {
  Case out;
  out.about = text_of(object, "about");
  out.text = text_of(object, "text");
  std::vector<std::string> calls;
  for (const Element call : object["calls"].get_array()) {
    calls.push_back(
        fmt::format("{}({})", call.at(0).get_string().value(), call.at(1).get_string().value()));
  }
  out.expected = show(text_of(object, "reasoning"), text_of(object, "content"), calls);
  bool has_prefixes = true;
  if (!object["cut"].get(has_prefixes)) out.has_prefixes = has_prefixes;
  simdjson::dom::array ids;
  if (!object["ids"].get(ids)) {
    for (const Element id : ids) out.ids.emplace_back(id.get_string().value());
  }
  return out;
}

std::vector<Corpus> read_corpora() {
  std::vector<Corpus> all;
  for (const auto& entry : std::filesystem::directory_iterator(QUIRE_DIALECT_CORPUS_DIR)) {
    const auto document = JsonDocument::load(entry.path());
    EXPECT_TRUE(document.ok()) << document.status().message();
    if (!document.ok()) continue;
    Corpus corpus;
    corpus.config.tool_call_parser = text_of(document->root(), "tool_call_parser");
    corpus.config.reasoning_parser = text_of(document->root(), "reasoning_parser");
    corpus.config.make_id = fixed_id;
    add_tools(corpus.config);
    for (const Element object : document->root()["cases"].get_array()) {
      corpus.cases.push_back(read_case(object));
    }
    all.push_back(std::move(corpus));
  }
  return all;
}

const std::vector<Corpus>& corpora() {
  static const std::vector<Corpus> all = read_corpora();
  return all;
}

// Parses the text in pieces that end at the given places.
ParsedMessage parse(const OutputParserConfig& config, std::string_view text,
                    const std::vector<size_t>& cuts) {
  const auto parser = *make_output_parser(config);
  ParsedMessage message;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    append(message, parser->feed(text.substr(begin, cut - begin)));
    begin = cut;
  }
  append(message, parser->feed(text.substr(begin)));
  append(message, parser->finish());
  return message;
}

std::vector<size_t> every_byte(size_t size) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

template <typename Check>
void for_each_case(Check check) {
  for (const Corpus& corpus : corpora()) {
    for (const Case& c : corpus.cases) {
      SCOPED_TRACE(corpus.config.tool_call_parser + ": " + c.about + "\n" + c.text);
      check(corpus.config, c);
    }
  }
}

TEST(Dialects, ReadTheirCorpus) {
  EXPECT_GE(corpora().size(), 30U);
  for_each_case([](const OutputParserConfig& config, const Case& c) {
    const ParsedMessage message = parse(config, c.text, {});
    EXPECT_EQ(show(message), c.expected);
    for (size_t i = 0; i < c.ids.size() && i < message.tool_calls.size(); ++i) {
      EXPECT_EQ(message.tool_calls[i].id, c.ids[i]);
    }
    for (const ToolCall& call : message.tool_calls) {
      EXPECT_TRUE(JsonDocument::parse(call.arguments, "arguments").ok()) << call.arguments;
    }
  });
}

TEST(Dialects, GiveTheSameMessageWhereverTheTextIsCut) {
  for_each_case([](const OutputParserConfig& config, const Case& c) {
    EXPECT_EQ(show(parse(config, c.text, every_byte(c.text.size()))), c.expected);
    for (size_t i = 1; i < c.text.size(); ++i) {
      ASSERT_EQ(show(parse(config, c.text, {i})), c.expected) << "cut at " << i;
    }
  });
}

TEST(Dialects, GiveTheSameMessageWhereverAShortTextIsCutTwice) {
  constexpr size_t kShort = 100;
  for_each_case([](const OutputParserConfig& config, const Case& c) {
    if (c.text.size() > kShort) return;
    for (size_t i = 1; i < c.text.size(); ++i) {
      for (size_t k = i + 1; k < c.text.size(); ++k) {
        ASSERT_EQ(show(parse(config, c.text, {i, k})), c.expected) << i << " and " << k;
      }
    }
  });
}

// A limit of tokens can end the text anywhere: its calls are the beginnings of the whole ones.
TEST(Dialects, ReadTextThatALimitHasCut) {
  for_each_case([](const OutputParserConfig& config, const Case& c) {
    const ParsedMessage whole = parse(config, c.text, {});
    for (size_t size = 0; size < c.text.size(); ++size) {
      const std::string text = c.text.substr(0, size);
      const ParsedMessage cut = parse(config, text, {});
      ASSERT_EQ(show(parse(config, text, every_byte(size))), show(cut)) << "cut to " << size;
      if (!c.has_prefixes) continue;
      ASSERT_LE(cut.tool_calls.size(), whole.tool_calls.size()) << "cut to " << size;
      for (size_t i = 0; i < cut.tool_calls.size(); ++i) {
        ASSERT_EQ(cut.tool_calls[i].name, whole.tool_calls[i].name) << "cut to " << size;
        ASSERT_TRUE(whole.tool_calls[i].arguments.starts_with(cut.tool_calls[i].arguments))
            << "cut to " << size << ": " << cut.tool_calls[i].arguments;
      }
    }
  });
}

TEST(Dialects, HaveACorpusEach) {
  std::set<std::string> known;
  for (const Corpus& corpus : corpora()) known.insert(corpus.config.tool_call_parser);
  for (const ResponseTemplate& dialect : dialects()) {
    const bool has_corpus =
        dialect.names.empty() || std::ranges::any_of(dialect.names, [&](const std::string& name) {
          return known.contains(name);
        });
    EXPECT_TRUE(has_corpus) << dialect.names.front();
  }
}

TEST(Dialects, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  std::set<std::string> reasoning_names;
  for (const ResponseTemplate& dialect : dialects()) {
    for (const std::string& name : dialect.names) EXPECT_TRUE(names.insert(name).second) << name;
    for (const std::string& name : dialect.reasoning_names) {
      EXPECT_TRUE(reasoning_names.insert(name).second) << name;
    }
  }
}

}  // namespace
}  // namespace quire::server
