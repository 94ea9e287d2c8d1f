// One client connection, and the interface to its stream of bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "server/http/client_address.h"
#include "server/http/http.h"
#include "server/http/pending_response.h"
#include "server/http/request_parser.h"
#include "server/http/server.h"

namespace quire::http {

// The result of opening a stream; with TLS, of the handshake.
enum class OpenResult { kDone, kFailed, kPlainHttp };  // kPlainHttp: HTTP came to a TLS port

// Receives a stream's events on the stream's thread, one at a time, never from within a call to
// Stream.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void on_open(OpenResult result) = 0;
  virtual void on_read(size_t num_bytes) = 0;     // 0: no more data will arrive
  virtual void on_written(size_t num_bytes) = 0;  // 0: no more data can be sent
  virtual void on_deadline() = 0;
  virtual void on_wake() = 0;
  virtual void on_reset() = 0;  // see Stream::watch_reset()
};

// The bytes, the deadline and the wake-ups of one connection. Hides Asio and OpenSSL, so that the
// connection's logic compiles without them and tests run without sockets.
//
// At most one read and one write are in progress at a time; their memory must stay valid until the
// callback.
class Stream {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Stream() = default;

  virtual void open(std::shared_ptr<StreamUser> user) = 0;  // held until close()
  virtual void read_some(char* to, size_t size) = 0;
  virtual void write_some(std::string_view bytes) = 0;
  virtual void shut_down() = 0;  // ends sending; reading goes on
  // Called after kPlainHttp. Sends the unencrypted bytes that the kernel accepts at once, then ends
  // sending.
  virtual void end_unencrypted(std::string_view /*bytes*/) {}
  // Called after the client has shut down its sending side, to detect whether it has closed the
  // connection altogether. If so, the client's system answers the next bytes with a reset, and the
  // stream calls on_reset(). Returns false if the stream cannot detect this; the connection then
  // counts as closed.
  virtual bool watch_reset() { return false; }
  virtual void close() = 0;                       // cancels pending operations at once
  virtual void set_deadline(TimePoint when) = 0;  // replaces the last one; max(): none
  // Called on any thread, before close(). Never throws, because a client would wait forever after a
  // lost wake-up.
  virtual void wake() noexcept = 0;
  // Called on any thread while no write is in progress. Sends the bytes that the kernel accepts at
  // once and returns their number; 0 if unsupported.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
  virtual std::string peer() const = 0;
};

// A buffer of bytes that were read and not yet parsed. It grows as it fills, up to `max_bytes`.
class ReadBuffer {
 public:
  explicit ReadBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}

  std::string_view bytes() const { return {memory_.data() + begin_, end_ - begin_}; }
  bool is_full() const { return end_ - begin_ == max_bytes_; }

  // Returns memory for the next read; empty only if is_full().
  std::pair<char*, size_t> make_room() {
    if (begin_ > 0) {
      std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    constexpr size_t kFirstBytes = 4096;
    if (end_ == memory_.size()) {
      memory_.resize(std::min(max_bytes_, std::max(kFirstBytes, memory_.size() * 2)));
    }
    return {memory_.data() + end_, memory_.size() - end_};
  }
  void add(size_t num_bytes) { end_ += num_bytes; }
  // Does not move memory, because a read may be in progress.
  void consume(size_t num_bytes) { begin_ += num_bytes; }
  void clear() { begin_ = end_ = 0; }

 private:
  const size_t max_bytes_;
  std::vector<char> memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

struct Counters {
  std::atomic<int> num_open = 0;
  std::atomic<int64_t> num_accepted = 0;
  std::atomic<int64_t> num_refused = 0;
  std::atomic<int64_t> num_timeouts = 0;
  std::atomic<int64_t> num_slow_readers = 0;
  std::atomic<int64_t> num_bad_requests = 0;
  std::atomic<int64_t> received_bytes = 0;
  std::atomic<int64_t> sent_bytes = 0;
};

// Data that all connections of a server share; outlives them.
struct TransportState {
  Limits limits;
  Handler handler;
  Hooks hooks = {};
  Proxies proxies = {};
  PeerLimit peer_limit{limits.max_connections_per_peer};
  std::shared_ptr<ByteBudget> bodies = std::make_shared<ByteBudget>(limits.max_total_body_bytes);
  std::shared_ptr<ByteBudget> responses =
      std::make_shared<ByteBudget>(limits.max_total_response_bytes);
  Counters counters = {};
};

// Reads a request, calls the handler, writes the response, and repeats. Everything except wake()
// and send_now() runs on one thread.
class Connection final : public StreamUser,
                         public Waker,
                         public std::enable_shared_from_this<Connection> {
 public:
  // Calls `on_gone` once, when the connection is closed.
  Connection(TransportState& transport, std::unique_ptr<Stream> stream,
             std::function<void(Connection*)> on_gone);

  void start();
  // Ends the connection as described at Server::drain().
  void drain() {
    guard([this] { begin_drain(); });
  }
  void close();  // at once

  void wake() noexcept override { stream_->wake(); }
  size_t send_now(std::string_view bytes) override {
    const size_t num_sent = stream_->send_now(bytes);
    transport_.counters.sent_bytes += static_cast<int64_t>(num_sent);
    return num_sent;
  }

 private:
  enum class Phase {
    kOpening,
    kIdle,        // no byte of a request has arrived
    kHead,        // a part of a head has arrived
    kBody,        // a part of a body has arrived
    kResponding,  // also reads ahead, to notice a disconnect; the next request waits
    kClosing,     // everything is sent; waits for the client to read it
    kClosed,
  };

  void on_open(OpenResult result) override {
    guard([=, this] { handle_open(result); });
  }
  void on_read(size_t num_bytes) override {
    guard([=, this] { handle_read(num_bytes); });
  }
  void on_written(size_t num_bytes) override {
    guard([=, this] { handle_written(num_bytes); });
  }
  void on_deadline() override {
    guard([this] { handle_timeout(); });
  }
  void on_wake() override {
    guard([this] { poll_response(); });
  }
  void on_reset() override { close(); }

  // An exception, most likely std::bad_alloc, closes only this connection, at once.
  template <typename Step>
  void guard(const Step& step) {
    if (!run_guarded("[http] closing a connection after an exception", step)) close();
  }
  void handle_open(OpenResult result);
  void handle_read(size_t num_bytes);
  void handle_written(size_t num_bytes);
  void handle_timeout();
  void poll_response();
  void begin_drain();
  void notify_client_gone() noexcept;
  void report_cut_request() noexcept;

  bool is_reading() const;
  bool is_draining() const { return drain_end_ != std::chrono::steady_clock::time_point::max(); }
  void enter(Phase phase, std::chrono::milliseconds limit);
  void continue_reading();
  void parse();
  void await_input();
  void dispatch();
  void begin_response(bool keep_alive);
  void refuse(Refusal refusal);
  void refuse_plain_http();
  void refuse_for_shutdown();
  // The current request's client; before its head is complete, the other end of the connection.
  std::string client() const;
  // Counts the request of a trusted proxy against its client's limit. Returns false if the limit is
  // reached.
  bool admit_client();
  // Calls Hooks::check_head. Returns false if the hook has refused the request; then the body is
  // not read.
  bool check_head();
  // Returns whether a client that has shut down its sending side may still read the response.
  bool may_read_response();
  // Charges the body to the budget. Returns false if the budget has too little left.
  bool charge_body();
  void handle_input_end();
  void flush();
  void continue_writing();
  void finish_response();
  void end();

  TransportState& transport_;
  const Limits& limits_;
  const std::unique_ptr<Stream> stream_;
  const std::function<void(Connection*)> on_gone_;

  Phase phase_ = Phase::kOpening;
  std::chrono::steady_clock::time_point request_began_;  // when its first byte was parsed
  // When a draining connection stops waiting for a request; max(): it does not drain.
  std::chrono::steady_clock::time_point drain_end_ = std::chrono::steady_clock::time_point::max();

  RequestParser parser_;
  ReadBuffer in_;
  bool is_read_pending_ = false;
  bool input_ended_ = false;
  bool discards_input_ = false;
  std::shared_ptr<ByteShare> body_share_;
  const bool is_proxy_;                  // a trusted proxy
  std::shared_ptr<void> client_permit_;  // of the current request, if is_proxy_

  std::shared_ptr<PendingResponse> response_;
  std::string out_;  // bytes that are being written
  size_t num_written_ = 0;
  std::chrono::steady_clock::time_point write_end_;  // deadline for all of out_
  PendingResponse::State after_write_ = PendingResponse::State::kEmpty;
};

}  // namespace quire::http
