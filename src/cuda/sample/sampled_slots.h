// The host's part of the sampling slots. It packs their state for upload, and decides which kernels
// sample which logits row and which rule table a sequence holds. The device has no part in these
// decisions. So a step launches only the kernels that it needs, and penalties, filters and log
// probabilities cost time only for the rows that request them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers.h"
#include "cuda/sample/sample_kernels.h"
#include "quire/status.h"
#include "sample/rejection.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

struct DeviceSamplerLimits {
  int max_num_seqs = 0;   // slots
  int max_rule_seqs = 0;  // maximum number of slots with rules (sched/policy.h, has_rules)
  int max_rows = 0;       // logits rows of one call
  int vocab_size = 0;     // at most kMaxSlices * kSliceSize
  int max_tokens_per_seq = 0;
  int num_drafts = 0;  // tokens of a span besides the first
  Verification verification = {};
  // The number of ranks that each have the logits of a part of the vocabulary, and the index of
  // this rank.
  int rank = 0;
  int num_ranks = 1;

  int bitmap_words() const { return ceil_div(vocab_size, 32); }
  int tail_size() const;
  // Tables without memory; only their sizes are set.
  SlotTables sizes() const;
  // Upper bound of one slot's bytes in a block.
  size_t max_slot_bytes() const;
};

// Fails with kInvalidArgument if a request's lists exceed the device's tables.
Status check_sampling_spec(const SamplingSpec& spec, const DeviceSamplerLimits& limits);

// Packs the slots of added sequences for upload: headers, then one list of words.
class SlotUpload {
 public:
  explicit SlotUpload(const DeviceSamplerLimits& limits) : limits_(limits) {}

  // `added` has passed check_sampling_spec. The caller sets the returned state's table if the state
  // has flags. The reference is valid until the next append.
  SlotState& append(const SlotAdded& added);
  int num_slots() const { return static_cast<int>(headers_.size()); }
  size_t num_bytes() const;
  void write(std::byte* block) const;
  void clear();

 private:
  void append_lists(const SlotAdded& added, UploadedSlot& slot);
  void append_biases(const SamplingParams& params, UploadedSlot& slot);
  void append_bad_words(const SlotAdded& added, UploadedSlot& slot);
  WordSpan append_words(std::span<const int32_t> words);
  WordSpan append_bitmap(std::span<const int32_t> ids);

  DeviceSamplerLimits limits_;
  std::vector<UploadedSlot> headers_;
  std::vector<int32_t> words_;
  std::vector<int32_t> scratch_;
};

// One logits row of a step.
struct LogitsRowUse {
  int slot = -1;      // of its sequence; -1: padding
  int offset = 0;     // drafts of its span before it; a span's rows are consecutive
  int mask_idx = -1;  // of the step's token masks; -1: none
};

// One step's sampling: which kernels sample which logits row.
struct SamplePlan {
  std::vector<RowSampling> rows;                  // one per logits row
  std::array<int, kNumSamplePasses> counts = {};  // rows of each pass
  bool is_random = false;                         // at least one row of kOnePass is not greedy
  bool has_logprobs = false;                      // at least one row requests log probabilities
  bool has_masks = false;

  int num_rows() const { return static_cast<int>(rows.size()); }
  int num_rows_of(SamplePass pass) const { return counts[static_cast<size_t>(pass)]; }
  // Whether the kernels need `rows`. Otherwise one pass samples all rows, without masks.
  bool is_mixed() const;
  // Whether every row's token can be chosen from the best token of each rank's part of the logits.
  // Rules, filters and log probabilities need whole rows. SamplerState::chooses_from_parts() has
  // the same rule.
  bool chooses_from_parts() const {
    return num_rows_of(SamplePass::kOnePass) == num_rows() && !has_logprobs;
  }
};

// Host copy of each slot's sampling state: its pass, its remaining min_tokens and its rule table.
class SampledSlots {
 public:
  // No row is planned for a pass before `first_pass`.
  SampledSlots(int num_slots, int num_tables, SamplePass first_pass = SamplePass::kOnePass);

  // Removes the slot's sequence and frees its table.
  void remove(int slot);
  // Adds a sequence to `slot` in place of any earlier one. Returns its rule table, or -1 if `flags`
  // (of its SlotState) need none. The scheduler admits at most as many sequences with rules as
  // there are tables.
  int add(int slot, const SlotState& state);
  // Plans the next step. Each span yields at least one token, and the plan counts one towards
  // min_tokens. The kernels count exactly, so a sequence that stays in kRules for too long is only
  // slower.
  SamplePlan plan(std::span<const LogitsRowUse> rows);
  // A plan of padding rows only. is_random: it uses the kernels for rows that are not greedy.
  SamplePlan plan_padding(int num_rows, bool is_random) const;

 private:
  struct Slot {
    SamplePass pass = SamplePass::kOnePass;  // pass after min_tokens is reached
    int min_tokens_left = 0;                 // while positive: kRules
    int table = -1;
    bool is_random = false;
    bool wants_logprobs = false;
  };

  SamplePass first_pass_;
  std::vector<Slot> slots_;
  std::vector<int> free_tables_;
};

}  // namespace quire::cuda
