#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire {
namespace {

TEST(EditDistance, CountsLettersAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("mesages", "messages"), 1U);
  EXPECT_EQ(edit_distance("chta", "chat"), 1U);
}

TEST(NearestWord, IsTheMostSimilarWord) {
  const std::vector<std::string> known = {"chat", "generate"};
  EXPECT_EQ(nearest_word("genrate", known), "generate");
  EXPECT_EQ(nearest_word("cat", known), "chat");
  EXPECT_EQ(nearest_word("coat", known), "chat");
}

TEST(NearestWord, LeavesOtherWordsAlone) {
  const std::vector<std::string> known = {"chat", "generate", "--temperature"};
  EXPECT_EQ(nearest_word("chat", known), "");    // it is a known word
  EXPECT_EQ(nearest_word("boat", known), "");    // two of four letters differ
  EXPECT_EQ(nearest_word("--temp", known), "");  // only the command line completes flags
  EXPECT_EQ(nearest_word("frobnicate", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word("chat", {}), "");
}

}  // namespace
}  // namespace quire
