#include "nodes/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/hmac.h>
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

#include "base/byte_archive.h"
#include "base/log.h"
#include "base/text.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::string_view kMagic = "quire nodes 2\n";
constexpr size_t kNonceBytes = 32;
constexpr size_t kMacBytes = 32;
constexpr size_t kMaxHelloBytes = 32 << 10;
// Time for a connection to send its hello.
constexpr auto kHelloTimeout = 10s;
constexpr auto kRetryInterval = 300ms;
// Nodes that start together are connected before the first report.
constexpr std::chrono::milliseconds kFirstReport = 5s;
constexpr auto kReportInterval = 15s;
// Connections without a hello; the oldest gives way to a newer one.
constexpr size_t kMaxPending = 64;
// Dropped connections that the log names.
constexpr int kMaxReports = 20;
constexpr size_t kMinTokenBytes = 16;

// ---- The messages: node 0 sends kMagic and a nonce. The node answers with a Hello and its code.
// Node 0 sends a Verdict and its code: a refusal at once, a welcome when all nodes have arrived, so
// that all begin at the same time, and until then about every second that others are missing.
// Hello and Verdict are preceded by their lengths. If the node's code is wrong, node 0 sends an
// empty verdict and zeros: it signs nothing for other programs.

struct Hello {
  std::string nonce;
  int32_t node = 0;
  int32_t num_nodes = 0;
  std::string host;
  std::vector<std::pair<std::string, std::string>> settings;
};
template <typename Archive, typename Value>
requires std::is_same_v<std::remove_const_t<Value>, Hello>
void fields(Archive& archive, Value& hello) {
  archive(hello.nonce, hello.node, hello.num_nodes, hello.host, hello.settings);
}

enum class Answer : uint8_t { kWelcome, kRefused, kWaiting };
struct Verdict {
  uint8_t answer = 0;
  std::string text;  // the host name of node 0, or the reason
};
template <typename Archive, typename Value>
requires std::is_same_v<std::remove_const_t<Value>, Verdict>
void fields(Archive& archive, Value& verdict) {
  archive(verdict.answer, verdict.text);
}

template <typename T>
std::string bytes_of(const T& message) {
  ByteWriter writer;
  writer(message);
  return writer.take();
}

std::string with_length(std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += message;
  return bytes;
}

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getentropy(nonce.data(), nonce.size()) != 0) nonce.clear();
  return nonce;
}

// The code that only a node with the token can compute.
std::string code_of(std::string_view token, std::string_view sender, std::string_view peer_nonce,
                    std::string_view message) {
  const std::string text = fmt::format("{}\n{}{}", sender, peer_nonce, message);
  std::string code(kMacBytes, '\0');
  unsigned int size = 0;
  const bool made =
      ::HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
             static_cast<const unsigned char*>(static_cast<const void*>(text.data())), text.size(),
             static_cast<unsigned char*>(static_cast<void*>(code.data())), &size) != nullptr;
  return made && size == kMacBytes ? code : "";
}

// In the same time, whatever the first difference is.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  int difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
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

// A program that reads a hello can try tokens without any connection.
void warn_of_short_token(std::string_view token) {
  if (token.empty() || token.size() >= kMinTokenBytes) return;
  log_warning(
      "[nodes] QUIRE_CLUSTER_TOKEN has {} characters, expected at least {}: a short one can be "
      "guessed; take a random one, such as of: openssl rand -hex 16",
      token.size(), kMinTokenBytes);
}

// ---- Node 0

Result<Socket> listen_at(const NodePlace& place, const addrinfo& addresses) {
  std::string reason;
  // A machine's own name is often a loopback address, too, which the other machines cannot reach.
  for (const bool loopback : {false, true}) {
    for (const addrinfo* address = &addresses; address != nullptr; address = address->ai_next) {
      if (is_loopback(*address) != loopback) continue;
      Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1;
      (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (socket.is_open() && ::bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 &&
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

// A connection that has not sent its hello.
struct PendingConnection {
  Socket socket;
  std::string address;
  std::string nonce;
  std::string received;
  Clock::time_point deadline;
};

// A node that waits for the others.
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

  // A node sends nothing while it waits, so its process has ended. It may be started again.
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
    const std::string greeting = fmt::format("{}{}", kMagic, connection.nonce);
    if (connection.nonce.empty() || connection.socket.send_some(greeting) != greeting.size())
      return;
    pending_.push_back(std::move(connection));
  }

  // Returns whether more of the hello is awaited.
  bool read(PendingConnection& connection) {
    std::array<char, 4096> bytes;
    const Result<size_t> received = connection.socket.receive_some(bytes);
    if (!received.ok() || *received == 0) {
      drop(connection, "it has closed the connection");
      return false;
    }
    connection.received.append(bytes.data(), *received);
    uint32_t size = 0;
    if (connection.received.size() < sizeof size) return true;
    std::memcpy(&size, connection.received.data(), sizeof size);
    if (size > kMaxHelloBytes) {
      drop(connection, "its bytes are not those of a node of Quire");
      return false;
    }
    if (connection.received.size() < sizeof size + size + kMacBytes) return true;
    const std::string_view whole = connection.received;
    handle_hello(connection, whole.substr(sizeof size, size), whole.substr(sizeof size + size));
    return false;
  }

  // The connection becomes that of a node, or is dropped.
  void handle_hello(PendingConnection& connection, std::string_view message,
                    std::string_view code) {
    Hello hello;
    ByteReader reader(message);
    reader(hello);
    if (!are_equal(code, code_of(config_.token, "node", connection.nonce, message))) {
      (void)connection.socket.send_some(with_length("") + std::string(kMacBytes, '\0'));
      return drop(connection, "it has another QUIRE_CLUSTER_TOKEN");
    }
    const std::string name = fmt::format("node {} ({})", hello.node, one_line(hello.host));
    const std::string misfit = reader.is_complete() && hello.nonce.size() == kNonceBytes
                                   ? find_misfit(hello, name)
                                   : "the hello is malformed";
    if (!misfit.empty()) return refuse(connection, hello.nonce, misfit);
    WaitingNode& node = nodes_[static_cast<size_t>(hello.node - 1)];
    if (node.connected.socket.is_open()) {
      return refuse(connection, hello.nonce,
                    fmt::format("{} is already connected, from {}; start each `node_rank` once",
                                name, node.connected.host));
    }
    node = {.connected = {.node = hello.node,
                          .host = one_line(hello.host),
                          .socket = std::move(connection.socket)},
            .nonce = std::move(hello.nonce)};
    ++num_met_;
    log_info("[nodes] {} is connected", name);
  }

  // Empty: the node was started as node 0 was.
  std::string find_misfit(const Hello& hello, std::string_view name) const {
    const NodePlace& place = config_.place;
    const auto differs = [&](std::string_view setting, std::string_view got,
                             std::string_view expected) {
      return fmt::format(
          "{} differs from node 0 in `{}`: got {}, expected {}; start all nodes with the same "
          "model, "
          "flags and version of Quire",
          name, one_line(setting), one_line(got), one_line(expected));
    };
    if (hello.num_nodes != place.num_nodes) {
      return differs("nnodes", fmt::to_string(hello.num_nodes), fmt::to_string(place.num_nodes));
    }
    if (hello.node < 1 || hello.node >= place.num_nodes) {
      return fmt::format("{}: expected a `node_rank` of 1 to {}", name, place.num_nodes - 1);
    }
    for (size_t i = 0; i < config_.settings.size(); ++i) {
      const auto& [setting, expected] = config_.settings[i];
      if (i >= hello.settings.size() || hello.settings[i].first != setting) {
        return differs("version", "other settings", "the same version of Quire");
      }
      if (hello.settings[i].second != expected) {
        return differs(setting, hello.settings[i].second, expected);
      }
    }
    return "";
  }

  void answer(const Socket& socket, std::string_view nonce, Answer answer, std::string text) const {
    const std::string message =
        bytes_of(Verdict{.answer = static_cast<uint8_t>(answer), .text = std::move(text)});
    (void)socket.send_some(with_length(message) + code_of(config_.token, "node 0", nonce, message));
  }

  // Node 0 waits on, because the node can be started again with other flags.
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
      "listens at {} port {}; set `master_port` to a free port of node 0, and the same token",
      config.place.master_addr, config.place.master_port));
}

// Absent: node 0 does not listen yet.
std::optional<Socket> try_connect(const addrinfo& addresses) {
  for (const addrinfo* address = &addresses; address != nullptr; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) continue;
    socket.configure(kHelloTimeout, kHelloTimeout);
    if (::connect(socket.fd(), address->ai_addr, address->ai_addrlen) == 0) return socket;
  }
  return std::nullopt;
}

// Waits for node 0's next verdict for at most `time`.
Result<Verdict> receive_verdict(const NodesConfig& config, const Socket& socket,
                                std::string_view nonce, std::chrono::milliseconds time) {
  socket.configure(kHelloTimeout, time);
  uint32_t size = 0;
  QUIRE_RETURN_IF_ERROR(
      socket.receive({static_cast<char*>(static_cast<void*>(&size)), sizeof size}));
  if (size > kMaxHelloBytes) return other_program(config);
  std::string reply(size + kMacBytes, '\0');
  QUIRE_RETURN_IF_ERROR(socket.receive(reply));
  const std::string_view answer = std::string_view(reply).substr(0, size);
  Verdict verdict;
  ByteReader reader(answer);
  reader(verdict);
  if (!reader.is_complete() || !are_equal(std::string_view(reply).substr(size),
                                          code_of(config.token, "node 0", nonce, answer))) {
    return other_program(config);
  }
  return verdict;
}

// Returns the host name of node 0 when all nodes have arrived, at the latest at `deadline`.
// kUnavailable: the connection has ended, as while node 0 stops; another may succeed. Other errors
// end the start, also that of a node 0 that is silent.
Result<std::string> send_hello(const NodesConfig& config, const Socket& socket,
                               Clock::time_point deadline) {
  std::string greeting(kMagic.size() + kNonceBytes, '\0');
  QUIRE_RETURN_IF_ERROR(socket.receive(greeting));
  if (!greeting.starts_with(kMagic)) return other_program(config);
  const Hello hello = {.nonce = make_nonce(),
                       .node = config.place.node,
                       .num_nodes = config.place.num_nodes,
                       .host = own_host_name(),
                       .settings = config.settings};
  if (hello.nonce.empty()) return unavailable("the system has no random numbers");
  const std::string message = bytes_of(hello);
  QUIRE_RETURN_IF_ERROR(socket.send(
      with_length(message) +
      code_of(config.token, "node", std::string_view(greeting).substr(kMagic.size()), message)));
  while (true) {
    const Clock::time_point start = Clock::now();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - start);
    const auto time = std::max<std::chrono::milliseconds>(
        std::min<std::chrono::milliseconds>(left, config.silence_timeout), 100ms);
    const Result<Verdict> verdict = receive_verdict(config, socket, hello.nonce, time);
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
    const auto answer = static_cast<Answer>(verdict->answer);
    if (answer == Answer::kWelcome) return one_line(verdict->text);
    if (answer != Answer::kWaiting) return invalid_argument(one_line(verdict->text));
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
    Status error = unavailable("nothing listens there");
    const Result<AddressList> addresses = resolve(config.place);
    if (addresses.ok()) {
      QUIRE_RETURN_IF_ERROR(check_token(config, **addresses));
      if (std::optional<Socket> socket = try_connect(**addresses)) {
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

}  // namespace quire
