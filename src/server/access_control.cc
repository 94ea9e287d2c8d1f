#include "server/access_control.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/file.h"
#include "base/text_input.h"

namespace quire::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxKeyBytes = 512;

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

Status check_key(std::string_view key, std::string_view source) {
  if (!key.empty() && key.size() <= kMaxKeyBytes && std::ranges::all_of(key, is_visible)) return {};
  return invalid_argument(fmt::format(
      "[server] {}: got an unusable key, expected 1 to {} visible ASCII characters without blanks",
      source, kMaxKeyBytes));
}

Result<std::vector<std::string>> keys_of_file(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file_or_pipe(path, kMaxFileBytes));
  std::vector<std::string> keys;
  for (const Line& line : split_lines(text)) {
    const std::string_view key = trimmed(line.text);
    if (key.front() == '#') continue;
    QUIRE_RETURN_IF_ERROR(check_key(key, "`api_key_file` " + line_source(path, line)));
    keys.emplace_back(key);
  }
  if (keys.empty()) {
    return invalid_argument(
        fmt::format("[server] `api_key_file` {}: got no keys, expected one per line", path));
  }
  return keys;
}

bool take_scheme(std::string_view& header, std::string_view scheme) {
  if (header.size() <= scheme.size() || header[scheme.size()] != ' ' ||
      !equals_ignoring_case(header.substr(0, scheme.size()), scheme)) {
    return false;
  }
  header = trimmed(header.substr(scheme.size()));
  return true;
}

// The password of "Basic base64(USER:PASSWORD)".
std::optional<std::string> basic_password(std::string_view encoded) {
  if (encoded.size() > 2 * kMaxKeyBytes) return std::nullopt;
  const std::string text = from_base64(encoded);
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return text.substr(colon + 1);
}

bool is_address(int family, std::string_view text) {
  in6_addr address;  // large enough for both families
  return ::inet_pton(family, std::string(text).c_str(), &address) == 1;
}

bool is_port(std::string_view text) {
  return text.empty() || (text.front() == ':' && std::ranges::all_of(text.substr(1), is_digit));
}

bool is_allowed_origin(const std::vector<std::string>& allowed, std::string_view origin) {
  return !origin.empty() && std::ranges::any_of(allowed, [&](const std::string& one) {
    return one == "*" || one == origin;
  });
}

}  // namespace

Result<ApiKeys> ApiKeys::create(const std::vector<std::string>& keys, const std::string& file) {
  ApiKeys all;
  for (const std::string& key : keys) QUIRE_RETURN_IF_ERROR(check_key(key, "`api_key`"));
  std::vector<std::string> every = keys;
  if (!file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> more, keys_of_file(file));
    every.insert(every.end(), more.begin(), more.end());
  }
  for (const std::string& key : every) all.digests_.push_back(sha256_of(key));
  return all;
}

std::optional<int> ApiKeys::find(std::string_view authorization) const {
  std::string key;
  if (take_scheme(authorization, "bearer")) {
    key = authorization;
  } else if (take_scheme(authorization, "basic")) {
    key = basic_password(authorization).value_or("");
  }
  return find_key(key);
}

// Compares digests, so that the time reveals neither a key's length nor a common prefix. Compares
// all digests, so that the time does not reveal a key's position in the list.
std::optional<int> ApiKeys::find_key(std::string_view key) const {
  if (key.empty()) return std::nullopt;
  const Sha256Digest digest = sha256_of(key);
  std::optional<int> found;
  for (size_t i = 0; i < digests_.size(); ++i) {
    if (CRYPTO_memcmp(digest.data(), digests_[i].data(), digest.size()) == 0) {
      found = static_cast<int>(i);
    }
  }
  return found;
}

std::string ApiKeys::cache_salt(int key_idx) const {
  return size() == 1 ? std::string() : "key " + std::to_string(key_idx) + "/";
}

bool others_may_read(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0;
}

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
  return is_address(AF_INET, name) || equals_ignoring_case(name, "localhost") ||
         std::ranges::any_of(allowed, [&](const std::string& one) {
           return one == "*" || equals_ignoring_case(name, one);
         });
}

bool can_be_host(std::string_view name) {
  if (name == "*") return true;
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c != '\x7f' && std::string_view("/:@?#[]*").find(c) == std::string_view::npos;
  });
}

http::Headers cors_headers(const std::vector<std::string>& allowed_origins,
                           const http::Request& request) {
  if (allowed_origins.empty()) return {};
  http::Headers headers = {{"vary", "Origin"}};
  const std::string_view origin = request.header("origin");
  if (is_allowed_origin(allowed_origins, origin)) {
    headers.emplace_back("access-control-allow-origin", origin);
    headers.emplace_back("access-control-expose-headers",
                         "x-request-id, retry-after, x-quire-ignored");
  }
  return headers;
}

bool can_be_origin(std::string_view text) {
  if (text == "*" || text == "null") return true;
  const size_t scheme_end = text.find("://");
  if (scheme_end == 0 || scheme_end == std::string_view::npos) return false;
  const std::string_view authority = text.substr(scheme_end + 3);
  return !authority.empty() && authority.find_first_of("/?#@*") == std::string_view::npos &&
         std::ranges::none_of(
             text, [](char c) { return c <= ' ' || c == '\x7f' || (c >= 'A' && c <= 'Z'); });
}

bool is_preflight(const http::Request& request) {
  return request.method == "OPTIONS" && !request.header("origin").empty() &&
         !request.header("access-control-request-method").empty();
}

http::Response preflight_response(const std::vector<std::string>& allowed_origins,
                                  const http::Request& request) {
  http::Response response = {
      .status = 403, .headers = cors_headers(allowed_origins, request), .body = {}};
  if (!is_allowed_origin(allowed_origins, request.header("origin"))) return response;
  response.status = 204;
  response.headers.emplace_back("access-control-allow-methods", "GET, POST, DELETE");
  // Client libraries add headers such as x-stainless-os, so "*" allows every name. Authorization is
  // listed because "*" does not include it (Fetch standard).
  response.headers.emplace_back("access-control-allow-headers", "authorization, *");
  response.headers.emplace_back("access-control-max-age", "600");
  return response;
}

}  // namespace quire::server
