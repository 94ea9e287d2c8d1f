#include <cstdint>

#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "late_copy.h"

namespace quire::testing {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 8;  // the successor is resident beside them
constexpr uint64_t kDelayNs = 200'000;

__device__ uint64_t now_ns() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ __launch_bounds__(kThreads) void late_copy_kernel(uint32_t* target,
                                                             const uint32_t* source, size_t count) {
  cuda::trigger_dependent_launch();
  cuda::wait_for_previous_kernel();
  const uint64_t start = now_ns();
  while (now_ns() - start < kDelayNs) {
  }
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    target[i] = source[i];
  }
}

}  // namespace

void launch_late_copy(cuda::CudaStream& stream, void* target, const void* source,
                      size_t num_bytes) {
  QUIRE_LAUNCH(stream, late_copy_kernel,
               (cuda::LaunchShape{.grid = kBlocks, .block = kThreads, .overlap_start = true}),
               static_cast<uint32_t*>(target), static_cast<const uint32_t*>(source),
               num_bytes / sizeof(uint32_t));
}

}  // namespace quire::testing
