// Requests out of bytes, without a socket: Beast's parser behind stricter rules. Whatever two
// implementations of HTTP might read as different messages is refused (RFC 9112, sections 2.2, 5
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

  // Takes what it can of `bytes` and returns how much; what is left has to come again, with more
  // behind it. Returns at the end of a head and of a request. A piece that is max_header_bytes
  // long and still incomplete is refused, so a buffer of that size is enough.
  size_t feed(std::string_view bytes);

  State state() const;
  const Refusal& refusal() const;  // in kFailed: 400, 413, 414, 417, 431, 501 or 505

  // From the end of the head on.
  bool is_http11() const;
  bool keeps_alive() const;
  bool expects_continue() const;
  const Request& request() const;

  // In kDone: hands the request over (without a peer) and begins the next one.
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
  size_t num_scanned_ = 0;  // of the bytes that feed_head() left
  bool head_ended_ = false;
};

}  // namespace quire::http
