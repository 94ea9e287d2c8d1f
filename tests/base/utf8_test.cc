#include "base/utf8.h"

#include <gtest/gtest.h>

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
    EXPECT_EQ(decode_utf8(bad).num_bytes, 1) << "only a valid prefix is consumed together";
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

TEST(Utf8, CompletePrefixWaitsOnlyForWhatCanStillBecomeACharacter) {
  EXPECT_EQ(complete_utf8_prefix("ab\xF0\x9F"), 2U);
  EXPECT_EQ(complete_utf8_prefix("ab\xE0\x80"), 4U);  // never valid, so nothing to wait for
  EXPECT_EQ(complete_utf8_prefix("ab\xFF"), 3U);
  EXPECT_EQ(complete_utf8_prefix(""), 0U);
}

}  // namespace
}  // namespace quire
