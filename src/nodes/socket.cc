#include "nodes/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace quire {
namespace {

Status broken(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return unavailable("the peer does not respond");
  return unavailable(std::generic_category().message(error));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

void Socket::configure(std::chrono::milliseconds send_timeout,
                       std::chrono::milliseconds receive_timeout) const {
  const int on = 1;
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A node that waits for others sends nothing. These probes detect the loss of a machine within 25
  // s.
  const int idle_seconds = 10;
  const int probe_seconds = 5;
  const int num_probes = 3;
  (void)::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &probe_seconds, sizeof probe_seconds);
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &num_probes, sizeof num_probes);
  const auto set_timeout = [&](int option, std::chrono::milliseconds timeout) {
    timeval time = {};
    time.tv_sec = static_cast<time_t>(timeout.count() / 1000);
    time.tv_usec = static_cast<suseconds_t>(timeout.count() % 1000 * 1000);
    (void)::setsockopt(fd_, SOL_SOCKET, option, &time, sizeof time);
  };
  set_timeout(SO_SNDTIMEO, send_timeout);
  set_timeout(SO_RCVTIMEO, receive_timeout);
}

Status Socket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return broken(errno);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

size_t Socket::send_some(std::string_view bytes) const {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? 0 : static_cast<size_t>(sent);
}

Result<size_t> Socket::receive_some(std::span<char> bytes) const {
  while (true) {
    const ssize_t received = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (received >= 0) return static_cast<size_t>(received);
    if (errno != EINTR) return broken(errno);
  }
}

Status Socket::receive(std::span<char> bytes,
                       std::chrono::steady_clock::time_point deadline) const {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received == 0) return unavailable("the peer has closed the connection");
    if (received > 0) {
      bytes = bytes.subspan(static_cast<size_t>(received));
    } else if (errno != EINTR) {
      if (errno != EAGAIN || !await(POLLIN, deadline)) return broken(errno);
    }
  }
  return {};
}

bool Socket::await(short events, std::chrono::steady_clock::time_point deadline) const {
  using namespace std::chrono;
  while (true) {
    const auto left = ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd polled = {.fd = fd_, .events = events, .revents = 0};
    const int num_ready =
        ::poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (num_ready > 0) return true;
    if (num_ready < 0 && errno != EINTR) return false;
    if (left <= 0) break;
  }
  errno = EAGAIN;
  return false;
}

void Socket::shut_down() const {
  (void)::shutdown(fd_, SHUT_RDWR);
}

}  // namespace quire
