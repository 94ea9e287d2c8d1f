// Grouped products: the rows of x are sorted by expert, and each expert's rows are multiplied by
// its matrix. The numbers of rows are known only on the device, so a fixed number of thread blocks
// processes a list of tiles that another kernel has written. w is A, x is B. A tile of x may
// contain rows of the next experts; their sums are not stored. A dense product has a single expert.
//
// With E4M3 and scales per block, the sums of a stage are multiplied by the scales of its block of
// K, and added to the previous sums in F32. Unlike in multiply_fp8_blocks(), a warpgroup waits for
// its turn only after these additions: with two slabs per warpgroup, an earlier wait is 10 to 20 %
// slower on an H200.
#pragma once

#include "cuda/gemm/dense/kernels/wgmma_kernel.cuh"

namespace quire::cuda::wgmma {

// T: type of the output. Operand: type of w and x, either T, or E4M3 if T is Any16Bits.
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

  // Runs on the producer thread. It requests the first weights before the previous kernel has
  // ended. The list of tiles is complete by then: the kernel that gathers the rows, between the
  // list's writer and this one, lets no kernel start before its own wait has returned.
  __device__ __forceinline__ void copy_tiles() {
    RingPosition at;
    const int end = num_tiles();
    int num_early = 0;  // stages whose weights are requested
    if (first_tile() < end) {
      const ExpertTile tile = tile_of(first_tile());
      num_early = min(p_.num_stages, p_.num_k_blocks);
      for (int stage = 0; stage < num_early; ++stage) {
        full_[stage].arrive_expecting(kStageBytes);
        copy_weights(tile, first_weight(first_tile()), stage * kBlockK, stage);
      }
    }
    wait_for_previous_kernel();
    for (int idx = first_tile(); idx < end; idx += tile_step()) {
      const ExpertTile tile = tile_of(idx);
      for (int k_block = 0; k_block < p_.num_k_blocks; ++k_block) {
        if (num_early > 0) {
          --num_early;
        } else {
          empty_[at.stage].wait(at.parity ^ 1);
          full_[at.stage].arrive_expecting(kStageBytes);
          copy_weights(tile, first_weight(idx), k_block * kBlockK, at.stage);
        }
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
    TileEpilogue epilogue(output, staged_, stored, p_.activation);
    RingPosition at;
    float sums[kSlabs][kTokens / 2];
    const int end = num_tiles();
    if constexpr (kIsFp8) start_turns();
    for (int idx = first_tile(); idx < end; idx += tile_step()) {
      const ExpertTile tile = tile_of(idx);
      const int weight = first_weight(idx) + slab_row + warp * 16;
      if constexpr (kIsFp8) {
        const TokenScales<kTokens> scales(
            [&](int row) { return kBlockScales ? 0.0F : token_scale(tile, row); });
        multiply_fp8(sums, ring, tile, weight, at);
        if constexpr (!kBlockScales) scales.share(tile_scales());
      } else {
        multiply_blocks<Operand>(sums, ring, p_.num_k_blocks, at,
                                 [this](int read) { release(read); });
      }
      output.num_rows = tile.end_row;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        if constexpr (kIsFp8 && !kBlockScales) scale(sums[slab], tile.expert, weight + slab * 64);
        if (p_.bias != nullptr) add_bias(epilogue, sums[slab], tile.expert, weight + slab * 64);
        epilogue.store_sums(sums[slab], tile.first_row, weight + slab * 64);
      }
    }
    if constexpr (kIsFp8) finish_turns();
  }

 private:
  using TileEpilogue = Epilogue<T, kTokens, true>;

  __device__ __forceinline__ void release(int stage) {
    if (threadIdx.x % 128 == 0) empty_[stage].arrive();
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
    return {0, first, min(first + kTokens, p_.num_rows), num_dense_tiles() == 1 ? 1 : 0};
  }
  __device__ __forceinline__ int first_weight(int idx) const {
    const int tile = p_.tiles == nullptr ? idx / num_dense_tiles() : idx % p_.num_weight_tiles;
    return tile * kWeights;
  }

  // sums = the products of a tile, scaled if the scales are per block.
  __device__ __forceinline__ void multiply_fp8(float (&sums)[kSlabs][kTokens / 2],
                                               const RingView& ring, const ExpertTile& tile,
                                               int weight, RingPosition& at) {
    static_assert(!kBlockScales || kSlabs == 1);
    const float* w_scales[2] = {};
#pragma unroll
    for (int half = 0; half < (kBlockScales ? 2 : 0); ++half) {
      // Rows past the end have sums of zero, or are not stored.
      const int row = min(weight_row(p_, weight, half), num_weight_rows(p_) - 1);
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
        begin_turn();
        start_products(a + slab * (64 * kRowBytes >> 4), b, products, [](int /*started*/) {});
        end_turn();
        finish_products(products);
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

  __device__ __forceinline__ float token_scale(const ExpertTile& tile, int row_of_tile) const {
    const int row = tile.first_row + row_of_tile;
    if (row >= tile.end_row) return 0.0F;
    return p_.x_scales[p_.x_scale_rows == nullptr ? row : p_.x_scale_rows[row]];
  }
  __device__ __forceinline__ float* tile_scales() const {
    return reinterpret_cast<float*>(empty_ + p_.num_stages) + warpgroup() * kMostGroupedTokens;
  }
  // `weight` is the first of the warp's 16 rows of w.
  __device__ __forceinline__ void scale(float (&sums)[kTokens / 2], int expert, int weight) const {
    const int num_rows = num_weight_rows(p_);
    float w_scales[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = weight_row(p_, weight, half);
      w_scales[half] = row < num_rows ? p_.w_scales[int64_t{expert} * num_rows + row] : 0.0F;
    }
    apply_scales(w_scales, tile_scales(), sums);
  }

  // Adds the biases of the lane's rows of w.
  __device__ __forceinline__ void add_bias(const TileEpilogue& epilogue, float (&sums)[kTokens / 2],
                                           int expert, int weight) const {
    const int num_rows = num_weight_rows(p_);
    float bias[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = weight_row(p_, weight, half);
      bias[half] = row < num_rows ? epilogue.bias_at(int64_t{expert} * num_rows + row) : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kTokens / 2; ++i) sums[i] += bias[i / 2 % 2];
  }

  __device__ __forceinline__ uint32_t stage_at(int stage) const {
    return ring_ + static_cast<uint32_t>(stage * kStageBytes);
  }
  // The axes of the map are K, rows and experts; or K, 8 rows, gate and up, groups of 8 rows, and
  // experts.
  __device__ __forceinline__ void copy_weights(const ExpertTile& tile, int row, int k, int stage) {
    const uint32_t arrived = shared_address(&full_[stage]);
    const uint64_t policy = tile.is_only != 0 ? kL2EvictFirst : kL2EvictNormal;
    if (p_.is_gated) {
      asm volatile(
          "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %4, %5, %6}], [%2], %7;" ::"r"(stage_at(stage)),
          "l"(&p_.w), "r"(arrived), "r"(k), "r"(0), "r"(row / 16), "r"(tile.expert), "l"(policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(stage_at(stage)),
          "l"(&p_.w), "r"(arrived), "r"(k), "r"(row), "r"(tile.expert), "l"(policy)
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
  if (threadIdx.x >= kProducer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == kProducer) block.copy_tiles();
  } else {
    // The SM has 65536 registers: 40 for each of 128 threads, and 232 for each of 256 threads.
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    wait_for_previous_kernel();
    trigger_dependent_launch();
    block.multiply_tiles();
  }
}

}  // namespace quire::cuda::wgmma
