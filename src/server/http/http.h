// The interface between the server's transport and its routes. Independent of models.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A complete request, whose body is within the limits.
struct Request {
  std::string method;  // "POST"
  std::string path;    // "/v1/models": percent-decoded, without the query
  std::string query;   // as received, without '?'
  Headers headers;     // names in lower case
  std::string body;
  // The client: "127.0.0.1:50312", "unix", or behind a trusted proxy "203.0.113.7".
  std::string peer;
  std::shared_ptr<void> body_share = nullptr;  // share of Limits::max_total_body_bytes
  // When the first byte arrived; set only in the heads that Hooks::write_refusal and on_cut get.
  std::chrono::steady_clock::time_point began = {};

  // Returns the first header with this name (in lower case), or a view without data.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers = {};
  std::string body;
};

// The response to one request. Thread-safe. Calls never block, and do nothing after the client has
// disconnected. Call exactly one of respond() and start_stream()…end_stream(). Dropping an exchange
// without a response sends a 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Returns false, without sending anything, if the response budget has no room for the body; a
  // body of up to 64 KiB always has room. The caller then sends a smaller response, such as an
  // error.
  virtual bool respond(Response response) = 0;

  // start_stream() begins a body in pieces, such as events. Pieces that a slow client has not read
  // are kept up to Limits::max_buffered_bytes; beyond that the connection is closed.
  virtual void start_stream(int status, std::string content_type, Headers headers) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end_stream() = 0;

  // Registers a callback. It is called once, on a thread of the transport, if the connection ends
  // before the whole response is delivered: the client disconnected or was too slow, or the server
  // stopped. If the connection has already ended, the callback is called at once. It must not
  // block.
  virtual void on_closed(std::function<void()> callback) = 0;
};

// Handlers and hooks run on the transport's threads; they must not block for longer than about a
// microsecond.
using Handler = std::function<void(Request&& request, std::shared_ptr<Exchange> exchange)>;

// The reason for which the transport itself refuses a request.
struct Refusal {
  int status = 400;
  std::string_view code;     // "header_too_large"
  std::string_view message;  // a sentence
};

// Callbacks of the routes in addition to the handler.
struct Hooks {
  // Called before a body is read. A returned response is sent, and the body is not read.
  std::function<std::optional<Response>(const Request& head)> check_head = nullptr;
  // Formats a refusal. `head` has the known parts of the request: only the peer if the
  // request could not be read.
  std::function<Response(const Request& head, const Refusal& refusal)> write_refusal = nullptr;
  // Called for a request whose client disconnected before the body was complete. It must not throw.
  std::function<void(const Request& head)> on_cut = nullptr;
};

// Returns whether `c` is a control character that HTTP lines must not contain: all controls except
// the tab.
inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace quire::http
