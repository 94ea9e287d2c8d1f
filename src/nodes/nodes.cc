#include "nodes/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>

#include "base/byte_archive.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/text.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kReadBytes = size_t{1} << 20;  // by which a received frame grows
// The nodes work in step, so few frames wait at any time.
constexpr size_t kMaxWaitingFrames = 64;

struct FrameHead {
  uint32_t size = 0;
  uint8_t kind = 0;
};
constexpr size_t kHeadBytes = 5;

std::string head_bytes(uint8_t kind, size_t size) {
  ByteWriter writer;
  writer(static_cast<uint32_t>(size), kind);
  return writer.take();
}

// ThreadSanitizer does not see the locks of std::timed_mutex.
bool try_lock_for(std::mutex& mutex, std::chrono::milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  while (!mutex.try_lock()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

std::string error_bytes(const Status& error) {
  ByteWriter writer;
  writer(static_cast<uint8_t>(error.code()), error.message());
  return writer.take();
}

// An error of a node that node 0 passes on already names it.
Status read_error(std::string_view bytes, std::string_view from) {
  uint8_t code = 0;
  std::string message;
  ByteReader reader(bytes);
  reader(code, message);
  const bool is_code = code > 0 && code <= static_cast<uint8_t>(StatusCode::kUnavailable);
  if (!reader.is_complete() || !is_code) {
    return internal_error(fmt::format("[nodes] {} has sent an error that is malformed", from));
  }
  std::string text = one_line(message);
  if (!text.starts_with("[nodes] ")) text = fmt::format("[nodes] {} has failed: {}", from, text);
  return {static_cast<StatusCode>(code), std::move(text)};
}

}  // namespace

struct Nodes::Peer {
  Peer(int node_, ConnectedNode connected)
      : node(node_),
        name(fmt::format("node {} ({})", node_, connected.host)),
        socket(std::move(connected.socket)) {}

  const int node;
  const std::string name;
  const Socket socket;
  std::mutex sending;
  std::atomic<Clock::time_point> last_heard = Clock::now();
  std::deque<std::string> messages;  // guarded by mutex_, as all that follows
  std::deque<std::string> gathers;
  bool has_ended = false;  // node 0 has ended without an error
  std::thread reader;
};

Result<std::shared_ptr<Nodes>> Nodes::meet(const NodesConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<ConnectedNode> connected, meet_nodes(config));
  return std::make_shared<Nodes>(config.place, config.silence_timeout, std::move(connected));
}

Nodes::Nodes(const NodePlace& place, std::chrono::milliseconds silence_timeout,
             std::vector<ConnectedNode> connected)
    : place_(place), silence_timeout_(silence_timeout) {
  for (ConnectedNode& node : connected) {
    const int number = node.node;
    node.socket.configure(silence_timeout, 0ms);
    peers_.push_back(std::make_unique<Peer>(number, std::move(node)));
  }
  const auto guarded = [this](auto f) {
    return std::thread([this, f] {
      try {
        f();
      } catch (...) {  // most likely std::bad_alloc
        const Status error = make_exception_status([](const char* reason) {
          return resource_exhausted(fmt::format("[nodes] a message is lost; {}", reason));
        });
        fail_with(error, Origin::kHere);
      }
    });
  };
  for (const auto& peer : peers_) {
    peer->reader = guarded([this, &peer = *peer] { read(peer); });
  }
  watch_ = guarded([this] { watch(); });
}

Nodes::~Nodes() {
  end();
  for (const auto& peer : peers_) peer->socket.shut_down();
  watch_.join();
  for (const auto& peer : peers_) peer->reader.join();
}

void Nodes::end() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  changed_.notify_all();
  if (place_.node > 0) return;
  for (const auto& peer : peers_) {
    if (try_lock_for(peer->sending, 500ms)) {
      (void)peer->socket.send_some(head_bytes(static_cast<uint8_t>(Kind::kEnd), 0));
      peer->sending.unlock();
    }
  }
}

Nodes::Peer& Nodes::peer(int node) const {
  for (const auto& peer : peers_) {
    if (peer->node == node) return *peer;
  }
  QUIRE_CHECK(false, "[nodes] only node 0 is connected with every other node");
}

const std::string& Nodes::name(int node) const {
  return peer(node).name;
}

// ---- Frames

void Nodes::send(Peer& peer, Kind kind, std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) {
    const Status error = resource_exhausted(
        fmt::format("[nodes] a message to {} has {} bytes, expected at most {}; lower "
                    "`max_num_batched_tokens`",
                    peer.name, bytes.size(), kMaxMessageBytes));
    return fail_with(error, Origin::kHere);
  }
  const std::string head = head_bytes(static_cast<uint8_t>(kind), bytes.size());
  Status sent;
  {
    const std::lock_guard lock(peer.sending);
    sent = peer.socket.send(head);
    if (sent.ok()) sent = peer.socket.send(bytes);
  }
  if (sent.ok()) return;
  const Status error = unavailable(fmt::format(
      "[nodes] {} cannot be reached: its process has ended or hangs, or its machine or the "
      "network is down; {}",
      peer.name, sent.message()));
  fail_with(error, Origin::kElsewhere);
}

Status Nodes::read_frame(Peer& peer, Kind& kind, std::string& bytes) {
  const auto receive = [&](std::span<char> to) -> Status {
    while (!to.empty()) {
      const Result<size_t> received = peer.socket.receive_some(to);
      if (!received.ok() || *received == 0) {
        return unavailable(
            fmt::format("[nodes] {} has closed its connection: its process has "
                        "ended, or its machine{}",
                        peer.name, received.ok() ? "" : "; " + received.status().message()));
      }
      peer.last_heard = Clock::now();
      to = to.subspan(*received);
    }
    return {};
  };
  std::string head(kHeadBytes, '\0');
  QUIRE_RETURN_IF_ERROR(receive(head));
  FrameHead parsed;
  ByteReader reader(head);
  reader(parsed.size, parsed.kind);
  if (parsed.size > kMaxMessageBytes || parsed.kind > static_cast<uint8_t>(Kind::kEnd)) {
    return internal_error(fmt::format("[nodes] {} has sent malformed bytes", peer.name));
  }
  kind = static_cast<Kind>(parsed.kind);
  bytes.clear();
  while (bytes.size() < parsed.size) {
    const size_t begin = bytes.size();
    bytes.resize(std::min<size_t>(parsed.size, begin + kReadBytes));
    QUIRE_RETURN_IF_ERROR(receive(std::span(bytes).subspan(begin)));
  }
  return {};
}

void Nodes::read(Peer& peer) {
  while (true) {
    Kind kind = Kind::kAlive;
    std::string bytes;
    const Status received = read_frame(peer, kind, bytes);
    if (!received.ok()) return fail_with(received, Origin::kElsewhere);
    if (kind == Kind::kAlive) continue;
    if (kind == Kind::kError) return fail_with(read_error(bytes, peer.name), Origin::kElsewhere);
    bool is_full = false;
    {
      const std::lock_guard lock(mutex_);
      if (kind == Kind::kEnd) {
        peer.has_ended = true;
      } else {
        std::deque<std::string>& frames = kind == Kind::kGather ? peer.gathers : peer.messages;
        is_full = frames.size() == kMaxWaitingFrames;
        if (!is_full) frames.push_back(std::move(bytes));
      }
    }
    if (is_full) {
      const Status error = internal_error(
          fmt::format("[nodes] more than {} messages wait of {}", kMaxWaitingFrames, peer.name));
      return fail_with(error, Origin::kHere);
    }
    changed_.notify_all();
    if (kind == Kind::kEnd) return;
  }
}

void Nodes::watch() {
  const auto period = std::clamp<std::chrono::milliseconds>(silence_timeout_ / 8, 20ms, 1s);
  const std::string alive = head_bytes(static_cast<uint8_t>(Kind::kAlive), 0);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [&] { return stopping_ || !error_.ok(); })) {
    lock.unlock();
    for (const auto& peer : peers_) {
      // While another thread sends, its bytes are a sign of life.
      if (peer->sending.try_lock()) {
        const size_t sent = peer->socket.send_some(alive);
        if (sent > 0 && sent < alive.size()) (void)peer->socket.send(alive.substr(sent));
        peer->sending.unlock();
      }
      const auto silence = Clock::now() - peer->last_heard.load();
      const bool has_ended = [&] {
        const std::lock_guard guard(mutex_);
        return peer->has_ended;
      }();
      if (silence < silence_timeout_ || has_ended) continue;
      const Status error = unavailable(fmt::format(
          "[nodes] {} is silent for {:.1f} s: its process hangs, or its machine or the network is "
          "down",
          peer->name, std::chrono::duration<double>(silence).count()));
      fail_with(error, Origin::kElsewhere);
    }
    lock.lock();
  }
}

// ---- Messages

Result<std::string> Nodes::take(int node, Kind kind) {
  Peer& from = peer(node);
  std::deque<std::string>& frames = kind == Kind::kGather ? from.gathers : from.messages;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !frames.empty() || !error_.ok() || from.has_ended; });
  if (!error_.ok()) return error_;
  if (frames.empty()) return cancelled(fmt::format("[nodes] {} has ended", from.name));
  std::string bytes = std::move(frames.front());
  frames.pop_front();
  return bytes;
}

void Nodes::send(int node, std::string_view message) {
  send(peer(node), Kind::kMessage, message);
}

Result<std::string> Nodes::receive(int node) {
  return take(node, Kind::kMessage);
}

Result<std::optional<std::string>> Nodes::receive_within(int node, std::chrono::milliseconds time) {
  Peer& from = peer(node);
  {
    std::unique_lock lock(mutex_);
    const bool can_take = changed_.wait_for(
        lock, time, [&] { return !from.messages.empty() || !error_.ok() || from.has_ended; });
    if (!can_take) return std::optional<std::string>();
  }
  QUIRE_ASSIGN_OR_RETURN(std::string message, take(node, Kind::kMessage));
  return std::optional(std::move(message));
}

Result<std::vector<std::string>> Nodes::all_gather(std::string_view what, std::string_view own) {
  const std::string operation(what);
  std::vector<std::string> gathered;
  if (place_.node > 0) {
    ByteWriter writer;
    writer(operation, std::string(own));
    send(peer(0), Kind::kGather, writer.take());
    const Result<std::string> bytes = take(0, Kind::kGather);
    if (!bytes.ok()) return bytes.status();
    ByteReader reader(*bytes);
    reader(gathered);
    if (reader.is_complete() && gathered.size() == static_cast<size_t>(place_.num_nodes)) {
      return gathered;
    }
    const Status error = internal_error(
        fmt::format("[nodes] {} has sent malformed results of {}", peer(0).name, operation));
    fail_with(error, Origin::kHere);
    return status();
  }
  gathered.emplace_back(own);
  for (const auto& from : peers_) {
    const Result<std::string> bytes = take(from->node, Kind::kGather);
    if (!bytes.ok()) return bytes.status();
    std::string other_operation;
    ByteReader reader(*bytes);
    reader(other_operation, gathered.emplace_back());
    if (reader.is_complete() && other_operation == operation) continue;
    const Status error =
        internal_error(fmt::format("[nodes] {} runs the operation '{}', expected '{}' of node 0",
                                   from->name, one_line(other_operation), operation));
    fail_with(error, Origin::kHere);
    return status();
  }
  ByteWriter writer;
  writer(gathered);
  const std::string bytes = writer.take();
  for (const auto& to : peers_) send(*to, Kind::kGather, bytes);
  QUIRE_RETURN_IF_ERROR(status());
  return gathered;
}

Result<std::string> Nodes::broadcast(std::string_view what, std::string_view own) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<std::string> gathered,
                         all_gather(what, place_.node == 0 ? own : ""));
  return std::move(gathered.front());
}

// ---- Failures

void Nodes::fail(const Status& error) {
  fail_with(error, Origin::kCaller);
}

// Errors that are not the caller's are logged here, because no step may run that would report them.
void Nodes::fail_with(const Status& error, Origin origin) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok() || stopping_) return;
    if (origin != Origin::kCaller) log_error("{}", error.message());
    error_ = error;
  }
  changed_.notify_all();
  // Node 0 passes errors on, because the other nodes are not connected with each other.
  if (origin != Origin::kElsewhere || place_.node == 0) {
    const std::string bytes = error_bytes(error);
    const std::string frame = head_bytes(static_cast<uint8_t>(Kind::kError), bytes.size()) + bytes;
    for (const auto& peer : peers_) {
      if (try_lock_for(peer->sending, 200ms)) {
        (void)peer->socket.send_some(frame);
        peer->sending.unlock();
      } else {
        peer->socket.shut_down();  // ends the call in which another thread waits for this node
      }
    }
  }
  const std::lock_guard lock(handler_mutex_);
  if (handler_) std::exchange(handler_, nullptr)(error);
}

Status Nodes::status() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Nodes::set_failure_handler(std::function<void(const Status&)> handler) {
  const std::lock_guard lock(handler_mutex_);
  handler_ = std::move(handler);
  const Status error = status();
  if (handler_ && !error.ok()) std::exchange(handler_, nullptr)(error);
}

}  // namespace quire
