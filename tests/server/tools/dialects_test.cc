// Every built-in dialect reads its corpus, wherever the text is cut.
#include "server/tools/dialects.h"

#include <gmock/gmock.h>

#include <set>

#include "server/tools/dialect_corpus.h"

namespace quire::server {
namespace {

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

// Parses the text in pieces that end at the given places.
ParsedMessage parse(const OutputParserConfig& config, std::string_view text,
                    const std::vector<size_t>& cuts, TextEnd end = TextEnd::kModel) {
  const auto parser = *make_output_parser(config);
  ParsedMessage message;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    append(message, parser->feed(text.substr(begin, cut - begin)));
    begin = cut;
  }
  append(message, parser->feed(text.substr(begin)));
  append(message, parser->finish(end));
  return message;
}

std::vector<size_t> every_byte(size_t size) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

TEST(Dialects, ReadTheirCorpus) {
  EXPECT_GE(dialect_corpora().size(), 30U);
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    const ParsedMessage message = parse(config, c.text, {});
    EXPECT_EQ(show(message), show(c.message));
    for (size_t i = 0; i < c.ids.size() && i < message.tool_calls.size(); ++i) {
      EXPECT_EQ(message.tool_calls[i].id, c.ids[i]);
    }
    for (const ToolCall& call : message.tool_calls) {
      EXPECT_TRUE(JsonDocument::parse(call.arguments, "arguments").ok()) << call.arguments;
    }
  });
}

TEST(Dialects, GiveTheSameMessageWhereverTheTextIsCut) {
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    EXPECT_EQ(show(parse(config, c.text, every_byte(c.text.size()))), show(c.message));
    for (size_t i = 1; i < c.text.size(); ++i) {
      ASSERT_EQ(show(parse(config, c.text, {i})), show(c.message)) << "cut at " << i;
    }
  });
}

TEST(Dialects, GiveTheSameMessageWhereverAShortTextIsCutTwice) {
  constexpr size_t kShort = 100;
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    if (c.text.size() > kShort) return;
    for (size_t i = 1; i < c.text.size(); ++i) {
      for (size_t k = i + 1; k < c.text.size(); ++k) {
        ASSERT_EQ(show(parse(config, c.text, {i, k})), show(c.message)) << i << " and " << k;
      }
    }
  });
}

// A limit of tokens can end the text anywhere: its calls are the beginnings of the whole ones.
TEST(Dialects, ReadTextThatALimitHasCut) {
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    const ParsedMessage whole = parse(config, c.text, {});
    for (size_t size = 0; size < c.text.size(); ++size) {
      const std::string text = c.text.substr(0, size);
      const ParsedMessage cut = parse(config, text, {}, TextEnd::kCut);
      ASSERT_EQ(show(parse(config, text, every_byte(size), TextEnd::kCut)), show(cut))
          << "cut to " << size;
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
  for (const DialectCorpus& corpus : dialect_corpora())
    known.insert(corpus.config.tool_call_parser);
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
