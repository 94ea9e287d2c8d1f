#include "server/http/listen.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/socket_file.h"

namespace quire::http {
namespace {

std::string errno_text(int error) {
  return std::strerror(error);
}

Result<ListeningSocket> make_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return unavailable(fmt::format("[http] cannot create a socket: {}", errno_text(errno)));
  return ListeningSocket(fd, family);
}

// --- TCP ---

void set_port(sockaddr* address, int port) {
  const auto value = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = value;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = value;
  }
}

Status bind_error(const ServerConfig& config, int error) {
  if (error == EADDRINUSE) {
    return unavailable(fmt::format(
        "[http] `port` {} is in use on {}; stop the process that listens there, or choose another "
        "port (0: any free)",
        config.port, config.host));
  }
  if (error == EACCES) {
    return unavailable(fmt::format(
        "[http] `port` {} needs root privileges; choose a port from 1024 to 65535", config.port));
  }
  return unavailable(
      fmt::format("[http] `host` {} `port` {}: {}; expected an address of this machine",
                  config.host, config.port, errno_text(error)));
}

void allow_reuse(const ListeningSocket& socket) {
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

// With SO_REUSEADDR, Linux lets several sockets bind to one port until one of them listens. So the
// option is set only if bind() fails without it, which it also does while connections of an earlier
// server have not timed out.
bool bind_alone(const ListeningSocket& socket, const addrinfo& address) {
  if (::bind(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EADDRINUSE) return false;
  allow_reuse(socket);
  return ::bind(socket.fd(), address.ai_addr, address.ai_addrlen) == 0;
}

Result<ListeningSocket> bind_at(const ServerConfig& config, const addrinfo& address, int port) {
  QUIRE_ASSIGN_OR_RETURN(ListeningSocket socket, make_socket(address.ai_family));
  if (address.ai_family == AF_INET6) {
    // "::" means every address of the machine, including IPv4.
    const bool is_any =
        IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
    const int only_ipv6 = is_any ? 0 : 1;
    ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof(only_ipv6));
  }
  set_port(address.ai_addr, port);
  if (!bind_alone(socket, address)) return bind_error(config, errno);
  return socket;
}

Result<std::vector<ListeningSocket>> bind_tcp(const ServerConfig& config) {
  if (config.port < 0 || config.port > 65535) {
    return invalid_argument(fmt::format("[http] `port`: got {}, expected 0 to 65535", config.port));
  }
  if (config.host.empty()) {  // for getaddrinfo() "" means every address
    return invalid_argument("[http] `host`: got an empty text, expected an address (0.0.0.0: all)");
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(config.host.c_str(), "0", &hints, &list);
  if (error != 0) {
    return invalid_argument(
        fmt::format("[http] `host` {}: {}; expected an address or a name of this machine, and its "
                    "port as `port`",
                    config.host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  std::vector<ListeningSocket> sockets;
  Status first_error;
  int port = config.port;
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    auto socket = bind_at(config, *address, port);
    if (socket.ok()) {
      port = socket->port();  // same port for all addresses, also for port 0
      sockets.push_back(std::move(*socket));
    } else if (first_error.ok()) {
      first_error = socket.status();
    }
  }
  // Some addresses of a name may be disabled on this machine (often IPv6), so one that works is
  // enough.
  if (sockets.empty()) return first_error;
  return sockets;
}

// --- Unix ---

// Removes the socket file of a server that crashed.
Status remove_stale_socket(const std::string& path) {
  switch (socket_file_at(path)) {
    case SocketFile::kAbsent:
      return {};
    case SocketFile::kStale:
      ::unlink(path.c_str());
      return {};
    case SocketFile::kOther:
      return invalid_argument(fmt::format(
          "[http] `uds` {}: the path is a file that is not a socket; choose another path", path));
    case SocketFile::kInUse:
      break;
  }
  return unavailable(fmt::format(
      "[http] `uds` {} is in use; stop the process that listens there, or choose another path",
      path));
}

Status uds_error(const std::string& path, int error) {
  return unavailable(
      fmt::format("[http] `uds` {}: {}; expected a path in a folder that the server may write",
                  path, errno_text(error)));
}

Result<std::vector<ListeningSocket>> bind_unix(const std::string& path) {
  const std::optional<sockaddr_un> address = unix_address(path);
  if (!address) {
    return invalid_argument(fmt::format("[http] `uds` {}: got {} bytes, expected at most {}", path,
                                        path.size(), sizeof(sockaddr_un::sun_path) - 1));
  }
  QUIRE_RETURN_IF_ERROR(remove_stale_socket(path));
  QUIRE_ASSIGN_OR_RETURN(ListeningSocket socket, make_socket(AF_UNIX));
  // No client can connect before listen(), so the permissions are set in time.
  const bool is_bound =
      ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0;
  if (is_bound) socket.own_file(path);
  if (!is_bound || ::chmod(path.c_str(), 0600) != 0) return uds_error(path, errno);
  std::vector<ListeningSocket> sockets;
  sockets.push_back(std::move(socket));
  return sockets;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : fd_(other.release()),
      family_(other.family_),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListeningSocket::~ListeningSocket() {
  if (fd_ >= 0) ::close(fd_);
  if (!path_.empty() && !has_lost_file()) ::unlink(path_.c_str());
}

sockaddr_storage ListeningSocket::address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

bool ListeningSocket::is_local() const {
  const sockaddr_storage address = this->address();
  if (address.ss_family == AF_UNIX) return true;
  constexpr uint8_t kLoopbackNet = 127;
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return ntohl(ipv4.s_addr) >> 24 == kLoopbackNet;
  }
  if (address.ss_family != AF_INET6) return false;
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ipv6) ||
         (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == kLoopbackNet);
}

int ListeningSocket::port() const {
  const sockaddr_storage address = this->address();
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return 0;
}

int ListeningSocket::release() {
  return std::exchange(fd_, -1);
}

void ListeningSocket::own_file(std::string path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  path_ = std::move(path);
}

bool are_local(const std::vector<ListeningSocket>& sockets) {
  return std::all_of(sockets.begin(), sockets.end(),
                     [](const ListeningSocket& socket) { return socket.is_local(); });
}

bool ListeningSocket::has_lost_file() const {
  struct stat info {};
  return !path_.empty() &&
         (::lstat(path_.c_str(), &info) != 0 || info.st_dev != device_ || info.st_ino != inode_);
}

Result<std::vector<ListeningSocket>> bind_to(const ServerConfig& config) {
  return config.uds.empty() ? bind_tcp(config) : bind_unix(config.uds);
}

Status start_listening(const ServerConfig& config, const std::vector<ListeningSocket>& sockets) {
  for (const ListeningSocket& socket : sockets) {
    if (socket.has_lost_file()) {
      return unavailable(fmt::format(
          "[http] `uds` {} was replaced, probably by another server; give each server its own path",
          config.uds));
    }
    // Without this option, a restart would fail until the connections have timed out.
    if (socket.family() != AF_UNIX) allow_reuse(socket);
    if (::listen(socket.fd(), kBacklog) != 0) {
      return config.uds.empty() ? bind_error(config, errno) : uds_error(config.uds, errno);
    }
  }
  return {};
}

Result<std::vector<ListeningSocket>> listen_on(const ServerConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, bind_to(config));
  QUIRE_RETURN_IF_ERROR(start_listening(config, sockets));
  return sockets;
}

}  // namespace quire::http
