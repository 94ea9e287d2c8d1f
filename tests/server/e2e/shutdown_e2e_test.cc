// Tests how the real server ends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "server/e2e/served.h"
#include "support/eventually.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

std::string post(const std::string& body) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Shutdown, RequestsBeyondTheDrainTimeoutEndWithAnError) {
  Served server("--drain-timeout 0");
  ASSERT_TRUE(server.is_up());
  const std::string call = R"({"prompt":"a","max_tokens":1000,"n":30,"ignore_eos":true)";
  HttpClient streaming = server.connect();
  streaming.send(post(call + R"(,"stream":true})"));
  ASSERT_TRUE(streaming.receive_head().has_value());
  HttpClient whole = server.connect();
  whole.send(post(call + "}"));
  EXPECT_FALSE(whole.receive_head(200).has_value()) << "in work";
  std::thread stopping([&] { EXPECT_EQ(server.stop(), 0); });
  const HttpAnswer answer = whole.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("shutting down"));
  const std::string events = streaming.receive_until("[DONE]");
  EXPECT_THAT(events, HasSubstr("shutting down"));
  whole.close();
  streaming.close();
  stopping.join();
}

std::string slow_schema(int id) {
  std::string properties;
  for (int i = 0; i < 300; ++i) {
    if (i > 0) properties += ',';
    properties += fmt::format(R"("p{}_{}":{{"type":["string","null"]}})", id, i);
  }
  return R"({"type":"object","minProperties":150,"maxProperties":200,"properties":{)" + properties +
         "}}";
}

// The compilation of each of these grammars takes 2 s of CPU time.
TEST(Shutdown, RequestsThatWaitForGrammarsGet503) {
  constexpr int kNumCalls = 12;
  constexpr int kNumThreads = 2;
  Served server({"--drain-timeout", "0", "--num-grammar-threads", std::to_string(kNumThreads)});
  ASSERT_TRUE(server.is_up());
  std::vector<JsonCall> calls;
  for (int i = 0; i < kNumCalls; ++i) {
    calls.push_back({"/v1/completions",
                     R"({"prompt":"a","structured_outputs":{"json":)" + slow_schema(i) + "}}"});
  }
  std::vector<HttpAnswer> answers;
  std::atomic<bool> are_answered = false;
  std::thread calling([&] {
    answers = server.post_all(calls);
    are_answered = true;
  });
  const std::string all_wait = fmt::format("}} {}\n", kNumCalls - kNumThreads);
  const auto do_all_wait = [&] {
    const std::string metrics = server.get("/metrics").body;
    const size_t value = metrics.find('}', metrics.find("\nquire_grammar_queue{"));
    return value != std::string::npos && metrics.substr(value).starts_with(all_wait);
  };
  EXPECT_TRUE(eventually([&] { return are_answered || do_all_wait(); }));
  EXPECT_FALSE(are_answered);
  EXPECT_EQ(server.stop(), 0);
  calling.join();
  for (const HttpAnswer& answer : answers) {
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("shutting down"));
  }
}

TEST(Shutdown, AClosedTerminalDrains) {
  Process server("serve --port 0 --kv-cache-memory 64M");
  ASSERT_THAT(server.read_out("\n"), HasSubstr("serving"));
  server.kill(SIGHUP);
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace quire::testing
