#include "cuda/attention/cudnn/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "attn/validate.h"
#include "cuda/attention/cudnn/padding.h"
#include "cuda/attention/cudnn/sdpa.h"

namespace quire::cuda {
namespace {

constexpr std::string_view kName = "cudnn";
constexpr int kOldestComputeCapability = 80;
constexpr int kMaxHeadDim = 256;

// All batches of a block table are planned for the longest request that it holds: one plan a number
// of requests, whatever their lengths.
cudnn::SdpaKey key_of(const AttentionShape& shape, int num_reqs, int64_t max_pages) {
  const KvLayout layout = kv_layout(shape);
  return {.num_reqs = num_reqs,
          .num_heads = shape.num_heads,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .page_size = shape.page_size,
          .num_pages = max_pages,
          .table_stride = max_pages,
          .page_stride = layout.page_stride(),
          .head_stride = layout.head_stride_k(),
          .token_stride = layout.token_stride_k(),
          .dtype = shape.q,
          .scale = shape.scale};
}

// A plan is built for one number of requests, in 30 ms or more. So a graph's batch has its own, and
// another is cut into parts of powers of two, whose plans are few and made ahead.
int part_size(const AttentionBatch& batch, int num_left) {
  const int most = std::min(num_left, cudnn::kMaxReqs);
  return batch.for_graph ? most : static_cast<int>(std::bit_floor(static_cast<unsigned>(most)));
}

std::vector<int> prepared_sizes(const AttentionLimits& limits) {
  std::vector<int> sizes;
  for (int size : limits.graph_sizes) {
    for (; size > cudnn::kMaxReqs; size -= cudnn::kMaxReqs) sizes.push_back(cudnn::kMaxReqs);
    sizes.push_back(size);
  }
  const int most = limits.eager ? std::min(limits.max_num_reqs, cudnn::kMaxReqs) : 0;
  for (int size = 1; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

bool has_layout(const KvCacheView& kv, const cudnn::SdpaKey& key) {
  const auto matches = [&](int64_t page, int64_t head, int64_t token) {
    return page == key.page_stride && head == key.head_stride && token == key.token_stride;
  };
  return matches(kv.page_stride_k, kv.head_stride_k, kv.token_stride_k) &&
         matches(kv.page_stride_v, kv.head_stride_v, kv.token_stride_v);
}

Status refuse(std::string_view what, int64_t got, std::string_view expected) {
  return unimplemented(fmt::format("[cudnn] {}; got {}, expected {}", what, got, expected));
}

// More query tokens go to another kernel of cuDNN, into whose results NaNs of unused slots leak.
Status check_range(const PhaseRange& range) {
  if (range.max_q_len != 1) return refuse("query tokens a request", range.max_q_len, "1");
  return {};
}

class CudnnAttention final : public AttentionBackend {
 public:
  CudnnAttention() {
    Result<std::unique_ptr<cudnn::Library>> opened = cudnn::Library::open();
    if (opened.ok()) {
      library_ = std::move(*opened);
    } else {
      missing_ = opened.status();
    }
  }

  std::string_view name() const override { return kName; }
  Support supports(const AttentionShape& shape, Phase phase, const Device& device) const override;
  int max_decode_q_len() const override { return 1; }
  bool plans_each_size() const override { return true; }
  Status prepare(const AttentionShape& shape, const AttentionLimits& limits) override;
  size_t workspace_bytes(const AttentionShape& shape, const AttentionLimits& limits) const override;
  Status plan(const AttentionShape& shape, const AttentionBatch& batch, Workspace& workspace,
              Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  struct CachedPlan {
    cudnn::SdpaKey key;
    std::unique_ptr<cudnn::SdpaPlan> plan;
  };

  cudnn::SdpaPlan* find(const cudnn::SdpaKey& key);
  Result<cudnn::SdpaPlan*> find_or_build(const cudnn::SdpaKey& key);
  Status run_part(const AttentionCall& call, int first_req, int num_reqs, CudaStream& stream);

  std::unique_ptr<cudnn::Library> library_;
  Status missing_;
  std::vector<CachedPlan> plans_;  // of a few sizes; the last used one is last
};

Support CudnnAttention::supports(const AttentionShape& shape, Phase phase,
                                 const Device& device) const {
  Support support{shape_faults(shape)};
  const auto require = [&](bool ok, std::string reason) {
    if (!ok) support.reasons.push_back(std::move(reason));
  };
  require(library_ != nullptr, fmt::format("cuDNN was not found: {}.", missing_.message()));
  require(device.kind == DeviceKind::kCuda && device.compute_capability >= kOldestComputeCapability,
          fmt::format("the device's compute capability is {}; it must be {} or later.",
                      device.compute_capability, kOldestComputeCapability));
  require(phase == Phase::kDecode, "the phase is prefill; it must be decode.");
  require(shape.causal, "causal is false; it must be true.");
  require(!shape.mla, "mla is true; it must be false.");
  require(!shape.sinks, "sinks is true; it must be false.");
  require(shape.softcap == 0.0F, fmt::format("softcap is {}; it must be 0 (off).", shape.softcap));
  require(shape.window == 0, fmt::format("window is {}; it must be 0 (off).", shape.window));
  require(shape.q == DType::kBF16 || shape.q == DType::kF16,
          fmt::format("q is {}; it must be bf16 or f16.", dtype_name(shape.q)));
  require(shape.kv == shape.q && shape.out == shape.q,
          fmt::format("kv is {} and out is {}; both must be q's type, which is {}.",
                      dtype_name(shape.kv), dtype_name(shape.out), dtype_name(shape.q)));
  require(shape.head_dim % 8 == 0 && shape.head_dim >= 8 && shape.head_dim <= kMaxHeadDim,
          fmt::format("head_dim is {}; it must be a multiple of 8 from 8 to {}.", shape.head_dim,
                      kMaxHeadDim));
  require(shape.head_dim_v == shape.head_dim,
          fmt::format("head_dim_v is {}; it must be head_dim, which is {}.", shape.head_dim_v,
                      shape.head_dim));
  return support;
}

Status CudnnAttention::prepare(const AttentionShape& shape, const AttentionLimits& limits) {
  QUIRE_RETURN_IF_ERROR(missing_);
  const int64_t pages =
      (int64_t{std::max(1, limits.max_kv_len)} + shape.page_size - 1) / shape.page_size;
  for (const int size : prepared_sizes(limits)) {
    QUIRE_RETURN_IF_ERROR(find_or_build(key_of(shape, size, pages)).status());
  }
  return cudnn::single_q_lens().status();
}

size_t CudnnAttention::workspace_bytes(const AttentionShape& /*shape*/,
                                       const AttentionLimits& /*limits*/) const {
  size_t bytes = 0;
  for (const CachedPlan& cached : plans_) bytes = std::max(bytes, cached.plan->workspace_bytes());
  return bytes;
}

cudnn::SdpaPlan* CudnnAttention::find(const cudnn::SdpaKey& key) {
  const auto found = std::find_if(plans_.rbegin(), plans_.rend(),
                                  [&](const CachedPlan& cached) { return cached.key == key; });
  if (found == plans_.rend()) return nullptr;
  std::swap(*found, plans_.back());
  return plans_.back().plan.get();
}

Result<cudnn::SdpaPlan*> CudnnAttention::find_or_build(const cudnn::SdpaKey& key) {
  if (cudnn::SdpaPlan* found = find(key)) return found;
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<cudnn::SdpaPlan> plan, library_->build(key));
  plans_.push_back({key, std::move(plan)});
  return plans_.back().plan.get();
}

Status CudnnAttention::plan(const AttentionShape& shape, const AttentionBatch& batch,
                            Workspace& workspace, Stream& /*stream*/) {
  const PhaseRange& range = batch.decode;
  if (range.num_reqs == 0) return {};
  QUIRE_RETURN_IF_ERROR(check_range(range));
  QUIRE_RETURN_IF_ERROR(missing_);
  for (int done = 0; done < range.num_reqs;) {
    const int size = part_size(batch, range.num_reqs - done);
    done += size;
    QUIRE_ASSIGN_OR_RETURN(const cudnn::SdpaPlan* plan,
                           find_or_build(key_of(shape, size, batch.max_pages)));
    if (plan->workspace_bytes() > workspace.arena.size()) {
      return resource_exhausted(fmt::format(
          "[cudnn] the workspace is too small for {} requests of {} pages; got {} bytes, expected "
          "{}",
          size, batch.max_pages, workspace.arena.size(), plan->workspace_bytes()));
    }
  }
  return {};
}

Status CudnnAttention::run(const AttentionCall& call, Stream& stream) {
  if (call.phase != Phase::kDecode) return refuse("the phase", 1, "decode");
  const PhaseRange& range = call.batch->decode;
  if (call.lse != nullptr) return unimplemented("[cudnn] lse was asked for; none is computed");
  for (int done = 0; done < range.num_reqs;) {
    const int size = part_size(*call.batch, range.num_reqs - done);
    QUIRE_RETURN_IF_ERROR(run_part(call, done, size, as_cuda(stream)));
    done += size;
  }
  return {};
}

// Requests [first_req, first_req + num_reqs) of the range, of one query token each.
Status CudnnAttention::run_part(const AttentionCall& call, int first_req, int num_reqs,
                                CudaStream& stream) {
  const AttentionShape& shape = *call.shape;
  const AttentionBatch& batch = *call.batch;
  const cudnn::SdpaKey key = key_of(shape, num_reqs, batch.max_pages);
  if (!has_layout(call.kv, key)) {
    return refuse("the cache's layout; its page stride", call.kv.page_stride_k,
                  "[num_pages, 2, num_kv_heads, page_size, head_dim]");
  }
  cudnn::SdpaPlan* plan = find(key);
  if (plan == nullptr) return internal_error("[cudnn] a batch was run that was not planned");
  QUIRE_ASSIGN_OR_RETURN(const int32_t* q_lens, cudnn::single_q_lens());
  const size_t token_bytes = dtype_bytes(shape.q) * static_cast<size_t>(shape.num_heads) *
                             static_cast<size_t>(shape.head_dim);
  const size_t first_byte = token_bytes * static_cast<size_t>(batch.decode.first_token + first_req);
  const int req = batch.decode.first_req + first_req;
  const int32_t* seq_lens = batch.seq_lens + req;
  char* out = static_cast<char*>(call.out.data) + first_byte;
  QUIRE_RETURN_IF_ERROR(plan->execute({.q = static_cast<const char*>(call.q.data) + first_byte,
                                       .out = out,
                                       .k = call.kv.k,
                                       .v = call.kv.v,
                                       .block_table = batch.block_table + req * batch.max_pages,
                                       .q_lens = q_lens,
                                       .seq_lens = seq_lens,
                                       .workspace = call.workspace.arena.data()},
                                      stream.get()));
  cudnn::zero_padding(seq_lens, num_reqs, out, token_bytes, stream);
  return {};
}

}  // namespace

std::unique_ptr<AttentionBackend> make_cudnn_attention(const DeviceInfo& /*info*/) {
  return std::make_unique<CudnnAttention>();
}

}  // namespace quire::cuda
