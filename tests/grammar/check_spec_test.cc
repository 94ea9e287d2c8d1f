// Tests the forms that are refused before XGrammar sees them, and their messages.
#include "grammar/check_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::grammar {
namespace {

using ::testing::HasSubstr;
using Kind = GrammarSpec::Kind;

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string refusal(const GrammarSpec& spec) {
  const Status status = check_spec(spec, {});
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

std::string message_of(const Status& status) {
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}
std::string regex(std::string_view text) {
  return message_of(plain_regex("the regex", text, {}).status());
}
std::string ebnf(std::string_view text) {
  return message_of(plain_grammar(text, GrammarDialect::kEbnf, {}).status());
}
std::string gbnf(std::string_view text) {
  return message_of(plain_grammar(text, GrammarDialect::kGbnf, {}).status());
}
std::string schema(std::string_view text) {
  return message_of(plain_schema(text, {}).status());
}

TEST(CheckSpec, AcceptsUsualSchemas) {
  EXPECT_EQ(regex("^[a-z\\d]+@(?:x|y){1,3}\\.org$"), "");
  EXPECT_EQ(ebnf("root ::= \"a{999999999}(\" [({] b{2,5} # (((\nb ::= \"\\\"(\""), "");
  EXPECT_EQ(schema(R"({"type":"object","properties":{"not":{"type":"string","maxLength":9}}})"),
            "");
  EXPECT_EQ(schema(R"({"enum":[{"$ref":"http://x"},{"maxLength":-1}]})"), "");
  EXPECT_EQ(refusal({.kind = Kind::kChoice, .text = "", .choices = {"a", "b"}}), "");
}

TEST(CheckSpec, BoundsTexts) {
  const auto size = [](Kind kind, std::string text) {
    return refusal({.kind = kind, .text = std::move(text)});
  };
  for (const Kind kind : {Kind::kGrammar, Kind::kGbnf, Kind::kJsonSchema}) {
    EXPECT_THAT(size(kind, std::string((64 << 10) + 1, 'a')), HasSubstr("too long"));
    EXPECT_THAT(size(kind, std::string("root ::= \"a\0\"", 13)), HasSubstr("not text"));
  }
  EXPECT_THAT(size(Kind::kRegex, std::string((8 << 10) + 1, 'a')), HasSubstr("too long"));
  EXPECT_THAT(size(Kind::kRegex, "\xff"), HasSubstr("not text"));
  EXPECT_THAT(schema(repeated("[", 40) + repeated("]", 40)), HasSubstr("at most 32 levels"));
  EXPECT_THAT(schema(R"({"enum":[)" + repeated("1,", 10'000) + "1]}"), HasSubstr("too large"));
}

TEST(CheckSpec, BoundsChoices) {
  GrammarSpec spec = {.kind = Kind::kChoice, .text = "", .choices = {}};
  EXPECT_THAT(refusal(spec), HasSubstr("got 0 choices"));
  spec.choices.assign(1001, "x");
  EXPECT_THAT(refusal(spec), HasSubstr("got 1001 choices"));
  spec.choices.assign(100, std::string(700, 'x'));
  EXPECT_THAT(refusal(spec), HasSubstr("got 70000 bytes"));
}

TEST(CheckSpec, BoundsNestingAndRepeats) {
  EXPECT_THAT(regex(repeated("(", 65) + "a" + repeated(")", 65)), HasSubstr("nests too deeply"));
  EXPECT_EQ(regex(repeated("(a)", 500)), "");
  EXPECT_THAT(ebnf("root ::= " + repeated("(", 65) + "\"a\"" + repeated(")", 65)),
              HasSubstr("nests too deeply"));
  for (const char* count : {"{0,1000000000}", "{1000000000}", "{4294967297}", "{100001,}",
                            "{1,99999999999999999999999}"}) {
    EXPECT_THAT(regex("a" + std::string(count)), HasSubstr("repeats too often")) << count;
    EXPECT_THAT(ebnf("root ::= \"a\"" + std::string(count)), HasSubstr("repeats too often"))
        << count;
  }
  EXPECT_THAT(ebnf("root ::= \"a\"{ 1 , 1000000 }"), HasSubstr("repeats too often"));
  EXPECT_THAT(schema(R"({"type":"string","maxLength":1000000000})"), HasSubstr("maxLength"));
  EXPECT_THAT(schema(R"({"type":"array","minItems":-1})"), HasSubstr("minItems"));
  EXPECT_THAT(schema(R"({"type":"array","maxItems":1.5})"), HasSubstr("maxItems"));
}

TEST(CheckSpec, RefusesEscapesThatWouldBeMisread) {
  EXPECT_THAT(regex("\\x41b"), HasSubstr("more than two digits"));
  EXPECT_THAT(ebnf("root ::= \"\\xffffffffffffffff\""), HasSubstr("more than two digits"));
  EXPECT_THAT(ebnf("root ::= [\\UFFFFFFFF]"), HasSubstr("not a character"));
  EXPECT_THAT(regex("\\x{41}"), HasSubstr("without its digits"));
  EXPECT_THAT(regex("[a\\x{41}]"), HasSubstr("without its digits"));
  EXPECT_THAT(ebnf("root ::= [\\x{41}]"), HasSubstr("without its digits"));
  EXPECT_THAT(regex("\\xgg"), HasSubstr("without its digits"));
  EXPECT_THAT(regex("\\u41 b"), HasSubstr("without its digits"));
  EXPECT_THAT(regex("\\u{}"), HasSubstr("without its digits"));
  EXPECT_EQ(regex("\\u{41}\\u0041\\x41[\\u{1F600}]"), "");
  EXPECT_THAT(regex("\\u{110000}"), HasSubstr("not a character"));
  EXPECT_THAT(regex("\\ud800"), HasSubstr("not a character"));
  EXPECT_THAT(regex("\\Aab\\z"), HasSubstr("\\A"));
  EXPECT_THAT(regex("\\Ů"), HasSubstr("not ASCII"));
  EXPECT_THAT(regex("[\\Ů]"), HasSubstr("not ASCII"));
  EXPECT_THAT(regex("ab\\"), HasSubstr("ends with a backslash"));
}

TEST(CheckSpec, NamesThePartOfARegexThatIsNotSupported) {
  for (const auto& [text, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"é(b", "has a ( at character 2 that is not closed"},
           {"ab)", "has a ) at character 3 without its ("},
           {"(?=a)b", "has a lookahead (?=…) at character 1, which is not supported; write"},
           {"a(?<!b)", "has a lookbehind (?<!…) at character 2"},
           {"(?m)a", "has a group (?…) at character 1 of an unknown kind"},
           {"(a)\\1", "has the backreference \\1 at character 4, which is not supported"},
           {"\\bword", "has the escape \\b at character 1"},
           {"\\p{L}", "has the escape \\p at character 1"},
           {"*a", "has a * at character 1 without anything to repeat"},
           {"a|+", "has a + at character 3 without anything to repeat"},
           {"a**", "has a second repeat in a row at character 3; write a group"},
           {"a{2}{3}", "has a second repeat in a row at character 5"},
           {"{\"a\"}", "has a { at character 1 that is not a repeat"},
           {"a{x}", "has a { at character 2 that is not a repeat"},
           {"a[]", "has an empty class at character 2"},
           {"a[b", "has an unclosed [ at character 2"}}) {
    EXPECT_THAT(regex(text), HasSubstr(reason)) << text;
  }
}

TEST(CheckSpec, RegexesLoseFlagsNamesAndLazyRepeats) {
  const auto plain = [](std::string_view text) {
    const auto read = plain_regex("the regex", text, {});
    return read.ok() ? read->text : read.status().message();
  };
  EXPECT_EQ(plain("^(?<year>\\d{4})-(?P<m>\\d+?)$"), "^(\\d{4})-(\\d+)$");
  EXPECT_EQ(plain("(?i)^aB[c-eX]?[^z]\\d1$"), "^[aA][Bb][c-eXC-Ex-x]?[^zZ-Z]\\d1$");
  EXPECT_EQ(plain("(?i)\\x41\\u0062\\n\\."), "[Aa][bB]\\n\\.");
  EXPECT_EQ(plain("(?i)[a-][a\\-][-a][1-][a-]"), "[a\\-A-A][a\\-A-A][-aA-A][1-][a\\-A-A]");
  EXPECT_EQ(plain("a*?b?"
                  "?(?:c|d){2,}?"),
            "a*b?(?:c|d){2,}");
}

TEST(CheckSpec, RegexesHaveLengths) {
  using Range = std::pair<int64_t, int64_t>;
  const auto lengths = [](std::string_view text) {
    const auto read = plain_regex("the regex", text, {});
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? Range(read->min_length, read->max_length) : Range();
  };
  constexpr int64_t kUnbounded = RegexText::kUnbounded;
  EXPECT_EQ(lengths(""), Range(0, 0));
  EXPECT_EQ(lengths("^é[a-z]{2,5}(x|yz|)$"), Range(3, 8));
  EXPECT_EQ(lengths("\\u{1F600}\\x41\\d."), Range(4, 4));
  EXPECT_EQ(lengths("(ab)+|c"), Range(1, kUnbounded));
  EXPECT_EQ(lengths("(a{100000}){100000}"), Range(10'000'000'000, 10'000'000'000));
  EXPECT_EQ(lengths(repeated("(", 60) + "a" + repeated("){100000}", 60)),
            Range(kUnbounded, kUnbounded));
  EXPECT_EQ(lengths("(){3,}"), Range(0, 0));
  const auto repeats = [](std::string_view text) {
    return plain_regex("the regex", text, {})->repeated.value_or("none");
  };
  EXPECT_EQ(repeats("^[a-z|]+$"), "[a-z|]");
  EXPECT_EQ(repeats("\\w{3}"), "\\w");
  EXPECT_EQ(repeats("(a|b)*"), "(a|b)");
  for (const char* text : {"ab*", "a|b", "(ab)*", "", "[a]|[b]", "[a]*[b]*"}) {
    EXPECT_EQ(repeats(text), "none") << text;
  }
}

TEST(CheckSpec, NamesMisplacedAnchors) {
  EXPECT_THAT(regex("a|^b"), HasSubstr("has ^ at character 3, expected it only at the start"));
  EXPECT_THAT(regex("é$|b"), HasSubstr("has $ at character 2, expected it only at the end"));
  EXPECT_THAT(regex("(^a)"), HasSubstr("has ^ at character 2"));
  EXPECT_THAT(regex("^^a"), HasSubstr("write \\^ for the character"));
  EXPECT_THAT(schema(R"({"type":"string","pattern":"a|^b"})"), HasSubstr("^ at character 3"));
  for (const char* text : {"^a$", "\\^a\\$b", "[a^$]$", "^$"}) EXPECT_EQ(regex(text), "") << text;
  EXPECT_EQ(schema(R"({"type":"string","pattern":"(?i)^a$"})"), "");
}

TEST(CheckSpec, NamesUnfinishedEscapesAndClasses) {
  for (const auto& [text, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[\\u{41]", "a \\u at character 2 without its digits"},
           {"[\\u{41]}", "a \\u at character 2 without its digits"},
           {"[a-\\u{41", "a \\u at character 4 without its digits"},
           {"[a-\\u{62]", "a \\u at character 4 without its digits"},
           {"[\\u{110000]", "a \\u at character 2 without its digits"},
           {"[\\x5]", "a \\x at character 2 without its digits"},
           {"[\\c]", "a \\c at character 2 without its letter"},
           {"[a-\\c]", "a \\c at character 4 without its letter"},
           {"[\\", "ends with a backslash"},
           {"[^]", "an empty class at character 1"},
           {"[]", "an empty class at character 1"},
           {"[a-", "an unclosed [ at character 1"}}) {
    EXPECT_THAT(regex(text), HasSubstr(reason)) << text;
  }
  EXPECT_EQ(regex("[-]"), "");
}

TEST(CheckSpec, NamesImpossibleRangesAndRepeats) {
  EXPECT_THAT(regex("x[az-a]"), HasSubstr("has the range z-a, whose ends"));
  EXPECT_THAT(regex("[\\u00e9-\\x41]"), HasSubstr("has the range \\u00e9-\\x41"));
  EXPECT_THAT(regex("[日-é]"), HasSubstr("has the range 日-é"));
  EXPECT_THAT(regex("[a-\\d]"), HasSubstr("has the range a-\\d, which ends with a set"));
  EXPECT_THAT(regex("a{5,2}"), HasSubstr("has the repeat {5,2}, whose minimum"));
  EXPECT_THAT(ebnf("root ::= \"a\"{5, 2}"), HasSubstr("got the repeat {5, 2}"));
  for (const char* text : {"[a-z]", "[^!-~]", "[a-]", "[-a]", "[\\d-a]", "[\\w-]", "[a\\-\\d]",
                           "[\\t-\\r]", "[\\u{e9}-\\u{1F600}]", "[\\cA-\\cZ]", "[--a]", "[^-a]",
                           "[!-\\]]", "a{2,5}", "a{2,2}", "a{2,}", "a{0}", "[\\0-\\x1f]"}) {
    EXPECT_EQ(regex(text), "") << text;
  }
}

TEST(CheckSpec, RefusesKeywordsThatCannotBeEnforced) {
  EXPECT_THAT(schema(R"({"type":"array","uniqueItems":true})"), HasSubstr("uniqueItems"));
  EXPECT_THAT(schema(R"({"properties":{"a":{"not":{}}}})"), HasSubstr("\"not\""));
  EXPECT_EQ(schema(R"({"type":"array","uniqueItems":false,"not":false})"), "");
  EXPECT_THAT(schema(R"({"type":"integer","if":false,"else":{"maximum":5}})"), HasSubstr("\"if\""));
  for (const char* keyword : {"contains", "dependencies", "dependentSchemas", "extends"}) {
    EXPECT_THAT(schema(R"({"type":"array",")" + std::string(keyword) + R"(":false})"),
                HasSubstr(keyword));
  }
  EXPECT_THAT(schema(R"({"$ref":"http://example.org/x"})"), HasSubstr("$ref"));
  EXPECT_THAT(schema(R"({"$ref":"http://example.org/~me/a%20b"})"),
              HasSubstr("to another document; got \"http://example.org/~me/a%20b\""));
  EXPECT_THAT(schema(R"({"$ref":"#/$defs/a~1b","$defs":{"a/b":{}}})"), HasSubstr("~1"));
  EXPECT_THAT(schema(R"({"$ref":"#/$defs/a%20b","$defs":{"a b":{}}})"), HasSubstr("%XX"));
  EXPECT_THAT(schema(R"({"items":{"type":"string","pattern":"a{1000000}"}})"),
              HasSubstr("repeats too often"));
  EXPECT_THAT(schema(R"({"type":"object","patternProperties":{"\\x41b":{}}})"),
              HasSubstr("two digits"));
  EXPECT_THAT(schema("[]"), HasSubstr("not an object"));
  EXPECT_THAT(schema("{"), HasSubstr("cannot parse JSON schema"));
}

TEST(CheckSpec, RefusesFunctionsInEbnf) {
  for (const char* name :
       {"TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"}) {
    for (const char* call : {"(2)", " \n\t(2)", " # why\r # \"not\"\n(2)"}) {
      for (const char* before : {"root ::= ", "root ::= [\\]\"]", "root ::= \"\\\"\"",
                                 "# \r\nroot ::= ", "root ::= a{2} "}) {
        EXPECT_THAT(ebnf(std::string(before) + name + call), HasSubstr(std::string(name) + "()"))
            << before << call;
      }
    }
  }
  // Read as a class, this would end at its first ']' and hide the rest.
  EXPECT_THAT(ebnf(R"(root[capture="]"] ::= Token(2) "")"), HasSubstr("attributes of rules"));
  EXPECT_THAT(ebnf("root[lazy] ::= \"a\""), HasSubstr("attributes of rules"));
}

TEST(CheckSpec, TakesNamesLikeThoseOfFunctions) {
  EXPECT_EQ(ebnf("root ::= IdToken (\",\" IdToken)*\nIdToken ::= [a-z]"), "");
  EXPECT_EQ(ebnf("root ::= Token.1 (\"a\") Regex-2 (\"b\")\nToken.1 ::= \"\"\nRegex-2 ::= \"\""),
            "");
  EXPECT_EQ(ebnf("root ::= \"Regex(\" [Token(] \"Token\" (\"x\") # Token(2)"), "");
  EXPECT_EQ(ebnf("root ::= Token true\nToken ::= \"a\"\ntrue ::= \"b\""), "");
}

TEST(CheckSpec, NamesThePlaceOfAnErrorInAGrammar) {
  constexpr const char* kStart = "[grammar] the grammar, line ";
  for (const auto& [text, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"root ::= (", "1, column 11: got the end, expected an element"},
           {"", "1, column 1: got no rule named root"},
           {"start: \"a\"", "1, column 6: got ':', expected ::="},
           {"root ::= \"é\" )", "1, column 14: got ')', expected an element, | or a rule"},
           {"root ::= (\"a\"\n", "1, column 10: got a ( that is not closed"},
           {"root ::=\n  (\"a\" | b)\r\n", "2, column 10: got the name 'b', expected the name of"},
           {"root ::= \"a", "1, column 10: got a \" that is not closed"},
           {"root ::= [a\\]", "1, column 10: got an unclosed ["},
           {"root ::= []", "1, column 10: got an empty class"},
           {"root ::= [z-a]", "1, column 11: got the range z-a, whose ends"},
           {"root ::= [\\d]", "1, column 11: got the escape \\d, which is not supported"},
           {"root ::= \"a\\", "1, column 12: got the escape \\, which is not supported"},
           {"root ::= \"a\" | \nb ::= \"b\"", "2, column 1: got 'b', expected an element"},
           {"root ::= \"a\" b ::= \"b\"", "1, column 14: got the rule 'b' in the line of another"},
           {"root ::= \"a\"\nroot ::= \"b\"", "2, column 1: the rule 'root' is defined twice"},
           {"root ::= \"a\"{x}", "1, column 14: got 'x', expected a number"},
           {"root ::= \"a\"{2;3}", "1, column 15: got ';', expected } or ,"},
           {"root ::= *", "1, column 10: got '*', expected an element"},
           {"root ::= \"a\" ::=", "1, column 14: got ':', expected an element"}}) {
    EXPECT_THAT(ebnf(text), HasSubstr(std::string(kStart) + reason)) << text;
  }
  for (const auto& [text, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"root ::= <think> \"a\"", "1, column 10: got a token (<…>), which is not supported"},
           {"root ::= !<[7]>", "1, column 10: got a token"},
           {"root ::= \"\\q\"", "1, column 11: got the escape \\q"},
           {"root ::= \"\\0\"", "1, column 11: got the escape \\0"},
           {"root ::= [^]", "1, column 10: got an empty class"},
           {"root ::= a_b", "1, column 11: got '_', expected an element"},
           {"root ::= \"\\x4\"", "1, column 11: got \\x without its digits"},
           {"1 ::= \"a\"", "1, column 10: got no rule named root"}}) {
    EXPECT_THAT(gbnf(text), HasSubstr(std::string(kStart) + reason)) << text;
  }
}

TEST(CheckSpec, GrammarsAreWrittenForXGrammar) {
  const auto plain = [](GrammarDialect dialect, std::string_view text) {
    const auto written = plain_grammar(text, dialect, {});
    return written.ok() ? *written : written.status().message();
  };
  EXPECT_EQ(plain(GrammarDialect::kEbnf,
                  "root ::= a_.1 [^a-z\\-\\n] (= \"x\")\na_.1 ::= \"\\x41\" {2,-1}"),
            "root ::= r1 [^a-z\\u002d\\u000a]\nr1 ::= \"A\"{2,}\n");
  EXPECT_EQ(plain(GrammarDialect::kEbnf, "a ::= (\"b\" | ()) a?\nroot ::= a** \"c\"{0}"),
            "r0 ::= (\"b\" | (\"\")) r0?\nroot ::= (r0*)* \"\"\n");
  EXPECT_EQ(plain(GrammarDialect::kGbnf,
                  "root ::= 1-a.\"\\x41b\\\"\"{ 2 , } | # or nothing\n1-a ::= [.\\]^-]"),
            "root ::= r1 [\\u0000-\\U0010ffff] \"Ab\\u0022\"{2,} | \"\"\n"
            "r1 ::= [\\u002e\\u005d\\u005e\\u002d]\n");
  EXPECT_EQ(plain(GrammarDialect::kGbnf, "root ::= [--/] \"a\nb\" [\\U0001F600é]"),
            "root ::= [\\u002d-\\u002f] \"a\\u000ab\" [\\U0001f600\\u00e9]\n");
}

}  // namespace
}  // namespace quire::grammar
