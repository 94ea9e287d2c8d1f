#include "base/log.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(LogText, LeavesPlainValuesAsTheyAre) {
  EXPECT_EQ(
      log_text("[server] answered", {{"path", "/v1/models"}, {"peer", "[::1]:80"}, {"ms", ""}}),
      "[server] answered path=/v1/models peer=[::1]:80");
}

TEST(LogText, NoValueIsTakenForAnotherField) {
  EXPECT_EQ(log_text("answered", {{"path", "/x status=200"}, {"status", "404"}}),
            R"(answered path="/x status=200" status=404)");
  EXPECT_EQ(log_text("answered", {{"path", "/x\" status=200"}}),
            R"(answered path="/x\" status=200")");
  EXPECT_EQ(log_text("answered", {{"path", "/x\\"}, {"status", "404"}}),
            R"(answered path="/x\\" status=404)");
  EXPECT_EQ(log_text("answered", {{"path", "a\nb"}}), R"(answered path="a\nb")");
  EXPECT_EQ(log_text("answered", {{"path", "a\\nb"}}), R"(answered path="a\\nb")");
  EXPECT_EQ(log_text("answered", {{"path", "a=b"}}), R"(answered path="a=b")");
}

}  // namespace
}  // namespace quire
