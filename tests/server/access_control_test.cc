#include "server/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "support/scratch_directory.h"
#include "support/value_of.h"

namespace quire::server {

namespace {

using ::testing::HasSubstr;

TEST(ApiKeys, FindsKeysAsBearerAndAsPassword) {
  const ApiKeys keys = testing::value_of(ApiKeys::create({"alpha", "beta"}, ""));
  EXPECT_EQ(keys.find("Bearer alpha"), 0);
  EXPECT_EQ(keys.find("bearer  beta"), 1);
  EXPECT_EQ(keys.find("Basic YW55Om5vbmU="), std::nullopt);  // any:none
  EXPECT_EQ(keys.find("Basic YW55OmFscGhh"), 0);             // any:alpha
  EXPECT_EQ(keys.find("basic OmJldGE="), 1);                 // :beta
}

TEST(ApiKeys, RefusesEverythingElse) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha"}, "");
  for (const char* header : {"", "alpha", "Bearer", "Bearer ", "Bearer alph", "Bearer alphaa",
                             "Bearer ALPHA", "Bearer alpha beta", "Basic", "Basic !!!!",
                             "Basic YWxwaGE=", "Digest alpha", "Bearer\talpha"}) {
    EXPECT_EQ(keys->find(header), std::nullopt) << header;
  }
}

TEST(ApiKeys, PaddingIsTwoAtMostAndAtTheEnd) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha", "betas", "gammas"}, "");
  EXPECT_EQ(keys->find("Basic OmFscGhh"), 0);
  EXPECT_EQ(keys->find("Basic YTpiZXRhcw=="), 1);  // a:betas
  EXPECT_EQ(keys->find("Basic YTpnYW1tYXM="), 2);  // a:gammas
  for (const char* header :
       {"=", "==", "===", "====", "========", "AA======", "A===", "OmFscGhh====", "OmFs=Ghh",
        "=mFscGhh", "OmFscGhh=", "OmFscG=h", "----", "OmFsc-hh"}) {
    EXPECT_EQ(keys->find(std::string("Basic ") + header), std::nullopt) << header;
  }
}

// Headers are random sequences of bytes that are difficult for decoders, as a fuzzer would choose
// them. Sanitizer builds also detect invalid reads.
TEST(ApiKeys, NoHeaderIsAKeyByChance) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha"}, "");
  std::mt19937 random(5);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  constexpr std::string_view kTricky = "====AAaz09+/-_ :\r\n\t\x7f";
  constexpr std::string_view kSchemes[] = {"Basic ", "basic  ", "Bearer ", ""};
  for (int i = 0; i < 100'000; ++i) {
    std::string header(kSchemes[below(std::size(kSchemes))]);
    const size_t size = below(i % 100 == 0 ? 3000 : 24);
    for (size_t at = 0; at < size; ++at) {
      header += i % 2 == 0 ? kTricky[below(kTricky.size())] : static_cast<char>(below(256));
    }
    ASSERT_EQ(keys->find(header), std::nullopt) << ::testing::PrintToString(header);
  }
}

TEST(ApiKeys, ReadsAFileOfKeys) {
  const testing::ScratchDirectory scratch;
  const std::string path = scratch.write("keys.txt", "# the team's\none\n\n  two \r\n");
  const ApiKeys keys = testing::value_of(ApiKeys::create({"zero"}, path));
  EXPECT_EQ(keys.size(), 3);
  EXPECT_EQ(keys.find("Bearer two"), 2);
  scratch.write("keys.txt", "# nobody\n");
  EXPECT_THAT(ApiKeys::create({}, path).status().message(), HasSubstr("no key"));
  EXPECT_FALSE(ApiKeys::create({}, path + ".absent").ok());
}

TEST(ApiKeys, AKeyOfAFileIsNeverTruncated) {
  const testing::ScratchDirectory scratch;
  for (const std::string line : {"passé", "épass", "\xEF\xBB\xBFpass", "pass\x7f", "\1pass"}) {
    const Status status = ApiKeys::create({}, scratch.write("keys", line + "\n")).status();
    EXPECT_THAT(status.message(), HasSubstr("visible ASCII")) << line;
  }
  const std::string commented = scratch.write("keys", "# prod\nalpha\nbeta # test\n");
  EXPECT_THAT(ApiKeys::create({}, commented).status().message(),
              HasSubstr("keys:3: got an unusable key"));
  const std::string path = scratch.write("keys", " \t\r\n\tpass \t\r\n");
  const ApiKeys keys = testing::value_of(ApiKeys::create({}, path));
  EXPECT_EQ(keys.size(), 1);
  EXPECT_EQ(keys.find("Bearer pass"), 0);
  EXPECT_EQ(keys.find("Bearer passé"), std::nullopt);
}

TEST(ApiKeys, RefusesKeysThatNoHeaderCanCarryWithoutShowingThem) {
  for (const std::string key : {"", "has space", "new\nline", "ümlaut"}) {
    const Status status = ApiKeys::create({key}, "").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    if (key.empty()) continue;
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr(key)));
  }
}

// KV events contain the salts, so not even a key's digest may be in them.
TEST(ApiKeys, SaltsDifferByKeyAndDoNotDependOnIt) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha", "beta"}, "");
  EXPECT_NE(keys->cache_salt(0), keys->cache_salt(1));
  EXPECT_EQ(keys->cache_salt(0), ApiKeys::create({"gamma", "beta"}, "")->cache_salt(0));
}

TEST(ApiKeys, AnOnlyKeyNeedsNoSalt) {
  EXPECT_EQ(ApiKeys::create({"alpha"}, "")->cache_salt(0), "");
}

TEST(ApiKeys, AFileMayBeAPipe) {
  const testing::ScratchDirectory scratch;
  const std::string pipe = scratch.path() / "keys";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "secret\n"; });
  const Result<ApiKeys> keys = ApiKeys::create({}, pipe);
  writer.join();
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->find("Bearer secret"), 0);
}

}  // namespace

namespace {

TEST(Hosts, AddressesAndLocalhostAreWhateverTheyAreCalled) {
  for (const char* host : {"", "localhost", "LocalHost:8000", "127.0.0.1", "127.0.0.1:8000",
                           "10.1.2.3:1", "[::1]", "[::1]:8000", "[fe80::1]:80", "localhost:"}) {
    EXPECT_TRUE(is_allowed_host(host, {})) << host;
  }
}

TEST(KeyFiles, MayBeReadByOthers) {
  const testing::ScratchDirectory scratch;
  const std::string path = scratch.write("keys", "key\n");
  for (const mode_t mode : {0600, 0400, 0640, 0440}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(others_may_read(path)) << mode;
  }
  for (const mode_t mode : {0644, 0604}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(others_may_read(path)) << mode;
  }
  std::remove(path.c_str());
  EXPECT_FALSE(others_may_read(path)) << "no file";
  EXPECT_FALSE(others_may_read("")) << "no flag";
  EXPECT_FALSE(others_may_read("/dev/null")) << "not a file of keys";
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
