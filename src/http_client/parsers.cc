#include "http_client/parsers.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <optional>

#include "base/ascii.h"
#include "base/text.h"
#include "http_client/client.h"

namespace quire::http_client {
namespace {

namespace beast = boost::beast;
constexpr uint32_t kMaxHeadBytes = 16 << 10;

// Returns whether the text has no character that would end a header line or has a special meaning
// in a URL.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 127 && std::string_view("?#@\\\"<>").find(c) == std::string_view::npos;
  });
}

std::optional<int> parse_port(std::string_view text) {
  const std::optional<int> port = parse_whole<int>(text);
  return port && *port >= 1 && *port <= 65535 ? port : std::nullopt;
}

// "HOST[:PORT]"
bool parse_authority(std::string_view text, Url& url) {
  const bool is_ipv6 = text.starts_with('[');
  const size_t host_end = is_ipv6 ? text.find(']') : std::min(text.find(':'), text.size());
  if (host_end == std::string_view::npos) return false;
  url.host = is_ipv6 ? text.substr(1, host_end - 1) : text.substr(0, host_end);
  std::string_view rest = text.substr(std::min(host_end + (is_ipv6 ? 1 : 0), text.size()));
  url.port = url.is_tls ? 443 : 80;
  if (!rest.empty()) {
    if (!rest.starts_with(':')) return false;
    const auto port = parse_port(rest.substr(1));
    if (!port) return false;
    url.port = *port;
  }
  return !url.host.empty();
}

// Returns the URL as an error shows it: without a user and password, which end at the last '@'.
std::string_view without_user(std::string_view text) {
  const size_t at = text.rfind('@');
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  Url url;
  url.is_tls = text.starts_with(kTls);
  const bool has_scheme = url.is_tls || text.starts_with(kPlain);
  std::string_view rest = has_scheme ? text.substr((url.is_tls ? kTls : kPlain).size()) : "";
  const size_t slash = std::min(rest.find('/'), rest.size());
  if (!has_scheme || !is_plain(rest) || !parse_authority(rest.substr(0, slash), url)) {
    return invalid_argument(fmt::format(
        "[http] base_url: got '{}', expected http://HOST:PORT or https://HOST:PORT, without a user "
        "and a query",
        clipped(without_user(text))));
  }
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::string host_field(const Url& url) {
  const std::string host =
      url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  if (url.port == (url.is_tls ? 443 : 80)) return host;
  return fmt::format("{}:{}", host, url.port);
}

struct ResponseParser::Message final : beast::http::basic_parser<false> {
  explicit Message(ResponseHandler& to) : handler(to) {
    eager(true);
    header_limit(kMaxHeadBytes);
    // The body is passed on as it arrives, so it needs no limit. Beast 1.74 treats `boost::none` as
    // 0.
    body_limit(std::numeric_limits<uint64_t>::max());
  }

  ResponseHandler& handler;
  int status = 0;

 private:
  using string_view = beast::string_view;
  using error_code = beast::error_code;

  void on_response_impl(int code, string_view, int, error_code&) override { status = code; }
  void on_field_impl(beast::http::field, string_view name, string_view value,
                     error_code&) override {
    if (status >= 200) handler.on_field({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(error_code&) override {
    if (status >= 200) handler.on_head(status);
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view piece, error_code& error) override {
    if (!handler.on_body({piece.data(), piece.size()})) error = beast::http::error::body_limit;
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

bool ResponseParser::keeps_alive() const {
  return message_->keep_alive();
}

void ResponseParser::fail(std::string_view what) {
  state_ = State::kFailed;
  error_ = internal_error(fmt::format("[http] the response is not HTTP/1.1: {}", what));
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
  error_ = internal_error("[http] the connection was closed before the end of the response");
}

bool SseReader::take_line(std::string_view& bytes) {
  if (ended_with_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
  ended_with_cr_ = false;
  const size_t size = std::min(bytes.find_first_of("\r\n"), bytes.size());
  if (line_.size() + event_.size() + size > max_event_bytes_) {
    is_over_ = true;
    return false;
  }
  line_.append(bytes.substr(0, size));
  const bool has_end = size < bytes.size();
  ended_with_cr_ = has_end && bytes[size] == '\r';
  bytes.remove_prefix(size + (has_end ? 1 : 0));
  return has_end;
}

bool SseReader::end_line() {
  if (line_.empty()) return has_data_;
  if (!has_data_) event_.clear();
  std::string_view line = line_;
  if (line.starts_with("data") && (line.size() == 4 || line[4] == ':')) {
    line.remove_prefix(std::min<size_t>(line.size(), 5));
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) event_ += '\n';
    event_ += line;
    has_data_ = true;
  }
  line_.clear();
  return false;
}

}  // namespace quire::http_client
