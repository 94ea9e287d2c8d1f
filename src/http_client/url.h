#pragma once

#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire::http_client {

struct Url {
  bool is_tls = false;
  std::string host;  // an IPv6 address without its brackets
  int port = 80;
  std::string path;  // the prefix of every target, without a slash at its end: "" or "/llm"
};

// Parses "http[s]://HOST[:PORT][/PATH]"; refuses a user, a query and a fragment.
Result<Url> parse_url(std::string_view text);

// Returns the Host field: includes the port only if it is not the scheme's default.
std::string host_field(const Url& url);

}  // namespace quire::http_client
