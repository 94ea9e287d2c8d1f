#include "kv_events/publisher.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/socket_file.h"

namespace quire {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr int kMaxPort = 65535;  // libzmq takes larger ones modulo 65536
constexpr auto kStopTimeout = std::chrono::seconds(1);
constexpr size_t kNumberBytes = 8;

using Number = std::array<char, kNumberBytes>;

Number big_endian(uint64_t value) {
  Number bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (bytes.size() - 1 - i)) & 0xff);
  }
  return bytes;
}

uint64_t from_big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

Status unusable(std::string_view field, std::string_view endpoint, std::string_view reason) {
  return invalid_argument(fmt::format(
      "[kv_events] {}: got {}, which cannot be used: {}; expected an address that is free, such as "
      "tcp://*:5557 or ipc:///tmp/kv-events",
      field, endpoint, reason));
}

// Returns the number after the last colon.
std::optional<int> port_of(std::string_view endpoint) {
  const std::string_view digits = endpoint.substr(endpoint.rfind(':') + 1);
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0) return std::nullopt;
  return port;
}

// A frame of a message.
struct Frame {
  zmq_msg_t message;

  Frame() { zmq_msg_init(&message); }
  ~Frame() { zmq_msg_close(&message); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
};

// Refuses a path that another program uses, because libzmq removes any file at the path to which it
// binds.
Status check_path(std::string_view field, std::string_view endpoint) {
  const std::string path(endpoint.substr(kIpc.size()));
  // An abstract socket, or a path that libzmq chooses.
  if (path.starts_with('@') || path == "*") return {};
  switch (socket_file_at(path)) {
    case SocketFile::kAbsent:
    case SocketFile::kStale:
      return {};
    case SocketFile::kInUse:
      return unusable(field, endpoint, "another process listens there");
    case SocketFile::kOther:
      break;
  }
  return unusable(field, endpoint, "the path is a file that is not a socket");
}

// Reads a message, or returns nullopt if no message waits.
std::optional<std::vector<std::string>> receive(void* socket) {
  std::vector<std::string> frames;
  for (bool has_more = true; has_more;) {
    Frame frame;
    if (zmq_msg_recv(&frame.message, socket, ZMQ_DONTWAIT) < 0) return std::nullopt;
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame.message)),
                        zmq_msg_size(&frame.message));
    has_more = zmq_msg_more(&frame.message) != 0;
  }
  return frames;
}

// Never blocks: PUB and ROUTER sockets drop messages for which a slow peer has no space. Returns
// false on an error.
bool send_frames(void* socket, std::initializer_list<std::string_view> frames) {
  size_t left = frames.size();
  for (const std::string_view frame : frames) {
    const int more = --left > 0 ? ZMQ_SNDMORE : 0;
    if (zmq_send(socket, frame.data(), frame.size(), ZMQ_DONTWAIT | more) < 0) return false;
  }
  return true;
}

}  // namespace

std::string endpoint_of_rank(std::string_view endpoint, int rank) {
  if (rank == 0 || endpoint.empty()) return std::string(endpoint);
  if (!endpoint.starts_with(kTcp)) return fmt::format("{}_dp{}", endpoint, rank);
  const std::optional<int> port = port_of(endpoint);
  if (!port || *port == 0) return std::string(endpoint);
  return fmt::format("{}{}", endpoint.substr(0, endpoint.rfind(':') + 1), *port + rank);
}

Status check_ports(const KvEventsConfig& config, int num_ranks) {
  const auto port_at = [](std::string_view endpoint) {
    return endpoint.starts_with(kTcp) ? port_of(endpoint).value_or(0) : 0;
  };
  const std::string ranks = num_ranks == 1
                                ? "one replica"
                                : fmt::format("{} replicas, which take port + rank", num_ranks);
  for (const auto& [field, endpoint] :
       {std::pair<const char*, std::string_view>("endpoint", config.endpoint),
        std::pair<const char*, std::string_view>("replay_endpoint", config.replay_endpoint)}) {
    if (port_at(endpoint) == 0 || port_at(endpoint) + num_ranks - 1 <= kMaxPort) continue;
    return invalid_argument(
        fmt::format("[kv_events] {}: got {} with {}, expected a port of at most {}", field,
                    endpoint, ranks, kMaxPort - num_ranks + 1));
  }
  const int port = port_at(config.endpoint);
  const int replay_port = port_at(config.replay_endpoint);
  if (port == 0 || replay_port == 0 || !binds_to(config.endpoint)) return {};
  if (std::abs(port - replay_port) >= num_ranks) return {};
  return invalid_argument(
      fmt::format("[kv_events] endpoint and replay_endpoint: the ports {} and {} overlap with {}; "
                  "expected ports that are at least {} apart",
                  port, replay_port, ranks, num_ranks));
}

bool binds_to(std::string_view endpoint) {
  return endpoint.find('*') != std::string_view::npos ||
         endpoint.find("::") != std::string_view::npos || endpoint.starts_with(kIpc);
}

struct KvEventPublisher::Sockets {
  Sockets() : context(zmq_ctx_new()), wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Sockets() {
    for (void* socket : {pub, replay}) {
      if (socket != nullptr) zmq_close(socket);
    }
    if (wake_fd >= 0) ::close(wake_fd);
    if (context != nullptr) zmq_ctx_term(context);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  // Opens a socket that keeps up to `hwm` messages for a peer, and binds or connects it. Writes the
  // port that the system chose into `endpoint`.
  Status open(std::string_view field, int type, int hwm, bool binds, std::string& endpoint,
              void*& socket) const {
    if (!endpoint.starts_with(kTcp) && !endpoint.starts_with(kIpc)) {
      return unusable(field, endpoint, "only tcp:// and ipc:// reach another process");
    }
    if (endpoint.starts_with(kTcp) && port_of(endpoint).value_or(kMaxPort + 1) > kMaxPort) {
      return unusable(field, endpoint, "it does not end in a port of at most 65535");
    }
    if (binds && endpoint.starts_with(kIpc)) {
      QUIRE_RETURN_IF_ERROR(check_path(field, endpoint));
    }
    socket = zmq_socket(context, type);
    if (socket == nullptr) return unusable(field, endpoint, zmq_strerror(zmq_errno()));
    // Peers send only subscriptions and numbers. A peer that sends a larger frame is disconnected.
    // Neither the frames per message nor the number of subscriptions is bounded.
    set(socket, ZMQ_MAXMSGSIZE, int64_t{1024});
    set(socket, ZMQ_LINGER, 0);  // the publisher's destructor sets a longer time
    set(socket, ZMQ_SNDHWM, hwm);
    set(socket, ZMQ_IPV6, endpoint.find('[') != std::string::npos ? 1 : 0);
    const int failed =
        binds ? zmq_bind(socket, endpoint.c_str()) : zmq_connect(socket, endpoint.c_str());
    if (failed != 0) return unusable(field, endpoint, zmq_strerror(zmq_errno()));
    if (binds && endpoint.starts_with(kTcp) && endpoint.ends_with(":0")) {
      std::array<char, 256> bound = {};
      size_t size = bound.size();
      zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound.data(), &size);
      const std::string_view address = bound.data();
      endpoint.replace(endpoint.rfind(':'), std::string::npos, address.substr(address.rfind(':')));
    }
    return {};
  }

  template <typename T>
  static void set(void* socket, int option, T value) {
    QUIRE_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0,
                "[kv_events] libzmq does not support an option");
  }

  void* context;
  int wake_fd;  // readable while batches wait
  void* pub = nullptr;
  void* replay = nullptr;  // null: no replay
};

KvEventPublisher::KvEventPublisher(KvEventsConfig config, int rank)
    : config_(std::move(config)), rank_(rank), sockets_(std::make_unique<Sockets>()) {}

Result<std::unique_ptr<KvEventPublisher>> KvEventPublisher::open(const KvEventsConfig& config,
                                                                 int rank) {
  KvEventsConfig own = config;
  own.endpoint = endpoint_of_rank(config.endpoint, rank);
  own.replay_endpoint = endpoint_of_rank(config.replay_endpoint, rank);
  std::unique_ptr<KvEventPublisher> publisher(new KvEventPublisher(std::move(own), rank));
  QUIRE_RETURN_IF_ERROR(publisher->open_sockets());
  return publisher;
}

// The replay socket's limit is two replays, each with its end marker. One is not enough, because
// libzmq counts messages as read by a peer only after half of the limit.
Status KvEventPublisher::open_sockets() {
  if (sockets_->context == nullptr || sockets_->wake_fd < 0) {
    return resource_exhausted("[kv_events] the system has no descriptors for the publisher");
  }
  QUIRE_RETURN_IF_ERROR(sockets_->open("endpoint", ZMQ_PUB, config_.hwm, binds_to(config_.endpoint),
                                       config_.endpoint, sockets_->pub));
  if (config_.replay_endpoint.empty()) return {};
  const int replay_hwm = 2 * (config_.buffer_steps + 1);
  return sockets_->open("replay_endpoint", ZMQ_ROUTER, replay_hwm, true, config_.replay_endpoint,
                        sockets_->replay);
}

KvEventPublisher::~KvEventPublisher() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_deadline_ = std::chrono::steady_clock::now() + kStopTimeout;
    stopping_ = true;
  }
  wake();
  thread_.join();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      stop_deadline_ - std::chrono::steady_clock::now());
  Sockets::set(sockets_->pub, ZMQ_LINGER, static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

void KvEventPublisher::start(KvEventForm form) {
  form_ = std::move(form);
  form_.rank = rank_;
  thread_ = std::thread([this] { run(); });
}

void KvEventPublisher::publish(std::vector<KvEvent>&& events) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  bool was_empty = false;
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t number = next_number_++;
    was_empty = waiting_.empty();
    is_full = waiting_.size() >= static_cast<size_t>(config_.max_queue_size);
    if (!is_full) waiting_.push_back({number, now.count(), std::move(events)});
  }
  if (is_full && num_dropped_.fetch_add(1, std::memory_order_relaxed) == 0) {
    log_warning(
        "[kv_events] {} batches wait to be published (max_queue_size), so further ones are dropped",
        config_.max_queue_size);
  }
  if (was_empty) wake();
}

void KvEventPublisher::wake() {
  const uint64_t one = 1;
  // Fails only if the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = ::write(sockets_->wake_fd, &one, sizeof one);
}

void KvEventPublisher::run() {
  while (true) {
    std::array<zmq_pollitem_t, 2> items = {
        {{nullptr, sockets_->wake_fd, ZMQ_POLLIN, 0}, {sockets_->replay, 0, ZMQ_POLLIN, 0}}};
    zmq_poll(items.data(), sockets_->replay == nullptr ? 1 : 2, -1);
    std::vector<Batch> batches;
    bool is_last = false;
    {
      const std::lock_guard lock(mutex_);
      is_last = stopping_;
      batches.swap(waiting_);
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t read = ::read(sockets_->wake_fd, &count, sizeof count);
    }
    for (const Batch& batch : batches) {
      if (stopping_ && std::chrono::steady_clock::now() > stop_deadline_) return;
      run_guarded("[kv_events] a batch could not be published", [&] { send(batch); });
    }
    if (is_last) return;
    if ((items[1].revents & ZMQ_POLLIN) != 0) {
      run_guarded("[kv_events] a replay failed", [&] { answer_replay(); });
    }
  }
}

void KvEventPublisher::send(const Batch& batch) {
  std::string payload = encode_batch(batch.timestamp, batch.events, form_);
  const Number number = big_endian(batch.number);
  if (!send_frames(sockets_->pub, {config_.topic, {number.data(), number.size()}, payload})) {
    log_warning("[kv_events] a batch could not be published: {}", zmq_strerror(zmq_errno()));
  }
  if (config_.replay_endpoint.empty() || config_.buffer_steps == 0) return;
  if (sent_.size() == static_cast<size_t>(config_.buffer_steps)) sent_.pop_front();
  sent_.push_back({batch.number, std::move(payload)});
}

// A request has two frames: an empty one, which a REQ socket adds, and the number of the first
// batch that the client lacks. Other messages are ignored, because they do not come from a client
// for KV events. Answers only one request per turn of run(), so that continuous requests do not
// delay the batches.
void KvEventPublisher::answer_replay() {
  const auto frames = receive(sockets_->replay);
  if (!frames || frames->size() != 3) return;
  if (!(*frames)[1].empty() || (*frames)[2].size() != kNumberBytes) return;
  repeat_from(from_big_endian((*frames)[2]), frames->front());
}

void KvEventPublisher::repeat_from(uint64_t first, const std::string& client) {
  const auto send_to_client = [&](std::string_view topic, uint64_t number,
                                  std::string_view payload) {
    const Number bytes = big_endian(number);
    send_frames(sockets_->replay, {client, "", topic, {bytes.data(), bytes.size()}, payload});
  };
  for (const Sent& batch : sent_) {
    if (stopping_) return;
    if (batch.number >= first) send_to_client(config_.topic, batch.number, batch.payload);
  }
  send_to_client("", UINT64_MAX, "");  // the end
}

}  // namespace quire
