#include "base/one_line.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace quire {
namespace {

TEST(OneLine, EscapesWhatATerminalObeys) {
  EXPECT_EQ(one_line("a\nb\x1b[2J\x7f\xc2\x9b"), "a\\nb\\x1b[2J\\x7f\\x9b");
  EXPECT_EQ(one_line("h\xc3\xa9 \xff"), "h\xc3\xa9 \xef\xbf\xbd");
  EXPECT_LT(one_line(std::string(100000, 'x')).size(), 2100U);
}

TEST(Log, ShowsAMessageOnOneLine) {
  ::testing::internal::CaptureStderr();
  log_error("[model] {}", "a\n\x1b[2Jb");
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.ends_with("[model] a\\n\\x1b[2Jb\n")) << line;
}

}  // namespace
}  // namespace quire
