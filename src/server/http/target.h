// What a request line asks for, taken apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire::http {

struct Target {
  std::string path;   // percent-decoded once
  std::string query;  // as it came, without '?'
  std::string host;   // of the absolute form: it holds, rather than the field (RFC 9112, 3.2.2)
};

// Origin form ("/path?query"), absolute form ("http://host/path?query") and, for OPTIONS, "*" (RFC
// 9112, section 3.2). Nothing for what is none of these, for a host with a user, for an escape that
// is no two hex digits, and for an escaped NUL.
std::optional<Target> parse_target(std::string_view method, std::string_view target);

}  // namespace quire::http
