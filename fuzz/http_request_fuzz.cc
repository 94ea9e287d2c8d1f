// Parses heads and bodies of requests. Accepted requests keep the limits, and the result does not
// depend on the pieces in which the bytes arrive. The first byte selects the size of the pieces.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/http/request_parser.h"

namespace quire::http {
namespace {

using State = RequestParser::State;

Limits small_limits() {
  Limits limits;
  limits.max_header_bytes = 1024;
  limits.max_headers = 16;
  limits.max_body_bytes = 2048;
  return limits;
}

void check_request(const Request& request, const Limits& limits) {
  QUIRE_CHECK(!request.method.empty() && !request.path.empty(),
              "a request has a method and a path");
  QUIRE_CHECK(request.path.find('\0') == std::string::npos, "no NUL in a path");
  QUIRE_CHECK(request.body.size() <= limits.max_body_bytes, "bodies are limited");
  QUIRE_CHECK(request.headers.size() <= static_cast<size_t>(limits.max_headers),
              "fields are limited");
  int num_framings = 0;
  size_t num_bytes = 0;
  for (const auto& [name, value] : request.headers) {
    num_framings += name == "content-length" || name == "transfer-encoding";
    num_bytes += name.size() + value.size();
    QUIRE_CHECK((name + value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
                "no line ends in fields");
    if (name == "content-length") {
      QUIRE_CHECK(std::stoull(value) == request.body.size(), "a body has the length of its header");
    }
  }
  QUIRE_CHECK(num_framings <= 1, "one framing");
  QUIRE_CHECK(num_framings == 1 || request.body.empty(), "no body without framing");
  QUIRE_CHECK(num_bytes <= limits.max_header_bytes, "heads are limited");
}

void append(std::string& to, std::string_view text) {
  to.append(text).append(1, '\x1f');
}

// Returns all accepted requests up to the first error as one text. The kind of error, and whether
// it is found before the rest arrives, may differ: Beast parses a chunk's line again with each
// piece.
std::string read_all(std::string_view bytes, size_t piece_bytes) {
  const Limits limits = small_limits();
  RequestParser parser(limits);
  std::string waiting;
  std::string seen;
  for (;;) {
    const size_t used = parser.feed(waiting);
    QUIRE_CHECK(used <= waiting.size(), "no more than there is");
    waiting.erase(0, used);
    if (parser.state() == State::kFailed) {
      const Refusal& refusal = parser.refusal();
      QUIRE_CHECK(refusal.status >= 400 && refusal.status <= 505 && !refusal.code.empty() &&
                      !refusal.message.empty(),
                  "refusals say what is wrong");
      return seen;
    }
    if (parser.state() == State::kDone) {
      append(seen, parser.keeps_alive() ? "keep" : "close");
      const Request request = parser.take();
      check_request(request, limits);
      append(seen, request.method);
      append(seen, request.path);
      append(seen, request.query);
      append(seen, request.body);
      for (const auto& [name, value] : request.headers) append(seen, name + ":" + value);
      continue;
    }
    if (used > 0) continue;
    const size_t room = limits.max_header_bytes - waiting.size();
    QUIRE_CHECK(room > 0, "a buffer of max_header_bytes is enough");
    if (bytes.empty()) return seen;
    const size_t count = std::min({piece_bytes, room, bytes.size()});
    waiting.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const size_t piece_bytes = size_t{1} + static_cast<unsigned char>(input[0]);
  input.remove_prefix(1);
  QUIRE_CHECK(read_all(input, 1024) == read_all(input, piece_bytes), "one reading");
}

}  // namespace
}  // namespace quire::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::http::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
