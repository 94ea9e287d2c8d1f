#include "cpu/platform/lookup_drafter.h"

#include <algorithm>
#include <vector>

namespace quire {
namespace {

class LookupDrafter final : public Drafter {
 public:
  LookupDrafter(const LookupConfig& config, const DrafterLimits& limits, ThreadPool& pool)
      : config_(config),
        q_len_(1 + static_cast<size_t>(limits.num_drafts)),
        pool_(pool),
        tokens_(static_cast<size_t>(limits.max_num_seqs)) {}

  Status update_slots(const BatchPlan& plan, Stream& /*stream*/) override {
    for (const int slot : plan.slots_removed) tokens_[static_cast<size_t>(slot)] = {};
    for (const SlotAdded& added : plan.slots_added) {
      tokens_[static_cast<size_t>(added.slot)] = added.token_ids.get();
    }
    return {};
  }

  Status propose(const DraftCall& call, Stream& /*stream*/) override {
    pool_.parallel_for(call.num_spans, [&](int64_t i) {
      if (call.slots[i] < 0) return;
      const auto slot = static_cast<size_t>(call.slots[i]);
      propose(static_cast<size_t>(call.num_computed[slot]),
              std::span(call.next_tokens + slot * q_len_, q_len_), tokens_[slot]);
    });
    return {};
  }

 private:
  // `next` has the newest token, and still the drafts that the step has verified: the accepted ones
  // precede the newest token in the sequence.
  void propose(size_t num_computed, std::span<int32_t> next, std::vector<int32_t>& tokens) {
    const std::span<int32_t> drafts = next.subspan(1);
    if (num_computed >= tokens.size()) {
      const std::span<int32_t> accepted = drafts.first(num_computed - tokens.size());
      tokens.insert(tokens.end(), accepted.begin(), accepted.end());
      tokens.push_back(next.front());
    }
    if (!look_up_drafts(tokens, config_, drafts)) std::ranges::fill(drafts, next.front());
  }

  LookupConfig config_;
  size_t q_len_;
  ThreadPool& pool_;
  std::vector<std::vector<int32_t>> tokens_;  // by slot: the known tokens
};

}  // namespace

std::unique_ptr<Drafter> make_lookup_drafter(const LookupConfig& config,
                                             const DrafterLimits& limits, ThreadPool& pool) {
  return std::make_unique<LookupDrafter>(config, limits, pool);
}

}  // namespace quire
