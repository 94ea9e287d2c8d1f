#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quire {

void check_failed(const char* condition, std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "[check] %s:%d: %s; expected %s\n", file, line, std::string(message).c_str(),
               condition);
  std::abort();
}

}  // namespace quire
