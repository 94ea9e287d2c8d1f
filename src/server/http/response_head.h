// Formats the status line and header fields of a response.
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
  size_t content_length = 0;  // only for kLength
  bool is_http11 = true;      // the client's version
  bool keep_alive = true;
};

bool may_have_body(int status);

// Appends the head, including the empty line. Omits fields that contain a line end or another
// control character, because a handler may pass on client data.
void append_response_head(const ResponseHead& head, std::string& out);

}  // namespace quire::http
