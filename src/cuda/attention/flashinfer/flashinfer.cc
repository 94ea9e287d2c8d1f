#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/attention/flashinfer/latent.h"
#include "cuda/attention/flashinfer/plan.h"
#include "cuda/attention/gather/gather.h"
#include "cuda/attention/requirements.h"
#include "cuda/base/memory.h"

namespace quire::cuda::flashinfer_backend {

const KernelInstance* find_kernel(const KernelKey& key) {
  for (const auto find : {fa2_BF16_BF16, fa2_F16_F16, fa2_BF16_F8E4M3, find_fa3}) {
    if (const KernelInstance* found = find(key)) return found;
  }
  return nullptr;
}

}  // namespace quire::cuda::flashinfer_backend

namespace quire::cuda {
namespace {

namespace fi = flashinfer_backend;

constexpr std::string_view kName = "flashinfer";

fi::KernelKey key_of(const AttentionShape& shape, const fi::PhaseShape& phase) {
  return {.kernel = phase.kernel,
          .q = shape.q,
          .kv = phase.kernel == fi::KernelKind::kFa3Gathered ? shape.q : shape.kv,
          .head_dim = shape.head_dim,
          .tile_rows = phase.tile_rows,
          .softcap = shape.softcap > 0.0F};
}

// Partial results of a split phase, at the start of the workspace.
struct Partials {
  size_t lse_bytes = 0;
  size_t num_bytes = 0;
};

Partials partials_of(const AttentionShape& shape, fi::DeviceLimits limits) {
  const auto num_rows = static_cast<size_t>(fi::max_partial_rows(shape, limits)) *
                        static_cast<size_t>(shape.num_heads);
  const size_t lse_bytes = round_up(num_rows * sizeof(float), 256);
  return {lse_bytes, lse_bytes + num_rows * static_cast<size_t>(shape.head_dim) * 2};
}

// FA3 over pages uses one set of strides for keys and values.
bool can_address(const KvCacheView& kv, fi::KernelKind kernel) {
  return fi::has_aligned_strides(kv) &&
         (kernel != fi::KernelKind::kFa3 ||
          (kv.page_stride_k == kv.page_stride_v && kv.token_stride_k == kv.token_stride_v));
}

fi::DeviceLimits limits_with_scratch(const AttentionShape& shape, const PlanLimits& largest,
                                     const DeviceInfo& device) {
  fi::DeviceLimits limits = fi::device_limits(shape, device);
  limits.scratch_tokens = fi::scratch_tokens(shape, largest, limits);
  return limits;
}

class FlashInferPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<AttentionPlan>> create(const AttentionShape& shape,
                                                       const PlanLimits& limits,
                                                       const DeviceInfo& info) {
    std::unique_ptr<FlashInferPlan> plan(new FlashInferPlan(shape, limits, info));
    QUIRE_RETURN_IF_ERROR(plan->allocate());
    return std::unique_ptr<AttentionPlan>(std::move(plan));
  }

  // A phase is split or gathered, never both.
  size_t workspace_bytes() const override {
    return std::max(partials_.num_bytes, scratch_bytes(shape_, device_limits_.scratch_tokens));
  }
  Status update(const AttentionBatch& batch, Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  FlashInferPlan(const AttentionShape& shape, const PlanLimits& limits, const DeviceInfo& info)
      : shape_(shape),
        limits_(limits),
        num_sms_(info.num_sms),
        device_limits_(limits_with_scratch(shape, limits, info)),
        partials_(partials_of(shape, device_limits_)) {}

  Status allocate();
  Status load_gathered() const;
  const PhaseRange& range() const { return batch_.range(limits_.use.phase); }
  fi::KernelCall kernel_call(const AttentionCall& call, const fi::RequestGroup& group) const;
  void attend_gathered(const AttentionCall& call, const fi::RequestGroup& group,
                       CudaStream& stream) const;
  fi::MergeCall merge_call(const AttentionCall& call) const;

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int num_sms_;
  const fi::DeviceLimits device_limits_;
  const Partials partials_;
  fi::Planner planner_;
  int64_t num_words_ = 0;
  Buffer device_;  // [num_words_]; never reallocated, because graphs hold the address
  PinnedRing ring_;

  // State of the last update.
  AttentionBatch batch_;
  fi::PhaseShape phase_;
  fi::PlanArrays arrays_;  // on the device
  const fi::KernelInstance* kernel_ = nullptr;
};

Status FlashInferPlan::allocate() {
  const int64_t pages = ceil_div(int64_t{limits_.max_kv_len}, shape_.page_size);
  QUIRE_RETURN_IF_ERROR(fi::check_positions(shape_, pages, limits_.max_num_reqs));
  QUIRE_RETURN_IF_ERROR(fi::check_queries(shape_, limits_.max_num_tokens));
  num_words_ = fi::plan_words(fi::max_tiles(shape_, limits_, device_limits_), limits_.max_num_reqs);
  const auto num_bytes = static_cast<size_t>(num_words_) * sizeof(int32_t);
  QUIRE_ASSIGN_OR_RETURN(device_, device_memory(num_bytes));
  QUIRE_ASSIGN_OR_RETURN(ring_, PinnedRing::create(num_bytes));
  planner_.reserve(shape_, limits_, device_limits_);
  return device_limits_.scratch_tokens > 0 ? load_gathered() : Status();
}

// Padding-only prompts, which load the other kernels at start, are not gathered.
Status FlashInferPlan::load_gathered() const {
  const fi::KernelInstance* kernel = fi::find_kernel(
      key_of(shape_, {.kernel = fi::KernelKind::kFa3Gathered, .tile_rows = fi::kFa3TileTokens}));
  QUIRE_CHECK(kernel != nullptr,
              "[flashinfer] there is no kernel for gathered contexts of this shape");
  QUIRE_CUDA_RETURN_IF_ERROR(kernel->load());
  return load_gather(shape_.kv, shape_.head_dim);
}

Status FlashInferPlan::update(const AttentionBatch& batch, Stream& stream) {
  const PhaseRange& range = batch.range(limits_.use.phase);
  const fi::PhaseShape phase = fi::choose_shape(shape_, batch, range, device_limits_);
  const int64_t num_words = fi::plan_words(phase.num_tiles, range.num_reqs);
  QUIRE_CHECK(num_words <= num_words_, "[flashinfer] a batch is larger than the plan was made for");
  QUIRE_CHECK(!limits_.use.in_graph || kernel_ == nullptr || phase == phase_,
              "[flashinfer] a graph's kernel depends on lengths");
  batch_ = batch;
  phase_ = phase;
  arrays_ =
      fi::place_arrays(static_cast<int32_t*>(device_.data()), phase.num_tiles, range.num_reqs);
  kernel_ = fi::find_kernel(key_of(shape_, phase));
  QUIRE_CHECK(kernel_ != nullptr, "[flashinfer] there is no kernel for a supported shape");
  QUIRE_ASSIGN_OR_RETURN(std::byte * slot, ring_.begin(as_cuda(stream)));
  planner_.fill(
      shape_, batch, range, phase, device_limits_,
      fi::place_arrays(reinterpret_cast<int32_t*>(slot), phase.num_tiles, range.num_reqs));
  as_cuda(stream).copy_to_device(device_.data(), slot,
                                 static_cast<size_t>(num_words) * sizeof(int32_t));
  ring_.end(as_cuda(stream));
  return {};
}

fi::KernelCall FlashInferPlan::kernel_call(const AttentionCall& call,
                                           const fi::RequestGroup& group) const {
  const KvCacheView& kv = call.kv;
  const PhaseRange& range = this->range();
  const int32_t* query_start = batch_.query_start.device + range.first_req;
  std::byte* partials = call.workspace.data();
  return {.q = call.q.data,
          .out = phase_.split ? partials + partials_.lse_bytes : call.out.data,
          .lse = phase_.split ? reinterpret_cast<float*>(partials) : nullptr,
          .k = kv.k,
          .v = kv.v,
          .k_strides = {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k},
          .v_strides = {kv.page_stride_v, kv.head_stride_v, kv.token_stride_v},
          .query_start = query_start,
          .seq_lens = batch_.seq_lens + range.first_req,
          .block_table = batch_.block_table + range.first_req * batch_.max_pages,
          .sinks = shape_.sinks ? call.sinks : nullptr,
          .k_scale = shape_.kv == DType::kF8E4M3 ? kv.k_scale : nullptr,
          .v_scale = shape_.kv == DType::kF8E4M3 ? kv.v_scale : nullptr,
          .num_tokens = batch_.decode.num_tokens + batch_.prefill.num_tokens,
          .num_reqs = range.num_reqs,
          .num_heads = shape_.num_heads,
          .num_kv_heads = shape_.num_kv_heads,
          .page_size = shape_.page_size,
          .window = shape_.window,
          .scale = shape_.scale,
          .softcap = shape_.softcap,
          .num_tiles = group.num_tiles,
          .num_sms = num_sms_,
          .tile_req = arrays_.tile_req + group.first_tile,
          .tile_rows = arrays_.tile_rows + group.first_tile,
          .tile_chunk = arrays_.tile_chunk,
          .page_start = arrays_.page_start,
          .scratch_start = arrays_.scratch_start,
          .scratch_tokens = device_limits_.scratch_tokens,
          .partial_start = phase_.split ? arrays_.partial_start : query_start,
          .chunk_tokens = arrays_.chunk_tokens,
          .tile_valid = phase_.split ? arrays_.tile_valid : nullptr,
          .split = phase_.split};
}

void FlashInferPlan::attend_gathered(const AttentionCall& call, const fi::RequestGroup& group,
                                     CudaStream& stream) const {
  const GatherCall gather = gather_call(shape_, call.kv, batch_, range(), group,
                                        {.memory = call.workspace.data(),
                                         .num_tokens = device_limits_.scratch_tokens,
                                         .starts = arrays_.scratch_start,
                                         .tile = fi::kFa3TilePositions,
                                         .by_head = true});
  launch_gather(gather, stream);
  fi::KernelCall attend = kernel_call(call, group);
  attend.k = gather.k;
  attend.v = gather.v;
  for (int64_t* strides : {attend.k_strides, attend.v_strides}) {
    strides[0] = 0;  // there are no pages
    strides[1] = gather.head_stride;
    strides[2] = gather.token_stride;
  }
  kernel_->launch(attend, stream);
}

fi::MergeCall FlashInferPlan::merge_call(const AttentionCall& call) const {
  const PhaseRange& range = this->range();
  return {.partials = call.workspace.data() + partials_.lse_bytes,
          .partial_lse = reinterpret_cast<const float*>(call.workspace.data()),
          .out = call.out.data,
          .query_start = batch_.query_start.device + range.first_req,
          .seq_lens = batch_.seq_lens + range.first_req,
          .partial_start = arrays_.partial_start,
          .chunk_tokens = arrays_.chunk_tokens,
          .first_token = range.first_token,
          .num_tokens = range.num_tokens,
          .num_reqs = range.num_reqs,
          .num_heads = shape_.num_heads,
          .head_dim = shape_.head_dim,
          .window = shape_.window,
          .tile_rows = phase_.tile_rows};
}

Status FlashInferPlan::run(const AttentionCall& call, Stream& stream) {
  QUIRE_CHECK(call.workspace.size() >= workspace_bytes(),
              "[flashinfer] the workspace is smaller than workspace_bytes()");
  QUIRE_CHECK(
      can_address(call.kv, phase_.kernel),
      "[flashinfer] strides of the cache are not multiples of 16 bytes below 2^32 elements");
  for (const fi::RequestGroup& group : planner_.groups()) {
    if (phase_.kernel == fi::KernelKind::kFa3Gathered) {
      attend_gathered(call, group, as_cuda(stream));
    } else {
      kernel_->launch(kernel_call(call, group), as_cuda(stream));
    }
  }
  if (phase_.split) fi::launch_merge(merge_call(call), shape_.q, as_cuda(stream));
  return {};
}

class FlashInferAttention final : public AttentionBackend {
 public:
  explicit FlashInferAttention(const DeviceInfo& info) : info_(info) {}

  std::string_view name() const override { return kName; }
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override;
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    if (shape.is_latent) return fi::make_latent_plan(shape, limits, info_);
    return FlashInferPlan::create(shape, limits, info_);
  }

 private:
  DeviceInfo info_;
};

Support FlashInferAttention::supports(const AttentionShape& shape, const AttentionUse& /*use*/,
                                      const Device& device) const {
  if (shape.is_latent) return fi::supports_latent(shape, device);
  const int capability = device.compute_capability;
  GpuRequirements needs(shape, device, capability / 10 == 8 || capability == 90,
                        "80 to 90 (Ampere, Ada or Hopper)");
  needs.require_causal(shape);
  needs.require_no_chunks(shape);
  needs.require_output_type(shape);
  needs.require(shape.scale > 0.0F, fmt::format("scale is {}; it must be positive.", shape.scale));
  needs.require(shape.q == DType::kBF16 || shape.q == DType::kF16,
                fmt::format("queries are {}; they must be BF16 or F16.", dtype_name(shape.q)));
  const bool fp8 = shape.kv == DType::kF8E4M3;
  needs.require(
      shape.kv == shape.q || (fp8 && shape.q == DType::kBF16),
      fmt::format("the cache is {}; it must be of the queries' type, {}, or, with BF16 queries, "
                  "FP8 (E4M3).",
                  dtype_name(shape.kv), dtype_name(shape.q)));
  needs.require(
      shape.head_dim == shape.head_dim_v &&
          (shape.head_dim == 64 || shape.head_dim == 128 || (shape.head_dim == 256 && !fp8)),
      fmt::format("head_dim is {} and head_dim_v is {}; they must be equal, and 64, 128 or, "
                  "without an FP8 cache, 256.",
                  shape.head_dim, shape.head_dim_v));
  return needs.support;
}

}  // namespace

std::unique_ptr<AttentionBackend> make_flashinfer_attention(const DeviceInfo& info) {
  return std::make_unique<FlashInferAttention>(info);
}

}  // namespace quire::cuda
