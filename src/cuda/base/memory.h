// Memory of the device, and memory of the host that the device copies from and to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Plain device memory, at least 256-byte aligned, not initialized. Errors: kResourceExhausted, with
// the size that was asked for and what is free.
Result<Buffer> device_memory(size_t num_bytes);

// Page-locked host memory.
Result<Buffer> pinned_memory(size_t num_bytes);

// Calls of both so far, in this process: a step makes none.
int64_t num_allocations();

}  // namespace quire::cuda
