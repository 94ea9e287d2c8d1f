#include "http_client/response_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "http_client/client.h"

namespace quire::http_client {
namespace {

namespace beast = boost::beast;
constexpr uint32_t kMaxHeadBytes = 16 << 10;

}  // namespace

struct ResponseParser::Message final : beast::http::basic_parser<false> {
  explicit Message(ResponseHandler& to) : handler(to) {
    eager(true);
    header_limit(kMaxHeadBytes);
    // The body is passed on as it arrives, so it needs no limit. Beast 1.74 takes `none` for 0.
    body_limit(std::numeric_limits<uint64_t>::max());
  }

  ResponseHandler& handler;
  int status = 0;

 private:
  using string_view = beast::string_view;
  using error_code = beast::error_code;

  void on_response_impl(int code, string_view, int, error_code&) override { status = code; }
  void on_field_impl(beast::http::field, string_view, string_view, error_code&) override {}
  void on_header_impl(error_code&) override {
    if (status >= 200) handler.on_head(status);
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view piece, error_code&) override {
    handler.on_body({piece.data(), piece.size()});
    return piece.size();
  }
  void on_chunk_header_impl(uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, string_view piece, error_code& error) override {
    return on_body_impl(piece, error);
  }
  void on_finish_impl(error_code&) override {}
  void on_request_impl(beast::http::verb, string_view, string_view, int, error_code&) override {}
};

ResponseParser::ResponseParser(ResponseHandler& handler)
    : handler_(handler), message_(std::make_unique<Message>(handler)) {}
ResponseParser::~ResponseParser() = default;

bool ResponseParser::has_head() const {
  return message_->is_header_done();
}
bool ResponseParser::keeps_alive() const {
  return message_->keep_alive();
}

void ResponseParser::fail(std::string_view what) {
  state_ = State::kFailed;
  error_ = internal_error(fmt::format("[http] the answer is no HTTP/1.1: {}", what));
}

size_t ResponseParser::feed(std::string_view bytes) {
  size_t used = 0;
  while (state_ == State::kReading && used < bytes.size()) {
    // Beast 1.74 asserts that the end of a chunked body, "0\r\n\r\n", comes in one piece.
    const bool is_chunked = message_->is_header_done() && message_->chunked();
    if (is_chunked && bytes.size() - used < 5) break;
    beast::error_code error;
    used += message_->put({bytes.data() + used, bytes.size() - used}, error);
    if (error == beast::http::error::need_more) break;
    if (error) {
      fail(error.message());
    } else if (message_->is_done()) {
      if (message_->status >= 200) {
        state_ = State::kDone;
      } else {
        message_ = std::make_unique<Message>(handler_);  // 100 Continue, 103 Early Hints
      }
    }
  }
  return used;
}

void ResponseParser::end_of_connection() {
  if (state_ != State::kReading) return;
  beast::error_code error;
  if (message_->is_header_done()) message_->put_eof(error);
  if (message_->is_header_done() && message_->is_done() && !error) {
    state_ = State::kDone;
    return;
  }
  state_ = State::kFailed;
  error_ = internal_error("[http] the connection was cut before the answer's end");
}

}  // namespace quire::http_client
