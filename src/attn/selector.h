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

// What a user asks for: names of backends, or auto.
struct BackendWishes {
  // --attention-backend: serves each phase that it can and that no other flag names; auto serves
  // the rest, and remarks() says so.
  std::string_view any = "auto";
  // --decode-attention-backend, --prefill-attention-backend: this one or none. Empty: `any`.
  std::string_view decode = {};
  std::string_view prefill = {};
};

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
  // Refuses as BackendSet::select, and a wish that no phase comes of. The backends outlive the
  // selector.
  static Result<AttentionSelector> create(const BackendSet& backends, const AttentionShape& shape,
                                          const Device& device, const BackendWishes& wishes,
                                          std::shared_ptr<const TuningTable> table);

  // AttentionBackend::prepare of every candidate, where it wants to know with the sizes of the
  // graphs that these decode steps would put it into. One that fails is left out where others
  // serve, and remarks() says so.
  Status prepare(const AttentionLimits& limits, std::span<const DecodeKey> keys);

  // The forced backend, or the only one; else the fastest by the table of those that take so many
  // query tokens and, in an eager step, any number of requests. Depends on nothing but the
  // arguments, so what a graph was captured with is what its replays plan with.
  AttentionBackend* decode(const DecodeKey& key, int q_len = 1) const;
  AttentionBackend* prefill(int num_reqs, int num_tokens, int max_kv_len) const;

  // Everything that may be chosen, first the preferred: at least one.
  std::span<AttentionBackend* const> candidates(Phase phase) const;
  // What was wished for, or could have been chosen, and is not: a sentence each.
  std::span<const std::string> remarks() const { return remarks_; }
  // A bound for whatever is chosen, after prepare().
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

  Status find(const BackendSet& backends, const Device& device, Phase phase,
              const BackendWishes& wishes);
  std::vector<int> graph_sizes(const AttentionBackend& backend,
                               std::span<const DecodeKey> keys) const;
  Candidates& of(Phase phase) { return phase == Phase::kDecode ? decode_ : prefill_; }
  const Candidates& of(Phase phase) const { return phase == Phase::kDecode ? decode_ : prefill_; }
  Choice choose(Phase phase, const DecodeKey& key, int q_len) const;
  std::string reason(Phase phase, const Choice& choice) const;

  AttentionShape shape_;
  Candidates decode_;
  Candidates prefill_;
  std::vector<std::string> remarks_;
  std::shared_ptr<const TuningTable> table_;
};

}  // namespace quire
