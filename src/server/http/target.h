// Parses the target of a request line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire::http {

struct Target {
  std::string path;   // percent-decoded once
  std::string query;  // as received, without '?'
  std::string host;   // of the absolute form; replaces the Host field (RFC 9112, 3.2.2)
};

// Parses the origin form ("/path?query"), the absolute form ("http://host/path?query") and, for
// OPTIONS, "*" (RFC 9112, section 3.2). Returns nothing for other forms, for a host with user
// information, for a "%" without two hex digits, for "%00" and for a fragment.
std::optional<Target> parse_target(std::string_view method, std::string_view target);

}  // namespace quire::http
