// The kernels of mixture-of-experts layers that CudaOps launches. All enqueue; the caller has
// checked the shapes. A pair is a token and one of its experts: pair i is token i / top_k.
#pragma once

#include <cstdint>

#include "cuda/gemm/dense/grouped_gemm.h"
#include "cuda/ops/op_kernels.h"
#include "ops/expert_ops.h"

namespace quire::cuda {

// The matrices of all experts of a layer: E4M3 with F32 scales, or in the type of the activations
// without scales (data null). An expert's scales are GemmCall::w_scales and scale_rows.
struct ExpertMatrices {
  TensorView gate_up;         // [num_experts, 2 * intermediate_size, hidden_size]
  TensorView gate_up_scales;  // [num_experts, scales of an expert]
  int64_t gate_up_scale_rows = 0;
  TensorView gate_up_bias;  // [num_experts, rows], in the type of the activations; data null: none
  TensorView down;          // [num_experts, hidden_size, intermediate_size]
  TensorView down_scales;   // [num_experts, scales of an expert]
  int64_t down_scale_rows = 0;
  TensorView down_bias;  // like gate_up_bias
};

// The maximum number of tokens that share one read of an expert's weights in run_few_experts().
inline constexpr int kFewTokens = 8;

// From this number of tokens on, grouped products are faster, if they support the operands: by 14 %
// with 2 tokens and 39 % with 8 on an H200 (Qwen3-30B-A3B in BF16).
inline constexpr int64_t kGroupedFromTokens = 2;

// Whether the products of many tokens compute gated_mul() with this activation. The code of kGelu
// would be the longest part of their epilogues.
constexpr bool has_gated_products(Activation activation) {
  return activation != Activation::kGelu;
}

// ExpertOps::run_experts by two kernels for few tokens. They compute any number, but read the
// weights again for each kFewTokens of them. product: [num_tokens * top_k, intermediate_size],
// scratch memory.
void run_few_experts(const LaunchContext& context, const ExpertMatrices& matrices,
                     const ExpertsCall& call, const TensorView& product);

// Sorts the pairs, and splits each expert's rows into tiles of up to `tile_rows` rows. ids: I32
// [num_tokens, top_k]. The order of an expert's rows may differ between two calls; the bits of a
// row's product do not depend on it.
void run_sort_pairs(const LaunchContext& context, const TensorView& ids, int tile_rows,
                    const SortedPairs& sorted);

// out[t, :] (+)= sum over j of weights[t, j] * y[rows[t, j], :], in the order of j. y and out are
// F16 or BF16 with rows of whole 16-byte vectors. rows null: y has one row per pair, in the order
// of the pairs.
void run_combine(const LaunchContext& context, const TensorView& y, const int32_t* rows,
                 const TensorView& weights, bool adds, const TensorView& out);

}  // namespace quire::cuda
