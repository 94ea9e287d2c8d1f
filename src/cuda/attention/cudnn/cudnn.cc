#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/cudnn/inputs.h"
#include "cuda/attention/cudnn/padding.h"
#include "cuda/attention/cudnn/prefill.h"
#include "cuda/attention/cudnn/sdpa.h"
#include "cuda/attention/requirements.h"

namespace quire::cuda {
namespace {

constexpr std::string_view kName = "cudnn";
constexpr int kOldestComputeCapability = 80;
constexpr int kMaxHeadDim = 256;
// The first version of cuDNN that accepts prompts at any offsets on devices before Hopper.
constexpr size_t kOldestForOffsets = 91801;
constexpr int kHopper = 90;

// The plan is built for the longest request that a block table holds, so it serves requests of any
// length. There is one SdpaPlan per number of requests.
cudnn::SdpaKey key_of(const AttentionShape& shape, int num_reqs, int64_t max_pages) {
  cudnn::SdpaKey key = cudnn::sdpa_key(shape);
  key.num_reqs = num_reqs;
  key.num_pages = key.table_stride = max_pages;
  return key;
}

// Decode of one query token per request. An SdpaPlan is built for one number of requests, which
// takes 30 ms or more. So a graph's batch has a plan of its own size. Other batches are split into
// parts whose sizes are powers of two, so that few plans suffice.
class DecodePlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<AttentionPlan>> create(const AttentionShape& shape,
                                                       const PlanLimits& limits,
                                                       cudnn::Library& library) {
    std::unique_ptr<DecodePlan> plan(new DecodePlan(shape, limits));
    QUIRE_RETURN_IF_ERROR(plan->build(library));
    return std::unique_ptr<AttentionPlan>(std::move(plan));
  }

  size_t workspace_bytes() const override { return workspace_bytes_; }

  Status update(const AttentionBatch& batch, Stream& /*stream*/) override {
    QUIRE_CHECK(batch.decode.num_reqs <= limits_.max_num_reqs && batch.decode.max_q_len == 1 &&
                    batch.max_pages == num_pages_,
                "[cudnn] the batch does not match the plan's limits");
    batch_ = batch;
    return {};
  }

  Status run(const AttentionCall& call, Stream& stream) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes_,
                "[cudnn] the workspace is smaller than workspace_bytes()");
    QUIRE_CHECK(cudnn::has_strides(cudnn::sdpa_key(shape_), call.kv),
                "[cudnn] the cache's strides do not match its shape");
    for (int done = 0; done < batch_.decode.num_reqs;) {
      const int size = part_size(batch_.decode.num_reqs - done);
      QUIRE_RETURN_IF_ERROR(run_part(call, done, size, as_cuda(stream)));
      done += size;
    }
    return {};
  }

 private:
  struct Part {
    int num_reqs = 0;
    std::unique_ptr<cudnn::SdpaPlan> plan;
  };

  DecodePlan(const AttentionShape& shape, const PlanLimits& limits)
      : shape_(shape),
        limits_(limits),
        num_pages_(ceil_div(int64_t{std::max(1, limits.max_kv_len)}, shape.page_size)) {}

  int part_size(int num_left) const {
    const int most = std::min(num_left, cudnn::kMaxReqs);
    return limits_.use.in_graph ? most
                                : static_cast<int>(std::bit_floor(static_cast<unsigned>(most)));
  }
  std::vector<int> part_sizes() const;
  Status build(cudnn::Library& library);
  Status run_part(const AttentionCall& call, int first_req, int num_reqs, CudaStream& stream);

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int64_t num_pages_;  // of a request of the largest length
  size_t workspace_bytes_ = 0;
  std::vector<Part> parts_;
  const int32_t* q_lens_ = nullptr;  // device, all 1
  AttentionBatch batch_;             // of the last update
};

// Sizes of the parts of all batches within the limits.
std::vector<int> DecodePlan::part_sizes() const {
  std::vector<int> sizes;
  if (!limits_.use.in_graph) {
    const int most = std::min(limits_.max_num_reqs, cudnn::kMaxReqs);
    for (int size = 1; size <= most; size *= 2) sizes.push_back(size);
    return sizes;
  }
  for (int left = limits_.max_num_reqs; left > 0; left -= sizes.back()) {
    sizes.push_back(part_size(left));
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Status DecodePlan::build(cudnn::Library& library) {
  for (const int size : part_sizes()) {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<cudnn::SdpaPlan> plan,
                           library.build(key_of(shape_, size, num_pages_)));
    workspace_bytes_ = std::max(workspace_bytes_, plan->workspace_bytes());
    parts_.push_back({size, std::move(plan)});
  }
  QUIRE_ASSIGN_OR_RETURN(q_lens_, cudnn::single_q_lens());
  return {};
}

// Requests [first_req, first_req + num_reqs) of the range.
Status DecodePlan::run_part(const AttentionCall& call, int first_req, int num_reqs,
                            CudaStream& stream) {
  const auto part = std::ranges::find(parts_, num_reqs, &Part::num_reqs);
  QUIRE_CHECK(part != parts_.end(), "[cudnn] a part of a batch has no plan");
  const size_t token_bytes = dtype_bytes(shape_.q) * static_cast<size_t>(shape_.num_heads) *
                             static_cast<size_t>(shape_.head_dim);
  const size_t first_byte =
      token_bytes * static_cast<size_t>(batch_.decode.first_token + first_req);
  const int req = batch_.decode.first_req + first_req;
  const int32_t* seq_lens = batch_.seq_lens + req;
  char* out = static_cast<char*>(call.out.data) + first_byte;
  QUIRE_RETURN_IF_ERROR(
      part->plan->execute({.q = static_cast<const char*>(call.q.data) + first_byte,
                           .out = out,
                           .k = call.kv.k,
                           .v = call.kv.v,
                           .block_table = batch_.block_table + req * batch_.max_pages,
                           .q_lens = q_lens_,
                           .seq_lens = seq_lens,
                           .workspace = call.workspace.data()},
                          stream.get()));
  cudnn::zero_padding(seq_lens, nullptr, num_reqs, out, token_bytes, stream);
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
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override;
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    QUIRE_RETURN_IF_ERROR(missing_);
    if (limits.use.phase == Phase::kPrefill) {
      return cudnn::make_prefill_plan(shape, limits, *library_);
    }
    return DecodePlan::create(shape, limits, *library_);
  }

 private:
  void require_phase(const AttentionUse& use, const Device& device, GpuRequirements& needs) const;
  static void require_cache_type(const AttentionShape& shape, const AttentionUse& use,
                                 GpuRequirements& needs);

  std::unique_ptr<cudnn::Library> library_;
  Status missing_;
};

// Prompts of any length, and decode of one query token per request. Decode of several query tokens
// would need PrefillPlan, which splits a batch by its lengths on the host; a CUDA graph cannot
// replay such a split.
void CudnnAttention::require_phase(const AttentionUse& use, const Device& device,
                                   GpuRequirements& needs) const {
  if (use.phase == Phase::kDecode) {
    needs.require_q_len(use, 1);
  } else if (device.compute_capability < kHopper && library_ != nullptr) {
    needs.require(library_->version() >= kOldestForOffsets,
                  fmt::format("cuDNN has version {}; prompts need {} on compute capability {}.",
                              cudnn::version_name(library_->version()),
                              cudnn::version_name(kOldestForOffsets), device.compute_capability));
  }
}

// cuDNN reads an FP8 cache with FP8 queries only, and rounding the queries would lose precision.
// Prompts may have an FP8 cache, because their contexts are copied to BF16.
void CudnnAttention::require_cache_type(const AttentionShape& shape, const AttentionUse& use,
                                        GpuRequirements& needs) {
  const bool is_prefill = use.phase == Phase::kPrefill;
  const bool is_copied = is_prefill && shape.kv == DType::kF8E4M3 && shape.q == DType::kBF16;
  needs.require(
      shape.kv == shape.q || is_copied,
      fmt::format("kv is {}; it must be q's type, which is {}{}.", dtype_name(shape.kv),
                  dtype_name(shape.q), is_prefill ? ", or, with BF16 queries, FP8 (E4M3)" : ""));
}

Support CudnnAttention::supports(const AttentionShape& shape, const AttentionUse& use,
                                 const Device& device) const {
  GpuRequirements needs(shape, device, device.compute_capability >= kOldestComputeCapability,
                        fmt::format("{} or later", kOldestComputeCapability));
  needs.require_separate_values(shape);
  needs.require_causal(shape);
  needs.require_output_type(shape);
  needs.require(library_ != nullptr,
                fmt::format("cuDNN is not available: {}.", missing_.message()));
  needs.require_no_softcap(shape);
  needs.require_equal_head_dims(shape);
  require_phase(use, device, needs);
  needs.require(!shape.sinks, "sinks is true; it must be false.");
  needs.require(shape.window == 0, fmt::format("window is {}; it must be 0 (off).", shape.window));
  needs.require(shape.q == DType::kBF16 || shape.q == DType::kF16,
                fmt::format("q is {}; it must be bf16 or f16.", dtype_name(shape.q)));
  require_cache_type(shape, use, needs);
  needs.require(shape.head_dim % 8 == 0 && shape.head_dim >= 8 && shape.head_dim <= kMaxHeadDim,
                fmt::format("head_dim is {}; it must be a multiple of 8 from 8 to {}.",
                            shape.head_dim, kMaxHeadDim));
  if (use.phase == Phase::kPrefill) {
    needs.support.reasons_to_prefer_others.push_back(
        "its plans for prompts take seconds to build at start, and were not "
        "faster in any measurement.");
  } else if (!use.in_graph) {
    needs.support.reasons_to_prefer_others.push_back(
        "each of its plans is built for one number of requests, so batches of other sizes are "
        "split "
        "into parts.");
  }
  return needs.support;
}

}  // namespace

std::unique_ptr<AttentionBackend> make_cudnn_attention(const DeviceInfo& /*info*/) {
  return std::make_unique<CudnnAttention>();
}

}  // namespace quire::cuda
