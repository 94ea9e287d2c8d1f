// Samples tokens from logits on the device, as sample/sampler.h defines it: the same logits,
// parameters and seed give the same token as on the CPU, unless rounding decides (see filter.cu).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/sample/sample_kernels.h"
#include "cuda/sample/sampled_slots.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Converts a row's status to a Status; ok for kOk and kPadding. position: index of the token;
// detail: id of the first NaN logit.
Status to_status(RowStatus status, int64_t position, int32_t detail);

// The span whose rows begin with `results`, without the sequence's id, which is not on the device.
// `logprobs`: log probabilities of the same rows, or null.
SpanResult to_span_result(const RowResult* results, const LogprobsResult* logprobs);

// The chosen token first, then the most likely tokens; empty if none were requested.
PositionLogprobs to_position_logprobs(const LogprobsResult& result);

class DeviceSampler {
 public:
  static Result<std::unique_ptr<DeviceSampler>> create(const DeviceSamplerLimits& limits,
                                                       CudaStream& stream);
  // Bytes that create() allocates on the device, except draft_probs(), which the engine counts
  // separately.
  static size_t device_bytes(const DeviceSamplerLimits& limits);

  // Fails with kInvalidArgument if a request's lists exceed the tables. Admission checks requests
  // with the same function, without a sampler (CudaPlatform::check).
  Status check(const SamplingSpec& spec) const { return check_sampling_spec(spec, limits_); }

  // Frees the slots and their rule tables. Steps already enqueued still use them.
  void remove_slots(std::span<const int> slots);
  // Uploads the state of added sequences to their slots. One copy and one kernel upload all of
  // them, unless they need more than a megabyte. Cannot be captured. If check() fails for one of
  // them, no slot is added.
  Status add_slots(std::span<const SlotAdded> added, CudaStream& stream);

  // Plans the next sample(). If rows differ in pass or have masks, uploads both in one copy. Call
  // it once per step, outside of a capture, with at most max_rows rows and masks. masks[mask_idx]
  // is a TokenConstraint::allowed_tokens bitmap.
  Result<SamplePlan> plan(std::span<const LogitsRowUse> rows,
                          std::span<const std::vector<uint32_t>> masks, CudaStream& stream);
  // See SampledSlots::plan_padding().
  SamplePlan plan_padding(int num_rows, bool is_random) const {
    return slots_.plan_padding(num_rows, is_random);
  }

  // Enqueues; capturable. Slot slots[i] (device, as planned; < 0: padding) samples a token from
  // logits[i] (F32 [num_rows, vocab_size], not modified), as if the first offsets[i] (device) of
  // its drafts had been accepted. A slot's span is consecutive logits rows with offsets from 0 to
  // at most num_drafts. By default, its tokens are kept up to the first token that differs from the
  // next draft. With other values of limits.verification, its drafts are accepted accordingly, and
  // the token after them is kept. The slot's state advances by the kept tokens. If a span's first
  // logits are invalid, or no token may be chosen, its slot does not change.
  void sample(const SamplePlan& plan, const TensorView& logits, const int32_t* slots,
              const int32_t* offsets, CudaStream& stream);
  // These functions split sample() into two steps, for ranks that each have the logits of tokens
  // [first_id, first_id + logits.shape[1]). They require a plan that chooses_from_parts().
  // find_best() writes the best token of each row's part to this rank's part of best_of_ranks().
  // The caller gathers the parts of all ranks. Then sample_best() samples the same tokens as
  // sample() would from whole rows.
  void find_best(const SamplePlan& plan, const TensorView& logits, int32_t first_id,
                 const int32_t* slots, const int32_t* offsets, CudaStream& stream);
  void sample_best(const SamplePlan& plan, const int32_t* slots, const int32_t* offsets,
                   CudaStream& stream);
  // Device memory: one part of equal size per rank, in the order of the ranks. The size is 24 bytes
  // per row and rank.
  std::span<std::byte> best_of_ranks(int num_rows) const;
  // Enqueues; capturable. Writes entry 1 + draft_idx of each slot's next_tokens(): the most likely
  // token of the row's logits; among equal tokens, the lowest draft id. With
  // Verification::samples_drafts, it samples the token as platform/drafter.h specifies, and writes
  // the distribution to draft_probs(). For a row with a NaN or without a finite value, it writes
  // the target's id of draft id 0 and a distribution of zeros, because every draft is verified.
  // num_spans <= max_num_seqs; width <= vocab_size. Must follow the step's sample() on the same
  // stream.
  void choose_drafts(const DraftLogits& call, CudaStream& stream);
  // Device, [max_num_seqs]: the number of tokens that each decoding slot has in the KV cache.
  const int32_t* num_computed() const { return parts_.tables.num_computed; }
  // Device, [max_num_seqs, 1 + num_drafts]: each slot's newest token (sampled, or given by
  // add_slots()), then the drafts that follow it, which the caller writes.
  int32_t* next_tokens() const { return parts_.tables.next_tokens; }
  // Device, F32 [max_num_seqs, num_drafts, vocab_size]; null without samples_drafts.
  float* draft_probs() const { return static_cast<float*>(draft_probs_.data()); }

  // The results of the last sample(): RowResult [num_rows], and with log probabilities
  // LogprobsResult [num_rows] after it.
  static size_t results_bytes(int num_rows, bool has_logprobs);
  // Enqueues the only copy of results to the host: to `host` (pinned, results_bytes()).
  void copy_results(const SamplePlan& plan, void* host, CudaStream& stream) const;
  // Reads the span whose first logits row is `row`; the caller sets seq_id.
  static SpanResult read_span(const void* host, int num_rows, bool has_logprobs, int row);

  // Enqueues the computation of log probabilities under logits[i] (F32 [num_rows, vocab_size]), of
  // token targets[i] (device; < 0: none) and of the num_top most likely tokens, into results[i]
  // (device). num_rows <= max_rows.
  void prompt_logprobs(const TensorView& logits, const int32_t* targets, int num_rows, int num_top,
                       LogprobsResult* results, CudaStream& stream);

 private:
  // Parts of the sampler's memory on the device.
  struct Parts {
    SlotTables tables = {};
    RowResult* results = nullptr;  // [max_rows], then LogprobsResult [max_rows]
    SlicePick* picks = nullptr;
    SlicePick* best = nullptr;  // [num_ranks, rows of the step], with several ranks
    SliceLogprobs* slice_logprobs = nullptr;
    uint32_t* arrivals = nullptr;
    RowCut* cuts = nullptr;              // [max_rows]
    VerifiedRow* verified = nullptr;     // [max_rows]
    int32_t* num_accepted = nullptr;     // [max_rows]
    double* synthetic_rates = nullptr;   // [num_drafts]
    SlicePick* draft_picks = nullptr;    // [max_num_seqs, slices]
    RowCut* draft_cuts = nullptr;        // [max_num_seqs]
    int32_t* draft_offsets = nullptr;    // [max_num_seqs] zeros
    uint32_t* draft_arrivals = nullptr;  // [max_num_seqs]
    std::byte* block = nullptr;          // the uploaded slots
    std::byte* plan = nullptr;  // the uploaded plan: RowSampling [num_rows], then masks [..,
                                // bitmap_words]
    size_t num_bytes = 0;
  };

  explicit DeviceSampler(const DeviceSamplerLimits& limits);

  static Parts lay_out(const DeviceSamplerLimits& limits, void* base);

  // Zeroes the state, and uploads the rates of synthetic acceptance.
  void initialize(CudaStream& stream);
  SampleCall make_call(const SamplePlan& plan, const float* logits, const int32_t* slots,
                       const int32_t* offsets) const;
  // Completes a step after its rows have been sampled.
  void commit(const SamplePlan& plan, const SampleCall& call, CudaStream& stream);
  // Samples a token for each logits row.
  void sample_rows(const SamplePlan& plan, const SampleCall& call, CudaStream& stream);
  // Accepts drafts by their probabilities, and samples the tokens after them.
  void verify_drafts(const SamplePlan& plan, const SampleCall& call, CudaStream& stream);
  // Uploads the slots that add_slots() has packed so far.
  Status upload_slots(CudaStream& stream);
  Status upload_plan(const SamplePlan& plan, std::span<const std::vector<uint32_t>> masks,
                     CudaStream& stream);
  LogprobsResult* logprobs_results(int num_rows) const;
  const float* check_logits(const TensorView& logits, int num_rows) const;

  DeviceSamplerLimits limits_;
  int num_sms_ = 0;  // of the stream's device
  Buffer memory_;
  Buffer draft_probs_;
  PinnedRing ring_, plan_ring_;
  SlotUpload upload_;
  SampledSlots slots_;
  Parts parts_;
};

}  // namespace quire::cuda
