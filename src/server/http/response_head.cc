#include "server/http/response_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string_view>

#include "server/http/ascii.h"

namespace quire::http {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
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

}  // namespace quire::http
