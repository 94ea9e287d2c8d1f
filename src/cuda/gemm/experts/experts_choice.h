// Chooses the kernels that compute the experts of a layer, and runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/gemm/dense/grouped_gemm.h"
#include "cuda/gemm/experts/cuda_experts.h"
#include "cuda/gemm/experts/expert_kernels.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "ops/expert_ops.h"

namespace quire::cuda {

// The tokens of one pass over packed experts. More would need more memory: 2048 of
// Qwen3-30B-A3B's shape take 225 MB.
inline constexpr int64_t kPackedTokens = 2048;

// The rows of a tile of packed experts' products for this number of tokens: kMaxPackedRows for the
// kernel for few rows, otherwise the rows of a PackedTilePlan.
int packed_expert_rows(const ExpertsShape& shape, int64_t num_tokens);

// Computes ExpertOps::run_experts. run_few_experts() computes one token. From kGroupedFromTokens
// on, grouped products of sorted rows on Hopper's tensor cores do, if they support the operands.
// Packed experts have their own kernels for all numbers of tokens. With F32 activations, with the
// exact GELU, and on GPUs before Hopper, run_few_experts() computes all numbers of tokens,
// kFewTokens at a time. This is slow for prompts, and warn_of_few() logs it.
class ExpertsRunner {
 public:
  // num_blocks: thread blocks of grouped products; 0: one per SM.
  explicit ExpertsRunner(const LaunchContext& context, int num_blocks = 0);

  // Whether grouped products can compute experts of this shape. With FP8 weights they round
  // activations to FP8, with one scale per row, or per block if the weights have those.
  bool takes_grouped(const ExpertsShape& shape, DType activation) const;
  int64_t workspace_bytes(const ExpertsShape& shape, DType activation,
                          int64_t max_num_tokens) const;
  // Enqueues; capturable.
  void run(const ExpertsCall& call);
  // Computes packed experts of up to kPackedTokens tokens in tiles of tile_rows rows. The workspace
  // has packed_workspace_bytes().
  void run_packed(const ExpertsCall& call, int tile_rows);
  int64_t packed_workspace_bytes(const ExpertsShape& shape, DType activation, int64_t num_tokens,
                                 int tile_rows) const;

 private:
  // The parts of ExpertsCall::workspace.
  struct Workspace {
    TensorView product;  // [num_pairs, intermediate_size]
    // The rows of x in the order of the experts, then their outputs; data null: not needed.
    TensorView rows;           // [num_pairs, hidden_size]
    TensorView quantized;      // E4M3, of x, then of product
    TensorView scales;         // F32, of the quantized rows: per row or per block
    TensorView sorted_scales;  // F32, scales per block in the order of `rows`
    SortedPairs sorted;
    int64_t num_bytes = 0;
  };

  // The parts of ExpertsCall::workspace for packed experts.
  struct PackedWorkspace {
    TensorView product;  // [num_pairs, intermediate_size]
    // The first product's output before the gates are applied, then the experts' outputs.
    TensorView rows;
    std::byte* x = nullptr;  // a product's input, in the order of its matrices' columns
    SortedPairs sorted;
    int64_t num_bytes = 0;
  };
  // The rows that a packed product multiplies.
  struct PackedInput {
    PackedGroups groups;
    TensorView x;
    const int32_t* x_rows = nullptr;  // see PackedExpertsCall
    int rows_per_x = 1;
    bool are_ready = false;
  };

  bool packs(DType activation) const;
  void run_packed(const CudaExperts& experts, const ExpertsCall& call);
  PackedWorkspace packed_workspace(const ExpertsShape& shape, DType activation, int64_t num_tokens,
                                   int tile_rows, std::byte* start) const;
  // Multiplies by the parts of w, one launch each, and adds `bias`. With an activation, w must have
  // one part with gate and up (has_gates()). Gate and up are two parts if their formats differ or
  // gate ends within a panel; then the caller launches the activation.
  void multiply_packed(const PackedMatrices& w, const TensorView& bias, PackedInput input,
                       int tile_rows, std::optional<Activation> activation, std::byte* scratch,
                       const TensorView& out) const;
  bool runs_grouped(const CudaExperts& experts, const ExpertsCall& call) const;
  Workspace workspace(const ExpertsShape& shape, DType activation, int64_t num_tokens,
                      std::byte* start) const;
  Status run_grouped(const CudaExperts& experts, const ExpertsCall& call,
                     const Workspace& workspace);
  // Quantizes x like the product's weights, and makes it the product's input.
  void quantize(const TensorView& x, const Workspace& workspace, GroupedGemmCall& product) const;
  // Replaces the product's input, whose rows are tokens, by the sorted rows.
  void sort_rows(const Workspace& workspace, GroupedGemmCall& product) const;
  void warn_of_few(const CudaExperts& experts, const ExpertsCall& call);

  LaunchContext context_;
  int num_blocks_;
  bool has_warned_ = false;
};

}  // namespace quire::cuda
