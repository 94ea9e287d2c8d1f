#include "server/http/pending_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "base/guarded.h"

namespace quire::http {
namespace {

constexpr std::pair<int, std::string_view> kReasonPhrases[] = {
    {100, "Continue"},
    {200, "OK"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

std::string_view reason_phrase(int status) {
  for (const auto& [code, phrase] : kReasonPhrases) {
    if (code == status) return phrase;
  }
  return "";
}

// Returns "Sun, 06 Nov 1994 08:49:37 GMT", formatted once per second and thread.
std::string_view date_now() {
  thread_local std::time_t made_at = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != made_at || text.empty()) {
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    text =
        fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                    kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
    made_at = now;
  }
  return text;
}

void append_field(std::string_view name, std::string_view value, std::string& out) {
  const bool is_safe = !name.empty() && std::none_of(value.begin(), value.end(), is_control) &&
                       std::none_of(name.begin(), name.end(), [](char c) {
                         return is_control(c) || c == ':' || c == ' ' || c == '\t';
                       });
  if (is_safe) out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

bool may_have_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

void append_response_head(const ResponseHead& head, std::string& out) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", head.status,
                 reason_phrase(head.status));
  append_field("date", date_now(), out);
  if (may_have_body(head.status)) {
    if (!head.content_type.empty()) append_field("content-type", head.content_type, out);
    if (head.framing == Framing::kChunked) append_field("transfer-encoding", "chunked", out);
    if (head.framing == Framing::kLength) {
      fmt::format_to(std::back_inserter(out), "content-length: {}\r\n", head.content_length);
    }
  }
  if (!head.keep_alive) append_field("connection", "close", out);
  if (head.keep_alive && !head.is_http11) append_field("connection", "keep-alive", out);
  for (const auto& [name, value] : head.headers) append_field(name, value, out);
  out += "\r\n";
}

std::string closing_response(const Response& response) {
  std::string bytes;
  append_response_head({.status = response.status,
                        .content_type = response.content_type,
                        .headers = response.headers,
                        .content_length = response.body.size(),
                        .keep_alive = false},
                       bytes);
  bytes += response.body;
  return bytes;
}

// The exchange points to the response, but has its own reference count. When that count reaches
// zero, the response is abandoned.
std::shared_ptr<Exchange> make_exchange(const std::shared_ptr<PendingResponse>& response) {
  return {response.get(), [response](Exchange*) { response->abandon(); }};
}

Response refusal_response(const Hooks* hooks, const Request& head, const Refusal& refusal) {
  if (hooks != nullptr && hooks->write_refusal) return hooks->write_refusal(head, refusal);
  return {.status = refusal.status,
          .content_type = "text/plain; charset=utf-8",
          .body = std::string(refusal.message)};
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

bool PendingResponse::respond(Response response) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kEmpty) return true;
  if (!reserve_locked(response.body.size())) return false;
  std::string bytes;  // local, so that an exception leaves no partial head in unsent_
  bytes.reserve(response.body.size() + 512);
  append_response_head({.status = response.status,
                        .content_type = response.content_type,
                        .headers = response.headers,
                        .content_length = response.body.size(),
                        .is_http11 = traits_.is_http11,
                        .keep_alive = traits_.keep_alive},
                       bytes);
  if (may_have_body(response.status) && !traits_.is_head) bytes += response.body;
  unsent_ = std::move(bytes);
  state_ = State::kWhole;
  wake_locked();
  return true;
}

// Reserves memory of the budget. The response keeps its share until it is sent.
bool PendingResponse::reserve_locked(size_t num_bytes) {
  constexpr size_t kFreeBytes = size_t{64} << 10;  // not charged: slow clients starve no others
  if (num_bytes <= kFreeBytes || !traits_.budget) return true;
  if (!share_) share_ = std::make_unique<ByteShare>(traits_.budget);
  return share_->grow_to(num_bytes);
}

void PendingResponse::start_stream(int status, std::string content_type, Headers headers) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kEmpty) return;
  drops_body_ = traits_.is_head || !may_have_body(status);
  is_chunked_ = traits_.is_http11;
  is_event_stream_ = content_type.starts_with("text/event-stream");
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
  unsent_ = std::move(head);
  state_ = State::kStreaming;
  wake_locked();
}

void PendingResponse::write(std::string piece) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming || drops_body_ || piece.empty()) return;
  const size_t untaken = num_taken_ + unsent_.size();
  // A single piece of any size is accepted: the limit applies to data that accumulates.
  const bool is_too_much = untaken > 0 && untaken + piece.size() > traits_.max_buffered_bytes;
  if (is_too_much || !reserve_locked(untaken + piece.size())) {
    state_ = State::kTooSlow;
    std::string().swap(unsent_);  // frees it; an assignment would keep its memory
    is_take_pending_ = false;     // wake the connection even if it is writing to this client
    wake_locked();
    return;
  }
  append_piece_locked(piece);
  send_or_wake_locked();
}

void PendingResponse::append_piece_locked(std::string_view piece) {
  if (is_chunked_) fmt::format_to(std::back_inserter(unsent_), "{:x}\r\n", piece.size());
  unsent_ += piece;
  if (is_chunked_) unsent_ += "\r\n";
}

void PendingResponse::end_stream() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kStreaming) return;
  if (is_chunked_ && !drops_body_) unsent_ += "0\r\n\r\n";
  state_ = State::kWhole;
  wake_locked();
}

void PendingResponse::on_closed(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kFinished) return;
    if (state_ != State::kClosed) {
      on_closed_ = std::move(callback);
      return;
    }
  }
  callback();
}

// Called by destructors, so it must not throw.
void PendingResponse::abandon() noexcept {
  const bool is_done =
      run_guarded("[http] could not respond with an error; closing the connection", [this] {
        {
          const std::lock_guard lock(mutex_);
          if (state_ == State::kStreaming) {
            log_error("[http] {} {}: the handler did not end its stream; closing the connection",
                      traits_.head.method, traits_.head.path);
            break_locked();
          }
          if (state_ != State::kEmpty) return;
        }
        // Responds outside the lock, because the hook updates counters and logs.
        respond(refusal_response(traits_.hooks, traits_.head,
                                 {.status = 500,
                                  .code = "internal_error",
                                  .message = "The server failed to respond to the request."}));
      });
  if (is_done) return;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kClosed && state_ != State::kFinished) break_locked();
}

void PendingResponse::break_locked() noexcept {
  state_ = State::kBroken;
  wake_locked();
}

void PendingResponse::wake_locked() noexcept {
  if (!is_take_pending_) waker_->wake();
  is_take_pending_ = true;
}

// Sends a piece from the calling thread if the connection is idle: waking the connection's thread
// would cost more than the send itself.
void PendingResponse::send_or_wake_locked() {
  if (!is_take_pending_) unsent_.erase(0, waker_->send_now(unsent_));
  if (!unsent_.empty()) wake_locked();
}

PendingResponse::State PendingResponse::take_unsent(std::string& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  out.swap(unsent_);
  num_taken_ = out.size();
  is_take_pending_ = !out.empty();
  return state_;
}

PendingResponse::State PendingResponse::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool PendingResponse::probe() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kEmpty && traits_.is_http11) {
    unsent_ = "HTTP/1.1 100 Continue\r\n\r\n";
    return true;
  }
  if (state_ != State::kStreaming || !is_event_stream_ || drops_body_) return false;
  append_piece_locked(":\n\n");
  return true;
}

void PendingResponse::end_keep_alive() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kEmpty) traits_.keep_alive = false;
}

bool PendingResponse::keeps_alive() {
  const std::lock_guard lock(mutex_);
  return traits_.keep_alive;
}

void PendingResponse::finish() {
  std::function<void()> unused;  // destroyed outside the lock, since it may hold the exchange
  std::shared_ptr<Waker> waker;
  const std::lock_guard lock(mutex_);
  state_ = State::kFinished;
  share_.reset();
  unused = std::move(on_closed_);
  waker = std::move(waker_);
}

void PendingResponse::close() {
  std::function<void()> callback;
  std::shared_ptr<Waker> waker;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kClosed || state_ == State::kFinished) return;
    state_ = State::kClosed;
    std::string().swap(unsent_);  // frees it; an assignment would keep its memory
    share_.reset();
    callback = std::move(on_closed_);
    waker = std::move(waker_);
  }
  if (callback) callback();
}

}  // namespace quire::http
