#include "hub/pull/hub_client.h"

#include <gmock/gmock.h>

namespace quire::hub {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

HubSettings settings(const std::string& token = "") {
  HubSettings hub;
  hub.model = *parse_model_name("org/name");
  hub.endpoint = "https://hub";
  hub.token = token;
  return hub;
}

Reply reply(int status, const std::string& code = "", int retry_after_s = 0) {
  Reply head;
  head.status = status;
  head.error_code = code;
  head.retry_after_s = retry_after_s;
  return head;
}

TEST(Explain, AccessIsNeverRepeated) {
  for (const int status : {401, 403, 404}) {
    for (const char* code :
         {"", "GatedRepo", "RepoNotFound", "RevisionNotFound", "EntryNotFound"}) {
      const Refusal refusal = explain(reply(status, code), settings(), "a");
      EXPECT_FALSE(refusal.may_retry);
      EXPECT_THAT(refusal.status.message(), HasSubstr("org/name"));
    }
  }
}

TEST(Explain, TheRemedyDependsOnTheToken) {
  const std::string gated = explain(reply(403, "GatedRepo"), settings(), "a").status.message();
  EXPECT_THAT(gated, AllOf(HasSubstr("https://hub/org/name"), HasSubstr("set HF_TOKEN")));
  const Status with = explain(reply(403, "GatedRepo"), settings("hf_secret"), "a").status;
  EXPECT_THAT(with.message(), AllOf(HasSubstr("belongs to an account"), Not(HasSubstr("secret"))));
  EXPECT_THAT(explain(reply(401), settings(), "").status.message(),
              HasSubstr("has no model org/name, or it is private (401)"));
}

TEST(Explain, TemporaryFailuresAreRepeatedUnlessTheWaitIsLong) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(explain(reply(status), settings(), "a").may_retry) << status;
    const Refusal soon = explain(reply(status, "", 7), settings(), "a");
    EXPECT_TRUE(soon.may_retry);
    EXPECT_EQ(soon.retry_after_s, 7);
    EXPECT_FALSE(explain(reply(status, "", 3600), settings(), "a").may_retry);
  }
  for (const int status : {300, 400, 410, 416}) {
    EXPECT_FALSE(explain(reply(status), settings(), "a").may_retry) << status;
  }
}

TEST(Explain, AFailureOfTheConnectionPassesThrough) {
  Reply lost;
  lost.failure = unavailable("lost");
  lost.may_retry = true;
  EXPECT_EQ(explain(lost, settings(), "a").status.message(), "lost");
  EXPECT_TRUE(explain(lost, settings(), "a").may_retry);
}

TEST(Attempts, EndAfterFiveWithoutProgress) {
  Attempts attempts(0);
  for (const int factor : {1, 2, 4, 8}) {
    EXPECT_TRUE(attempts.allow_another(1000));
    EXPECT_EQ(attempts.wait_factor(), factor);
  }
  EXPECT_FALSE(attempts.allow_another(1000));
}

TEST(Attempts, BeginAnewAfterOneMebibyte) {
  Attempts attempts(0);
  for (int64_t mebibytes = 1; mebibytes < 100; ++mebibytes) {
    ASSERT_TRUE(attempts.allow_another(mebibytes << 20));
    EXPECT_EQ(attempts.wait_factor(), 1);
  }
}

// A server that ignores ranges sends the file from its start in each attempt.
TEST(Attempts, TheSameBytesAgainAreNoProgress) {
  Attempts attempts(0);
  int num_attempts = 1;
  while (attempts.allow_another(int64_t{num_attempts % 2 == 0 ? 1 : 3} << 20)) ++num_attempts;
  EXPECT_LT(num_attempts, 10);
}

TEST(Url, EscapesAllButPlainCharacters) {
  EXPECT_EQ(url_escaped("aZ9-._~"), "aZ9-._~");
  EXPECT_EQ(url_escaped("refs/pr/1?#% \xC3\n"), "refs%2Fpr%2F1%3F%23%25%20%C3%0A");
}

}  // namespace
}  // namespace quire::hub
