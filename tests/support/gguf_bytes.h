// GGUF files in memory, for tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/gguf_writer.h"

namespace quire::testing {

using quire::GgufWriter;

inline std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file));
}

}  // namespace quire::testing
