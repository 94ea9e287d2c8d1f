#include "cuda/attention/xqa/kernel.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::cuda::xqa {

#define XQA_INSTANCE(q, kv, head_dim, group)     \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, 16) \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, 32) \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, 64)

#define XQA_PAGED_INSTANCE(q, kv, head_dim, group, page)     \
  namespace q##_##kv##_##head_dim##_##group##_##page {       \
    Result<size_t> prepare();                                \
    void launch(const KernelCall& call, CudaStream& stream); \
  }
#include "cuda/attention/xqa/instances.inc"
#undef XQA_PAGED_INSTANCE

namespace {

#define XQA_PAGED_INSTANCE(q, kv, head_dim, group, page)     \
  Kernel{{DType::k##q, DType::k##kv, head_dim, group, page}, \
         q##_##kv##_##head_dim##_##group##_##page::prepare,  \
         q##_##kv##_##head_dim##_##group##_##page::launch},
constexpr Kernel kKernels[] = {
#include "cuda/attention/xqa/instances.inc"
};

}  // namespace

const Kernel* find_kernel(const KernelKey& key) {
  const auto* found = std::find_if(std::begin(kKernels), std::end(kKernels),
                                   [&](const Kernel& kernel) { return kernel.key == key; });
  return found == std::end(kKernels) ? nullptr : found;
}

// The arrays are consecutive: maxima and sums, then output rows aligned to their size.
size_t scratch_bytes(const KernelKey& key, size_t num_partials) {
  const size_t state_bytes =
      is_hopper_kernel(key) ? 8 * static_cast<size_t>(key.group_size) : 2 * size_t{128};
  const auto rows_bytes =
      static_cast<size_t>(key.group_size) * static_cast<size_t>(key.head_dim) * dtype_bytes(key.q);
  const size_t states = num_partials * state_bytes;
  return round_up(states, rows_bytes) + num_partials * rows_bytes;
}

}  // namespace quire::cuda::xqa
