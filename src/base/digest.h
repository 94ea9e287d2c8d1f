// SHA-256, and bytes as text: hexadecimal and base64 digits. Base64 takes at most 1 GiB.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quire {

using Sha256Digest = std::array<uint8_t, 32>;
Sha256Digest sha256_of(std::string_view bytes);

// Two lower-case digits per byte.
std::string to_hexadecimal(std::span<const uint8_t> bytes);

// RFC 4648, with padding.
std::string to_base64(std::span<const uint8_t> bytes);
// Returns "" for malformed digits or padding.
std::string from_base64(std::string_view digits);

}  // namespace quire
