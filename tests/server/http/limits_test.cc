// What a client can hold, and for how long.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "base/log.h"
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

// One byte at a time until the server has had enough.
HttpAnswer trickle(HttpClient& client, std::string_view bytes, milliseconds pause) {
  for (const char c : bytes) {
    if (!client.send({&c, 1})) break;
    std::this_thread::sleep_for(pause);
  }
  return client.receive();
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

TEST(HttpLimits, AnAnswerMayTakeItsTime) {
  TestServer server(with_timeouts(milliseconds(50), milliseconds(50), milliseconds(50)));
  HttpClient client = server.connect();
  client.send(get("/hold"));
  const auto exchange = server.held();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(server.num_closed(), 0);
  exchange->respond({.body = "late"});
  EXPECT_EQ(client.receive().body, "late");
}

TEST(HttpLimits, ASecondRequestHasItsOwnTime) {
  TestServer server(with_timeouts(milliseconds(200), kLong, kLong));
  HttpClient client = server.connect();
  for (int i = 0; i < 4; ++i) {
    client.send("GET /echo HTTP/1.1\r\n");
    std::this_thread::sleep_for(milliseconds(80));
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
  EXPECT_EQ(answer.header("retry-after"), "1");
  EXPECT_NE(answer.body.find("too_many_connections"), std::string::npos);
  EXPECT_EQ(server.stats().num_refused, 1);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server.connect().get("/echo").status == 200; }));
}

// Takes every descriptor that the process may still open.
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

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(HttpLimits, OutOfDescriptorsItWaitsWithoutSpinning) {
  // UBSan needs descriptors for its first look at a type: have them all used before.
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
    const double before = cpu_s();
    EXPECT_FALSE(client->receive_head(400).has_value());
    EXPECT_LT(cpu_s() - before, 0.1);
  }
  EXPECT_EQ(client->receive().status, 200);
  set_log_level(LogLevel::kInfo);
}

}  // namespace
}  // namespace quire::http
