// Tests the client against the server: closed connections, interrupts, and requests with a body.
#include "http_client/client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "server/http/test_server.h"
#include "support/scratch_directory.h"
#include "support/value_of.h"

namespace quire::http {
namespace {

// The body is so large that the client still writes when it reads the end of the connection.
void post_on_closed_connections(const ServerConfig& server_config, const std::string& scheme) {
  TestServer server(server_config);
  const auto url = testing::value_of(
      http_client::parse_url(scheme + "://127.0.0.1:" + std::to_string(server.port())));
  auto client = testing::value_of(http_client::Client::create({.url = url, .verify_peer = false}));
  const std::string body(size_t{8} << 20, 'x');
  for (int i = 0; i < 3; ++i) {
    const auto answer = testing::value_of(
        http_client::fetch(*client, {.method = "POST", .target = "/echo", .body = body},
                           body.size() + 100, [] { return false; }));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body.size(), body.size() + 6);  // "POST  "
    EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
  }
  EXPECT_EQ(server.stats().num_accepted, 3);
}

ServerConfig impatient() {
  ServerConfig config = any_port();
  config.limits.idle_timeout = std::chrono::milliseconds(50);
  return config;
}

TEST(ClientRetry, IsOnAnotherConnection) {
  post_on_closed_connections(impatient(), "http");
}

TEST(ClientRetry, IsOnAnotherConnectionOverTls) {
  if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl program";
  const quire::testing::ScratchDirectory scratch;
  ServerConfig config = impatient();
  config.ssl_certfile = scratch.path() / "cert.pem";
  config.ssl_keyfile = scratch.path() / "key.pem";
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=localhost -keyout " +
      config.ssl_keyfile + " -out " + config.ssl_certfile + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  post_on_closed_connections(config, "https");
}

std::unique_ptr<http_client::Client> connect_to(const TestServer& server,
                                                std::chrono::seconds idle_timeout) {
  const auto url = testing::value_of(
      http_client::parse_url("http://127.0.0.1:" + std::to_string(server.port())));
  return testing::value_of(http_client::Client::create({.url = url, .idle_timeout = idle_timeout}));
}

TEST(ClientFetch, ReturnsAtOnceIfItIsInterruptedBefore) {
  TestServer server;
  const auto client = connect_to(server, std::chrono::seconds(1));
  const auto response = http_client::fetch(*client, {.target = "/hold"}, 100, [] { return true; });
  EXPECT_EQ(response.status().code(), StatusCode::kCancelled) << response.status().message();
}

// The response to the first request arrives while the client waits for the second one.
TEST(ClientFetch, IgnoresTheResponseToAnInterruptedRequest) {
  TestServer server;
  const auto client = connect_to(server, std::chrono::seconds(60));
  const auto first = http_client::fetch(*client, {.target = "/hold"}, 100, [] { return true; });
  EXPECT_EQ(first.status().code(), StatusCode::kCancelled);
  std::thread responder([&] {
    for (const char* const body : {"one", "two"}) {
      const auto exchange = server.held();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      exchange->respond({.body = body});
    }
  });
  const auto second = http_client::fetch(*client, {.target = "/hold"}, 100, [] { return false; });
  responder.join();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->status, 200);
}

// Otherwise the server would read the body as the next request.
TEST(ClientFetch, StatesTheLengthOfABodyWithEveryMethod) {
  TestServer server;
  const auto client = connect_to(server, std::chrono::seconds(60));
  for (const char* const method : {"GET", "POST", "GET"}) {
    const auto response = testing::value_of(http_client::fetch(
        *client, {.method = method, .target = "/echo", .body = "{}"}, 100, [] { return false; }));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, std::string(method) + "  {}");
  }
  EXPECT_EQ(server.stats().num_accepted, 1);
}

class CountingHandler final : public http_client::ResponseHandler {
 public:
  explicit CountingHandler(http_client::Client& client) : client_(client) {}
  void on_field(std::string_view name, std::string_view value) override {
    fields += std::string(name) + "=" + std::string(value) + ";";
  }
  void on_head(int /*status*/) override {}
  bool on_body(std::string_view /*piece*/) override { return true; }
  void on_end(const Status& /*status*/) override {
    ++num_ends;
    client_.stop();
  }

  std::string fields;
  int num_ends = 0;

 private:
  http_client::Client& client_;
};

// Also if the request was sent, but its connection has not begun.
TEST(ClientCancel, ClosesTheConnectionAndCallsTheHandlerNoMore) {
  TestServer server;
  const auto client = connect_to(server, std::chrono::seconds(60));
  const auto early = std::make_shared<CountingHandler>(*client);
  const auto late = std::make_shared<CountingHandler>(*client);
  client->post([&] {
    client->send({.target = "/hold"}, early);
    client->cancel(*early);
    client->send({.target = "/hold"}, late);
  });
  std::thread canceller([&] {
    const auto exchange = server.held();
    client->post([&] { client->cancel(*late); });
    EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
    client->post([&] { client->stop(); });
  });
  client->run();
  canceller.join();
  EXPECT_EQ(early->num_ends + late->num_ends, 0);
  EXPECT_EQ(server.stats().num_accepted, 1);
}

TEST(ClientHeaders, ArePartOfARequestAndOfItsResponse) {
  const auto received = std::make_shared<std::string>();
  auto server = testing::value_of(
      Server::start(any_port(), [received](Request&& request, std::shared_ptr<Exchange> exchange) {
        *received = std::string(request.header("x-one")) + " " +
                    std::string(request.header("content-type"));
        exchange->respond({.headers = {{"x-two", "2"}}, .body = "b"});
      }));
  const auto url = testing::value_of(
      http_client::parse_url("http://127.0.0.1:" + std::to_string(server->port())));
  const auto client = testing::value_of(http_client::Client::create({.url = url}));
  const auto handler = std::make_shared<CountingHandler>(*client);
  client->send(
      {.method = "POST", .body = "{}", .headers = {{"x-one", "1"}, {"Content-Type", "text/plain"}}},
      handler);
  client->run();
  EXPECT_EQ(*received, "1 text/plain");
  EXPECT_NE(handler->fields.find("x-two=2;"), std::string::npos) << handler->fields;
}

}  // namespace
}  // namespace quire::http
