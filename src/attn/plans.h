// The plans of one KV group: made at start, all of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attn/selector.h"

namespace quire {

class AttentionPlans {
 public:
  // Makes a plan for every backend that the selector may choose in a step that no graph holds, and
  // one for each (requests, query length, backend) that serves any of the `keys` of graphs.
  // `largest` bounds the batches of all uses. Where a backend's plan cannot be made, the selector
  // leaves it out, and others serve.
  static Result<AttentionPlans> make(AttentionSelector& selector, const PlanLimits& largest,
                                     std::span<const DecodeKey> keys);

  // For a step of such a use that the selector gave to the backend; for one in a graph, of exactly
  // num_reqs requests.
  AttentionPlan& find(const AttentionUse& use, const AttentionBackend& backend,
                      int num_reqs = 0) const;
  // Scratch that suffices for every plan.
  size_t workspace_bytes() const;

 private:
  struct Key {
    AttentionUse use;
    AttentionBackend* backend = nullptr;
    int num_reqs = 0;  // in a graph
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::unique_ptr<AttentionPlan> plan;
  };

  static std::vector<Key> wanted(const AttentionSelector& selector,
                                 std::span<const DecodeKey> keys);

  std::vector<Entry> entries_;  // query lengths ascend: the first that is long enough serves
};

}  // namespace quire
