#include "cuda/attention/flashinfer/kernel.h"

#include <span>

namespace quire::cuda::flashinfer_backend {

#define FLASHINFER_FA2_INSTANCE(q, kv, head_dim) \
  std::span<const KernelInstance> fa2_##q##_##kv##_##head_dim();
#define FLASHINFER_FA3_INSTANCE(q, kv, head_dim) \
  std::span<const KernelInstance> fa3_##q##_##kv##_##head_dim();
#include "cuda/attention/flashinfer/instances.inc"
#undef FLASHINFER_FA2_INSTANCE
#undef FLASHINFER_FA3_INSTANCE

const KernelInstance* find_kernel(const KernelKey& key) {
  using Instances = std::span<const KernelInstance> (*)();
  static constexpr Instances kFiles[] = {
#define FLASHINFER_FA2_INSTANCE(q, kv, head_dim) fa2_##q##_##kv##_##head_dim,
#define FLASHINFER_FA3_INSTANCE(q, kv, head_dim) fa3_##q##_##kv##_##head_dim,
#include "cuda/attention/flashinfer/instances.inc"
#undef FLASHINFER_FA2_INSTANCE
#undef FLASHINFER_FA3_INSTANCE
  };
  for (const Instances instances : kFiles) {
    for (const KernelInstance& instance : instances()) {
      if (instance.key == key) return &instance;
    }
  }
  return nullptr;
}

}  // namespace quire::cuda::flashinfer_backend
