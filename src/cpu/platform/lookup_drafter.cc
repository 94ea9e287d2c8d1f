#include "cpu/platform/lookup_drafter.h"

#include "cpu/platform/slot_tokens.h"

namespace quire {
namespace {

class LookupDrafter final : public HostDrafter {
 public:
  LookupDrafter(const LookupConfig& config, const DrafterLimits& limits, ThreadPool& pool)
      : config_(config), pool_(pool), tokens_(limits) {}

  Status update_slots(const BatchPlan& plan) override {
    tokens_.update(plan);
    return {};
  }

  Status propose(const HostDraftCall& call) override {
    pool_.parallel_for(call.num_spans, [&](int64_t i) {
      const int slot = call.slots[i];
      if (slot < 0) return;
      tokens_.append_sampled(call, slot);
      const std::span drafts =
          tokens_.next_tokens(call, slot).subspan(1, static_cast<size_t>(call.num_wanted[i]));
      const bool found = !drafts.empty() && look_up_drafts(tokens_.of(slot), config_, drafts,
                                                           tokens_.confidences(call, slot));
      call.num_proposed[slot] = found ? call.num_wanted[i] : 0;
    });
    return {};
  }

 private:
  LookupConfig config_;
  ThreadPool& pool_;
  SlotTokens tokens_;
};

}  // namespace

std::shared_ptr<HostDrafter> make_lookup_drafter(const LookupConfig& config,
                                                 const DrafterLimits& limits, ThreadPool& pool) {
  return std::make_shared<LookupDrafter>(config, limits, pool);
}

}  // namespace quire
