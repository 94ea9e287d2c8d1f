#include "server/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace quire::server {
namespace {

using ::testing::HasSubstr;

TEST(ApiKeys, KnowsItsKeysAsBearerAndAsAPassword) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha", "beta"}, "");
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->find("Bearer alpha"), 0);
  EXPECT_EQ(keys->find("bearer  beta"), 1);
  EXPECT_EQ(keys->find("Basic YW55Om5vbmU="), std::nullopt);  // any:none
  EXPECT_EQ(keys->find("Basic YW55OmFscGhh"), 0);             // any:alpha
  EXPECT_EQ(keys->find("basic OmJldGE="), 1);                 // :beta
}

TEST(ApiKeys, RefusesEverythingElse) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha"}, "");
  for (const char* header : {"", "alpha", "Bearer", "Bearer ", "Bearer alph", "Bearer alphaa",
                             "Bearer ALPHA", "Bearer alpha beta", "Basic", "Basic !!!!",
                             "Basic YWxwaGE=", "Digest alpha", "Bearer\talpha"}) {
    EXPECT_EQ(keys->find(header), std::nullopt) << header;
  }
}

TEST(ApiKeys, ReadsAFileOfKeys) {
  const std::string path = ::testing::TempDir() + "/keys.txt";
  std::ofstream(path) << "# the team's\none\n\n  two \r\n";
  const Result<ApiKeys> keys = ApiKeys::create({"zero"}, path);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->size(), 3);
  EXPECT_EQ(keys->find("Bearer two"), 2);
  std::ofstream(path) << "# nobody\n";
  EXPECT_THAT(ApiKeys::create({}, path).status().message(), HasSubstr("no key"));
  EXPECT_FALSE(ApiKeys::create({}, path + ".absent").ok());
}

TEST(ApiKeys, RefusesKeysThatNoHeaderCanCarryWithoutShowingThem) {
  for (const std::string key : {"", "has space", "new\nline", "ümlaut"}) {
    const Status status = ApiKeys::create({key}, "").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    if (key.empty()) continue;
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr(key)));
  }
}

TEST(ApiKeys, SaltsDifferByKeyAndDoNotShowIt) {
  const Result<ApiKeys> keys = ApiKeys::create({"alpha", "beta"}, "");
  EXPECT_NE(keys->cache_salt(0), keys->cache_salt(1));
  EXPECT_THAT(keys->cache_salt(0), ::testing::Not(HasSubstr("alpha")));
}

}  // namespace
}  // namespace quire::server
