// Parses requests from bytes, independent of sockets, with Beast's parser and stricter rules.
// Refuses messages that two HTTP implementations could read differently (RFC 9112, sections 2.2, 5
// and 6; "request smuggling").
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/http/http.h"
#include "server/http/server.h"

namespace quire::http {

class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  // Consumes bytes and returns how many; the caller passes the rest again with more appended.
  // Returns at the end of a head and of a request. An incomplete piece of max_header_bytes is
  // refused, so a buffer of that size is enough.
  size_t feed(std::string_view bytes);

  State state() const;
  const Refusal& refusal() const;  // in kFailed: 400, 413, 414, 417, 431, 501 or 505

  // Valid from the end of the head on.
  bool is_http11() const;
  bool keeps_alive() const;
  bool expects_continue() const;
  const Request& request() const;

  // Returns the request, without a peer, and starts the next one. Only in kDone.
  Request take();

 private:
  class Message;

  size_t feed_head(std::string_view bytes);
  size_t feed_body(std::string_view bytes);
  void scan_head(std::string_view bytes);
  void fail(const Refusal& refusal);

  const Limits limits_;
  State state_ = State::kHead;
  Refusal refusal_;
  std::unique_ptr<Message> message_;
  size_t num_scanned_ = 0;  // bytes scanned that feed_head() has not consumed
  bool head_ended_ = false;
};

}  // namespace quire::http
