#include "cuda/ops/cuda_collectives.h"

#include "base/check.h"
#include "base/numbers.h"

namespace quire::cuda {

SumMethod CudaCollectives::sum_method(const TensorView& x) const {
  return peer_sums_ == nullptr ? SumMethod::kNccl : peer_sums_->method(x);
}

void CudaCollectives::all_reduce(TensorView x) {
  if (!are_enqueued()) return;
  const SumMethod method = sum_method(x);
  if (method != SumMethod::kNccl) {
    return run_sum_rows(context_, peer_sums_->inboxes(rank_), method, x);
  }
  ranks_->all_reduce(rank_, x, *context_.stream);
}

void CudaCollectives::sum_and_norm(const ResidualNorm& norm, const TensorView& out) {
  // The kernels that sum and normalize have a weight, and no scale.
  const bool is_fused = are_enqueued() && norm.weight != nullptr && norm.scale == nullptr;
  const SumMethod method = is_fused ? sum_method(norm.delta) : SumMethod::kNccl;
  if (method != SumMethod::kNccl) {
    return run_sum_rows_and_norm(context_, peer_sums_->inboxes(rank_), method, norm, out);
  }
  all_reduce(norm.delta);
  run_rms_norm(context_, norm, out);
}

// NCCL concatenates whole parts of the ranks; run_join_columns() then joins their columns.
void CudaCollectives::all_gather_columns(TensorView part, TensorView whole, TensorView scratch) {
  const int64_t part_width = ceil_div(whole.shape[1], ranks_->size());
  const int64_t part_size = part_width * whole.shape[0];
  QUIRE_CHECK(part.dtype == DType::kF32 && whole.dtype == DType::kF32 &&
                  scratch.dtype == DType::kF32 &&
                  scratch.shape.num_elements() >= part_size * ranks_->size(),
              "[ops] all_gather_columns: the scratch memory is too small, or not F32");
  auto* const gathered = scratch.as<float>();
  if (are_enqueued()) {
    ranks_->all_gather(rank_, part.data, static_cast<size_t>(part_size) * sizeof(float), gathered,
                       *context_.stream);
  }
  run_join_columns(context_, gathered, part_size, part_width, whole);
}

void CudaCollectives::all_gather_parts(std::span<std::byte> parts) {
  QUIRE_CHECK(parts.size() % static_cast<size_t>(ranks_->size()) == 0,
              "[ops] all_gather_parts: the parts differ in size");
  if (!are_enqueued()) return;
  const size_t part_bytes = parts.size() / static_cast<size_t>(ranks_->size());
  ranks_->all_gather(rank_, parts.data() + static_cast<size_t>(rank_) * part_bytes, part_bytes,
                     parts.data(), *context_.stream);
}

}  // namespace quire::cuda
