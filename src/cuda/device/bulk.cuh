// The bulk copy engine (Hopper's): runs of device memory brought into shared memory by one thread's
// word, their arrival counted in bytes by a barrier there.
#pragma once

#include <cstdint>

namespace quire::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier in shared memory. A phase ends when its arrivals have come and all bytes that it
// expects are there; phases alternate in parity, the first one's is 0.
struct BulkBarrier {
  uint64_t state;

  __device__ __forceinline__ void init(uint32_t num_arrivals = 1) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state)),
                 "r"(num_arrivals)
                 : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state))
                 : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(uint32_t num_bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)),
        "r"(num_bytes)
        : "memory");
  }
  // Until the phase of this parity has ended.
  __device__ __forceinline__ void wait(uint32_t parity) {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{\n"
          ".reg .pred over;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
          "selp.u32 %0, 1, 0, over;\n"
          "}"
          : "=r"(done)
          : "r"(shared_address(&state)), "r"(parity)
          : "memory");
    }
  }
};

// After init(), before the copy engine uses the barriers.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// num_bytes and both addresses are multiples of 16. What is read goes first out of the L2.
__device__ __forceinline__ void copy_bulk_once(void* shared, const void* global, uint32_t num_bytes,
                                               BulkBarrier& barrier) {
  constexpr uint64_t kEvictFirst = 0x12F0000000000000;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(num_bytes), "r"(shared_address(&barrier.state)), "l"(kEvictFirst)
      : "memory");
}

// Asks for bytes to be brought into the L2; multiples of 16. A kernel ends only when they are
// there, so it is for a kernel that has yet to wait, not for one that is about to end.
__device__ __forceinline__ void prefetch_bulk(const void* global, uint32_t num_bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(num_bytes)
               : "memory");
}

}  // namespace quire::cuda
