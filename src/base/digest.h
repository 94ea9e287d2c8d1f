// SHA-256, SHA-1, and bytes as text: hexadecimal and base64 digits. Base64 takes at most 1 GiB.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// libcrypto's EVP_MD and EVP_MD_CTX.
struct evp_md_st;
struct evp_md_ctx_st;

namespace quire {

using Sha256Digest = std::array<uint8_t, 32>;
Sha256Digest sha256_of(std::string_view bytes);

// Hashes bytes that come in pieces. Reuse an object for many short texts: looking up the algorithm
// takes longer than hashing a short text.
class Hasher {
 public:
  enum class Kind { kSha256, kSha1 };

  explicit Hasher(Kind kind = Kind::kSha256);
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  // Discards the bytes added.
  void restart();
  void add(std::string_view bytes);
  // Writes the digest of all bytes added, and restarts. SHA-256 has 32 bytes, SHA-1 has 20.
  void finish(std::span<uint8_t> digest);
  std::string finish_hexadecimal();

 private:
  evp_md_st* algorithm_;
  evp_md_ctx_st* context_;
};

// Two lower-case digits per byte.
std::string to_hexadecimal(std::span<const uint8_t> bytes);

// RFC 4648, with padding.
std::string to_base64(std::span<const uint8_t> bytes);
// Returns "" for malformed digits or padding.
std::string from_base64(std::string_view digits);

}  // namespace quire
