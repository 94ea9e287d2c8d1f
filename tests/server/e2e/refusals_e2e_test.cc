// Requests that the transport itself refuses, in the real binary: each gets an OpenAI error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/e2e/served.h"

namespace quire::testing {
namespace {

std::string post_head(size_t num_bytes, const std::string& more) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
         "X-Request-Id: mine\r\nContent-Length: " +
         std::to_string(num_bytes) + "\r\n" + more + "\r\n";
}

TEST(Refusals, AreOpenAIsErrorsAndComeBeforeTheBody) {
  Served server("--api-key secret --max-request-bytes 1M --allowed-origins https://a.example");
  ASSERT_TRUE(server.is_up());
  struct Case {
    std::string bytes;
    int status;
    const char* code;
    bool knows_head;
  };
  const std::string key = "Authorization: Bearer secret\r\n";
  const std::string origin = "Origin: https://a.example\r\n";
  for (const Case& wrong : {
           Case{post_head(1 << 19, origin), 401, "invalid_api_key", true},
           Case{post_head(1 << 21, key + origin), 413, "body_too_large", true},
           Case{post_head(2, key + origin + "Expect: nonsense\r\n"), 417, "expectation_failed",
                true},
           Case{"nonsense\r\n\r\n", 400, "bad_request", false},
           Case{post_head(2, "A: " + std::string(20'000, 'a')), 431, "header_too_large", false},
       }) {
    HttpClient client = server.connect();
    client.send(wrong.bytes);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, wrong.status) << answer.body;
    EXPECT_EQ(string_at(answer.body, "/error/code"), wrong.code) << answer.body;
    EXPECT_EQ(answer.header("connection"), "close");
    if (wrong.knows_head) {
      EXPECT_EQ(answer.header("x-request-id"), "mine") << wrong.code;
      EXPECT_EQ(answer.header("access-control-allow-origin"), "https://a.example") << wrong.code;
    } else {
      EXPECT_EQ(answer.header("x-request-id").size(), 24U) << wrong.code;
    }
  }
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace quire::testing
