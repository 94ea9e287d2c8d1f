// Parses requests from bytes, independent of sockets, with Beast's parser and stricter rules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"
#include "server/http/server.h"

namespace quire::http {

// The target of a request line.
struct Target {
  std::string path;   // percent-decoded once
  std::string query;  // as received, without '?'
  std::string host;   // of the absolute form; replaces the Host field (RFC 9112, 3.2.2)
};

// Parses the origin form ("/path?query"), the absolute form ("http://host/path?query") and, for
// OPTIONS, "*" (RFC 9112, section 3.2). Returns nothing for other forms, for a host with user
// information, for a "%" without two hex digits, for "%00" and for a fragment.
std::optional<Target> parse_target(std::string_view method, std::string_view target);

// Refuses messages that two HTTP implementations could read differently (RFC 9112, sections 2.2, 5
// and 6; "request smuggling").
class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  // Consumes a prefix of `bytes` and returns its length; the caller passes the rest again, with
  // later bytes appended. Stops at the end of a head and at the end of a request. Refuses a head,
  // chunk header or trailers that do not end within max_header_bytes, so a buffer of that size is
  // enough.
  size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const Refusal& refusal() const {
    return refusal_;
  }  // in kFailed: 400, 413, 414, 417, 431, 501 or 505

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
