#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/requirements.h"
#include "cuda/attention/xqa/kernel.h"
#include "cuda/base/launch.h"
#include "cuda/base/memory.h"
#include "cuda/base/tensor_map.h"

namespace quire::cuda {
namespace xqa {

#define XQA_INSTANCE(q, kv, head_dim, group, tokens)     \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, tokens, 16) \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, tokens, 32) \
  XQA_PAGED_INSTANCE(q, kv, head_dim, group, tokens, 64)

#define XQA_PAGED_INSTANCE(q, kv, head_dim, group, tokens, page)  \
  namespace q##_##kv##_##head_dim##_##group##_##tokens##_##page { \
    extern const Instance instance;                               \
  }
#include "cuda/attention/xqa/instances.inc"
#undef XQA_PAGED_INSTANCE

namespace {

// The instances that match the key except for the number of query tokens.
std::vector<const Instance*> kernels_of(const KernelKey& key) {
  std::vector<const Instance*> kernels;
#define XQA_PAGED_INSTANCE(q_type, kv_type, dim, group, tokens, page)                       \
  if (key.q == DType::k##q_type && key.kv == DType::k##kv_type && key.head_dim == (dim) &&  \
      key.group_size == (group) && key.page_size == (page)) {                               \
    kernels.push_back(&q_type##_##kv_type##_##dim##_##group##_##tokens##_##page::instance); \
  }
#include "cuda/attention/xqa/instances.inc"
#undef XQA_PAGED_INSTANCE
  std::ranges::sort(kernels, {}, &Instance::max_q_len);
  return kernels;
}

}  // namespace

const Instance* find_kernel(const KernelKey& key) {
  const std::vector<const Instance*> kernels = kernels_of(key);
  const auto found = std::ranges::lower_bound(kernels, key.q_len, {}, &Instance::max_q_len);
  return found == kernels.end() ? nullptr : *found;
}

int max_q_len(const KernelKey& key) {
  const std::vector<const Instance*> kernels = kernels_of(key);
  return kernels.empty() ? 0 : kernels.back()->max_q_len;
}

void enqueue(CudaStream& stream, const KernelCall& call, const void* kernel, dim3 grid, dim3 block,
             void** args) {
  launch_kernel(stream, kernel,
                {.grid = grid,
                 .block = block,
                 .shared_bytes = call.shared_bytes,
                 .overlap_start = call.overlap_start},
                std::source_location::current(), args);
}

}  // namespace xqa

namespace {

constexpr std::string_view kName = "xqa";
constexpr int kComputeCapability = 90;

xqa::KernelKey key_of(const AttentionShape& shape, int q_len) {
  return {.q = shape.q,
          .kv = shape.kv,
          .head_dim = shape.head_dim,
          .group_size = shape.num_heads / std::max(1, shape.num_kv_heads),
          .page_size = shape.page_size,
          .q_len = q_len};
}

// Chooses the splits from a decode batch's size and its longest possible context, never from
// current lengths; measured on an H200. The Hopper kernel needs two thread blocks per SM, the other
// kernel one. More splits shorten the work of each thread block and lengthen the merge; for the
// Hopper kernel about 2 sqrt(n) splits are best for a context of n tiles.
int num_splits(const AttentionShape& shape, bool is_hopper, int num_reqs, int max_kv_len,
               int num_sms) {
  const int64_t num_rows = std::max<int64_t>(1, int64_t{num_reqs} * shape.num_kv_heads);
  const int64_t num_blocks = int64_t{num_sms} * (is_hopper ? 2 : 1);
  const int tile = is_hopper ? xqa::kHopperTileTokens : xqa::kTileTokens;
  const int num_tiles = std::max(1, ceil_div(max_kv_len, tile));
  const int most =
      is_hopper ? std::min(num_tiles, static_cast<int>(2 * std::sqrt(num_tiles))) : num_tiles;
  return static_cast<int>(std::clamp<int64_t>(num_blocks / num_rows, 1, most));
}

// The scratch memory has the maxima and sums of all partial results, then their output rows, which
// begin at a multiple of rows_bytes.
size_t scratch_bytes(const AttentionShape& shape, const xqa::KernelKey& key, int max_q_len,
                     int num_reqs, int splits) {
  if (splits == 1) return 0;
  const size_t num_rows = static_cast<size_t>(key.group_size) * static_cast<size_t>(max_q_len);
  const size_t num_partials = static_cast<size_t>(num_reqs) *
                              static_cast<size_t>(shape.num_kv_heads) * static_cast<size_t>(splits);
  const size_t state_bytes = num_partials * (is_hopper_kernel(key) ? 8 * num_rows : 2 * 128);
  const size_t rows_bytes = num_rows * static_cast<size_t>(key.head_dim) * dtype_bytes(key.q);
  return round_up(state_bytes, rows_bytes) + num_partials * rows_bytes;
}

// The map of one layer's keys or values for the Hopper kernel. One copy transfers a part of one
// head for several tokens of a page.
Result<CUtensorMap> map_cache(const AttentionShape& shape, const KvCacheView& kv, const void* base,
                              uint32_t box_elems) {
  constexpr uint64_t kMaxPages = uint64_t{1} << 31;
  const uint64_t sizes[] = {static_cast<uint64_t>(shape.head_dim),
                            static_cast<uint64_t>(shape.num_kv_heads),
                            static_cast<uint64_t>(shape.page_size), kMaxPages};
  const uint64_t strides[] = {static_cast<uint64_t>(kv.head_stride_k),
                              static_cast<uint64_t>(kv.token_stride_k),
                              static_cast<uint64_t>(kv.page_stride_k)};
  const auto box_tokens = static_cast<uint32_t>(std::min(shape.page_size, xqa::kHopperTileTokens));
  const uint32_t box[] = {box_elems, 1, box_tokens, 1};
  return encode_tensor_map(
      {.base = base, .dtype = shape.kv, .sizes = sizes, .strides = strides, .box = box});
}

// XQA uses one set of strides for K and V, in 32 bits and in units of head_dim elements.
bool can_address(const AttentionShape& shape, const KvCacheView& kv) {
  if (kv.page_stride_k != kv.page_stride_v || kv.head_stride_k != kv.head_stride_v ||
      kv.token_stride_k != kv.token_stride_v) {
    return false;
  }
  for (const int64_t stride : {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k}) {
    if (stride % shape.head_dim != 0) return false;
    if (stride / shape.head_dim > std::numeric_limits<uint32_t>::max()) return false;
  }
  return true;
}

// There is one thread block per request and KV head along a grid axis, and CUDA limits the axis to
// 16 bits.
Status check_num_reqs(const AttentionShape& shape, int num_reqs) {
  const int64_t blocks = int64_t{num_reqs} * shape.num_kv_heads;
  if (blocks <= 65535) return {};
  return unimplemented(fmt::format(
      "[xqa] too many requests times KV heads; got {}, expected at most 65535", blocks));
}

class XqaPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<AttentionPlan>> create(const AttentionShape& shape,
                                                       const PlanLimits& limits, int num_sms) {
    QUIRE_RETURN_IF_ERROR(check_num_reqs(shape, limits.max_num_reqs));
    std::unique_ptr<XqaPlan> plan(new XqaPlan(shape, limits, num_sms));
    QUIRE_RETURN_IF_ERROR(plan->load());
    return std::unique_ptr<AttentionPlan>(std::move(plan));
  }

  size_t workspace_bytes() const override { return workspace_bytes_; }

  Status update(const AttentionBatch& batch, Stream& stream) override {
    const PhaseRange& range = batch.decode;
    QUIRE_CHECK(range.num_reqs <= limits_.max_num_reqs && range.max_q_len <= limits_.use.q_len &&
                    range.num_tokens == range.num_reqs * range.max_q_len,
                "[xqa] the batch does not match the plan's limits");
    if (!counters_are_zero_) {
      as_cuda(stream).set_zero(counters_.data(), counters_.num_bytes());
      counters_are_zero_ = true;
    }
    batch_ = batch;
    num_splits_ = num_splits(shape_, is_hopper_, range.num_reqs, range.max_kv_len, num_sms_);
    return {};
  }

  Status run(const AttentionCall& call, Stream& stream) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes_,
                "[xqa] the workspace is smaller than workspace_bytes()");
    QUIRE_CHECK(
        can_address(shape_, call.kv),
        "[xqa] strides of keys and values differ, are not multiples of head_dim, or are too large");
    xqa::KernelCall kernel = kernel_call(call);
    CUtensorMap maps[2] = {};
    if (is_hopper_) {
      QUIRE_ASSIGN_OR_RETURN(maps[0], map_cache(shape_, call.kv, call.kv.k, instance_->box_elems));
      QUIRE_ASSIGN_OR_RETURN(maps[1], map_cache(shape_, call.kv, call.kv.v, instance_->box_elems));
      kernel.k_map = &maps[0];
      kernel.v_map = &maps[1];
    }
    instance_->launch(kernel, as_cuda(stream));
    return {};
  }

 private:
  XqaPlan(const AttentionShape& shape, const PlanLimits& limits, int num_sms)
      : shape_(shape),
        limits_(limits),
        num_sms_(num_sms),
        key_(key_of(shape, limits.use.q_len)),
        is_hopper_(xqa::is_hopper_kernel(key_)),
        instance_(xqa::find_kernel(key_)) {
    QUIRE_CHECK(instance_ != nullptr, "[xqa] there is no kernel for a supported shape");
    workspace_bytes_ = max_scratch_bytes();
  }

  size_t max_scratch_bytes() const;
  Status load();
  xqa::KernelCall kernel_call(const AttentionCall& call) const;

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int num_sms_;
  const xqa::KernelKey key_;
  const bool is_hopper_;
  const xqa::Instance* const instance_;
  size_t workspace_bytes_ = 0;
  uint32_t shared_bytes_ = 0;  // of the kernel, per thread block
  xqa::DefaultInputs default_inputs_;
  Buffer counters_;  // [max_num_reqs, num_kv_heads] uint32_t, zero between runs
  // The first update() zeroes the counters on its stream. Zeroing them on the default stream at any
  // earlier time added 0.3 to 0.6 us to every later kernel of other streams on an H200, also in
  // graphs.
  bool counters_are_zero_ = false;

  // State of the last update.
  AttentionBatch batch_;
  int num_splits_ = 1;
};

// Only small batches are split, so the largest batch may not need the most memory: this is the
// maximum over all batch sizes.
size_t XqaPlan::max_scratch_bytes() const {
  size_t bytes = 0;
  const int fewest = limits_.use.in_graph ? limits_.max_num_reqs : 1;
  for (int num_reqs = fewest; num_reqs <= limits_.max_num_reqs; ++num_reqs) {
    const int splits = num_splits(shape_, is_hopper_, num_reqs, limits_.max_kv_len, num_sms_);
    if (splits == 1) break;
    bytes = std::max(bytes, scratch_bytes(shape_, key_, instance_->max_q_len, num_reqs, splits));
  }
  return bytes;
}

Status XqaPlan::load() {
  // The first access loads the kernel, which is not permitted during a capture. The size is read
  // from the device, because sizeof on the host has a different value.
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemcpyFromSymbol(&shared_bytes_, instance_->shared_bytes, sizeof(shared_bytes_)));
  QUIRE_CUDA_RETURN_IF_ERROR(xqa::find_default_inputs(&default_inputs_));
  const size_t num_bytes = static_cast<size_t>(limits_.max_num_reqs) *
                           static_cast<size_t>(shape_.num_kv_heads) * sizeof(uint32_t);
  QUIRE_ASSIGN_OR_RETURN(counters_, device_memory(num_bytes));
  return {};
}

xqa::KernelCall XqaPlan::kernel_call(const AttentionCall& call) const {
  const PhaseRange& range = batch_.decode;
  const bool scaled = shape_.kv == DType::kF8E4M3;
  const auto units = [&](int64_t stride) {
    return static_cast<uint32_t>(stride / shape_.head_dim);
  };
  const auto row_bytes = static_cast<int64_t>(dtype_bytes(shape_.q)) * shape_.num_heads *
                         shape_.head_dim * range.first_token;
  xqa::KernelCall kernel;
  kernel.num_reqs = static_cast<uint32_t>(range.num_reqs);
  kernel.num_kv_heads = static_cast<uint32_t>(shape_.num_kv_heads);
  kernel.num_splits = static_cast<uint32_t>(num_splits_);
  kernel.q_len = static_cast<uint32_t>(range.max_q_len);
  kernel.window = shape_.window > 0 ? static_cast<uint32_t>(shape_.window)
                                    : std::numeric_limits<uint32_t>::max();
  kernel.scale = shape_.scale;
  if (scaled) {
    kernel.k_scale = call.kv.k_scale != nullptr ? call.kv.k_scale : default_inputs_.one;
    kernel.v_scale = call.kv.v_scale;
  }
  kernel.q = static_cast<const char*>(call.q.data) + row_bytes;
  kernel.out = static_cast<char*>(call.out.data) + row_bytes;
  kernel.sinks = shape_.sinks ? call.sinks : is_hopper_ ? nullptr : default_inputs_.sinks;
  kernel.k = call.kv.k;
  kernel.v = call.kv.v;
  kernel.page_stride = units(call.kv.page_stride_k);
  kernel.token_stride = units(call.kv.token_stride_k);
  kernel.head_stride = units(call.kv.head_stride_k);
  kernel.block_table = batch_.block_table + range.first_req * batch_.max_pages;
  kernel.max_pages = static_cast<uint32_t>(batch_.max_pages);
  kernel.seq_lens = batch_.seq_lens + range.first_req;
  kernel.counters = static_cast<uint32_t*>(counters_.data());
  kernel.scratch = call.workspace.data();
  kernel.shared_bytes = shared_bytes_;
  // On an H200, an early start of the Hopper kernel saves 1 us for one request of any length, and
  // costs up to 4 us for 16.
  kernel.overlap_start = !is_hopper_ || range.num_reqs == 1;
  return kernel;
}

class XqaAttention final : public AttentionBackend {
 public:
  explicit XqaAttention(const DeviceInfo& info) : num_sms_(info.num_sms) {}

  std::string_view name() const override { return kName; }
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override;
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    return XqaPlan::create(shape, limits, num_sms_);
  }

 private:
  int num_sms_ = 0;
};

Support XqaAttention::supports(const AttentionShape& shape, const AttentionUse& use,
                               const Device& device) const {
  GpuRequirements needs(shape, device, device.compute_capability == kComputeCapability,
                        "90 (Hopper)");
  needs.require_separate_values(shape);
  needs.require_causal(shape);
  needs.require_no_chunks(shape);
  needs.require_output_type(shape);
  const bool sound = shape_faults(shape).empty();
  const xqa::KernelKey key = key_of(shape, use.q_len);
  const int max_q_len = xqa::max_q_len(key);
  const bool has_kernel = max_q_len > 0;
  needs.require_decode(shape, use, has_kernel ? max_q_len : use.q_len);
  needs.require(
      shape.window == 0 || use.q_len == 1,
      fmt::format("window is {}; it must be 0 (off) for several query tokens.", shape.window));
  needs.require(
      shape.num_heads <= xqa::kMaxHeads,
      fmt::format("num_heads is {}; it must be at most {}.", shape.num_heads, xqa::kMaxHeads));
  needs.require(
      !sound || has_kernel,
      fmt::format("no kernel is built for {} queries over a {} cache with head_dim {}, {} "
                  "query heads per KV head and pages of {} tokens.",
                  dtype_name(key.q), dtype_name(key.kv), key.head_dim, key.group_size,
                  key.page_size));
  return needs.support;
}

}  // namespace

std::unique_ptr<AttentionBackend> make_xqa_attention(const DeviceInfo& info) {
  return std::make_unique<XqaAttention>(info);
}

}  // namespace quire::cuda
