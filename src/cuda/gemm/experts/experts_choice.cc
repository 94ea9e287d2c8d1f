#include "cuda/gemm/experts/experts_choice.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/log.h"
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/gemm/packed/packed_choice.h"

namespace quire::cuda {
namespace {

// The next part of a workspace.
TensorView part(BumpAllocator& parts, const Shape& shape, DType dtype) {
  const auto num_bytes = static_cast<size_t>(shape.num_elements()) * dtype_bytes(dtype);
  return {parts.allocate<std::byte>(num_bytes), dtype, shape};
}

// The average number of rows of an expert that is not shared.
double mean_rows(const ExpertsShape& shape, int64_t num_tokens) {
  const int num_chosen = shape.top_k - shape.num_shared;
  return static_cast<double>(num_tokens * num_chosen) /
         static_cast<double>(shape.num_experts - shape.num_shared);
}

// The smallest tile of `sizes` in which the rows of almost every expert fit, so that its weights
// are read once. Numbers of rows vary by about the square root of their mean. Experts with more
// rows, such as shared ones, get several tiles.
int tile_rows(const ExpertsShape& shape, int64_t num_tokens, std::span<const int> sizes) {
  const double mean = mean_rows(shape, num_tokens);
  for (const int rows : sizes) {
    if (mean + 2 * std::sqrt(mean) <= rows) return rows;
  }
  return sizes.back();
}

// The rows per tile of packed products: of the kernel for few rows, then of the kernel for tiles.
constexpr int kPackedTileSizes[] = {static_cast<int>(kMaxPackedRows), 16, 32, 64};
constexpr int kLargestPackedTile = 128;
// A tile of 128 rows takes 1.6 to 1.8 times as long as one of 64 on an H200, and the last tile of
// an expert is half empty on average. With fewer rows per expert, tiles of 64 are faster.
constexpr double kLargestTileFromMean = 256;

// The sorted pairs of a step in a workspace.
SortedPairs sorted_pairs(BumpAllocator& parts, int64_t num_pairs, int64_t num_tiles) {
  static_assert(sizeof(wgmma::ExpertTile) == 4 * sizeof(int32_t));
  SortedPairs sorted;
  sorted.tokens = part(parts, {num_pairs}, DType::kI32).as<int32_t>();
  sorted.rows = part(parts, {num_pairs}, DType::kI32).as<int32_t>();
  sorted.num_tiles = part(parts, {1}, DType::kI32).as<int32_t>();
  sorted.tiles = part(parts, {num_tiles, 4}, DType::kI32).as<wgmma::ExpertTile>();
  return sorted;
}

}  // namespace

int packed_expert_rows(const ExpertsShape& shape, int64_t num_tokens) {
  if (mean_rows(shape, num_tokens) >= kLargestTileFromMean) return kLargestPackedTile;
  return tile_rows(shape, num_tokens, kPackedTileSizes);
}

ExpertsRunner::ExpertsRunner(const LaunchContext& context, int num_blocks)
    : context_(context),
      num_blocks_(num_blocks > 0 ? num_blocks : context.stream->limits().num_sms) {}

bool ExpertsRunner::takes_grouped(const ExpertsShape& shape, DType activation) const {
  constexpr int64_t kStep = 8;  // elements of 16 bytes
  return context_.stream->limits().compute_capability == 90 && activation != DType::kF32 &&
         shape.hidden_size % kStep == 0 && shape.intermediate_size % kStep == 0;
}

bool ExpertsRunner::runs_grouped(const CudaExperts& experts, const ExpertsCall& call) const {
  return call.x.shape[0] >= kGroupedFromTokens && has_gated_products(call.activation) &&
         experts.has_one_type() && takes_grouped(experts.shape(), call.x.dtype) &&
         is_aligned({call.x.data, call.out.data}, 16);
}

ExpertsRunner::Workspace ExpertsRunner::workspace(const ExpertsShape& shape, DType activation,
                                                  int64_t num_tokens, std::byte* start) const {
  const int64_t num_pairs = num_tokens * shape.top_k;
  BumpAllocator parts(start);
  Workspace workspace;
  workspace.product = part(parts, {num_pairs, shape.intermediate_size}, activation);
  if (num_tokens >= kGroupedFromTokens && takes_grouped(shape, activation)) {
    workspace.rows = part(parts, {num_pairs, shape.hidden_size}, activation);
    const int64_t num_quantized =
        std::max(num_tokens * shape.hidden_size, num_pairs * shape.intermediate_size);
    workspace.quantized = part(parts, {num_quantized}, DType::kF8E4M3);
    // The grouped kernel reads the scales of whole tiles.
    const int64_t hidden_scales = num_scale_columns(shape.hidden_size);
    const int64_t num_scales = std::max(num_tokens * hidden_scales,
                                        num_pairs * num_scale_columns(shape.intermediate_size));
    workspace.scales = part(parts, {num_scales + wgmma::kMostGroupedTokens}, DType::kF32);
    workspace.sorted_scales =
        part(parts, {num_pairs * hidden_scales + wgmma::kMostGroupedTokens}, DType::kF32);
    workspace.sorted = sorted_pairs(
        parts, num_pairs, max_expert_tiles(num_pairs, shape.num_experts, wgmma::kGroupedTokens[0]));
  }
  workspace.num_bytes = static_cast<int64_t>(parts.num_bytes());
  return workspace;
}

int64_t ExpertsRunner::workspace_bytes(const ExpertsShape& shape, DType activation,
                                       int64_t max_num_tokens) const {
  const int64_t num_bytes = workspace(shape, activation, max_num_tokens, nullptr).num_bytes;
  if (!packs(activation)) return num_bytes;
  const int64_t num_tokens = std::min(max_num_tokens, kPackedTokens);
  return std::max(num_bytes, packed_workspace_bytes(shape, activation, num_tokens,
                                                    packed_expert_rows(shape, num_tokens)));
}

void ExpertsRunner::run(const ExpertsCall& call) {
  if (call.x.shape[0] == 0) return;
  const auto& experts = static_cast<const CudaExperts&>(*call.experts);
  if (experts.is_packed()) return run_packed(experts, call);
  const Workspace parts =
      workspace(experts.shape(), call.x.dtype, call.x.shape[0], call.workspace.data());
  QUIRE_CHECK(static_cast<int64_t>(call.workspace.size()) >= parts.num_bytes,
              "[ops] experts: the workspace is too small");
  if (!runs_grouped(experts, call)) {
    warn_of_few(experts, call);
    return run_few_experts(context_, experts.matrices(), call, parts.product);
  }
  Status status = run_grouped(experts, call, parts);
  if (!status.ok()) context_.stream->record_error(std::move(status));
}

// All launches are the same for any ids.
Status ExpertsRunner::run_grouped(const CudaExperts& experts, const ExpertsCall& call,
                                  const Workspace& workspace) {
  const ExpertsShape& shape = experts.shape();
  const int tokens = tile_rows(shape, call.x.shape[0], wgmma::kGroupedTokens);
  const SortedPairs& sorted = workspace.sorted;
  run_sort_pairs(context_, call.ids, tokens, sorted);
  const ExpertMatrices& matrices = experts.matrices();
  GroupedGemmCall gate_up = {.w = matrices.gate_up,
                             .x = call.x,
                             .out = workspace.product,
                             .type = call.x.dtype,
                             .bias = matrices.gate_up_bias,
                             .is_gated = true,
                             .activation = call.activation,
                             .tile_rows = tokens,
                             .sorted = &sorted,
                             .w_scales = matrices.gate_up_scales,
                             .scale_rows = matrices.gate_up_scale_rows};
  if (experts.has_fp8_weights()) quantize(call.x, workspace, gate_up);
  sort_rows(workspace, gate_up);
  QUIRE_RETURN_IF_ERROR(run_grouped_gemm(context_, num_blocks_, gate_up));
  GroupedGemmCall down = {.w = matrices.down,
                          .x = workspace.product,
                          .out = workspace.rows,
                          .type = call.x.dtype,
                          .bias = matrices.down_bias,
                          .tile_rows = tokens,
                          .sorted = &sorted,
                          .w_scales = matrices.down_scales,
                          .scale_rows = matrices.down_scale_rows};
  if (experts.has_fp8_weights()) quantize(workspace.product, workspace, down);
  QUIRE_RETURN_IF_ERROR(run_grouped_gemm(context_, num_blocks_, down));
  run_combine(context_, workspace.rows, sorted.rows, call.weights, call.adds, call.out);
  return {};
}

void ExpertsRunner::quantize(const TensorView& x, const Workspace& workspace,
                             GroupedGemmCall& product) const {
  product.x = {workspace.quantized.data, DType::kF8E4M3, x.shape};
  product.x_scales = workspace.scales.rows(0, x.shape[0]);
  if (product.scale_rows == 0) {
    return run_quantize_rows(context_, x, product.x, product.x_scales);
  }
  product.x_scales.shape = {num_scale_columns(x.shape[1]), x.shape[0]};
  run_quantize_blocks(context_, x, product.x, product.x_scales);
}

void ExpertsRunner::sort_rows(const Workspace& workspace, GroupedGemmCall& product) const {
  const int32_t* tokens = workspace.sorted.tokens;
  const TensorView rows = {workspace.rows.data, product.x.dtype, workspace.rows.shape};
  // Lets no kernel start before the list of tiles is complete; the grouped product requires this.
  run_gather_rows(context_, product.x, tokens, rows);
  product.x = rows;
  if (product.x_scales.data == nullptr) return;
  if (product.scale_rows == 0) {
    product.x_scale_rows = tokens;
    return;
  }
  const TensorView scales = {
      workspace.sorted_scales.data, DType::kF32, {product.x_scales.shape[0], rows.shape[0]}};
  run_gather_columns(context_, product.x_scales, tokens, scales);
  product.x_scales = scales;
}

bool ExpertsRunner::packs(DType activation) const {
  return context_.stream->limits().compute_capability == 90 && activation != DType::kF32;
}

ExpertsRunner::PackedWorkspace ExpertsRunner::packed_workspace(const ExpertsShape& shape,
                                                               DType activation, int64_t num_tokens,
                                                               int tile_rows,
                                                               std::byte* start) const {
  const int64_t num_pairs = num_tokens * shape.top_k;
  const int64_t num_tiles = max_expert_tiles(num_pairs, shape.num_experts, tile_rows);
  BumpAllocator parts(start);
  PackedWorkspace workspace;
  workspace.product = part(parts, {num_pairs, shape.intermediate_size}, activation);
  workspace.rows = part(
      parts, {num_pairs, std::max(shape.hidden_size, 2 * shape.intermediate_size)}, activation);
  const int64_t width =
      round_up(std::max(shape.hidden_size, shape.intermediate_size), int64_t{kChunkColumns});
  const int64_t num_rows =
      tile_rows > kMaxPackedRows ? num_tiles * tile_rows : num_pairs;  // of tiles, or permuted
  workspace.x = part(parts, {num_rows, width}, activation).as<std::byte>();
  workspace.sorted = sorted_pairs(
      parts, num_pairs, max_expert_tiles(num_pairs, shape.num_experts, kPackedTileSizes[0]));
  workspace.num_bytes = static_cast<int64_t>(parts.num_bytes());
  return workspace;
}

int64_t ExpertsRunner::packed_workspace_bytes(const ExpertsShape& shape, DType activation,
                                              int64_t num_tokens, int tile_rows) const {
  return packed_workspace(shape, activation, num_tokens, tile_rows, nullptr).num_bytes;
}

void ExpertsRunner::run_packed(const CudaExperts& experts, const ExpertsCall& call) {
  const int64_t num_tokens = call.x.shape[0];
  const bool has_tiles = has_gated_products(call.activation);
  if (!has_tiles) warn_of_few(experts, call);
  for (int64_t first = 0; first < num_tokens; first += kPackedTokens) {
    const int64_t count = std::min(kPackedTokens, num_tokens - first);
    ExpertsCall part = call;
    part.x = call.x.rows(first, count);
    part.ids = call.ids.rows(first, count);
    part.weights = call.weights.rows(first, count);
    part.out = call.out.rows(first, count);
    run_packed(part, has_tiles ? packed_expert_rows(experts.shape(), count)
                               : static_cast<int>(kMaxPackedRows));
  }
}

// All launches are the same for any ids.
void ExpertsRunner::run_packed(const ExpertsCall& call, int tile_rows) {
  const auto& experts = static_cast<const CudaExperts&>(*call.experts);
  const ExpertsShape& shape = experts.shape();
  const int64_t num_tokens = call.x.shape[0];
  const int64_t num_pairs = num_tokens * shape.top_k;
  const PackedWorkspace parts =
      packed_workspace(shape, call.x.dtype, num_tokens, tile_rows, call.workspace.data());
  QUIRE_CHECK(static_cast<int64_t>(call.workspace.size()) >= parts.num_bytes,
              "[ops] experts: the workspace is too small");
  QUIRE_CHECK(is_aligned({call.x.data, call.out.data}, 16), "[ops] experts: rows are misaligned");
  const bool is_few = tile_rows == kMaxPackedRows;
  PackedInput input;
  input.x = call.x;
  if (is_few && num_tokens == 1) {
    input.groups.experts = call.ids.as<const int32_t>();
    input.groups.most_tiles = num_pairs;
    input.rows_per_x = shape.top_k;
  } else {
    run_sort_pairs(context_, call.ids, tile_rows, parts.sorted);
    input.groups.tiles = parts.sorted.tiles;
    input.groups.num_tiles = parts.sorted.num_tiles;
    input.groups.most_tiles = max_expert_tiles(num_pairs, shape.num_experts, tile_rows);
    input.x_rows = parts.sorted.tokens;
  }
  const PackedMatrices& gate_up = experts.packed_gate_up();
  const ExpertMatrices& matrices = experts.matrices();
  if (has_gates(gate_up)) {
    multiply_packed(gate_up, matrices.gate_up_bias, input, tile_rows, call.activation, parts.x,
                    parts.product);
  } else {
    const TensorView halves = {
        parts.rows.data, call.x.dtype, {num_pairs, 2 * shape.intermediate_size}};
    multiply_packed(gate_up, matrices.gate_up_bias, input, tile_rows, {}, parts.x, halves);
    run_gated_mul(context_, call.activation, halves, parts.product);
  }
  input.x = parts.product;
  input.x_rows = nullptr;
  input.rows_per_x = 1;
  input.are_ready = is_few && has_gates(gate_up);
  const TensorView rows = {parts.rows.data, call.x.dtype, {num_pairs, shape.hidden_size}};
  multiply_packed(experts.packed_down(), matrices.down_bias, input, tile_rows, {}, parts.x, rows);
  run_combine(context_, rows, input.groups.tiles == nullptr ? nullptr : parts.sorted.rows,
              call.weights, call.adds, call.out);
}

void ExpertsRunner::multiply_packed(const PackedMatrices& w, const TensorView& bias,
                                    PackedInput input, int tile_rows,
                                    std::optional<Activation> activation, std::byte* scratch,
                                    const TensorView& out) const {
  input.groups.matrix_bytes = w.matrix_bytes();
  const DType dtype = out.dtype;
  const TensorView ordered = {scratch, dtype, {out.shape[0], w.num_columns()}};
  if (tile_rows > kMaxPackedRows) {
    run_tile_columns(context_, input.x, w.order(), input.groups, input.x_rows, tile_rows, scratch);
    for (const PackedRows& part : w.parts()) {
      PackedGemmCall call = {.w = &part, .x = ordered, .bias = bias, .out = out};
      if (activation) {
        call.gated_out = out;
        call.activation = *activation;
      }
      call.groups = &input.groups;
      PackedTilePlan plan = packed_tile_plan(part, tile_rows, context_.stream->limits().num_sms);
      plan.splits = 1;  // groups have many tiles
      run_packed_tiles(context_, plan, call);
    }
    return;
  }
  PackedExpertsCall call = {.groups = input.groups,
                            .x = input.x,
                            .x_rows = input.x_rows,
                            .rows_per_x = input.rows_per_x,
                            .bias = bias,
                            .out = out,
                            .is_gated = activation.has_value(),
                            .activation = activation.value_or(Activation::kSilu),
                            .are_ready = input.are_ready};
  if (w.order() != nullptr) {
    run_permute_groups(context_, call, w.order(), ordered);
    call.x = ordered;
    call.x_rows = nullptr;
    call.rows_per_x = 1;
    call.are_ready = false;
  }
  for (const PackedRows& part : w.parts()) {
    call.w = &part;
    run_packed_experts(context_, call);
    call.are_ready = false;
  }
}

void ExpertsRunner::warn_of_few(const CudaExperts& experts, const ExpertsCall& call) {
  constexpr int64_t kManyTokens = 64;
  if (has_warned_ || call.x.shape[0] < kManyTokens) return;
  has_warned_ = true;
  const ExpertsShape& shape = experts.shape();
  const int capability = context_.stream->limits().compute_capability;
  log_warning(
      "[ops] experts of many tokens run on the kernels for few, which are slow; got compute "
      "capability {}.{}, activations in {}, {}, weights of {}, sizes {} and {}, expected 9.0 "
      "(Hopper), f16 or bf16, another function than the exact GELU, one type, multiples of 8",
      capability / 10, capability % 10, dtype_name(call.x.dtype),
      has_gated_products(call.activation) ? "another function than the exact GELU"
                                          : "the exact GELU",
      experts.has_one_type() ? "one type" : "two types", shape.hidden_size,
      shape.intermediate_size);
}

}  // namespace quire::cuda
