#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "quire/log_level.h"

namespace quire {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%d %H:%M:%S.%e %^%L%$ %v";
// The pattern opens the JSON object; the message completes it.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)";

std::atomic<LogFormat> log_format = LogFormat::kText;

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto created = std::make_shared<spdlog::logger>("quire", sink);
    created->set_pattern(kTextPattern);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Quotes a value that contains a space, '=' or a character to escape.
std::string text_value(std::string_view value) {
  if (value.find_first_of(" =\"\\") == std::string_view::npos && one_line(value) == value) {
    return std::string(value);
  }
  std::string escaped;
  for (const char c : value) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + one_line(escaped) + '"';
}

// The rest of the line's JSON object, without the opening brace.
std::string json_rest(std::string_view line, const LogFields& fields) {
  JsonWriter json;
  json.begin_object();
  json.field("message", one_line(line));
  for (const auto& [key, value] : fields) {
    if (value.text.empty()) continue;
    json.key(key);
    value.is_number ? json.raw(value.text) : json.value(one_line(value.text));
  }
  json.end_object();
  return json.text().substr(1);
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(spdlog_level(level));
}
Status set_log_level(std::string_view level) {
  constexpr std::pair<std::string_view, LogLevel> kLevels[] = {
      {"debug", LogLevel::kDebug},  {"info", LogLevel::kInfo},   {"warning", LogLevel::kWarning},
      {"warn", LogLevel::kWarning}, {"error", LogLevel::kError}, {"off", LogLevel::kOff}};
  for (const auto& [name, known] : kLevels) {
    if (level != name) continue;
    set_log_level(known);
    return {};
  }
  return invalid_argument(fmt::format(
      "[log] level: got '{}', expected debug, info, warning, error or off", one_line(level)));
}
bool log_enabled(LogLevel level) {
  return logger().should_log(spdlog_level(level));
}
void log_line(LogLevel level, std::string_view line) noexcept {
  log_event(level, line, {});
}
void set_log_format(LogFormat format) {
  log_format = format;
  logger().set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern);
}
std::string log_text(std::string_view line, const LogFields& fields) {
  std::string text = one_line(line);
  for (const auto& [key, value] : fields) {
    if (!value.text.empty()) text += fmt::format(" {}={}", key, text_value(value.text));
  }
  return text;
}
void log_event(LogLevel level, std::string_view line, const LogFields& fields) noexcept {
  try {
    const bool is_json = log_format == LogFormat::kJson;
    logger().log(spdlog_level(level), is_json ? json_rest(line, fields) : log_text(line, fields));
  } catch (...) {
    log_lost_line();
  }
}
void log_lost_line() noexcept {
  std::fputs("[log] a line is lost: no memory for it\n", stderr);
}

}  // namespace quire
