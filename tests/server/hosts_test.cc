#include "server/hosts.h"

#include <gtest/gtest.h>

#include "server/cors.h"

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

TEST(Hosts, SomeTextsCanBeNone) {
  for (const char* name : {"*", "quire.example", "Quire-1.example.", "10.0.0.1", "a_b"}) {
    EXPECT_TRUE(can_be_host(name)) << name;
  }
  for (const char* name : {"", "http://a", "a:8000", "a/", "*.example", "a b", "u@a", "[::1]"}) {
    EXPECT_FALSE(can_be_host(name)) << name;
  }
}

TEST(Origins, SomeTextsCanBeNone) {
  for (const char* origin : {"*", "null", "https://a.example", "http://localhost:3000",
                             "http://[::1]:80", "chrome-extension://abc"}) {
    EXPECT_TRUE(can_be_origin(origin)) << origin;
  }
  for (const char* origin :
       {"", "foo", "a.example", "https://", "://a", "https://a.example/", "https://A.example",
        "https://*.example", "https://u@a", "http://a b"}) {
    EXPECT_FALSE(can_be_origin(origin)) << origin;
  }
}

}  // namespace
}  // namespace quire::server
