// Parsers of the client: a server's URL, an HTTP/1.x response and a stream of events.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire::http_client {

struct Url {
  bool is_tls = false;
  std::string host;  // an IPv6 address without its brackets
  int port = 80;
  std::string path;  // the prefix of every target, without a slash at its end: "" or "/llm"
};

// Parses "http[s]://HOST[:PORT][/PATH]"; refuses a user, a query and a fragment.
Result<Url> parse_url(std::string_view text);

// Returns the Host field: includes the port only if it is not the scheme's default.
std::string host_field(const Url& url);

class ResponseHandler;

// Parses an HTTP/1.x response that arrives in pieces of any size.
class ResponseParser {
 public:
  enum class State { kReading, kDone, kFailed };

  // Calls the handler for the head (except 1xx) and for pieces of the body, but not for the end.
  explicit ResponseParser(ResponseHandler& handler);
  ~ResponseParser();

  // Returns the number of bytes that it consumed. The caller passes the rest again, followed by
  // more bytes.
  size_t feed(std::string_view bytes);
  // Ends the input: this completes a response without a length, and truncates any other.
  void end_of_connection();

  State state() const { return state_; }
  bool keeps_alive() const;
  const Status& error() const { return error_; }

 private:
  struct Message;
  void fail(std::string_view what);

  ResponseHandler& handler_;
  std::unique_ptr<Message> message_;
  State state_ = State::kReading;
  Status error_;
};

// Reads the events of a text/event-stream that arrives in pieces of any size (WHATWG HTML, section
// 9.2). Keeps only an event's `data` lines, joined by '\n'.
class SseReader {
 public:
  explicit SseReader(size_t max_event_bytes = size_t{16} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Calls on_event(std::string_view data) for each event that `bytes` completes. Returns false, and
  // reads nothing more, once an event has exceeded `max_event_bytes`.
  template <typename OnEvent>
  bool feed(std::string_view bytes, OnEvent&& on_event) {
    while (!bytes.empty() && !is_over_) {
      if (!take_line(bytes)) continue;
      if (end_line()) {
        on_event(std::string_view(event_));
        has_data_ = false;
      }
    }
    return !is_over_;
  }

 private:
  // Moves bytes of the current line to line_; returns true once the line has ended.
  bool take_line(std::string_view& bytes);
  // Processes line_; returns true if it ends an event, which is then in event_.
  bool end_line();

  size_t max_event_bytes_;
  std::string line_;
  std::string event_;
  bool has_data_ = false;
  bool ended_with_cr_ = false;
  bool is_over_ = false;
};

}  // namespace quire::http_client
