#include "base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/check.h"

namespace quire {
namespace {

bool is_base64_digit(char c) {
  return is_alphanumeric(c) || c == '+' || c == '/';
}

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* as_bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

Sha256Digest sha256_of(std::string_view bytes) {
  Sha256Digest digest;
  QUIRE_CHECK(SHA256(as_bytes(bytes), bytes.size(), digest.data()) != nullptr,
              "[base] libcrypto lacks SHA-256");
  return digest;
}

std::string to_hexadecimal(std::span<const uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string to_base64(std::span<const uint8_t> bytes) {
  std::string digits((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock() ends it by a 0
  const int size = EVP_EncodeBlock(as_bytes(digits), bytes.data(), static_cast<int>(bytes.size()));
  digits.resize(static_cast<size_t>(size));
  return digits;
}

// EVP_DecodeBlock() alone accepts '=' anywhere and counts it as a byte.
std::string from_base64(std::string_view digits) {
  const auto digits_end = std::ranges::find_if_not(digits, is_base64_digit);
  const std::string_view padding(digits_end, digits.end());
  const bool is_padding = padding.empty() || padding == "=" || padding == "==";
  if (digits.empty() || digits.size() % 4 != 0 || !is_padding) return "";
  std::string bytes(digits.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(as_bytes(bytes), as_bytes(digits), static_cast<int>(digits.size()));
  if (size != static_cast<int>(bytes.size())) return "";
  bytes.resize(bytes.size() - padding.size());
  return bytes;
}

}  // namespace quire
