#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "attn/backend.h"
#include "base/check.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/work.h"
#include "cuda/attention/requirements.h"
#include "cuda/base/memory.h"

namespace quire::cuda {
namespace {

using native::GpuTraits;
using native::KernelChoice;
using native::KernelKind;
using native::Params;

constexpr int kMinComputeCapability = 80;
constexpr int kClusterComputeCapability = 90;
constexpr int kWgmmaComputeCapability = 90;  // later GPUs do not have wgmma

// The size of Params::counters.
size_t counter_bytes(const AttentionShape& shape, int num_reqs) {
  return static_cast<size_t>(num_reqs) * static_cast<size_t>(shape.num_kv_heads) *
         size_t{native::kMaxCluster} * sizeof(uint32_t);
}

Params make_params(const AttentionShape& shape, const AttentionBatch& batch,
                   const PhaseRange& range, const AttentionCall& call) {
  const bool fp8 = call.kv.dtype == DType::kF8E4M3;
  return {.q = call.q.data,
          .out = call.out.data,
          .sinks = shape.sinks ? call.sinks : nullptr,
          .k = call.kv.k,
          .v = call.kv.v,
          .k_scale = fp8 ? call.kv.k_scale : nullptr,
          .v_scale = fp8 ? call.kv.v_scale : nullptr,
          .page_stride_k = call.kv.page_stride_k,
          .head_stride_k = call.kv.head_stride_k,
          .token_stride_k = call.kv.token_stride_k,
          .page_stride_v = call.kv.page_stride_v,
          .head_stride_v = call.kv.head_stride_v,
          .token_stride_v = call.kv.token_stride_v,
          .query_start = batch.query_start.device,
          .seq_lens = batch.seq_lens,
          .settled_lens = batch.settled_lens,
          .block_table = batch.block_table,
          .max_pages = batch.max_pages,
          .q_dtype = shape.q,
          .first_req = range.first_req,
          .num_reqs = range.num_reqs,
          .first_token = range.first_token,
          .num_tokens = range.num_tokens,
          .num_heads = shape.num_heads,
          .group = shape.num_heads / shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .head_dim_v = shape.head_dim_v,
          .page_shift = std::countr_zero(static_cast<unsigned>(shape.page_size)),
          .window = shape.window,
          .chunked = shape.chunked,
          .causal = shape.causal,
          .scale = shape.scale,
          .softcap = shape.softcap};
}

// Places the splits' partial results in the workspace: rows first, so that they are aligned, then
// maxima and sums.
void place_partials(std::span<std::byte> workspace, int64_t num_rows, Params& p) {
  p.partial_out = reinterpret_cast<float*>(workspace.data());
  p.partial_max = p.partial_out + num_rows * p.head_dim_v;
  p.partial_sum = p.partial_max + num_rows;
}

Status enqueue(const Params& params, const KernelChoice& choice, DType kv, CudaStream& stream) {
  bool has_partials = params.num_splits > 1;
  switch (choice.kind) {
    case KernelKind::kRows8:
      native::launch_rows8(stream, params, kv, choice.padded_dim);
      has_partials = false;
      break;
    case KernelKind::kRows64:
      native::launch_rows64(stream, params);
      has_partials = false;
      break;
    case KernelKind::kRows16:
      native::launch_rows16(stream, params, kv, choice.padded_dim);
      break;
    case KernelKind::kTile:
      native::launch_tile(stream, params, kv, choice.padded_dim);
      break;
    case KernelKind::kWide:
      QUIRE_RETURN_IF_ERROR(native::launch_wide(stream, params, kv));
      break;
    case KernelKind::kGeneric:
      native::launch_generic(stream, params, kv);
      break;
  }
  if (has_partials) native::launch_merge(stream, params);
  return {};
}

// The plan of the work of a ragged batch's clusters, in device memory.
class SharedWork {
 public:
  static Result<SharedWork> create(int max_num_reqs, int max_num_clusters) {
    SharedWork work;
    if (max_num_clusters == 0) return work;
    work.reqs_at_ = static_cast<size_t>(max_num_clusters) * sizeof(native::ClusterWork);
    const size_t num_bytes = work.reqs_at_ + static_cast<size_t>(max_num_reqs) * sizeof(int32_t);
    QUIRE_ASSIGN_OR_RETURN(work.device_, device_memory(num_bytes));
    QUIRE_ASSIGN_OR_RETURN(work.ring_, PinnedRing::create(num_bytes));
    work.planner_.reserve(max_num_reqs, max_num_clusters);
    work.lens_.reserve(static_cast<size_t>(max_num_reqs));
    return work;
  }

  // An even batch needs no plan, unless it is in a graph.
  Status update(const AttentionShape& shape, const AttentionBatch& batch, const PhaseRange& range,
                const native::WorkLimits& limits, bool in_graph, CudaStream& stream) {
    lens_.clear();
    for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
      const int32_t len = batch.kv_len_bound[static_cast<size_t>(req)];
      lens_.push_back(shape.window > 0 ? std::min(len, shape.window + range.max_q_len) : len);
    }
    const bool changes = planner_.plan(lens_, limits);
    if (!changes || (is_even() && !in_graph)) return {};
    const auto clusters = std::as_bytes(planner_.clusters());
    QUIRE_CHECK(clusters.size() <= reqs_at_,
                "[native] a batch has more clusters than the plan was made for");
    const auto more_reqs = std::as_bytes(planner_.more_reqs());
    const Result<std::byte*> slot = ring_.begin(stream);
    if (!slot.ok()) {
      planner_.forget();
      return slot.status();
    }
    std::ranges::copy(clusters, *slot);
    std::ranges::copy(more_reqs, *slot + reqs_at_);
    stream.copy_to_device(device_.data(), *slot, reqs_at_ + more_reqs.size());
    ring_.end(stream);
    return {};
  }

  bool is_even() const { return planner_.is_even(); }
  const native::ClusterWork* clusters() const {
    return static_cast<const native::ClusterWork*>(device_.data());
  }
  const int32_t* more_reqs() const {
    return reinterpret_cast<const int32_t*>(static_cast<const std::byte*>(device_.data()) +
                                            reqs_at_);
  }

 private:
  native::WorkPlanner planner_;
  std::vector<int32_t> lens_;  // visible positions per request
  Buffer device_;              // never reallocated, because graphs hold the address
  size_t reqs_at_ = 0;
  PinnedRing ring_;
};

class NativePlan final : public AttentionPlan {
 public:
  NativePlan(const AttentionShape& shape, const PlanLimits& limits, const GpuTraits& gpu,
             Buffer counters, SharedWork work)
      : shape_(shape),
        phase_(limits.use.phase),
        in_graph_(limits.use.in_graph),
        gpu_(gpu),
        workspace_bytes_(native::max_partial_bytes(shape, limits, gpu)),
        counters_(std::move(counters)),
        work_(std::move(work)) {}

  size_t workspace_bytes() const override { return workspace_bytes_; }

  Status update(const AttentionBatch& batch, Stream& stream) override {
    const PhaseRange& range = batch.range(phase_);
    if (phase_ == Phase::kDecode && !counters_are_zero_) {
      as_cuda(stream).set_zero(counters_.data(), counters_.num_bytes());
      counters_are_zero_ = true;
    }
    QUIRE_CHECK(
        phase_ != Phase::kDecode || counter_bytes(shape_, range.num_reqs) <= counters_.num_bytes(),
        "[native] a batch has more requests than the plan was made for");
    batch_ = batch;
    aligned_choice_ = native::choose_kernel(shape_, phase_, range, true, gpu_);
    QUIRE_CHECK(native::partial_bytes(shape_, range.max_q_len, aligned_choice_.num_partials) <=
                    workspace_bytes_,
                "[native] a batch is larger than the plan was made for");
    if (!aligned_choice_.shares_work) return {};
    return work_.update(shape_, batch, range,
                        native::work_limits(shape_, aligned_choice_, range.num_reqs, gpu_),
                        in_graph_, as_cuda(stream));
  }

  Status run(const AttentionCall& call, Stream& stream) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes_,
                "[native] the workspace is smaller than workspace_bytes()");
    const KernelChoice choice = native::is_aligned(shape_, call) ? aligned_choice_ : KernelChoice();
    const PhaseRange& range = batch_.range(phase_);
    Params params = make_params(shape_, batch_, range, call);
    params.num_splits = choice.num_splits;
    params.cluster = choice.cluster;
    params.cluster_shift = choice.cluster_shift();
    params.num_parts = choice.num_parts();
    params.max_rows = range.max_q_len * params.group;
    if (choice.shares_work && (in_graph_ || !work_.is_even())) {
      params.work = work_.clusters();
      params.more_reqs = work_.more_reqs();
    }
    params.counters = static_cast<uint32_t*>(counters_.data());
    place_partials(call.workspace, choice.num_partials * range.max_q_len * shape_.num_heads,
                   params);
    return enqueue(params, choice, call.kv.dtype, as_cuda(stream));
  }

 private:
  const AttentionShape shape_;
  const Phase phase_;
  const bool in_graph_;
  const GpuTraits gpu_;
  const size_t workspace_bytes_;
  Buffer counters_;                 // Params::counters
  bool counters_are_zero_ = false;  // the first update zeroes them
  SharedWork work_;
  AttentionBatch batch_;         // of the last update
  KernelChoice aligned_choice_;  // the choice for batch_ if the call's memory is aligned
};

class NativeAttention final : public AttentionBackend {
 public:
  explicit NativeAttention(const DeviceInfo& device) : device_(device) {}

  std::string_view name() const override { return "native"; }

  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override {
    GpuRequirements needs(shape, device, device.compute_capability >= kMinComputeCapability,
                          fmt::format("{} or later", kMinComputeCapability));
    needs.require_head_dims(shape, native::kMaxDim);
    needs.require(shape.q == DType::kF32 || shape.q == DType::kF16 || shape.q == DType::kBF16,
                  fmt::format("q is {}; it must be f32, f16 or bf16.", dtype_name(shape.q)));
    needs.require_output_type(shape);
    needs.require_float_cache(shape);
    if (!needs.support.ok()) return needs.support;
    const bool has_few_rows = use.phase == Phase::kDecode && native::has_few_rows(shape, use.q_len);
    const bool has_wgmma = device.compute_capability == kWgmmaComputeCapability;
    const int widest = std::max(shape.head_dim, shape.head_dim_v);
    const int limit = has_few_rows || has_wgmma ? native::kMaxWideDim : native::kMaxTileDim;
    if (widest > limit) {
      needs.support.reasons_to_prefer_others.push_back(fmt::format(
          "the largest head dimension is {}; above {}, the kernel{} does not use tensor cores.",
          widest, limit,
          limit == native::kMaxWideDim ? "" : " of more than 8 query rows per KV head"));
    }
    return needs.support;
  }

  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    Buffer counters;
    if (limits.use.phase == Phase::kDecode) {
      QUIRE_ASSIGN_OR_RETURN(counters, device_memory(counter_bytes(shape, limits.max_num_reqs)));
    }
    const GpuTraits gpu = {
        .num_sms = device_.num_sms,
        .has_clusters = device_.device.compute_capability >= kClusterComputeCapability,
        .has_wgmma = device_.device.compute_capability == kWgmmaComputeCapability};
    QUIRE_ASSIGN_OR_RETURN(
        SharedWork work,
        SharedWork::create(limits.max_num_reqs, native::max_shared_clusters(shape, limits, gpu)));
    return std::unique_ptr<AttentionPlan>(
        std::make_unique<NativePlan>(shape, limits, gpu, std::move(counters), std::move(work)));
  }

 private:
  DeviceInfo device_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_native_attention(const DeviceInfo& device) {
  return std::make_unique<NativeAttention>(device);
}

}  // namespace quire::cuda
