#pragma once

#include <exception>
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
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return kNoStdException;
  }
}

}  // namespace quire
