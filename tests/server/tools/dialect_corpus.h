// The texts of every dialect, with the messages that they mean.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/tools/output_parser.h"
#include "support/shared_data.h"

namespace quire::server {

struct DialectCase {
  std::string about;
  std::string text;
  ParsedMessage message;
  bool has_prefixes = true;  // a cut text's calls are the beginnings of the whole text's calls
  std::vector<std::string> ids;
};

struct DialectCorpus {
  OutputParserConfig config;
  std::vector<DialectCase> cases;
};

// The tools of all texts.
inline void add_tools(OutputParserConfig& config) {
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

inline std::string text_of(simdjson::dom::element object, const char* key) {
  std::string_view text;
  return object[key].get(text) ? std::string() : std::string(text);
}

inline DialectCase read_dialect_case(simdjson::dom::element object) {
  DialectCase out;
  out.about = text_of(object, "about");
  out.text = text_of(object, "text");
  out.message.reasoning = text_of(object, "reasoning");
  out.message.content = text_of(object, "content");
  for (const simdjson::dom::element call : object["calls"].get_array()) {
    out.message.tool_calls.push_back(
        {.id = {},
         .name = std::string(std::string_view(call.at(0).get_string().value())),
         .arguments = std::string(std::string_view(call.at(1).get_string().value()))});
  }
  bool has_prefixes = true;
  if (!object["cut"].get(has_prefixes)) out.has_prefixes = has_prefixes;
  simdjson::dom::array ids;
  if (!object["ids"].get(ids)) {
    for (const simdjson::dom::element id : ids) out.ids.emplace_back(id.get_string().value());
  }
  return out;
}

inline std::string fixed_id() {
  return "abcdefghijklmnopqrstuvwx";
}

inline std::vector<DialectCorpus> read_dialect_corpora() {
  std::vector<DialectCorpus> all;
  const auto dir = testing::source_path("tests/server/tools/dialects");
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const auto document = JsonDocument::load(entry.path());
    EXPECT_TRUE(document.ok()) << document.status().message();
    if (!document.ok()) continue;
    DialectCorpus corpus;
    corpus.config.tool_call_parser = text_of(document->root(), "tool_call_parser");
    corpus.config.reasoning_parser = text_of(document->root(), "reasoning_parser");
    corpus.config.make_id = fixed_id;
    add_tools(corpus.config);
    for (const simdjson::dom::element object : document->root()["cases"].get_array()) {
      corpus.cases.push_back(read_dialect_case(object));
    }
    all.push_back(std::move(corpus));
  }
  return all;
}

inline const std::vector<DialectCorpus>& dialect_corpora() {
  static const std::vector<DialectCorpus> all = read_dialect_corpora();
  return all;
}

// Calls check(config, case) for each text of each dialect.
template <typename Check>
void for_each_dialect_case(Check check) {
  for (const DialectCorpus& corpus : dialect_corpora()) {
    for (const DialectCase& c : corpus.cases) {
      SCOPED_TRACE(corpus.config.tool_call_parser + ": " + c.about + "\n" + c.text);
      check(corpus.config, c);
    }
  }
}

}  // namespace quire::server
