#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/http/test_server.h"
#include "support/scratch_directory.h"

namespace quire::http {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Tls : ::testing::Test {
  Tls() {
    config.port = 0;
    config.ssl_certfile = (folder / "cert.pem").string();
    config.ssl_keyfile = (folder / "key.pem").string();
  }

  void SetUp() override {
    if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl program";
    make_pair("first");
  }

  void make_pair(const std::string& name) const {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=" +
        name + " -keyout " + config.ssl_keyfile + " -out " + config.ssl_certfile + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  const quire::testing::ScratchDirectory scratch;
  const fs::path folder = scratch.path();
  ServerConfig config;
};

TEST_F(Tls, Serves) {
  TestServer server(config);
  HttpClient client = HttpClient::tls(server.port());
  ASSERT_TRUE(client.is_open());
  EXPECT_EQ(client.peer_certificate(), "first");
  EXPECT_EQ(client.post("/echo", "hello").body, "POST  hello");
  client.send(get("/hold") + get("/echo?next"));
  const auto exchange = server.held();
  exchange->start_stream(200, "text/plain", {});
  const std::string large(300'000, 'x');
  exchange->write(large);
  exchange->end_stream();
  EXPECT_TRUE(client.receive().body == large);
  EXPECT_EQ(client.receive().body, "GET next ");
  client.send(get("/echo", "Connection: close\r\n"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive_rest(), "");
}

TEST_F(Tls, NoticesAClientThatLeaves) {
  TestServer server(config);
  HttpClient client = HttpClient::tls(server.port());
  client.send(get("/hold"));
  const auto exchange = server.held();
  client.close();
  EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
}

TEST_F(Tls, TellsClientsThatSpeakPlainly) {
  std::atomic<int> num_refused = 0;
  TestServer server(config, {.write_refusal = [&](const Request& head, const Refusal& refusal) {
                      ++num_refused;
                      EXPECT_TRUE(head.peer.starts_with("127.0.0.1:")) << head.peer;
                      return Response{.status = refusal.status,
                                      .body = std::string(refusal.message)};
                    }});
  HttpClient client = HttpClient::tcp(server.port());
  client.send(get("/echo"));
  const auto rest = client.receive_rest();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->rfind("HTTP/1.1 400 ", 0), 0U) << *rest;
  EXPECT_NE(rest->find("This port serves HTTPS"), std::string::npos) << *rest;
  EXPECT_EQ(num_refused, 1) << "the access log is written from refusals";
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; }));
}

TEST_F(Tls, EndsAHandshakeThatDoesNotCome) {
  config.limits.header_timeout = milliseconds(100);
  TestServer server(config);
  HttpClient silent = HttpClient::tcp(server.port());
  EXPECT_EQ(silent.receive_rest(), "");
  EXPECT_EQ(server.stats().num_timeouts, 1);
}

// The server looks at its files once per second.
constexpr milliseconds kLongerThanALook(1100);

TEST_F(Tls, ReadsAChangedPairAndKeepsTheLastGoodOne) {
  TestServer server(config);
  const auto served = [&] { return HttpClient::tls(server.port()).peer_certificate(); };
  EXPECT_EQ(served(), "first");
  make_pair("second");
  EXPECT_TRUE(eventually([&] { return served() == "second"; }));
  std::ofstream(config.ssl_certfile) << "not a certificate";
  std::this_thread::sleep_for(kLongerThanALook);
  EXPECT_EQ(served(), "second");
  EXPECT_EQ(served(), "second");
  make_pair("third");
  EXPECT_TRUE(eventually([&] { return served() == "third"; }));
}

TEST_F(Tls, APipeInPlaceOfAFileDelaysNoOtherConnection) {
  TestServer server(config);
  const auto served = [&] { return HttpClient::tls(server.port()).peer_certificate(); };
  EXPECT_EQ(served(), "first");
  fs::remove(config.ssl_certfile);
  ASSERT_EQ(::mkfifo(config.ssl_certfile.c_str(), 0600), 0);
  std::this_thread::sleep_for(kLongerThanALook);
  EXPECT_EQ(served(), "first");
  EXPECT_EQ(served(), "first");
  fs::remove(config.ssl_certfile);
  make_pair("second");
  EXPECT_TRUE(eventually([&] { return served() == "second"; }));
}

TEST_F(Tls, DrainsAndStops) {
  TestServer server(config);
  HttpClient idle = HttpClient::tls(server.port());
  ASSERT_EQ(idle.get("/echo").status, 200);
  HttpClient half = HttpClient::tcp(server.port());
  half.send("\x16\x03");
  EXPECT_FALSE(server.server().drain(milliseconds(20)));
  EXPECT_EQ(half.receive_rest(), "") << "a handshake does not delay draining";
  EXPECT_EQ(idle.receive_rest(), "");
  server.stop();
}

TEST_F(Tls, NamesTheFlagsOfABadPair) {
  const auto refusal = [&] {
    const auto server = Server::start(config, [](Request&&, const std::shared_ptr<Exchange>&) {});
    return server.ok() ? "" : server.status().message();
  };
  fs::rename(config.ssl_keyfile, folder / "mine.pem");
  make_pair("other");
  fs::rename(folder / "mine.pem", config.ssl_keyfile);
  EXPECT_NE(refusal().find("mismatch"), std::string::npos) << refusal();
  config.ssl_keyfile = (folder / "absent.pem").string();
  EXPECT_NE(refusal().find("`ssl_keyfile` " + config.ssl_keyfile), std::string::npos) << refusal();
  config.ssl_keyfile.clear();
  EXPECT_NE(refusal().find("go together"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace quire::http
