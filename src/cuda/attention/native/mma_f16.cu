#include "cuda/attention/native/mma_launchers.cuh"

namespace quire::cuda::native {

MmaLaunchers f16_launchers() {
  return make_mma_launchers<__half>();
}

}  // namespace quire::cuda::native
