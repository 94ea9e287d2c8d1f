#include "cuda/attention/native/mma_launchers.cuh"

namespace quire::cuda::native {

MmaLaunchers bf16_launchers() {
  return make_mma_launchers<__nv_bfloat16>();
}

}  // namespace quire::cuda::native
