// The collectives, messages and failures of nodes in one process.
#include "nodes/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/byte_archive.h"
#include "support/eventually.h"

namespace quire {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLong = 20s;

std::pair<Socket, Socket> connected_sockets() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  return {Socket(fds[0]), Socket(fds[1])};
}

NodePlace place(int num_nodes, int node) {
  NodePlace place;
  place.num_nodes = num_nodes;
  place.node = node;
  return place;
}

std::vector<std::unique_ptr<Nodes>> make_nodes(int size, std::chrono::milliseconds silence) {
  std::vector<std::unique_ptr<Nodes>> nodes(static_cast<size_t>(size));
  std::vector<ConnectedNode> others;
  for (int node = 1; node < size; ++node) {
    auto [first, other] = connected_sockets();
    others.push_back({.node = node, .host = "host-b", .socket = std::move(first)});
    std::vector<ConnectedNode> of_node;
    of_node.push_back({.node = 0, .host = "host-a", .socket = std::move(other)});
    nodes[static_cast<size_t>(node)] =
        std::make_unique<Nodes>(place(size, node), silence, std::move(of_node));
  }
  nodes[0] = std::make_unique<Nodes>(place(size, 0), silence, std::move(others));
  return nodes;
}

TEST(Nodes, GatherTheBytesOfAllInOrder) {
  const auto nodes = make_nodes(3, kLong);
  std::vector<std::future<std::vector<std::string>>> gathered;
  for (const auto& node : nodes) {
    gathered.push_back(std::async(std::launch::async, [&node] {
      std::vector<std::string> all;
      for (int i = 0; i < 200; ++i) {
        // Larger than the buffers of a socket from time to time.
        const size_t size = i % 50 == 0 ? 3'000'001 : static_cast<size_t>(i);
        const std::string own(size, static_cast<char>('a' + node->node()));
        const auto result = node->all_gather("test", own);
        EXPECT_TRUE(result.ok()) << result.status().message();
        if (!result.ok()) return all;
        for (size_t n = 0; n < result->size(); ++n) {
          EXPECT_EQ((*result)[n], std::string(size, static_cast<char>('a' + n)));
        }
        all = *result;
      }
      return all;
    }));
  }
  for (auto& all : gathered) EXPECT_EQ(all.get().size(), 3U);
}

TEST(Nodes, SendMessagesInOrder) {
  const auto nodes = make_nodes(2, kLong);
  nodes[0]->send(1, "one");
  nodes[0]->send(1, std::string("\0two", 4));
  EXPECT_EQ(nodes[1]->receive(0).value(), "one");
  EXPECT_EQ(nodes[1]->receive(0).value(), std::string("\0two", 4));
  EXPECT_FALSE(nodes[1]->receive_within(0, 1ms).value().has_value());
  nodes[1]->send(0, "");
  EXPECT_EQ(nodes[0]->receive(1).value(), "");
}

TEST(Nodes, IdleNodesStayConnected) {
  const auto nodes = make_nodes(2, 1s);
  std::this_thread::sleep_for(2s);  // longer than the silence that ends a connection
  EXPECT_TRUE(nodes[0]->status().ok());
  EXPECT_TRUE(nodes[1]->status().ok());
}

TEST(Nodes, AnErrorOfOneReachesAllAndNamesIt) {
  const auto nodes = make_nodes(3, kLong);
  std::promise<Status> handled;
  nodes[2]->set_failure_handler([&](const Status& error) { handled.set_value(error); });
  auto waits = std::async(std::launch::async, [&] { return nodes[2]->receive(0); });
  nodes[1]->fail(resource_exhausted("[cuda] no memory"));
  const Result<std::string> received = waits.get();
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(received.status().message(), "[nodes] node 1 (host-b) has failed: [cuda] no memory");
  EXPECT_EQ(handled.get_future().get().message(), received.status().message());
  EXPECT_EQ(nodes[0]->status().message(), received.status().message());
  EXPECT_FALSE(nodes[0]->all_gather("test", "").ok());
  // A handler that is set later is called at once.
  Status late;
  nodes[0]->set_failure_handler([&](const Status& error) { late = error; });
  EXPECT_EQ(late.message(), received.status().message());
}

TEST(Nodes, AnEndOfNode0IsNoError) {
  auto nodes = make_nodes(2, kLong);
  auto waits = std::async(std::launch::async, [&] { return nodes[1]->receive(0); });
  nodes[0].reset();
  EXPECT_EQ(waits.get().status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(nodes[1]->status().ok());
}

TEST(Nodes, AnEndOfAnotherIsAnError) {
  auto nodes = make_nodes(2, kLong);
  nodes[1].reset();
  EXPECT_THAT(nodes[0]->receive(1).status().message(),
              HasSubstr("node 1 (host-b) has closed its connection"));
}

TEST(Nodes, ASilentNodeFails) {
  auto [first, silent] = connected_sockets();
  std::vector<ConnectedNode> others;
  others.push_back({.node = 1, .host = "host-b", .socket = std::move(first)});
  Nodes nodes(place(2, 0), 150ms, std::move(others));
  EXPECT_THAT(nodes.all_gather("test", "").status().message(),
              HasSubstr("node 1 (host-b) is silent for "));
}

// A node that hangs reads nothing, so that calls that send to it wait.
TEST(Nodes, SendingToAHangingNodeEnds) {
  auto [first, silent] = connected_sockets();
  std::vector<ConnectedNode> others;
  others.push_back({.node = 1, .host = "host-b", .socket = std::move(first)});
  Nodes nodes(place(2, 0), 200ms, std::move(others));
  const auto start = std::chrono::steady_clock::now();
  nodes.send(1, std::string(size_t{64} << 20, 'x'));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_THAT(nodes.status().message(), HasSubstr("node 1 (host-b)"));
}

TEST(Nodes, ATooLargeMessageFails) {
  const auto nodes = make_nodes(2, kLong);
  const size_t size = Nodes::kMaxMessageBytes + 1;
  const auto memory = std::make_unique_for_overwrite<char[]>(size);  // never touched
  nodes[0]->send(1, {memory.get(), size});
  EXPECT_EQ(nodes[0]->status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(nodes[1]->receive(0).status().message(),
              HasSubstr("has 1073741825 bytes, expected at most 1073741824"));
}

TEST(Nodes, TooManyWaitingMessagesFail) {
  const auto nodes = make_nodes(2, kLong);
  std::promise<Status> failed;
  nodes[1]->set_failure_handler([&](const Status& error) { failed.set_value(error); });
  for (int i = 0; i < 65; ++i) nodes[0]->send(1, "x");
  EXPECT_THAT(failed.get_future().get().message(),
              HasSubstr("more than 64 messages of node 0 (host-a) wait to be received"));
  EXPECT_FALSE(nodes[1]->receive(0).ok());
}

TEST(Nodes, NodesThatRunDifferentOperationsFail) {
  const auto nodes = make_nodes(2, kLong);
  auto other =
      std::async(std::launch::async, [&] { return nodes[1]->all_gather("b", "").status(); });
  EXPECT_THAT(nodes[0]->all_gather("a", "").status().message(),
              HasSubstr("runs the operation 'b', expected 'a'"));
  EXPECT_FALSE(other.get().ok());
}

TEST(Nodes, MalformedBytesAreAnError) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\x01", 5), std::string("\0\0\0\0\x77", 5),
        std::string("\x02\0\0\0\x03zz", 7), std::string("\x03\0\0\0\x02zzz", 8)}) {
    auto [first, other] = connected_sockets();
    std::vector<ConnectedNode> others;
    others.push_back({.node = 1, .host = "host-b", .socket = std::move(first)});
    Nodes nodes(place(2, 0), kLong, std::move(others));
    ASSERT_TRUE(other.send(bytes).ok());
    EXPECT_FALSE(nodes.all_gather("test", "").ok());
    EXPECT_THAT(nodes.status().message(), HasSubstr("node 1 (host-b)"));
  }
}

// ---- The reason of a failure

std::string frame_of(FrameKind kind, const std::string& bytes) {
  return head_bytes({.kind = kind, .num_bytes = static_cast<uint32_t>(bytes.size())}) + bytes;
}

std::unique_ptr<Nodes> node_with(int node, Socket socket, std::chrono::milliseconds silence) {
  std::vector<ConnectedNode> connected;
  connected.push_back({.node = 1 - node, .host = "host-b", .socket = std::move(socket)});
  return std::make_unique<Nodes>(place(2, node), silence, std::move(connected));
}

// The write fails first: the peer reads no more, and its error arrives later.
TEST(Nodes, ABrokenConnectionReportsThePeersError) {
  auto [first, other] = connected_sockets();
  const auto nodes = node_with(0, std::move(first), kLong);
  ASSERT_EQ(::shutdown(other.fd(), SHUT_RD), 0);
  auto sends = std::async(std::launch::async, [&] { nodes->send(1, "message"); });
  std::this_thread::sleep_for(200ms);  // nothing tells that the write has failed
  ASSERT_TRUE(
      other.send(frame_of(FrameKind::kError, error_bytes(internal_error("[cuda] a fault"), false)))
          .ok());
  sends.get();
  EXPECT_EQ(nodes->status().message(), "[nodes] node 1 (host-b) has failed: [cuda] a fault");
}

TEST(Nodes, TextsOfPeersArePrintable) {
  auto [first, other] = connected_sockets();
  const auto nodes = node_with(0, std::move(first), kLong);
  ByteWriter writer;
  writer(static_cast<uint8_t>(StatusCode::kInternal), uint8_t{0},
         std::string("\x1b[31m\n[nodes] forged"));
  ASSERT_TRUE(other.send(frame_of(FrameKind::kError, writer.take())).ok());
  EXPECT_EQ(nodes->receive(1).status().message(),
            "[nodes] node 1 (host-b) has failed: \\x1b[31m\\n[nodes] forged");
}

// ---- Which node is waited for

TEST(Nodes, NameThoseThatAnOperationWaitsFor) {
  const auto nodes = make_nodes(3, kLong);
  EXPECT_EQ(nodes[0]->describe_wait(), "");
  const auto gather = [&](size_t node) {
    return std::async(std::launch::async, [&, node] { (void)nodes[node]->all_gather("sum", ""); });
  };
  const auto await = [&](const std::string& expected) {
    EXPECT_TRUE(testing::eventually([&] { return nodes[0]->describe_wait() == expected; }))
        << nodes[0]->describe_wait();
  };
  std::vector<std::future<void>> gathers;
  gathers.push_back(gather(1));
  await("node 0 itself hangs: node 1 (host-b) waits for it");
  gathers.push_back(gather(0));
  await("node 0 waits for node 2 (host-b) in the operation 'sum'");
  gathers.push_back(gather(2));
  for (auto& one : gathers) one.get();
  await("");
}

// ---- Ends

// It is not kCancelled, which ends a process as an interrupt does.
TEST(Nodes, AnEndInACollectiveIsAnError) {
  const auto nodes = make_nodes(2, kLong);
  EXPECT_TRUE(nodes[1]->check_running().ok());
  auto waits =
      std::async(std::launch::async, [&] { return nodes[1]->all_gather("sum", "").status(); });
  nodes[0]->end();
  const Status ended = waits.get();
  EXPECT_EQ(ended.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ended.message(), HasSubstr("node 0 (host-a) has ended while this node was starting"));
  EXPECT_EQ(nodes[1]->check_running().message(), ended.message());
}

TEST(Nodes, OnlyNode0EndsTheOthers) {
  auto [first, other] = connected_sockets();
  const auto nodes = node_with(0, std::move(first), kLong);
  ASSERT_TRUE(other.send(frame_of(FrameKind::kEnd, "")).ok());
  const Status received = nodes->receive(1).status();
  EXPECT_EQ(received.code(), StatusCode::kInternal);
  EXPECT_THAT(received.message(), HasSubstr("node 1 (host-b) has sent malformed bytes"));
}

}  // namespace
}  // namespace quire
