#include "attn/plans.h"

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

PlanLimits limits_of(const AttentionUse& use, int num_reqs, const PlanLimits& largest) {
  if (use.in_graph) {
    return {.use = use,
            .max_num_reqs = num_reqs,
            .max_num_tokens = num_reqs * use.q_len,
            .max_kv_len = largest.max_kv_len};
  }
  PlanLimits limits = largest;
  limits.use = use;
  if (use.phase == Phase::kDecode) {
    limits.max_num_tokens = std::min(largest.max_num_tokens, largest.max_num_reqs * use.q_len);
  }
  return limits;
}

}  // namespace

std::vector<AttentionPlans::Key> AttentionPlans::wanted(const AttentionSelector& selector,
                                                        std::span<const DecodeKey> keys) {
  std::vector<Key> wanted;
  for (const AttentionUse& use : selector.eager_uses()) {
    for (AttentionBackend* backend : selector.candidates(use)) wanted.push_back({use, backend});
  }
  for (const DecodeKey& key : keys) {
    if (key.eager) continue;
    const Key graph_key = {key.use(), selector.decode(key), key.num_reqs};
    if (std::ranges::find(wanted, graph_key) == wanted.end()) wanted.push_back(graph_key);
  }
  return wanted;
}

Result<AttentionPlans> AttentionPlans::make(AttentionSelector& selector, const PlanLimits& largest,
                                            std::span<const DecodeKey> keys) {
  AttentionPlans plans;
  std::vector<Entry>& made = plans.entries_;
  std::vector<Key> missing = wanted(selector, keys);
  while (!missing.empty()) {
    const Key key = missing.back();
    missing.pop_back();
    auto plan = key.backend->make_plan(selector.shape(key.use.phase),
                                       limits_of(key.use, key.num_reqs, largest));
    if (plan.ok()) {
      made.push_back({key, std::move(*plan)});
      continue;
    }
    QUIRE_RETURN_IF_ERROR(selector.remove_backend(*key.backend, key.use.phase, plan.status()));
    // The steps that this backend would have served need plans of other backends.
    std::erase_if(made, [&](const Entry& entry) {
      return entry.key.backend == key.backend && entry.key.use.phase == key.use.phase;
    });
    missing = wanted(selector, keys);
    std::erase_if(missing, [&](const Key& other) {
      return std::ranges::find(made, other, &Entry::key) != made.end();
    });
  }
  std::ranges::sort(made, {}, [](const Entry& entry) { return entry.key.use.q_len; });
  return plans;
}

AttentionPlan& AttentionPlans::find(const AttentionUse& use, const AttentionBackend& backend,
                                    int num_reqs) const {
  const auto serves = [&](const Entry& entry) {
    const AttentionUse& planned = entry.key.use;
    if (entry.key.backend != &backend || planned.phase != use.phase ||
        planned.in_graph != use.in_graph) {
      return false;
    }
    if (use.in_graph) return planned.q_len == use.q_len && entry.key.num_reqs == num_reqs;
    return use.phase == Phase::kPrefill || planned.q_len >= use.q_len;
  };
  const auto found = std::ranges::find_if(entries_, serves);
  QUIRE_CHECK(found != entries_.end(), "[attention] no plan serves this step");
  return *found->plan;
}

size_t AttentionPlans::workspace_bytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes = std::max(bytes, entry.plan->workspace_bytes());
  return bytes;
}

}  // namespace quire
