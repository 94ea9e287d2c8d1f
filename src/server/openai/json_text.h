// JSON written straight into a string: a stream has a chunk a token, and each is one append after
// another.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// What stands between the quotes; invalid UTF-8 becomes U+FFFD.
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

// As vLLM, no less than -9999: JSON has no infinities.
inline void append_logprob(float logprob, std::string& out) {
  constexpr float kLeast = -9999.0F;
  fmt::format_to(std::back_inserter(out), "{}", logprob >= kLeast ? logprob : kLeast);
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
