// Tests clients that disconnect, and servers that stop.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/http/test_server.h"
#include "support/scratch_directory.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(HttpDisconnect, IsNoticedDuringTheResponse) {
  TestServer server;
  int num_expected = 0;
  for (const bool is_stream : {false, true}) {
    for (const bool is_reset : {false, true}) {
      HttpClient client = server.connect();
      client.send(get("/hold"));
      const auto exchange = server.held();
      if (is_stream) {
        exchange->start_stream(200, "text/event-stream", {});
        ASSERT_TRUE(client.receive_head().has_value());
      }
      const auto start = steady_clock::now();
      is_reset ? client.reset() : client.close();
      ++num_expected;
      EXPECT_TRUE(eventually([&] { return server.num_closed() == num_expected; }));
      EXPECT_LT(steady_clock::now() - start, milliseconds(500))
          << "it takes milliseconds on an idle machine";
      exchange->write("nobody reads this");
      exchange->respond({});
    }
  }
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
}

TEST(HttpDisconnect, IsNoticedBehindPipelinedRequests) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold") + get("/echo"));
  const auto exchange = server.held();
  client.close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
}

TEST(HttpDisconnect, CompletesTheResponseToAHalfClosedClient) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/echo?1") + get("/echo?2"));
  client.half_close();
  EXPECT_EQ(client.receive().body, "GET 1 ");
  EXPECT_EQ(client.receive().body, "GET 2 ");
  EXPECT_EQ(client.receive_rest(), "");
}

TEST(HttpDisconnect, AHalfClosedClientGetsALateResponse) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  client.half_close();
  const auto probe = client.receive_head();
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->status, 100);
  EXPECT_EQ(server.num_closed(), 0);
  exchange->respond({.body = "late"});
  EXPECT_EQ(client.receive().body, "late");
  EXPECT_EQ(client.receive_rest(), "");
}

TEST(HttpDisconnect, AHalfClosedClientGetsTheRestOfItsStream) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  exchange->start_stream(200, "text/event-stream", {});
  ASSERT_TRUE(client.receive_head().has_value());
  client.half_close();
  EXPECT_EQ(client.receive_until(":\n\n\r\n"), "3\r\n:\n\n\r\n") << "a comment";
  exchange->write("data: 1\n\n");
  exchange->end_stream();
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "9\r\ndata: 1\n\n\r\n0\r\n\r\n");
  EXPECT_EQ(server.num_closed(), 0);
}

// HTTP/1.0 has no bytes that a client ignores, and neither have streams of other types.
TEST(HttpDisconnect, AHalfClosedClientIsGoneIfItCannotBeAsked) {
  TestServer server;
  HttpClient old = server.connect();
  old.send("GET /hold HTTP/1.0\r\n\r\n");
  const auto late = server.held();
  old.half_close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  exchange->start_stream(200, "text/plain", {});
  ASSERT_TRUE(client.receive_head().has_value());
  client.half_close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 2; }));
}

TEST(HttpDisconnect, OnAUnixSocketHalfClosedAndClosedDiffer) {
  ServerConfig config;
  const quire::testing::ScratchDirectory scratch;
  config.uds = scratch.path() / "quire.sock";
  TestServer server(config);
  HttpClient half = HttpClient::unix_socket(config.uds);
  half.send(get("/hold"));
  const auto exchange = server.held();
  half.half_close();
  ASSERT_TRUE(half.receive_head().has_value());
  HttpClient gone = HttpClient::unix_socket(config.uds);
  gone.send(get("/hold"));
  const auto never = server.held();
  gone.close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  exchange->respond({.body = "late"});
  EXPECT_EQ(half.receive().body, "late");
}

// The access log has a line for a request whose client leaves while it sends the body, and none for
// a part of a head.
TEST(HttpDisconnect, DuringABodyIsReported) {
  std::mutex mutex;
  std::vector<Request> cut;
  TestServer server(any_port(), {.on_cut = [&](const Request& head) {
                      const std::lock_guard lock(mutex);
                      cut.push_back(head);
                    }});
  const std::string post = "POST /echo HTTP/1.1\r\nHost: a\r\nX-Request-Id: x1\r\n";
  server.connect().send(post);
  server.connect().send(post + "Content-Length: 9\r\n\r\nab");
  server.connect().send(post + "Content-Length: 2\r\n\r\nab");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !cut.empty() && server.stats().num_accepted == 3 && server.stats().num_open == 0;
  }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].method + " " + cut[0].path, "POST /echo");
  EXPECT_EQ(cut[0].header("x-request-id"), "x1");
  EXPECT_NE(cut[0].began, Request().began);
}

TEST(HttpDisconnect, AtAnyMomentLeavesNothing) {
  TestServer server;
  std::minstd_rand random(5);
  for (int i = 0; i < 300; ++i) {
    HttpClient client = server.connect();
    const std::string request = get("/hold") + "POST /echo HTTP/1.1\r\nHost: a\r\n" +
                                "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    client.send(request.substr(0, random() % (request.size() + 1)));
    if (random() % 2 == 0) std::this_thread::yield();
    random() % 2 == 0 ? client.reset() : client.close();
  }
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
  HttpClient client = server.connect();
  EXPECT_EQ(client.get("/echo").status, 200);
}

// Drains in a thread, which ends when no connection is open.
std::jthread begin_drain(TestServer& server) {
  return std::jthread([&] { EXPECT_TRUE(server.server().drain(milliseconds(10'000))); });
}

bool closes_port(const TestServer& server) {
  return eventually([&] { return !server.connect().is_open(); });
}

TEST(HttpDrain, WaitsForResponsesAndClosesTheRest) {
  TestServer server;
  HttpClient idle = server.connect();
  ASSERT_EQ(idle.get("/echo").status, 200);
  HttpClient silent = server.connect();
  HttpClient busy = server.connect();
  busy.send(get("/hold"));
  const auto exchange = server.held();
  HttpClient streaming = server.connect();
  streaming.send(get("/hold"));
  const auto stream = server.held();
  stream->start_stream(200, "text/plain", {});
  ASSERT_TRUE(streaming.receive_head().has_value());

  EXPECT_FALSE(server.server().drain(milliseconds(50)));
  EXPECT_EQ(idle.receive_rest(), "");
  EXPECT_EQ(silent.receive_rest(), "");
  EXPECT_FALSE(server.connect().is_open());
  {
    const std::jthread draining = begin_drain(server);
    exchange->respond({.body = "{}"});
    stream->write("bye");
    stream->end_stream();
    const HttpAnswer answer = busy.receive();
    EXPECT_EQ(answer.body, "{}");
    EXPECT_EQ(answer.header("connection"), "close");
    EXPECT_EQ(streaming.receive_until("0\r\n\r\n"), "3\r\nbye\r\n0\r\n\r\n");
    for (HttpClient* client : {&busy, &streaming, &idle, &silent}) client->close();
  }
  EXPECT_EQ(server.num_closed(), 0);
}

TEST(HttpDrain, DoesNotWaitForIncompleteRequests) {
  TestServer server;
  const std::string part_of_head = "GET /echo HTTP/1.1\r\nHost: a\r\n";
  const std::string part_of_body = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab";
  HttpClient in_head = server.connect();
  in_head.send(part_of_head);
  HttpClient in_body = server.connect();
  in_body.send(part_of_body);
  const auto num_bytes = static_cast<int64_t>(part_of_head.size() + part_of_body.size());
  EXPECT_TRUE(eventually([&] { return server.stats().received_bytes == num_bytes; }));
  HttpClient asks = server.connect();
  asks.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_EQ(asks.receive_head()->status, 100);
  std::thread reading([&] {
    for (HttpClient* client : {&in_head, &in_body, &asks}) {
      const HttpAnswer answer = client->receive();
      EXPECT_EQ(answer.status, 503);
      EXPECT_EQ(answer.header("connection"), "close");
      client->close();
    }
  });
  EXPECT_TRUE(server.server().drain(milliseconds(5'000)));
  reading.join();
}

// A client that keeps its connection may send a request before it sees that the server drains.
TEST(HttpDrain, AnswersRequestsThatAreOnTheirWay) {
  TestServer server;
  HttpClient kept = server.connect();
  ASSERT_EQ(kept.get("/echo").status, 200);
  HttpClient slow = server.connect();
  slow.send("GET /echo HTTP/1.1\r\n");
  const std::jthread draining = begin_drain(server);
  ASSERT_TRUE(closes_port(server));
  kept.send(get("/echo"));
  slow.send("Host: a\r\n\r\n");
  for (HttpClient* client : {&kept, &slow}) {
    EXPECT_EQ(client->receive().status, 200);
    EXPECT_EQ(client->receive_rest(), "");
    client->close();
  }
}

// The head of the stream has said that the connection stays open.
TEST(HttpDrain, AnswersTheRequestBehindAStreamThatHadBegun) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto stream = server.held();
  stream->start_stream(200, "text/plain", {});
  ASSERT_TRUE(client.receive_head().has_value());
  const std::jthread draining = begin_drain(server);
  ASSERT_TRUE(closes_port(server));
  stream->write("bye");
  stream->end_stream();
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "3\r\nbye\r\n0\r\n\r\n");
  client.send(get("/echo"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive_rest(), "");
  client.close();
}

TEST(HttpDrain, DoesNotWaitForAClientThatSendsSlowly) {
  TestServer server;
  HttpClient client = server.connect();
  client.send("GET /echo HTTP/1.1\r\n");
  const std::jthread draining = begin_drain(server);
  const auto begin = std::chrono::steady_clock::now();
  while (client.send("A: b\r\n") && !client.receive_head(10).has_value()) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, milliseconds(8'000));
  }
  client.close();
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
  EXPECT_EQ(server.stats().num_timeouts, 0);
}

TEST(HttpDrain, AnswersConnectionsThatAreNotAcceptedYet) {
  for (int round = 0; round < 20; ++round) {
    TestServer server;
    std::vector<HttpClient> clients;
    for (int idx = 0; idx < 50; ++idx) {
      clients.push_back(server.connect());
      clients.back().send(get("/echo"));
    }
    const std::jthread draining = begin_drain(server);
    for (HttpClient& client : clients) {
      EXPECT_EQ(client.receive().status, 200);
      client.close();
    }
  }
}

TEST(HttpStop, NotifiesHandlersThatStillRespond) {
  TestServer server;
  HttpClient busy = server.connect();
  busy.send(get("/hold"));
  const auto exchange = server.held();
  HttpClient half = server.connect();
  half.send("GET /");
  server.stop();
  EXPECT_EQ(server.num_closed(), 1);
  exchange->start_stream(200, "text/plain", {});  // no effect after the server ended
  exchange->write("late");
  EXPECT_TRUE(busy.receive_rest().has_value());
}

// Only ThreadSanitizer sees most of the faults that this test looks for.
TEST(HttpStop, IsCleanAtAnyMoment) {
#ifndef __SANITIZE_THREAD__
  GTEST_SKIP() << "needs ThreadSanitizer";
#endif
  std::minstd_rand random(7);
  std::atomic<int> num_served = 0;
  for (int round = 0; round < 20; ++round) {
    TestServer server;
    const int port = server.port();
    std::atomic<bool> is_over = false;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&is_over, &num_served, port, t] {
        while (!is_over) {
          HttpClient client = HttpClient::tcp(port);
          if (!client.is_open()) return;
          client.send(get(t == 0 ? "/hold" : "/echo") + get("/echo"));
          if (t != 0 && client.receive(false, 100).status == 200) ++num_served;
        }
      });
    }
    std::thread writer([&] {
      try {
        const auto exchange = server.held(milliseconds(100));
        exchange->start_stream(200, "text/plain", {});
        while (!is_over) exchange->write("more");
      } catch (const std::exception&) {
      }
    });
    std::this_thread::sleep_for(milliseconds(random() % 30));  // to any moment
    server.stop();
    is_over = true;
    for (std::thread& thread : threads) thread.join();
    writer.join();
  }
  EXPECT_GT(num_served, 0) << "some rounds stop a server that is at work";
}

}  // namespace
}  // namespace quire::http
