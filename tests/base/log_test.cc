#include "base/log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "base/setting_name.h"
#include "quire/log_level.h"

namespace quire {

struct NoMemory {};

}  // namespace quire

template <>
struct fmt::formatter<quire::NoMemory> : fmt::formatter<int> {
  template <typename Context>
  auto format(const quire::NoMemory&, Context& context) const {
    if (true) throw std::bad_alloc();
    return context.out();
  }
};

namespace quire {
namespace {

TEST(Log, NeverThrows) {
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(log_error("{}", NoMemory()));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[log] a line is lost: no memory for it\n");
}

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

TEST(LogText, WritesNumbersLikeText) {
  EXPECT_EQ(log_text("answered", {{"status", 200}, {"ms", 1.25}, {"bytes", int64_t{7}}}),
            "answered status=200 ms=1.2 bytes=7");
}

TEST(Log, LevelsHaveNames) {
  ASSERT_TRUE(set_log_level("warning").ok());
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  EXPECT_TRUE(log_enabled(LogLevel::kWarning));
  ASSERT_TRUE(set_log_level("info").ok());
  ASSERT_TRUE(set_log_level("warn").ok());
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  ASSERT_TRUE(set_log_level("info").ok());
  EXPECT_TRUE(log_enabled(LogLevel::kInfo));
  EXPECT_EQ(set_log_level("loud").code(), StatusCode::kInvalidArgument);
}

TEST(Log, JsonNumbersAreNumbers) {
  ::testing::internal::CaptureStderr();
  set_log_format(LogFormat::kJson);
  log_event(LogLevel::kError, "answered", {{"status", 200}, {"ms", 0.04}, {"path", "200"}});
  set_log_format(LogFormat::kText);
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.ends_with(R"("message":"answered","status":200,"ms":0.0,"path":"200"})"
                             "\n"))
      << line;
}

TEST(SettingName, IsAFieldOrAFlag) {
  const SettingName name = {"max_num_seqs"};
  EXPECT_EQ(fmt::format("{} 8", name), "`max_num_seqs` 8");
  spells_settings_as_flags = true;
  EXPECT_EQ(fmt::format("{} 8", name), "--max-num-seqs 8");
  spells_settings_as_flags = false;
}

// Lines of a service stay for days, and other logs stand beside them.
TEST(Log, LinesHaveADate) {
  ::testing::internal::CaptureStderr();
  log_error("late");
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\.[0-9]{3} .*E.* late\n"));
}

TEST(Log, ShowsAMessageOnOneLine) {
  ::testing::internal::CaptureStderr();
  log_error("[model] {}", "a\n\x1b[2Jb");
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.ends_with("[model] a\\n\\x1b[2Jb\n")) << line;
}

}  // namespace
}  // namespace quire
