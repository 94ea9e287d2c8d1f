#pragma once

#include <string>
#include <string_view>

namespace quire {

[[noreturn]] void check_failed(const char* condition, std::string_view message, const char* file,
                               int line);

}  // namespace quire

// Checks an internal invariant, never a caller's input. It is active in every build and ends the
// program on failure.
#define QUIRE_CHECK(cond, message)                                 \
  do {                                                             \
    if (!(cond)) [[unlikely]]                                      \
      ::quire::check_failed(#cond, (message), __FILE__, __LINE__); \
  } while (false)
