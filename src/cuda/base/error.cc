#include "cuda/base/error.h"

#include <fmt/format.h>

#include <string_view>

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

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Status to_status(cudaError_t error, const char* what, std::source_location where) {
  if (error == cudaSuccess) return {};
  return {code_of(error),
          fmt::format("[cuda] {} failed at {}:{}; {}: {}", what, file_name(where.file_name()),
                      where.line(), cudaGetErrorName(error), cudaGetErrorString(error))};
}

}  // namespace quire::cuda
