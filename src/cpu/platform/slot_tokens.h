// The known tokens of a runner's slots, which drafters on the CPU read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/platform/host_drafter.h"
#include "sched/batch_plan.h"

namespace quire {

class SlotTokens {
 public:
  explicit SlotTokens(const DrafterLimits& limits)
      : q_len_(1 + static_cast<size_t>(limits.num_drafts)),
        tokens_(static_cast<size_t>(limits.max_num_seqs)) {}

  // Applies the plan's removed and added slots.
  void update(const BatchPlan& plan) {
    for (const int slot : plan.slots_removed) tokens_[static_cast<size_t>(slot)] = {};
    for (const SlotAdded& added : plan.slots_added) {
      tokens_[static_cast<size_t>(added.slot)] = added.token_ids.get();
    }
  }

  // Appends the tokens that the step has sampled for the slot. The slot's next tokens begin with
  // the newest one and still have the drafts that the step verified: the accepted ones precede the
  // newest token in the sequence.
  void append_sampled(const HostDraftCall& call, int slot) {
    std::vector<int32_t>& tokens = tokens_[static_cast<size_t>(slot)];
    const auto num_computed = static_cast<size_t>(call.num_computed[slot]);
    if (num_computed < tokens.size()) return;
    const std::span<const int32_t> next = next_tokens(call, slot);
    // More tokens than drafts are missing only after a step that failed, because its results are
    // lost.
    const size_t num_accepted = std::min(num_computed - tokens.size(), next.size() - 1);
    const std::span<const int32_t> accepted = next.subspan(1, num_accepted);
    tokens.insert(tokens.end(), accepted.begin(), accepted.end());
    tokens.push_back(next.front());
  }

  const std::vector<int32_t>& of(int slot) const { return tokens_[static_cast<size_t>(slot)]; }

  // The slot's entries of HostDraftCall::next_tokens.
  std::span<int32_t> next_tokens(const HostDraftCall& call, int slot) const {
    return {call.next_tokens + static_cast<size_t>(slot) * q_len_, q_len_};
  }
  // The slot's entries of HostDraftCall::confidences.
  std::span<float> confidences(const HostDraftCall& call, int slot) const {
    return {call.confidences + static_cast<size_t>(slot) * (q_len_ - 1), q_len_ - 1};
  }

 private:
  size_t q_len_;
  std::vector<std::vector<int32_t>> tokens_;
};

}  // namespace quire
