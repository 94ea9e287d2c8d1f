// The response to one request, passed from any thread to the connection's thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http/body_budget.h"
#include "server/http/http.h"

namespace quire::http {

// Notifies the connection that its answer has new data. Thread-safe; never blocks.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() noexcept = 0;
  // Sends bytes at once while the connection has no write in progress. Returns how many bytes were
  // sent.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
};

struct AnswerTraits {
  bool is_http11 = true;
  bool keep_alive = true;
  bool is_head = false;  // a HEAD request: no body
  size_t max_buffered_bytes = 0;
  const Hooks* hooks = nullptr;                  // outlives the connection
  std::shared_ptr<BodyBudget> budget = nullptr;  // for bytes that wait to be sent; null: no bound
  Request head = {};  // used for the 500 if no handler responds; see head_of()
};

// Returns the parts of a request that its refusal needs; they contain no key.
Request head_of(const Request& request, std::string peer);

class Answer {
 public:
  Answer(AnswerTraits traits, std::shared_ptr<Waker> waker)
      : traits_(std::move(traits)), waker_(std::move(waker)) {}

  // Called on any thread. Exchange documents these functions.
  bool respond(const Response& response);
  void start_stream(int status, std::string_view content_type, const Headers& headers);
  void write(std::string_view piece);
  void end_stream();
  void on_closed(std::function<void()> callback);
  void abandon() noexcept;  // no handler will respond any more

  // The rest is called on the connection's thread.
  enum class Progress {
    kOpen,     // more data may follow
    kWhole,    // the response is complete
    kBroken,   // a stream that was abandoned before its end
    kTooSlow,  // the client left more data unread than the limit allows
  };
  // Moves the waiting bytes into `out`; bytes of the previous call count as delivered. After this
  // the connection is woken again only if `out` is empty.
  Progress take(std::string& out);
  Progress progress();
  void end_keep_alive();  // has an effect only before the head is written
  bool keeps_alive();
  void finish();  // the whole response was delivered
  void close();   // the connection has ended; calls the on_closed() callback

 private:
  enum class Phase { kEmpty, kStreaming, kWhole, kBroken, kTooSlow, kFinished, kClosed };

  bool has_room_locked(size_t num_bytes);
  void wake_locked() noexcept;
  void break_locked() noexcept;
  void send_or_wake_locked();
  Progress progress_locked() const;

  std::mutex mutex_;
  AnswerTraits traits_;
  std::shared_ptr<Waker> waker_;
  Phase phase_ = Phase::kEmpty;
  bool is_chunked_ = false;
  bool drops_body_ = false;
  bool is_awaited_ = true;  // the connection will call take() without a wake-up
  std::string waiting_;
  size_t num_taken_ = 0;  // bytes that the connection is writing
  std::unique_ptr<BodyShare> share_;
  std::function<void()> on_closed_;
};

// Makes the exchange that the handler responds through. Dropping it abandons the answer.
std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Answer> answer);

}  // namespace quire::http
