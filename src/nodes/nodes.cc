#include "nodes/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <deque>
#include <utility>

#include "base/byte_archive.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/text.h"

namespace quire {
namespace {

using namespace std::chrono_literals;

constexpr size_t kReadBytes = size_t{1} << 20;  // a received frame's buffer grows by this
// All nodes run the same steps, so few frames wait at any time.
constexpr size_t kMaxWaitingFrames = 64;

// After a failed send, the time for the reader thread to find out why the connection has ended.
constexpr auto kReasonTime = 2s;

// Unlike the steady clock, CLOCK_BOOTTIME also counts while the machine is suspended.
std::chrono::nanoseconds time_since_boot() {
  timespec time = {};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Returns the delay of a pass that was due one period after `last_pass`.
std::chrono::nanoseconds late_by(std::chrono::nanoseconds last_pass,
                                 std::chrono::milliseconds period) {
  return time_since_boot() - last_pass - period;
}

// Used instead of std::timed_mutex, whose locks ThreadSanitizer does not track.
bool try_lock_for(std::mutex& mutex, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!mutex.try_lock()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
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
  std::thread reader;
  // Guarded by mutex_.
  std::deque<std::string> messages;
  std::deque<std::string> gathers;
  bool is_awaited = false;  // its part of a collective has not been taken
  bool has_ended = false;   // node 0 has ended without an error
};

Result<std::shared_ptr<Nodes>> Nodes::meet(const NodesConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<ConnectedNode> connected, meet_nodes(config));
  return std::make_shared<Nodes>(config.place, config.silence_timeout, std::move(connected));
}

Nodes::Nodes(const NodePlace& place, std::chrono::milliseconds silence_timeout,
             std::vector<ConnectedNode> connected)
    : place_(place),
      silence_timeout_(silence_timeout),
      period_(std::clamp<std::chrono::milliseconds>(silence_timeout / 8, 20ms, 1s)),
      last_pass_(time_since_boot()) {
  for (ConnectedNode& node : connected) {
    const int number = node.node;
    node.socket.configure(silence_timeout, 0ms);
    peers_.push_back(std::make_unique<Peer>(number, std::move(node)));
  }
  const auto guarded = [this](auto f) {
    return std::thread([this, f] {
      const Status error = guarded_status("[nodes] a message is lost", [&] {
        f();
        return Status();
      });
      if (!error.ok()) fail_with(error, Origin::kHere);
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
      (void)peer->socket.send_some(head_bytes({.kind = Kind::kEnd}));
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
  const std::string head =
      head_bytes({.kind = kind, .num_bytes = static_cast<uint32_t>(bytes.size())});
  Status sent;
  {
    const std::lock_guard lock(peer.sending);
    sent = peer.socket.send(head);
    if (sent.ok()) sent = peer.socket.send(bytes);
  }
  if (sent.ok()) return;
  // A node that ends sends its error before it closes its connection, and the reader finds it.
  const bool has_ended = [&] {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kReasonTime, [&] { return !error_.ok() || peer.has_ended; });
    return peer.has_ended;
  }();
  if (has_ended) return fail_with(ended_early(peer), Origin::kElsewhere);
  const Status error = unavailable(fmt::format(
      "[nodes] {} cannot be reached: its process has ended or hangs, or its machine or the "
      "network is down; {}",
      peer.name, sent.message()));
  fail_with(error, Origin::kElsewhere);
}

Status Nodes::malformed(const Peer& peer) {
  return internal_error(fmt::format(
      "[nodes] {} has sent malformed bytes, expected those of this build of Quire", peer.name));
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
  std::string head(kFrameHeadBytes, '\0');
  QUIRE_RETURN_IF_ERROR(receive(head));
  const std::optional<FrameHead> parsed = read_head(head);
  if (!parsed) return malformed(peer);
  kind = parsed->kind;
  bytes.clear();
  while (bytes.size() < parsed->num_bytes) {
    const size_t begin = bytes.size();
    bytes.resize(std::min<size_t>(parsed->num_bytes, begin + kReadBytes));
    QUIRE_RETURN_IF_ERROR(receive(std::span(bytes).subspan(begin)));
  }
  return {};
}

void Nodes::read(Peer& peer) {
  while (true) {
    Kind kind = Kind::kAlive;
    std::string bytes;
    const Status received = read_frame(peer, kind, bytes);
    if (received.code() == StatusCode::kInternal) return fail_with(received, Origin::kHere);
    if (!received.ok()) return fail_with(received, Origin::kElsewhere);
    if (kind == Kind::kAlive) continue;
    if (kind == Kind::kError) {
      const std::optional<Status> error = read_error(bytes, peer.name);
      if (!error) return fail_with(malformed(peer), Origin::kHere);
      return fail_with(*error, Origin::kElsewhere);
    }
    if (kind == Kind::kEnd && place_.node == 0) {  // only node 0 ends other nodes
      return fail_with(malformed(peer), Origin::kHere);
    }
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
      const Status error = internal_error(fmt::format(
          "[nodes] more than {} messages of {} wait to be received", kMaxWaitingFrames, peer.name));
      return fail_with(error, Origin::kHere);
    }
    changed_.notify_all();
    if (kind == Kind::kEnd) return;
  }
}

void Nodes::watch() {
  const std::string alive = head_bytes({.kind = Kind::kAlive});
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period_, [&] { return stopping_ || !error_.ok(); })) {
    begin_pass();
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
      // If this node was stopped during this pass, the next pass decides.
      if (silence < silence_timeout_ || has_ended || is_late()) continue;
      const Status error = unavailable(fmt::format(
          "[nodes] {} is silent for {:.1f} s: its process hangs, or its machine or the network is "
          "down",
          peer->name, std::chrono::duration<double>(silence).count()));
      fail_with(error, Origin::kElsewhere);
    }
    lock.lock();
  }
}

// The readers may not have read the signs of life that arrived while this node was stopped. So the
// silence of other nodes does not include that time.
void Nodes::begin_pass() {
  const std::chrono::nanoseconds late = late_by(last_pass_, period_);
  last_pass_ = time_since_boot();
  if (late <= silence_timeout_ / 4) return;
  last_away_ = late;
  back_at_ = last_pass_;
  for (const auto& peer : peers_) {
    peer->last_heard = std::min(
        Clock::now(), peer->last_heard.load() + std::chrono::duration_cast<Clock::duration>(late));
  }
}

bool Nodes::is_late() const {
  const std::lock_guard lock(mutex_);
  return late_by(last_pass_, period_) > silence_timeout_ / 4;
}

// ---- Messages

// Node 0 ends the other nodes only while they wait for its messages, so any other end is an error.
Status Nodes::ended_early(const Peer& peer) {
  return unavailable(fmt::format(
      "[nodes] {} has ended while this node was starting or in a step; its log has the reason",
      peer.name));
}

Result<std::string> Nodes::take(int node, Kind kind) {
  Peer& from = peer(node);
  std::deque<std::string>& frames = kind == Kind::kGather ? from.gathers : from.messages;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !frames.empty() || !error_.ok() || from.has_ended; });
  if (!error_.ok()) return error_;
  if (frames.empty() && kind == Kind::kMessage) {
    return cancelled(fmt::format("[nodes] {} has ended", from.name));
  }
  if (frames.empty()) return ended_early(from);
  std::string bytes = std::move(frames.front());
  frames.pop_front();
  if (kind == Kind::kGather) from.is_awaited = false;
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

// Marks the operation as running, for describe_wait().
class Nodes::Gathering {
 public:
  Gathering(Nodes& nodes, const std::string& operation) : nodes_(nodes) {
    const std::lock_guard lock(nodes_.mutex_);
    nodes_.gathering_ = operation;
    for (const auto& peer : nodes_.peers_) peer->is_awaited = true;
  }
  ~Gathering() {
    const std::lock_guard lock(nodes_.mutex_);
    nodes_.gathering_.clear();
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

 private:
  Nodes& nodes_;
};

bool Nodes::has_message(int node) const {
  const Peer& from = peer(node);
  const std::lock_guard lock(mutex_);
  return !from.messages.empty();
}

std::string Nodes::describe_wait() const {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  const bool gathers = !gathering_.empty();
  for (const auto& peer : peers_) {
    const bool has_arrived = !peer->gathers.empty();
    if (gathers ? peer->is_awaited && !has_arrived : has_arrived) names.push_back(peer->name);
  }
  if (names.empty()) return "";
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  return gathers ? fmt::format("node 0 waits for {} in the operation '{}'", all, gathering_)
                 : fmt::format("node 0 itself hangs: {} wait{} for it", all,
                               names.size() == 1 ? "s" : "");
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
  const Gathering gathering(*this, operation);
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

// Errors that are not the caller's are logged here, because there may be no step to report them.
void Nodes::fail_with(const Status& found, Origin origin) {
  Status error = found;
  // kCancelled is not an error: it would end the process as an interrupt does.
  if (error.code() == StatusCode::kCancelled) error = unavailable(found.message());
  // If this node was stopped, the other nodes regard it as failed, and this node finds only that
  // they have ended.
  const bool may_be_own = origin == Origin::kElsewhere && error.code() == StatusCode::kUnavailable;
  if (const auto away = time_away(); may_be_own && away.count() > 0) {
    error = unavailable(fmt::format(
        "[nodes] node {} was stopped, or had no CPU time, for {:.1f} s, and other nodes wait "
        "{:.1f} s for it (`rank_timeout`): its process (SIGSTOP, a debugger) or its machine "
        "was suspended; restart all nodes; what followed: {}",
        place_.node, std::chrono::duration<double>(away).count(),
        std::chrono::duration<double>(silence_timeout_).count(), error.message()));
  }
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok() || stopping_) return;
    if (origin != Origin::kCaller) log_error("{}", error.message());
    error_ = error;
  }
  changed_.notify_all();
  // Node 0 passes errors on, because the other nodes are not connected with each other.
  if (origin != Origin::kElsewhere || place_.node == 0) {
    const std::string bytes = error_bytes(error, origin == Origin::kElsewhere);
    const std::string frame =
        head_bytes({.kind = Kind::kError, .num_bytes = static_cast<uint32_t>(bytes.size())}) +
        bytes;
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

std::chrono::nanoseconds Nodes::time_away() const {
  const std::lock_guard lock(mutex_);
  std::chrono::nanoseconds away = late_by(last_pass_, period_);  // watch() may not have woken yet
  if (time_since_boot() - back_at_ < silence_timeout_) away = std::max(away, last_away_);
  // The last sign of life was sent up to one period before.
  return away + period_ < silence_timeout_ ? 0ns : away;
}

Status Nodes::status() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

Status Nodes::check_running() const {
  const std::lock_guard lock(mutex_);
  QUIRE_RETURN_IF_ERROR(error_);
  for (const auto& peer : peers_) {
    if (peer->has_ended) return ended_early(*peer);
  }
  return {};
}

void Nodes::set_failure_handler(std::function<void(const Status&)> handler) {
  const std::lock_guard lock(handler_mutex_);
  handler_ = std::move(handler);
  const Status error = status();
  if (handler_ && !error.ok()) std::exchange(handler_, nullptr)(error);
}

}  // namespace quire
