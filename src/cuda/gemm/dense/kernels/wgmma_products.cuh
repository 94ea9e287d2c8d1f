// The products of a tile over K: of F16 or BF16 operands, and of E4M3 operands and their scales.
//
// The tensor cores keep about 14 bits of a sum of E4M3 products. So they sum up the products of
// each stage of the ring from zero, and the sums of all stages are added in F32. The two
// warpgroups take turns, so that the tensor cores multiply for one of them while the other adds.
#pragma once

#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"

namespace quire::cuda::wgmma {

// The location of a warpgroup's operands in the stages of a ring buffer in shared memory.
struct RingView {
  uint32_t a_at;  // in the first stage
  uint32_t b_at;
  int stage_bytes;
  int num_stages;
  Mbarrier* full;  // per stage: its bytes have arrived
};

// sums = A * B^T over the next `num_blocks` stages, kSlabs times 64 rows of A by kB rows of B.
// Calls release(index of a stage) when a stage has been read. All threads of a warpgroup call this
// function.
template <typename T, int kSlabs, int kHalfB, typename Release>
__device__ __forceinline__ void multiply_blocks(float (&sums)[kSlabs][kHalfB], const RingView& ring,
                                                int num_blocks, RingPosition& at,
                                                const Release& release) {
  constexpr int kRowBytes = kBlockK * 2;
  int last = -1;
  for (int block = 0; block < num_blocks; ++block) {
    ring.full[at.stage].wait(at.parity);
    const auto offset = static_cast<uint32_t>(at.stage * ring.stage_bytes);
    const uint64_t a = operand_descriptor(ring.a_at + offset);
    const uint64_t b = operand_descriptor(ring.b_at + offset);
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
    begin();
#pragma unroll
    for (int k = 0; k < kBlockK / 16; ++k) {
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        const int adds = k > 0 || block > 0;
        multiply<T, 2 * kHalfB>(sums[slab], a + slab * (64 * kRowBytes >> 4) + k * 2, b + k * 2,
                                adds);
      }
    }
    commit();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
    wait<1>();
    if (last >= 0) release(last);
    last = at.stage;
    at.advance(ring.num_stages);
  }
  wait<0>();
#pragma unroll
  for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
  release(last);
}

__device__ __forceinline__ int warpgroup() {
  return static_cast<int>(threadIdx.x) / 128;
}

// A warpgroup's turn to start products. Each warpgroup has a named barrier, at which the other
// warpgroup arrives at the end of its turn. Barrier 0 is used by __syncthreads.
__device__ __forceinline__ void begin_turn() {
  asm volatile("barrier.cta.sync.aligned %0, 256;" ::"r"(1 + warpgroup()) : "memory");
}
__device__ __forceinline__ void end_turn() {
  asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"r"(2 - warpgroup()) : "memory");
}
// Called before a warpgroup's first turn and after its last one. Both warpgroups have the same
// number of turns. Warpgroup 0 begins.
__device__ __forceinline__ void start_turns() {
  if (warpgroup() == 1) end_turn();
}
__device__ __forceinline__ void finish_turns() {
  if (warpgroup() == 0) begin_turn();  // permitted by warpgroup 1 in its last turn
}

// Starts products = 64 rows of A by the rows of B, over a stage. Calls after(number of instructions
// that have been started), up to kInstructions.
inline constexpr int kInstructions = kBlockK / 16;
template <int kHalfB, typename After>
__device__ __forceinline__ void start_products(uint64_t a, uint64_t b, float (&products)[kHalfB],
                                               const After& after) {
  keep(products);
  begin();
#pragma unroll
  for (int k = 0; k < kInstructions; ++k) {
    multiply<__nv_fp8_e4m3, 2 * kHalfB>(products, a + k * 2, b + k * 2, k > 0 ? 1 : 0);
    after(k + 1);
  }
  commit();
}
template <int kHalfB>
__device__ __forceinline__ void finish_products(float (&products)[kHalfB]) {
  keep(products);
  wait<0>();
  keep(products);
}

// Like multiply_blocks(), with E4M3 operands and one slab. A warpgroup waits for its next stage and
// turn while the tensor cores multiply, so that it starts the next products right after the
// additions. It ends its turn when it has started half of its products, so that the other
// warpgroup's products follow and the tensor cores are never idle. On an H200 each of these two
// makes products of 304 rows 3 to 12 % faster.
template <int kHalfB, typename Release>
__device__ __forceinline__ void multiply_fp8_blocks(float (&sums)[kHalfB], const RingView& ring,
                                                    int num_blocks, RingPosition& at,
                                                    const Release& release) {
#pragma unroll
  for (int i = 0; i < kHalfB; ++i) sums[i] = 0.0F;
  // The operands of the next stage.
  uint64_t a = 0;
  uint64_t b = 0;
  const auto wait_for_stage = [&] {
    const auto offset = static_cast<uint32_t>(at.stage * ring.stage_bytes);
    a = operand_descriptor(ring.a_at + offset);
    b = operand_descriptor(ring.b_at + offset);
    ring.full[at.stage].wait(at.parity);
    begin_turn();
  };
  wait_for_stage();
  for (int block = 0; block < num_blocks; ++block) {
    const int stage = at.stage;
    float products[kHalfB];
    start_products(a, b, products, [](int started) {
      if (started == kInstructions / 2) end_turn();
    });
    at.advance(ring.num_stages);
    if (block + 1 < num_blocks) wait_for_stage();
    finish_products(products);
    release(stage);
#pragma unroll
    for (int i = 0; i < kHalfB; ++i) sums[i] += products[i];
  }
}

// The scales of a tile's rows of x, which are B. A thread loads some of them before the products,
// so that the loads take no time, and all threads of the warpgroup use them after the products.
template <int kTokens>
class TokenScales {
 public:
  // scale_of(row): the scale of a row of the tile.
  template <typename ScaleOf>
  __device__ __forceinline__ explicit TokenScales(const ScaleOf& scale_of) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (row_of(i) < kTokens) scales_[i] = scale_of(row_of(i));
    }
  }

  // Stores the scales in the warpgroup's memory for them, [kTokens]. All threads use them for the
  // last time before the first turn of the next tile, so the next call may overwrite them.
  __device__ __forceinline__ void share(float* shared) const {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (row_of(i) < kTokens) shared[row_of(i)] = scales_[i];
    }
    asm volatile("barrier.cta.sync.aligned %0, 128;" ::"r"(3 + warpgroup()) : "memory");
  }

 private:
  static constexpr int kPerThread = (kTokens + 127) / 128;
  static __device__ __forceinline__ int row_of(int i) {
    return i * 128 + static_cast<int>(threadIdx.x) % 128;
  }
  float scales_[kPerThread];
};

// Multiplies a thread's sums, in the order of Epilogue, by the scales of their rows of w (of each
// half) and of x (shared by TokenScales).
template <int kHalfTokens>
__device__ __forceinline__ void apply_scales(const float (&w_scales)[2], const float* x_scales,
                                             float (&sums)[kHalfTokens]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kHalfTokens; i += 4) {
    const auto x = *reinterpret_cast<const float2*>(x_scales + i / 4 * 8 + column);
    sums[i] *= w_scales[0] * x.x;
    sums[i + 1] *= w_scales[0] * x.y;
    sums[i + 2] *= w_scales[1] * x.x;
    sums[i + 3] *= w_scales[1] * x.y;
  }
}

// The row of w of a thread's sums of half `half`, in the order of Epilogue; `row` is the first of
// the warp's 16 rows. Past the end of w, it is at least the number of rows.
__device__ __forceinline__ int weight_row(const Output& p, int row, int half) {
  const int in_tile = static_cast<int>(threadIdx.x) % 32 / 4;
  if (!p.is_gated) return row + half * 8 + in_tile;
  const auto num_columns = static_cast<int>(p.num_columns);
  const int column = row / 2 + in_tile;
  return column < num_columns ? half * num_columns + column : 2 * num_columns;
}
__device__ __forceinline__ int num_weight_rows(const Output& p) {
  const auto num_columns = static_cast<int>(p.num_columns);
  return p.is_gated ? 2 * num_columns : num_columns;
}

}  // namespace quire::cuda::wgmma
