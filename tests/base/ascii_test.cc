#include "base/ascii.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Ascii, ClassesHaveNoOtherCharacters) {
  int num_digits = 0;
  int num_alphanumeric = 0;
  int num_hex = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    num_digits += is_digit(c) ? 1 : 0;
    num_alphanumeric += is_alphanumeric(c) ? 1 : 0;
    num_hex += hex_digit(c) >= 0 ? 1 : 0;
  }
  EXPECT_EQ(num_digits, 10);
  EXPECT_EQ(num_alphanumeric, 62);
  EXPECT_EQ(num_hex, 22);
  EXPECT_EQ(hex_digit('9'), 9);
  EXPECT_EQ(hex_digit('a'), 10);
  EXPECT_EQ(hex_digit('F'), 15);
}

TEST(Ascii, IgnoresCaseOfLettersOnly) {
  EXPECT_TRUE(equals_ignoring_case("Bearer", "bEARER"));
  EXPECT_FALSE(equals_ignoring_case("Bearer", "Bearers"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));
  EXPECT_FALSE(equals_ignoring_case("\xc3\x84", "\xc3\xa4"));
}

TEST(Ascii, TrimsBlanksAndLineEnds) {
  EXPECT_EQ(trimmed(" \t a b \r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Ascii, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_whole<int>("0"), 0);
  EXPECT_EQ(parse_whole<int>("-012"), -12);
  EXPECT_EQ(parse_whole<int>("2147483647"), 2147483647);
  EXPECT_EQ(parse_whole<double>("1.5e3"), 1500.0);
  for (const char* text : {"", " ", "1 ", " 1", "+1", "1,", "1.5", "0x1", "x", "2147483648"}) {
    EXPECT_EQ(parse_whole<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_whole<unsigned>("-1"), std::nullopt);
}

}  // namespace
}  // namespace quire
