// Leveled log lines on standard error, each passed through one_line(). --log-level sets the level
// (default: info). Logging never throws, because error handlers log, even when memory is exhausted.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);
// kJson: one object per line, {"time", "level", "message"} and a member per field.
enum class LogFormat { kText, kJson };
void set_log_format(LogFormat format);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view line) noexcept;
// Reports on standard error, without allocating, that a log line was lost.
void log_lost_line() noexcept;
// The value of an event's field. Numbers are JSON numbers in a kJson log.
struct LogValue {
  LogValue(std::string value) : text(std::move(value)) {}  // NOLINT: implicit, for field lists
  LogValue(const char* value) : text(value) {}             // NOLINT
  LogValue(int64_t number) : text(fmt::format("{}", number)), is_number(true) {}  // NOLINT
  LogValue(int number) : LogValue(int64_t{number}) {}                             // NOLINT
  // With one decimal.
  LogValue(double number) : text(fmt::format("{:.1f}", number)), is_number(true) {}  // NOLINT

  std::string text;
  bool is_number = false;
};
// Logs an event with its fields; as text, `line key=value key="a value"`. Fields with empty values
// are omitted.
using LogFields = std::vector<std::pair<std::string_view, LogValue>>;
void log_event(LogLevel level, std::string_view line, const LogFields& fields) noexcept;
// The line of a kText log. A value that could be mistaken for another field is quoted, with \" and
// \\.
std::string log_text(std::string_view line, const LogFields& fields);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    log_lost_line();
  }
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) noexcept {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace quire
