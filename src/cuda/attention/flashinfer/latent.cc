#include "cuda/attention/flashinfer/latent.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/flashinfer/latent_kernel.h"
#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda/attention/flashinfer/plan.h"
#include "cuda/attention/requirements.h"
#include "cuda/base/memory.h"

namespace quire::cuda::flashinfer_backend {
namespace {

class LatentPlan final : public AttentionPlan {
 public:
  LatentPlan(const AttentionShape& shape, const PlanLimits& limits, int num_sms)
      : shape_(shape), limits_(limits), num_sms_(num_sms) {}

  Status allocate();

  size_t workspace_bytes() const override { return lse_bytes() + partial_out_bytes(); }
  Status update(const AttentionBatch& batch, Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  size_t lse_bytes() const {
    return round_up(static_cast<size_t>(max_latent_partial_rows(num_sms_)) * sizeof(float), 256);
  }
  size_t partial_out_bytes() const {
    return static_cast<size_t>(max_latent_partial_rows(num_sms_)) * kLatentDim *
           dtype_bytes(shape_.q);
  }

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int num_sms_;
  LatentPlanner planner_;
  size_t array_bytes_ = 0;
  Buffer device_;  // [array_bytes_]: fixed, because graphs hold the address
  PinnedRing ring_;

  // State of the last update.
  bool is_updated_ = false;
  AttentionBatch batch_;
  LatentGrid grid_;
};

Status LatentPlan::allocate() {
  const int64_t pages = ceil_div(int64_t{limits_.max_kv_len}, shape_.page_size);
  QUIRE_RETURN_IF_ERROR(check_positions(shape_, pages, limits_.max_num_reqs));
  QUIRE_RETURN_IF_ERROR(check_queries(shape_, limits_.max_num_tokens));
  array_bytes_ = latent_array_bytes(num_sms_, max_latent_works(shape_, limits_, num_sms_));
  QUIRE_ASSIGN_OR_RETURN(device_, device_memory(array_bytes_));
  QUIRE_ASSIGN_OR_RETURN(ring_, PinnedRing::create(array_bytes_));
  return {};
}

Status LatentPlan::update(const AttentionBatch& batch, Stream& stream) {
  const PhaseRange& range = batch.range(limits_.use.phase);
  const LatentGrid grid = choose_latent_grid(shape_, range, num_sms_);
  const int64_t max_works = planner_.measure(shape_, batch, range, grid);
  QUIRE_CHECK(latent_array_bytes(num_sms_, max_works) <= array_bytes_,
              "[flashinfer] a batch is larger than the plan was made for");
  QUIRE_CHECK(!limits_.use.in_graph || !is_updated_ || grid == grid_,
              "[flashinfer] a graph's kernel depends on lengths");
  is_updated_ = true;
  batch_ = batch;
  grid_ = grid;
  QUIRE_ASSIGN_OR_RETURN(std::byte * slot, ring_.begin(as_cuda(stream)));
  const int64_t num_works = planner_.fill(num_sms_, place_latent_arrays(slot, num_sms_));
  as_cuda(stream).copy_to_device(device_.data(), slot, latent_array_bytes(num_sms_, num_works));
  ring_.end(as_cuda(stream));
  return {};
}

Status LatentPlan::run(const AttentionCall& call, Stream& stream) {
  const KvCacheView& kv = call.kv;
  const PhaseRange& range = batch_.range(limits_.use.phase);
  QUIRE_CHECK(call.workspace.size() >= workspace_bytes(),
              "[flashinfer] the workspace is smaller than what the plan asked for");
  QUIRE_CHECK(
      has_aligned_strides(kv),
      "[flashinfer] strides of the cache are not multiples of 16 bytes below 2^32 elements");
  std::byte* const partials = call.workspace.data();
  launch_latent({.q = call.q.data,
                 .out = call.out.data,
                 .partial_out = partials + lse_bytes(),
                 .partial_lse = reinterpret_cast<float*>(partials),
                 .cache = kv.k,
                 .page_stride = static_cast<uint32_t>(kv.page_stride_k),
                 .token_stride = static_cast<uint32_t>(kv.token_stride_k),
                 .cache_scale = kv.dtype == DType::kF8E4M3 ? kv.k_scale : nullptr,
                 .query_start = batch_.query_start.device + range.first_req,
                 .seq_lens = batch_.seq_lens + range.first_req,
                 .block_table = batch_.block_table + range.first_req * batch_.max_pages,
                 .max_pages = static_cast<int>(batch_.max_pages),
                 .num_heads = shape_.num_heads,
                 .page_size = shape_.page_size,
                 .page_shift = std::countr_zero(static_cast<unsigned>(shape_.page_size)),
                 .scale = shape_.scale,
                 .grid = grid_,
                 .arrays = place_latent_arrays(device_.data(), num_sms_)},
                shape_.q, kv.dtype, as_cuda(stream));
  return {};
}

}  // namespace

Support supports_latent(const AttentionShape& shape, const Device& device) {
  GpuRequirements needs(shape, device, device.compute_capability == 90, "90 (Hopper)");
  needs.require_causal(shape);
  needs.require_output_type(shape);
  needs.require(shape.scale > 0.0F, fmt::format("scale is {}; it must be positive.", shape.scale));
  needs.require(has_latent_kernel(shape.q, shape.kv),
                fmt::format("queries are {} and the latent cache is {}; both must be BF16, or F16, "
                            "or BF16 and FP8 (E4M3).",
                            dtype_name(shape.q), dtype_name(shape.kv)));
  needs.require(
      shape.head_dim == kLatentDim + kLatentRopeDim && shape.head_dim_v == kLatentDim,
      fmt::format("head_dim is {} and head_dim_v is {}; of a latent cache they must be {} and {}.",
                  shape.head_dim, shape.head_dim_v, kLatentDim + kLatentRopeDim, kLatentDim));
  needs.require(
      shape.num_kv_heads == 1,
      fmt::format("num_kv_heads is {}; of a latent cache it must be 1.", shape.num_kv_heads));
  needs.require(
      shape.num_heads > 0 && shape.num_heads <= kMaxLatentHeads &&
          std::has_single_bit(static_cast<unsigned>(shape.num_heads)),
      fmt::format("num_heads is {}; with a latent cache it must be a power of two up to {}.",
                  shape.num_heads, kMaxLatentHeads));
  needs.require(shape.window == 0,
                fmt::format("window is {}; with a latent cache it must be 0 (off).", shape.window));
  needs.require(
      shape.softcap == 0.0F,
      fmt::format("softcap is {}; with a latent cache it must be 0 (off).", shape.softcap));
  needs.require(!shape.sinks, "sinks is true; with a latent cache it must be false.");
  return needs.support;
}

Result<std::unique_ptr<AttentionPlan>> make_latent_plan(const AttentionShape& shape,
                                                        const PlanLimits& limits,
                                                        const DeviceInfo& info) {
  auto plan = std::make_unique<LatentPlan>(shape, limits, info.num_sms);
  QUIRE_RETURN_IF_ERROR(plan->allocate());
  return std::unique_ptr<AttentionPlan>(std::move(plan));
}

}  // namespace quire::cuda::flashinfer_backend
