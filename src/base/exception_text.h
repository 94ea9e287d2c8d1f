#pragma once

#include <optional>
#include <string>

#include "base/guarded.h"

namespace quire {

// Calls f, an embedder's code, which may throw anything. Returns the exception's text, or nullopt
// if f did not throw.
template <typename F>
std::optional<std::string> exception_text(F&& f) {
  try {
    f();
    return std::nullopt;
  } catch (...) {
    return with_exception_text([](const char* text) { return std::optional<std::string>(text); });
  }
}

}  // namespace quire
