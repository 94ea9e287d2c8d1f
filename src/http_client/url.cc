#include "http_client/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace quire::http_client {
namespace {

// Returns whether the text has no character that would end a header line or has a special meaning
// in a URL.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 127 && std::string_view("?#@\\\"<>").find(c) == std::string_view::npos;
  });
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return port;
}

// "HOST[:PORT]"
bool parse_authority(std::string_view text, Url& url) {
  const bool is_ipv6 = text.starts_with('[');
  const size_t host_end = is_ipv6 ? text.find(']') : std::min(text.find(':'), text.size());
  if (host_end == std::string_view::npos) return false;
  url.host = is_ipv6 ? text.substr(1, host_end - 1) : text.substr(0, host_end);
  std::string_view rest = text.substr(std::min(host_end + (is_ipv6 ? 1 : 0), text.size()));
  url.port = url.is_tls ? 443 : 80;
  if (!rest.empty()) {
    if (!rest.starts_with(':')) return false;
    const auto port = parse_port(rest.substr(1));
    if (!port) return false;
    url.port = *port;
  }
  return !url.host.empty();
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  Url url;
  url.is_tls = text.starts_with(kTls);
  const bool has_scheme = url.is_tls || text.starts_with(kPlain);
  std::string_view rest = has_scheme ? text.substr((url.is_tls ? kTls : kPlain).size()) : "";
  const size_t slash = std::min(rest.find('/'), rest.size());
  if (!has_scheme || !is_plain(rest) || !parse_authority(rest.substr(0, slash), url)) {
    return invalid_argument(fmt::format(
        "[http] a server's URL; got '{}', expected http://HOST:PORT or https://HOST:PORT",
        one_line(text.substr(0, 200))));
  }
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::string host_field(const Url& url) {
  const std::string host =
      url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  if (url.port == (url.is_tls ? 443 : 80)) return host;
  return fmt::format("{}:{}", host, url.port);
}

}  // namespace quire::http_client
