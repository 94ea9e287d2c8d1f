// A is the operand that provides 64 rows per instruction (each warpgroup has 64 or 128 of a tile's
// rows), and B is the other operand. Either may be w.
#pragma once

#include "base/numbers.h"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/dense/kernels/wgmma_epilogue.cuh"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/gemm/dense/kernels/wgmma_products.cuh"

namespace quire::cuda::wgmma {

// The position of a thread block in its cluster.
struct ClusterPlace {
  int token;
  int weight;
  int split;

  __device__ explicit ClusterPlace(const Params& p) {
    const auto rank = static_cast<int>(cluster_rank());
    token = rank % p.cluster_tokens;
    weight = rank / p.cluster_tokens % p.cluster_weights;
    split = rank / (p.cluster_tokens * p.cluster_weights);
  }
  __device__ int rank_of(const Params& p, int token_of, int weight_of, int split_of) const {
    return (split_of * p.cluster_weights + weight_of) * p.cluster_tokens + token_of;
  }
};

// T: type of w and x.
template <typename T, int kWeights, int kTokens, bool kWeightsAreA>
class ThreadBlock {
 public:
  static constexpr bool kIsFp8 = std::is_same_v<T, __nv_fp8_e4m3>;
  static constexpr int kA = kWeightsAreA ? kWeights : kTokens;
  static constexpr int kB = kWeightsAreA ? kTokens : kWeights;
  static constexpr int kRowBytes = kBlockK * 2;
  static constexpr int kStageBytes = stage_bytes(kWeights, kTokens);
  static constexpr int kWeightsAt = kWeightsAreA ? 0 : kA * kRowBytes;
  static constexpr int kTokensAt = kWeightsAreA ? kA * kRowBytes : 0;
  static constexpr int kSlabs = kA / (64 * kWarpgroups);  // slabs of 64 rows of A per warpgroup
  static constexpr int kPairs = (kB + 15) / 16;           // groups of up to 16 rows of B
  static_assert(kA == 128 || kA == 256);
  static_assert(!kIsFp8 || (kWeightsAreA && kSlabs == 1));

  __device__ __forceinline__ ThreadBlock(const Params& p, unsigned char* memory)
      : p_(p), place_(p) {
    const uint32_t start = shared_address(memory);
    ring_ = round_up(start, kSharedAlignment);
    const uint32_t staged = ring_ + static_cast<uint32_t>(p.num_stages * kStageBytes);
    staged_ = memory + (staged - start);
    full_ = reinterpret_cast<Mbarrier*>(staged_ + kWarpgroups * 4 * staged_bytes(kWeightsAreA));
    empty_ = full_ + p.num_stages;
    const int64_t blocks = p.num_k_blocks;
    first_k_block_ = static_cast<int>(blocks * place_.split / p.splits);
    end_k_block_ = static_cast<int>(blocks * (place_.split + 1) / p.splits);
    stored_.count = (kPairs + p.splits - 1) / p.splits;
    stored_.first = stored_.count * place_.split;
  }

  // Runs on one thread, before the cluster's first barrier.
  __device__ void init_barriers() {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p_.w) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p_.x) : "memory");
    const int num_producers = p_.cluster_tokens + p_.cluster_weights - 1;
    for (int i = 0; i < p_.num_stages; ++i) {
      full_[i].init();
      empty_[i].init(static_cast<uint32_t>(kWarpgroups * num_producers));
    }
    publish_barriers();
  }

  // Runs on the producer thread.
  __device__ __forceinline__ void copy_tiles() {
    const CopyRange weights = weights_range();
    const CopyRange tokens = tokens_range();
    RingPosition at;
    bool is_first = true;
    for (Work work = first_work(); work.tile < num_tiles(); work = work_after(work)) {
      const int weight = first_weight(work.tile) + weights.first_row;
      const int token = first_token(work.tile) + tokens.first_row;
      const int end_k_block = work.is_split ? end_k_block_ : p_.num_k_blocks;
      int k_block = work.is_split ? first_k_block_ : 0;
      if (is_first) {  // the ring is empty
        const int count = min(p_.num_stages, end_k_block - k_block);
        for (int i = 0; i < count; ++i) {
          full_[i].arrive_expecting(kStageBytes);
          copy(weights, weight, k_block + i, i);
        }
        wait_for_previous_kernel();
        for (int i = 0; i < count; ++i) {
          copy(tokens, token, k_block + i, i);
          at.advance(p_.num_stages);
        }
        k_block += count;
        is_first = false;
      }
      for (; k_block < end_k_block; ++k_block) {
        empty_[at.stage].wait(at.parity ^ 1);
        full_[at.stage].arrive_expecting(kStageBytes);
        copy(weights, weight, k_block, at.stage);
        copy(tokens, token, k_block, at.stage);
        at.advance(p_.num_stages);
      }
    }
  }

  // Runs on the consumer warpgroups.
  __device__ __forceinline__ void multiply_tiles() {
    RingPosition at;
    float sums[kSlabs][kB / 2];
    if constexpr (kIsFp8) start_turns();
    for (Work work = first_work(); work.tile < num_tiles(); work = work_after(work)) {
      if constexpr (kIsFp8) {
        multiply_fp8_tile(sums, at, work);
      } else {
        multiply_tile(sums, at, work);
        store_tile(sums, work);
      }
    }
    if constexpr (kIsFp8) finish_turns();
  }

  // The producer warpgroup's part of add_splits(), because its barriers count all threads.
  __device__ __forceinline__ void sync_as_producer() {
    if (p_.splits == 1 || split_tile() >= num_tiles()) return;
    sync_cluster();
    sync_cluster_memory();
  }

 private:
  __device__ __forceinline__ int num_clusters() const {
    return static_cast<int>(gridDim.x / cluster_size());
  }
  __device__ __forceinline__ int cluster() const {
    return static_cast<int>(blockIdx.x / cluster_size());
  }

  // A tile of a thread block. The splits of a cluster compute different tiles, except for the
  // cluster's last tile, whose K they divide.
  struct Work {
    int tile;
    bool is_split;
  };
  __device__ __forceinline__ int split_tile() const { return p_.num_whole_tiles + cluster(); }
  __device__ __forceinline__ Work work_at(int tile) const {
    if (tile < p_.num_whole_tiles) return {tile, false};
    return {p_.splits > 1 ? split_tile() : num_tiles(), true};
  }
  __device__ __forceinline__ Work first_work() const {
    return work_at(cluster() * p_.splits + place_.split);
  }
  __device__ __forceinline__ Work work_after(const Work& work) const {
    if (work.is_split) return {num_tiles(), true};
    return work_at(work.tile + num_clusters() * p_.splits);
  }
  __device__ __forceinline__ int num_tiles() const {
    return p_.token_clusters * p_.weight_clusters;
  }
  // Tiles with the same weights are consecutive, so that the weights are still in the L2.
  __device__ __forceinline__ int first_token(int tile) const {
    return (tile % p_.token_clusters * p_.cluster_tokens + place_.token) * kTokens;
  }
  __device__ __forceinline__ int first_weight(int tile) const {
    return (tile / p_.token_clusters * p_.cluster_weights + place_.weight) * kWeights;
  }
  // The rows of a tile that this thread block copies to all thread blocks that need them.
  struct CopyRange {
    const CUtensorMap* map;
    uint64_t policy;
    uint32_t to;  // the address in the ring's first stage
    int first_row;
    uint16_t receivers;  // the receiving thread blocks of the cluster, one bit each
    bool is_shared;
    bool is_gated;
  };

  __device__ __forceinline__ CopyRange weights_range() const {
    CopyRange range = {};
    range.map = &p_.w;
    range.policy = p_.w_policy;
    range.first_row = kWeights / p_.cluster_tokens * place_.token;
    range.to = ring_ + static_cast<uint32_t>(kWeightsAt + range.first_row * kRowBytes);
    for (int i = 0; i < p_.cluster_tokens; ++i) {
      range.receivers |=
          static_cast<uint16_t>(1 << place_.rank_of(p_, i, place_.weight, place_.split));
    }
    range.is_shared = p_.cluster_tokens > 1;
    range.is_gated = p_.is_gated;
    return range;
  }
  __device__ __forceinline__ CopyRange tokens_range() const {
    CopyRange range = {};
    range.map = &p_.x;
    range.policy = kL2EvictNormal;
    range.first_row = kTokens / p_.cluster_weights * place_.weight;
    range.to = ring_ + static_cast<uint32_t>(kTokensAt + range.first_row * kRowBytes);
    for (int i = 0; i < p_.cluster_weights; ++i) {
      range.receivers |=
          static_cast<uint16_t>(1 << place_.rank_of(p_, place_.token, i, place_.split));
    }
    range.is_shared = p_.cluster_weights > 1;
    return range;
  }

  __device__ __forceinline__ void copy(const CopyRange& range, int row, int k_block, int stage) {
    const uint32_t to = range.to + static_cast<uint32_t>(stage * kStageBytes);
    const uint32_t arrived = shared_address(&full_[stage]);
    const int k = k_block * kBlockK;
    if (range.is_gated) {
      copy_gated(range, k, row / 16, to, arrived);
    } else if (range.is_shared) {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(to),
          "l"(range.map), "r"(arrived), "r"(k), "r"(row), "h"(range.receivers), "l"(range.policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
          "l"(range.map), "r"(arrived), "r"(k), "r"(row), "l"(range.policy)
          : "memory");
    }
  }

  // The axes of the map are K, 8 rows, gate and up, and groups of 8 rows.
  __device__ __forceinline__ void copy_gated(const CopyRange& range, int k, int group, uint32_t to,
                                             uint32_t arrived) {
    if (range.is_shared) {
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %4, %5}], [%2], %6, %7;" ::"r"(
              to),
          "l"(range.map), "r"(arrived), "r"(k), "r"(0), "r"(group), "h"(range.receivers),
          "l"(range.policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %4, %5}], [%2], %6;" ::"r"(to),
          "l"(range.map), "r"(arrived), "r"(k), "r"(0), "r"(group), "l"(range.policy)
          : "memory");
    }
  }

  // The barrier that this thread signals when it has read the first stage, in a thread block that
  // copies into that stage; 0: none. Each thread signals one thread block.
  __device__ __forceinline__ uint32_t signaled_barrier() const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    if (thread >= p_.cluster_tokens + p_.cluster_weights - 1) return 0;
    // The first threads signal the thread blocks with the same weights, the following threads
    // signal those with the same tokens.
    const int other = thread - p_.cluster_tokens;
    const int rank = other < 0
                         ? place_.rank_of(p_, thread, place_.weight, place_.split)
                         : place_.rank_of(p_, place_.token,
                                          other < place_.weight ? other : other + 1, place_.split);
    return address_in(shared_address(empty_), static_cast<uint32_t>(rank));
  }
  static __device__ __forceinline__ void signal(uint32_t first_barrier, int stage) {
    if (first_barrier == 0) return;
    arrive_at(first_barrier + static_cast<uint32_t>(stage * sizeof(Mbarrier)));
  }

  __device__ __forceinline__ void multiply_tile(float (&sums)[kSlabs][kB / 2], RingPosition& at,
                                                const Work& work) {
    const uint32_t a_at = ring_ + static_cast<uint32_t>(warpgroup() * kSlabs * 64 * kRowBytes);
    const uint32_t b_at = ring_ + static_cast<uint32_t>(kA * kRowBytes);
    const RingView ring = {a_at, b_at, kStageBytes, p_.num_stages, full_};
    const int num_blocks = work.is_split ? end_k_block_ - first_k_block_ : p_.num_k_blocks;
    if constexpr (kIsFp8) {
      const uint32_t barrier = signaled_barrier();  // not between two products
      multiply_fp8_blocks(sums[0], ring, num_blocks, at, [&](int read) { signal(barrier, read); });
    } else {
      multiply_blocks<T>(sums, ring, num_blocks, at,
                         [this](int read) { signal(signaled_barrier(), read); });
    }
    if (work.is_split) add_splits(sums);
  }

  __device__ __forceinline__ void multiply_fp8_tile(float (&sums)[1][kB / 2], RingPosition& at,
                                                    const Work& work) {
    const int first = first_weight(work.tile) + static_cast<int>(threadIdx.x) / 32 * 16;
    float w_scales[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = weight_row(p_, first, half);
      w_scales[half] = row < num_weight_rows(p_) ? p_.w_scales[row] : 0.0F;
    }
    wait_for_previous_kernel();  // it may write the scales of x
    const TokenScales<kTokens> x_scales([&](int row) {
      const int token = first_token(work.tile) + row;
      return token < p_.num_rows ? p_.x_scales[token] : 0.0F;
    });
    multiply_tile(sums, at, work);
    float* shared = reinterpret_cast<float*>(empty_ + p_.num_stages) + warpgroup() * kTokens;
    x_scales.share(shared);
    apply_scales(w_scales, shared, sums[0]);
    store_tile(sums, work);
  }

  // The address at which an owner receives sums. Each of the other splits has a slot there.
  __device__ __forceinline__ uint32_t part_at(int slot, int owner, int slab, int pair) const {
    const int item = (slot * kSlabs + slab) * stored_.count + pair - owner * stored_.count;
    return ring_ + static_cast<uint32_t>(
                       (item * 2 * kWarpgroups * 128 + static_cast<int>(threadIdx.x)) * 16);
  }

  // A cluster splits K of its last tile only. So after its products, the rings of all thread blocks
  // are idle, and can receive the sums.
  __device__ __forceinline__ void add_splits(float (&sums)[kSlabs][kB / 2]) {
    constexpr uint32_t kHalf = kWarpgroups * 128 * 16;
    __syncwarp();
    sync_cluster();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int owner = pair / stored_.count;
        if (owner == place_.split) continue;
        const float* v = sums[slab] + pair * 8;
        const int rank = place_.rank_of(p_, place_.token, place_.weight, owner);
        const int slot = place_.split < owner ? place_.split : place_.split - 1;
        const uint32_t to =
            address_in(part_at(slot, owner, slab, pair), static_cast<uint32_t>(rank));
        store_in_cluster(to, make_float4(v[0], v[1], v[2], v[3]));
        if (pair * 2 + 1 == kB / 8) continue;  // half a pair
        store_in_cluster(to + kHalf, make_float4(v[4], v[5], v[6], v[7]));
      }
    }
    sync_cluster_memory();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        if (!stored_.has(pair)) continue;
        float* v = sums[slab] + pair * 8;
        for (int slot = 0; slot + 1 < p_.splits; ++slot) {
          const uint32_t from = part_at(slot, place_.split, slab, pair);
          const float4 low = load_shared_floats(from);
          v[0] += low.x;
          v[1] += low.y;
          v[2] += low.z;
          v[3] += low.w;
          if (pair * 2 + 1 == kB / 8) continue;
          const float4 high = load_shared_floats(from + kHalf);
          v[4] += high.x;
          v[5] += high.y;
          v[6] += high.z;
          v[7] += high.w;
        }
      }
    }
  }

  __device__ __forceinline__ void store_tile(float (&sums)[kSlabs][kB / 2], const Work& work) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t weight = first_weight(work.tile);
    const StoredPairs stored = work.is_split ? stored_ : StoredPairs{.first = 0, .count = kPairs};
    using Out = std::conditional_t<kIsFp8, Any16Bits, T>;
    Epilogue<Out, kB, kWeightsAreA> epilogue(p_, staged_, stored);
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      const int row = (warp / 4 * kSlabs + slab) * 64 + warp % 4 * 16;
      epilogue.store(sums[slab], first_token(work.tile) + (kWeightsAreA ? 0 : row),
                     weight + (kWeightsAreA ? row : 0));
    }
  }

  const Params& p_;
  ClusterPlace place_;
  uint32_t ring_;
  unsigned char* staged_;
  Mbarrier* full_;   // per stage: its bytes have arrived
  Mbarrier* empty_;  // per stage: all receivers of this thread block's ranges have read them
  // The range of K, in a split tile:
  int first_k_block_;
  int end_k_block_;
  StoredPairs stored_;
};

template <typename T, int kWeights, int kTokens, bool kWeightsAreA>
__global__ void __launch_bounds__(kThreads, 1) wgmma_gemm_kernel(const __grid_constant__ Params p) {
  extern __shared__ unsigned char memory[];
  ThreadBlock<T, kWeights, kTokens, kWeightsAreA> block(p, memory);
  constexpr int kProducer = kWarpgroups * 128;
  if (threadIdx.x == kProducer) block.init_barriers();
  __syncwarp();
  if (cluster_size() > 1) sync_cluster();
  __syncthreads();
  trigger_dependent_launch();
  if (threadIdx.x >= kProducer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == kProducer) block.copy_tiles();
    __syncwarp();
    block.sync_as_producer();
  } else {
    // The SM has 65536 registers: 40 for each of 128 threads, and 232 for each of 256.
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    block.multiply_tiles();
  }
  // Other thread blocks may still copy into this one's ring or arrive at its barriers.
  __syncwarp();
  if (cluster_size() > 1) sync_cluster();
}

}  // namespace quire::cuda::wgmma
