#include "cuda/base/error.h"

#include <fmt/format.h>

namespace quire::cuda {
namespace {

StatusCode code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

std::string_view file_name(std::source_location where) {
  const std::string_view path = where.file_name();
  return path.substr(path.rfind('/') + 1);
}

Status to_status(cudaError_t error, const char* what, std::source_location where) {
  if (error == cudaSuccess) return {};
  return {code_of(error),
          fmt::format("[cuda] {} failed at {}:{}; {}: {}", what, file_name(where), where.line(),
                      cudaGetErrorName(error), cudaGetErrorString(error))};
}

}  // namespace quire::cuda
