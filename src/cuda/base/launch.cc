#include "cuda/base/launch.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

namespace quire::cuda {
namespace {

constexpr size_t kSharedBytesWithoutOptIn = size_t{48} << 10;

Status too_large(std::source_location where, std::string_view what, size_t got, size_t limit) {
  return internal_error(
      fmt::format("[cuda] a kernel's {} is too large at {}:{}; got {}, expected at most {}", what,
                  file_name(where), where.line(), got, limit));
}

// Sets the attribute once per device, kernel and size. The attribute belongs to the kernel and not
// to the launch, so the set of raised limits is global to the process.
Status raise_shared_limit(const void* kernel, int device, size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, size_t> raised;
  const std::lock_guard lock(mutex);
  size_t& limit = raised[{kernel, device}];
  if (bytes <= limit) return {};
  QUIRE_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  limit = bytes;
  return {};
}

// Checks the launch, and raises the kernel's limit of dynamic shared memory if needed.
Status prepare_launch(const void* kernel, const LaunchShape& shape, const LaunchLimits& limits,
                      std::source_location where) {
  constexpr size_t kMaxGridYz = 65535;
  constexpr size_t kMaxGridX = 2147483647;
  constexpr size_t kMaxThreads = 1024;
  if (shape.grid.x > kMaxGridX) return too_large(where, "grid.x", shape.grid.x, kMaxGridX);
  if (shape.grid.y > kMaxGridYz) return too_large(where, "grid.y", shape.grid.y, kMaxGridYz);
  if (shape.grid.z > kMaxGridYz) return too_large(where, "grid.z", shape.grid.z, kMaxGridYz);
  const size_t threads = size_t{shape.block.x} * shape.block.y * shape.block.z;
  if (threads > kMaxThreads) return too_large(where, "block", threads, kMaxThreads);
  if (shape.shared_bytes <= kSharedBytesWithoutOptIn) return {};
  if (shape.shared_bytes > limits.max_shared_bytes) {
    return too_large(where, "shared memory", shape.shared_bytes, limits.max_shared_bytes);
  }
  return raise_shared_limit(kernel, limits.device, shape.shared_bytes);
}

}  // namespace

void launch_kernel(CudaStream& stream, const void* kernel, const LaunchShape& shape,
                   std::source_location where, void** args) {
  // An empty batch leads to an empty grid, which CUDA does not accept.
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  Status status = prepare_launch(kernel, shape, stream.limits(), where);
  if (!status.ok()) return stream.record_error(std::move(status));
  cudaLaunchAttribute attributes[3] = {};
  unsigned num_attributes = 0;
  if (shape.cooperative) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  if (shape.cluster > 1) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {shape.cluster, 1, 1};
  }
  if (shape.overlap_start && stream.limits().overlaps_kernels) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.get();
  config.attrs = attributes;
  config.numAttrs = num_attributes;
  stream.record_error(cudaLaunchKernelExC(&config, kernel, args), "a kernel's launch", where);
}

}  // namespace quire::cuda
