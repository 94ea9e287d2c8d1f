// Tests the characters that a grammar's classes allow, byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

constexpr std::array kEos = {kEmbeddedEosId};

// The token of each single byte.
std::map<char, int32_t> byte_tokens() {
  std::map<char, int32_t> ids;
  const Tokenizer& tokenizer = *embedded_tokenizer();
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id)) continue;
    const std::string bytes = tokenizer.token_bytes(id);
    if (bytes.size() == 1) ids.emplace(bytes[0], id);
  }
  return ids;
}

class Characters : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ids_.size(), 256U); }

  void compile(const GrammarSpec& spec) {
    auto factory = compiler_.compile(spec);
    ASSERT_TRUE(factory.ok()) << spec.text << ": " << factory.status().message();
    factory_ = *factory;
  }
  void regex(const std::string& text) { compile({.kind = Kind::kRegex, .text = text}); }

  // Whether a text may begin with these bytes.
  bool begins(std::string_view bytes) const {
    const auto constraint = factory_();
    return std::ranges::all_of(bytes, [&](char byte) { return constraint->accept(ids_.at(byte)); });
  }
  // Whether the text is a complete match.
  bool allows(std::string_view bytes) const {
    const auto constraint = factory_();
    return std::ranges::all_of(bytes,
                               [&](char byte) { return constraint->accept(ids_.at(byte)); }) &&
           constraint->accept(kEmbeddedEosId);
  }

  std::map<char, int32_t> ids_ = byte_tokens();
  GrammarCompiler compiler_{*embedded_tokenizer(), kEos, ample_time()};
  ConstraintFactory factory_;
};

// Expects that the compiled regex matches exactly the characters of `expected`, of those up to
// U+0300.
#define EXPECT_CLASS(text, expected)                               \
  do {                                                             \
    SCOPED_TRACE(text);                                            \
    regex(text);                                                   \
    std::string allowed;                                           \
    for (char32_t character = 0; character < 0x300; ++character) { \
      std::string bytes;                                           \
      append_utf8(character, bytes);                               \
      if (allows(bytes)) allowed += bytes;                         \
    }                                                              \
    EXPECT_EQ(allowed, expected);                                  \
  } while (false)

TEST_F(Characters, AnEscapedCaretDoesNotNegateAClass) {
  for (const char* text : {"[\\^a]", "[\\u005ea]", "[a\\x5e]", "[\\u{5e}a]", "[a^]", "[a\\^]"}) {
    EXPECT_CLASS(text, "^a");
  }
  EXPECT_CLASS("[\\^]", "^");
  EXPECT_CLASS("[\\^-a]", "^_`a");
  EXPECT_CLASS("[\\d\\^]", "0123456789^");
  EXPECT_CLASS("[^^-\\u{10ffff}\\u0000-Z]", "[\\]");
  EXPECT_CLASS("[^\\^-\\u{10ffff}\\u0000-Z]", "[\\]");
}

TEST_F(Characters, AHyphenAfterASetIsItself) {
  EXPECT_CLASS("[\\d-z]", "-0123456789z");
  EXPECT_CLASS("[\\d-]", "-0123456789");
  regex("[\\w-.]");
  for (const char* text : {"_", "-", ".", "a"}) EXPECT_TRUE(allows(text)) << text;
  for (const char* text : {"`", "/", ","}) EXPECT_FALSE(allows(text)) << text;
}

TEST_F(Characters, SurrogatesAreRefused) {
  const auto check = [&](const GrammarSpec& spec, const std::string& before) {
    SCOPED_TRACE(spec.text);
    compile(spec);
    for (const char* text : {"\xed\xa0\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbf\xbf"}) {
      EXPECT_FALSE(begins(before + std::string(text).substr(0, 2))) << "a dead end";
    }
    for (const char* text : {"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xec\xbf\xbf",
                             "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xc3\xa9"}) {
      EXPECT_TRUE(begins(before + text)) << text;
    }
  };
  for (const char* text : {".", "[^a]", "\\W", "\\D", "\\S", "[\\W]", "[\\D]", "[\\S]", ".*",
                           "[\\u0080-\\u{10ffff}]", "(.|x){2,300}", "[^ab]*a"}) {
    check({.kind = Kind::kRegex, .text = text}, "");
  }
  check({.kind = Kind::kGrammar, .text = "root ::= [^a]"}, "");
  check({.kind = Kind::kGrammar, .text = "root ::= [^\"]* \"x\""}, "");
  for (const char* schema :
       {R"({"type":"string"})", R"({"type":"string","maxLength":9})",
        R"({"type":"string","pattern":"^.[^a]*$"})", R"({"type":"string","pattern":"^\\W\\S$"})",
        R"({"type":"string","pattern":"^[^è]+$"})", R"({})"}) {
    check({.kind = Kind::kJsonSchema, .text = schema}, "\"");
  }
  check({.kind = Kind::kJsonObject}, "{\"");
}

TEST_F(Characters, ADotMatchesALineFeed) {
  regex(".");
  EXPECT_TRUE(allows("\n"));
  compile({.kind = Kind::kJsonSchema, .text = R"({"type":"string","pattern":"^.$"})"});
  EXPECT_FALSE(begins("\"\n"));
  EXPECT_TRUE(allows("\"x\""));
}

TEST_F(Characters, Ipv4HasNoLeadingZeros) {
  compile({.kind = Kind::kJsonSchema, .text = R"({"type":"string","format":"ipv4"})"});
  for (const char* text : {"0.0.0.0", "255.249.199.99", "10.1.0.100", "192.168.20.5"}) {
    EXPECT_TRUE(allows('"' + std::string(text) + '"')) << text;
  }
  for (const char* text :
       {"009.032.204.180", "00.0.0.0", "01.2.3.4", "256.1.1.1", "1.2.3", "1..2.3"}) {
    EXPECT_FALSE(allows('"' + std::string(text) + '"')) << text;
  }
}

TEST_F(Characters, AnEmptyArrayHasWhiteSpaceOnce) {
  compile({.kind = Kind::kJsonSchema,
           .text = R"({"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}]})"});
  for (const char* text :
       {"[]", "[ ]", "[\n]", "[null]", "[ null ]", "[null, true]", "[\n  null\n]"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  for (const char* text : {"[  ", "[\n\n", "[ \n", "[true]"}) EXPECT_FALSE(begins(text)) << text;
}

}  // namespace
}  // namespace quire::testing
