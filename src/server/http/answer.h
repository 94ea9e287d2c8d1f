// The answer to one request on its way from any thread to the connection's.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http/body_budget.h"
#include "server/http/http.h"

namespace quire::http {

// What an answer calls when it has something for its connection. Thread-safe, never blocks.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() noexcept = 0;
  // While the connection has nothing of its own to send: how much of it went out at once.
  virtual size_t send_now(std::string_view /*bytes*/) { return 0; }
};

struct AnswerTraits {
  bool is_http11 = true;
  bool keep_alive = true;
  bool is_head = false;  // a HEAD request: no body
  size_t max_buffered_bytes = 0;
  const Hooks* hooks = nullptr;                  // outlive the connection
  std::shared_ptr<BodyBudget> budget = nullptr;  // of what waits to be sent; null: no bound
  Request head = {};  // for the refusal, where nobody else answers: see head_of()
};

// Of a request what its refusal is written with; no key is among it.
Request head_of(const Request& request, std::string peer);

class Answer {
 public:
  Answer(AnswerTraits traits, std::shared_ptr<Waker> waker)
      : traits_(std::move(traits)), waker_(std::move(waker)) {}

  // For any thread; what they mean stands at Exchange.
  bool respond(const Response& response);
  void start_stream(int status, std::string_view content_type, const Headers& headers);
  void write(std::string_view piece);
  void end_stream();
  void on_closed(std::function<void()> callback);
  void abandon() noexcept;  // nobody is left to answer

  // For the connection's thread.
  enum class Progress {
    kOpen,     // more may come
    kWhole,    // that was all
    kBroken,   // a stream that nobody will end
    kTooSlow,  // the client left more untaken than the limit allows
  };
  // Moves what waits into `out`; what was taken before counts as delivered. Wakes the connection
  // again only after it has come for more and found nothing.
  Progress take(std::string& out);
  Progress progress();
  void end_keep_alive();  // in so far as the head is not yet written
  bool keeps_alive();
  void finish();  // delivered whole
  void close();   // the connection has ended; calls what on_closed() registered

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
  bool is_awaited_ = true;  // the connection comes by itself
  std::string waiting_;
  size_t num_taken_ = 0;  // bytes being written
  std::unique_ptr<BodyShare> share_;
  std::function<void()> on_closed_;
};

// What a handler gets; dropping it abandons the answer.
std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Answer> answer);

}  // namespace quire::http
