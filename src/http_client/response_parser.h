// An HTTP/1.x response as it comes, in pieces of any size.
#pragma once

#include <memory>
#include <string_view>

#include "quire/status.h"

namespace quire::http_client {

class ResponseHandler;

class ResponseParser {
 public:
  enum class State { kReading, kDone, kFailed };

  // Tells the handler of the head (but of 1xx) and of the body's pieces; not of the end.
  explicit ResponseParser(ResponseHandler& handler);
  ~ResponseParser();

  // Returns how many of the bytes are used up; the rest must come again with more behind it.
  size_t feed(std::string_view bytes);
  // No more will come: the end of an answer that has no length, else a cut.
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
