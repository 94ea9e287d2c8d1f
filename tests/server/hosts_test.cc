#include "server/hosts.h"

#include <gtest/gtest.h>

namespace quire::server {
namespace {

TEST(Hosts, AddressesAndLocalhostAreWhateverTheyAreCalled) {
  for (const char* host : {"", "localhost", "LocalHost:8000", "127.0.0.1", "127.0.0.1:8000",
                           "10.1.2.3:1", "[::1]", "[::1]:8000", "[fe80::1]:80", "localhost:"}) {
    EXPECT_TRUE(is_allowed_host(host, {})) << host;
  }
}

TEST(Hosts, NamesAreThoseThatTheOperatorSays) {
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "notlocalhost",
        "127.0.0.1.evil.example", "[::1].evil.example", "[evil.example]", "[::1", "::1",
        "localhost:80:80", "localhost:x", ":8000", "0x7f.1"}) {
    EXPECT_FALSE(is_allowed_host(host, {})) << host;
    EXPECT_FALSE(is_allowed_host(host, {"quire.example"})) << host;
  }
  EXPECT_TRUE(is_allowed_host("Quire.example:443", {"a", "quire.example"}));
  EXPECT_FALSE(is_allowed_host("sub.quire.example", {"quire.example"}));
  EXPECT_TRUE(is_allowed_host("any.example", {"*"}));
}

}  // namespace
}  // namespace quire::server
