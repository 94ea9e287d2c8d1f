#include "server/http/target.h"

#include <algorithm>
#include <cstddef>

#include "server/http/ascii.h"

namespace quire::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Returns "host" for "http://host/path", or "" for any other form and for a host with a user.
std::string_view find_host(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
    return host.find('@') == std::string_view::npos ? host : "";
  }
  return "";
}

}  // namespace

std::optional<Target> parse_target(std::string_view method, std::string_view target) {
  if (target == "*" && method == "OPTIONS") return Target{"*", "", ""};
  if (target.find('#') != std::string_view::npos) return std::nullopt;
  std::string_view host;
  if (!target.starts_with('/')) {
    host = find_host(target);
    if (host.empty()) return std::nullopt;
    target.remove_prefix(static_cast<size_t>(host.end() - target.begin()));
  }
  const size_t mark = std::min(target.find('?'), target.size());
  std::optional<std::string> path = percent_decode(target.substr(0, mark));
  if (!path) return std::nullopt;
  if (path->empty()) path = "/";  // "http://host"
  return Target{std::move(*path), std::string(target.substr(std::min(mark + 1, target.size()))),
                std::string(host)};
}

}  // namespace quire::http
