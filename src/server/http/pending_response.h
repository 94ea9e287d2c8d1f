// The response to one request, passed from any thread to the connection's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_budget.h"
#include "server/http/http.h"

namespace quire::http {

// How the client finds the end of the body.
enum class Framing { kLength, kChunked, kUntilClose };

struct ResponseHead {
  int status = 200;
  std::string_view content_type;
  const Headers& headers;
  Framing framing = Framing::kLength;
  size_t content_length = 0;  // only for kLength
  bool is_http11 = true;      // the client's version
  bool keep_alive = true;
};

bool may_have_body(int status);

// Returns the bytes of a whole response after which the connection is closed.
std::string closing_response(const Response& response);

// Appends the head, including the empty line. Omits fields that contain a line end or another
// control character, because a handler may pass on client data.
void append_response_head(const ResponseHead& head, std::string& out);

// Notifies the connection that its response has new data. Thread-safe; never blocks.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() noexcept = 0;
  // Sends bytes at once while the connection has no write in progress. Returns how many bytes were
  // sent.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
};

struct ResponseTraits {
  bool is_http11 = true;
  bool keep_alive = true;
  bool is_head = false;  // a HEAD request: no body
  size_t max_buffered_bytes = 0;
  const Hooks* hooks = nullptr;                  // outlives the connection
  std::shared_ptr<ByteBudget> budget = nullptr;  // for bytes that wait to be sent; null: no bound
  Request head = {};  // used for the 500 if no handler responds; see head_of()
};

// Returns the parts of a request that its refusal needs; they contain no key.
Request head_of(const Request& request, std::string peer);

class PendingResponse final : public Exchange {
 public:
  PendingResponse(ResponseTraits traits, std::shared_ptr<Waker> waker)
      : traits_(std::move(traits)), waker_(std::move(waker)) {}

  // Called on any thread.
  bool respond(Response response) override;
  void start_stream(int status, std::string content_type, Headers headers) override;
  void write(std::string piece) override;
  void end_stream() override;
  void on_closed(std::function<void()> callback) override;
  void abandon() noexcept;  // no handler will respond any more

  // The rest is called on the connection's thread.
  enum class State {
    kEmpty,      // no handler has responded yet
    kStreaming,  // more data may follow
    kWhole,      // the response is complete
    kBroken,     // a stream that was abandoned before its end
    kTooSlow,    // the client left more data unread than the limit allows
    kFinished,
    kClosed,
  };
  // Moves the unsent bytes into `out` and returns the state. The bytes of the previous call count
  // as delivered. If `out` is not empty, the connection must call this again after its write,
  // without a wake-up; otherwise new data wakes it.
  State take_unsent(std::string& out);
  State state();
  // Queues bytes that a client ignores: "100 Continue", or a comment in a stream of events. Returns
  // false if no such bytes exist: before a response to HTTP/1.0, and in other streams.
  bool probe();
  void end_keep_alive();  // has an effect only before the head is written
  bool keeps_alive();     // as stated in the head
  void finish();          // the whole response was delivered
  void close();           // the connection has ended; calls the on_closed() callback

 private:
  bool reserve_locked(size_t num_bytes);
  void wake_locked() noexcept;
  void break_locked() noexcept;
  void send_or_wake_locked();
  void append_piece_locked(std::string_view piece);

  std::mutex mutex_;
  ResponseTraits traits_;
  std::shared_ptr<Waker> waker_;
  State state_ = State::kEmpty;
  bool is_chunked_ = false;
  bool is_event_stream_ = false;
  bool drops_body_ = false;
  bool is_take_pending_ = true;  // the connection will call take_unsent() without a wake-up
  std::string unsent_;
  size_t num_taken_ = 0;  // bytes that the connection is writing
  std::unique_ptr<ByteShare> share_;
  std::function<void()> on_closed_;
};

// Formats a refusal with the hook, or as plain text without one.
Response refusal_response(const Hooks* hooks, const Request& head, const Refusal& refusal);

// Makes the exchange that the handler responds through. Dropping it abandons the response.
std::shared_ptr<Exchange> make_exchange(const std::shared_ptr<PendingResponse>& response);

}  // namespace quire::http
