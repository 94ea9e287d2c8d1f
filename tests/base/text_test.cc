#include "base/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "base/text_input.h"

namespace quire {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, EveryCodePointGoesThereAndBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(c, text);
    const Utf8Char decoded = decode_utf8(text);
    ASSERT_TRUE(decoded.valid) << static_cast<uint32_t>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.num_bytes, static_cast<int>(text.size()));
    ASSERT_EQ(complete_utf8_prefix(text), text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(complete_utf8_prefix(std::string_view(text).substr(0, cut)), 0U);
    }
  }
}

TEST(Utf8, RefusesOverlongSurrogatesAndTooLarge) {
  for (const auto bad :
       {"\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x80\x80"sv, "\xED\xA0\x80"sv, "\xF0\x80\x80\x80"sv,
        "\xF4\x90\x80\x80"sv, "\xF5"sv, "\x80"sv, "\xFF"sv}) {
    EXPECT_FALSE(is_valid_utf8(bad));
    EXPECT_EQ(decode_utf8(bad).num_bytes, 1) << "only a valid prefix is consumed at once";
  }
}

TEST(Utf8, ReplacesMaximalInvalidSequences) {
  // Python's bytes.decode(errors="replace") gives the same.
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82z"), "a\uFFFDz");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x28\xA1"), "\uFFFD(\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("ok \u00e9"), "ok \u00e9");
}

TEST(Utf8, CompletePrefixWaitsOnlyForValidCharacters) {
  EXPECT_EQ(complete_utf8_prefix("ab\xF0\x9F"), 2U);
  EXPECT_EQ(complete_utf8_prefix("ab\xE0\x80"), 4U);  // never valid, so not awaited
  EXPECT_EQ(complete_utf8_prefix("ab\xFF"), 3U);
  EXPECT_EQ(complete_utf8_prefix(""), 0U);
}

constexpr size_t kNone = std::string_view::npos;

TEST(FindText, FindsTheFirstAndTheLast) {
  EXPECT_EQ(find_text("abcabc", "bc"), 1U);
  EXPECT_EQ(find_text("abcabc", "bc", 2), 4U);
  EXPECT_EQ(find_text("abcabc", "bc", 5), kNone);
  EXPECT_EQ(find_text("abc", "c", 9), kNone);
  EXPECT_EQ(find_text("abc", "", 2), 2U);
  EXPECT_EQ(rfind_text("abcabc", "bc"), 4U);
  EXPECT_EQ(rfind_text("abcabc", "cb"), kNone);
  EXPECT_EQ(rfind_text("ab", "abc"), kNone);
  EXPECT_EQ(rfind_text("abc", ""), 3U);
  EXPECT_EQ(rfind_text(std::string_view("a\0b\0b", 5), std::string_view("\0b", 2)), 3U);
}

// An alphabet of few letters makes near matches frequent.
TEST(FindText, AgreesWithTheStandardLibrary) {
  std::mt19937 random(7);
  const auto any_text = [&](size_t max_size) {
    std::string text(random() % (max_size + 1), 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = any_text(40);
    const std::string part = any_text(6);
    const size_t from = random() % 45;
    ASSERT_EQ(find_text(text, part, from), text.find(part, from)) << text << ' ' << part;
    ASSERT_EQ(rfind_text(text, part), text.rfind(part)) << text << ' ' << part;
  }
}

// A search that compares the whole part at each position takes about 30 s of CPU time for each of
// these.
TEST(FindText, IsLinearWhateverTheTextsAre) {
  const std::string text(2'000'000, 'a');
  const std::string run(1'000'000, 'a');
  constexpr int64_t kMaxNs = 2'000'000'000;
  for (const std::string& part : {run + 'b', 'b' + run, run + 'b' + run}) {
    EXPECT_LT(cpu_ns_of([&] { EXPECT_EQ(find_text(text, part), kNone); }), kMaxNs);
    EXPECT_LT(cpu_ns_of([&] { EXPECT_EQ(rfind_text(text, part), kNone); }), kMaxNs);
  }
}

TEST(OneLine, EscapesControlCharacters) {
  EXPECT_EQ(one_line("a\nb\x1b[2J\x7f\xc2\x9b"), "a\\nb\\x1b[2J\\x7f\\x9b");
  EXPECT_EQ(one_line("h\xc3\xa9 \xff"), "h\xc3\xa9 \xef\xbf\xbd");
  EXPECT_EQ(one_line("\u2028a\u202egpj.exe\u2066"), "\\u2028a\\u202egpj.exe\\u2066");
  EXPECT_EQ(one_line("\u061c\u200ea\u200f\u200d"), "\\u061c\\u200ea\\u200f\u200d");
  EXPECT_LT(one_line(std::string(100000, 'x')).size(), 2100U);
}

TEST(Split, KeepsEmptyPartsAndTheRest) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split("a,,b,", ','), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(split("a,b,c", ',', 2), (Parts{"a", "b,c"}));
  EXPECT_EQ(split("a,b", ',', 2), (Parts{"a", "b"}));
  EXPECT_EQ(split("a,b", ',', 1), Parts{"a,b"});
}

}  // namespace
}  // namespace quire
