// Tests how clients handle a kept-alive connection that the server closes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "http_client/client.h"
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

}  // namespace
}  // namespace quire::http
