#include "cuda/base/launch.h"
#include "cuda/sample/gumbel.cuh"
#include "cuda/sample/rough_gumbel.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    check_bits_kernel(uint64_t first, uint64_t count, float logit, float temperature,
                      RoughGumbelErrors* errors) {
  SlotState state = {};
  state.temperature = temperature;
  const GumbelParams params(state, 0.0F);
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const auto bits = static_cast<uint32_t>(first + i);
    RoughGumbel rough(params);
    rough.add(logit, bits, 0);
    const double exact = params.score(logit, bits);
    // may_win() takes a float, so the score is rounded down.
    if (static_cast<double>(rough.low()) <= exact && rough.may_win(__double2float_rd(exact))) {
      continue;
    }
    atomicAdd(&errors->count, 1ULL);
    atomicMin(&errors->first_bits, bits);
  }
}

}  // namespace

void launch_check_bits(uint64_t first, uint64_t count, float logit, float temperature,
                       RoughGumbelErrors* errors, CudaStream& stream) {
  QUIRE_LAUNCH(stream, check_bits_kernel, (LaunchShape{.grid = 4096, .block = kThreads}), first,
               count, logit, temperature, errors);
}

}  // namespace quire::cuda
