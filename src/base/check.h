#pragma once

#include <string>
#include <string_view>

namespace quire {

[[noreturn]] void check_failed(const char* condition, std::string_view message, const char* file,
                               int line);

}  // namespace quire

// A broken invariant of ours, never a caller's fault: on in every build, ends the program.
#define QUIRE_CHECK(cond, message)                                 \
  do {                                                             \
    if (!(cond)) [[unlikely]]                                      \
      ::quire::check_failed(#cond, (message), __FILE__, __LINE__); \
  } while (false)
