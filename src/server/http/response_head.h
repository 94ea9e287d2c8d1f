// The status line and header fields of an answer.
#pragma once

#include <cstdint>
#include <string>

#include "server/http/http.h"

namespace quire::http {

enum class Framing { kLength, kChunked, kUntilClose };

struct ResponseHead {
  int status = 200;
  std::string_view content_type;
  const Headers& headers;
  Framing framing = Framing::kLength;
  size_t content_length = 0;  // of kLength
  bool is_http11 = true;      // what the client speaks
  bool keep_alive = true;
};

bool may_have_body(int status);

// Appends the head, up to and with the empty line. A field with a line end or another control in it
// is left out: a handler may pass on what a client sent.
void append_response_head(const ResponseHead& head, std::string& out);

}  // namespace quire::http
