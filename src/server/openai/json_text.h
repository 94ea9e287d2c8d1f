// Appends JSON directly to a string: a stream has one chunk per token, so each chunk must be cheap.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// Appends the escaped text without quotes. Invalid UTF-8 becomes U+FFFD.
void append_escaped(std::string_view text, std::string& out);

inline void append_string(std::string_view text, std::string& out) {
  out += '"';
  append_escaped(text, out);
  out += '"';
}

inline void append_int(int64_t number, std::string& out) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

// Clamps to at least -9999, as vLLM does, since JSON has no infinities.
inline void append_logprob(float logprob, std::string& out) {
  constexpr float kLeast = -9999.0F;
  std::array<char, 32> digits;  // fmt writes to an array several times as fast as to a string
  char* const end = fmt::format_to(digits.data(), "{}", logprob >= kLeast ? logprob : kLeast);
  out.append(digits.data(), end);
}

inline void append_ids(const std::vector<int32_t>& ids, std::string& out) {
  out += '[';
  for (const int32_t id : ids) {
    append_int(id, out);
    out += ',';
  }
  if (ids.empty()) {
    out += ']';
  } else {
    out.back() = ']';
  }
}

}  // namespace quire::server
