// The bytes, the clock and the wake-ups of one connection. What carries them (Asio, OpenSSL) stays
// behind this, so that a connection's logic compiles without it and runs without sockets in tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace quire::http {

// Told on the stream's thread, one call at a time, never from within a call of Stream's.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void on_open(bool ok) = 0;
  virtual void on_read(size_t num_bytes) = 0;     // 0: nothing more will come
  virtual void on_written(size_t num_bytes) = 0;  // 0: nothing more can be sent
  virtual void on_deadline() = 0;
  virtual void on_wake() = 0;
};

// At most one read and one write at a time; their memory must stay until the user has been told.
class Stream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Stream() = default;

  virtual void open(std::shared_ptr<StreamUser> user) = 0;  // held until close()
  virtual void read_some(char* to, size_t size) = 0;
  virtual void write_some(std::string_view bytes) = 0;
  virtual void shut_down() = 0;                   // nothing more to send; reading goes on
  virtual void close() = 0;                       // calls that are under way end at once
  virtual void set_deadline(TimePoint when) = 0;  // instead of the last; max(): none
  // Any thread, before close(). Never throws: a client would wait for ever for a lost wake-up.
  virtual void wake() noexcept = 0;
  // From any thread, while no write is under way: what of the bytes could be sent at once, without
  // the stream's thread. 0 where that cannot be.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
  virtual std::string peer() const = 0;
};

}  // namespace quire::http
