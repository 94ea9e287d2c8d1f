// The parts that drafters with a model share: the inputs of one pass of the model, the target's
// hidden states, the choice of a draft from logits, and the buffers of all of these.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpu/platform/host_drafter.h"
#include "cpu/platform/host_runner.h"
#include "cpu/platform/slot_tokens.h"
#include "platform/batch_inputs.h"
#include "platform/runner.h"
#include "quire/status.h"

namespace quire {

// Consecutive positions of a sequence that a pass computes.
struct DraftChunk {
  size_t span_idx = 0;                      // of the call
  int first = 0;                            // position
  std::span<const int32_t> token_ids = {};  // the tokens that the model reads at these positions
  int first_row = 0;                        // TapReader only: row of `first` in the target's step
};

// Returns the number of tokens that fit the sequence's blocks and the drafter's context.
int draft_capacity(const SeqSpan& span, const ModelLimits& limits);

class DraftPass {
 public:
  // `stream`: the stream of the model's operations, which must outlive the object.
  DraftPass(const DraftModelParts& parts, Stream& stream) : parts_(parts), stream_(stream) {}
  DraftPass(const DraftPass&) = delete;
  DraftPass& operator=(const DraftPass&) = delete;

  // Builds the inputs of a pass over the chunks. Chunks of one token come first, because the model
  // may treat them as decoding. The result is valid until the next call.
  Result<StepInput> build(const HostDraftCall& call, std::span<const DraftChunk> chunks);
  // Does the same, but with every chunk as a prompt, for a model that computes chunks of any length
  // in the same way.
  Result<StepInput> build_prompts(const HostDraftCall& call, std::span<const DraftChunk> chunks);
  // The span of chunk c, in the tokens of the pass.
  const SeqSpan& span(size_t c) const { return pass_.spans[c]; }

 private:
  Result<StepInput> build_inputs(const HostDraftCall& call, std::span<const DraftChunk> chunks,
                                 int num_decode);

  DraftModelParts parts_;
  Stream& stream_;
  StepAttention attention_{parts_.instance, parts_.workspace};
  BatchPlan pass_;
  std::vector<SlotView> views_;
  BatchInputs inputs_;
  std::vector<const AttentionBatch*> batches_;
};

// The target's hidden states, as a model that reads taps combines them.
class TappedStates {
 public:
  // Each buffer is [max_num_tokens, state_width()] of the model, which reads the taps.
  static Result<TappedStates> allocate(const DraftModelParts& parts, const TapReader& model,
                                       Ops& ops);

  // Combines the taps of the call's step, and writes the states of the chunks' positions to the
  // first rows().
  void read(const HostDraftCall& call, TapReader& model, std::span<const DraftChunk> chunks,
            Ops& ops);
  TensorView rows(int64_t count) const { return hidden_.view.rows(0, count); }

 private:
  Model* target_ = nullptr;
  Tensor combined_;  // of each token of the target's step
  Tensor hidden_;    // of each token of a pass
};

// Chooses drafts by the sampling of each slot's request.
class DraftChooser {
 public:
  explicit DraftChooser(const DrafterLimits& limits)
      : limits_(limits), sampling_(static_cast<size_t>(limits.max_num_seqs)) {}

  // Applies the plan's added slots.
  void update(const BatchPlan& plan);
  // Chooses the slot's next draft, and writes its confidence and HostDraftCall::probs. target_ids:
  // the result of TapReader::target_ids(). Returns the target's id of the draft, or nullopt if the
  // logits have a NaN or no finite value; this is logged once.
  std::optional<int32_t> choose(const HostDraftCall& call, int slot, std::span<const float> logits,
                                std::span<const int32_t> target_ids = {}) const;

 private:
  std::optional<int32_t> try_choose(const HostDraftCall& call, int slot,
                                    std::span<const float> logits,
                                    std::span<const int32_t> target_ids) const;

  DrafterLimits limits_;
  std::vector<std::shared_ptr<const SamplingSpec>> sampling_;  // by slot
  mutable std::once_flag has_warned_;
};

// The limits of a drafter with a model, and its state between the passes of the model.
struct DraftBuffers {
  // `own_device` must outlive the object.
  DraftBuffers(const DraftModelParts& from, const DrafterLimits& own_limits, HostDevice& own_device)
      : parts(from),
        limits(own_limits),
        device(own_device),
        pass(parts, own_device.ops->stream()),
        tokens(limits),
        chooser(limits) {}
  // `reader` is the model; null: it does not read the target's hidden states.
  Status allocate(const TapReader* reader);

  // Applies the plan's removed and added slots.
  void update_slots(const BatchPlan& plan);
  Ops& ops() const { return *device.ops; }
  // Returns draft_capacity() with the limits of the model.
  int capacity(const SeqSpan& span) const { return draft_capacity(span, parts.limits); }
  std::span<float> logits_row(int64_t row) const;

  const DraftModelParts parts;
  const DrafterLimits limits;
  HostDevice& device;
  DraftPass pass;
  SlotTokens tokens;
  DraftChooser chooser;
  TappedStates states;  // only with a TapReader
  Tensor logits;        // F32 [max_num_logit_rows, vocab_size], with both sizes of the model
};

}  // namespace quire
