#include "server/http/answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/guarded.h"
#include "server/http/response_head.h"

namespace quire::http {
namespace {

class AnswerExchange final : public Exchange {
 public:
  explicit AnswerExchange(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  ~AnswerExchange() override { answer_->abandon(); }

  bool respond(Response response) override { return answer_->respond(response); }
  void start_stream(int status, std::string content_type, Headers headers) override {
    answer_->start_stream(status, content_type, headers);
  }
  void write(std::string piece) override { answer_->write(piece); }
  void end_stream() override { answer_->end_stream(); }
  void on_closed(std::function<void()> callback) override {
    answer_->on_closed(std::move(callback));
  }

 private:
  const std::shared_ptr<Answer> answer_;
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Answer> answer) {
  return std::make_shared<AnswerExchange>(std::move(answer));
}

Request head_of(const Request& request, std::string peer) {
  Request head{.method = request.method,
               .path = request.path,
               .query = "",
               .headers = {},
               .body = "",
               .peer = std::move(peer)};
  for (const char* name : {"x-request-id", "origin"}) {
    const std::string_view value = request.header(name);
    if (!value.empty()) head.headers.emplace_back(name, value);
  }
  return head;
}

bool Answer::respond(const Response& response) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kEmpty) return true;
  if (!has_room_locked(response.body.size())) return false;
  std::string bytes;  // local, so that an exception leaves no partial head in waiting_
  bytes.reserve(response.body.size() + 512);
  append_response_head({.status = response.status,
                        .content_type = response.content_type,
                        .headers = response.headers,
                        .content_length = response.body.size(),
                        .is_http11 = traits_.is_http11,
                        .keep_alive = traits_.keep_alive},
                       bytes);
  if (may_have_body(response.status) && !traits_.is_head) bytes += response.body;
  waiting_ = std::move(bytes);
  phase_ = Phase::kWhole;
  wake_locked();
  return true;
}

// Reserves budget for the answer. An answer keeps its share until it is sent.
bool Answer::has_room_locked(size_t num_bytes) {
  constexpr size_t kFreeBytes = size_t{64} << 10;  // so that slow readers cannot starve others
  if (num_bytes <= kFreeBytes || !traits_.budget) return true;
  if (!share_) share_ = std::make_unique<BodyShare>(traits_.budget);
  return share_->grow_to(num_bytes);
}

void Answer::start_stream(int status, std::string_view content_type, const Headers& headers) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kEmpty) return;
  drops_body_ = traits_.is_head || !may_have_body(status);
  is_chunked_ = traits_.is_http11;
  // HTTP/1.0 has no chunks: the end of the connection ends the body.
  if (!is_chunked_ && !drops_body_) traits_.keep_alive = false;
  std::string head;
  append_response_head({.status = status,
                        .content_type = content_type,
                        .headers = headers,
                        .framing = is_chunked_ ? Framing::kChunked : Framing::kUntilClose,
                        .is_http11 = traits_.is_http11,
                        .keep_alive = traits_.keep_alive},
                       head);
  waiting_ = std::move(head);
  phase_ = Phase::kStreaming;
  wake_locked();
}

void Answer::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kStreaming || drops_body_ || piece.empty()) return;
  const size_t untaken = num_taken_ + waiting_.size();
  // One piece is always accepted, whatever its size: the limit is for data that accumulates.
  const bool is_too_much = untaken > 0 && untaken + piece.size() > traits_.max_buffered_bytes;
  if (is_too_much || !has_room_locked(untaken + piece.size())) {
    phase_ = Phase::kTooSlow;
    waiting_ = {};
    is_awaited_ = false;  // wake it even if it is writing to this client
    wake_locked();
    return;
  }
  if (is_chunked_) fmt::format_to(std::back_inserter(waiting_), "{:x}\r\n", piece.size());
  waiting_ += piece;
  if (is_chunked_) waiting_ += "\r\n";
  send_or_wake_locked();
}

void Answer::end_stream() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kStreaming) return;
  if (is_chunked_ && !drops_body_) waiting_ += "0\r\n\r\n";
  phase_ = Phase::kWhole;
  wake_locked();
}

void Answer::on_closed(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kFinished) return;
    if (phase_ != Phase::kClosed) {
      on_closed_ = std::move(callback);
      return;
    }
  }
  callback();
}

// Called by destructors, so it must not throw.
void Answer::abandon() noexcept {
  const bool is_done = run_guarded("[http] an answer is cut", [this] {
    {
      const std::lock_guard lock(mutex_);
      if (phase_ == Phase::kStreaming) {
        log_error("[http] {} {}: its stream was left without an end", traits_.head.method,
                  traits_.head.path);
        break_locked();
      }
      if (phase_ != Phase::kEmpty) return;
    }
    // Responds outside the lock, because the hook updates counters and logs.
    respond(refusal_response(
        traits_.hooks, traits_.head,
        {.status = 500, .code = "internal_error", .message = "The request was left unanswered."}));
  });
  if (is_done) return;
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kClosed && phase_ != Phase::kFinished) break_locked();
}

void Answer::break_locked() noexcept {
  phase_ = Phase::kBroken;
  wake_locked();
}

void Answer::wake_locked() noexcept {
  if (!is_awaited_) waker_->wake();
  is_awaited_ = true;
}

// Sends a piece from the calling thread if the connection is idle: waking the connection's thread
// would cost more than the send itself.
void Answer::send_or_wake_locked() {
  if (!is_awaited_) waiting_.erase(0, waker_->send_now(waiting_));
  if (!waiting_.empty()) wake_locked();
}

Answer::Progress Answer::take(std::string& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  out.swap(waiting_);
  num_taken_ = out.size();
  is_awaited_ = !out.empty();
  return progress_locked();
}

Answer::Progress Answer::progress() {
  const std::lock_guard lock(mutex_);
  return progress_locked();
}

Answer::Progress Answer::progress_locked() const {
  switch (phase_) {
    case Phase::kWhole:
      return Progress::kWhole;
    case Phase::kBroken:
      return Progress::kBroken;
    case Phase::kTooSlow:
      return Progress::kTooSlow;
    default:
      return Progress::kOpen;
  }
}

void Answer::end_keep_alive() {
  const std::lock_guard lock(mutex_);
  traits_.keep_alive = false;
}

bool Answer::keeps_alive() {
  const std::lock_guard lock(mutex_);
  return traits_.keep_alive;
}

void Answer::finish() {
  std::function<void()> unused;  // destroyed outside the lock, since it may hold the exchange
  std::shared_ptr<Waker> waker;
  const std::lock_guard lock(mutex_);
  phase_ = Phase::kFinished;
  share_.reset();
  unused = std::move(on_closed_);
  waker = std::move(waker_);
}

void Answer::close() {
  std::function<void()> callback;
  std::shared_ptr<Waker> waker;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kClosed || phase_ == Phase::kFinished) return;
    phase_ = Phase::kClosed;
    waiting_ = {};
    share_.reset();
    callback = std::move(on_closed_);
    waker = std::move(waker_);
  }
  if (callback) callback();
}

}  // namespace quire::http
