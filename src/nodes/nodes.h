// The connections of this node with the others: small collectives of bytes, messages, and a watch
// that detects nodes that have ended or hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nodes/messages.h"
#include "nodes/rendezvous.h"
#include "quire/status.h"

namespace quire {

// Every node is connected with node 0. The failure of one node fails all nodes permanently: every
// waiting call returns its error, which names the node.
class Nodes {
 public:
  // Upper bound of a message, and of the bytes that all nodes together give to all_gather(). A
  // larger message is a failure of the nodes.
  static constexpr size_t kMaxMessageBytes = kMaxFrameBytes;

  // Waits for all nodes. kInvalidArgument if they differ in their settings or tokens.
  static Result<std::shared_ptr<Nodes>> meet(const NodesConfig& config);
  // Takes the sockets of nodes that are already connected.
  Nodes(const NodePlace& place, std::chrono::milliseconds silence_timeout,
        std::vector<ConnectedNode> connected);
  // Calls end(), and closes the connections.
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  int size() const { return place_.num_nodes; }
  int node() const { return place_.node; }
  // For logs and errors: "node 1 (gpu-1)". Only for a connected node.
  const std::string& name(int node) const;

  // Returns the bytes of all nodes, by node, on every node. All nodes make the same calls in the
  // same order, one at a time. `what` names the operation; different names on two nodes are an
  // error.
  Result<std::vector<std::string>> all_gather(std::string_view what, std::string_view own);
  // Returns the bytes of node 0 on every node.
  Result<std::string> broadcast(std::string_view what, std::string_view own);

  // Messages between node 0 and another node, in order. The node has failed if sending fails, or if
  // it accepts no bytes for silence_timeout. kCancelled: node 0 has ended without an error.
  void send(int node, std::string_view message);
  Result<std::string> receive(int node);
  // Absent: no message has arrived in this time.
  Result<std::optional<std::string>> receive_within(int node, std::chrono::milliseconds time);

  // Returns whether a message of `node` has arrived and was not received yet.
  bool has_message(int node) const;
  // On node 0, for the error of a step that makes no progress: "node 0 waits for node 1 (gpu-1) in
  // the operation 'tensors'". Empty: no node waits for another in an operation.
  std::string describe_wait() const;

  // Ends this node's messages without an error; on node 0, also ends the messages of the other
  // nodes. Later errors are ignored. Node 0 calls it before it releases objects whose release waits
  // for the other nodes.
  void end();
  // Reports an error of this node to all nodes. Only the first error counts. The caller logs it;
  // all other errors, which begin with "[nodes] ", are logged here.
  void fail(const Status& error);
  // The error that ended the nodes; ok: none.
  Status status() const;
  // Returns status(), or an error if node 0 has ended. For phases in which node 0 must not end.
  Status check_running() const;
  // Calls `handler` once with the first error, on any thread; at once if an error has already
  // occurred. No handler runs after a call with null has returned.
  void set_failure_handler(std::function<void(const Status&)> handler);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer;
  class Gathering;
  using Kind = FrameKind;

  Peer& peer(int node) const;
  void send(Peer& peer, Kind kind, std::string_view bytes);
  Status read_frame(Peer& peer, Kind& kind, std::string& bytes);
  static Status malformed(const Peer& peer);
  static Status ended_early(const Peer& peer);
  void read(Peer& peer);
  void watch();
  // Begins a pass of watch(), and notes whether it is late. Requires mutex_.
  void begin_pass();
  bool is_late() const;
  // kCaller: an error passed to fail(). kHere: an error that this object has found on this node.
  // kElsewhere: another node sent it, or the connection with it has failed.
  enum class Origin : uint8_t { kCaller, kHere, kElsewhere };
  void fail_with(const Status& error, Origin origin);
  Result<std::string> take(int node, Kind kind);
  // Returns how long this node was stopped recently; 0 if that was too short for the other nodes to
  // regard this node as failed.
  std::chrono::nanoseconds time_away() const;

  const NodePlace place_;
  const std::chrono::milliseconds silence_timeout_;
  const std::chrono::milliseconds period_;    // between two passes of watch()
  std::vector<std::unique_ptr<Peer>> peers_;  // on node 0: node i + 1; on other nodes: node 0

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status error_;
  std::string gathering_;  // the operation for which node 0 waits; empty: none
  bool stopping_ = false;
  std::mutex handler_mutex_;
  std::function<void(const Status&)> handler_;
  // The start of watch()'s last pass, the end of its last delay, and the length of that delay, as
  // times since boot. They show whether this node was stopped.
  std::chrono::nanoseconds last_pass_;
  std::chrono::nanoseconds back_at_ = std::chrono::nanoseconds::min() / 2;
  std::chrono::nanoseconds last_away_{0};
  std::thread watch_;
};

}  // namespace quire
