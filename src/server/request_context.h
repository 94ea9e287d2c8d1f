// One HTTP request from its arrival to its response.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "server/http/server.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/api_error.h"
#include "server/service.h"

namespace quire::server {

// The status, in log and metrics, of a request whose client disconnected before the response was
// complete, as in nginx.
inline constexpr int kClientGone = 499;

// Bounds the log lines of requests that could not be read and of refused connections, so that a
// flood of them does not fill the log. Thread-safe.
class LogThrottle {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMaxLinesPerSecond = 10;

  // Returns nothing if a line must be left out now; otherwise the number of lines that were left
  // out since the last one.
  std::optional<int64_t> take(Clock::time_point now);

 private:
  std::mutex mutex_;
  Clock::time_point second_began_ = {};
  int num_lines_ = 0;  // in this second
  int64_t num_left_out_ = 0;
};

// The access log: one line per request with its status, duration and sizes. It contains no text of
// prompts or responses, and no keys.
struct RequestLog {
  using Clock = std::chrono::steady_clock;

  std::string id;  // x-request-id
  std::string method;
  std::string path;
  std::string peer;
  Clock::time_point arrived = Clock::now();
  // The level of statuses below 400. Statuses from 400 to 500 are logged at info level, because
  // write_failure() logs the cause of a 500; those above 500 are warnings.
  LogLevel success_level = LogLevel::kInfo;

  size_t num_request_bytes = 0;   // of the body
  size_t num_response_bytes = 0;  // of the body, without chunk framing
  // Only for generation requests.
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  std::string outcome;  // "stop", "cancelled", or an error as loggable() returns it

  LogThrottle* throttle = nullptr;  // set for requests that could not be read

  void write(int http_status) const;
  // Logs the cause of a 500 at error level, so that it appears even if the info level is off. Logs
  // nothing for any other status.
  void write_failure(const ApiError& error) const;
};

// Returns the client's x-request-id if it is safe to log and to send back (at most 128 characters
// of [A-Za-z0-9._:=+@~-]); otherwise a new random id.
std::string request_id(std::string_view wanted);

// Returns a response with the error as its body and with `headers`; adds Retry-After to a 429 or
// 503.
http::Response error_response(const ApiError& error, ErrorShape shape, http::Headers headers);

// The error to send when Exchange::respond() returns false.
ApiError responses_too_large();

// A request that gets exactly one response: from respond(), from refuse(), or from the object that
// takes its exchange.
struct RequestContext {
  // If `exchange` is null, the caller sends the response: respond() and refuse() must not be
  // called.
  RequestContext(const ServiceConfig& config, ServerMetrics& metrics, http::Request&& request,
                 std::shared_ptr<http::Exchange>&& exchange);

  void respond(std::string body, std::string content_type = "application/json");
  void refuse(const ApiError& error);
  // Records the refusal and returns the response, which the caller sends.
  http::Response refusal(const ApiError& error);
  // Counts and logs the response, which the caller sends.
  void record(int http_status);
  // Records that the client disconnected before the generation started.
  void record_cancelled();

  ServerMetrics* metrics;
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  ErrorShape error_shape;          // of the API that the request belongs to
  http::Headers response_headers;  // x-request-id, and the CORS headers if enabled
  RequestLog log;
  int key_idx = -1;                            // index of the caller's key; -1: no key was needed
  std::string path_parameter = {};             // of a route like /v1/models/{model}
  std::optional<int> data_parallel_rank = {};  // see quire::Request
  std::string session_id = {};
};

}  // namespace quire::server
