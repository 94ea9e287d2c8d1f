// Shared by str.format and %-formatting: a parsed format specification and its application.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::jinja {

class TextBuilder;

inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxPrecision = 4096;

struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ or = (padding after the sign); '\0': the default of the type
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

// Reads the digits at the start of `text` and removes them.
int64_t read_count(std::string_view& text);
void write_integer(int64_t number, const FormatSpec& spec, TextBuilder& out);
void write_float(double number, const FormatSpec& spec, TextBuilder& out);
void write_text(std::string_view text, const FormatSpec& spec, TextBuilder& out);

}  // namespace quire::jinja
