#include "server/tools/random_id.h"

#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "base/check.h"

namespace quire::server {

std::string random_id() {
  // 64 of them, so that a byte's remainder prefers none by much.
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzXY";
  std::array<unsigned char, 24> bytes{};
  QUIRE_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "no random bytes");
  std::string id;
  for (const unsigned char byte : bytes) id += kLetters[byte % kLetters.size()];
  return id;
}

}  // namespace quire::server
