// CUDA's error codes as Status.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

#include "quire/status.h"

namespace quire::cuda {

// kResourceExhausted where memory ran out, kUnavailable where there is no usable driver or device,
// kInternal for all else; the message names `what` and the place.
Status to_status(cudaError_t error, const char* what,
                 std::source_location where = std::source_location::current());

// Without its folders: where it was built is nobody's business.
std::string_view file_name(std::source_location where);

}  // namespace quire::cuda

// `QUIRE_CUDA_RETURN_IF_ERROR(cudaMemset(…))`
#define QUIRE_CUDA_RETURN_IF_ERROR(call) \
  QUIRE_RETURN_IF_ERROR(::quire::cuda::to_status((call), #call))
