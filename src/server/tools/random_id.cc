#include "server/tools/random_id.h"

#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string_view>

namespace quire::server {

std::string random_id() {
  // 64 characters, so that a byte's remainder is unbiased; X and Y occur twice.
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzXY";
  std::array<unsigned char, 24> bytes{};
  // getentropy() needs neither memory nor a descriptor, so it works even if these are exhausted.
  if (::getentropy(bytes.data(), bytes.size()) != 0) throw std::runtime_error("no random bytes");
  std::string id;
  for (const unsigned char byte : bytes) id += kLetters[byte % kLetters.size()];
  return id;
}

}  // namespace quire::server
