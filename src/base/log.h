// Leveled log lines on standard error, each passed through one_line(). --log-level sets the level
// (default: info). Logging never throws, because error handlers log, even when memory is exhausted.
#pragma once

#include <fmt/format.h>

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
// Logs an event with its fields; as text, `line key=value key="a value"`. Fields with empty values
// are omitted.
using LogFields = std::vector<std::pair<std::string_view, std::string>>;
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
