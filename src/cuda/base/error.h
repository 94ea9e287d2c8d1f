// CUDA's error codes as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

#include "quire/status.h"

namespace quire::cuda {

// Returns kResourceExhausted if memory ran out, kUnavailable if there is no usable driver or
// device, and kInternal otherwise; the message names `what` and the source location.
Status to_status(cudaError_t error, const char* what,
                 std::source_location where = std::source_location::current());

// Strips the folders, so that messages do not reveal the build machine's paths.
std::string_view file_name(std::source_location where);

}  // namespace quire::cuda

// `QUIRE_CUDA_RETURN_IF_ERROR(cudaMemset(…))`
#define QUIRE_CUDA_RETURN_IF_ERROR(call) \
  QUIRE_RETURN_IF_ERROR(::quire::cuda::to_status((call), #call))
