// The value of a Result in a test.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "quire/status.h"

namespace quire::testing {

// Without a value, the test fails at the caller's line with the error's message, and the program
// continues with the next test: GoogleTest catches the exception.
template <typename T>
T value_of(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result.ok()) {
    ADD_FAILURE_AT(file, line) << result.status().message();
    throw std::runtime_error("a result without a value");
  }
  return std::move(result).value();
}

}  // namespace quire::testing
