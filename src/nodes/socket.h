// A connected TCP socket of plain bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "quire/status.h"

namespace quire {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Sends small messages at once. Calls that wait for the peer end after these times; 0: no limit.
  void configure(std::chrono::milliseconds send_timeout,
                 std::chrono::milliseconds receive_timeout) const;
  // Waits until the peer accepts all bytes. kUnavailable if the connection ends, or if the peer
  // accepts none for the configured time.
  Status send(std::string_view bytes) const;
  // Sends the bytes that fit into the system's buffer, and returns their number.
  size_t send_some(std::string_view bytes) const;
  // Receives at least one byte. 0: the peer has closed the connection. kUnavailable if it is broken
  // or nothing arrives for the configured time.
  Result<size_t> receive_some(std::span<char> bytes) const;
  // Receives all bytes. kUnavailable if the connection ends, or if some are missing at `deadline`.
  Status receive(std::span<char> bytes, std::chrono::steady_clock::time_point deadline) const;
  // Returns whether one of these events of poll() occurs before `deadline`. Otherwise errno has the
  // reason: EAGAIN for the deadline.
  bool await(short events, std::chrono::steady_clock::time_point deadline) const;
  // Ends all calls in which other threads wait.
  void shut_down() const;

 private:
  int fd_ = -1;
};

}  // namespace quire
