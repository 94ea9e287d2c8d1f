// Device memory, and pinned host memory for copies to and from the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Allocates device memory, at least 256-byte aligned and not initialized. On kResourceExhausted the
// message gives the requested and the free bytes.
Result<Buffer> device_memory(size_t num_bytes);

// Allocates page-locked host memory.
Result<Buffer> pinned_memory(size_t num_bytes);

// Allocations of both kinds so far in this process; a step makes none.
int64_t num_allocations();

}  // namespace quire::cuda
