// Tests how many resources a client can hold, and for how long.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/machine.h"
#include "server/http/test_server.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ServerConfig with_timeouts(milliseconds header, milliseconds body, milliseconds idle) {
  ServerConfig config = any_port();
  config.limits.header_timeout = header;
  config.limits.body_timeout = body;
  config.limits.idle_timeout = idle;
  return config;
}

constexpr milliseconds kLong{60'000};

// Sends one byte per pause, as a slow client does, until the server closes the connection.
HttpAnswer trickle(HttpClient& client, std::string_view bytes, milliseconds pause) {
  for (const char c : bytes) {
    if (!client.send({&c, 1})) break;
    std::this_thread::sleep_for(pause);
  }
  return client.receive();
}

// The client reads continuously, but so slowly that it would hold the response for a long time.
TEST(HttpLimits, AResponseIsReadAtAMinimumRate) {
  ServerConfig config = with_timeouts(kLong, kLong, kLong);
  config.limits.write_timeout = milliseconds(500);
  config.limits.min_bytes_per_second = size_t{100} << 20;
  TestServer server(config);
  HttpClient slow = HttpClient::tcp(server.port(), "127.0.0.1", 4096);
  slow.send(get("/hold"));
  server.held()->respond({.body = std::string(size_t{50} << 20, 'x')});
  const auto begin = steady_clock::now();
  ASSERT_TRUE(slow.receive_head().has_value());
  while (server.stats().num_timeouts == 0 && steady_clock::now() < begin + milliseconds(8000)) {
    slow.receive_until("!", 1);
    std::this_thread::sleep_for(milliseconds(50));  // the client's pace
  }
  EXPECT_EQ(server.stats().num_timeouts, 1);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(900)) << "and not too early";
}

// In bytes. Sanitizers report 0.
size_t heap_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST(HttpLimits, AnIdleConnectionKeepsNoLargeResponse) {
  constexpr size_t kBytes = size_t{64} << 20;
  TestServer server;
  HttpClient client = server.connect();
  const size_t before = heap_in_use();
  client.send(get("/hold"));
  server.held()->respond({.body = std::string(kBytes, 'x')});
  ASSERT_TRUE(client.receive_head().has_value());
  const std::string part(size_t{64} << 10, 'x');  // so that the client itself keeps little
  for (size_t i = 0; i < kBytes / part.size(); ++i) ASSERT_EQ(client.receive_until(part), part);
  EXPECT_TRUE(eventually([&] { return heap_in_use() < before + kBytes / 2; }));
  client.send(get("/echo"));
  EXPECT_EQ(client.receive().status, 200);
}

TEST(HttpLimits, SlowLorisEndsWithTheHeadsTime) {
  TestServer server(with_timeouts(milliseconds(150), kLong, kLong));
  std::vector<HttpClient> many;
  for (int i = 0; i < 50; ++i) {
    many.push_back(server.connect());
    many.back().send("GET / HTTP/1.1\r\n");
  }
  HttpClient slow = server.connect();
  const HttpAnswer answer = trickle(slow, get("/echo"), milliseconds(10));
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.header("connection"), "close");
  for (HttpClient& client : many) EXPECT_EQ(client.receive().status, 408);
  EXPECT_EQ(server.stats().num_timeouts, 51);
  EXPECT_EQ(server.connect().get("/echo").status, 200);
}

TEST(HttpLimits, SlowBodyEndsWithItsTime) {
  TestServer server(with_timeouts(kLong, milliseconds(150), kLong));
  for (const char* head :
       {"Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n64\r\n"}) {
    HttpClient slow = server.connect();
    slow.send(std::string("POST /echo HTTP/1.1\r\nHost: a\r\n") + head);
    EXPECT_EQ(trickle(slow, std::string(40, 'x'), milliseconds(10)).status, 408);
  }
  EXPECT_EQ(server.stats().num_timeouts, 2);
}

TEST(HttpLimits, IdleConnectionsAreClosedWithoutAWord) {
  TestServer server(with_timeouts(kLong, kLong, milliseconds(100)));
  HttpClient silent = server.connect();
  HttpClient used = server.connect();
  EXPECT_EQ(used.get("/echo").status, 200);
  EXPECT_EQ(silent.receive_rest(), "");
  EXPECT_EQ(used.receive_rest(), "");
  EXPECT_EQ(server.stats().num_timeouts, 0);
}

TEST(HttpLimits, AHandlerMayRespondLate) {
  TestServer server(with_timeouts(milliseconds(50), milliseconds(50), milliseconds(50)));
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  std::this_thread::sleep_for(milliseconds(200));  // longer than all timeouts
  EXPECT_EQ(server.num_closed(), 0);
  exchange->respond({.body = "late"});
  EXPECT_EQ(client.receive().body, "late");
}

TEST(HttpLimits, ASecondRequestHasItsOwnTime) {
  TestServer server(with_timeouts(milliseconds(200), kLong, kLong));
  HttpClient client = server.connect();
  for (int i = 0; i < 4; ++i) {
    client.send("GET /echo HTTP/1.1\r\n");
    std::this_thread::sleep_for(milliseconds(80));  // three of them exceed the timeout
    client.send("Host: a\r\n\r\n");
    ASSERT_EQ(client.receive().status, 200) << i;
  }
}

TEST(HttpLimits, ConnectionsBeyondTheCapAreTurnedAway) {
  ServerConfig config = any_port();
  config.limits.max_connections = 3;
  TestServer server(config);
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.connect());
    ASSERT_EQ(clients.back().get("/echo").status, 200);
  }
  HttpClient extra = server.connect();
  const HttpAnswer answer = extra.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("reached its limit of connections"), std::string::npos);
  EXPECT_EQ(server.stats().num_refused, 1);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server.connect().get("/echo").status == 200; }));
}

// The access log is written from these heads.
TEST(HttpLimits, ARefusalHasThePeerAndTheTimeOfTheFirstByte) {
  std::mutex mutex;
  std::vector<Request> heads;
  ServerConfig config = with_timeouts(milliseconds(150), kLong, kLong);
  config.limits.max_connections = 1;
  TestServer server(config, {.write_refusal = [&](const Request& head, const Refusal& refusal) {
                      const std::lock_guard lock(mutex);
                      heads.push_back(head);
                      return Response{.status = refusal.status, .body = ""};
                    }});
  {
    HttpClient slow = server.connect();
    slow.send("GET / HT");
    EXPECT_EQ(slow.receive().status, 408);
    EXPECT_EQ(server.connect().receive().status, 503);
  }
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
  HttpClient broken = server.connect();
  broken.send("\x01\r\n\r\n");
  EXPECT_EQ(broken.receive().status, 400);
  const std::lock_guard lock(mutex);
  ASSERT_EQ(heads.size(), 3U);
  for (const Request& head : heads) {
    EXPECT_EQ(head.method + head.path, "");
    EXPECT_TRUE(head.peer.starts_with("127.0.0.1:")) << head.peer;
  }
  EXPECT_GE(steady_clock::now() - heads[0].began, milliseconds(140));
}

TEST(HttpLimits, ConnectionsOfOnePeerCanBeCapped) {
  ServerConfig config = any_port();
  config.limits.max_connections_per_peer = 2;
  TestServer server(config);
  HttpClient first = server.connect();
  HttpClient second = server.connect();
  ASSERT_EQ(first.get("/echo").status, 200);
  ASSERT_EQ(second.get("/echo").status, 200);
  EXPECT_EQ(server.connect().receive().status, 503);
  EXPECT_EQ(server.stats().num_refused, 1);
  second.close();
  EXPECT_TRUE(eventually([&] { return server.connect().get("/echo").status == 200; }));
}

std::string forwarded(const std::string& path, const std::string& addresses) {
  return get(path, "X-Forwarded-For: " + addresses + "\r\n");
}

// Behind a proxy the limit is for the requests of one client, not for the proxy's connections.
TEST(HttpLimits, RequestsOfOneClientBehindAProxyCanBeCapped) {
  ServerConfig config = any_port();
  config.limits.max_connections_per_peer = 2;
  config.trusted_proxies = {"127.0.0.1"};
  TestServer server(config);
  std::vector<HttpClient> of_proxy;
  for (int i = 0; i < 6; ++i) of_proxy.push_back(server.connect());
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (const size_t i : {0, 1}) {
    of_proxy[i].send(forwarded("/hold", "9.9.9.9, 203.0.113.7"));
    exchanges.push_back(server.held());
  }
  of_proxy[2].send(forwarded("/echo", "8.8.8.8, 203.0.113.7"));
  EXPECT_EQ(of_proxy[2].receive().status, 503) << "a forged address does not help";
  EXPECT_EQ(server.stats().num_refused, 1);
  of_proxy[3].send(forwarded("/echo", "203.0.113.8"));
  EXPECT_EQ(of_proxy[3].receive().header("x-peer"), "203.0.113.8") << "another client";
  for (int i = 0; i < 3; ++i) {
    of_proxy[4].send(get("/echo"));
    EXPECT_EQ(of_proxy[4].receive().status, 200) << "without the field there is no limit";
  }
  exchanges[0]->respond({.body = "done"});
  EXPECT_EQ(of_proxy[0].receive().body, "done");
  of_proxy[5].send(forwarded("/echo", "203.0.113.7"));
  EXPECT_EQ(of_proxy[5].receive().status, 200) << "the response has released its share";
  of_proxy[1].close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  of_proxy[0].send(forwarded("/hold", "203.0.113.7"));
  exchanges.push_back(server.held());
  of_proxy[5].send(forwarded("/echo", "203.0.113.7"));
  EXPECT_EQ(of_proxy[5].receive().status, 200) << "and so has the client that left";
}

TEST(HttpLimits, OthersThanTrustedProxiesNameNoClient) {
  ServerConfig config = any_port();
  config.trusted_proxies = {"10.0.0.0/8", "unix"};
  TestServer server(config);
  HttpClient client = server.connect();
  client.send(forwarded("/echo", "203.0.113.7"));
  EXPECT_TRUE(client.receive().header("x-peer").starts_with("127.0.0.1:"));
}

std::string post_head(const std::string& path, size_t num_bytes, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(num_bytes) +
         "\r\n" + more + "\r\n";
}

TEST(HttpLimits, AllBodiesTogetherAreBounded) {
  constexpr size_t kMiB = size_t{1} << 20;
  ServerConfig config = any_port();
  config.limits.max_total_body_bytes = 8 * kMiB;
  TestServer server(config);
  const std::string body(3 * kMiB, 'x');
  // One body is held by its handler, another is still being sent.
  HttpClient working = server.connect();
  working.send(post_head("/keep", body.size()) + body);
  const auto exchange = server.held();
  HttpClient sending = server.connect();
  sending.send(post_head("/echo", body.size()) + body.substr(0, 2 * kMiB + 1));
  EXPECT_TRUE(eventually([&] { return server.stats().body_bytes > 5 * kMiB; }));
  HttpClient late = server.connect();
  late.send(post_head("/echo", body.size()) + body);
  const HttpAnswer refused = late.receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("connection"), "close");
  server.drop_kept();
  exchange->respond({.body = "done"});
  EXPECT_EQ(working.receive().body, "done");
  EXPECT_EQ(server.connect().post("/echo", body).status, 200);
  sending.send(body.substr(2 * kMiB + 1));
  EXPECT_EQ(sending.receive().status, 200);
}

TEST(HttpLimits, AHeadCanBeRefusedBeforeItsBodyIsRead) {
  std::atomic<int> num_asked = 0;
  Hooks hooks;
  hooks.check_head = [&](const Request& head) -> std::optional<Response> {
    ++num_asked;
    EXPECT_EQ(head.body, "");
    if (head.header("authorization") == "yes") return std::nullopt;
    return Response{.status = 401, .body = "no"};
  };
  TestServer server(any_port(), hooks);
  constexpr size_t kHuge = size_t{30} << 20;
  for (const std::string expect : {"", "Expect: 100-continue\r\n"}) {
    HttpClient stranger = server.connect();
    stranger.send(post_head("/echo", kHuge, expect));
    const HttpAnswer refused = stranger.receive();  // no byte of the body has been sent
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.body, "no");
    EXPECT_EQ(refused.header("connection"), "close");
    EXPECT_EQ(stranger.receive_rest(), "");
  }
  HttpClient known = server.connect();
  known.send(post_head("/echo", 2, "authorization: yes\r\n"));
  EXPECT_TRUE(eventually([&] { return num_asked == 3; }));
  known.send("ab");
  EXPECT_EQ(known.receive().body, "POST  ab");
  // A body that arrives with its head is already read, so the handler decides.
  known.send(post_head("/echo", 2) + "ab");
  EXPECT_EQ(known.receive().status, 200);
  EXPECT_EQ(num_asked, 3);
}

TEST(HttpLimits, RefusalsAreWrittenByTheRoutes) {
  Hooks hooks;
  hooks.write_refusal = [](const Request& head, const Refusal& refusal) {
    return Response{.status = refusal.status,
                    .headers = {{"x-id", std::string(head.header("x-id"))}},
                    .body = std::string(refusal.code)};
  };
  ServerConfig config = with_timeouts(kLong, milliseconds(100), kLong);
  config.limits.max_body_bytes = 100;
  TestServer server(config, hooks);
  HttpClient large = server.connect();
  large.send(post_head("/echo", 101, "x-id: 1\r\n"));
  HttpAnswer answer = large.receive();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body, "body_too_large");
  EXPECT_EQ(answer.header("x-id"), "1");
  HttpClient slow = server.connect();
  slow.send(post_head("/echo", 10, "x-id: 2\r\n") + "a");
  answer = slow.receive();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.header("x-id"), "2");
  EXPECT_EQ(server.connect().get("/drop").body, "internal_error");
}

TEST(HttpLimits, ConnectionsLeaveDescriptors) {
  EXPECT_EQ(connections_within(8192, 20'000, 30), 8192);
  EXPECT_EQ(connections_within(8192, 1024, 30), 930);
  EXPECT_EQ(connections_within(8192, 20, 30), 1);
}

// Runs with a limit of descriptors that cannot be raised. Each connection of this process takes
// two.
[[noreturn]] void connect_beyond_descriptors() {
  set_log_level(LogLevel::kOff);
  const rlimit limit{.rlim_cur = 120, .rlim_max = 120};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) std::_Exit(2);
  TestServer server;
  std::vector<HttpClient> clients;
  for (int64_t i = 1; server.stats().num_refused == 0; ++i) {
    clients.push_back(server.connect());
    if (!clients.back().is_open()) std::_Exit(3);
    const auto is_decided = [&] {
      return server.stats().num_accepted + server.stats().num_refused == i;
    };
    if (!eventually(is_decided)) std::_Exit(4);
  }
  std::_Exit(clients.back().receive().status == 503 && clients.size() > 10 ? 0 : 5);
}

TEST(HttpLimitsDeathTest, BeyondTheDescriptorsConnectionsAreTurnedAway) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(connect_beyond_descriptors(), ::testing::ExitedWithCode(0), "");
}

// Opens every descriptor that the process may still open.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 200;
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.push_back(fd);
  }
  ~NoDescriptors() {
    for (const int fd : taken_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  void give_one() {
    ::close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST(HttpLimits, OutOfDescriptorsItWaitsWithoutSpinning) {
  // UBSan needs descriptors when it first sees a type, so all types are used before.
  TestServer server;
  EXPECT_EQ(server.connect().get("/echo").status, 200);
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
  set_log_level(LogLevel::kOff);
  std::unique_ptr<HttpClient> client;
  {
    NoDescriptors none;
    none.give_one();
    client = std::make_unique<HttpClient>(server.connect());
    ASSERT_TRUE(client->is_open());
    client->send(get("/echo"));
    const int64_t before = process_cpu_ns();
    EXPECT_FALSE(client->receive_head(400).has_value());
    EXPECT_LT(process_cpu_ns() - before, 100'000'000);
  }
  EXPECT_EQ(client->receive().status, 200);
  set_log_level(LogLevel::kInfo);
}

}  // namespace
}  // namespace quire::http
