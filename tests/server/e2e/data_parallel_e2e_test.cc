// Two replicas in the real binary, with the embedded model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/e2e/served.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

Words with_replicas(int count) {
  return fmt::format("--data-parallel-size {0} --device cpu --threads {0} --kv-cache-memory 64M",
                     count);
}

JsonCall completion(int number) {
  return {"/v1/completions",
          fmt::format(R"({{"prompt":"How do I set flag number {}? ","max_tokens":12,)"
                      R"("temperature":{},"seed":{}}})",
                      number, number % 2, number)};
}

std::vector<std::string> answers_of(const Served& server) {
  std::vector<JsonCall> calls;
  for (int i = 0; i < 12; ++i) calls.push_back(completion(i));
  std::vector<std::string> texts;
  for (const HttpAnswer& answer : server.post_all(calls)) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    texts.push_back(string_at(answer.body, "/choices/0/text"));
  }
  return texts;
}

// The value of a sample of /metrics, as text.
std::string sample(const std::string& metrics, const std::string& name, int engine) {
  const size_t at = metrics.find(fmt::format("\n{}{{", name));
  const std::string label = fmt::format("engine=\"{}\"}} ", engine);
  const size_t value = metrics.find(label, at);
  if (at == std::string::npos || value == std::string::npos) return "none";
  const size_t begin = value + label.size();
  return metrics.substr(begin, metrics.find('\n', begin) - begin);
}

TEST(DataParallelServer, AnswersAsOneReplica) {
  Served one(with_replicas(1));
  Served two(with_replicas(2));
  ASSERT_TRUE(one.is_up());
  ASSERT_TRUE(two.is_up());
  EXPECT_EQ(answers_of(two), answers_of(one));
  const std::string metrics = two.get("/metrics").body;
  for (const int engine : {0, 1}) {
    EXPECT_NE(sample(metrics, "vllm:generation_tokens_total", engine), "0") << "both serve";
  }
  EXPECT_THAT(one.get("/metrics").body, HasSubstr(R"(engine="0")"));
  EXPECT_THAT(two.get("/v1/loads").body, HasSubstr(R"("dp_rank_count":2)"));
  EXPECT_EQ(two.get("/health").status, 200);
  EXPECT_EQ(two.stop(), 0);
}

TEST(DataParallelServer, HeadersPinARequest) {
  Served server(with_replicas(2));
  ASSERT_TRUE(server.is_up());
  const auto post = [&](int number, const std::string& headers) {
    const JsonCall call = completion(number);
    return server.connect().post(call.path, call.body, headers);
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(post(i, "X-Data-Parallel-Rank: 1\r\nX-Session-Id: a\r\n").status, 200);
    EXPECT_EQ(post(10 + i, "X-Session-Id: a\r\n").status, 200);
  }
  const std::string metrics = server.get("/metrics").body;
  EXPECT_EQ(sample(metrics, "vllm:prompt_tokens_total", 0), "0");
  EXPECT_NE(sample(metrics, "vllm:prompt_tokens_total", 1), "0");
  for (const char* rank : {"2", "-1", "one"}) {
    const HttpAnswer refused = post(0, fmt::format("x-data-parallel-rank: {}\r\n", rank));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr(fmt::format("got '{}', expected 0 to 1", rank)));
  }
}

}  // namespace
}  // namespace quire::testing
