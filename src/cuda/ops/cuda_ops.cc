#include "cuda/ops/cuda_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/base/stream.h"
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/experts/cuda_experts.h"
#include "cuda/gemm/experts/kernels/router_kernel.h"
#include "cuda/gemm/packed/packed_choice.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "cuda/gemm/tail/tail_choice.h"
#include "cuda/ops/cuda_expert_ops.h"
#include "cuda/ops/cuda_weight_store.h"
#include "cuda/ops/product_recorder.h"
#include "cuda/ops/product_runner.h"
#include "cuda/states/cuda_state_ops.h"

namespace quire::cuda {
namespace {

// At least the engine's limits of max_num_batched_tokens and, for a drafter, max_num_seqs, added.
constexpr int64_t kMaxStepTokens = (1 << 20) + 65536;

// ranks: null for a single rank.
Agreement agreement_of(NcclRanks* ranks, int rank) {
  return ranks == nullptr ? Agreement() : Agreement(ranks->joint(), rank);
}

}  // namespace

Result<std::unique_ptr<CudaOps>> CudaOps::create(CudaStream& stream, DType activation,
                                                 CudaOpsOptions options) {
  if (activation != DType::kF32 && activation != DType::kF16 && activation != DType::kBF16) {
    return invalid_argument(
        fmt::format("[ops] unsupported type of activations; got {}, expected f32, f16 or bf16",
                    dtype_name(activation)));
  }
  const LaunchContext context = {.stream = &stream, .overlap_start = options.overlap_kernels};
  if (options.choices == nullptr) options.choices = std::make_shared<MeasuredChoices>();
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<GemmRunner> gemm,
                         GemmRunner::create(context, options.choices));
  std::unique_ptr<PackedGemm> packed_gemm;
  // PackedGemm's kernels are compiled for Hopper only.
  if (stream.limits().compute_capability == 90 && activation != DType::kF32) {
    packed_gemm = std::make_unique<PackedGemm>(context, gemm->cublas());
  }
  QUIRE_ASSIGN_OR_RETURN(
      LayerTailChoice layer_tails,
      LayerTailChoice::create(context,
                              {.num_blocks = options.layer_tail_blocks,
                               .agreement = agreement_of(options.ranks.get(), options.rank),
                               .num_ranks = options.ranks == nullptr ? 1 : options.ranks->size(),
                               .rank = options.rank,
                               .peer_sums = options.peer_sums,
                               .choices = options.choices}));
  Tensor part_rows;
  if (options.ranks != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(part_rows, device_tensor({kMaxStepTokens}, DType::kI32));
  }
  auto products = std::make_unique<MeasuredProducts>(context, std::move(gemm),
                                                     std::move(layer_tails), options.choices);
  return std::unique_ptr<CudaOps>(new CudaOps(context, activation, std::move(products),
                                              std::move(packed_gemm), std::move(options),
                                              std::move(part_rows)));
}

CudaOps::CudaOps(const LaunchContext& context, DType activation,
                 std::unique_ptr<MeasuredProducts> products,
                 std::unique_ptr<PackedGemm> packed_gemm, CudaOpsOptions options, Tensor part_rows)
    : context_(context),
      activation_(activation),
      check_{activation},
      measured_(std::move(products)),
      products_(measured_.get()),
      packed_gemm_(std::move(packed_gemm)),
      experts_(std::make_unique<CudaExpertOps>(context, activation, options.expert_blocks)),
      latents_(std::make_unique<CudaLatentOps>(context, activation, *measured_)),
      states_(std::make_unique<CudaStateOps>(context, activation)),
      ranks_(options.ranks),
      rank_(options.rank),
      choices_(options.choices),
      part_rows_(std::move(part_rows)),
      weights_(std::make_unique<CudaWeightStore>(context, activation, measured_->dense(),
                                                 packed_gemm_.get(), *experts_)) {
  if (ranks_ == nullptr) return;
  collectives_ = std::make_unique<CudaCollectives>(context, std::move(options.ranks), rank_,
                                                   std::move(options.peer_sums));
}

CudaOps::~CudaOps() = default;

WeightStore& CudaOps::weights() const {
  return *weights_;
}

ExpertOps* CudaOps::experts() const {
  return experts_.get();
}

CudaLatentOps* CudaOps::latents() const {
  return latents_.get();
}

StateOps* CudaOps::states() const {
  return states_.get();
}

CudaCollectives* CudaOps::collectives() const {
  return collectives_.get();
}

Result<Tensor> CudaOps::allocate(const Shape& shape, DType dtype) {
  QUIRE_ASSIGN_OR_RETURN(Tensor tensor, device_tensor(shape, dtype));
  context_.stream->set_zero(tensor.view.data, tensor.view.num_bytes());
  return tensor;
}

void CudaOps::embed(const Linear& table, const int32_t* ids, float scale, TensorView out) {
  if (!table.first_token_id()) return embed_rows(table, ids, scale, out);
  const Slice part = {*table.first_token_id(), table.out_features()};
  QUIRE_CHECK(out.shape[0] <= part_rows_.view.shape[0], "[ops] embed: too many tokens");
  auto* const rows = part_rows_.view.as<int32_t>();
  run_part_rows(context_, ids, out.shape[0], part, rows);
  embed_rows(table, rows, scale, out);
  run_clear_other_rows(context_, ids, part, out);
}

void CudaOps::residual_norm(const ResidualNorm& norm, TensorView out) {
  check_norm(norm, out);
  if (is_collective(norm)) return collectives_->sum_and_norm(norm, out);
  run_rms_norm(context_, norm, out);
}

void CudaOps::linear(const Linear& w, TensorView x, TensorView out) {
  if (as_cuda(w).packed() != nullptr) return packed_gemm_->run(packed_product_of(w, x, out));
  products_->run(product_of(w, x, out));
}

void CudaOps::norm_linear(const ResidualNorm& norm, const Linear& w, TensorView scratch,
                          TensorView out) {
  // A separate kernel that normalizes few rows is faster than normalizing them in every thread
  // block of the packed kernel.
  if (as_cuda(w).packed() != nullptr || !is_fusible(norm)) {
    return Ops::norm_linear(norm, w, scratch, out);
  }
  check_norm(norm, scratch);
  GemmCall call = product_of(w, scratch, out);
  call.operation = norm;
  products_->run(call);
}

void CudaOps::rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                          TensorView cos_sin) {
  check_angles(cos_sin);
  run_rope_angles(context_, inv_freq, attention_factor, positions, cos_sin);
}

void CudaOps::position_scales(const PositionScale& scale, const int32_t* positions,
                              TensorView out) {
  QUIRE_CHECK(out.dtype == DType::kF32 && out.shape.rank() == 1,
              "[ops] position_scales: the scales are not one F32 per token");
  run_position_scales(context_, scale, positions, out);
}

void CudaOps::wide_norm(const WideNorm& norm) {
  const int64_t num_tokens = norm.qkv.shape[0];
  check_.rows(norm.qkv, norm.qkv.shape[1]);
  QUIRE_CHECK(norm.sums.dtype == DType::kF32 && norm.sums.shape.num_elements() == 2 * num_tokens &&
                  norm.q_width > 0 && norm.k_width > 0 &&
                  norm.q_width + norm.k_width <= norm.qkv.shape[1],
              "[ops] wide_norm: the widths do not fit the rows, or there is no sum per row");
  if (num_tokens == 0) return;
  if (collectives_ == nullptr) return run_wide_norm(context_, norm, WideNormPart::kAll, 1);
  run_wide_norm(context_, norm, WideNormPart::kSums, 1);
  // One row of whole vectors, so that the kernels over peer memory can add up few tokens.
  collectives_->all_reduce(
      {norm.sums.data, DType::kF32, {1, round_up(2 * num_tokens, int64_t{4})}});
  run_wide_norm(context_, norm, WideNormPart::kScaling, collectives_->num_ranks());
}

void CudaOps::rope_and_cache(const RopeAndCache& args) {
  check_.rows(args.qkv, args.row_width());
  check_angles(args.cos_sin);
  QUIRE_CHECK(args.cos_sin.shape[1] <= args.head_dim && args.page_size > 0,
              "[ops] rope_and_cache: rope_dim or page_size out of range");
  QUIRE_CHECK(
      args.q_out.dtype == activation_ && args.cos_sin.shape[0] == args.qkv.shape[0] &&
          args.q_out.shape.num_elements() == args.qkv.shape[0] * args.num_heads * args.head_dim,
      "[ops] rope_and_cache: shapes differ in tokens");
  run_rope_and_cache(context_, args);
}

void CudaOps::gated_mul(Activation activation, TensorView gate_up, TensorView out) {
  check_gated(gate_up, out);
  run_gated_mul(context_, activation, gate_up, out);
}

void CudaOps::gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                                int64_t first_column, TensorView out) {
  check_.same(gate, out);
  check_.rows(up, up.shape[1]);
  QUIRE_CHECK(up.shape[0] == out.shape[0] && first_column >= 0 &&
                  first_column + out.shape[1] <= up.shape[1],
              "[ops] gated_mul_columns: up differs in rows, or has too few columns");
  run_gated_mul_columns(context_, activation, gate, up, first_column, out);
}

void CudaOps::linear_gated_mul(Activation activation, const Linear& gate_up, TensorView x,
                               TensorView scratch, TensorView out) {
  if (activation != Activation::kSilu) {
    linear(gate_up, x, scratch);
    return gated_mul(activation, scratch, out);
  }
  check_gated(scratch, out);
  if (as_cuda(gate_up).packed() != nullptr) {
    PackedProduct product = packed_product_of(gate_up, x, scratch);
    product.gated_out = out;
    return packed_gemm_->run(product);
  }
  GemmCall call = product_of(gate_up, x, scratch);
  call.gated_out = out;
  products_->run(call);
}

// If down quantizes its activations, the kernel that quantizes them also computes the product of
// gate and up, unless gate_up's kernel does.
void CudaOps::gated_mlp(const GatedMlp& mlp) {
  const bool is_packed =
      as_cuda(*mlp.gate_up).packed() != nullptr || as_cuda(*mlp.down).packed() != nullptr;
  if (is_packed) {
    const TensorView x = mlp.norm ? normed(*mlp.norm, mlp.x) : mlp.x;
    linear_gated_mul(mlp.activation, *mlp.gate_up, x, mlp.gate_up_out, mlp.product);
    return linear(*mlp.down, mlp.product, mlp.out);
  }
  check_gated(mlp.gate_up_out, mlp.product);
  const bool is_fused = mlp.norm && is_fusible(*mlp.norm);
  const TensorView x = mlp.norm && !is_fused ? normed(*mlp.norm, mlp.x) : mlp.x;
  GemmCall gate_up = product_of(*mlp.gate_up, x, mlp.gate_up_out);
  if (is_fused) {
    check_norm(*mlp.norm, mlp.x);
    gate_up.operation = *mlp.norm;
  }
  const bool may_multiply = mlp.activation == Activation::kSilu;
  if (may_multiply) gate_up.gated_out = mlp.product;
  GemmCall down = product_of(*mlp.down, mlp.product, mlp.out);
  GemmCall gated_down = down;
  gated_down.operation = GatedMul{mlp.activation, mlp.gate_up_out};
  products_->run(MlpCalls{std::move(gate_up), std::move(down), std::move(gated_down)});
}

void CudaOps::gate(const Gating& gating) {
  const TensorView& gates = gating.gates;
  check_.rows(gating.x, gating.x.shape[1]);
  QUIRE_CHECK((gates.dtype == activation_ || gates.dtype == DType::kF32) &&
                  gates.shape.rank() == 2 && gates.shape[0] == gating.x.shape[0] &&
                  gating.x.shape[1] % gates.shape[1] == 0,
              "[ops] gate: the gates are neither F32 nor of the activations' type, or do not "
              "divide the rows");
  run_gate(context_, gating);
}

void CudaOps::soft_cap(float cap, TensorView x) {
  QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 2, "[ops] logits are not F32 rows");
  run_soft_cap(context_, cap, x);
}

void CudaOps::gather_rows(TensorView x, const int32_t* rows, TensorView out) {
  check_.rows(x, out.shape[1]);
  check_.rows(out, out.shape[1]);
  run_gather_rows(context_, x, rows, out);
}

void CudaOps::write_columns(TensorView x, TensorView out, int64_t first_column) {
  check_.rows(x, x.shape[1]);
  check_.rows(out, out.shape[1]);
  QUIRE_CHECK(
      x.shape[0] == out.shape[0] && first_column >= 0 && first_column + x.shape[1] <= out.shape[1],
      "[ops] write_columns: x does not fit the columns of out");
  run_write_columns(context_, x, out, first_column);
}

bool CudaOps::try_layer_tail(const LayerTail& layer) {
  return products_->try_run(layer, collectives_ == nullptr || collectives_->are_enqueued());
}

bool CudaOps::try_router(const RouterCall& call) {
  const RouterMatrix matrix = {as_cuda(*call.router).weights(), as_cuda(*call.router).bias()};
  if ((call.norm && is_collective(*call.norm)) || !router_kernel_takes(context_, call, matrix)) {
    return false;
  }
  if (call.norm) check_norm(*call.norm, call.x);
  check_product(*call.router, call.x, call.logits);
  experts_->check_route(call.routing, call.logits, call.ids, call.weights);
  run_router_kernel(context_, call, matrix);
  return true;
}

Status CudaOps::tune_linears(std::span<const int> row_counts,
                             const std::function<Status()>& run_step) {
  QUIRE_CHECK(products_ == measured_.get(),
              "[ops] tune_linears() was called by the step that it records");
  ProductRecorder recorder(*measured_, ranks_ != nullptr);
  run_products_by(recorder);
  const Status ran = run_step();
  run_products_by(*measured_);
  QUIRE_RETURN_IF_ERROR(ran);
  return recorder.tune(row_counts, *this);
}

void CudaOps::run_products_by(ProductRunner& runner) {
  products_ = &runner;
  latents_->run_products_by(runner);
}

Agreement CudaOps::agreement() const {
  return agreement_of(ranks_.get(), rank_);
}

bool CudaOps::is_collective(const ResidualNorm& norm) const {
  return collectives_ != nullptr && norm.sums_ranks;
}

bool CudaOps::is_fusible(const ResidualNorm& norm) const {
  return norm.weight != nullptr && !is_collective(norm);
}

void CudaOps::embed_rows(const Linear& table, const int32_t* ids, float scale,
                         const TensorView& out) {
  const TensorView& weights = as_cuda(table).weights();
  const TensorView& scales = as_cuda(table).scales();
  check_.rows(out, weights.shape[1]);
  if (const PackedMatrices* packed = as_cuda(table).packed()) {
    for (const PackedRows& part : packed->parts()) {
      run_gather_packed_rows(context_, part, ids, packed->order(), scale, out);
    }
    return;
  }
  if (scale == 1.0F && scales.data == nullptr) {
    return run_gather_rows(context_, weights, ids, out);
  }
  run_gather_scaled_rows(context_, weights, scales, as_cuda(table).scale_rows(), ids, scale, out);
}

void CudaOps::check_product(const Linear& w, const TensorView& x, const TensorView& out) const {
  check_.rows(x, w.in_features());
  QUIRE_CHECK(
      (out.dtype == activation_ || out.dtype == DType::kF32) && out.shape.rank() == 2 &&
          out.shape[1] == w.out_features() && x.shape[0] == out.shape[0],
      "[ops] linear: out is neither F32 nor of the activations' type, or differs from x in rows");
}

PackedProduct CudaOps::packed_product_of(const Linear& w, const TensorView& x,
                                         const TensorView& out) const {
  check_product(w, x, out);
  return {.w = as_cuda(w).packed(), .x = x, .bias = as_cuda(w).bias(), .out = out};
}

GemmCall CudaOps::product_of(const Linear& w, const TensorView& x, const TensorView& out) const {
  check_product(w, x, out);
  const CudaLinear& linear = as_cuda(w);
  return {.x = x,
          .w = linear.weights(),
          .bias = linear.bias(),
          .out = out,
          .w_scales = linear.scales(),
          .scale_rows = linear.scale_rows()};
}

void CudaOps::check_norm(const ResidualNorm& norm, const TensorView& out) const {
  check_.same(norm.residual, out);
  if (norm.delta.data != nullptr) check_.same(norm.residual, norm.delta);
}

void CudaOps::check_gated(const TensorView& gate_up, const TensorView& out) const {
  check_.rows(out, out.shape[1]);
  check_.rows(gate_up, 2 * out.shape[1]);
  QUIRE_CHECK(gate_up.shape[0] == out.shape[0], "[ops] operands differ in rows");
}

StartingRank::StartingRank(CudaOps& ops) : ops_(ops), usual_(std::move(ops.collectives_)) {
  if (usual_ != nullptr) ops.collectives_ = std::make_unique<StartingCollectives>(*usual_);
}

StartingRank::~StartingRank() {
  ops_.collectives_ = std::move(usual_);
}

}  // namespace quire::cuda
