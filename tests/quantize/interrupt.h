// Interrupts `quire quantize`, for tests.
#pragma once

#include <cstddef>
#include <memory>

#include "quantize/quantize.h"

namespace quire::testing {

// Hooks that interrupt a run when tensor `tensor` begins.
inline QuantizeHooks interrupt_at(size_t tensor) {
  const auto stop = std::make_shared<bool>(false);
  QuantizeHooks hooks;
  hooks.on_progress = [stop, tensor](const QuantizeProgress& progress) {
    *stop = progress.tensor == tensor;
  };
  hooks.interrupted = [stop] { return *stop; };
  return hooks;
}

}  // namespace quire::testing
