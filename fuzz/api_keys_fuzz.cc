// Finds the key of an Authorization header exactly if an independent decoder does, and finds every
// spelling of a key.
#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/access_control.h"

namespace quire::server {
namespace {

// The keys have all lengths modulo 3, on which base64 padding depends.
constexpr std::string_view kKeys[] = {"alpha", "betas!", "a:key", "="};

std::optional<int> place_of(std::string_view key) {
  const auto found = std::ranges::find(kKeys, key);
  if (found == std::end(kKeys)) return std::nullopt;
  return static_cast<int>(found - std::begin(kKeys));
}

int base64_digit(char c) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t digit = kDigits.find(c);
  return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
}

std::optional<std::string> decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  return bytes;
}

std::string encode(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::optional<int> expected(std::string_view header) {
  const size_t space = header.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::string scheme(header.substr(0, space));
  std::ranges::transform(scheme, scheme.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = header.substr(space);
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
  if (scheme == "bearer") return place_of(rest);
  if (scheme != "basic" || rest.size() > 1024) return std::nullopt;
  const std::optional<std::string> login = decode(rest);
  if (!login || login->find(':') == std::string::npos) return std::nullopt;
  return place_of(std::string_view(*login).substr(login->find(':') + 1));
}

const ApiKeys& keys() {
  static const ApiKeys all = ApiKeys::create({std::begin(kKeys), std::end(kKeys)}, "").value();
  return all;
}

void check_header(std::string_view header) {
  QUIRE_CHECK(keys().find(header) == expected(header), "the header belongs to its key");
}

void check_login(std::string_view user, std::string_view key) {
  if (user.find(':') != std::string_view::npos || user.size() > 500) return;
  const std::string login = std::string(user) + ':' + std::string(key);
  QUIRE_CHECK(keys().find("Basic " + encode(login)) == place_of(key),
              "every user name finds the key");
}

}  // namespace
}  // namespace quire::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire::server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_header(text);
  check_header("Basic " + std::string(text));
  check_header("Basic " + encode(text));
  check_header("Bearer " + std::string(text));
  for (const std::string_view key : kKeys) check_login(text, key);
  return 0;
}
