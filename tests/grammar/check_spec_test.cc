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

std::string regex(std::string text) {
  return refusal({.kind = Kind::kRegex, .text = std::move(text)});
}
std::string ebnf(std::string text) {
  return refusal({.kind = Kind::kGrammar, .text = std::move(text)});
}
std::string schema(std::string text) {
  return refusal({.kind = Kind::kJsonSchema, .text = std::move(text)});
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
  EXPECT_THAT(ebnf(std::string((64 << 10) + 1, 'a')), HasSubstr("too long"));
  EXPECT_THAT(regex(std::string((8 << 10) + 1, 'a')), HasSubstr("too long"));
  EXPECT_THAT(ebnf(std::string("root ::= \"a\0\"", 13)), HasSubstr("not text"));
  EXPECT_THAT(regex("\xff"), HasSubstr("not text"));
  EXPECT_THAT(schema(repeated("[", 40) + repeated("]", 40)), HasSubstr("levels deep"));
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

TEST(CheckSpec, NamesMisplacedAnchors) {
  EXPECT_THAT(regex("a|^b"), HasSubstr("has ^ at character 3, expected it only at the start"));
  EXPECT_THAT(regex("é$|b"), HasSubstr("has $ at character 2, expected it only at the end"));
  EXPECT_THAT(regex("(^a)"), HasSubstr("has ^ at character 2"));
  EXPECT_THAT(regex("^^a"), HasSubstr("write \\^ for the character"));
  EXPECT_THAT(schema(R"({"type":"string","pattern":"a|^b"})"), HasSubstr("^ at character 3"));
  for (const char* text : {"^a$", "\\^a\\$b", "[a^$]$", "^$"}) EXPECT_EQ(regex(text), "") << text;
  EXPECT_EQ(schema(R"({"type":"string","pattern":"(?i)^a$"})"), "");
}

TEST(CheckSpec, ReadsUnfinishedEscapesOfClasses) {
  for (const char* text : {"[\\u{41]", "[\\u{41]}", "[a-\\u{41", "[a-\\u{62]", "[\\x5]", "[\\c]",
                           "[a-\\c]", "[\\", "[^]", "[]", "[-]", "[a-", "[\\u{110000]"}) {
    (void)regex(text);  // ends
  }
}

TEST(CheckSpec, NamesImpossibleRangesAndRepeats) {
  EXPECT_THAT(regex("x[az-a]"), HasSubstr("has the range z-a, whose ends"));
  EXPECT_THAT(regex("[\\u00e9-\\x41]"), HasSubstr("has the range \\u00e9-\\x41"));
  EXPECT_THAT(regex("[日-é]"), HasSubstr("has the range 日-é"));
  EXPECT_THAT(regex("[a-\\d]"), HasSubstr("has the range a-\\d, which ends with a set"));
  EXPECT_THAT(regex("a{5,2}"), HasSubstr("has the repeat {5,2}, whose minimum"));
  EXPECT_THAT(ebnf("root ::= \"a\"{5, 2}"), HasSubstr("has the repeat {5, 2}"));
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
  EXPECT_THAT(schema(R"({"$ref":"#/$defs/a~1b","$defs":{"a/b":{}}})"), HasSubstr("~1"));
  EXPECT_THAT(schema(R"({"$ref":"#/$defs/a%20b","$defs":{"a b":{}}})"), HasSubstr("%XX"));
  EXPECT_THAT(schema(R"({"items":{"pattern":"a{1000000}"}})"), HasSubstr("repeats too often"));
  EXPECT_THAT(schema(R"({"patternProperties":{"\\x41b":{}}})"), HasSubstr("two digits"));
  EXPECT_THAT(schema("[]"), HasSubstr("not an object"));
  EXPECT_THAT(schema("{"), HasSubstr("not valid JSON"));
}

TEST(CheckSpec, RefusesFunctionsInEbnf) {
  for (const char* name :
       {"TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"}) {
    for (const char* call : {"(2)", " \n\t(2)", " # why\r # \"not\"\n(2)"}) {
      for (const char* before : {"root ::= ", "root ::= [\\]\"]", "root ::= \"\\\"\"",
                                 "# \r\nroot ::= ", "root ::= a{2", "root[lazy] ::= "}) {
        EXPECT_THAT(ebnf(std::string(before) + name + call), HasSubstr(std::string(name) + "()"))
            << before << call;
      }
    }
  }
  // Read as a class, this would end at its first ']' and hide the rest.
  EXPECT_THAT(ebnf(R"(root[capture="]"] ::= Token(2) "")"), HasSubstr("captures"));
  EXPECT_THAT(ebnf("root ::= [a\\]"), HasSubstr("unclosed ["));
}

TEST(CheckSpec, TakesNamesLikeThoseOfFunctions) {
  EXPECT_EQ(ebnf("root ::= IdToken (\",\" IdToken)*\nIdToken ::= [a-z]"), "");
  EXPECT_EQ(ebnf("root ::= Token.1 (\"a\") Regex-2 (\"b\") Token_ (\"c\") Token2 (\"d\")"), "");
  EXPECT_EQ(ebnf("root ::= \"Regex(\" [Token(] \"Token\" (\"x\") # Token(2)"), "");
  EXPECT_EQ(ebnf("root ::= Token\nToken ::= \"a\""), "");
}

}  // namespace
}  // namespace quire::grammar
