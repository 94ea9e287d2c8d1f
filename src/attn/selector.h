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

// The part of a decode step that selection reads: steps of one key run the same kernels.
struct DecodeKey {
  int num_reqs = 0;
  int max_kv_len = 0;
  bool ragged = false;
  bool eager = false;  // planned anew each time, not part of a graph
  int q_len = 1;       // query tokens of every request

  AttentionUse use() const { return {.phase = Phase::kDecode, .q_len = q_len, .in_graph = !eager}; }

  friend bool operator==(const DecodeKey&, const DecodeKey&) = default;
};

// The key of the batch's decode range, from the host's upper bounds. Says nothing of graphs.
DecodeKey decode_key(const AttentionBatch& batch);

// Lengths that differ much: their mean is below 3/4 of the longest. Of no requests: false. Which
// backend is the fastest depends on it as on the longest, by more than the tuning's 3 %.
bool is_ragged(std::span<const int32_t> kv_len_bounds);

// The flags of a user: names of backends, or auto.
struct BackendPreference {
  // --attention-backend: serves each use that it can and that no other flag names; auto serves the
  // rest, and remarks() says so.
  std::string_view any = "auto";
  // --decode-attention-backend, --prefill-attention-backend: this one or none. Empty: `any`.
  std::string_view decode = {};
  std::string_view prefill = {};
};

// The shapes of one KV group.
struct PhaseShapes {
  AttentionShape decode;
  AttentionShape prefill;

  const AttentionShape& of(Phase phase) const { return phase == Phase::kDecode ? decode : prefill; }
};

// A backend, the steps it serves, and why this one.
struct AttentionService {
  std::string_view backend;
  int min_size = 0;  // requests of decode, tokens of prefill
  int max_size = 0;
  int max_kv_len = 0;
  bool ragged = false;
  int q_len = 1;            // of decode
  std::string reason = {};  // "forced by --attention-backend", "measured …"
};

class AttentionSelector {
 public:
  // For decode steps of these query lengths, ascending, eager and in graphs, and for prompts.
  // Refuses as BackendSet::select does, and a preference that serves nothing. The backends outlive
  // the selector.
  static Result<AttentionSelector> create(const BackendSet& backends, const PhaseShapes& shapes,
                                          const Device& device, const BackendPreference& preference,
                                          std::shared_ptr<const TuningTable> table,
                                          std::span<const int> q_lens);

  // The forced backend, or the only one; else the fastest by the table of those that serve such
  // steps. A query length between those of create() counts as the next longer one. Depends on
  // nothing but the arguments, so what a graph was captured with is what its replays use.
  AttentionBackend* decode(const DecodeKey& key) const;
  AttentionBackend* prefill(int num_reqs, int num_tokens, int max_kv_len) const;

  const AttentionShape& shape(Phase phase) const { return shapes_.of(phase); }
  // Every backend that may be chosen for such steps, the preferred first: at least one.
  std::span<AttentionBackend* const> candidates(const AttentionUse& use) const {
    return of(use).backends;
  }
  // The uses of create() that no graph holds: each query length of decode, and prompts.
  std::vector<AttentionUse> eager_uses() const;
  // `backend` cannot be planned for a phase: others serve it, and remarks() says so. Returns the
  // reason as an error where no other serves.
  Status leave_out(const AttentionBackend& backend, Phase phase, const Status& reason);
  // One sentence for each backend that a flag asked for, or that could serve, and that is not
  // chosen.
  std::span<const std::string> remarks() const { return remarks_; }

  // Which backend serves which of these decode steps, ascending as they are: neighbours of one
  // query length, context length, raggedness and backend are one entry.
  std::vector<AttentionService> decode_services(std::span<const DecodeKey> keys) const;
  // The same for prompts of a few lengths.
  std::vector<AttentionService> prefill_services() const;

 private:
  struct Candidates {
    AttentionUse use;
    std::vector<AttentionBackend*> backends;
    std::string forced_by;  // the flag; empty: none
    // The backends' names, and the part of the table that decides among them.
    std::vector<std::string_view> names = {};
    TuningTable table = {};
  };
  struct Choice {
    AttentionBackend* backend = nullptr;
    const TuningTable::Cell* cell = nullptr;  // what speaks for it, where anything does
  };

  const Candidates& of(const AttentionUse& use) const;
  void set_backends(Candidates& candidates, std::vector<AttentionBackend*> backends) const;
  void add_remark(std::string remark);
  static Choice choose(const Candidates& candidates, const TuningPoint& point);
  Choice choose_decode(const DecodeKey& key) const;
  Choice choose_prefill(int num_reqs, int num_tokens, int max_kv_len) const;
  static std::string reason(const Candidates& candidates, const Choice& choice);

  PhaseShapes shapes_;
  std::vector<Candidates> candidates_;  // one per use; query lengths ascend
  std::vector<std::string> remarks_;
  std::shared_ptr<const TuningTable> table_;
};

}  // namespace quire
