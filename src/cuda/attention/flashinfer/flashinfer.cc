#include "cuda/attention/flashinfer/flashinfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "attn/validate.h"
#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/attention/flashinfer/merge.h"
#include "cuda/attention/flashinfer/plan.h"
#include "cuda/base/memory.h"
#include "cuda/base/pinned_ring.h"

namespace quire::cuda {
namespace {

namespace fi = flashinfer_backend;

constexpr std::string_view kName = "flashinfer";

fi::KernelKey key_of(const AttentionShape& shape, const fi::PhaseShape& phase) {
  return {.kernel = phase.kernel,
          .q = shape.q,
          .kv = shape.kv,
          .head_dim = shape.head_dim,
          .tile_rows = phase.tile_rows,
          .softcap = shape.softcap > 0.0F};
}

// Partial results of a split phase, at the arena's begin.
struct Partials {
  size_t lse_bytes = 0;
  size_t num_bytes = 0;
};

Partials partials_of(const AttentionShape& shape, fi::PlanLimits limits) {
  const auto num_rows = static_cast<size_t>(fi::max_partial_rows(shape, limits)) *
                        static_cast<size_t>(shape.num_heads);
  const size_t lse_bytes = (num_rows * sizeof(float) + 255) / 256 * 256;
  return {lse_bytes, lse_bytes + num_rows * static_cast<size_t>(shape.head_dim) * 2};
}

// A shape's plan: it outlives the step's layers, while the arena is any backend's scratch.
struct ShapePlan {
  AttentionShape shape;
  AttentionLimits limits = {};  // of the batches that it has room for
  int64_t words_per_phase = 0;
  Buffer device;  // [2, words_per_phase], decode first: fixed, because graphs hold the address
  PinnedRing ring;
  fi::PhaseShape decode, prefill;
};

// FlashInfer counts positions of the whole block table in 32 bits.
Status check_positions(const AttentionShape& shape, int64_t max_pages, int num_reqs) {
  const int64_t last_position = max_pages * shape.page_size * num_reqs;
  if (last_position <= std::numeric_limits<int32_t>::max()) return {};
  return unimplemented(
      fmt::format("[flashinfer] the block table's positions; got {}, expected what 31 bits hold",
                  last_position));
}

// FlashInfer indexes the elements of a step's queries with uint32_t.
Status check_queries(const AttentionShape& shape, int max_num_tokens) {
  const int64_t elements = int64_t{max_num_tokens} * shape.num_heads * shape.head_dim;
  if (elements <= std::numeric_limits<uint32_t>::max()) return {};
  return unimplemented(
      fmt::format("[flashinfer] elements of a step's queries ({} tokens × {} heads × head_dim {}); "
                  "got {}, expected at most {}: lower --max-num-batched-tokens",
                  max_num_tokens, shape.num_heads, shape.head_dim, elements,
                  std::numeric_limits<uint32_t>::max()));
}

class FlashInferAttention final : public AttentionBackend {
 public:
  explicit FlashInferAttention(const DeviceInfo& info) : info_(info) {}

  std::string_view name() const override { return kName; }
  Support supports(const AttentionShape& shape, Phase phase, const Device& device) const override;
  Status prepare(const AttentionShape& shape, const AttentionLimits& limits) override;
  size_t workspace_bytes(const AttentionShape& shape, const AttentionLimits& limits) const override;
  Status plan(const AttentionShape& shape, const AttentionBatch& batch, Workspace& workspace,
              Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  fi::PlanLimits limits_of(const AttentionShape& shape) const {
    return fi::plan_limits(shape, info_);
  }
  ShapePlan* find(const AttentionShape& shape);

  DeviceInfo info_;
  fi::Planner planner_;
  std::vector<std::unique_ptr<ShapePlan>> plans_;  // a model has a few
};

Support FlashInferAttention::supports(const AttentionShape& shape, Phase /*phase*/,
                                      const Device& device) const {
  Support support{shape_faults(shape)};
  const auto require = [&](bool ok, std::string reason) {
    if (!ok) support.reasons.push_back(std::move(reason));
  };
  const int generation = device.compute_capability / 10;
  require(device.kind == DeviceKind::kCuda && (generation == 8 || device.compute_capability == 90),
          fmt::format("the device's compute capability is {}; it must be 80 to 90 (Ampere, Ada or "
                      "Hopper).",
                      device.compute_capability));
  require(shape.causal, "causal is false; it must be true.");
  require(!shape.mla, "mla is true; it must be false.");
  require(shape.scale > 0.0F, fmt::format("scale is {}; it must be positive.", shape.scale));
  require(shape.q == DType::kBF16 || shape.q == DType::kF16,
          fmt::format("queries are {}; they must be BF16 or F16.", dtype_name(shape.q)));
  require(shape.out == shape.q, fmt::format("out is {}; it must be of the queries' type, {}.",
                                            dtype_name(shape.out), dtype_name(shape.q)));
  const bool fp8 = shape.kv == DType::kF8E4M3;
  require(
      shape.kv == shape.q || (fp8 && shape.q == DType::kBF16),
      fmt::format("the cache is {}; it must be of the queries' type, {}, or, with BF16 queries, "
                  "FP8 (E4M3).",
                  dtype_name(shape.kv), dtype_name(shape.q)));
  require(
      shape.head_dim == shape.head_dim_v &&
          (shape.head_dim == 64 || shape.head_dim == 128 || (shape.head_dim == 256 && !fp8)),
      fmt::format("head_dim is {} and head_dim_v {}; both must be 64, both 128 or, but not over "
                  "an FP8 cache, both 256.",
                  shape.head_dim, shape.head_dim_v));
  return support;
}

size_t FlashInferAttention::workspace_bytes(const AttentionShape& shape,
                                            const AttentionLimits& /*limits*/) const {
  return partials_of(shape, limits_of(shape)).num_bytes;
}

ShapePlan* FlashInferAttention::find(const AttentionShape& shape) {
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const auto& plan) { return plan->shape == shape; });
  return found == plans_.end() ? nullptr : found->get();
}

Status FlashInferAttention::prepare(const AttentionShape& shape, const AttentionLimits& limits) {
  const int64_t pages = (int64_t{limits.max_kv_len} + shape.page_size - 1) / shape.page_size;
  QUIRE_RETURN_IF_ERROR(check_positions(shape, pages, limits.max_num_reqs));
  QUIRE_RETURN_IF_ERROR(check_queries(shape, limits.max_num_tokens));
  ShapePlan* plan = find(shape);
  if (plan == nullptr) {
    plan = plans_.emplace_back(std::make_unique<ShapePlan>()).get();
    plan->shape = shape;
  }
  plan->limits.max_num_reqs = std::max(plan->limits.max_num_reqs, limits.max_num_reqs);
  plan->limits.max_num_tokens = std::max(plan->limits.max_num_tokens, limits.max_num_tokens);
  const int64_t words = fi::plan_words(fi::max_tiles(shape, plan->limits, limits_of(shape)),
                                       plan->limits.max_num_reqs);
  if (plan->words_per_phase >= words) return {};
  const auto num_bytes = static_cast<size_t>(words) * 2 * sizeof(int32_t);
  QUIRE_ASSIGN_OR_RETURN(plan->device, device_memory(num_bytes));
  QUIRE_ASSIGN_OR_RETURN(plan->ring, PinnedRing::create(num_bytes));
  plan->words_per_phase = words;
  return {};
}

Status FlashInferAttention::plan(const AttentionShape& shape, const AttentionBatch& batch,
                                 Workspace& /*workspace*/, Stream& stream) {
  QUIRE_RETURN_IF_ERROR(check_positions(shape, batch.max_pages,
                                        std::max(batch.decode.num_reqs, batch.prefill.num_reqs)));
  ShapePlan* plan = find(shape);
  const int num_reqs = batch.decode.num_reqs + batch.prefill.num_reqs;
  const int num_tokens = batch.decode.num_tokens + batch.prefill.num_tokens;
  if (plan == nullptr || num_reqs > plan->limits.max_num_reqs ||
      num_tokens > plan->limits.max_num_tokens) {
    return internal_error(
        fmt::format("[flashinfer] a batch is larger than what was prepared; got {} requests of {} "
                    "tokens, expected at most {} of {}",
                    num_reqs, num_tokens, plan == nullptr ? 0 : plan->limits.max_num_reqs,
                    plan == nullptr ? 0 : plan->limits.max_num_tokens));
  }
  QUIRE_ASSIGN_OR_RETURN(std::byte * slot, plan->ring.begin(as_cuda(stream)));
  const auto fill = [&](const PhaseRange& range, fi::PhaseShape& phase, int64_t first_word) {
    phase = fi::choose_shape(shape, batch, range, limits_of(shape));
    if (range.num_reqs == 0) return;
    int32_t* words = reinterpret_cast<int32_t*>(slot) + first_word;
    planner_.fill(shape, batch, range, phase, limits_of(shape),
                  fi::lay_out(words, phase.num_tiles, range.num_reqs));
    as_cuda(stream).copy_to_device(
        static_cast<int32_t*>(plan->device.data()) + first_word, words,
        static_cast<size_t>(fi::plan_words(phase.num_tiles, range.num_reqs)) * sizeof(int32_t));
  };
  fill(batch.decode, plan->decode, 0);
  fill(batch.prefill, plan->prefill, plan->words_per_phase);
  plan->ring.end(as_cuda(stream));
  return {};
}

// What the kernel is told, but for where its results go.
fi::KernelCall kernel_call(const AttentionCall& call, const PhaseRange& range,
                           const fi::PhaseShape& phase, const fi::PlanArrays& arrays,
                           int num_multiprocessors) {
  const AttentionShape& shape = *call.shape;
  const AttentionBatch& batch = *call.batch;
  const KvCacheView& kv = call.kv;
  return {.q = call.q.data,
          .out = call.out.data,
          .lse = call.lse,
          .k = kv.k,
          .v = kv.v,
          .k_strides = {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k},
          .v_strides = {kv.page_stride_v, kv.head_stride_v, kv.token_stride_v},
          .query_start = batch.query_start.device + range.first_req,
          .seq_lens = batch.seq_lens + range.first_req,
          .block_table = batch.block_table + range.first_req * batch.max_pages,
          .sinks = shape.sinks ? call.sinks : nullptr,
          .k_scale = kv.k_scale,
          .v_scale = kv.v_scale,
          .num_tokens = batch.decode.num_tokens + batch.prefill.num_tokens,
          .num_reqs = range.num_reqs,
          .num_heads = shape.num_heads,
          .num_kv_heads = shape.num_kv_heads,
          .page_size = shape.page_size,
          .window = shape.window,
          .scale = shape.scale,
          .softcap = shape.softcap,
          .num_tiles = phase.num_tiles,
          .num_multiprocessors = num_multiprocessors,
          .tile_req = arrays.tile_req,
          .tile_rows = arrays.tile_rows,
          .tile_chunk = arrays.tile_chunk,
          .page_start = arrays.page_start,
          .partial_start = batch.query_start.device + range.first_req,
          .chunk_tokens = arrays.chunk_tokens,
          .tile_valid = phase.split ? arrays.tile_valid : nullptr,
          .split = phase.split};
}

fi::MergeCall merge_call(const AttentionCall& call, const PhaseRange& range,
                         const fi::PhaseShape& phase, const fi::PlanArrays& arrays,
                         size_t lse_bytes) {
  return {.partials = call.workspace.arena.data() + lse_bytes,
          .partial_lse = reinterpret_cast<const float*>(call.workspace.arena.data()),
          .out = call.out.data,
          .lse = call.lse,
          .query_start = call.batch->query_start.device + range.first_req,
          .seq_lens = call.batch->seq_lens + range.first_req,
          .partial_start = arrays.partial_start,
          .chunk_tokens = arrays.chunk_tokens,
          .first_token = range.first_token,
          .num_tokens = range.num_tokens,
          .num_reqs = range.num_reqs,
          .num_heads = call.shape->num_heads,
          .head_dim = call.shape->head_dim,
          .window = call.shape->window,
          .tile_rows = phase.tile_rows};
}

// FlashInfer keeps strides in 32 bits and copies 16 bytes at a time; FA3 finds values as it does
// keys.
Status check_cache(const KvCacheView& kv, fi::Template kernel) {
  const auto align = static_cast<int64_t>(16 / dtype_bytes(kv.dtype));
  for (const int64_t stride : {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k,
                               kv.page_stride_v, kv.head_stride_v, kv.token_stride_v}) {
    if (stride < 0 || stride > std::numeric_limits<uint32_t>::max() || stride % align != 0) {
      return unimplemented(fmt::format(
          "[flashinfer] a stride of the cache; got {}, expected a multiple of {} that 32 bits hold",
          stride, align));
    }
  }
  if (kernel == fi::Template::kFa3 &&
      (kv.page_stride_k != kv.page_stride_v || kv.token_stride_k != kv.token_stride_v)) {
    return unimplemented(
        fmt::format("[flashinfer] strides of keys and values differ; got pages {} apart, expected "
                    "the keys' {}",
                    kv.page_stride_v, kv.page_stride_k));
  }
  return {};
}

Status FlashInferAttention::run(const AttentionCall& call, Stream& stream) {
  const AttentionShape& shape = *call.shape;
  const bool is_decode = call.phase == Phase::kDecode;
  const PhaseRange& range = is_decode ? call.batch->decode : call.batch->prefill;
  if (range.num_reqs == 0) return {};
  const ShapePlan* found = find(shape);
  if (found == nullptr) return internal_error("[flashinfer] a shape was run before its plan");
  if (shape.sinks && call.sinks == nullptr) {
    return internal_error("[flashinfer] sinks are missing");
  }
  const ShapePlan& plan = *found;
  const fi::PhaseShape& phase = is_decode ? plan.decode : plan.prefill;
  QUIRE_RETURN_IF_ERROR(check_cache(call.kv, phase.kernel));
  const fi::KernelInstance* kernel = fi::find_kernel(key_of(shape, phase));
  if (kernel == nullptr) {
    return internal_error("[flashinfer] a shape was run that is not supported");
  }
  const fi::PlanArrays arrays = fi::lay_out(
      static_cast<int32_t*>(plan.device.data()) + (is_decode ? 0 : plan.words_per_phase),
      phase.num_tiles, range.num_reqs);
  const Partials partials = partials_of(shape, limits_of(shape));
  if (phase.split && partials.num_bytes > call.workspace.arena.size()) {
    return internal_error(
        fmt::format("[flashinfer] the workspace is too small; got {} bytes, expected {}",
                    call.workspace.arena.size(), partials.num_bytes));
  }
  fi::KernelCall kernel_args = kernel_call(call, range, phase, arrays, info_.num_multiprocessors);
  const fi::MergeCall merge = merge_call(call, range, phase, arrays, partials.lse_bytes);
  if (phase.split) {
    kernel_args.out = call.workspace.arena.data() + partials.lse_bytes;
    kernel_args.lse = reinterpret_cast<float*>(call.workspace.arena.data());
    kernel_args.partial_start = arrays.partial_start;
  }
  kernel->launch(kernel_args, as_cuda(stream));
  if (phase.split) {
    fi::launch_merge(merge, shape.q, as_cuda(stream));
  } else if (call.lse != nullptr) {
    fi::launch_convert_lse(merge, as_cuda(stream));
  }
  return {};
}

}  // namespace

std::unique_ptr<AttentionBackend> make_flashinfer_attention(const DeviceInfo& info) {
  return std::make_unique<FlashInferAttention>(info);
}

}  // namespace quire::cuda
