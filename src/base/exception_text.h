#pragma once

#include <optional>
#include <string>

#include "base/guarded.h"

namespace quire {

// Calls f, which is code of an embedder and may throw anything. Returns the exception's text, or
// nothing if there was none.
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
