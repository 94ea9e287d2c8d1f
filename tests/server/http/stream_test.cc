#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "server/http/test_server.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;

TEST(HttpStream, IsSentAsItIsWritten) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  exchange->start_stream(200, "text/event-stream", {{"cache-control", "no-store"}});
  const auto head = client.receive_head();
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->header("transfer-encoding"), "chunked");
  EXPECT_EQ(head->header("cache-control"), "no-store");
  exchange->write("data: 1\n\n");
  EXPECT_EQ(client.receive_until("\n\n"), "9\r\ndata: 1\n\n");
  exchange->write("data: 2\n\n");
  exchange->end_stream();
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(client.get("/echo").status, 200);
  EXPECT_EQ(server.num_closed(), 0);
}

TEST(HttpStream, KeepsItsOrderUnderLoad) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  std::string expected;
  for (int i = 0; i < 5000; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  std::thread writer([&] {
    exchange->start_stream(200, "text/event-stream", {});
    for (int i = 0; i < 5000; ++i) exchange->write("data: " + std::to_string(i) + "\n\n");
    exchange->end_stream();
  });
  const HttpAnswer answer = client.receive();
  writer.join();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_TRUE(answer.body == expected);
}

TEST(HttpStream, EndsWithTheConnectionForOldClients) {
  TestServer server;
  HttpClient client = server.connect();
  client.send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = server.held();
  exchange->start_stream(200, "text/plain", {});
  exchange->write("all of it");
  exchange->end_stream();
  const HttpAnswer answer = client.receive();
  EXPECT_EQ(answer.header("transfer-encoding"), "");
  EXPECT_EQ(answer.body, "all of it");
}

TEST(HttpStream, IsHeadOnlyForHead) {
  TestServer server;
  HttpClient client = server.connect();
  client.send("HEAD /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = server.held();
  exchange->start_stream(200, "text/plain", {});
  exchange->write("nothing of this");
  exchange->end_stream();
  EXPECT_EQ(client.receive(true).status, 200);
  EXPECT_EQ(client.get("/echo").status, 200);
}

TEST(HttpStream, IsCutWhenDropped) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  auto exchange = server.held();
  exchange->start_stream(200, "text/plain", {});
  exchange->write("half");
  exchange.reset();
  const HttpAnswer answer = client.receive();
  EXPECT_EQ(answer.body, "half");
  EXPECT_FALSE(answer.is_whole);
}

TEST(HttpStream, IsCancelledIfTheBufferIsFull) {
  ServerConfig config = any_port();
  config.limits.max_buffered_bytes = 64 << 10;
  TestServer server(config);
  HttpClient slow = HttpClient::tcp(server.port(), "127.0.0.1", 4096);
  HttpClient other = server.connect();
  slow.send(get("/hold"));
  const auto exchange = server.held();
  exchange->start_stream(200, "text/event-stream", {});
  const std::string piece(1000, 'x');
  size_t num_bytes = 0;
  // The kernel's buffers add to the limit.
  for (; server.num_closed() == 0 && num_bytes < (32u << 20); num_bytes += piece.size()) {
    exchange->write(piece);
    if (num_bytes % 100'000 == 0) {
      EXPECT_EQ(other.get("/echo").status, 200);
    }
    // The writer's pace: no faster than the server can close the connection.
    if (num_bytes % 10'000 == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(server.num_closed(), 1);
  EXPECT_LT(num_bytes, 4u << 20);
  EXPECT_EQ(server.stats().num_slow_readers, 1);
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 1; }));
}

TEST(HttpStream, EndsIfTheClientReadsNothing) {
  ServerConfig config = any_port();
  config.limits.max_buffered_bytes = 64 << 20;
  config.limits.write_timeout = milliseconds(100);
  TestServer server(config);
  HttpClient slow = HttpClient::tcp(server.port(), "127.0.0.1", 4096);
  slow.send(get("/hold"));
  const auto exchange = server.held();
  exchange->respond({.body = std::string(32 << 20, 'x')});
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  EXPECT_EQ(server.stats().num_timeouts, 1);
}

TEST(HttpStream, ContinuesForASlowReader) {
  ServerConfig config = any_port();
  config.limits.write_timeout = milliseconds(700);
  TestServer server(config);
  HttpClient slow = HttpClient::tcp(server.port(), "127.0.0.1", 4096);
  slow.send(get("/hold"));
  const auto exchange = server.held();
  constexpr int kNumLines = 48;
  std::string body;
  for (int i = 0; i < kNumLines; ++i) body += std::string(65'535, 'x') + "\n";
  exchange->respond({.content_type = "text/plain", .body = body});
  ASSERT_TRUE(slow.receive_head().has_value());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kNumLines; ++i) {
    ASSERT_EQ(slow.receive_until("\n").size(), 65'536u) << "cut after " << i;
    std::this_thread::sleep_for(milliseconds(25));  // the reader's pace
  }
  EXPECT_GT(std::chrono::steady_clock::now() - start, config.limits.write_timeout);
}

}  // namespace
}  // namespace quire::http
