#include "server/api_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/file.h"
#include "server/http/ascii.h"

namespace quire::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxKeyBytes = 512;

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

// Trims only blanks and '\r'; check_key() refuses all other characters that a key cannot have.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

Status check_key(std::string_view key, std::string_view source) {
  if (!key.empty() && key.size() <= kMaxKeyBytes && std::ranges::all_of(key, is_visible)) return {};
  return invalid_argument(
      fmt::format("[server] {}: a key is not usable; expected 1 to {} visible ASCII characters",
                  source, kMaxKeyBytes));
}

Result<std::vector<std::string>> keys_of_file(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file_or_pipe(path, kMaxFileBytes));
  std::vector<std::string> keys;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(begin, end - begin));
    if (!line.empty() && line.front() != '#') keys.emplace_back(line);
    begin = end + 1;
  }
  if (keys.empty()) {
    return invalid_argument(
        fmt::format("[server] --api-key-file {}: no key; expected one a line", path));
  }
  return keys;
}

bool take_scheme(std::string_view& header, std::string_view scheme) {
  if (header.size() <= scheme.size() || header[scheme.size()] != ' ' ||
      !http::equals_ignoring_case(header.substr(0, scheme.size()), scheme)) {
    return false;
  }
  header = trimmed(header.substr(scheme.size()));
  return true;
}

bool is_base64_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

// Returns "" for malformed input. EVP_DecodeBlock() alone accepts '=' anywhere and counts it as a
// byte.
std::string decode_base64(std::string_view encoded) {
  const auto digits_end = std::ranges::find_if_not(encoded, is_base64_digit);
  const std::string_view padding(digits_end, encoded.end());
  const bool is_padding = padding.empty() || padding == "=" || padding == "==";
  if (encoded.empty() || encoded.size() % 4 != 0 || !is_padding) return "";
  std::string bytes(encoded.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(encoded.data()),
                                   static_cast<int>(encoded.size()));
  if (size != static_cast<int>(bytes.size())) return "";
  bytes.resize(bytes.size() - padding.size());
  return bytes;
}

// The password of "Basic base64(USER:PASSWORD)".
std::optional<std::string> basic_password(std::string_view encoded) {
  if (encoded.size() > 2 * kMaxKeyBytes) return std::nullopt;
  const std::string text = decode_base64(encoded);
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return text.substr(colon + 1);
}

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

Result<ApiKeys> ApiKeys::create(const std::vector<std::string>& keys, const std::string& file) {
  ApiKeys all;
  for (const std::string& key : keys) {
    QUIRE_RETURN_IF_ERROR(check_key(key, "--api-key"));
    all.digests_.push_back(digest_of(key));
  }
  if (!file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> more, keys_of_file(file));
    for (const std::string& key : more) {
      QUIRE_RETURN_IF_ERROR(check_key(key, "--api-key-file " + file));
      all.digests_.push_back(digest_of(key));
    }
  }
  return all;
}

// Compares digests, so that the time reveals neither a key's length nor a common prefix. Compares
// with all of them, so that the time does not reveal a key's position in the list.
std::optional<int> ApiKeys::find(std::string_view authorization) const {
  std::string key;
  if (take_scheme(authorization, "bearer")) {
    key = authorization;
  } else if (take_scheme(authorization, "basic")) {
    key = basic_password(authorization).value_or("");
  }
  if (key.empty()) return std::nullopt;
  const Digest digest = digest_of(key);
  std::optional<int> found;
  for (size_t i = 0; i < digests_.size(); ++i) {
    if (CRYPTO_memcmp(digest.data(), digests_[i].data(), digest.size()) == 0) {
      found = static_cast<int>(i);
    }
  }
  return found;
}

std::string ApiKeys::cache_salt(int key_idx) const {
  const Digest& digest = digests_[static_cast<size_t>(key_idx)];
  return {digest.begin(), digest.end()};
}

}  // namespace quire::server
