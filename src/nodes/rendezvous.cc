#include "nodes/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "nodes/messages.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Time for a connection to send its hello.
constexpr auto kHelloTimeout = 10s;
// Time for a machine to accept a connection; a firewall may drop the attempt without an answer.
constexpr auto kConnectTimeout = 10s;
constexpr auto kRetryInterval = 300ms;
// Long enough for nodes that start together to connect, so that they cause no report.
constexpr std::chrono::milliseconds kFirstReport = 5s;
constexpr auto kReportInterval = 15s;
// Maximum number of connections without a hello; a newer connection replaces the oldest.
constexpr size_t kMaxPending = 64;
// Maximum number of dropped connections that are logged.
constexpr int kMaxReports = 20;
constexpr size_t kMinTokenBytes = 16;

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getentropy(nonce.data(), nonce.size()) != 0) nonce.clear();
  return nonce;
}

// ---- Addresses

std::string own_host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

struct AddressListDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

Result<AddressList> resolve(const NodePlace& place) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(place.master_addr.c_str(),
                                  fmt::to_string(place.master_port).c_str(), &hints, &list);
  if (error == 0) return AddressList(list);
  return unavailable(fmt::format("[nodes] `master_addr`: {} cannot be resolved; {}",
                                 one_line(place.master_addr), ::gai_strerror(error)));
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    sockaddr_in ip = {};
    std::memcpy(&ip, address.ai_addr, sizeof ip);
    return (ntohl(ip.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 ip = {};
  std::memcpy(&ip, address.ai_addr, std::min<size_t>(sizeof ip, address.ai_addrlen));
  return IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr);
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host = {};
  std::array<char, NI_MAXSERV> port = {};
  if (::getnameinfo(static_cast<const sockaddr*>(static_cast<const void*>(&address)), size,
                    host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return fmt::format("{} port {}", host.data(), port.data());
}

Status check_token(const NodesConfig& config, const addrinfo& addresses) {
  if (!config.token.empty()) return {};
  for (const addrinfo* address = &addresses; address != nullptr; address = address->ai_next) {
    if (is_loopback(*address)) continue;
    return invalid_argument(
        fmt::format("[nodes] QUIRE_CLUSTER_TOKEN is not set, and other machines can reach {}; set "
                    "it to the same "
                    "secret on all nodes",
                    one_line(config.place.master_addr)));
  }
  return {};
}

// A program that has received one hello can try tokens offline.
void warn_of_short_token(std::string_view token) {
  if (token.empty() || token.size() >= kMinTokenBytes) return;
  log_warning(
      "[nodes] QUIRE_CLUSTER_TOKEN has {} characters, expected at least {}: a short one can be "
      "guessed; generate a random one by: openssl rand -hex 16",
      token.size(), kMinTokenBytes);
}

// ---- Node 0

Result<Socket> listen_at(const NodePlace& place, const addrinfo& addresses) {
  std::string reason;
  // A machine's own name often also resolves to a loopback address. Other machines cannot reach
  // that address, so it is tried last.
  for (const bool loopback : {false, true}) {
    for (const addrinfo* address = &addresses; address != nullptr; address = address->ai_next) {
      if (is_loopback(*address) != loopback) continue;
      Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1;
      if (socket.is_open() &&
          ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
          ::bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 &&
          ::listen(socket.fd(), 128) == 0) {
        return socket;
      }
      reason = std::generic_category().message(errno);
    }
  }
  return unavailable(fmt::format(
      "[nodes] node 0 cannot listen at `master_addr` {} port {}; {}; expected an address of this "
      "machine and a free port (`master_port`)",
      one_line(place.master_addr), place.master_port, reason));
}

// A connection that has not sent its whole hello.
struct PendingConnection {
  Socket socket;
  std::string address;
  std::string nonce;
  std::string received;
  Clock::time_point deadline;
};

// A connected node that waits for the other nodes.
struct WaitingNode {
  ConnectedNode connected;
  std::string nonce;  // of its hello
};

class Acceptor {
 public:
  Acceptor(const NodesConfig& config, Socket listener)
      : config_(config),
        listener_(std::move(listener)),
        nodes_(static_cast<size_t>(config.place.num_nodes - 1)) {}

  Result<std::vector<ConnectedNode>> wait_for_all() {
    log_info("[nodes] node 0 of {} waits for the others at {} port {}", config_.place.num_nodes,
             config_.place.master_addr, config_.place.master_port);
    const Status all = poll_until_all();
    std::vector<ConnectedNode> connected;
    for (WaitingNode& node : nodes_) {
      const Socket& socket = node.connected.socket;
      if (!socket.is_open()) continue;
      if (all.ok()) {
        answer(socket, node.nonce, Answer::kWelcome, own_host_name());
      } else {
        answer(socket, node.nonce, Answer::kRefused, all.message());
      }
      connected.push_back(std::move(node.connected));
    }
    QUIRE_RETURN_IF_ERROR(all);
    return connected;
  }

 private:
  Status poll_until_all() {
    const Clock::time_point start = Clock::now();
    Clock::time_point next_report = start + std::min(kFirstReport, config_.meet_timeout / 2);
    const auto sign_interval =
        std::clamp<std::chrono::milliseconds>(config_.silence_timeout / 8, 20ms, 1s);
    Clock::time_point next_sign = start;
    while (num_met_ < nodes_.size()) {
      poll_once();
      const Clock::time_point now = Clock::now();
      if (now >= next_sign) {
        next_sign = now + sign_interval;
        for (const WaitingNode& node : nodes_) {
          const Socket& socket = node.connected.socket;
          if (socket.is_open()) answer(socket, node.nonce, Answer::kWaiting, "");
        }
      }
      if (num_met_ == nodes_.size()) break;
      if (now >= next_report) {
        next_report = now + kReportInterval;
        log_warning("[nodes] {} not connected yet; node 0 waits for them at {} port {}", missing(),
                    config_.place.master_addr, config_.place.master_port);
      }
      if (now - start > config_.meet_timeout) {
        return unavailable(fmt::format(
            "[nodes] {} not connected to node 0 within {} s; expected them at {} port {}{}",
            missing(),
            std::chrono::duration_cast<std::chrono::seconds>(config_.meet_timeout).count(),
            config_.place.master_addr, config_.place.master_port,
            last_refusal_.empty() ? "" : "; last refused: " + last_refusal_));
      }
    }
    return {};
  }

  std::string missing() const {
    std::vector<int> numbers;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].connected.socket.is_open()) numbers.push_back(static_cast<int>(i) + 1);
    }
    return fmt::format("{} {} {}", numbers.size() == 1 ? "node" : "nodes", fmt::join(numbers, ", "),
                       numbers.size() == 1 ? "has" : "have");
  }

  void poll_once() {
    std::vector<pollfd> polled = {{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
    for (const WaitingNode& node : nodes_) {  // poll() ignores the fd -1
      polled.push_back({.fd = node.connected.socket.fd(), .events = POLLIN, .revents = 0});
    }
    for (const PendingConnection& connection : pending_) {
      polled.push_back({.fd = connection.socket.fd(), .events = POLLIN, .revents = 0});
    }
    (void)::poll(polled.data(), polled.size(), 200);
    size_t i = 1;
    for (WaitingNode& node : nodes_) {
      if (polled[i++].revents != 0) remove(node);
    }
    for (auto connection = pending_.begin(); connection != pending_.end(); ++i) {
      bool stays = Clock::now() < connection->deadline;
      if (!stays) {
        drop(*connection, fmt::format("it sent no hello within {} s",
                                      std::chrono::seconds(kHelloTimeout).count()));
      } else if (polled[i].revents != 0) {
        stays = read(*connection);
      }
      connection = stays ? std::next(connection) : pending_.erase(connection);
    }
    if (polled[0].revents != 0) accept();
  }

  // A waiting node sends nothing, so its process has ended. It may be started again.
  void remove(WaitingNode& node) {
    log_warning("[nodes] node {} ({}) closed its connection before all nodes were connected",
                node.connected.node, node.connected.host);
    node = {};
    --num_met_;
  }

  void accept() {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    Socket socket(::accept4(listener_.fd(), static_cast<sockaddr*>(static_cast<void*>(&address)),
                            &size, SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    if (pending_.size() == kMaxPending) {
      drop(pending_.front(), "newer connections take its place");
      pending_.pop_front();
    }
    PendingConnection connection = {.socket = std::move(socket),
                                    .address = text_of(address, size),
                                    .nonce = make_nonce(),
                                    .received = {},
                                    .deadline = Clock::now() + kHelloTimeout};
    connection.socket.configure(kHelloTimeout, kHelloTimeout);
    const std::string greeting = fmt::format("{}{}", kGreeting, connection.nonce);
    if (connection.nonce.empty() || connection.socket.send_some(greeting) != greeting.size())
      return;
    pending_.push_back(std::move(connection));
  }

  // Returns whether more bytes of the hello are expected.
  bool read(PendingConnection& connection) {
    std::array<char, 4096> bytes;
    const Result<size_t> received = connection.socket.receive_some(bytes);
    if (!received.ok() || *received == 0) {
      drop(connection, "it has closed the connection");
      return false;
    }
    connection.received.append(bytes.data(), *received);
    const std::string_view whole = connection.received;
    if (whole.size() < kLengthBytes) return true;
    const std::optional<size_t> size = signed_size(whole);
    if (!size) {
      drop(connection,
           fmt::format("it has sent {} bytes that are not those of a node of Quire", whole.size()));
      return false;
    }
    if (whole.size() < kLengthBytes + *size) return true;
    handle_hello(connection, whole.substr(kLengthBytes, *size));
    return false;
  }

  // Assigns the connection to a node, or drops it.
  void handle_hello(PendingConnection& connection, std::string_view bytes) {
    const std::optional<std::string_view> message =
        check_signed(bytes, config_.token, "node", connection.nonce);
    if (!message) {
      (void)connection.socket.send_some(unsigned_answer());
      return drop(connection, "it has another QUIRE_CLUSTER_TOKEN");
    }
    std::optional<Hello> read = read_hello(*message);
    if (!read) {
      const std::string reason = fmt::format(
          "its hello of {} bytes is malformed, expected one of this build of Quire; run the same "
          "build on all nodes",
          message->size());
      last_refusal_ = fmt::format("{}: {}", connection.address, reason);
      (void)connection.socket.send_some(unsigned_answer());
      return drop(connection, reason);
    }
    Hello& hello = *read;
    const std::string name = fmt::format("node {} ({})", hello.node, hello.host);
    const std::string misfit = find_misfit(hello, name);
    if (!misfit.empty()) return refuse(connection, hello.nonce, misfit);
    WaitingNode& node = nodes_[static_cast<size_t>(hello.node - 1)];
    if (node.connected.socket.is_open()) {
      return refuse(connection, hello.nonce,
                    fmt::format("{} is already connected, from {}; start each `node_rank` once",
                                name, node.connected.host));
    }
    node = {.connected = {.node = hello.node,
                          .host = std::move(hello.host),
                          .socket = std::move(connection.socket)},
            .nonce = std::move(hello.nonce)};
    ++num_met_;
    log_info("[nodes] {} is connected", name);
  }

  // Returns how the node's start differs from node 0's; empty: it does not differ.
  std::string find_misfit(const Hello& hello, std::string_view name) const {
    const NodePlace& place = config_.place;
    const auto misfit = [&](const SettingDifference& difference) {
      return fmt::format("{} {}; {}", name, describe(difference), remedy_of(difference));
    };
    if (hello.num_nodes != place.num_nodes) {
      return misfit({"nnodes", fmt::to_string(hello.num_nodes), fmt::to_string(place.num_nodes)});
    }
    if (const auto difference = first_difference(hello.settings, config_.settings)) {
      return misfit(*difference);
    }
    if (hello.node < 1 || hello.node >= place.num_nodes) {
      return fmt::format("{}: expected a `node_rank` of 1 to {}", name, place.num_nodes - 1);
    }
    return "";
  }

  void answer(const Socket& socket, std::string_view nonce, Answer answer, std::string text) const {
    const std::string message = verdict_bytes({.answer = answer, .text = std::move(text)});
    (void)socket.send_some(signed_bytes(message, config_.token, "node 0", nonce));
  }

  // Node 0 continues to wait, because the node can be started again with other flags.
  void refuse(const PendingConnection& connection, std::string_view nonce,
              const std::string& reason) {
    answer(connection.socket, nonce, Answer::kRefused, "[nodes] " + reason);
    drop(connection, reason);
    last_refusal_ = reason;
  }

  void drop(const PendingConnection& connection, std::string_view reason) {
    if (num_reports_ < kMaxReports) {
      log_warning("[nodes] dropped a connection from {}: {}", connection.address, reason);
    }
    if (++num_reports_ == kMaxReports) {
      log_warning("[nodes] further dropped connections are not reported");
    }
  }

  const NodesConfig& config_;
  Socket listener_;
  std::list<PendingConnection> pending_;
  std::vector<WaitingNode> nodes_;  // by number, from 1
  size_t num_met_ = 0;
  int num_reports_ = 0;
  std::string last_refusal_;  // of a node that has the token; empty: none
};

// ---- The other nodes

Status other_program(const NodesConfig& config) {
  return invalid_argument(fmt::format(
      "[nodes] another program than this version of Quire, or one with another "
      "QUIRE_CLUSTER_TOKEN, "
      "listens at {} port {}; set `master_port` to a free port of node 0, and run the same build "
      "with the same token on all nodes",
      config.place.master_addr, config.place.master_port));
}

Result<Socket> connect_to(const addrinfo& address, Clock::time_point deadline) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = 0;
  if (!socket.is_open() || ::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    if (!socket.await(POLLOUT, deadline)) return unavailable("nothing answers there");
    socklen_t size = sizeof error;
    (void)::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) return unavailable(std::generic_category().message(error));
  (void)::fcntl(socket.fd(), F_SETFL, 0);  // it blocks from here on
  socket.configure(kHelloTimeout, kHelloTimeout);
  return socket;
}

// Connects to the first address that accepts a connection.
Result<Socket> connect_to_any(const addrinfo& addresses, Clock::time_point deadline) {
  Status error;
  for (const addrinfo* address = &addresses; address != nullptr; address = address->ai_next) {
    Result<Socket> socket =
        connect_to(*address, std::min<Clock::time_point>(deadline, Clock::now() + kConnectTimeout));
    if (socket.ok()) return socket;
    error = socket.status();
  }
  return error;
}

// Waits for node 0's next verdict until `deadline`.
Result<Verdict> receive_verdict(const NodesConfig& config, const Socket& socket,
                                std::string_view nonce, Clock::time_point deadline) {
  std::string length(kLengthBytes, '\0');
  QUIRE_RETURN_IF_ERROR(socket.receive(length, deadline));
  const std::optional<size_t> size = signed_size(length);
  if (!size) return other_program(config);
  std::string bytes(*size, '\0');
  QUIRE_RETURN_IF_ERROR(socket.receive(bytes, deadline));
  const std::optional<std::string_view> message =
      check_signed(bytes, config.token, "node 0", nonce);
  std::optional<Verdict> verdict = message ? read_verdict(*message) : std::nullopt;
  if (!verdict) return other_program(config);
  return std::move(*verdict);
}

// Returns the host name of node 0 when all nodes have arrived. Fails if `deadline` passes before.
// kUnavailable: the connection has ended, for example because node 0 is stopping; another
// connection may succeed. Other errors, such as a silent node 0, end the start. Each wait is for a
// whole message, so that a peer that sends a byte from time to time does not prolong it.
Result<std::string> send_hello(const NodesConfig& config, const Socket& socket,
                               Clock::time_point deadline) {
  std::string greeting(kGreeting.size() + kNonceBytes, '\0');
  const Clock::time_point greeted = Clock::now() + kHelloTimeout;
  QUIRE_RETURN_IF_ERROR(socket.receive(greeting, std::min<Clock::time_point>(deadline, greeted)));
  if (!greeting.starts_with(kGreeting)) return other_program(config);
  const Hello hello = {.nonce = make_nonce(),
                       .node = config.place.node,
                       .num_nodes = config.place.num_nodes,
                       .host = own_host_name(),
                       .settings = config.settings};
  if (hello.nonce.empty()) return unavailable("the system has no random numbers");
  // The whole message fits into the buffer of a new connection. If node 0 has closed the
  // connection, its reason may still be readable.
  (void)socket.send_some(signed_bytes(hello_bytes(hello), config.token, "node",
                                      std::string_view(greeting).substr(kGreeting.size())));
  while (true) {
    const Clock::time_point start = Clock::now();
    const Clock::time_point last = std::max<Clock::time_point>(deadline, start + 100ms);
    const Result<Verdict> verdict =
        receive_verdict(config, socket, hello.nonce,
                        std::min<Clock::time_point>(last, start + config.silence_timeout));
    const auto silence = Clock::now() - start;
    if (verdict.status().code() == StatusCode::kUnavailable) {
      if (silence < config.silence_timeout) {
        return unavailable(
            fmt::format("node 0 accepted the connection, but did not answer; {}; it waits until "
                        "all nodes are connected",
                        verdict.status().message()));
      }
      return internal_error(fmt::format(
          "[nodes] node 0 at {} port {} is silent for {:.1f} s: its process hangs, or its machine "
          "or the network is down",
          config.place.master_addr, config.place.master_port,
          std::chrono::duration<double>(silence).count()));
    }
    QUIRE_RETURN_IF_ERROR(verdict.status());
    if (verdict->answer == Answer::kWelcome) return verdict->text;
    if (verdict->answer == Answer::kRefused) return invalid_argument(verdict->text);
    if (Clock::now() > deadline) {
      return unavailable("node 0 waits until all nodes are connected");
    }
  }
}

Result<std::vector<ConnectedNode>> join_node_0(const NodesConfig& config) {
  const Clock::time_point deadline = Clock::now() + config.meet_timeout;
  Clock::time_point next_report = Clock::now() + std::min(kFirstReport, config.meet_timeout / 2);
  log_info("[nodes] node {} of {} connects to node 0 at {} port {}", config.place.node,
           config.place.num_nodes, config.place.master_addr, config.place.master_port);
  while (true) {
    Status error;
    const Result<AddressList> addresses = resolve(config.place);
    if (addresses.ok()) {
      QUIRE_RETURN_IF_ERROR(check_token(config, **addresses));
      Result<Socket> socket = connect_to_any(**addresses, deadline);
      error = socket.status();
      if (socket.ok()) {
        Result<std::string> host = send_hello(config, *socket, deadline);
        if (host.ok()) {
          std::vector<ConnectedNode> nodes;
          nodes.push_back({.node = 0, .host = std::move(*host), .socket = std::move(*socket)});
          return nodes;
        }
        if (host.status().code() != StatusCode::kUnavailable) return host.status();
        error = host.status();
      }
    } else {
      error = addresses.status();  // names of new pods resolve late
    }
    if (Clock::now() > next_report) {
      next_report = Clock::now() + kReportInterval;
      log_warning("[nodes] node {} is not connected to node 0 yet; {}", config.place.node,
                  error.message());
    }
    if (Clock::now() > deadline) {
      return unavailable(fmt::format(
          "[nodes] node {} cannot connect to node 0 at {} port {}; {}; start node 0, and check "
          "`master_addr`, `master_port` and firewalls",
          config.place.node, config.place.master_addr, config.place.master_port, error.message()));
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

}  // namespace

Result<std::vector<ConnectedNode>> meet_nodes(const NodesConfig& config) {
  warn_of_short_token(config.token);
  if (config.place.node > 0) return join_node_0(config);
  QUIRE_ASSIGN_OR_RETURN(const AddressList addresses, resolve(config.place));
  QUIRE_RETURN_IF_ERROR(check_token(config, *addresses));
  QUIRE_ASSIGN_OR_RETURN(Socket listener, listen_at(config.place, *addresses));
  return Acceptor(config, std::move(listener)).wait_for_all();
}

Result<std::string> check_rendezvous(const NodesConfig& config) {
  warn_of_short_token(config.token);
  const NodePlace& place = config.place;
  QUIRE_ASSIGN_OR_RETURN(const AddressList addresses, resolve(place));
  QUIRE_RETURN_IF_ERROR(check_token(config, *addresses));
  const std::string token = config.token.empty()
                                ? "no token, which a loopback address permits"
                                : fmt::format("a token of {} characters", config.token.size());
  if (place.node == 0) {
    QUIRE_RETURN_IF_ERROR(listen_at(place, *addresses).status());
    return fmt::format("node 0 of {}: {} port {} is free, {}", place.num_nodes, place.master_addr,
                       place.master_port, token);
  }
  const Clock::time_point deadline = Clock::now() + 3s;
  const Result<Socket> socket = connect_to_any(*addresses, deadline);
  std::string found = "is that of node 0, which waits";
  if (!socket.ok()) {
    found = fmt::format("does not answer yet ({})", socket.status().message());
  } else {
    std::string greeting(kGreeting.size(), '\0');
    if (!socket->receive(greeting, deadline).ok() || greeting != kGreeting) {
      return other_program(config);
    }
  }
  return fmt::format("node {} of {}: {} port {} {}, {}", place.node, place.num_nodes,
                     place.master_addr, place.master_port, found, token);
}

}  // namespace quire
