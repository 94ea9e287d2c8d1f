#include "cuda/attention/cudnn/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/cudnn/padding.h"
#include "cuda/attention/cudnn/prefill_parts.h"
#include "cuda/base/memory.h"

namespace quire::cuda::cudnn {
namespace {

// The arrays of each part begin at multiples of 16 bytes.
constexpr int kAlignedInts = 4;

class PrefillPlan final : public AttentionPlan {
 public:
  PrefillPlan(const AttentionShape& shape, const PlanLimits& limits)
      : shape_(shape),
        limits_(limits),
        num_pages_(ceil_div(int64_t{std::max(1, limits.max_kv_len)}, shape.page_size)),
        row_size_(shape.num_heads * shape.head_dim),
        cutter_(limits.max_num_reqs, limits.max_num_tokens) {}

  Status build(Library& library);

  size_t workspace_bytes() const override { return workspace_bytes_; }
  Status update(const AttentionBatch& batch, Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  // A call of cuDNN for consecutive requests.
  struct Call {
    SdpaPlan* plan = nullptr;
    int64_t first_token = 0;
    PrefillInputs inputs;
  };

  SdpaKey key_of(const PrefillSize& size) const;
  Status build_plans(Library& library);
  Status allocate_inputs();
  PrefillRequests requests(int first, int num_reqs) const;
  PrefillInputs next_inputs(const PrefillPart& part);
  size_t row_bytes() const { return static_cast<size_t>(row_size_) * dtype_bytes(shape_.q); }

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int64_t num_pages_;  // of a request of the largest length
  const int row_size_;       // elements of a token's queries
  size_t workspace_bytes_ = 0;
  PrefillCutter cutter_;
  std::vector<std::unique_ptr<SdpaPlan>> plans_;  // one per size of the cutter
  Buffer memory_;
  PrefillInputs inputs_;  // of all parts, one after another
  int64_t num_lens_ = 0;  // elements of each array but the block table
  int64_t lens_used_ = 0;
  AttentionBatch batch_;  // of the last update
  std::vector<Call> calls_;
};

SdpaKey PrefillPlan::key_of(const PrefillSize& size) const {
  SdpaKey key = sdpa_key(shape_);
  key.num_reqs = size.num_reqs;
  key.max_q_len = size.q_len;
  key.num_pages = num_pages_;
  key.table_stride = round_up(num_pages_, kAlignedInts);
  return key;
}

Status PrefillPlan::build(Library& library) {
  // cuDNN's offsets of queries are 32-bit numbers of elements.
  if (int64_t{limits_.max_num_tokens} * row_size_ > std::numeric_limits<int32_t>::max()) {
    return unimplemented(
        fmt::format("[cudnn] the queries of a step are too large; got {} tokens of {} elements, "
                    "expected fewer than 2^31 elements; lower `max_num_batched_tokens`",
                    limits_.max_num_tokens, row_size_));
  }
  QUIRE_RETURN_IF_ERROR(build_plans(library));
  calls_.reserve(static_cast<size_t>(limits_.max_num_reqs));
  return allocate_inputs();
}

Status PrefillPlan::build_plans(Library& library) {
  for (const PrefillSize& size : cutter_.sizes()) {
    Result<std::unique_ptr<SdpaPlan>> plan = library.build(key_of(size));
    if (!plan.ok()) {
      return unimplemented(
          fmt::format("[cudnn] no plan for {} requests of up to {} query tokens "
                      "and {} pages; choose another `prefill_attention_backend`: {}",
                      size.num_reqs, size.q_len, num_pages_, plan.status().message()));
    }
    workspace_bytes_ = std::max(workspace_bytes_, (*plan)->workspace_bytes());
    plans_.push_back(std::move(*plan));
  }
  return {};
}

// A part of n requests has a plan for at most 4 n of them. Rows of the block table are those of the
// batch: the padding of one part gets the rows of the next, and only the last part's needs more.
Status PrefillPlan::allocate_inputs() {
  constexpr int kMostPerReq = 2 * kAlignedInts;
  num_lens_ = int64_t{kMostPerReq} * limits_.max_num_reqs;
  int64_t num_rows = limits_.max_num_reqs;
  for (const PrefillSize& size : cutter_.sizes()) {
    num_rows = std::max(num_rows, int64_t{limits_.max_num_reqs} + size.num_reqs);
  }
  inputs_.table_stride = round_up(num_pages_, kAlignedInts);
  const auto lay_out = [&](BumpAllocator memory) {
    for (int32_t** lens : {&inputs_.q_lens, &inputs_.kv_lens, &inputs_.offsets}) {
      *lens = memory.allocate<int32_t>(static_cast<size_t>(num_lens_));
    }
    inputs_.block_table =
        memory.allocate<int32_t>(static_cast<size_t>(num_rows * inputs_.table_stride));
    return memory.num_bytes();
  };
  QUIRE_ASSIGN_OR_RETURN(memory_, device_memory(lay_out(BumpAllocator())));
  lay_out(BumpAllocator(memory_.data()));
  return {};
}

// Requests [first, first + num_reqs) of the range.
PrefillRequests PrefillPlan::requests(int first, int num_reqs) const {
  const int64_t req = int64_t{batch_.prefill.first_req} + first;
  return {.query_start = batch_.query_start.device + req,
          .seq_lens = batch_.seq_lens + req,
          .block_table = batch_.block_table + req * batch_.max_pages,
          .max_pages = batch_.max_pages,
          .num_reqs = num_reqs,
          .page_size = shape_.page_size};
}

PrefillInputs PrefillPlan::next_inputs(const PrefillPart& part) {
  const int64_t at = lens_used_;
  lens_used_ += round_up(cutter_.sizes()[part.size_idx].num_reqs + 1, kAlignedInts);
  QUIRE_CHECK(lens_used_ <= num_lens_, "[cudnn] the parts of a batch have too much padding");
  return {.q_lens = inputs_.q_lens + at,
          .kv_lens = inputs_.kv_lens + at,
          .offsets = inputs_.offsets + at,
          .block_table = inputs_.block_table + part.first_req * inputs_.table_stride,
          .table_stride = inputs_.table_stride};
}

// The inputs are derived once per step, in the order of the parts, because a part's padding writes
// rows of the next part's block table.
Status PrefillPlan::update(const AttentionBatch& batch, Stream& stream) {
  const PhaseRange& range = batch.prefill;
  QUIRE_CHECK(range.num_reqs <= limits_.max_num_reqs &&
                  range.num_tokens <= limits_.max_num_tokens && batch.max_pages == num_pages_,
              "[cudnn] a batch is not one that the plan was made for");
  batch_ = batch;
  calls_.clear();
  lens_used_ = 0;
  const int32_t* starts = batch.query_start.host + range.first_req;
  for (const PrefillPart& part : cutter_.cut({starts, static_cast<size_t>(range.num_reqs) + 1})) {
    calls_.push_back({.plan = plans_[part.size_idx].get(),
                      .first_token = starts[part.first_req],
                      .inputs = next_inputs(part)});
    derive_prefill_inputs(requests(part.first_req, part.num_reqs), calls_.back().inputs,
                          cutter_.sizes()[part.size_idx].num_reqs, row_size_, as_cuda(stream));
  }
  return {};
}

Status PrefillPlan::run(const AttentionCall& call, Stream& stream) {
  QUIRE_CHECK(call.workspace.size() >= workspace_bytes_,
              "[cudnn] the workspace is smaller than what the plan asked for");
  const SdpaKey key = sdpa_key(shape_);
  QUIRE_CHECK(has_strides(key, call.kv), "[cudnn] the cache is not laid out as its shape says");
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(shape_.kv));
  zero_unused(requests(0, batch_.prefill.num_reqs),
              {.k = static_cast<char*>(call.kv.k),
               .v = static_cast<char*>(call.kv.v),
               .page_bytes = key.page_stride * element_bytes,
               .head_bytes = key.head_stride * element_bytes,
               .token_bytes = key.token_stride * element_bytes},
              shape_.num_kv_heads, call.out.data, row_bytes(), as_cuda(stream));
  for (const Call& part : calls_) {
    const size_t first_byte = static_cast<size_t>(part.first_token) * row_bytes();
    QUIRE_RETURN_IF_ERROR(
        part.plan->execute({.q = static_cast<const char*>(call.q.data) + first_byte,
                            .out = static_cast<char*>(call.out.data) + first_byte,
                            .k = call.kv.k,
                            .v = call.kv.v,
                            .block_table = part.inputs.block_table,
                            .q_lens = part.inputs.q_lens,
                            .q_offsets = part.inputs.offsets,
                            .seq_lens = part.inputs.kv_lens,
                            .workspace = call.workspace.data()},
                           as_cuda(stream).get()));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AttentionPlan>> make_prefill_plan(const AttentionShape& shape,
                                                         const PlanLimits& limits,
                                                         Library& library) {
  auto plan = std::make_unique<PrefillPlan>(shape, limits);
  QUIRE_RETURN_IF_ERROR(plan->build(library));
  return std::unique_ptr<AttentionPlan>(std::move(plan));
}

}  // namespace quire::cuda::cudnn
