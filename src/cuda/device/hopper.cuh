// Three features of Hopper.
//
// Programmatic dependent launch: a kernel's thread blocks may become resident, and read memory that
// no kernel writes, while the previous kernel still runs. LaunchShape::overlap_start requests it.
// Without overlap_start, and before Hopper, the two functions below do nothing.
//
// Bulk copies (cp.async.bulk): one thread starts a copy of contiguous device memory to shared
// memory, and an mbarrier there counts the bytes that have arrived. A copy in the other direction
// has no mbarrier; the thread that starts it waits for it.
//
// Clusters: thread blocks that run at the same time and can access each other's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/l2_policy.h"

namespace quire::cuda {

// Every thread block of a kernel with overlap_start must call this before it accesses memory that
// another kernel writes or reads. The next kernel relies on this for all earlier kernels too.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// May be called before wait_for_previous_kernel(), because the next kernel waits too. So several
// kernels of a step can be resident at once. Before its wait, a kernel may read only memory that
// none of them writes: weights, data copied from the host, and the output of the kernels of step/,
// which do not let their successors start early. It may also read memory that was complete before
// the previous kernel triggered (few_experts.cu, grouped_kernel.cuh).
__device__ __forceinline__ void trigger_dependent_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// An mbarrier in shared memory. A phase ends when all expected arrivals and bytes have arrived.
// Phases alternate in parity; the first one has parity 0.
struct Mbarrier {
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
  // Waits until the phase of this parity has ended.
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

// The position of a producer or a consumer in a ring buffer in shared memory: a stage, and the
// phase parity of the stage's barriers.
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance(int num_stages) {
    if (++stage < num_stages) return;
    stage = 0;
    parity ^= 1;
  }
};

// Called after init() and before any copy uses the barriers.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// num_bytes and both addresses are multiples of 16. For data that is read once: the L2 evicts it
// first.
__device__ __forceinline__ void copy_bulk_evict_first(void* shared, const void* global,
                                                      uint32_t num_bytes, Mbarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(num_bytes), "r"(shared_address(&barrier.state)), "l"(kL2EvictFirst)
      : "memory");
}

// Like copy_bulk_evict_first(), for data that is read again.
__device__ __forceinline__ void copy_bulk(void* shared, const void* global, uint32_t num_bytes,
                                          Mbarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(num_bytes), "r"(shared_address(&barrier.state))
      : "memory");
}

// Copies shared to device memory; num_bytes and both addresses are multiples of 16. The thread that
// starts copies waits for them.
__device__ __forceinline__ void store_bulk(void* global, const void* shared, uint32_t num_bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;" ::"l"(global),
      "r"(shared_address(shared)), "r"(num_bytes)
      : "memory");
}
// Waits until all copies of the thread have read shared memory.
__device__ __forceinline__ void wait_for_bulk_reads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
// Waits until all copies of the thread have written device memory.
__device__ __forceinline__ void wait_for_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Orders earlier reads and writes before the bulk copies that this thread starts. These are the
// accesses of this thread, and of threads that it has synchronized with.
__device__ __forceinline__ void order_bulk_copies() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ uint32_t cluster_size() {
  uint32_t size = 0;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
// Maps an address in shared memory to the same address in another thread block of the cluster.
__device__ __forceinline__ uint32_t address_in(uint32_t shared_address, uint32_t rank) {
  uint32_t mapped = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(mapped)
               : "r"(shared_address), "r"(rank));
  return mapped;
}
__device__ __forceinline__ void arrive_at(uint32_t cluster_address) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address) : "memory");
}
// sync_cluster() waits until all threads of the cluster have arrived or ended; the first two
// functions are its halves. Every warp calls each of the three with all lanes.
__device__ __forceinline__ void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_in_cluster() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ void sync_cluster() {
  arrive_in_cluster();
  wait_in_cluster();
}
// Like sync_cluster(), and makes earlier writes of all thread blocks visible.
__device__ __forceinline__ void sync_cluster_memory() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
__device__ __forceinline__ void store_in_cluster(uint32_t cluster_address, const float4& value) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(cluster_address),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}
__device__ __forceinline__ void store_in_cluster(uint32_t cluster_address, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(cluster_address), "f"(value) : "memory");
}
__device__ __forceinline__ void store_in_cluster(uint32_t cluster_address, const float2& value) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(cluster_address), "f"(value.x),
               "f"(value.y)
               : "memory");
}
// Reads shared memory of any thread block of the cluster.
__device__ __forceinline__ float load_in_cluster(uint32_t cluster_address) {
  float value = 0;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(cluster_address) : "memory");
  return value;
}
__device__ __forceinline__ float4 load_vec_in_cluster(uint32_t cluster_address) {
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(cluster_address)
               : "memory");
  return value;
}

}  // namespace quire::cuda
