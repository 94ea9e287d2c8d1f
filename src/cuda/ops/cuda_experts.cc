#include "cuda/ops/cuda_experts.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/log.h"
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/tensor_map.h"
#include "cuda/ops/wgmma/kernel.h"

namespace quire::cuda {
namespace {

constexpr int64_t kAlign = 256;  // bytes, of the parts of the workspace
constexpr uint64_t kSwizzleRows = 8;

// The matrix of expert `idx` in a stack, as a tensor of one axis less.
TensorView slice(const TensorView& stack, int64_t idx) {
  if (stack.data == nullptr) return {};
  const TensorView row = stack.rows(idx, 1);
  if (stack.shape.rank() == 2) return {row.data, row.dtype, {stack.shape[1]}};
  return {row.data, row.dtype, {stack.shape[1], stack.shape[2]}};
}

// Hands out the parts of a workspace. With a null start it only counts the bytes.
class PartAllocator {
 public:
  explicit PartAllocator(std::byte* start) : start_(start) {}

  TensorView tensor(const Shape& shape, DType dtype) {
    TensorView view = {start_ == nullptr ? nullptr : start_ + num_bytes_, dtype, shape};
    num_bytes_ += round_up(static_cast<int64_t>(view.num_bytes()), kAlign);
    return view;
  }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  std::byte* start_;
  int64_t num_bytes_ = 0;
};

// The axes are K, rows and experts. With is_gated, 8 rows of gate and then the same 8 rows of up
// follow one another.
Result<CUtensorMap> weights_map(const TensorView& w, bool is_gated) {
  const auto num_experts = static_cast<uint64_t>(w.shape[0]);
  const auto num_rows = static_cast<uint64_t>(w.shape[1]);
  const auto width = static_cast<uint64_t>(w.shape[2]);
  constexpr uint32_t kRows = wgmma::kGroupedWeights;
  if (!is_gated) {
    const uint64_t sizes[] = {width, num_rows, num_experts};
    const uint64_t strides[] = {width, num_rows * width};
    const uint32_t box[] = {wgmma::kBlockK, kRows, 1};
    return encode_tensor_map({.base = w.data,
                              .dtype = w.dtype,
                              .sizes = sizes,
                              .strides = strides,
                              .box = box,
                              .is_read_in_full = true});
  }
  const uint64_t half = num_rows / 2;
  const uint64_t sizes[] = {width, kSwizzleRows, 2, half / kSwizzleRows, num_experts};
  const uint64_t strides[] = {width, half * width, kSwizzleRows * width, num_rows * width};
  const uint32_t box[] = {wgmma::kBlockK, kSwizzleRows, 2, kRows / (2 * kSwizzleRows), 1};
  return encode_tensor_map({.base = w.data,
                            .dtype = w.dtype,
                            .sizes = sizes,
                            .strides = strides,
                            .box = box,
                            .is_read_in_full = true});
}

Result<CUtensorMap> rows_map(const TensorView& rows, int box_rows) {
  const auto width = static_cast<uint64_t>(rows.shape[1]);
  const uint64_t sizes[] = {width, static_cast<uint64_t>(rows.shape[0])};
  const uint64_t strides[] = {width};
  const uint32_t box[] = {wgmma::kBlockK, static_cast<uint32_t>(box_rows)};
  return encode_tensor_map(
      {.base = rows.data, .dtype = rows.dtype, .sizes = sizes, .strides = strides, .box = box});
}

// E4M3 numbers as pairs, because the elements of a tensor map are 16 bits wide.
TensorView as_pairs(TensorView view) {
  if (view.dtype != DType::kF8E4M3) return view;
  const Shape& shape = view.shape;
  view.dtype = DType::kBF16;
  view.shape =
      shape.rank() == 2 ? Shape{shape[0], shape[1] / 2} : Shape{shape[0], shape[1], shape[2] / 2};
  return view;
}

// The smallest tile in which the rows of almost every expert fit, so that its weights are read
// once: the numbers of rows vary by about the root of their mean. Many rows have several of the
// largest.
int tile_rows(int64_t num_pairs, int num_experts) {
  const double mean = static_cast<double>(num_pairs) / num_experts;
  for (const int rows : wgmma::kGroupedTokens) {
    if (mean + 2 * std::sqrt(mean) <= rows) return rows;
  }
  return std::end(wgmma::kGroupedTokens)[-1];
}

}  // namespace

Status CudaExperts::add(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                        WeightUpload& upload, Stack& stack) {
  constexpr int64_t kFp8Step = 16;  // numbers of a load
  QUIRE_ASSIGN_OR_RETURN(const DType kept, kept_dtype(source, dtype));
  if (kept == DType::kF8E4M3 && shape[2] % kFp8Step != 0) {
    return unimplemented(
        "[ops] experts with FP8 weights need sizes that are multiples of 16; use --device cpu");
  }
  if (idx == 0) {
    QUIRE_ASSIGN_OR_RETURN(stack.weights, device_tensor(shape, kept));
    if (kept == DType::kF8E4M3) {
      QUIRE_ASSIGN_OR_RETURN(stack.scales, device_tensor({shape[0], shape[1]}, DType::kF32));
    }
  }
  if (kept != stack.weights.view.dtype) {
    return unimplemented(
        "[ops] some experts of a layer have FP8 weights and others do not; expected one type");
  }
  return upload_matrix(source, slice(stack.weights.view, idx), slice(stack.scales.view, idx),
                       upload);
}

Result<std::unique_ptr<CudaExperts>> CudaExperts::load(ExpertsSource& source, DType dtype,
                                                       WeightUpload& upload) {
  std::unique_ptr<CudaExperts> experts(new CudaExperts(source.shape()));
  const ExpertsShape& shape = experts->shape_;
  const Shape gate_up_shape = {shape.num_experts, 2 * shape.intermediate_size, shape.hidden_size};
  const Shape down_shape = {shape.num_experts, shape.hidden_size, shape.intermediate_size};
  for (int i = 0; i < shape.num_experts; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const LinearSource gate_up, source.gate_up(i));
    QUIRE_RETURN_IF_ERROR(add(i, gate_up, gate_up_shape, dtype, upload, experts->gate_up_));
    QUIRE_ASSIGN_OR_RETURN(const LinearSource down, source.down(i));
    QUIRE_RETURN_IF_ERROR(add(i, down, down_shape, dtype, upload, experts->down_));
  }
  experts->matrices_ = {experts->gate_up_.weights.view, experts->gate_up_.scales.view,
                        experts->down_.weights.view, experts->down_.scales.view};
  return experts;
}

size_t CudaExperts::num_bytes() const {
  size_t bytes = 0;
  for (const Stack* stack : {&gate_up_, &down_}) {
    bytes += stack->weights.buffer.num_bytes() + stack->scales.buffer.num_bytes();
  }
  return bytes;
}

bool CudaExperts::has_fp8_weights() const {
  return gate_up_.weights.view.dtype == DType::kF8E4M3 ||
         down_.weights.view.dtype == DType::kF8E4M3;
}

bool CudaExperts::has_one_type() const {
  return gate_up_.weights.view.dtype == down_.weights.view.dtype;
}

Result<ExpertsRunner> ExpertsRunner::create(const LaunchContext& context) {
  ExpertsRunner runner(context);
  int device = 0;
  int major = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&runner.num_sms_, cudaDevAttrMultiProcessorCount, device));
  runner.has_wgmma_ = major == 9;
  return runner;
}

bool ExpertsRunner::takes_grouped(const ExpertsShape& shape, DType activation) const {
  constexpr int64_t kStep = 8;  // elements of 16 bytes
  return has_wgmma_ && activation != DType::kF32 && shape.hidden_size % kStep == 0 &&
         shape.intermediate_size % kStep == 0;
}

bool ExpertsRunner::runs_grouped(const CudaExperts& experts, const ExpertsCall& call) const {
  return call.x.shape[0] >= kGroupedFromTokens && call.activation == Activation::kSilu &&
         experts.has_one_type() && takes_grouped(experts.shape(), call.x.dtype) &&
         is_aligned({call.x.data, call.out.data}, 16);
}

ExpertsRunner::Workspace ExpertsRunner::workspace(const ExpertsShape& shape, DType activation,
                                                  int64_t num_tokens, std::byte* start) const {
  const int64_t num_pairs = num_tokens * shape.top_k;
  PartAllocator parts(start);
  Workspace workspace;
  workspace.product = parts.tensor({num_pairs, shape.intermediate_size}, activation);
  if (num_tokens >= kGroupedFromTokens && takes_grouped(shape, activation)) {
    workspace.rows = parts.tensor({num_pairs, shape.hidden_size}, activation);
    const int64_t num_quantized =
        std::max(num_tokens * shape.hidden_size, num_pairs * shape.intermediate_size);
    workspace.quantized = parts.tensor({num_quantized}, DType::kF8E4M3);
    workspace.scales = parts.tensor({num_pairs}, DType::kF32);
    workspace.sorted.tokens = parts.tensor({num_pairs}, DType::kI32).as<int32_t>();
    workspace.sorted.rows = parts.tensor({num_pairs}, DType::kI32).as<int32_t>();
    workspace.sorted.num_tiles = parts.tensor({1}, DType::kI32).as<int32_t>();
    static_assert(sizeof(wgmma::ExpertTile) == 3 * sizeof(int32_t));
    const int64_t num_tiles =
        max_expert_tiles(num_pairs, shape.num_experts, wgmma::kGroupedTokens[0]);
    workspace.sorted.tiles = parts.tensor({num_tiles, 3}, DType::kI32).as<wgmma::ExpertTile>();
  }
  workspace.num_bytes = parts.num_bytes();
  return workspace;
}

int64_t ExpertsRunner::workspace_bytes(const ExpertsShape& shape, DType activation,
                                       int64_t max_num_tokens) const {
  return workspace(shape, activation, max_num_tokens, nullptr).num_bytes;
}

void ExpertsRunner::run(const ExpertsCall& call) {
  if (call.x.shape[0] == 0) return;
  const auto& experts = static_cast<const CudaExperts&>(*call.experts);
  const Workspace parts =
      workspace(experts.shape(), call.x.dtype, call.x.shape[0], call.workspace.data());
  QUIRE_CHECK(static_cast<int64_t>(call.workspace.size()) >= parts.num_bytes,
              "[ops] experts: the workspace is too small");
  if (!runs_grouped(experts, call)) {
    warn_of_few(experts, call.x.shape[0]);
    return run_few_experts(context_, experts.matrices(), call, parts.product);
  }
  Status status = run_grouped(experts, call, parts);
  if (!status.ok()) context_.stream->record_error(std::move(status));
}

// Every kernel has the same launch for any ids.
Status ExpertsRunner::run_grouped(const CudaExperts& experts, const ExpertsCall& call,
                                  const Workspace& workspace) {
  const ExpertsShape& shape = experts.shape();
  const int64_t num_pairs = workspace.rows.shape[0];
  const int tokens = tile_rows(num_pairs, shape.num_experts);
  const SortedPairs& sorted = workspace.sorted;
  run_sort_pairs(context_, call.ids, tokens, sorted);
  GroupedOperands gate_up = {.w = experts.matrices().gate_up, .rows = workspace.rows};
  GroupedOperands down = {.w = experts.matrices().down, .rows = workspace.product};
  if (experts.has_fp8_weights()) {
    const TensorView x = quantize(call.x, workspace);
    gate_up.rows.dtype = x.dtype;
    run_gather_rows(context_, x, sorted.tokens, gate_up.rows);
    gate_up.w_scales = experts.matrices().gate_up_scales.as<const float>();
    gate_up.x_scales = workspace.scales.as<const float>();
    gate_up.x_scale_rows = sorted.tokens;
  } else {
    run_gather_rows(context_, call.x, sorted.tokens, gate_up.rows);
  }
  QUIRE_RETURN_IF_ERROR(multiply(gate_up, sorted, true, tokens, workspace.product));
  if (experts.has_fp8_weights()) {
    down.rows = quantize(workspace.product, workspace);
    down.w_scales = experts.matrices().down_scales.as<const float>();
    down.x_scales = workspace.scales.as<const float>();
  }
  QUIRE_RETURN_IF_ERROR(multiply(down, sorted, false, tokens, workspace.rows));
  run_combine(context_, workspace.rows, sorted.rows, call.weights, call.adds, call.out);
  return {};
}

TensorView ExpertsRunner::quantize(const TensorView& x, const Workspace& workspace) const {
  const TensorView quantized = {workspace.quantized.data, DType::kF8E4M3, x.shape};
  run_quantize_rows(context_, x, quantized, workspace.scales.rows(0, x.shape[0]));
  return quantized;
}

Status ExpertsRunner::multiply(const GroupedOperands& operands, const SortedPairs& sorted,
                               bool is_gated, int tokens, const TensorView& out) {
  const bool is_fp8 = operands.w.dtype == DType::kF8E4M3;
  const TensorView w = as_pairs(operands.w);
  const TensorView rows = as_pairs(operands.rows);
  const auto shared_bytes = [&](int num_stages) {
    return wgmma::shared_bytes(wgmma::kGroupedWeights, tokens, true, num_stages);
  };
  wgmma::GroupedParams p;
  p.num_stages = wgmma::kMaxStages;
  while (shared_bytes(p.num_stages) > context_.stream->limits().max_shared_bytes) --p.num_stages;
  QUIRE_ASSIGN_OR_RETURN(p.w, weights_map(w, is_gated));
  QUIRE_ASSIGN_OR_RETURN(p.x, rows_map(rows, tokens));
  p.out = out.data;
  p.num_columns = out.shape[1];
  p.is_gated = is_gated;
  p.tiles = sorted.tiles;
  p.num_tiles = sorted.num_tiles;
  p.w_scales = operands.w_scales;
  p.x_scales = operands.x_scales;
  p.x_scale_rows = operands.x_scale_rows;
  p.num_weight_tiles = static_cast<int>(ceil_div(w.shape[1], int64_t{wgmma::kGroupedWeights}));
  p.num_k_blocks = static_cast<int>(ceil_div(w.shape[2], int64_t{wgmma::kBlockK}));
  const LaunchShape shape = {.grid = static_cast<unsigned>(num_sms_),
                             .block = wgmma::kThreads,
                             .shared_bytes = shared_bytes(p.num_stages),
                             .overlap_start = context_.overlap_start};
  QUIRE_LAUNCH(*context_.stream, wgmma::grouped_kernel(out.dtype == DType::kF16, is_fp8, tokens),
               shape, p);
  return {};
}

void ExpertsRunner::warn_of_few(const CudaExperts& experts, int64_t num_tokens) {
  constexpr int64_t kManyTokens = 64;
  if (has_warned_ || num_tokens < kManyTokens) return;
  has_warned_ = true;
  log_warning(
      "[ops] experts of many tokens run on the kernels for few, which are slow; the fast ones need "
      "a Hopper GPU, activations in f16 or bf16, and SiLU; got weights in {}",
      dtype_name(experts.matrices().gate_up.dtype));
}

}  // namespace quire::cuda
