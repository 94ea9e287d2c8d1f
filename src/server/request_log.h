// One log line per generation request and per refused request: the request, its status and its
// duration. It contains no text of prompts or responses, and no keys.
#pragma once

#include <chrono>
#include <string>

namespace quire::server {

struct ApiError;

struct RequestLog {
  using Clock = std::chrono::steady_clock;

  std::string id;  // x-request-id
  std::string method;
  std::string path;
  std::string peer;
  Clock::time_point arrived = Clock::now();

  // Only for generation requests.
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  std::string outcome;  // "stop", "cancelled", or an error as loggable() returns it

  void write(int http_status) const;
  // Logs the cause of a 500 at error level, so that it appears even if the info level is off. Logs
  // nothing for any other status.
  void write_failure(const ApiError& error) const;
};

// Returns the client's x-request-id if it is safe to log and to send back (at most 128 characters
// of [A-Za-z0-9._-]); otherwise a new random id.
std::string request_id(std::string_view wanted);

}  // namespace quire::server
