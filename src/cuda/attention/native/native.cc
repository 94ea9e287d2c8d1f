#include <fmt/format.h>

#include <bit>

#include "attn/backend.h"
#include "base/check.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/native/kernels.h"
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
void place_partials(std::span<std::byte> workspace, Params& p) {
  const int64_t num_rows = int64_t{p.num_tokens} * p.num_heads * p.num_partials;
  p.partial_out = reinterpret_cast<float*>(workspace.data());
  p.partial_max = p.partial_out + num_rows * p.head_dim_v;
  p.partial_sum = p.partial_max + num_rows;
}

void enqueue(const Params& params, const KernelChoice& choice, DType kv, CudaStream& stream) {
  if (choice.kind == KernelKind::kGeneric) return native::launch_generic(stream, params, kv);
  if (choice.kind == KernelKind::kRows8) {
    return native::launch_rows8(stream, params, kv, choice.padded_dim);
  }
  const auto launch =
      choice.kind == KernelKind::kRows16 ? native::launch_rows16 : native::launch_tile;
  launch(stream, params, kv, choice.padded_dim);
  if (params.num_splits > 1) native::launch_merge(stream, params);
}

class NativePlan final : public AttentionPlan {
 public:
  NativePlan(const AttentionShape& shape, const PlanLimits& limits, const GpuTraits& gpu,
             Buffer counters)
      : shape_(shape),
        phase_(limits.use.phase),
        gpu_(gpu),
        workspace_bytes_(native::max_partial_bytes(shape, limits, gpu)),
        counters_(std::move(counters)) {}

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
    QUIRE_CHECK(native::partial_bytes(shape_, range.num_tokens, aligned_choice_.num_partials()) <=
                    workspace_bytes_,
                "[native] a batch is larger than the plan was made for");
    return {};
  }

  Status run(const AttentionCall& call, Stream& stream) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes_,
                "[native] the workspace is smaller than workspace_bytes()");
    const KernelChoice choice = native::is_aligned(shape_, call) ? aligned_choice_ : KernelChoice();
    Params params = make_params(shape_, batch_, batch_.range(phase_), call);
    params.num_splits = choice.num_splits;
    params.cluster = choice.cluster;
    params.num_partials = choice.num_partials();
    params.counters = static_cast<uint32_t*>(counters_.data());
    place_partials(call.workspace, params);
    enqueue(params, choice, call.kv.dtype, as_cuda(stream));
    return {};
  }

 private:
  const AttentionShape shape_;
  const Phase phase_;
  const GpuTraits gpu_;
  const size_t workspace_bytes_;
  Buffer counters_;                 // Params::counters
  bool counters_are_zero_ = false;  // the first update zeroes them
  AttentionBatch batch_;            // of the last update
  KernelChoice aligned_choice_;     // the choice for batch_ if the call's memory is aligned
};

class NativeAttention final : public AttentionBackend {
 public:
  explicit NativeAttention(const DeviceInfo& device) : device_(device) {}

  std::string_view name() const override { return "native"; }

  Support supports(const AttentionShape& shape, const AttentionUse& /*use*/,
                   const Device& device) const override {
    GpuRequirements needs(shape, device, device.compute_capability >= kMinComputeCapability,
                          fmt::format("{} or later", kMinComputeCapability));
    needs.require_head_dims(shape, shape.is_latent ? native::kMaxLatentDim : native::kMaxDim);
    needs.require(shape.q == DType::kF32 || shape.q == DType::kF16 || shape.q == DType::kBF16,
                  fmt::format("q is {}; it must be f32, f16 or bf16.", dtype_name(shape.q)));
    needs.require_output_type(shape);
    needs.require_float_cache(shape);
    if (shape.head_dim > native::kMaxDim) {
      needs.support.reasons_to_prefer_others.push_back(
          fmt::format("head_dim is {}; above {}, the kernel does not use tensor cores.",
                      shape.head_dim, native::kMaxDim));
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
        .has_clusters = device_.device.compute_capability >= kClusterComputeCapability};
    return std::unique_ptr<AttentionPlan>(
        std::make_unique<NativePlan>(shape, limits, gpu, std::move(counters)));
  }

 private:
  DeviceInfo device_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_native_attention(const DeviceInfo& device) {
  return std::make_unique<NativeAttention>(device);
}

}  // namespace quire::cuda
