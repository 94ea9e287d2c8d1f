// All attention plans of one KV group, made at start.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attn/selection.h"

namespace quire {

class AttentionPlans {
 public:
  // Makes a plan for every backend that the selector may choose for an eager step, and one for each
  // (requests, query length, backend) of the graphs among `keys`. `largest` limits the batches of
  // all uses. If a backend cannot make a plan, removes it from the selector, so that others serve
  // its steps.
  static Result<AttentionPlans> make(AttentionSelector& selector, const PlanLimits& largest,
                                     std::span<const DecodeKey> keys);

  // Returns the plan for a step of this use for which the selector chose `backend`. A graph's plan
  // serves exactly num_reqs requests.
  AttentionPlan& find(const AttentionUse& use, const AttentionBackend& backend,
                      int num_reqs = 0) const;
  // The largest workspace_bytes() of all plans.
  size_t workspace_bytes() const;

 private:
  struct Key {
    AttentionUse use;
    AttentionBackend* backend = nullptr;
    int num_reqs = 0;  // only set in a graph
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::unique_ptr<AttentionPlan> plan;
  };

  // The keys of all plans that the selector may require.
  static std::vector<Key> wanted(const AttentionSelector& selector,
                                 std::span<const DecodeKey> keys);

  std::vector<Entry> entries_;  // by ascending query length: the first plan that is long enough
                                // serves a step
};

}  // namespace quire
