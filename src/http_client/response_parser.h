// Parses an HTTP/1.x response that arrives in pieces of any size.
#pragma once

#include <memory>
#include <string_view>

#include "quire/status.h"

namespace quire::http_client {

class ResponseHandler;

class ResponseParser {
 public:
  enum class State { kReading, kDone, kFailed };

  // Calls the handler for the head (except 1xx) and for pieces of the body, but not for the end.
  explicit ResponseParser(ResponseHandler& handler);
  ~ResponseParser();

  // Consumes bytes and returns how many; the caller passes the rest again with more appended.
  size_t feed(std::string_view bytes);
  // Ends the input: this completes a response without a length, and truncates any other.
  void end_of_connection();

  State state() const { return state_; }
  bool has_head() const;
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

}  // namespace quire::http_client
