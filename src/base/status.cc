#include "quire/status.h"

#include <cstdio>
#include <cstdlib>

#include "base/check.h"

namespace quire {

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kInternal:
      return 500;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
  }
  return 500;
}

void check_failed(const char* condition, std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "[check] %s:%d: %s; expected %s\n", file, line, std::string(message).c_str(),
               condition);
  std::abort();
}

void die_on_bad_result(const Status& status) {
  check_failed("result.ok()", status.message(), __FILE__, __LINE__);
}

}  // namespace quire
