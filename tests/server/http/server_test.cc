// Tests one request and one response, in all forms of HTTP/1.1.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/machine.h"
#include "server/http/test_server.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;

TEST(HttpServer, KeepsConnections) {
  TestServer server;
  HttpClient client = server.connect();
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = client.post("/echo?q=" + std::to_string(i), "hello");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST q=" + std::to_string(i) + " hello");
    EXPECT_EQ(answer.header("content-type"), "text/plain");
    EXPECT_EQ(answer.header("date").size(), 29u);
    EXPECT_EQ(answer.header("connection"), "");
    EXPECT_TRUE(answer.header("x-peer").starts_with("127.0.0.1:"));
  }
  EXPECT_EQ(server.stats().num_accepted, 1);
  EXPECT_EQ(server.stats().num_open, 1);
  client.close();
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
}

TEST(HttpServer, ClosesIfTheClientRequestsIt) {
  TestServer server;
  for (const std::string& request :
       {get("/echo", "Connection: close\r\n"), std::string("GET /echo HTTP/1.0\r\n\r\n")}) {
    HttpClient client = server.connect();
    client.send(request);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.header("connection"), "close");
    EXPECT_EQ(client.receive_rest(), "");
  }
  HttpClient client = server.connect();
  client.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.receive().header("connection"), "keep-alive");
  EXPECT_EQ(client.get("/echo").status, 200);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold") + get("/echo?1") + get("/throw") + get("/echo?2"));
  const auto first = server.held();
  EXPECT_FALSE(client.receive_head(50).has_value()) << "the second must wait for the first";
  first->respond({.body = "first"});
  EXPECT_EQ(client.receive().body, "first");
  EXPECT_EQ(client.receive().body, "GET 1 ");
  EXPECT_EQ(client.receive().status, 500);
  EXPECT_EQ(client.receive().body, "GET 2 ");
}

TEST(HttpServer, ReadsAheadOnlySoFar) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto first = server.held();
  std::string many;
  constexpr int kNumRequests = 2000;  // more than the read buffer holds
  for (int i = 0; i < kNumRequests; ++i) many += get("/echo?" + std::to_string(i));
  std::thread sender([&] { client.send(many); });
  const auto max_bytes = static_cast<int64_t>(any_port().limits.max_header_bytes);
  EXPECT_TRUE(eventually([&] { return server.stats().received_bytes >= max_bytes; }));
  EXPECT_LT(server.stats().received_bytes, max_bytes + 100) << "the first request is not counted";
  first->respond({.body = "first"});
  EXPECT_EQ(client.receive().body, "first");
  for (int i = 0; i < kNumRequests; ++i) {
    ASSERT_EQ(client.receive().body, "GET " + std::to_string(i) + " ");
  }
  sender.join();
}

TEST(HttpServer, TakesChunkedBodies) {
  TestServer server;
  HttpClient client = server.connect();
  const std::string part =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab";
  client.send(part);
  EXPECT_TRUE(eventually([&] { return server.stats().received_bytes == std::ssize(part); }));
  client.send("cd\r\n2\r\nef\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST  abcdef");
}

TEST(HttpServer, TakesLargeBodies) {
  TestServer server;
  HttpClient client = server.connect();
  std::string body(5'000'000, 'x');
  for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
  std::thread sender([&] {
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\ncontent-length: 5000000\r\n\r\n");
    client.send(body);
  });
  EXPECT_TRUE(client.receive().body == "POST  " + body);
  sender.join();
}

TEST(HttpServer, SendsContinueIfExpected) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("ab");
  EXPECT_EQ(client.receive().body, "POST  ab");
  // The body arrives with its head, so the server does not send 100.
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\ncd");
  EXPECT_EQ(client.receive().body, "POST  cd");
  // The body is refused before it is sent.
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_EQ(client.receive().status, 413);
}

TEST(HttpServer, AnswersHeadWithoutBody) {
  TestServer server;
  HttpClient client = server.connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  const HttpAnswer answer = client.receive(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-length"), "6");
  EXPECT_EQ(client.get("/echo").body, "GET  ") << "there is no text between the two";
}

TEST(HttpServer, OutlivesFaultsOfHandlers) {
  TestServer server;
  HttpClient client = server.connect();
  for (const char* path : {"/throw", "/drop"}) {
    const HttpAnswer answer = client.get(path);
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body, "The server failed to respond to the request.");
  }
  client.send(get("/hold"));
  server.held().reset();
  EXPECT_EQ(client.receive().status, 500);
  EXPECT_EQ(client.get("/echo").status, 200);
}

TEST(HttpServer, NamesTheErrorAndCloses) {
  TestServer server;
  const std::vector<std::pair<std::string, int>> cases = {
      {"nonsense\r\n\r\n", 400},
      {get("/%zz"), 400},
      {"GET /" + std::string(20'000, 'a'), 414},
      {get("/", "A: " + std::string(20'000, 'a') + "\r\n"), 431},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n" + std::string(200'000, 'a'),
       413},
      {get("/", "Transfer-Encoding: gzip\r\n"), 501},
      {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
  };
  for (const auto& [request, status] : cases) {
    HttpClient client = server.connect();
    client.send(request);
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, status);
    EXPECT_TRUE(answer.is_whole);
    EXPECT_EQ(answer.header("connection"), "close");
    EXPECT_TRUE(answer.header("content-type").starts_with("text/plain"));
    EXPECT_TRUE(answer.body.ends_with('.')) << answer.body;
    EXPECT_TRUE(client.receive_rest().has_value());
  }
  EXPECT_EQ(server.stats().num_bad_requests, static_cast<int64_t>(cases.size()));
}

TEST(HttpServer, ServesManyAtOnce) {
  TestServer server;
  constexpr int kNumClients = 200;
  std::atomic<int> num_right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<HttpClient> clients;
      for (int i = 0; i < kNumClients / 8; ++i) clients.push_back(server.connect());
      for (int round = 0; round < 5; ++round) {
        const std::string query = std::to_string(t * 100 + round);
        for (HttpClient& client : clients) client.send(get("/echo?" + query));
        for (HttpClient& client : clients)
          num_right += client.receive().body == "GET " + query + " ";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, kNumClients * 5);
  EXPECT_EQ(server.stats().num_accepted, kNumClients);
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
}

TEST(HttpServer, IsIdleWhenNothingHappens) {
  TestServer server;
  std::vector<HttpClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(server.connect());
    ASSERT_EQ(clients.back().get("/echo").status, 200);
  }
  const int64_t before = process_cpu_ns();
  std::this_thread::sleep_for(milliseconds(500));  // the time that is measured
  EXPECT_LT(process_cpu_ns() - before, 10'000'000);
}

}  // namespace
}  // namespace quire::http
