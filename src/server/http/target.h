// What a request line asks for, taken apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire::http {

struct Target {
  std::string path;   // percent-decoded once
  std::string query;  // as it came, without '?'
};

// Origin form ("/path?query"), absolute form ("http://host/path?query"; the host is not looked at)
// and, for OPTIONS, "*" (RFC 9112, section 3.2). Nothing for what is none of these, for an escape
// that is no two hex digits, and for an escaped NUL.
std::optional<Target> parse_target(std::string_view method, std::string_view target);

}  // namespace quire::http
