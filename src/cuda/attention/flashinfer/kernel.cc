#include "cuda/attention/flashinfer/kernel.h"

#include <span>

namespace quire::cuda::flashinfer_fa2 {

#define FLASHINFER_INSTANCE(dtype, head_dim) \
  std::span<const KernelInstance> instances_##dtype##_##head_dim();
#include "cuda/attention/flashinfer/instances.inc"
#undef FLASHINFER_INSTANCE

const KernelInstance* find_kernel(const KernelKey& key) {
  using Instances = std::span<const KernelInstance> (*)();
  static constexpr Instances kFiles[] = {
#define FLASHINFER_INSTANCE(dtype, head_dim) instances_##dtype##_##head_dim,
#include "cuda/attention/flashinfer/instances.inc"
#undef FLASHINFER_INSTANCE
  };
  for (const Instances instances : kFiles) {
    for (const KernelInstance& instance : instances()) {
      if (instance.key == key) return &instance;
    }
  }
  return nullptr;
}

}  // namespace quire::cuda::flashinfer_fa2
