// Which backend serves a step of one KV group. Made once at start.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend_set.h"
#include "attn/tuning_table.h"

namespace quire {

// What a decode step is known by: steps of one key run the same kernels.
struct DecodeKey {
  int num_reqs = 0;
  int max_kv_len = 0;
  bool ragged = false;
  bool eager = false;  // planned anew each time, not part of a graph

  friend bool operator==(const DecodeKey&, const DecodeKey&) = default;
};

// Lengths that differ much: their mean is below 3/4 of the longest. Of no requests: false. Which
// backend is the fastest depends on it as on the longest, by more than the tuning's 3 %.
bool is_ragged(std::span<const int32_t> kv_len_bounds);

// A backend, the steps it serves, and why it.
struct AttentionService {
  std::string_view backend;
  int min_size = 0;  // requests of decode, tokens of prefill
  int max_size = 0;
  int max_kv_len = 0;
  bool ragged = false;
  std::string reason = {};  // "forced by --attention-backend", "measured …"
};

class AttentionSelector {
 public:
  // Refuses as BackendSet::select. The backends outlive the selector.
  static Result<AttentionSelector> create(const BackendSet& backends, const AttentionShape& shape,
                                          const Device& device, const ForcedBackend& decode,
                                          const ForcedBackend& prefill,
                                          std::shared_ptr<const TuningTable> table);

  // The forced backend, or the only one; else the fastest by the table of those that take so many
  // query tokens and, in an eager step, plan without delay. Depends on nothing but the arguments,
  // so what a graph was captured with is what its replays plan with.
  AttentionBackend* decode(const DecodeKey& key, int q_len = 1) const;
  AttentionBackend* prefill(int num_reqs, int num_tokens, int max_kv_len) const;

  // Everything that may be chosen, first the preferred: at least one.
  std::span<AttentionBackend* const> candidates(Phase phase) const;
  // A bound for whatever is chosen.
  size_t workspace_bytes(const AttentionLimits& limits) const;

  // Who serves which of these decode steps, ascending as they are: neighbours of one context
  // length, raggedness and backend are one entry.
  std::vector<AttentionService> decode_services(std::span<const DecodeKey> keys) const;
  // The same for prompts of a few lengths.
  std::vector<AttentionService> prefill_services() const;

 private:
  struct Candidates {
    std::vector<AttentionBackend*> backends;
    std::string forced_by;  // the flag; empty: none
  };
  struct Choice {
    AttentionBackend* backend = nullptr;
    const TuningTable::Cell* cell = nullptr;  // what speaks for it, where anything does
    std::vector<std::string_view> among = {};
  };

  static Result<Candidates> find(const BackendSet& backends, const AttentionShape& shape,
                                 Phase phase, const Device& device, const ForcedBackend& forced);
  const Candidates& of(Phase phase) const { return phase == Phase::kDecode ? decode_ : prefill_; }
  Choice choose(Phase phase, const DecodeKey& key, int q_len) const;
  std::string reason(Phase phase, const Choice& choice) const;

  AttentionShape shape_;
  Candidates decode_;
  Candidates prefill_;
  std::shared_ptr<const TuningTable> table_;
};

}  // namespace quire
