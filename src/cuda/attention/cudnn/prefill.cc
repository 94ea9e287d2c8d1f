#include "cuda/attention/cudnn/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/cudnn/inputs.h"
#include "cuda/attention/cudnn/padding.h"
#include "cuda/attention/cudnn/prefill_parts.h"
#include "cuda/attention/gather/gather.h"
#include "cuda/base/memory.h"

namespace quire::cuda::cudnn {
namespace {

// The arrays of each part begin at multiples of 16 bytes.
constexpr int kAlignedInts = 4;

// The capacity of the scratch memory in tokens. It must hold the longest context, because this plan
// never reads pages.
int64_t capacity_of(const AttentionShape& shape, const PlanLimits& limits) {
  return std::max<int64_t>(scratch_tokens(shape, limits, kPrefillTile),
                           round_up(int64_t{std::max(1, limits.max_kv_len)}, kPrefillTile));
}

class PrefillPlan final : public AttentionPlan {
 public:
  PrefillPlan(const AttentionShape& shape, const PlanLimits& limits)
      : shape_(shape),
        limits_(limits),
        row_size_(shape.num_heads * shape.head_dim),
        kv_row_size_(shape.num_kv_heads * shape.head_dim),
        scratch_tokens_(capacity_of(shape, limits)),
        cutter_(limits.max_num_reqs, limits.max_num_tokens) {}

  Status build(Library& library);

  size_t workspace_bytes() const override { return scratch_bytes() + cudnn_bytes_; }
  Status update(const AttentionBatch& batch, Stream& stream) override;
  Status run(const AttentionCall& call, Stream& stream) override;

 private:
  // The requests of a group are gathered together; then several calls compute their attention.
  struct Group : GatherGroup {
    size_t num_calls = 0;
  };
  // A call of cuDNN for consecutive requests of a group.
  struct Call {
    SdpaPlan* plan = nullptr;
    int64_t first_token = 0;
    PrefillInputs inputs;
  };

  SdpaKey key_of(const PrefillSize& size) const;
  Status check_offsets() const;
  Status build_plans(Library& library);
  Status allocate_inputs();
  void derive_inputs(Group& group, CudaStream& stream);
  PrefillInputs next_inputs(const Group& group, const PrefillPart& part);
  GatherScratch scratch(const AttentionCall& call) const;
  Status attend(const Call& part, const AttentionCall& call, const GatherCall& gathered,
                CudaStream& stream) const;
  size_t row_bytes() const { return static_cast<size_t>(row_size_) * dtype_bytes(shape_.q); }
  // The last tile is for requests without tokens.
  size_t scratch_bytes() const {
    return cuda::scratch_bytes(shape_, scratch_tokens_ + kPrefillTile);
  }

  const AttentionShape shape_;
  const PlanLimits limits_;
  const int row_size_;     // elements of a token's queries
  const int kv_row_size_;  // elements of its keys
  const int64_t scratch_tokens_;
  size_t cudnn_bytes_ = 0;
  PrefillCutter cutter_;
  std::vector<std::unique_ptr<SdpaPlan>> plans_;  // one per size of the cutter
  Buffer memory_;
  PrefillInputs inputs_;  // of all parts, one after another
  int64_t num_lens_ = 0;  // elements of each array
  int64_t lens_used_ = 0;
  AttentionBatch batch_;                  // of the last update
  std::vector<int64_t> gathered_tokens_;  // per request
  std::vector<Group> groups_;
  std::vector<Call> calls_;  // of all groups
};

SdpaKey PrefillPlan::key_of(const PrefillSize& size) const {
  SdpaKey key = sdpa_key(shape_);
  key.num_reqs = size.num_reqs;
  key.max_q_len = size.q_len;
  key.max_kv_len = round_up(int64_t{std::max(1, limits_.max_kv_len)}, kPrefillTile);
  key.head_stride = shape_.head_dim;
  key.token_stride = kv_row_size_;
  return key;
}

Status PrefillPlan::build(Library& library) {
  QUIRE_RETURN_IF_ERROR(check_offsets());
  QUIRE_RETURN_IF_ERROR(load_gather(shape_.kv, shape_.head_dim));
  QUIRE_RETURN_IF_ERROR(build_plans(library));
  calls_.reserve(static_cast<size_t>(limits_.max_num_reqs));
  groups_.reserve(static_cast<size_t>(limits_.max_num_reqs) + 1);
  gathered_tokens_.reserve(static_cast<size_t>(limits_.max_num_reqs));
  return allocate_inputs();
}

// cuDNN's offsets are 32-bit numbers of elements.
Status PrefillPlan::check_offsets() const {
  const auto check = [](int64_t tokens, int row_size, const char* what,
                        const char* flag) -> Status {
    if (tokens * row_size <= std::numeric_limits<int32_t>::max()) return {};
    return unimplemented(
        fmt::format("[cudnn] {} are too large; got {} tokens of {} elements, "
                    "expected fewer than 2^31 elements; lower `{}`",
                    what, tokens, row_size, flag));
  };
  QUIRE_RETURN_IF_ERROR(
      check(limits_.max_num_tokens, row_size_, "the queries of a step", "max_num_batched_tokens"));
  return check(scratch_tokens_ + kPrefillTile, kv_row_size_, "the keys of a context",
               "max_model_len");
}

Status PrefillPlan::build_plans(Library& library) {
  for (const PrefillSize& size : cutter_.sizes()) {
    Result<std::unique_ptr<SdpaPlan>> plan = library.build(key_of(size));
    if (!plan.ok()) {
      return unimplemented(fmt::format(
          "[cudnn] no plan for {} requests of up to {} query tokens and {} keys; choose "
          "another `prefill_attention_backend`: {}",
          size.num_reqs, size.q_len, limits_.max_kv_len, plan.status().message()));
    }
    cudnn_bytes_ = std::max(cudnn_bytes_, (*plan)->workspace_bytes());
    plans_.push_back(std::move(*plan));
  }
  return {};
}

// The plan for a part of n requests is built for at most 4 n, so 4 n + 1 aligned numbers fit 8 n.
Status PrefillPlan::allocate_inputs() {
  constexpr int kMostPerReq = 2 * kAlignedInts;
  num_lens_ = int64_t{kMostPerReq} * limits_.max_num_reqs;
  const auto lay_out = [&](BumpAllocator memory) {
    for (int32_t** lens : {&inputs_.q_lens, &inputs_.kv_lens, &inputs_.q_offsets,
                           &inputs_.kv_offsets, &inputs_.scratch_start}) {
      *lens = memory.allocate<int32_t>(static_cast<size_t>(num_lens_));
    }
    return memory.num_bytes();
  };
  QUIRE_ASSIGN_OR_RETURN(memory_, device_memory(lay_out(BumpAllocator())));
  lay_out(BumpAllocator(memory_.data()));
  return {};
}

PrefillInputs PrefillPlan::next_inputs(const Group& group, const PrefillPart& part) {
  const int64_t at = lens_used_;
  lens_used_ += round_up(cutter_.sizes()[part.size_idx].num_reqs + 1, kAlignedInts);
  QUIRE_CHECK(lens_used_ <= num_lens_, "[cudnn] the parts of a batch have too much padding");
  return {.q_lens = inputs_.q_lens + at,
          .kv_lens = inputs_.kv_lens + at,
          .q_offsets = inputs_.q_offsets + at,
          .kv_offsets = inputs_.kv_offsets + at,
          .scratch_start = inputs_.scratch_start + group.first_req + part.first_req};
}

void PrefillPlan::derive_inputs(Group& group, CudaStream& stream) {
  const int first_req = batch_.prefill.first_req + group.first_req;
  const int32_t* starts = batch_.query_start.host + first_req;
  for (const PrefillPart& part : cutter_.cut({starts, static_cast<size_t>(group.num_reqs) + 1})) {
    calls_.push_back({.plan = plans_[part.size_idx].get(),
                      .first_token = starts[part.first_req],
                      .inputs = next_inputs(group, part)});
    ++group.num_calls;
    derive_prefill_inputs({.query_start = batch_.query_start.device + first_req,
                           .seq_lens = batch_.seq_lens + first_req,
                           .first_req = part.first_req,
                           .num_reqs = part.num_reqs},
                          calls_.back().inputs, cutter_.sizes()[part.size_idx].num_reqs, row_size_,
                          kv_row_size_, stream);
  }
}

Status PrefillPlan::update(const AttentionBatch& batch, Stream& stream) {
  const PhaseRange& range = batch.prefill;
  QUIRE_CHECK(range.num_reqs <= limits_.max_num_reqs &&
                  range.num_tokens <= limits_.max_num_tokens && range.max_kv_len <= scratch_tokens_,
              "[cudnn] the batch does not match the plan's limits");
  batch_ = batch;
  calls_.clear();
  lens_used_ = 0;
  list_gathered_tokens(batch, range, kPrefillTile, gathered_tokens_);
  pack_groups(gathered_tokens_, scratch_tokens_, groups_);
  for (Group& group : groups_) derive_inputs(group, as_cuda(stream));
  return {};
}

GatherScratch PrefillPlan::scratch(const AttentionCall& call) const {
  return {.memory = call.workspace.data(),
          .num_tokens = scratch_tokens_ + kPrefillTile,
          .starts = inputs_.scratch_start,
          .tile = kPrefillTile,
          .apply_scales = shape_.kv == DType::kF8E4M3};
}

Status PrefillPlan::attend(const Call& part, const AttentionCall& call, const GatherCall& gathered,
                           CudaStream& stream) const {
  const size_t first_byte = static_cast<size_t>(part.first_token) * row_bytes();
  return part.plan->execute({.q = static_cast<const char*>(call.q.data) + first_byte,
                             .out = static_cast<char*>(call.out.data) + first_byte,
                             .k = gathered.k,
                             .v = gathered.v,
                             .q_lens = part.inputs.q_lens,
                             .seq_lens = part.inputs.kv_lens,
                             .q_offsets = part.inputs.q_offsets,
                             .kv_offsets = part.inputs.kv_offsets,
                             .workspace = call.workspace.data() + scratch_bytes()},
                            stream.get());
}

Status PrefillPlan::run(const AttentionCall& call, Stream& stream) {
  QUIRE_CHECK(call.workspace.size() >= workspace_bytes(),
              "[cudnn] the workspace is smaller than workspace_bytes()");
  const PhaseRange& range = batch_.prefill;
  zero_padding(
      batch_.seq_lens + range.first_req, batch_.query_start.device + range.first_req,
      range.num_reqs,
      static_cast<char*>(call.out.data) + static_cast<size_t>(range.first_token) * row_bytes(),
      row_bytes(), as_cuda(stream));
  auto part = calls_.begin();
  for (const Group& group : groups_) {
    const GatherCall gathered = gather_call(shape_, call.kv, batch_, range, group, scratch(call));
    if (group.num_tokens > 0) launch_gather(gathered, as_cuda(stream));
    for (size_t i = 0; i < group.num_calls; ++i, ++part) {
      QUIRE_RETURN_IF_ERROR(attend(*part, call, gathered, as_cuda(stream)));
    }
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
