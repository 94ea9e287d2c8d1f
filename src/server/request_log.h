// One line of log a request, when it has been answered: who asked what, and how it ended. No text
// of prompts or answers, no keys.
#pragma once

#include <chrono>
#include <string>

namespace quire::server {

struct CallError;

struct RequestLog {
  using Clock = std::chrono::steady_clock;

  std::string id;  // x-request-id
  std::string method;
  std::string path;
  std::string peer;
  Clock::time_point arrived = Clock::now();

  // Of calls for an answer.
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  std::string outcome;  // "stop", "cancelled", an error: loggable()

  void write(int http_status) const;
  // A 500's cause, at the level of errors: it must be there without write()'s lines too. Nothing
  // where the fault is not ours.
  void write_failure(const CallError& error) const;
};

// The caller's x-request-id where it is fit to be logged and sent back (up to 128 characters of
// [A-Za-z0-9._-]), else a new one.
std::string request_id(std::string_view wanted);

}  // namespace quire::server
