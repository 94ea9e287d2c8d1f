#include "server/http/connection.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/guarded.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The time that a client has to read a response that ends its connection. Closing at once could
// destroy the response in flight if more of the request arrives (RFC 9112, section 9.6).
constexpr milliseconds kLinger{2000};
constexpr milliseconds kNoLimit{-1};

}  // namespace

Connection::Connection(Service& service, std::unique_ptr<Stream> stream,
                       std::function<void(Connection*)> on_gone)
    : service_(service),
      limits_(service.limits),
      stream_(std::move(stream)),
      on_gone_(std::move(on_gone)),
      parser_(limits_),
      in_(limits_.max_header_bytes) {}

// An exception, most likely std::bad_alloc, closes only this connection, at once.
template <typename Step>
void Connection::guard(const Step& step) {
  if (!run_guarded("[http] a connection is closed", step)) close();
}

void Connection::start() {
  guard([this] {
    stream_->open(shared_from_this());
    enter(Phase::kOpening, limits_.header_timeout);
  });
}

void Connection::on_open(bool ok) {
  guard([this, ok] { open_up(ok); });
}
void Connection::on_read(size_t num_bytes) {
  guard([this, num_bytes] { take_input(num_bytes); });
}
void Connection::on_written(size_t num_bytes) {
  guard([this, num_bytes] { count_written(num_bytes); });
}
void Connection::on_deadline() {
  guard([this] { run_out(); });
}
void Connection::on_wake() {
  guard([this] { look_at_answer(); });
}
void Connection::drain() {
  guard([this] { wind_up(); });
}

void Connection::open_up(bool ok) {
  if (phase_ == Phase::kClosed) return;
  if (!ok) return close();
  enter(Phase::kIdle, limits_.idle_timeout);
  if (is_draining_) return end();
  read_on();
}

bool Connection::is_reading() const {
  return phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody;
}

void Connection::enter(Phase phase, milliseconds limit) {
  phase_ = phase;
  stream_->set_deadline(limit == kNoLimit ? steady_clock::time_point::max()
                                          : steady_clock::now() + limit);
}

// --- Input ---

// Does not read while the buffer is full: this bounds how far a client can send ahead of the
// current response.
void Connection::read_on() {
  if (is_read_pending_ || input_ended_ || phase_ == Phase::kClosed) return;
  if (discards_input_) in_.clear();
  if (in_.is_full()) return;
  const auto [room, size] = in_.make_room();
  is_read_pending_ = true;
  stream_->read_some(room, size);
}

void Connection::take_input(size_t num_bytes) {
  is_read_pending_ = false;
  if (phase_ == Phase::kClosed) return;
  if (num_bytes == 0) return on_input_end();
  in_.add(num_bytes);
  if (is_reading()) parse();
  read_on();
}

// A client that closes its side still gets a response that is complete by then. A response in
// progress is cancelled: on TCP, a half-closed connection looks like a disconnected client.
void Connection::on_input_end() {
  input_ended_ = true;
  const bool is_answered =
      phase_ == Phase::kAnswering && answer_->progress() == Answer::Progress::kWhole;
  if (!is_answered) close();
}

void Connection::parse() {
  while (is_reading()) {
    const size_t used = parser_.feed(in_.bytes());
    in_.consume(used);
    if (!charge_body()) {
      return refuse({.status = 503,
                     .code = "bodies_too_large",
                     .message = "The bodies of all requests take as much memory as they may."});
    }
    switch (parser_.state()) {
      case RequestParser::State::kFailed:
        ++service_.counters.num_bad_requests;
        return refuse(parser_.refusal());
      case RequestParser::State::kDone:
        return dispatch();
      default:
        if (used == 0 || in_.bytes().empty()) return await_more();
    }
  }
}

void Connection::await_more() {
  if (input_ended_) return close();
  if (parser_.state() == RequestParser::State::kBody) {
    if (phase_ == Phase::kBody || !check_head()) return;
    enter(Phase::kBody, limits_.body_timeout);
    if (parser_.expects_continue() && in_.bytes().empty()) {
      out_ = "HTTP/1.1 100 Continue\r\n\r\n";
      after_write_ = Answer::Progress::kOpen;
      write_on();
    }
  } else if (in_.bytes().empty()) {
    if (phase_ != Phase::kIdle) enter(Phase::kIdle, limits_.idle_timeout);
  } else if (phase_ != Phase::kHead) {
    enter(Phase::kHead, limits_.header_timeout);
  }
}

// --- Output ---

void Connection::begin_answer(bool keep_alive) {
  AnswerTraits traits{.is_http11 = parser_.is_http11(),
                      .keep_alive = keep_alive,
                      .is_head = parser_.request().method == "HEAD",
                      .max_buffered_bytes = limits_.max_buffered_bytes,
                      .hooks = &service_.hooks,
                      .budget = service_.answers,
                      .head = head_of(parser_.request(), stream_->peer())};
  answer_ = std::make_shared<Answer>(std::move(traits), shared_from_this());
  // A write of "100 Continue" may still be in progress; its deadline stays.
  enter(Phase::kAnswering, out_.empty() ? kNoLimit : limits_.write_timeout);
}

void Connection::dispatch() {
  begin_answer(parser_.keeps_alive() && !is_draining_);
  const std::shared_ptr<Answer> answer = answer_;
  Request request = parser_.take();
  request.peer = stream_->peer();
  request.body_share = std::move(body_share_);
  const bool is_handled = run_guarded("[http] a handler threw", [&] {
    service_.handler(std::move(request), make_exchange(answer));
  });
  if (!is_handled) answer->abandon();
  if (input_ended_ && answer->progress() != Answer::Progress::kWhole) return close();
  flush();
}

void Connection::refuse(Refusal refusal) {
  discards_input_ = true;
  begin_answer(false);
  Request head = parser_.take();  // also discards the body read so far
  body_share_.reset();
  head.peer = stream_->peer();
  answer_->respond(refusal_response(&service_.hooks, head, refusal));
  flush();
}

bool Connection::check_head() {
  if (!service_.hooks.check_head) return true;
  const Request& coming = parser_.request();
  std::optional<Response> refused = service_.hooks.check_head({.method = coming.method,
                                                               .path = coming.path,
                                                               .query = coming.query,
                                                               .headers = coming.headers,
                                                               .body = "",
                                                               .peer = stream_->peer()});
  if (!refused) return true;
  discards_input_ = true;
  begin_answer(false);
  answer_->respond(*refused);
  flush();
  return false;
}

bool Connection::charge_body() {
  const std::string& body = parser_.request().body;
  if (body.empty()) return true;
  if (!body_share_) body_share_ = std::make_shared<BodyShare>(service_.bodies);
  return body_share_->grow_to(body.size());
}

void Connection::look_at_answer() {
  if (phase_ != Phase::kAnswering) return;
  // A client that does not read keeps a write in progress for long, so flush() would not see this.
  if (answer_->progress() == Answer::Progress::kTooSlow) {
    ++service_.counters.num_slow_readers;
    return close();
  }
  flush();
}

// Writes everything that has accumulated since the last write as one piece.
void Connection::flush() {
  if (!out_.empty() || phase_ != Phase::kAnswering) return;
  after_write_ = answer_->take(out_);
  num_written_ = 0;
  if (after_write_ == Answer::Progress::kTooSlow) return look_at_answer();
  if (!out_.empty()) {
    const auto size = static_cast<int64_t>(out_.size());
    const auto rate = static_cast<int64_t>(limits_.min_bytes_per_second);
    write_end_ = steady_clock::now() + limits_.write_timeout + milliseconds(1000 * size / rate);
    return write_on();
  }
  if (after_write_ == Answer::Progress::kWhole) return finish_answer();
  if (after_write_ == Answer::Progress::kBroken) return close();
  stream_->set_deadline(steady_clock::time_point::max());
}

void Connection::write_on() {
  if (phase_ == Phase::kAnswering) {
    stream_->set_deadline(std::min(steady_clock::now() + limits_.write_timeout, write_end_));
  }
  stream_->write_some(std::string_view(out_).substr(num_written_));
}

void Connection::count_written(size_t num_bytes) {
  if (phase_ == Phase::kClosed) return;
  if (num_bytes == 0) return close();
  num_written_ += num_bytes;
  if (num_written_ < out_.size()) return write_on();
  out_.clear();
  num_written_ = 0;
  if (phase_ != Phase::kAnswering) return;
  if (after_write_ == Answer::Progress::kWhole) return finish_answer();
  if (after_write_ == Answer::Progress::kBroken) return close();
  flush();
}

void Connection::finish_answer() {
  const bool keep_alive = answer_->keeps_alive() && !is_draining_;
  answer_->finish();
  answer_.reset();
  out_ = {};  // frees the memory of a large response
  after_write_ = Answer::Progress::kOpen;
  if (!keep_alive) return end();
  enter(Phase::kIdle, limits_.idle_timeout);
  parse();
  read_on();
}

// --- End of the connection ---

void Connection::run_out() {
  switch (phase_) {
    case Phase::kHead:
    case Phase::kBody:
      ++service_.counters.num_timeouts;
      return refuse({.status = 408,
                     .code = "request_timeout",
                     .message = "The request did not arrive in time."});
    case Phase::kOpening:
    case Phase::kAnswering:
      ++service_.counters.num_timeouts;
      return close();
    case Phase::kIdle:
      return end();
    default:
      return close();
  }
}

void Connection::wind_up() {
  is_draining_ = true;
  switch (phase_) {
    case Phase::kOpening:  // a client can prolong its handshake
      return close();
    case Phase::kIdle:
      return end();
    case Phase::kHead:
    case Phase::kBody:
      return refuse({.status = 503,
                     .code = "shutting_down",
                     .message = "The server is shutting down; the request had not arrived whole."});
    case Phase::kAnswering:
      return answer_->end_keep_alive();
    default:
      return;
  }
}

// Shuts down sending, and waits for the client to close its side.
void Connection::end() {
  if (input_ended_) return close();
  discards_input_ = true;
  enter(Phase::kClosing, kLinger);
  stream_->shut_down();
  read_on();
}

void Connection::tell_that_client_left() noexcept {
  run_guarded("[http] could not notify the request's owner that its client disconnected",
              [this] { std::exchange(answer_, nullptr)->close(); });
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  phase_ = Phase::kClosed;
  if (answer_) tell_that_client_left();
  stream_->close();
  on_gone_(this);
}

}  // namespace quire::http
