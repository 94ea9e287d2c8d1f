// The selection of attention backends. Its inputs are the backends of this build (BackendSet), the
// user's preference and the tuning table; AttentionSelector selects for the steps of one KV group.
// report_selection() lists which backend serves which steps, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"
#include "attn/tuning_table.h"

namespace quire {

// The backends that the configuration names; "auto": any.
struct BackendPreference {
  // EngineConfig::attention_backend: serves each use that it supports, unless `decode` or `prefill`
  // names another backend. The other uses are selected as with auto, and remarks() reports that.
  std::string_view any = "auto";
  // EngineConfig::decode_attention_backend and prefill_attention_backend: only this backend may
  // serve the phase. Empty: `any`.
  std::string_view decode = {};
  std::string_view prefill = {};
  std::string_view any_option = "`attention_backend`";  // the setting of `any`, for errors

  // The field `decode` or `prefill`.
  std::string_view own(Phase phase) const { return phase == Phase::kDecode ? decode : prefill; }
  // The backend that the configuration names for the phase: own(), otherwise `any`. Only own()
  // excludes the other backends; see AttentionSelector::create() for `any`.
  std::string_view name(Phase phase) const { return own(phase).empty() ? any : own(phase); }
  bool is_forced(Phase phase) const { return !name(phase).empty() && name(phase) != "auto"; }
  // The setting that names the phase's backend, for errors.
  std::string_view option(Phase phase) const;
};

class BackendSet {
 public:
  // Adds a backend. Must be called in order of preference; names are unique.
  void add(std::unique_ptr<AttentionBackend> backend);

  std::vector<std::string_view> names() const;
  const std::vector<std::unique_ptr<AttentionBackend>>& all() const { return backends_; }

  // All backends that support the shape in this use on this device, in order of preference.
  // A backend with reasons_to_prefer_others is returned only if no other backend supports the
  // shape.
  std::vector<AttentionBackend*> supporting(const AttentionShape& shape, const AttentionUse& use,
                                            const Device& device) const;

  // Returns the backend that the preference forces for the use's phase, otherwise supporting().
  // Fails if the forced backend cannot serve the use, or if supporting() is empty. The error is
  // invalid_argument, with each reason against the forced backend or against all backends.
  Result<std::vector<AttentionBackend*>> select(const AttentionShape& shape,
                                                const AttentionUse& use, const Device& device,
                                                const BackendPreference& preference) const;
  // Why the backend that the preference names cannot serve the use, for messages. It must be in the
  // set.
  std::string refusal(const AttentionShape& shape, const AttentionUse& use, const Device& device,
                      const BackendPreference& preference) const;
  // If only backends with reasons_to_prefer_others support the shape: a message with these reasons,
  // and with the reasons against the other backends. Otherwise empty.
  std::string why_slow(const AttentionShape& shape, const AttentionUse& use,
                       const Device& device) const;

 private:
  // Every reason of every backend that does not support the shape.
  std::string list_refusals(const AttentionShape& shape, const AttentionUse& use,
                            const Device& device) const;
  AttentionBackend* find(std::string_view name) const;  // null: not in the set

  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

// The properties of a decode step that select its backend. Steps with equal keys run the same
// kernels.
struct DecodeKey {
  int num_reqs = 0;
  int max_kv_len = 0;
  bool ragged = false;
  bool eager = false;  // planned in each step instead of captured in a graph
  int q_len = 1;       // query tokens of every request

  AttentionUse use() const { return {.phase = Phase::kDecode, .q_len = q_len, .in_graph = !eager}; }

  friend bool operator==(const DecodeKey&, const DecodeKey&) = default;
};

// The key of the batch's decode range, from the host's upper bounds. Does not set `eager`.
DecodeKey decode_key(const AttentionBatch& batch);

// Whether the mean length is below 3/4 of the longest; false without requests. Raggedness is a part
// of the key because it can change the fastest backend. The difference in time then exceeds the 1 %
// that TuningTable ignores.
bool is_ragged(std::span<const int32_t> kv_len_bounds);

// The attention shapes of one KV group.
struct PhaseShapes {
  AttentionShape decode;
  AttentionShape prefill;

  const AttentionShape& of(Phase phase) const { return phase == Phase::kDecode ? decode : prefill; }
};

// A backend, the steps that it serves, and the reason for the choice.
struct AttentionService {
  std::string_view backend;
  int min_size = 0;  // requests for decode, tokens for prefill
  int max_size = 0;
  int max_kv_len = 0;
  bool ragged = false;
  int q_len = 1;            // decode only
  std::string reason = {};  // "forced by `attention_backend`", "measured …"; may be empty
};

// Selects the backend for the steps of one KV group. It is created once, at start.
class AttentionSelector {
 public:
  // Selects for decode steps of these query lengths (ascending; eager and in graphs) and for
  // prompts. Fails if no backend supports a use, if the backend of `decode` or `prefill` does not
  // support every use of its phase, or if the backend of `any` supports none. The backends must
  // outlive the selector.
  static Result<AttentionSelector> create(const BackendSet& backends, const PhaseShapes& shapes,
                                          const Device& device, const BackendPreference& preference,
                                          std::shared_ptr<const TuningTable> table,
                                          std::span<const int> q_lens);

  // Returns the forced backend, or the only candidate, or the fastest candidate according to the
  // table. A query length between two lengths of create() counts as the longer one. The result
  // depends only on the arguments, so replays of a graph choose the backend with which it was
  // captured.
  AttentionBackend* decode(const DecodeKey& key) const;
  AttentionBackend* prefill(int num_reqs, int num_tokens, int max_kv_len) const;

  const AttentionShape& shape(Phase phase) const { return shapes_.of(phase); }
  // The backends that may be chosen for steps of this use, in order of preference; never empty.
  std::span<AttentionBackend* const> candidates(const AttentionUse& use) const {
    return of(use).backends;
  }
  // The eager uses of create(): each query length of decode, and prompts.
  std::vector<AttentionUse> eager_uses() const;
  // Removes a backend that cannot make a plan for a phase. Other backends serve the phase, and
  // remarks() reports that. Returns `reason` as an error if no other backend remains.
  Status remove_backend(const AttentionBackend& backend, Phase phase, const Status& reason);
  // One remark for each use that the backend of `any` does not support, for each backend that
  // remove_backend() removed, and for each phase whose BackendSet::why_slow() is not empty.
  std::span<const std::string> remarks() const { return remarks_; }

  // Lists the backends of these decode steps. They must ascend by query length, then context, then
  // raggedness (full first), then requests. Adjacent steps that differ only in the requests and
  // have one backend form one entry, with the reason of its largest step.
  std::vector<AttentionService> decode_services(std::span<const DecodeKey> keys) const;
  // Lists the services for prompts of a few lengths.
  std::vector<AttentionService> prefill_services() const;

 private:
  struct Candidates {
    AttentionUse use;
    std::vector<AttentionBackend*> backends;
    std::string forced_by;  // the option; empty: not forced
    // The backends' names, and the part of the table that selects among them.
    std::vector<std::string_view> names = {};
    TuningTable table = {};
  };
  struct Choice {
    AttentionBackend* backend = nullptr;
    const TuningTable::MeasuredPoint* measured = nullptr;  // the point that determined the choice;
                                                           // null: not measured
  };

  const Candidates& of(const AttentionUse& use) const;
  void set_backends(Candidates& candidates, std::vector<AttentionBackend*> backends) const;
  void add_remark(std::string remark);
  static Choice choose(const Candidates& candidates, const TuningPoint& point);
  Choice choose_decode(const DecodeKey& key) const;
  Choice choose_prefill(int num_reqs, int num_tokens, int max_kv_len) const;
  static std::string reason(const Candidates& candidates, const Choice& choice);

  PhaseShapes shapes_;
  std::vector<Candidates> candidates_;  // one per use, with ascending query lengths
  std::vector<std::string> remarks_;
  std::shared_ptr<const TuningTable> table_;
};

// Lists which backend serves which steps, and why, for the log and for `quire doctor`.
struct SelectionReport {
  std::string backends;              // for example "decode: xqa and native, prefill: flashinfer"
  std::vector<std::string> summary;  // remarks, ranges of contexts with equal backends, prompts
  std::vector<std::string> details;  // remarks, and each AttentionService with its reason
};
// One selector per KV group; group_names[g] precedes the group's lines. `keys` are the decode steps
// to report, in the order that decode_services() expects.
SelectionReport report_selection(std::span<const AttentionSelector> selectors,
                                 std::span<const std::string> group_names,
                                 std::span<const DecodeKey> keys);

}  // namespace quire
