#include "server/hosts.h"

#include <arpa/inet.h>

#include <algorithm>

#include "server/http/ascii.h"

namespace quire::server {
namespace {

bool is_address(int family, std::string_view text) {
  in6_addr address;  // large enough for both families
  return ::inet_pton(family, std::string(text).c_str(), &address) == 1;
}

bool is_port(std::string_view text) {
  return text.empty() || (text.front() == ':' && std::ranges::all_of(text.substr(1), [](char c) {
                            return c >= '0' && c <= '9';
                          }));
}

}  // namespace

bool is_allowed_host(std::string_view host, const std::vector<std::string>& allowed) {
  if (host.empty()) return true;
  if (host.front() == '[') {
    const size_t end = host.find(']');
    return end != std::string_view::npos && is_port(host.substr(end + 1)) &&
           is_address(AF_INET6, host.substr(1, end - 1));
  }
  const size_t name_end = std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, name_end);
  if (!is_port(host.substr(name_end))) return false;
  return is_address(AF_INET, name) || http::equals_ignoring_case(name, "localhost") ||
         std::ranges::any_of(allowed, [&](const std::string& one) {
           return one == "*" || http::equals_ignoring_case(name, one);
         });
}

bool can_be_host(std::string_view name) {
  if (name == "*") return true;
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c != '\x7f' && std::string_view("/:@?#[]*").find(c) == std::string_view::npos;
  });
}

}  // namespace quire::server
