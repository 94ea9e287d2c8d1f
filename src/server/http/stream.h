// The bytes, the deadline and the wake-ups of one connection. Hides Asio and OpenSSL, so that the
// connection's logic compiles without them and tests run without sockets.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace quire::http {

// Receives a stream's events on the stream's thread, one at a time, never from within a call to
// Stream.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void on_open(bool ok) = 0;
  virtual void on_read(size_t num_bytes) = 0;     // 0: no more data will arrive
  virtual void on_written(size_t num_bytes) = 0;  // 0: no more data can be sent
  virtual void on_deadline() = 0;
  virtual void on_wake() = 0;
};

// At most one read and one write are in progress at a time; their memory must stay valid until the
// callback.
class Stream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Stream() = default;

  virtual void open(std::shared_ptr<StreamUser> user) = 0;  // held until close()
  virtual void read_some(char* to, size_t size) = 0;
  virtual void write_some(std::string_view bytes) = 0;
  virtual void shut_down() = 0;                   // ends sending; reading goes on
  virtual void close() = 0;                       // cancels pending operations at once
  virtual void set_deadline(TimePoint when) = 0;  // replaces the last one; max(): none
  // Called on any thread, before close(). Never throws: a client would wait forever for a lost
  // wake-up.
  virtual void wake() noexcept = 0;
  // Called on any thread while no write is in progress. Sends what the kernel accepts at once and
  // returns the number of bytes; 0 if unsupported.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
  virtual std::string peer() const = 0;
};

}  // namespace quire::http
