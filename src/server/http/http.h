// What the server's transport and its routes say to each other. Knows HTTP, nothing of models.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A whole request: its body has arrived and is within the limits.
struct Request {
  std::string method;  // "POST"
  std::string path;    // "/v1/models": percent-decoded, without the query
  std::string query;   // as it came, without '?'
  Headers headers;     // names in lower case
  std::string body;
  std::string peer;                            // "127.0.0.1:50312", "unix"
  std::shared_ptr<void> body_share = nullptr;  // of Limits::max_total_body_bytes, while it lives

  // The first header of this name (lower case), else empty.
  std::string_view header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers = {};
  std::string body;
};

// The answer to one request. Thread-safe; calls never block, and do nothing once the client is
// gone. Exactly one of respond() and start_stream()…end_stream(). An exchange that is dropped
// without an answer is answered with 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // False where there is no room for a body so large, and nothing was sent (64 KiB and less always
  // have room): the caller then sends a smaller one, an error.
  virtual bool respond(Response response) = 0;

  // A body that comes in pieces (chunked; an event stream). What a slow reader has not taken is
  // kept up to Limits::max_buffered_bytes; beyond it the connection is closed.
  virtual void start_stream(int status, std::string content_type, Headers headers) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end_stream() = 0;

  // Called once, on some thread of the transport, if the connection ends before the answer has
  // been handed over whole: the client went away, was too slow, or the server was stopped. At once
  // if that has happened already. Must not block.
  virtual void on_closed(std::function<void()> callback) = 0;
};

// These run on threads of the transport: they must not block for longer than a microsecond's work.
using Handler = std::function<void(Request&& request, std::shared_ptr<Exchange> exchange)>;

// Why the transport itself refuses a request.
struct Refusal {
  int status = 400;
  std::string_view code;     // "header_too_large"
  std::string_view message;  // a sentence
};

// What the routes may have a say in beside whole requests.
struct Hooks {
  // Asked while a body is still to come: what it returns is the answer, and the body is not read.
  std::function<std::optional<Response>(const Request& head)> check_head = nullptr;
  // How a refusal is written. `head`: what is known of the request; it may be nothing.
  std::function<Response(const Request& head, const Refusal& refusal)> write_refusal = nullptr;
};

// By the hook, or as plain text where there is none.
Response refusal_response(const Hooks* hooks, const Request& head, const Refusal& refusal);

}  // namespace quire::http
