// Checks of internal invariants.
#pragma once

#include <string>
#include <string_view>

namespace quire {

[[noreturn]] void check_failed(const char* condition, std::string_view message, const char* file,
                               int line);

}  // namespace quire

// Ends the program, in every build, if an internal invariant does not hold. Not for a caller's
// input, for which a function returns an error.
#define QUIRE_CHECK(cond, message)                                 \
  do {                                                             \
    if (!(cond)) [[unlikely]]                                      \
      ::quire::check_failed(#cond, (message), __FILE__, __LINE__); \
  } while (false)
