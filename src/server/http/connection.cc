#include "server/http/connection.h"

#include <algorithm>
#include <exception>

namespace quire::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The time that a client has to read a response that ends its connection. Closing at once could
// destroy the response in flight if more of the request arrives (RFC 9112, section 9.6).
constexpr milliseconds kLinger{2000};
// The time during which a draining connection still accepts a request. Closing at once would lose a
// request that the client has sent and the server has not read.
constexpr milliseconds kDrainGrace{250};
constexpr milliseconds kNoLimit{-1};

}  // namespace

Connection::Connection(TransportState& transport, std::unique_ptr<Stream> stream,
                       std::function<void(Connection*)> on_gone)
    : transport_(transport),
      limits_(transport.limits),
      stream_(std::move(stream)),
      on_gone_(std::move(on_gone)),
      parser_(limits_),
      in_(limits_.max_header_bytes),
      is_proxy_(transport.proxies.trusts(stream_->peer())) {}

void Connection::start() {
  guard([this] {
    stream_->open(shared_from_this());
    enter(Phase::kOpening, limits_.header_timeout);
  });
}

void Connection::handle_open(OpenResult result) {
  if (phase_ == Phase::kClosed) return;
  if (result == OpenResult::kPlainHttp) refuse_plain_http();
  if (result != OpenResult::kDone) return close();
  enter(Phase::kIdle, limits_.idle_timeout);
  continue_reading();
}

bool Connection::is_reading() const {
  return phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody;
}

void Connection::enter(Phase phase, milliseconds limit) {
  phase_ = phase;
  const auto deadline =
      limit == kNoLimit ? steady_clock::time_point::max() : steady_clock::now() + limit;
  stream_->set_deadline(is_reading() ? std::min(deadline, drain_end_) : deadline);
}

// --- Input ---

// Does not read while the buffer is full: this bounds how far a client can send ahead of the
// current response.
void Connection::continue_reading() {
  if (is_read_pending_ || input_ended_ || phase_ == Phase::kClosed) return;
  if (discards_input_) in_.clear();
  if (in_.is_full()) return;
  const auto [room, size] = in_.make_room();
  is_read_pending_ = true;
  stream_->read_some(room, size);
}

void Connection::handle_read(size_t num_bytes) {
  is_read_pending_ = false;
  if (phase_ == Phase::kClosed) return;
  if (num_bytes == 0) return handle_input_end();
  transport_.counters.received_bytes += static_cast<int64_t>(num_bytes);
  in_.add(num_bytes);
  if (is_reading()) parse();
  continue_reading();
}

void Connection::handle_input_end() {
  input_ended_ = true;
  if (phase_ != Phase::kResponding || !may_read_response()) return close();
  flush();
}

// On TCP, a client that only shut down its sending side (`nc -N`) looks like a client that has
// closed its connection. The system of a closed client answers any byte with a reset, so the server
// sends bytes that an open client ignores. A complete response serves this purpose itself.
bool Connection::may_read_response() {
  if (response_->state() == PendingResponse::State::kWhole) return true;
  return stream_->watch_reset() && response_->probe();
}

void Connection::parse() {
  if (phase_ == Phase::kIdle) request_began_ = steady_clock::now();
  while (is_reading()) {
    const size_t used = parser_.feed(in_.bytes());
    in_.consume(used);
    const RequestParser::State state = parser_.state();
    const bool has_head =
        state == RequestParser::State::kBody || state == RequestParser::State::kDone;
    if (has_head && !admit_client()) {
      ++transport_.counters.num_refused;
      return refuse({.status = 503,
                     .code = "too_many_connections",
                     .message = "The server has reached its limit of requests for this address."});
    }
    if (!charge_body()) {
      return refuse({.status = 503,
                     .code = "bodies_too_large",
                     .message = "The memory for request bodies is used up; try again later."});
    }
    switch (state) {
      case RequestParser::State::kFailed:
        ++transport_.counters.num_bad_requests;
        return refuse(parser_.refusal());
      case RequestParser::State::kDone:
        return dispatch();
      default:
        if (used == 0 || in_.bytes().empty()) return await_input();
    }
  }
}

void Connection::await_input() {
  if (input_ended_) return close();
  if (parser_.state() == RequestParser::State::kBody) {
    if (phase_ == Phase::kBody || !check_head()) return;
    enter(Phase::kBody, limits_.body_timeout);
    if (parser_.expects_continue() && in_.bytes().empty()) {
      out_ = "HTTP/1.1 100 Continue\r\n\r\n";
      after_write_ = PendingResponse::State::kEmpty;
      continue_writing();
    }
  } else if (in_.bytes().empty()) {
    if (phase_ != Phase::kIdle) enter(Phase::kIdle, limits_.idle_timeout);
  } else if (phase_ != Phase::kHead) {
    enter(Phase::kHead, limits_.header_timeout);
  }
}

// --- Output ---

void Connection::begin_response(bool keep_alive) {
  ResponseTraits traits{.is_http11 = parser_.is_http11(),
                        .keep_alive = keep_alive,
                        .is_head = parser_.request().method == "HEAD",
                        .max_buffered_bytes = limits_.max_buffered_bytes,
                        .hooks = &transport_.hooks,
                        .budget = transport_.responses,
                        .head = head_of(parser_.request(), client())};
  traits.head.began = request_began_;
  response_ = std::make_shared<PendingResponse>(std::move(traits), shared_from_this());
  // A write of "100 Continue" may still be in progress, which needs a deadline.
  enter(Phase::kResponding, out_.empty() ? kNoLimit : limits_.write_timeout);
}

void Connection::dispatch() {
  begin_response(parser_.keeps_alive() && !is_draining());
  const std::shared_ptr<PendingResponse> response = response_;
  std::string peer = client();
  Request request = parser_.take();
  request.peer = std::move(peer);
  request.body_share = std::move(body_share_);
  const bool is_handled = run_guarded("[http] a handler threw an exception", [&] {
    transport_.handler(std::move(request), make_exchange(response));
  });
  if (!is_handled) response->abandon();
  if (input_ended_ && !may_read_response()) return close();
  flush();
}

void Connection::refuse(Refusal refusal) {
  discards_input_ = true;
  begin_response(false);
  std::string peer = client();
  Request head = parser_.take();  // also discards the body read so far
  body_share_.reset();
  head.peer = std::move(peer);
  head.began = request_began_;
  response_->respond(refusal_response(&transport_.hooks, head, refusal));
  flush();
}

void Connection::refuse_plain_http() {
  Request head;
  head.peer = stream_->peer();
  const Response response = refusal_response(
      &transport_.hooks, head,
      {.status = 400, .code = "plain_http", .message = "This port serves HTTPS, not plain HTTP."});
  stream_->end_unencrypted(closing_response(response));
}

std::string Connection::client() const {
  if (is_proxy_) {
    const auto address = transport_.proxies.client_of(parser_.request().headers);
    if (address) return address->text();
  }
  return stream_->peer();
}

bool Connection::admit_client() {
  if (!is_proxy_ || client_permit_ || transport_.peer_limit.is_off()) return true;
  const auto address = transport_.proxies.client_of(parser_.request().headers);
  client_permit_ = transport_.peer_limit.take(address ? address->network() : "");
  return client_permit_ != nullptr;
}

bool Connection::check_head() {
  if (!transport_.hooks.check_head) return true;
  const Request& coming = parser_.request();
  std::optional<Response> refused = transport_.hooks.check_head({.method = coming.method,
                                                                 .path = coming.path,
                                                                 .query = coming.query,
                                                                 .headers = coming.headers,
                                                                 .body = "",
                                                                 .peer = client()});
  if (!refused) return true;
  discards_input_ = true;
  begin_response(false);
  response_->respond(*refused);
  flush();
  return false;
}

bool Connection::charge_body() {
  const std::string& body = parser_.request().body;
  if (body.empty()) return true;
  if (!body_share_) body_share_ = std::make_shared<ByteShare>(transport_.bodies);
  return body_share_->grow_to(body.capacity());
}

void Connection::poll_response() {
  if (phase_ != Phase::kResponding) return;
  // flush() does nothing during a write, and a client that does not read keeps a write in progress.
  if (response_->state() == PendingResponse::State::kTooSlow) {
    ++transport_.counters.num_slow_readers;
    return close();
  }
  flush();
}

// Writes everything that has accumulated since the last write as one piece.
void Connection::flush() {
  if (!out_.empty() || phase_ != Phase::kResponding) return;
  after_write_ = response_->take_unsent(out_);
  num_written_ = 0;
  if (after_write_ == PendingResponse::State::kTooSlow) return poll_response();
  // Released before the last bytes, so that the client's next request can be admitted.
  if (after_write_ == PendingResponse::State::kWhole) client_permit_.reset();
  if (!out_.empty()) {
    const auto size = static_cast<int64_t>(out_.size());
    const auto rate = static_cast<int64_t>(limits_.min_bytes_per_second);
    write_end_ = steady_clock::now() + limits_.write_timeout + milliseconds(1000 * size / rate);
    return continue_writing();
  }
  if (after_write_ == PendingResponse::State::kWhole) return finish_response();
  if (after_write_ == PendingResponse::State::kBroken) return close();
  stream_->set_deadline(steady_clock::time_point::max());
}

void Connection::continue_writing() {
  if (phase_ == Phase::kResponding) {
    stream_->set_deadline(std::min(steady_clock::now() + limits_.write_timeout, write_end_));
  }
  stream_->write_some(std::string_view(out_).substr(num_written_));
}

void Connection::handle_written(size_t num_bytes) {
  if (phase_ == Phase::kClosed) return;
  if (num_bytes == 0) return close();
  transport_.counters.sent_bytes += static_cast<int64_t>(num_bytes);
  num_written_ += num_bytes;
  if (num_written_ < out_.size()) return continue_writing();
  out_.clear();
  num_written_ = 0;
  if (phase_ != Phase::kResponding) return;
  if (after_write_ == PendingResponse::State::kWhole) return finish_response();
  if (after_write_ == PendingResponse::State::kBroken) return close();
  flush();
}

void Connection::finish_response() {
  const bool keep_alive = response_->keeps_alive();
  response_->finish();
  response_.reset();
  std::string().swap(out_);  // frees a large response, whose memory an assignment would keep
  after_write_ = PendingResponse::State::kEmpty;
  if (!keep_alive) return end();
  // The response head promised keep-alive before the drain began. The next response will not.
  if (is_draining()) drain_end_ = steady_clock::now() + kDrainGrace;
  enter(Phase::kIdle, limits_.idle_timeout);
  parse();
  continue_reading();
}

// --- End of the connection ---

void Connection::handle_timeout() {
  switch (phase_) {
    case Phase::kHead:
    case Phase::kBody:
      if (is_draining()) return refuse_for_shutdown();
      ++transport_.counters.num_timeouts;
      return refuse({.status = 408,
                     .code = "request_timeout",
                     .message = "The request did not arrive within the time limit."});
    case Phase::kOpening:
      if (!is_draining()) ++transport_.counters.num_timeouts;
      return close();
    case Phase::kResponding:
      ++transport_.counters.num_timeouts;
      return close();
    case Phase::kIdle:
      return end();
    default:
      return close();
  }
}

void Connection::begin_drain() {
  if (is_draining()) return;
  drain_end_ = steady_clock::now() + kDrainGrace;
  if (phase_ == Phase::kResponding) return response_->end_keep_alive();
  if (phase_ == Phase::kOpening || is_reading()) stream_->set_deadline(drain_end_);
}

void Connection::refuse_for_shutdown() {
  refuse({.status = 503,
          .code = "shutting_down",
          .message = "The server is shutting down; the request had not arrived completely."});
}

// Shuts down sending, and waits for the client to close its side.
void Connection::end() {
  if (input_ended_) return close();
  discards_input_ = true;
  enter(Phase::kClosing, kLinger);
  stream_->shut_down();
  continue_reading();
}

void Connection::notify_client_gone() noexcept {
  run_guarded("[http] could not notify the request's owner that its client disconnected",
              [this] { std::exchange(response_, nullptr)->close(); });
}

void Connection::report_cut_request() noexcept {
  if (!transport_.hooks.on_cut) return;
  run_guarded("[http] could not log a request whose client disconnected", [this] {
    Request head = head_of(parser_.request(), client());
    head.began = request_began_;
    transport_.hooks.on_cut(head);
  });
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  if (is_reading() && parser_.state() == RequestParser::State::kBody) report_cut_request();
  phase_ = Phase::kClosed;
  client_permit_.reset();
  if (response_) notify_client_gone();
  stream_->close();
  on_gone_(this);
}

}  // namespace quire::http
