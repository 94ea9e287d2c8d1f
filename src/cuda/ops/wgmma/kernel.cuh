// A is the operand of which an instruction takes 64 rows (each warpgroup has 64 or 128 of a tile's
// rows); B is the other one. Either of them may be w.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/wgmma/instruction.cuh"
#include "cuda/ops/wgmma/kernel.h"

namespace quire::cuda::wgmma {

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
// Maps an address in shared memory to the same one of another thread block of the cluster.
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
// Waits until all threads of the cluster are here. Every warp calls it with all lanes.
__device__ __forceinline__ void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;\n"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
}
// Also makes earlier writes of all thread blocks visible.
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
__device__ __forceinline__ float4 load_shared_vec(uint32_t shared_address) {
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(shared_address)
               : "memory");
  return value;
}

// Stores four 8x8 matrices of 16-bit elements, held as accumulators are, as rows of 16 bytes: lane
// i passes the address of row i % 8 of matrix i / 8.
template <bool kTransposed>
__device__ __forceinline__ void store_matrices(uint32_t row_address, const uint32_t (&m)[4]) {
  if constexpr (kTransposed) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
        "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
        : "memory");
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
        "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
        : "memory");
  }
}

template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  } else {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  }
}

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

// A position in the ring, with the parity of its barriers' phase.
struct Stage {
  int idx = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance(int num_stages) {
    if (++idx < num_stages) return;
    idx = 0;
    parity ^= 1;
  }
};

template <typename T, int kWeights, int kTokens, bool kWeightsAreA>
class Block {
 public:
  static constexpr int kA = kWeightsAreA ? kWeights : kTokens;
  static constexpr int kB = kWeightsAreA ? kTokens : kWeights;
  static constexpr int kRowBytes = kBlockK * 2;
  static constexpr int kStageBytes = stage_bytes(kWeights, kTokens);
  static constexpr int kWeightsAt = kWeightsAreA ? 0 : kA * kRowBytes;
  static constexpr int kTokensAt = kWeightsAreA ? kA * kRowBytes : 0;
  static constexpr int kSlabs = kA / (64 * kWarpgroups);  // slabs of 64 rows of A per warpgroup
  static constexpr int kPairs = kB / 16;                  // groups of 16 rows of B
  static_assert(kA == 128 || kA == 256);

  __device__ __forceinline__ Block(const Params& p, unsigned char* memory) : p_(p), place_(p) {
    const uint32_t start = shared_address(memory);
    ring_ = (start + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    const uint32_t staged = ring_ + static_cast<uint32_t>(p.num_stages * kStageBytes);
    staged_ = memory + (staged - start);
    full_ = reinterpret_cast<Mbarrier*>(staged_ + kWarpgroups * 4 * staged_bytes(kWeightsAreA));
    empty_ = full_ + p.num_stages;
    const int64_t blocks = p.num_k_blocks;
    first_k_block_ = static_cast<int>(blocks * place_.split / p.splits);
    end_k_block_ = static_cast<int>(blocks * (place_.split + 1) / p.splits);
    owned_pairs_ = kPairs / p.splits;
    first_pair_ = owned_pairs_ * place_.split;
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
    const Slice weights = weights_slice();
    const Slice tokens = tokens_slice();
    Stage stage;
    bool is_first = true;
    for (int tile = first_tile(); tile < num_tiles(); tile += num_clusters()) {
      const int weight = first_weight(tile) + weights.first_row;
      const int token = first_token(tile) + tokens.first_row;
      int k_block = first_k_block_;
      if (is_first) {  // the ring is empty
        const int count = min(p_.num_stages, end_k_block_ - first_k_block_);
        for (int i = 0; i < count; ++i) {
          full_[i].arrive_expecting(kStageBytes);
          copy(weights, weight, k_block + i, i);
        }
        wait_for_previous_kernel();
        for (int i = 0; i < count; ++i) {
          copy(tokens, token, k_block + i, i);
          stage.advance(p_.num_stages);
        }
        k_block += count;
        is_first = false;
      }
      for (; k_block < end_k_block_; ++k_block) {
        empty_[stage.idx].wait(stage.parity ^ 1);
        full_[stage.idx].arrive_expecting(kStageBytes);
        copy(weights, weight, k_block, stage.idx);
        copy(tokens, token, k_block, stage.idx);
        stage.advance(p_.num_stages);
      }
    }
  }

  // Runs on the consumer warpgroups.
  __device__ __forceinline__ void multiply_tiles() {
    Stage stage;
    float sums[kSlabs][kB / 2];
    for (int tile = first_tile(); tile < num_tiles(); tile += num_clusters()) {
      multiply_tile(sums, stage);
      if (p_.splits > 1) add_splits(sums);
      store_tile(sums, tile);
    }
  }

  // The producer warpgroup's side of add_splits(), whose barriers count all threads.
  __device__ __forceinline__ void sync_as_producer() {
    if (p_.splits == 1) return;
    sync_cluster();
    sync_cluster_memory();
  }

 private:
  __device__ __forceinline__ int num_clusters() const {
    return static_cast<int>(gridDim.x / cluster_size());
  }
  __device__ __forceinline__ int first_tile() const {
    return static_cast<int>(blockIdx.x / cluster_size());
  }
  __device__ __forceinline__ int num_tiles() const {
    return p_.token_clusters * p_.weight_clusters;
  }
  // Tiles of the same weights follow one another, so that the weights are still in the L2.
  __device__ __forceinline__ int first_token(int tile) const {
    return (tile % p_.token_clusters * p_.cluster_tokens + place_.token) * kTokens;
  }
  __device__ __forceinline__ int first_weight(int tile) const {
    return (tile / p_.token_clusters * p_.cluster_weights + place_.weight) * kWeights;
  }
  __device__ __forceinline__ bool owns(int pair) const {
    return static_cast<unsigned>(pair - first_pair_) < static_cast<unsigned>(owned_pairs_);
  }

  // The rows of a tile that this thread block copies to all thread blocks that multiply them.
  struct Slice {
    const CUtensorMap* map;
    uint64_t policy;
    uint32_t to;  // of the ring's first stage
    int first_row;
    uint16_t receivers;  // of the cluster, one bit each
    bool is_shared;
    bool is_gated;
  };

  __device__ __forceinline__ Slice weights_slice() const {
    Slice slice = {};
    slice.map = &p_.w;
    slice.policy = p_.w_policy;
    slice.first_row = kWeights / p_.cluster_tokens * place_.token;
    slice.to = ring_ + static_cast<uint32_t>(kWeightsAt + slice.first_row * kRowBytes);
    for (int i = 0; i < p_.cluster_tokens; ++i) {
      slice.receivers |=
          static_cast<uint16_t>(1 << place_.rank_of(p_, i, place_.weight, place_.split));
    }
    slice.is_shared = p_.cluster_tokens > 1;
    slice.is_gated = p_.is_gated;
    return slice;
  }
  __device__ __forceinline__ Slice tokens_slice() const {
    constexpr uint64_t kEvictNormal = 0x1000000000000000;
    Slice slice = {};
    slice.map = &p_.x;
    slice.policy = kEvictNormal;
    slice.first_row = kTokens / p_.cluster_weights * place_.weight;
    slice.to = ring_ + static_cast<uint32_t>(kTokensAt + slice.first_row * kRowBytes);
    for (int i = 0; i < p_.cluster_weights; ++i) {
      slice.receivers |=
          static_cast<uint16_t>(1 << place_.rank_of(p_, place_.token, i, place_.split));
    }
    slice.is_shared = p_.cluster_weights > 1;
    return slice;
  }

  __device__ __forceinline__ void copy(const Slice& slice, int row, int k_block, int stage) {
    const uint32_t to = slice.to + static_cast<uint32_t>(stage * kStageBytes);
    const uint32_t arrived = shared_address(&full_[stage]);
    const int k = k_block * kBlockK;
    if (slice.is_gated) {
      copy_gated(slice, k, row / 16, to, arrived);
    } else if (slice.is_shared) {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(to),
          "l"(slice.map), "r"(arrived), "r"(k), "r"(row), "h"(slice.receivers), "l"(slice.policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
          "l"(slice.map), "r"(arrived), "r"(k), "r"(row), "l"(slice.policy)
          : "memory");
    }
  }

  // The axes of the map are K, 8 rows, gate and up, groups of 8 rows.
  __device__ __forceinline__ void copy_gated(const Slice& slice, int k, int group, uint32_t to,
                                             uint32_t arrived) {
    if (slice.is_shared) {
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".multicast::cluster.L2::cache_hint [%0], [%1, {%3, %4, %4, %5}], [%2], %6, %7;" ::"r"(
              to),
          "l"(slice.map), "r"(arrived), "r"(k), "r"(0), "r"(group), "h"(slice.receivers),
          "l"(slice.policy)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
          ".L2::cache_hint [%0], [%1, {%3, %4, %4, %5}], [%2], %6;" ::"r"(to),
          "l"(slice.map), "r"(arrived), "r"(k), "r"(0), "r"(group), "l"(slice.policy)
          : "memory");
    }
  }

  // Signals each thread block that copies into this stage, by one thread per receiver.
  __device__ __forceinline__ void release(int stage) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    if (thread >= p_.cluster_tokens + p_.cluster_weights - 1) return;
    // The first threads signal the thread blocks with the same weights, the next ones those with
    // the same tokens.
    const int other = thread - p_.cluster_tokens;
    const int rank = other < 0
                         ? place_.rank_of(p_, thread, place_.weight, place_.split)
                         : place_.rank_of(p_, place_.token,
                                          other < place_.weight ? other : other + 1, place_.split);
    arrive_at(address_in(shared_address(&empty_[stage]), static_cast<uint32_t>(rank)));
  }

  __device__ __forceinline__ void multiply_tile(float (&sums)[kSlabs][kB / 2], Stage& stage) {
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    const uint32_t a_at = ring_ + static_cast<uint32_t>(warpgroup * kSlabs * 64 * kRowBytes);
    const uint32_t b_at = ring_ + static_cast<uint32_t>(kA * kRowBytes);
    int last = -1;
    for (int k_block = first_k_block_; k_block < end_k_block_; ++k_block) {
      full_[stage.idx].wait(stage.parity);
      const auto offset = static_cast<uint32_t>(stage.idx * kStageBytes);
      const uint64_t a = operand_descriptor(a_at + offset);
      const uint64_t b = operand_descriptor(b_at + offset);
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
      begin();
#pragma unroll
      for (int k = 0; k < kBlockK / 16; ++k) {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
          const int adds = k > 0 || k_block > first_k_block_;
          multiply<T, kB>(sums[slab], a + slab * (64 * kRowBytes >> 4) + k * 2, b + k * 2, adds);
        }
      }
      commit();
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
      wait<1>();
      if (last >= 0) release(last);
      last = stage.idx;
      stage.advance(p_.num_stages);
    }
    wait<0>();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) keep(sums[slab]);
    release(last);
  }

  // Address of the sums that an owner receives. Each other split has a slot.
  __device__ __forceinline__ uint32_t part_at(int slot, int owner, int slab, int pair) const {
    const int item = (slot * kSlabs + slab) * owned_pairs_ + pair - owner * owned_pairs_;
    return ring_ + static_cast<uint32_t>(
                       (item * 2 * kWarpgroups * 128 + static_cast<int>(threadIdx.x)) * 16);
  }

  // A split cluster computes one tile, so that its rings are idle when all thread blocks have
  // multiplied, and can receive the sums.
  __device__ __forceinline__ void add_splits(float (&sums)[kSlabs][kB / 2]) {
    constexpr uint32_t kHalf = kWarpgroups * 128 * 16;
    __syncwarp();
    sync_cluster();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        const int owner = pair / owned_pairs_;
        if (owner == place_.split) continue;
        const float* v = sums[slab] + pair * 8;
        const int rank = place_.rank_of(p_, place_.token, place_.weight, owner);
        const int slot = place_.split < owner ? place_.split : place_.split - 1;
        const uint32_t to =
            address_in(part_at(slot, owner, slab, pair), static_cast<uint32_t>(rank));
        store_in_cluster(to, make_float4(v[0], v[1], v[2], v[3]));
        store_in_cluster(to + kHalf, make_float4(v[4], v[5], v[6], v[7]));
      }
    }
    sync_cluster_memory();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        if (!owns(pair)) continue;
        float* v = sums[slab] + pair * 8;
        for (int slot = 0; slot + 1 < p_.splits; ++slot) {
          const uint32_t from = part_at(slot, place_.split, slab, pair);
          const float4 low = load_shared_vec(from);
          const float4 high = load_shared_vec(from + kHalf);
          v[0] += low.x;
          v[1] += low.y;
          v[2] += low.z;
          v[3] += low.w;
          v[4] += high.x;
          v[5] += high.y;
          v[6] += high.z;
          v[7] += high.w;
        }
      }
    }
  }

  // A warp has 16 rows of A times all rows of B: sums[4 j + 2 i + e] belongs to A's row
  // lane / 4 + 8 i and B's row 8 j + lane % 4 * 2 + e. With is_gated, w's rows alternate between 8
  // of gate and 8 of up.
  __device__ __forceinline__ void store_tile(float (&sums)[kSlabs][kB / 2], int tile) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int64_t weight = first_weight(tile);
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      const int row = (warp / 4 * kSlabs + slab) * 64 + warp % 4 * 16;
      const int token = first_token(tile) + (kWeightsAreA ? 0 : row);
      const int64_t column = weight + (kWeightsAreA ? row : 0);
      if (p_.bias != nullptr) add_bias(sums[slab], column);
      if (p_.out_is_f32) {
        store_f32(sums[slab], token, column);
      } else if (p_.is_gated) {
        store_16_bits<true>(sums[slab], token, column / 2);
      } else {
        store_16_bits<false>(sums[slab], token, column);
      }
    }
  }

  __device__ __forceinline__ float bias_of(int64_t column) const {
    return column < p_.num_columns ? to_float(static_cast<const T*>(p_.bias)[column]) : 0.0F;
  }
  __device__ __forceinline__ void add_bias(float (&sums)[kB / 2], int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (kWeightsAreA) {
      const float bias[2] = {bias_of(column + lane / 4), bias_of(column + lane / 4 + 8)};
#pragma unroll
      for (int i = 0; i < kB / 2; ++i) sums[i] += bias[i / 2 % 2];
    } else {
#pragma unroll
      for (int i = 0; i < kB / 2; ++i) {
        sums[i] += bias_of(column + i / 4 * 8 + lane % 4 * 2 + i % 2);
      }
    }
  }

  // Stores without staging: each access writes whole sectors of 32 bytes.
  __device__ __forceinline__ void store_f32(const float (&sums)[kB / 2], int token,
                                            int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto* out = static_cast<float*>(p_.out);
#pragma unroll
    for (int i = 0; i < kB / 2; i += 2) {
      if (!owns(i / 8)) continue;
      const int a_row = lane / 4 + i / 2 % 2 * 8;
      const int b_row = i / 4 * 8 + lane % 4 * 2;
      if constexpr (kWeightsAreA) {
        if (column + a_row >= p_.num_columns) continue;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (token + b_row + e >= p_.num_rows) continue;
          out[(token + b_row + e) * p_.num_columns + column + a_row] = sums[i + e];
        }
      } else {
        if (token + a_row >= p_.num_rows || column + b_row >= p_.num_columns) continue;
        *reinterpret_cast<float2*>(out + (token + a_row) * p_.num_columns + column + b_row) =
            make_float2(sums[i], sums[i + 1]);
      }
    }
  }

  __device__ __forceinline__ unsigned char* staged_of_warp() const {
    return staged_ + threadIdx.x / 32 * staged_bytes(kWeightsAreA);
  }
  // Stores 8 columns of one token; num_columns is a multiple of 8.
  __device__ __forceinline__ void store_vec_of(int token, int64_t column, const uint4& value) {
    if (token >= p_.num_rows || column >= p_.num_columns) return;
    *reinterpret_cast<uint4*>(static_cast<T*>(p_.out) + token * p_.num_columns + column) = value;
  }

  // Rounds gate and up to T first, as a separate product and activation would.
  static __device__ __forceinline__ float gate(float gate_sum, float up_sum) {
    const float x = to_float(from_float<T>(gate_sum));
    return __fdividef(x, 1.0F + __expf(-x)) * to_float(from_float<T>(up_sum));
  }

  template <bool kGated>
  __device__ __forceinline__ void store_16_bits(const float (&sums)[kB / 2], int token,
                                                int64_t column) {
    if constexpr (kWeightsAreA) {
      if constexpr (kGated) {
        store_gated_transposed(sums, token, column);
      } else {
        store_transposed(sums, token, column);
      }
    } else {
      store_rows<kGated>(sums, token, column);
    }
  }

  // A's rows are tokens. Stores 16 of them, 64 columns at a time, as runs of 128 bytes.
  template <bool kGated>
  __device__ __forceinline__ void store_rows(const float (&sums)[kB / 2], int token,
                                             int64_t column) {
    constexpr int kColumnsOfPair = kGated ? 8 : 16;
    constexpr int kPairsAtOnce = 64 / kColumnsOfPair;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned char* staged = staged_of_warp();
    const uint32_t row_address =
        shared_address(staged + (lane % 16) * kStagedRowBytes + lane / 16 * 16);
#pragma unroll
    for (int first = 0; first < kPairs; first += kPairsAtOnce) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // 16 columns
        const float* v = sums + (first + i * kPairsAtOnce / 4) * 8;
        if (first + i * kPairsAtOnce / 4 >= kPairs) continue;
        if constexpr (kGated) {
          store_matrices<false>(row_address + i * 32,
                                {pack<T>(gate(v[0], v[4]), gate(v[1], v[5])),
                                 pack<T>(gate(v[2], v[6]), gate(v[3], v[7])),
                                 pack<T>(gate(v[8], v[12]), gate(v[9], v[13])),
                                 pack<T>(gate(v[10], v[14]), gate(v[11], v[15]))});
        } else {
          store_matrices<false>(row_address + i * 32, {pack<T>(v[0], v[1]), pack<T>(v[2], v[3]),
                                                       pack<T>(v[4], v[5]), pack<T>(v[6], v[7])});
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = i * 4 + lane / 8;
        const int pair = first + lane % 8 * 8 / kColumnsOfPair;
        if (pair >= kPairs || !owns(pair)) continue;
        store_vec_of(
            token + row, column + first * kColumnsOfPair + lane % 8 * 8,
            *reinterpret_cast<const uint4*>(staged + row * kStagedRowBytes + lane % 8 * 16));
      }
      __syncwarp();
    }
  }

  // A's rows are weights. Stores 16 columns of out, 16 tokens at a time, as runs of 32 bytes.
  __device__ __forceinline__ void store_transposed(const float (&sums)[kB / 2], int token,
                                                   int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned char* staged = staged_of_warp();
    const int staged_token = lane / 16 * 8 + lane % 8;
    const uint32_t row_address =
        shared_address(staged + staged_token * kStagedTokenBytes + lane / 8 % 2 * 16);
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      if (!owns(pair)) continue;
      const float* v = sums + pair * 8;
      store_matrices<true>(row_address, {pack<T>(v[0], v[1]), pack<T>(v[2], v[3]),
                                         pack<T>(v[4], v[5]), pack<T>(v[6], v[7])});
      __syncwarp();
      store_vec_of(
          token + pair * 16 + lane / 2, column + lane % 2 * 8,
          *reinterpret_cast<const uint4*>(staged + lane / 2 * kStagedTokenBytes + lane % 2 * 16));
      __syncwarp();
    }
  }

  // A's rows are weights, gate and up. Stores 8 columns of out, 32 tokens at a time: gate and up
  // are in the same thread's registers.
  __device__ __forceinline__ void store_gated_transposed(const float (&sums)[kB / 2], int token,
                                                         int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned char* staged = staged_of_warp() + lane * 16;
#pragma unroll
    for (int pair = 0; pair < kPairs; pair += 2) {
      const float* v = sums + pair * 8;
      store_matrices<true>(
          shared_address(staged),
          {pack<T>(gate(v[0], v[2]), gate(v[1], v[3])), pack<T>(gate(v[4], v[6]), gate(v[5], v[7])),
           pack<T>(gate(v[8], v[10]), gate(v[9], v[11])),
           pack<T>(gate(v[12], v[14]), gate(v[13], v[15]))});
      __syncwarp();
      if (owns(pair + lane / 16)) {
        store_vec_of(token + pair * 16 + lane, column, *reinterpret_cast<const uint4*>(staged));
      }
      __syncwarp();
    }
  }

  const Params& p_;
  ClusterPlace place_;
  uint32_t ring_;
  unsigned char* staged_;
  Mbarrier* full_;   // per stage: its bytes have arrived
  Mbarrier* empty_;  // per stage: all receivers of this thread block's slices have read them
  int first_k_block_;
  int end_k_block_;
  int first_pair_;  // of the pairs that this thread block owns: all, unless the cluster splits K
  int owned_pairs_;
};

template <typename T, int kWeights, int kTokens, bool kWeightsAreA>
__global__ void __launch_bounds__(kThreads, 1) wgmma_gemm_kernel(const __grid_constant__ Params p) {
  extern __shared__ unsigned char memory[];
  Block<T, kWeights, kTokens, kWeightsAreA> block(p, memory);
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
