#include "cuda/attention/xqa/xqa.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/validate.h"
#include "cuda/attention/xqa/kernel.h"
#include "cuda/attention/xqa/neutral.h"

namespace quire::cuda {
namespace {

constexpr std::string_view kName = "xqa";
constexpr int kComputeCapability = 90;
xqa::KernelKey key_of(const AttentionShape& shape) {
  return {.q = shape.q,
          .kv = shape.kv,
          .head_dim = shape.head_dim,
          .group_size = shape.num_heads / std::max(1, shape.num_kv_heads),
          .page_size = shape.page_size};
}

// From what a graph's key holds: a decode batch's size, and the longest context it may have.
// Measured on an H200. Hopper's kernel wants two blocks of threads a multiprocessor, the other one.
// Whoever merges reads every split, so a context of n tiles is best split about 2 sqrt(n) ways.
int num_splits(const AttentionShape& shape, int num_reqs, int max_kv_len, int num_multiprocessors) {
  const bool is_hopper = xqa::is_hopper_kernel(key_of(shape));
  const int64_t num_rows = std::max<int64_t>(1, int64_t{num_reqs} * shape.num_kv_heads);
  const int64_t num_blocks = int64_t{num_multiprocessors} * (is_hopper ? 2 : 1);
  const int tile = is_hopper ? xqa::kHopperTileTokens : xqa::kTileTokens;
  const int num_tiles = std::max(1, (max_kv_len + tile - 1) / tile);
  const int most =
      is_hopper ? std::min(num_tiles, static_cast<int>(2 * std::sqrt(num_tiles))) : num_tiles;
  return static_cast<int>(std::clamp<int64_t>(num_blocks / num_rows, 1, most));
}

size_t call_scratch_bytes(const AttentionShape& shape, int num_reqs, int splits) {
  if (splits == 1) return 0;
  return xqa::scratch_bytes(key_of(shape), static_cast<size_t>(num_reqs) *
                                               static_cast<size_t>(shape.num_kv_heads) *
                                               static_cast<size_t>(splits));
}

size_t counter_bytes(const AttentionShape& shape, int num_reqs) {
  return static_cast<size_t>(num_reqs) * static_cast<size_t>(shape.num_kv_heads) * sizeof(uint32_t);
}

Status refuse(std::string_view what, int64_t got, std::string_view expected) {
  return unimplemented(fmt::format("[xqa] {}; got {}, expected {}", what, got, expected));
}

// K and V are addressed alike, in 32 bits, in units of head_dim elements.
Status check_cache(const AttentionShape& shape, const KvCacheView& kv) {
  const bool same = kv.page_stride_k == kv.page_stride_v && kv.head_stride_k == kv.head_stride_v &&
                    kv.token_stride_k == kv.token_stride_v;
  if (!same) return refuse("strides of keys and values differ", kv.page_stride_v, "the keys'");
  for (const int64_t stride : {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k}) {
    if (stride % shape.head_dim != 0 ||
        stride / shape.head_dim > std::numeric_limits<uint32_t>::max()) {
      return refuse("a stride of the cache", stride, "a multiple of head_dim that 32 bits hold");
    }
  }
  return {};
}

// Each is a block of threads along an axis of 16 bits, and a counter.
Status check_num_reqs(const AttentionShape& shape, int num_reqs) {
  const int64_t blocks = int64_t{num_reqs} * shape.num_kv_heads;
  if (blocks <= 65535) return {};
  return refuse("requests times KV heads", blocks, "up to 65535");
}

Status check_range(const AttentionShape& shape, const PhaseRange& range) {
  if (range.max_q_len != 1) return refuse("query tokens a request", range.max_q_len, "1");
  return check_num_reqs(shape, range.num_reqs);
}

class XqaAttention final : public AttentionBackend {
 public:
  explicit XqaAttention(const DeviceInfo& info) : num_multiprocessors_(info.num_multiprocessors) {}

  std::string_view name() const override { return kName; }
  Support supports(const AttentionShape& shape, Phase phase, const Device& device) const override;
  int max_decode_q_len() const override { return 1; }
  Status prepare(const AttentionShape& shape, const AttentionLimits& limits) override {
    return check_num_reqs(shape, limits.max_num_reqs);
  }
  size_t workspace_bytes(const AttentionShape& shape, const AttentionLimits& limits) const override;
  Status plan(const AttentionShape& shape, const AttentionBatch& batch, Workspace& workspace,
              Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  xqa::KernelCall kernel_call(const AttentionCall& call) const;

  int num_multiprocessors_ = 0;
  xqa::Neutral neutral_;
};

Support XqaAttention::supports(const AttentionShape& shape, Phase phase,
                               const Device& device) const {
  Support support{shape_faults(shape)};
  const bool sound = support.ok();
  const auto require = [&](bool ok, std::string reason) {
    if (!ok) support.reasons.push_back(std::move(reason));
  };
  require(device.kind == DeviceKind::kCuda && device.compute_capability == kComputeCapability,
          fmt::format("the device's compute capability is {}; it must be {} (Hopper).",
                      device.compute_capability, kComputeCapability));
  require(phase == Phase::kDecode, "the phase is prefill; it must be decode.");
  require(shape.causal, "causal is false; it must be true.");
  require(!shape.mla, "mla is true; it must be false.");
  require(shape.softcap == 0.0F, fmt::format("softcap is {}; it must be 0 (off).", shape.softcap));
  require(shape.out == shape.q, fmt::format("out is {}; it must be q's type, which is {}.",
                                            dtype_name(shape.out), dtype_name(shape.q)));
  require(shape.head_dim_v == shape.head_dim,
          fmt::format("head_dim_v is {}; it must be head_dim, which is {}.", shape.head_dim_v,
                      shape.head_dim));
  require(shape.num_heads <= xqa::kMaxHeads,
          fmt::format("num_heads is {}; it must be at most {}.", shape.num_heads, xqa::kMaxHeads));
  const xqa::KernelKey key = key_of(shape);
  require(!sound || xqa::find_kernel(key) != nullptr,
          fmt::format("no kernel is built for {} queries over a {} cache with head_dim {}, {} "
                      "query heads a KV head and pages of {} tokens.",
                      dtype_name(key.q), dtype_name(key.kv), key.head_dim, key.group_size,
                      key.page_size));
  return support;
}

size_t XqaAttention::workspace_bytes(const AttentionShape& shape,
                                     const AttentionLimits& limits) const {
  size_t bytes = 0;
  for (int num_reqs = 1; num_reqs <= limits.max_num_reqs; ++num_reqs) {
    const int splits = num_splits(shape, num_reqs, limits.max_kv_len, num_multiprocessors_);
    if (splits == 1) break;
    bytes = std::max(bytes, call_scratch_bytes(shape, num_reqs, splits));
  }
  return bytes;
}

Status XqaAttention::plan(const AttentionShape& shape, const AttentionBatch& batch,
                          Workspace& workspace, Stream& /*stream*/) {
  if (batch.decode.num_reqs == 0) return {};
  QUIRE_RETURN_IF_ERROR(check_range(shape, batch.decode));
  const xqa::Kernel* kernel = xqa::find_kernel(key_of(shape));
  if (kernel == nullptr) return internal_error("[xqa] a shape was planned that is not supported");
  if (const size_t bytes = counter_bytes(shape, batch.decode.num_reqs);
      bytes > workspace.counters.size()) {
    return internal_error(fmt::format("[xqa] too few counters; got {} bytes, expected {}",
                                      workspace.counters.size(), bytes));
  }
  if (neutral_.one == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(neutral_, xqa::neutral_inputs());
  }
  return kernel->prepare().status();
}

xqa::KernelCall XqaAttention::kernel_call(const AttentionCall& call) const {
  const AttentionShape& shape = *call.shape;
  const PhaseRange& range = call.batch->decode;
  const bool scaled = shape.kv == DType::kF8E4M3;
  const auto units = [&](int64_t stride) { return static_cast<uint32_t>(stride / shape.head_dim); };
  const auto row_bytes = static_cast<int64_t>(dtype_bytes(shape.q)) * shape.num_heads *
                         shape.head_dim * range.first_token;
  xqa::KernelCall kernel;
  kernel.num_reqs = static_cast<uint32_t>(range.num_reqs);
  kernel.num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads);
  kernel.num_splits = static_cast<uint32_t>(
      num_splits(shape, range.num_reqs, range.max_kv_len, num_multiprocessors_));
  kernel.window =
      shape.window > 0 ? static_cast<uint32_t>(shape.window) : std::numeric_limits<uint32_t>::max();
  kernel.scale = shape.scale;
  if (scaled) {
    kernel.k_scale = call.kv.k_scale != nullptr ? call.kv.k_scale : neutral_.one;
    kernel.v_scale = call.kv.v_scale;
  }
  kernel.q = static_cast<const char*>(call.q.data) + row_bytes;
  kernel.out = static_cast<char*>(call.out.data) + row_bytes;
  kernel.sinks = shape.sinks                            ? call.sinks
                 : xqa::is_hopper_kernel(key_of(shape)) ? nullptr
                                                        : neutral_.sinks;
  kernel.k = call.kv.k;
  kernel.v = call.kv.v;
  kernel.page_stride = units(call.kv.page_stride_k);
  kernel.token_stride = units(call.kv.token_stride_k);
  kernel.head_stride = units(call.kv.head_stride_k);
  kernel.block_table = call.batch->block_table + range.first_req * call.batch->max_pages;
  kernel.max_pages = static_cast<uint32_t>(call.batch->max_pages);
  kernel.seq_lens = call.batch->seq_lens + range.first_req;
  kernel.counters = reinterpret_cast<uint32_t*>(call.workspace.counters.data());
  kernel.scratch = call.workspace.arena.data();
  // Measured on an H200: 1 us less for one request of any length, and up to 4 us more for 16.
  kernel.overlap_start = range.num_reqs == 1;
  return kernel;
}

Status XqaAttention::run(const AttentionCall& call, Stream& stream) {
  if (call.phase != Phase::kDecode) return refuse("the phase", 1, "decode");
  const PhaseRange& range = call.batch->decode;
  if (range.num_reqs == 0) return {};
  QUIRE_RETURN_IF_ERROR(check_range(*call.shape, range));
  QUIRE_RETURN_IF_ERROR(check_cache(*call.shape, call.kv));
  if (call.lse != nullptr) return unimplemented("[xqa] lse was asked for; this kernel has none");
  if (call.shape->sinks && call.sinks == nullptr) return internal_error("[xqa] sinks are missing");
  const xqa::Kernel* kernel = xqa::find_kernel(key_of(*call.shape));
  if (kernel == nullptr) return internal_error("[xqa] a shape was run that is not supported");
  const xqa::KernelCall kernel_args = kernel_call(call);
  const size_t scratch =
      call_scratch_bytes(*call.shape, range.num_reqs, static_cast<int>(kernel_args.num_splits));
  if (scratch > call.workspace.arena.size()) {
    return internal_error(fmt::format("[xqa] the workspace is too small; got {} bytes, expected {}",
                                      call.workspace.arena.size(), scratch));
  }
  kernel->launch(kernel_args, as_cuda(stream));
  return {};
}

}  // namespace

std::unique_ptr<AttentionBackend> make_xqa_attention(const DeviceInfo& info) {
  return std::make_unique<XqaAttention>(info);
}

}  // namespace quire::cuda
