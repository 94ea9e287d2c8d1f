// Grouped products: the rows of x are sorted by expert, and each expert's rows are multiplied by
// its matrix. The numbers of rows are known only on the device, so a fixed number of thread blocks
// processes a list of tiles that another kernel has written. w is A, x is B. A tile of x may
// contain rows of the next experts; their sums are not stored. A dense product has a single expert.
//
// With E4M3, the tensor cores sum up the products of each stage of the ring from zero. The result
// is multiplied by the scales of its block of K and added to the sums in F32. The two warpgroups
// take turns, so that the tensor cores multiply for one of them while the other adds.
#pragma once

#include "cuda/gemm/dense/kernels/wgmma_kernel.cuh"

namespace quire::cuda::wgmma {

// T: type of the output. Operand: type of w and x, either T or E4M3.
template <typename T, typename Operand, bool kBlockScales, int kWeights, int kTokens>
class GroupedThreadBlock {
 public:
  static constexpr bool kIsFp8 = !std::is_same_v<T, Operand>;
  static constexpr int kRowBytes = kBlockK * 2;
  static constexpr int kStageBytes = stage_bytes(kWeights, kTokens);
  static constexpr int kTokensAt = kWeights * kRowBytes;
  static constexpr int kSlabs = kWeights / (64 * kWarpgroups);  // of 64 rows of w, per warpgroup
  static_assert(kWeights % (64 * kWarpgroups) == 0);

  __device__ __forceinline__ GroupedThreadBlock(const GroupedParams& p, unsigned char* memory)
      : p_(p) {
    const uint32_t start = shared_address(memory);
    ring_ = round_up(start, kSharedAlignment);
    const uint32_t staged = ring_ + static_cast<uint32_t>(p.num_stages * kStageBytes);
    staged_ = memory + (staged - start);
    full_ = reinterpret_cast<Mbarrier*>(staged_ + kWarpgroups * 4 * staged_bytes(true));
    empty_ = full_ + p.num_stages;
  }

  // Runs on one thread.
  __device__ void init_barriers() {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p_.w) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p_.x) : "memory");
    for (int i = 0; i < p_.num_stages; ++i) {
      full_[i].init();
      empty_[i].init(kWarpgroups);
    }
    publish_barriers();
  }

  // Runs on the producer thread.
  __device__ __forceinline__ void copy_tiles() {
    RingPosition at;
    const int end = num_tiles();
    for (int idx = first_tile(); idx < end; idx += tile_step()) {
      const ExpertTile tile = tile_of(idx);
      for (int k_block = 0; k_block < p_.num_k_blocks; ++k_block) {
        empty_[at.stage].wait(at.parity ^ 1);
        full_[at.stage].arrive_expecting(kStageBytes);
        copy_weights(tile.expert, first_weight(idx), k_block * kBlockK, at.stage);
        copy_tokens(tile.first_row, k_block * kBlockK, at.stage);
        at.advance(p_.num_stages);
      }
    }
  }

  // Runs on the consumer warpgroups.
  __device__ __forceinline__ void multiply_tiles() {
    const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
    const int slab_row = warpgroup() * kSlabs * 64;
    const RingView ring = {ring_ + static_cast<uint32_t>(slab_row * kRowBytes),
                           ring_ + static_cast<uint32_t>(kTokensAt), kStageBytes, p_.num_stages,
                           full_};
    const StoredPairs stored = {.first = 0, .count = kTokens / 16};
    Output output = p_;
    Epilogue<T, kTokens, true> epilogue(output, staged_, stored);
    RingPosition at;
    float sums[kSlabs][kTokens / 2];
    const int end = num_tiles();
    if (kIsFp8 && warpgroup() == 1) end_turn();  // warpgroup 0 begins
    for (int idx = first_tile(); idx < end; idx += tile_step()) {
      const ExpertTile tile = tile_of(idx);
      const int weight = first_weight(idx) + slab_row + warp * 16;
      if constexpr (kIsFp8) {
        const float x_scale = kBlockScales ? 0.0F : scale_of_thread(tile);
        multiply_fp8_blocks(sums, ring, tile, weight, at);
        if constexpr (!kBlockScales) share_scale(x_scale);
      } else {
        multiply_blocks<Operand>(sums, ring, p_.num_k_blocks, at,
                                 [this](int read) { release(read); });
      }
      output.num_rows = tile.end_row;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        if constexpr (kIsFp8 && !kBlockScales) scale(sums[slab], tile.expert, weight + slab * 64);
        epilogue.store(sums[slab], tile.first_row, weight + slab * 64);
      }
    }
    if (kIsFp8 && warpgroup() == 0) begin_turn();  // which warpgroup 1 allowed in its last turn
  }

 private:
  static __device__ __forceinline__ int warpgroup() {
    return static_cast<int>(threadIdx.x) / 128;
  }
  __device__ __forceinline__ void release(int stage) {
    if (threadIdx.x % 128 == 0) empty_[stage].arrive();
  }

  // A warpgroup's turn to start products. Each warpgroup has a named barrier, at which the other
  // warpgroup arrives at the end of its turn. Barrier 0 is used by __syncthreads.
  static __device__ __forceinline__ void begin_turn() {
    asm volatile("barrier.cta.sync.aligned %0, 256;" ::"r"(1 + warpgroup()) : "memory");
  }
  static __device__ __forceinline__ void end_turn() {
    asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"r"(2 - warpgroup()) : "memory");
  }

  __device__ __forceinline__ int first_tile() const {
    return static_cast<int>(blockIdx.x);
  }
  __device__ __forceinline__ int tile_step() const {
    return static_cast<int>(gridDim.x);
  }
  __device__ __forceinline__ int num_dense_tiles() const {
    return ceil_div(p_.num_rows, kTokens);
  }
  // With a list of tiles, the weight tiles of one ExpertTile are adjacent, so that its rows of x
  // stay in the L2. Without a list, the token tiles of one weight tile are adjacent, because w is
  // the larger operand.
  __device__ __forceinline__ int num_tiles() const {
    return (p_.tiles == nullptr ? num_dense_tiles() : *p_.num_tiles) * p_.num_weight_tiles;
  }
  __device__ __forceinline__ ExpertTile tile_of(int idx) const {
    if (p_.tiles != nullptr) return p_.tiles[idx / p_.num_weight_tiles];
    const int first = idx % num_dense_tiles() * kTokens;
    return {0, first, min(first + kTokens, p_.num_rows)};
  }
  __device__ __forceinline__ int first_weight(int idx) const {
    const int tile = p_.tiles == nullptr ? idx / num_dense_tiles() : idx % p_.num_weight_tiles;
    return tile * kWeights;
  }

  __device__ __forceinline__ int num_weight_rows() const {
    const auto num_columns = static_cast<int>(p_.num_columns);
    return p_.is_gated ? 2 * num_columns : num_columns;
  }
  // The row of the expert's matrix to which half `half` of a thread's sums belongs, in the order of
  // Epilogue. Past the end, it is at least num_weight_rows(). `weight`: the first of the warp's 16
  // rows.
  __device__ __forceinline__ int weight_row(int weight, int half) const {
    const int in_tile = static_cast<int>(threadIdx.x) % 32 / 4;
    if (!p_.is_gated) return weight + half * 8 + in_tile;
    const auto num_columns = static_cast<int>(p_.num_columns);
    const int column = weight / 2 + in_tile;
    return column < num_columns ? half * num_columns + column : num_weight_rows();
  }

  // sums = the products of a tile, scaled if the scales are per block. The tensor cores keep about
  // 14 bits of a sum of E4M3 products, so the sums of all blocks of K are added in F32.
  __device__ __forceinline__ void multiply_fp8_blocks(float (&sums)[kSlabs][kTokens / 2],
                                                      const RingView& ring, const ExpertTile& tile,
                                                      int weight, RingPosition& at) {
    static_assert(!kBlockScales || kSlabs == 1);
    const float* w_scales[2] = {};
#pragma unroll
    for (int half = 0; half < (kBlockScales ? 2 : 0); ++half) {
      // Rows past the end have sums of zero, or are not stored.
      const int row = min(weight_row(weight, half), num_weight_rows() - 1);
      const int64_t group = int64_t{tile.expert} * p_.scale_groups + (row >> p_.scale_shift);
      w_scales[half] = p_.w_scales + group * p_.num_k_blocks;
    }
    const float* x_scales = p_.x_scales + tile.first_row + static_cast<int>(threadIdx.x) % 4 * 2;
    const bool has_pairs = (tile.first_row | p_.x_scales_width) % 2 == 0;
#pragma unroll
    for (int i = 0; i < kSlabs * kTokens / 2; ++i) sums[i * 2 / kTokens][i % (kTokens / 2)] = 0.0F;
    for (int block = 0; block < p_.num_k_blocks; ++block) {
      // These loads complete while the tensor cores multiply.
      float w_scale[2];
      float x_scale[kTokens / 8][2];
      if constexpr (kBlockScales) {
        w_scale[0] = w_scales[0][block];
        w_scale[1] = w_scales[1][block];
        load_scales(x_scales + int64_t{block} * p_.x_scales_width, has_pairs, x_scale);
      }
      ring.full[at.stage].wait(at.parity);
      const auto offset = static_cast<uint32_t>(at.stage * ring.stage_bytes);
      const uint64_t a = operand_descriptor(ring.a_at + offset);
      const uint64_t b = operand_descriptor(ring.b_at + offset);
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        float products[kTokens / 2];
        multiply_slab(a + slab * (64 * kRowBytes >> 4), b, products);
        if (slab + 1 == kSlabs) release(at.stage);
#pragma unroll
        for (int i = 0; i < kTokens / 2; ++i) {
          float& sum = sums[slab][i];
          if constexpr (kBlockScales) {
            sum = fmaf(w_scale[i / 2 % 2] * x_scale[i / 4][i % 2], products[i], sum);
          } else {
            sum += products[i];
          }
        }
      }
      at.advance(ring.num_stages);
    }
  }

  // products = 64 rows of w by the tile's rows of x, over a stage.
  static __device__ __forceinline__ void multiply_slab(uint64_t a, uint64_t b,
                                                       float (&products)[kTokens / 2]) {
    begin_turn();
    keep(products);
    begin();
#pragma unroll
    for (int k = 0; k < kBlockK / 16; ++k) {
      multiply<Operand, kTokens>(products, a + k * 2, b + k * 2, k > 0 ? 1 : 0);
    }
    commit();
    end_turn();
    keep(products);
    wait<0>();
    keep(products);
  }

  // The scales of the thread's rows of x: two adjacent rows of every 8.
  static __device__ __forceinline__ void load_scales(const float* from, bool has_pairs,
                                                     float (&scales)[kTokens / 8][2]) {
    if (has_pairs) {
#pragma unroll
      for (int i = 0; i < kTokens / 8; ++i) {
        const float2 pair = *reinterpret_cast<const float2*>(from + i * 8);
        scales[i][0] = pair.x;
        scales[i][1] = pair.y;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kTokens / 8; ++i) {
      scales[i][0] = from[i * 8];
      scales[i][1] = from[i * 8 + 1];
    }
  }

  // The scale of the row of x whose index in the tile is the thread's index. It is loaded before
  // the products of the tile and used after them.
  __device__ __forceinline__ float scale_of_thread(const ExpertTile& tile) const {
    const int row = tile.first_row + static_cast<int>(threadIdx.x) % 128;
    if (row >= min(tile.end_row, tile.first_row + kTokens)) return 0.0F;
    return p_.x_scales[p_.x_scale_rows == nullptr ? row : p_.x_scale_rows[row]];
  }
  // Gives all threads of the warpgroup the scales of the tile's rows. Every thread uses them for
  // the last time before begin_turn() of the next tile, so the next call may overwrite them.
  __device__ __forceinline__ void share_scale(float x_scale) const {
    if (threadIdx.x % 128 < kTokens) tile_scales()[threadIdx.x % 128] = x_scale;
    asm volatile("barrier.cta.sync.aligned %0, 128;" ::"r"(3 + warpgroup()) : "memory");
  }
  __device__ __forceinline__ float* tile_scales() const {
    return reinterpret_cast<float*>(empty_ + p_.num_stages) + warpgroup() * kMostGroupedTokens;
  }

  // Multiplies a warp's sums by the scales of their rows of w and x. `weight` is the first of the
  // warp's 16 rows of w; the sums are in the order of Epilogue.
  __device__ __forceinline__ void scale(float (&sums)[kTokens / 2], int expert, int weight) const {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const int num_rows = num_weight_rows();
    float w_scales[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = weight_row(weight, half);
      w_scales[half] = row < num_rows ? p_.w_scales[int64_t{expert} * num_rows + row] : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kTokens / 2; i += 4) {
      const auto x_scales =
          *reinterpret_cast<const float2*>(tile_scales() + i / 4 * 8 + lane % 4 * 2);
      sums[i] *= w_scales[0] * x_scales.x;
      sums[i + 1] *= w_scales[0] * x_scales.y;
      sums[i + 2] *= w_scales[1] * x_scales.x;
      sums[i + 3] *= w_scales[1] * x_scales.y;
    }
  }

  __device__ __forceinline__ uint32_t stage_at(int stage) const {
    return ring_ + static_cast<uint32_t>(stage * kStageBytes);
  }
  // The axes of the map are K, rows and experts; or K, 8 rows, gate and up, groups of 8 rows, and
  // experts.
  __device__ __forceinline__ void copy_weights(int expert, int row, int k, int stage) {
    const uint32_t arrived = shared_address(&full_[stage]);
    // Tiles with few rows of x read an expert's weights once.
    const uint64_t policy = kTokens < kMostGroupedTokens ? kL2EvictFirst : kL2EvictNormal;
    if (p_.is_gated) {
      asm volatile(
          "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %4, %5, %6}], [%2], %7;" ::"r"(stage_at(stage)),
          "l"(&p_.w), "r"(arrived), "r"(k), "r"(0), "r"(row / 16), "r"(expert), "l"(policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(stage_at(stage)),
          "l"(&p_.w), "r"(arrived), "r"(k), "r"(row), "r"(expert), "l"(policy)
          : "memory");
    }
  }
  __device__ __forceinline__ void copy_tokens(int row, int k, int stage) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4}], [%2];" ::"r"(stage_at(stage) + kTokensAt),
        "l"(&p_.x), "r"(shared_address(&full_[stage])), "r"(k), "r"(row)
        : "memory");
  }

  const GroupedParams& p_;
  uint32_t ring_;
  unsigned char* staged_;
  Mbarrier* full_;   // per stage: its bytes have arrived
  Mbarrier* empty_;  // per stage: both warpgroups have read it
};

template <typename T, typename Operand, bool kBlockScales, int kWeights, int kTokens>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_gemm_kernel(const __grid_constant__ GroupedParams p) {
  extern __shared__ unsigned char memory[];
  GroupedThreadBlock<T, Operand, kBlockScales, kWeights, kTokens> block(p, memory);
  constexpr int kProducer = kWarpgroups * 128;
  if (threadIdx.x == kProducer) block.init_barriers();
  __syncthreads();
  trigger_dependent_launch();
  // An earlier kernel writes the list of tiles, too.
  wait_for_previous_kernel();
  if (threadIdx.x >= kProducer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == kProducer) block.copy_tiles();
  } else {
    // The SM has 65536 registers: 40 for each of 128 threads, and 232 for each of 256 threads.
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    block.multiply_tiles();
  }
}

}  // namespace quire::cuda::wgmma
