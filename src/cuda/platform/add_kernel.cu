#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/platform/add_kernel.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    add_kernel(float* __restrict__ x, const float* __restrict__ summands, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) x[i] += summands[i];
}

}  // namespace

void launch_add(float* x, const float* summands, int64_t count, CudaStream& stream) {
  const auto num_blocks = static_cast<unsigned>(ceil_div(count, int64_t{kThreads}));
  QUIRE_LAUNCH(stream, add_kernel, (LaunchShape{.grid = dim3(num_blocks), .block = kThreads}), x,
               summands, count);
}

}  // namespace quire::cuda
