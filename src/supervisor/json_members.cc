#include "supervisor/json_members.h"

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "base/json.h"

namespace quire::supervisor {
namespace {

// Moves through JSON text. At its end, or at an error, the rest is empty.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Returns a string with its quotes; empty: the text ends before, or another value follows.
  std::string_view take_string() {
    skip_blanks();
    if (rest_.empty() || rest_.front() != '"') return {};
    for (size_t quote = 1; (quote = rest_.find('"', quote)) != std::string_view::npos; ++quote) {
      const size_t last = rest_.find_last_not_of('\\', quote - 1);
      if ((quote - 1 - last) % 2 == 0) return take_prefix(quote + 1);
    }
    rest_ = {};
    return {};
  }

  std::string_view take_value() {
    skip_blanks();
    if (rest_.empty()) return {};
    if (rest_.front() == '"') return take_string();
    const char* const begin = rest_.data();
    if (rest_.front() == '{' || rest_.front() == '[') {
      skip_nested();
    } else {
      take_prefix(std::min(rest_.find_first_of(",}] \t\r\n"), rest_.size()));
    }
    return {begin, static_cast<size_t>(rest_.data() - begin)};
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  std::string_view take_prefix(size_t size) {
    const std::string_view prefix = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return prefix;
  }

  void skip_nested() {
    size_t depth = 0;
    do {
      const size_t next = rest_.find_first_of("\"{}[]");
      if (next == std::string_view::npos) {
        rest_.remove_prefix(rest_.size());
        return;
      }
      rest_.remove_prefix(next);
      const char c = rest_.front();
      if (c == '"') {
        const std::string_view text = take_string();
        if (text.empty()) return;
        continue;
      }
      depth = c == '{' || c == '[' ? depth + 1 : depth - 1;
      rest_.remove_prefix(1);
    } while (depth > 0);
  }

  std::string_view rest_;
};

std::optional<double> unit_seconds(std::string_view unit) {
  if (unit == "h") return 3600;
  if (unit == "m") return 60;
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us" || unit == "µs") return 1e-6;
  if (unit == "ns") return 1e-9;
  return std::nullopt;
}

// "1h30m", "-1m", "300"
std::optional<double> duration_seconds(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::optional<double> number = parse_whole<double>(text.substr(0, digits));
    text.remove_prefix(digits);
    const size_t letters = std::min(text.find_first_of("0123456789."), text.size());
    const std::string_view unit = text.substr(0, letters);
    const std::optional<double> seconds =
        unit.empty() && sum == 0 ? std::optional<double>(1) : unit_seconds(unit);
    if (!number || !seconds) return std::nullopt;
    sum += *number * *seconds;
    text.remove_prefix(letters);
  }
  return is_negative ? -sum : sum;
}

}  // namespace

std::string_view json_member(std::string_view json, std::string_view key) {
  Scanner scanner(json);
  if (!scanner.take('{')) return {};
  do {
    const std::string_view name = scanner.take_string();
    if (name.size() < 2 || !scanner.take(':')) return {};
    const std::string_view value = scanner.take_value();
    if (name.substr(1, name.size() - 2) == key) return value;
  } while (scanner.take(','));
  return {};
}

std::string json_string(std::string_view value) {
  if (!value.starts_with('"')) return "";
  const Result<JsonDocument> document = JsonDocument::parse(value, "string");
  std::string_view text;
  if (!document.ok() || document->root().get(text) != simdjson::SUCCESS) return "";
  return std::string(text);
}

std::optional<std::chrono::milliseconds> parse_keep_alive(std::string_view value) {
  const std::optional<double> seconds =
      value.starts_with('"') ? duration_seconds(json_string(value)) : parse_whole<double>(value);
  if (!seconds || std::isnan(*seconds)) return std::nullopt;
  constexpr double kMost = 1e9;  // 30 years
  if (*seconds < 0) return std::chrono::milliseconds(-1);
  return std::chrono::milliseconds(std::llround(std::min(*seconds, kMost) * 1e3));
}

}  // namespace quire::supervisor
