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

Hasher::Hasher(Kind kind)
    : algorithm_(EVP_MD_fetch(nullptr, kind == Kind::kSha256 ? "SHA256" : "SHA1", nullptr)),
      context_(EVP_MD_CTX_new()) {
  QUIRE_CHECK(algorithm_ != nullptr && context_ != nullptr,
              "[base] libcrypto lacks SHA-256 or SHA-1");
  restart();
}

Hasher::~Hasher() {
  EVP_MD_CTX_free(context_);
  EVP_MD_free(algorithm_);
}

void Hasher::restart() {
  QUIRE_CHECK(EVP_DigestInit_ex2(context_, algorithm_, nullptr) == 1, "[base] cannot hash");
}

void Hasher::add(std::string_view bytes) {
  QUIRE_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "[base] cannot hash");
}

void Hasher::finish(std::span<uint8_t> digest) {
  QUIRE_CHECK(digest.size() >= static_cast<size_t>(EVP_MD_get_size(algorithm_)) &&
                  EVP_DigestFinal_ex(context_, digest.data(), nullptr) == 1,
              "[base] cannot hash");
  restart();
}

std::string Hasher::finish_hexadecimal() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest = {};
  finish(digest);
  return to_hexadecimal(std::span(digest).first(static_cast<size_t>(EVP_MD_get_size(algorithm_))));
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
