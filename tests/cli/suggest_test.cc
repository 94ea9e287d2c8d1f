#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire::cli {
namespace {

TEST(EditDistance, CountsLettersAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("mesages", "messages"), 1U);
  EXPECT_EQ(edit_distance("chta", "chat"), 1U);
}

TEST(Nearest, IsWhatMayHaveBeenMeant) {
  const std::vector<std::string> known = {"chat", "generate", "--top-p", "--temperature"};
  EXPECT_EQ(nearest("genrate", known), "generate");
  EXPECT_EQ(nearest("--tempurature", known), "--temperature");
  EXPECT_EQ(nearest("--top_p", known), "--top-p");
  EXPECT_EQ(nearest("cat", known), "chat");
  EXPECT_EQ(nearest("coat", known), "chat");
}

TEST(Nearest, LeavesOtherWordsAlone) {
  const std::vector<std::string> known = {"chat", "generate"};
  EXPECT_EQ(nearest("chat", known), "");  // it is one
  EXPECT_EQ(nearest("boat", known), "");  // two of four letters
  EXPECT_EQ(nearest("frobnicate", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("chat", {}), "");
}

}  // namespace
}  // namespace quire::cli
