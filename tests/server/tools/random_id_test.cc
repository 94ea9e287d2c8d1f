#include "server/tools/random_id.h"

#include <gtest/gtest.h>
#include <openssl/rand.h>

namespace quire::server {
namespace {

// Out of memory, or of descriptors, OpenSSL has none.
TEST(RandomId, AsksNobodyWhoMayHaveNone) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  RAND_METHOD without{};
  without.bytes = [](unsigned char*, int) { return 0; };
  ::RAND_set_rand_method(&without);
  const std::string one = random_id();
  const std::string other = random_id();
  ::RAND_set_rand_method(nullptr);
#pragma GCC diagnostic pop
  EXPECT_EQ(one.size(), 24U);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace quire::server
