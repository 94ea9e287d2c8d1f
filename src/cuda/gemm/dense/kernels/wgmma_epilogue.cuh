// Stores a tile's sums. A is the operand that provides 64 rows per instruction, and B is the other
// operand. Either may be w.
#pragma once

#include <type_traits>

#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/ops/activation.cuh"

namespace quire::cuda::wgmma {

// The range of pairs whose sums a thread block stores: all pairs, unless its cluster splits K. A
// pair is 16 rows of B, two groups of 8. The last pair may be one group.
struct StoredPairs {
  int first;
  int count;

  __device__ __forceinline__ bool has(int pair) const {
    return static_cast<unsigned>(pair - first) < static_cast<unsigned>(count);
  }
};

// F16 or BF16, which Output::is_f16 selects at run time. Kernels with E4M3 operands compute both
// types, because their loops over K are the same and take long to compile.
struct Any16Bits {};

// T: type of out, unless that is F32, and of bias.
//
// A warp has 16 rows of A times all kB rows of B: sums[4 j + 2 i + e] belongs to A's row
// lane / 4 + 8 i and B's row 8 j + lane % 4 * 2 + e. With is_gated, 8 rows of gate and 8 rows of up
// alternate in w.
template <typename T, int kB, bool kWeightsAreA>
class Epilogue {
 public:
  static constexpr int kGroups = kB / 8;
  static constexpr int kPairs = (kGroups + 1) / 2;

  // activation: with is_gated; not kGelu.
  __device__ __forceinline__ Epilogue(const Output& p, unsigned char* staged,
                                      const StoredPairs& stored,
                                      Activation activation = Activation::kSilu)
      : p_(p), staged_(staged), stored_(stored), activation_(activation) {}

  // Element `idx` of the bias.
  __device__ __forceinline__ float bias_at(int64_t idx) const {
    return with_type(
        [&](auto type) { return to_float(static_cast<const decltype(type)*>(p_.bias)[idx]); });
  }

  // `token` and `column` belong to the first sum; with is_gated, `column` is a row of w.
  __device__ __forceinline__ void store(float (&sums)[kB / 2], int token, int64_t column) {
    if (p_.bias != nullptr) add_bias(sums, column);
    store_sums(sums, token, column);
  }
  // Like store(), without the bias.
  __device__ __forceinline__ void store_sums(const float (&sums)[kB / 2], int token,
                                             int64_t column) {
    if (p_.out_is_f32) {
      store_f32(sums, token, column);
    } else if (p_.is_gated) {
      store_16_bits<true>(sums, token, column / 2);
    } else {
      store_16_bits<false>(sums, token, column);
    }
  }

 private:
  // Calls body with a value of the type of out.
  template <typename Body>
  __device__ __forceinline__ auto with_type(const Body& body) const {
    if constexpr (!std::is_same_v<T, Any16Bits>) {
      return body(T());
    } else {
      return p_.is_f16 ? body(__half()) : body(__nv_bfloat16());
    }
  }
  __device__ __forceinline__ uint32_t packed(float low, float high) const {
    return with_type([&](auto type) { return pack<decltype(type)>(low, high); });
  }

  __device__ __forceinline__ float bias_of(int64_t column) const {
    return column < p_.num_columns ? bias_at(column) : 0.0F;
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

  // Stores without staging, because each access writes whole sectors of 32 bytes.
  __device__ __forceinline__ void store_f32(const float (&sums)[kB / 2], int token,
                                            int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto* out = static_cast<float*>(p_.out);
#pragma unroll
    for (int i = 0; i < kB / 2; i += 2) {
      if (!stored_.has(i / 8)) continue;
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
    *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p_.out) + token * p_.num_columns + column) =
        value;
  }

  // Rounds gate and up to the type of out first, as a separate product and activation kernel would.
  __device__ __forceinline__ float gate(float gate_sum, float up_sum) const {
    return logistic_gate<__half>(activation_, rounded(gate_sum), rounded(up_sum));
  }
  __device__ __forceinline__ float rounded(float x) const {
    return with_type([&](auto type) { return to_float(from_float<decltype(type)>(x)); });
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

  // For tokens in the rows of A. Stores 16 tokens, 64 columns at a time, in runs of 128 bytes.
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
                                {packed(gate(v[0], v[4]), gate(v[1], v[5])),
                                 packed(gate(v[2], v[6]), gate(v[3], v[7])),
                                 packed(gate(v[8], v[12]), gate(v[9], v[13])),
                                 packed(gate(v[10], v[14]), gate(v[11], v[15]))});
        } else {
          store_matrices<false>(row_address + i * 32, {packed(v[0], v[1]), packed(v[2], v[3]),
                                                       packed(v[4], v[5]), packed(v[6], v[7])});
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = i * 4 + lane / 8;
        const int pair = first + lane % 8 * 8 / kColumnsOfPair;
        if (pair >= kPairs || !stored_.has(pair)) continue;
        store_vec_of(
            token + row, column + first * kColumnsOfPair + lane % 8 * 8,
            *reinterpret_cast<const uint4*>(staged + row * kStagedRowBytes + lane % 8 * 16));
      }
      __syncwarp();
    }
  }

  // Groups past the last one are not stored.
  static __device__ __forceinline__ constexpr int group_of(int group) {
    return group < kGroups ? group : kGroups - 1;
  }

  // For weights in the rows of A. Stores 16 columns of out, 16 tokens at a time, in runs of 32
  // bytes.
  __device__ __forceinline__ void store_transposed(const float (&sums)[kB / 2], int token,
                                                   int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned char* staged = staged_of_warp();
    const int staged_token = lane / 16 * 8 + lane % 8;
    const uint32_t row_address =
        shared_address(staged + staged_token * kStagedTokenBytes + lane / 8 % 2 * 16);
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      if (!stored_.has(pair)) continue;
      const float* low = sums + pair * 8;
      const float* high = sums + group_of(pair * 2 + 1) * 4;
      store_matrices<true>(row_address, {packed(low[0], low[1]), packed(low[2], low[3]),
                                         packed(high[0], high[1]), packed(high[2], high[3])});
      __syncwarp();
      if (pair * 2 + lane / 16 < kGroups) {
        store_vec_of(
            token + pair * 16 + lane / 2, column + lane % 2 * 8,
            *reinterpret_cast<const uint4*>(staged + lane / 2 * kStagedTokenBytes + lane % 2 * 16));
      }
      __syncwarp();
    }
  }

  // For gate and up weights in the rows of A. Stores 8 columns of out, 32 tokens at a time. The
  // gate and up values are in the same thread's registers.
  __device__ __forceinline__ void store_gated_transposed(const float (&sums)[kB / 2], int token,
                                                         int64_t column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned char* staged = staged_of_warp() + lane * 16;
#pragma unroll
    for (int pair = 0; pair < kPairs; pair += 2) {
      const auto product_of = [&](int group) {
        const float* v = sums + group_of(group) * 4;
        return packed(gate(v[0], v[2]), gate(v[1], v[3]));
      };
      store_matrices<true>(shared_address(staged),
                           {product_of(pair * 2), product_of(pair * 2 + 1),
                            product_of(pair * 2 + 2), product_of(pair * 2 + 3)});
      __syncwarp();
      if (stored_.has(pair + lane / 16) && pair * 2 + lane / 8 < kGroups) {
        store_vec_of(token + pair * 16 + lane, column, *reinterpret_cast<const uint4*>(staged));
      }
      __syncwarp();
    }
  }

  const Output& p_;
  unsigned char* staged_;  // of the thread block
  const StoredPairs& stored_;
  Activation activation_;
};

}  // namespace quire::cuda::wgmma
