#include "server/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "base/ascii.h"

namespace quire::http {
namespace {

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Returns "host" for "http://host/path", or "" for any other form and for a host with a user.
std::string_view find_host(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const std::string_view host = rest.substr(0, rest.find_first_of("/?"));
    return host.find('@') == std::string_view::npos ? host : "";
  }
  return "";
}

namespace beast = boost::beast;
using BeastError = beast::http::error;

constexpr Refusal kHeadTooLarge{431, "header_too_large",
                                "The request's header fields are too large or too many."};
constexpr Refusal kTargetTooLong{414, "uri_too_long", "The request's target is too long."};
constexpr Refusal kBodyTooLarge{413, "body_too_large", "The request's body is too large."};
constexpr Refusal kBadLine{400, "bad_request", "The request's head is not valid HTTP/1.1."};
constexpr Refusal kBadTarget{400, "bad_target", "The request's target is not a valid path."};
constexpr Refusal kBadField{400, "bad_header", "A header field of the request is malformed."};
constexpr Refusal kBadFraming{400, "bad_framing",
                              "Content-Length or Transfer-Encoding is malformed, repeated or "
                              "in conflict."};
constexpr Refusal kBadChunk{400, "bad_chunk", "The request's chunked body is malformed."};
constexpr Refusal kBadHost{400, "bad_host",
                           "An HTTP/1.1 request must have exactly one Host field."};
constexpr Refusal kBadKey{400, "bad_header",
                          "A request must not have more than one Authorization field."};
constexpr Refusal kBadType{400, "bad_header",
                           "A request must not have more than one Content-Type field."};
constexpr Refusal kBadVersion{505, "http_version_not_supported",
                              "Only HTTP/1.1 and HTTP/1.0 are supported."};
constexpr Refusal kNoConnect{501, "not_implemented", "CONNECT is not supported."};
constexpr Refusal kNoEncoding{501, "not_implemented",
                              "The only supported transfer encoding is chunked."};
constexpr Refusal kBadExpect{417, "expectation_failed",
                             "The only supported expectation is 100-continue."};

Refusal from_beast(const beast::error_code& error, bool in_head) {
  if (error == BeastError::body_limit) return kBodyTooLarge;
  if (error == BeastError::header_limit) return kHeadTooLarge;
  if (error == BeastError::bad_version) return kBadVersion;
  if (error == BeastError::bad_target) return kBadTarget;
  if (error == BeastError::bad_content_length) return kBadFraming;
  if (error == BeastError::bad_transfer_encoding) return kBadFraming;
  if (error == BeastError::bad_field || error == BeastError::bad_value) return kBadField;
  return in_head ? kBadLine : kBadChunk;
}

// Returns whether the request line ends in an HTTP version ("GET / HTTP/2.0"). A version that is
// not supported gets a 505; any other line that Beast refuses gets a 400.
bool ends_in_version(std::string_view line) {
  if (line.size() < 9) return false;
  const std::string_view version = line.substr(line.size() - 9);
  return version.starts_with(" HTTP/") && is_digit(version[6]) && version[7] == '.' &&
         is_digit(version[8]);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// The values of one header field, which can occur several times.
struct Field {
  int count = 0;
  std::string_view value;  // the first
};

Field find_field(const Headers& headers, std::string_view name) {
  Field field;
  for (const auto& [key, value] : headers) {
    if (key == name && field.count++ == 0) field.value = value;
  }
  return field;
}

// Checks Content-Length and Transfer-Encoding. Stricter than Beast, which accepts "5, 5" as a
// length, and ignores unknown encodings.
std::optional<Refusal> check_framing(const Headers& headers, bool is_http11) {
  const Field length = find_field(headers, "content-length");
  const Field encoding = find_field(headers, "transfer-encoding");
  if (length.count > 1 || encoding.count > 1) return kBadFraming;
  if (length.count > 0 && (encoding.count > 0 || !is_number(length.value))) return kBadFraming;
  if (encoding.count > 0) {
    if (!is_http11) return kBadFraming;
    if (equals_ignoring_case(encoding.value, "chunked")) return std::nullopt;
    // The end of "chunked, gzip" cannot be found; "gzip, chunked" is valid but not supported.
    constexpr std::string_view kLast = "chunked";
    const std::string_view value = encoding.value;
    const bool ends_chunked =
        value.size() > kLast.size() &&
        equals_ignoring_case(value.substr(value.size() - kLast.size()), kLast);
    const bool is_one_name = value.find_first_of(", ;\t") == std::string_view::npos;
    return (ends_chunked || is_one_name) && !value.empty() ? kNoEncoding : kBadFraming;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Target> parse_target(std::string_view method, std::string_view target) {
  if (target == "*" && method == "OPTIONS") return Target{"*", "", ""};
  if (target.find('#') != std::string_view::npos) return std::nullopt;
  std::string_view host;
  if (!target.starts_with('/')) {
    host = find_host(target);
    if (host.empty()) return std::nullopt;
    target.remove_prefix(static_cast<size_t>(host.end() - target.begin()));
  }
  const size_t mark = std::min(target.find('?'), target.size());
  std::optional<std::string> path = percent_decode(target.substr(0, mark));
  if (!path) return std::nullopt;
  if (path->empty()) path = "/";  // "http://host"
  return Target{std::move(*path), std::string(target.substr(std::min(mark + 1, target.size()))),
                std::string(host)};
}

// One request while it is parsed. The limits are checked before data is stored.
class RequestParser::Message : public beast::http::basic_parser<true> {
 public:
  explicit Message(const Limits& limits) : max_headers_(limits.max_headers) {
    body_limit(limits.max_body_bytes);
    header_limit(static_cast<uint32_t>(
        std::min(limits.max_header_bytes, size_t{std::numeric_limits<uint32_t>::max()})));
  }

  Request request;
  bool is_http11 = false;
  bool expects_continue = false;
  std::optional<Refusal> refusal;  // for requests that Beast would accept

 private:
  using string_view = beast::string_view;
  using error_code = beast::error_code;

  static std::string_view view(string_view text) { return {text.data(), text.size()}; }

  void refuse(const Refusal& why, error_code& error) {
    refusal = why;
    error = BeastError::bad_field;  // any error stops the parser
  }

  void on_request_impl(beast::http::verb, string_view method, string_view target, int version,
                       error_code& error) override {
    is_http11 = version >= 11;
    if (view(method) == "CONNECT") return refuse(kNoConnect, error);
    std::optional<Target> parts = http::parse_target(view(method), view(target));
    if (!parts) return refuse(kBadTarget, error);
    request.method = view(method);
    request.path = std::move(parts->path);
    request.query = std::move(parts->query);
    host_ = std::move(parts->host);
  }

  void on_field_impl(beast::http::field, string_view name, string_view value,
                     error_code& error) override {
    if (++num_fields_ > max_headers_) return refuse(kHeadTooLarge, error);
    if (is_header_done_) return;  // a trailer; trailers are ignored
    std::string key(view(name));
    std::transform(key.begin(), key.end(), key.begin(), to_lower);
    request.headers.emplace_back(std::move(key), view(value));
  }

  void on_header_impl(error_code& error) override {
    is_header_done_ = true;
    if (const auto bad = check_framing(request.headers, is_http11)) return refuse(*bad, error);
    const int num_hosts = find_field(request.headers, "host").count;
    if (num_hosts > 1 || (is_http11 && num_hosts == 0)) return refuse(kBadHost, error);
    if (!host_.empty()) replace_host();
    // replace_host() adds a field to an HTTP/1.0 request that names its host only in the target.
    if (std::ssize(request.headers) > max_headers_) return refuse(kHeadTooLarge, error);
    // If a field is repeated, a proxy could use another of its values than this server.
    if (find_field(request.headers, "authorization").count > 1) return refuse(kBadKey, error);
    if (find_field(request.headers, "content-type").count > 1) return refuse(kBadType, error);
    const Field expect = find_field(request.headers, "expect");
    if (expect.count == 0 || !is_http11) return;
    if (!equals_ignoring_case(expect.value, "100-continue")) return refuse(kBadExpect, error);
    expects_continue = true;
  }

  void on_body_init_impl(const boost::optional<uint64_t>& length, error_code&) override {
    if (length) length_ = *length;
  }
  size_t on_body_impl(string_view piece, error_code&) override {
    grow_body(request.body.size() + piece.size());
    request.body.append(piece.data(), piece.size());
    return piece.size();
  }
  // Does not reserve Content-Length bytes in advance, because the client may send fewer. The
  // capacity doubles as the body arrives, but never exceeds Content-Length, as it could with
  // std::string::reserve().
  void grow_body(uint64_t needed) {
    const uint64_t capacity = request.body.capacity();
    if (needed <= capacity) return;
    std::string larger;
    larger.reserve(std::max(needed, std::min(2 * capacity, length_)));
    larger.append(request.body);
    request.body.swap(larger);
  }
  void on_chunk_header_impl(uint64_t, string_view extensions, error_code& error) override {
    // A quoted extension could hide the end of a line.
    if (std::any_of(extensions.begin(), extensions.end(), is_control)) refuse(kBadChunk, error);
  }
  size_t on_chunk_body_impl(uint64_t, string_view piece, error_code& error) override {
    return on_body_impl(piece, error);
  }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, string_view, int, error_code&) override {}

  void replace_host() {
    const auto is_host = [](const auto& field) { return field.first == "host"; };
    std::erase_if(request.headers, is_host);
    request.headers.emplace_back("host", host_);
  }

  const int max_headers_;
  std::string host_;                                        // host of an absolute-form target
  uint64_t length_ = std::numeric_limits<uint64_t>::max();  // Content-Length
  int num_fields_ = 0;
  bool is_header_done_ = false;
};

RequestParser::RequestParser(const Limits& limits)
    : limits_(limits), message_(std::make_unique<Message>(limits)) {}
RequestParser::~RequestParser() = default;

bool RequestParser::is_http11() const {
  return message_->is_http11;
}
bool RequestParser::keeps_alive() const {
  return message_->keep_alive();
}
bool RequestParser::expects_continue() const {
  return message_->expects_continue;
}
const Request& RequestParser::request() const {
  return message_->request;
}

void RequestParser::fail(const Refusal& refusal) {
  refusal_ = refusal;
  state_ = State::kFailed;
}

size_t RequestParser::feed(std::string_view bytes) {
  if (state_ == State::kHead) return feed_head(bytes);
  return state_ == State::kBody ? feed_body(bytes) : 0;
}

// Scans each byte once, in pieces of any size, and sets head_ended_ at an empty line. A line ends
// only in CR LF, and line folding is refused.
void RequestParser::scan_head(std::string_view bytes) {
  for (; num_scanned_ < bytes.size(); ++num_scanned_) {
    const size_t i = num_scanned_;
    const char c = bytes[i];
    const char before = i == 0 ? '\0' : bytes[i - 1];
    if ((c == '\n') != (before == '\r')) return fail(kBadLine);
    if (c != '\r' && c != '\n' && is_control(c)) return fail(kBadLine);
    if ((before == '\n' || i == 0) && (c == ' ' || c == '\t')) return fail(kBadLine);
    if (c == '\n' && i >= 3 && bytes[i - 2] == '\n') {
      num_scanned_ = i + 1;
      head_ended_ = true;
      return;
    }
  }
}

size_t RequestParser::feed_head(std::string_view bytes) {
  size_t num_blank = 0;  // old clients send an empty line after a body
  while (num_scanned_ <= 1 && bytes.starts_with("\r\n")) {
    bytes.remove_prefix(2);
    num_blank += 2;
    num_scanned_ = 0;
  }
  scan_head(bytes.substr(0, limits_.max_header_bytes));
  if (state_ == State::kFailed) return num_blank;
  const size_t line_end = bytes.substr(0, num_scanned_).find("\r\n");
  if (!head_ended_) {
    if (bytes.size() >= limits_.max_header_bytes) {
      fail(line_end == std::string_view::npos ? kTargetTooLong : kHeadTooLarge);
    }
    return num_blank;
  }

  beast::error_code error;
  const size_t used = message_->put({bytes.data(), num_scanned_}, error);
  if (error) {
    const bool is_other_version = ends_in_version(bytes.substr(0, line_end));
    const bool is_bad_version = error == BeastError::bad_version && !is_other_version;
    fail(message_->refusal ? *message_->refusal
                           : (is_bad_version ? kBadLine : from_beast(error, true)));
    return num_blank;
  }
  num_scanned_ = 0;
  head_ended_ = false;
  state_ = message_->is_done() ? State::kDone : State::kBody;
  return num_blank + used;
}

size_t RequestParser::feed_body(std::string_view bytes) {
  // Beast 1.74 asserts that the end of a chunked body, "0\r\n\r\n", comes in one piece.
  const size_t min_bytes = message_->chunked() ? 5 : 1;
  size_t used = 0;
  while (bytes.size() - used >= min_bytes && !message_->is_done()) {
    beast::error_code error;
    used += message_->put({bytes.data() + used, bytes.size() - used}, error);
    if (error == BeastError::need_more) break;
    if (error) {
      fail(message_->refusal ? *message_->refusal : from_beast(error, false));
      return used;
    }
  }
  if (message_->is_done()) {
    state_ = State::kDone;
  } else if (bytes.size() - used >= limits_.max_header_bytes) {
    fail(kBadChunk);  // the chunk header or the trailers are too long
  }
  return used;
}

Request RequestParser::take() {
  Request request = std::move(message_->request);
  message_ = std::make_unique<Message>(limits_);
  state_ = State::kHead;
  return request;
}

}  // namespace quire::http
