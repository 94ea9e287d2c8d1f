// Nodes that meet over TCP: their tokens and settings, and connections of other programs.
#include "nodes/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.h"

namespace quire {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
  EXPECT_EQ(::bind(socket.fd(), any, size), 0);
  EXPECT_EQ(::getsockname(socket.fd(), any, &size), 0);
  return ntohs(address.sin_port);
}

// Connects as another program does, once node 0 listens.
Socket connect_to(int port) {
  const sockaddr_in address = loopback(port);
  Socket socket;
  EXPECT_TRUE(testing::eventually([&] {
    socket = Socket(::socket(AF_INET, SOCK_STREAM, 0));
    return ::connect(socket.fd(), static_cast<const sockaddr*>(static_cast<const void*>(&address)),
                     sizeof address) == 0;
  })) << "nothing listens";
  return socket;
}

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + 10s;
}

class Rendezvous : public ::testing::Test {
 protected:
  NodesConfig config(int num_nodes, int node) const {
    NodesConfig config;
    config.place = {
        .num_nodes = num_nodes, .node = node, .master_addr = "127.0.0.1", .master_port = port_};
    config.token = "secret";
    config.settings = {{"version", "1"}, {"model", "abc"}};
    config.meet_timeout = 10s;
    return config;
  }
  static auto meet(const NodesConfig& config) {
    return std::async(std::launch::async, [config] { return meet_nodes(config); });
  }

  const int port_ = free_port();
};

using Met = Result<std::vector<ConnectedNode>>;

bool is_ready(const std::future<Met>& met) {
  return met.wait_for(0s) == std::future_status::ready;
}

void expect_met(const Met& met, std::vector<int> nodes) {
  ASSERT_TRUE(met.ok()) << met.status().message();
  std::vector<int> numbers;
  for (const ConnectedNode& node : *met) {
    numbers.push_back(node.node);
    EXPECT_TRUE(node.socket.is_open());
    EXPECT_FALSE(node.host.empty());
  }
  EXPECT_EQ(numbers, nodes);
}

TEST_F(Rendezvous, MeetsInAnyOrder) {
  auto node_2 = meet(config(3, 2));
  auto node_1 = meet(config(3, 1));
  auto node_0 = meet(config(3, 0));
  expect_met(node_0.get(), {1, 2});
  expect_met(node_1.get(), {0});
  expect_met(node_2.get(), {0});
}

TEST_F(Rendezvous, OtherConnectionsNeitherEndNorDelayTheStart) {
  auto node_0 = meet(config(2, 0));
  std::vector<Socket> strangers;
  const std::vector<std::string> texts = {"", "GET / HTTP/1.1\r\n\r\n", std::string(100, '\0'),
                                          std::string("\xff\xff\xff\xff", 4) + "much",
                                          std::string("\x10\0\0\0", 4) + std::string(200, 'x')};
  for (int i = 0; i < 100; ++i) {  // more than wait at a time
    strangers.push_back(connect_to(port_));
    (void)strangers.back().send(texts[static_cast<size_t>(i) % texts.size()]);
  }
  const auto start = std::chrono::steady_clock::now();
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 8s);
}

TEST_F(Rendezvous, RefusesAnotherTokenAndWaitsOn) {
  auto node_0 = meet(config(2, 0));
  NodesConfig stranger = config(2, 1);
  stranger.token = "guess";
  EXPECT_THAT(meet(stranger).get().status().message(), HasSubstr("QUIRE_CLUSTER_TOKEN"));
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
}

// A mistake of one node does not end the others.
TEST_F(Rendezvous, RefusesAnotherSettingAndWaitsOn) {
  ::testing::internal::CaptureStderr();
  auto node_0 = meet(config(3, 0));
  auto last = meet(config(3, 2));
  NodesConfig other = config(3, 1);
  other.settings[1].second = "abd";
  EXPECT_THAT(meet(other).get().status().message(),
              AllOf(StartsWith("[nodes] node 1 ("),
                    HasSubstr("differs from node 0 in `model`: got abd, expected abc")));
  EXPECT_FALSE(is_ready(last));
  expect_met(meet(config(3, 1)).get(), {0});
  expect_met(node_0.get(), {1, 2});
  expect_met(last.get(), {0});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ContainsRegex("dropped a connection from 127.0.0.1 port [0-9]*: node 1 \\("));
}

TEST_F(Rendezvous, RefusesOtherNumbersOfNodes) {
  auto node_0 = meet(config(2, 0));
  EXPECT_THAT(meet(config(3, 2)).get().status().message(),
              HasSubstr("differs from node 0 in `nnodes`: got 3, expected 2"));
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
}

TEST_F(Rendezvous, RefusesANumberTwice) {
  auto node_0 = meet(config(3, 0));
  std::vector<std::future<Met>> both;
  both.push_back(meet(config(3, 1)));
  both.push_back(meet(config(3, 1)));
  EXPECT_TRUE(testing::eventually([&] { return is_ready(both[0]) || is_ready(both[1]); }));
  const size_t second = is_ready(both[0]) ? 0 : 1;
  EXPECT_THAT(both[second].get().status().message(), HasSubstr("is already connected"));
  auto last = meet(config(3, 2));
  expect_met(node_0.get(), {1, 2});
  expect_met(both[1 - second].get(), {0});
  expect_met(last.get(), {0});
}

// Otherwise a node that came early would find node 0 silent.
TEST_F(Rendezvous, WelcomesAllWhenTheLastHasArrived) {
  auto node_0 = meet(config(3, 0));
  auto first = meet(config(3, 1));
  EXPECT_EQ(first.wait_for(500ms), std::future_status::timeout);
  expect_met(meet(config(3, 2)).get(), {0});
  expect_met(node_0.get(), {1, 2});
  expect_met(first.get(), {0});
}

// Node 0 tells the nodes that wait that it lives.
TEST_F(Rendezvous, ANodeWaitsLongerThanTheTimeoutForOthers) {
  const auto with_timeout = [&](int node) {
    NodesConfig impatient = config(3, node);
    impatient.silence_timeout = 1s;
    return impatient;
  };
  auto node_0 = meet(with_timeout(0));
  auto first = meet(with_timeout(1));
  EXPECT_EQ(first.wait_for(2500ms), std::future_status::timeout);
  expect_met(meet(with_timeout(2)).get(), {0});
  expect_met(node_0.get(), {1, 2});
  expect_met(first.get(), {0});
}

TEST_F(Rendezvous, ANodeNoticesThatNode0Hangs) {
  const Socket listener(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(port_);
  ASSERT_EQ(::bind(listener.fd(), static_cast<const sockaddr*>(static_cast<const void*>(&address)),
                   sizeof address),
            0);
  ASSERT_EQ(::listen(listener.fd(), 1), 0);
  NodesConfig node_1 = config(2, 1);
  node_1.silence_timeout = 300ms;
  auto waits = meet(node_1);
  const Socket hanging(::accept(listener.fd(), nullptr, nullptr));
  ASSERT_TRUE(hanging.send("quire nodes 3\n" + std::string(32, 'n')).ok());
  EXPECT_THAT(waits.get().status().message(),
              AllOf(HasSubstr("node 0 at 127.0.0.1 port "), HasSubstr(" is silent for ")));
}

TEST_F(Rendezvous, ANodeThatEndsWhileOthersAreAwaitedMayComeAgain) {
  auto node_0 = meet(config(3, 0));
  NodesConfig impatient = config(3, 1);
  impatient.meet_timeout = 500ms;
  EXPECT_THAT(meet(impatient).get().status().message(),
              HasSubstr("waits until all nodes are connected"));
  auto again = meet(config(3, 1));
  auto last = meet(config(3, 2));
  expect_met(node_0.get(), {1, 2});
  expect_met(again.get(), {0});
  expect_met(last.get(), {0});
}

TEST_F(Rendezvous, WaitingNodesLearnWhyNode0Ends) {
  NodesConfig node_0 = config(4, 0);
  node_0.meet_timeout = 1s;
  auto waits = meet(node_0);
  const Met first = meet(config(4, 1)).get();
  EXPECT_THAT(first.status().message(), HasSubstr("nodes 2, 3 have not connected"));
  EXPECT_FALSE(waits.get().ok());
  node_0 = config(3, 0);
  node_0.meet_timeout = 2s;
  waits = meet(node_0);
  auto second = meet(config(3, 1));
  NodesConfig other = config(3, 2);
  other.settings[1].second = "abd";
  EXPECT_FALSE(meet(other).get().ok());
  for (auto* met : {&second, &waits}) {
    EXPECT_THAT(met->get().status().message(),
                AllOf(HasSubstr("node 2 has not connected"), HasSubstr("last refused: node 2 (")));
  }
}

// Otherwise an attacker could use node 0's code for a nonce of its choice.
TEST_F(Rendezvous, SignsNothingForAWrongCode) {
  auto node_0 = meet(config(2, 0));
  const Socket socket = connect_to(port_);
  std::string greeting(14 + 32, '\0');
  ASSERT_TRUE(socket.receive(greeting, soon()).ok());
  const std::string_view hello("\x02\0\0\0xx", 6);
  ASSERT_TRUE(socket.send(hello).ok());
  ASSERT_TRUE(socket.send(std::string(32, 'c')).ok());
  std::string reply(4 + 32, 'r');
  ASSERT_TRUE(socket.receive(reply, soon()).ok());
  EXPECT_EQ(reply, std::string(4 + 32, '\0'));
  char more = 0;
  EXPECT_EQ(socket.receive_some({&more, 1}).value(), 0U);
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
}

TEST_F(Rendezvous, NamesTheNodesThatAreMissing) {
  NodesConfig node_0 = config(3, 0);
  node_0.meet_timeout = 300ms;
  EXPECT_THAT(meet(node_0).get().status().message(), HasSubstr("nodes 1, 2 have not connected"));
  NodesConfig node_1 = config(3, 1);
  node_1.meet_timeout = 300ms;
  EXPECT_THAT(meet(node_1).get().status().message(), HasSubstr("cannot connect to node 0"));
}

// quire generate and quire chat log only warnings.
TEST_F(Rendezvous, WarnsThatNodesAreAwaited) {
  ::testing::internal::CaptureStderr();
  NodesConfig node_0 = config(3, 0);
  node_0.meet_timeout = 1s;
  EXPECT_FALSE(meet(node_0).get().ok());
  NodesConfig node_1 = config(3, 1);
  node_1.meet_timeout = 1s;
  EXPECT_FALSE(meet(node_1).get().ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ContainsRegex(" W .nodes. nodes 1, 2 have not connected yet"));
  EXPECT_THAT(log, ContainsRegex(" W .nodes. node 1 is not connected to node 0 yet"));
}

TEST_F(Rendezvous, WarnsOfAShortToken) {
  const auto log_with = [&](const std::string& token) {
    ::testing::internal::CaptureStderr();
    NodesConfig node_0 = config(2, 0);
    node_0.token = token;
    node_0.meet_timeout = 1ms;
    EXPECT_FALSE(meet(node_0).get().ok());
    return ::testing::internal::GetCapturedStderr();
  };
  constexpr const char* kWarning = "QUIRE_CLUSTER_TOKEN has";
  EXPECT_THAT(log_with("secret"), HasSubstr("QUIRE_CLUSTER_TOKEN has 6 characters, expected at"));
  EXPECT_THAT(log_with("secret of 16 byt"), Not(HasSubstr(kWarning)));
  EXPECT_THAT(log_with(""), Not(HasSubstr(kWarning)));
}

TEST_F(Rendezvous, NeedsATokenBeyondLoopback) {
  NodesConfig node_0 = config(2, 0);
  node_0.token = "";
  node_0.place.master_addr = "0.0.0.0";
  EXPECT_THAT(meet(node_0).get().status().message(), HasSubstr("QUIRE_CLUSTER_TOKEN is not set"));
  node_0.place.master_addr = "192.0.2.1";
  node_0.token = "secret";
  EXPECT_THAT(meet(node_0).get().status().message(), HasSubstr("cannot listen"));
  node_0.place.master_addr = "127.0.0.1";
  node_0.token = "";
  auto waits = meet(node_0);
  NodesConfig node_1 = config(2, 1);
  node_1.token = "";
  expect_met(meet(node_1).get(), {0});
  expect_met(waits.get(), {1});
}

// Listens as node 0 does, and sends bytes one by one until the peer closes.
class DrippingNode0 {
 public:
  DrippingNode0(int port, std::string bytes) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = loopback(port);
    const auto* const any = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    const int on = 1;
    (void)::setsockopt(listener_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(::bind(listener_.fd(), any, sizeof address), 0);
    EXPECT_EQ(::listen(listener_.fd(), 8), 0);
    drips_ = std::jthread([this, bytes = std::move(bytes)](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Socket peer(::accept(listener_.fd(), nullptr, nullptr));
        for (const char& byte : bytes) {
          if (stop.stop_requested() || !peer.send({&byte, 1}).ok()) break;
          std::this_thread::sleep_for(100ms);  // its pace
        }
      }
    });
  }
  ~DrippingNode0() {
    drips_.request_stop();
    listener_.shut_down();
  }

 private:
  const Socket listener_;
  std::jthread drips_;
};

TEST_F(Rendezvous, ADrippingPeerProlongsNoDeadline) {
  const DrippingNode0 dripping(port_, "quire nodes 3\n" + std::string(200, 'n'));
  NodesConfig node_1 = config(2, 1);
  node_1.meet_timeout = 1s;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(meet(node_1).get().status().message(), HasSubstr("cannot connect to node 0"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

TEST_F(Rendezvous, RefusesMoreAndFewerSettings) {
  auto node_0 = meet(config(2, 0));
  NodesConfig other = config(2, 1);
  other.settings.emplace_back("block_size", "32");
  EXPECT_THAT(meet(other).get().status().message(),
              HasSubstr("in `block_size`: got 32, expected no such setting"));
  other.settings = {{"version", "1"}};
  EXPECT_THAT(meet(other).get().status().message(),
              HasSubstr("in `model`: got no such setting, expected abc"));
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
}

TEST_F(Rendezvous, NamesTheAddressOfAMalformedHello) {
  ::testing::internal::CaptureStderr();
  auto node_0 = meet(config(2, 0));
  const Socket socket = connect_to(port_);
  std::string greeting(kGreeting.size() + kNonceBytes, '\0');
  ASSERT_TRUE(socket.receive(greeting, soon()).ok());
  ASSERT_TRUE(
      socket.send(signed_bytes("junk", "secret", "node", greeting.substr(kGreeting.size()))).ok());
  std::string reply(kLengthBytes + kCodeBytes, 'r');
  ASSERT_TRUE(socket.receive(reply, soon()).ok());
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ContainsRegex("dropped a connection from 127.0.0.1 port [0-9]*: its hello of 4 bytes is "
                    "malformed, expected one of this build"));
}

TEST_F(Rendezvous, ChecksOneNodesPart) {
  EXPECT_THAT(check_rendezvous(config(2, 0)).value(),
              HasSubstr(" is free, a token of 6 characters"));
  EXPECT_THAT(check_rendezvous(config(2, 1)).value(), HasSubstr("does not answer yet"));
  auto node_0 = meet(config(2, 0));
  (void)connect_to(port_);
  EXPECT_THAT(check_rendezvous(config(2, 1)).value(), HasSubstr("is that of node 0, which waits"));
  EXPECT_THAT(check_rendezvous(config(2, 0)).status().message(), HasSubstr("cannot listen"));
  expect_met(meet(config(2, 1)).get(), {0});
  expect_met(node_0.get(), {1});
}

}  // namespace
}  // namespace quire
