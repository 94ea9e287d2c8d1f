#include "cuda/attention/flashinfer/latent.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/flashinfer/expanded_kernel.h"
#include "cuda/attention/flashinfer/expanded_plan.h"
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
  Buffer device_;  // [array_bytes_]; never reallocated, because graphs hold the address
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
  planner_.reserve(shape_, limits_, num_sms_);
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
              "[flashinfer] the workspace is smaller than workspace_bytes()");
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

class LatentPrefillPlan final : public ExpandingPlan {
 public:
  LatentPrefillPlan(const AttentionShape& shape, const PlanLimits& limits, int num_sms,
                    int64_t max_bytes, bool is_forced)
      : shape_(shape),
        limits_(limits),
        num_sms_(num_sms),
        is_forced_(is_forced),
        dims_(expanded_dims(shape)),
        max_rows_(max_expanded_rows(shape, limits, max_bytes)),
        absorbed_(shape, limits, num_sms) {}

  Status allocate();

  size_t workspace_bytes() const override {
    BumpAllocator sizes;
    (void)place_scratch(sizes);
    return std::max(absorbed_.workspace_bytes(), sizes.num_bytes());
  }
  Status update(const AttentionBatch& batch, Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override {
    QUIRE_CHECK(!is_expanded_, "[flashinfer] run() was called for an expanded batch");
    return absorbed_.run(call, stream);
  }
  ExpandingPlan* expanding_plan() override { return is_expanded_ ? this : nullptr; }
  Status run_expanded(const ExpandedCall& call, Stream& stream) override;

 private:
  // The parts of the workspace, in elements of 16 bits and in floats.
  struct Scratch {
    uint16_t* latents = nullptr;   // [max_rows, latent_dim]
    uint16_t* keys = nullptr;      // [max_rows, num_heads, key_dim]
    uint16_t* values = nullptr;    // [max_rows, num_heads, value_dim]
    float* lse = nullptr;          // [max_num_tokens, num_heads]
    float* partial_lse = nullptr;  // like lse
  };
  Scratch place_scratch(BumpAllocator& memory) const;

  ExpandedBatch expanded_batch() const;
  LatentGather gather_call(const KvCacheView& kv, const Scratch& scratch) const;
  void expand(const ExpandedChunk& chunk, const ExpandedCall& call, const Scratch& scratch,
              Stream& stream) const;
  void merge(const ExpandedChunk& chunk, const ExpandedCall& call, const Scratch& scratch,
             bool has_sums, Stream& stream) const;
  // Parts of ExpandedCall::scratch with the shape of `out`: the results of a chunk, and merged
  // results in F32.
  static TensorView partial_of(const ExpandedCall& call) {
    return {call.scratch.data, call.out.dtype, call.out.shape};
  }
  static TensorView sums_of(const ExpandedCall& call) {
    return {call.scratch.as<std::byte>() + call.out.num_bytes(), DType::kF32, call.out.shape};
  }
  // The first of the phase's rows.
  void* phase_rows(const TensorView& view) const {
    return view.rows(batch_.prefill.first_token, batch_.prefill.num_tokens).data;
  }

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int num_sms_;
  const bool is_forced_;
  const ExpandedDims dims_;
  const int max_rows_;
  LatentPlan absorbed_;
  ExpandedPlanner planner_;
  int64_t num_words_ = 0;
  Buffer device_;  // [num_words_]
  PinnedRing ring_;

  // State of the last update.
  AttentionBatch batch_;
  ExpandedArrays arrays_;  // on the device
  bool is_expanded_ = false;
};

Status LatentPrefillPlan::allocate() {
  QUIRE_RETURN_IF_ERROR(absorbed_.allocate());
  num_words_ = expanded_words(max_expanded_tiles(limits_, max_rows_), limits_.max_num_reqs);
  const auto num_bytes = static_cast<size_t>(num_words_) * sizeof(int32_t);
  QUIRE_ASSIGN_OR_RETURN(device_, device_memory(num_bytes));
  QUIRE_ASSIGN_OR_RETURN(ring_, PinnedRing::create(num_bytes));
  planner_.reserve(limits_, max_rows_);
  // Padding-only prompts, which load the other kernels at start, may have no parts.
  QUIRE_CUDA_RETURN_IF_ERROR(load_expanded_merge(dims_));
  return {};
}

LatentPrefillPlan::Scratch LatentPrefillPlan::place_scratch(BumpAllocator& memory) const {
  const auto rows = static_cast<size_t>(max_rows_);
  const size_t heads = rows * static_cast<size_t>(shape_.num_heads);
  const size_t queries =
      static_cast<size_t>(limits_.max_num_tokens) * static_cast<size_t>(shape_.num_heads);
  Scratch scratch;
  scratch.latents = memory.allocate<uint16_t>(rows * kLatentDim);
  scratch.keys = memory.allocate<uint16_t>(heads * static_cast<size_t>(dims_.key));
  scratch.values = memory.allocate<uint16_t>(heads * static_cast<size_t>(dims_.value));
  scratch.lse = memory.allocate<float>(queries);
  scratch.partial_lse = memory.allocate<float>(queries);
  return scratch;
}

Status LatentPrefillPlan::update(const AttentionBatch& batch, Stream& stream) {
  const PhaseRange& range = batch.prefill;
  is_expanded_ = is_forced_ || expansion_pays(expansion_work(batch, range), dims_);
  if (!is_expanded_) return absorbed_.update(batch, stream);
  planner_.plan(batch, range, max_rows_);
  const int64_t num_words = expanded_words(planner_.num_tiles(), range.num_reqs);
  QUIRE_CHECK(num_words <= num_words_ && range.num_tokens <= limits_.max_num_tokens,
              "[flashinfer] a batch is larger than the plan was made for");
  batch_ = batch;
  arrays_ = place_expanded_arrays(static_cast<int32_t*>(device_.data()), planner_.num_tiles(),
                                  range.num_reqs);
  QUIRE_ASSIGN_OR_RETURN(std::byte * slot, ring_.begin(as_cuda(stream)));
  planner_.fill(place_expanded_arrays(reinterpret_cast<int32_t*>(slot), planner_.num_tiles(),
                                      range.num_reqs));
  as_cuda(stream).copy_to_device(device_.data(), slot,
                                 static_cast<size_t>(num_words) * sizeof(int32_t));
  ring_.end(as_cuda(stream));
  return {};
}

ExpandedBatch LatentPrefillPlan::expanded_batch() const {
  const PhaseRange& range = batch_.prefill;
  return {.query_start = batch_.query_start.device + range.first_req,
          .seq_lens = batch_.seq_lens + range.first_req,
          .block_table = batch_.block_table + range.first_req * batch_.max_pages,
          .max_pages = batch_.max_pages,
          .first_token = range.first_token,
          .num_tokens = range.num_tokens,
          .num_heads = shape_.num_heads,
          .dims = dims_,
          .arrays = arrays_};
}

LatentGather LatentPrefillPlan::gather_call(const KvCacheView& kv, const Scratch& scratch) const {
  return {.cache = kv.k,
          .page_stride = kv.page_stride_k,
          .token_stride = kv.token_stride_k,
          .cache_scale = kv.dtype == DType::kF8E4M3 ? kv.k_scale : nullptr,
          .page_size = shape_.page_size,
          .latents = scratch.latents,
          .keys = scratch.keys};
}

void LatentPrefillPlan::expand(const ExpandedChunk& chunk, const ExpandedCall& call,
                               const Scratch& scratch, Stream& stream) const {
  launch_latent_gather(expanded_batch(), chunk, gather_call(call.kv, scratch), call.kv.dtype,
                       as_cuda(stream));
  const int64_t rows = chunk.num_rows;
  call.expander->expand({scratch.latents, shape_.q, {rows, kLatentDim}},
                        {scratch.keys, shape_.q, {rows, shape_.num_heads, dims_.key}},
                        {scratch.values, shape_.q, {rows, shape_.num_heads, dims_.value}});
}

void LatentPrefillPlan::merge(const ExpandedChunk& chunk, const ExpandedCall& call,
                              const Scratch& scratch, bool has_sums, Stream& stream) const {
  const int32_t* query_start = batch_.query_start.host + batch_.prefill.first_req + chunk.first_req;
  launch_expanded_merge(expanded_batch(), chunk,
                        {.out = phase_rows(call.out),
                         .sums = static_cast<float*>(phase_rows(sums_of(call))),
                         .has_sums = has_sums,
                         .lse = scratch.lse,
                         .partial = phase_rows(partial_of(call)),
                         .partial_lse = scratch.partial_lse,
                         .first_token = query_start[0] - batch_.prefill.first_token,
                         .num_tokens = query_start[1] - query_start[0]},
                        as_cuda(stream));
}

Status LatentPrefillPlan::run_expanded(const ExpandedCall& call, Stream& stream) {
  QUIRE_CHECK(
      is_expanded_ && call.workspace.size() >= workspace_bytes(),
      "[flashinfer] the batch was not planned as expanded, or the workspace is smaller than "
      "workspace_bytes()");
  QUIRE_CHECK(
      has_aligned_strides(call.kv),
      "[flashinfer] strides of the cache are not multiples of 16 bytes below 2^32 elements");
  BumpAllocator memory(call.workspace.data());
  const Scratch scratch = place_scratch(memory);
  bool has_sums = false;
  for (const ExpandedChunk& chunk : planner_.chunks()) {
    if (chunk.num_tiles == 0) continue;  // requests without tokens
    expand(chunk, call, scratch, stream);
    launch_expanded_attention(expanded_batch(), chunk,
                              {.q = phase_rows(call.q),
                               .keys = scratch.keys,
                               .values = scratch.values,
                               .out = phase_rows(chunk.continues() ? partial_of(call) : call.out),
                               .lse = chunk.continues() ? scratch.partial_lse : scratch.lse,
                               .max_rows = max_rows_,
                               .num_sms = num_sms_,
                               .scale = shape_.scale},
                              as_cuda(stream));
    if (chunk.continues()) merge(chunk, call, scratch, has_sums, stream);
    has_sums = chunk.continues();
  }
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
  needs.require(shape.num_heads > 0 && shape.num_heads <= kMaxLatentHeads,
                fmt::format("num_heads is {}; with a latent cache it must be from 1 to {}.",
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
  if (limits.use.phase == Phase::kPrefill && has_expansion(shape)) {
    QUIRE_ASSIGN_OR_RETURN(
        std::unique_ptr<ExpandingPlan> plan,
        make_expanding_plan(shape, limits, info, kMaxExpandedBytes, /*is_forced=*/false));
    return std::unique_ptr<AttentionPlan>(std::move(plan));
  }
  auto plan = std::make_unique<LatentPlan>(shape, limits, info.num_sms);
  QUIRE_RETURN_IF_ERROR(plan->allocate());
  return std::unique_ptr<AttentionPlan>(std::move(plan));
}

bool has_expansion(const AttentionShape& shape) {
  return shape.q == DType::kBF16 && has_expanded_kernel(expanded_dims(shape));
}

Result<std::unique_ptr<ExpandingPlan>> make_expanding_plan(const AttentionShape& shape,
                                                           const PlanLimits& limits,
                                                           const DeviceInfo& info,
                                                           int64_t max_bytes, bool is_forced) {
  auto plan =
      std::make_unique<LatentPrefillPlan>(shape, limits, info.num_sms, max_bytes, is_forced);
  QUIRE_RETURN_IF_ERROR(plan->allocate());
  return std::unique_ptr<ExpandingPlan>(std::move(plan));
}

}  // namespace quire::cuda::flashinfer_backend
