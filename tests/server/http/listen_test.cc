#include "server/http/listen.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "server/http/test_server.h"
#include "support/scratch_directory.h"
#include "support/value_of.h"

namespace quire::http {
namespace {

namespace fs = std::filesystem;

// Returns why a server does not start.
std::string refusal(const ServerConfig& config) {
  const auto server = Server::start(config, [](Request&&, const std::shared_ptr<Exchange>&) {});
  return server.ok() ? "" : server.status().message();
}

struct UnixSocket : ::testing::Test {
  UnixSocket() { config.uds = path; }

  // Leaves the socket's file, as a killed server does.
  void leave_stale_file() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::close(fd);
  }

  const quire::testing::ScratchDirectory scratch;
  const std::string path = scratch.path() / "quire.sock";
  ServerConfig config;
};

TEST_F(UnixSocket, Serves) {
  {
    TestServer server(config);
    EXPECT_EQ(server.port(), 0);
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    HttpClient client = HttpClient::unix_socket(path);
    EXPECT_EQ(client.post("/echo", "hello").body, "POST  hello");
    EXPECT_EQ(client.get("/echo").header("x-peer"), "unix");
    client.send(get("/hold"));
    const auto exchange = server.held();
    client.close();
    EXPECT_TRUE(eventually([&] { return server.num_closed() == 1; }));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(UnixSocket, ReplacesAStaleFile) {
  leave_stale_file();
  ASSERT_TRUE(fs::exists(path));
  TestServer server(config);
  EXPECT_EQ(HttpClient::unix_socket(path).get("/echo").status, 200);
}

TEST_F(UnixSocket, LeavesAServerAlone) {
  TestServer server(config);
  EXPECT_NE(refusal(config).find("is in use"), std::string::npos) << refusal(config);
  EXPECT_EQ(HttpClient::unix_socket(path).get("/echo").status, 200);
}

TEST_F(UnixSocket, LeavesOtherFilesAlone) {
  std::ofstream(path) << "precious";
  EXPECT_NE(refusal(config).find("not a socket"), std::string::npos) << refusal(config);
  EXPECT_EQ(fs::file_size(path), 8u);
}

TEST_F(UnixSocket, NamesThePathsFault) {
  config.uds = "/" + std::string(200, 'a');
  EXPECT_NE(refusal(config).find("expected at most 107"), std::string::npos) << refusal(config);
  config.uds = "/no/such/folder/socket";
  EXPECT_NE(refusal(config).find("`uds` /no/such/folder/socket"), std::string::npos);
}

TEST(HttpListen, NamesTheFieldOfATakenPort) {
  TestServer server;
  ServerConfig config;
  config.port = server.port();
  EXPECT_NE(refusal(config).find("`port` " + std::to_string(server.port()) + " is in use"),
            std::string::npos)
      << refusal(config);
}

TEST(HttpListen, ABoundPortIsTakenButRefusesClients) {
  ServerConfig config = any_port();
  const auto first = testing::value_of(bind_to(config));
  config.port = first.front().port();
  EXPECT_NE(refusal(config).find("is in use"), std::string::npos) << refusal(config);
  EXPECT_FALSE(HttpClient::tcp(config.port).is_open());
  ASSERT_TRUE(start_listening(config, first).ok());
  EXPECT_TRUE(HttpClient::tcp(config.port).is_open());
  EXPECT_NE(refusal(config).find("is in use"), std::string::npos) << refusal(config);
}

TEST(HttpListen, APortIsFreeAgainAtOnce) {
  ServerConfig config = any_port();
  {
    TestServer server(config);
    config.port = server.port();
    HttpClient client = server.connect();
    EXPECT_EQ(client.get("/echo").status, 200);
    server.stop();  // the server closes first, so that its side of the connection waits
  }
  EXPECT_EQ(refusal(config), "");
}

TEST_F(UnixSocket, ThatWasReplacedDoesNotListen) {
  const auto first = testing::value_of(bind_to(config));
  TestServer second(config);
  EXPECT_NE(start_listening(config, first).message().find("was replaced"), std::string::npos);
  EXPECT_EQ(HttpClient::unix_socket(path).get("/echo").status, 200);
}

TEST(HttpListen, RefusesBadConfigurations) {
  ServerConfig config = any_port();
  config.host = "no.such.host.invalid";
  EXPECT_NE(refusal(config).find("`host` no.such.host.invalid"), std::string::npos);
  config = any_port();
  config.host = "192.0.2.1";  // assigned to no host (RFC 5737)
  EXPECT_NE(refusal(config).find("`host` 192.0.2.1"), std::string::npos) << refusal(config);
  config = any_port();
  config.port = 65536;
  EXPECT_NE(refusal(config).find("`port`: got 65536"), std::string::npos);
  config = any_port();
  config.num_threads = 0;
  EXPECT_NE(refusal(config), "");
}

TEST(HttpListen, AnEmptyHostIsNotAllOfThem) {
  ServerConfig config = any_port();
  config.host = "";
  EXPECT_NE(refusal(config).find("`host`"), std::string::npos) << refusal(config);
}

TEST(HttpListen, TellsByItsAddressesWhoCanReachIt) {
  const auto is_local = [](const std::string& host) -> std::optional<bool> {
    ServerConfig config = any_port();
    config.host = host;
    const auto sockets = listen_on(config);
    if (!sockets.ok()) return std::nullopt;
    return are_local(*sockets);
  };
  for (const char* host : {"127.0.0.1", "127.1", "127.9.8.7", "localhost", "LOCALHOST"}) {
    EXPECT_EQ(is_local(host), true) << host;
  }
  EXPECT_EQ(is_local("0.0.0.0"), false);
  if (!is_local("::1")) GTEST_SKIP() << "no IPv6 here";
  for (const char* host : {"::1", "0:0:0:0:0:0:0:1"}) EXPECT_EQ(is_local(host), true) << host;
  EXPECT_EQ(is_local("::"), false);
}

TEST(HttpListen, SpeaksIpv6) {
  ServerConfig config = any_port();
  config.host = "::1";
  if (refusal(config) != "") GTEST_SKIP() << "no IPv6 here: " << refusal(config);
  TestServer server(config);
  const HttpAnswer answer = HttpClient::tcp(server.port(), "::1").get("/echo");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.header("x-peer").starts_with("[::1]:")) << answer.header("x-peer");
  EXPECT_FALSE(server.connect().is_open()) << "::1 is not 127.0.0.1";
}

TEST(HttpListen, AnyIpv6AddressMeansIpv4Too) {
  ServerConfig config = any_port();
  config.host = "::";
  if (refusal(config) != "") GTEST_SKIP() << "no IPv6 here: " << refusal(config);
  TestServer server(config);
  EXPECT_EQ(HttpClient::tcp(server.port(), "::1").get("/echo").status, 200);
  EXPECT_EQ(server.connect().get("/echo").header("x-peer").substr(0, 10), "127.0.0.1:");
}

TEST(HttpListen, ANameMeansAllItsAddresses) {
  ServerConfig config = any_port();
  config.host = "localhost";
  TestServer server(config);
  EXPECT_EQ(server.connect().get("/echo").status, 200);
}

}  // namespace
}  // namespace quire::http
