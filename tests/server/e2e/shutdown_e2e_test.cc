// How the real server ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "server/e2e/served.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::Process;
using testing::Served;

std::string post(const std::string& body) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Shutdown, WhatItsTimeDoesNotSufficeForIsToldSo) {
  Served server({"--drain-timeout", "0"});
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

TEST(Shutdown, AClosedTerminalDrains) {
  Process server({"serve", "--port", "0", "--kv-cache-memory", "64M"});
  ASSERT_THAT(server.read_out("\n"), HasSubstr("serving"));
  server.kill(SIGHUP);
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace quire
