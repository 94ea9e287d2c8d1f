#include "engine/recorded_drafter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/platform/host_drafter.h"

namespace quire::testing {
namespace {

class RecordedDrafter final : public HostDrafter {
 public:
  RecordedDrafter(const RecordedOutputs& outputs, const DrafterLimits& limits,
                  NumProposals num_proposals)
      : outputs_(outputs),
        limits_(limits),
        num_proposals_(std::move(num_proposals)),
        slots_(static_cast<size_t>(limits.max_num_seqs)) {}

  Status update_slots(const BatchPlan& plan) override {
    for (const SlotAdded& added : plan.slots_added) {
      const auto end = added.token_ids.begin() + added.num_prompt_tokens;
      Slot& slot = slots_[static_cast<size_t>(added.slot)];
      slot = {.seed = added.seq_id, .tokens = {added.token_ids.begin(), end}};
      const std::vector<int32_t>& output = outputs_.at(slot.tokens);
      slot.tokens.insert(slot.tokens.end(), output.begin(), output.end());
    }
    return {};
  }

  Status propose(const HostDraftCall& call) override {
    const auto q_len = static_cast<size_t>(1 + limits_.num_drafts);
    for (int i = 0; i < call.num_spans; ++i) {
      if (call.slots[i] < 0) continue;
      const auto slot_idx = static_cast<size_t>(call.slots[i]);
      const Slot& slot = slots_[slot_idx];
      const std::span next(call.next_tokens + slot_idx * q_len, q_len);
      const int num_computed = call.num_computed[slot_idx];
      int count = call.num_wanted[i];
      if (num_proposals_) count = std::min(count, num_proposals_(call.slots[i], num_computed));
      const auto num_read = static_cast<size_t>(1 + count);
      draft_tokens(slot.tokens, slot.seed, num_computed, limits_.vocab_size,
                   next.first(num_read).subspan(1));
      std::ranges::fill(next.subspan(num_read), std::numeric_limits<int32_t>::min());
      call.num_proposed[slot_idx] = count;
    }
    return {};
  }

 private:
  struct Slot {
    uint64_t seed = 0;
    std::vector<int32_t> tokens;  // of prompt and output
  };

  const RecordedOutputs& outputs_;
  DrafterLimits limits_;
  NumProposals num_proposals_;
  std::vector<Slot> slots_;
};

}  // namespace

void draft_tokens(std::span<const int32_t> known, uint64_t seed, int num_computed, int vocab_size,
                  std::span<int32_t> drafts) {
  uint64_t luck = (seed * 1000003 + static_cast<uint64_t>(num_computed)) * 0x9E3779B97F4A7C15ULL;
  luck ^= luck >> 29;
  const size_t num_right = luck % (drafts.size() + 1);
  for (size_t i = 0; i < drafts.size(); ++i) {
    const size_t position = static_cast<size_t>(num_computed) + 1 + i;
    const int32_t token = position < known.size() ? known[position] : 0;
    drafts[i] = i < num_right ? token : (token + 1) % vocab_size;
  }
}

std::shared_ptr<Drafter> make_recorded_drafter(const RecordedOutputs& outputs,
                                               const DrafterLimits& limits,
                                               NumProposals num_proposals) {
  return std::make_shared<RecordedDrafter>(outputs, limits, std::move(num_proposals));
}

}  // namespace quire::testing
