#include "attn/selector.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

std::string list_times(const TuningTable::Cell& cell, std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    const TuningTable::Time* time = cell.find(name);
    if (time == nullptr) continue;
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", name, time->us);
  }
  return text;
}

// A phase's own flag takes precedence over --attention-backend.
ForcedBackend preference_for(Phase phase, const BackendPreference& preference) {
  const bool is_decode = phase == Phase::kDecode;
  const std::string_view name = is_decode ? preference.decode : preference.prefill;
  if (name.empty()) return {.name = preference.any};
  return {.name = name,
          .flag = is_decode ? "--decode-attention-backend" : "--prefill-attention-backend"};
}

bool has_own_flag(Phase phase, const BackendPreference& preference) {
  return !(phase == Phase::kDecode ? preference.decode : preference.prefill).empty();
}

// Turns an error message into a remark by removing the module's name.
std::string as_remark(const std::string& message) {
  return message.substr(message.find(']') + 2);
}

// All uses: decode of each query length in graphs, the same eagerly, then prompts.
std::vector<AttentionUse> uses_of(std::span<const int> q_lens) {
  std::vector<AttentionUse> uses;
  for (const bool in_graph : {true, false}) {
    for (const int q_len : q_lens) {
      uses.push_back({.phase = Phase::kDecode, .q_len = q_len, .in_graph = in_graph});
    }
  }
  uses.push_back({.phase = Phase::kPrefill});
  return uses;
}

}  // namespace

bool is_ragged(std::span<const int32_t> kv_len_bounds) {
  int64_t total = 0;
  int64_t longest = 0;
  for (const int32_t bound : kv_len_bounds) {
    total += bound;
    longest = std::max<int64_t>(longest, bound);
  }
  return 4 * total < 3 * longest * static_cast<int64_t>(kv_len_bounds.size());
}

DecodeKey decode_key(const AttentionBatch& batch) {
  const PhaseRange& range = batch.decode;
  return {.num_reqs = range.num_reqs,
          .max_kv_len = range.max_kv_len,
          .ragged = is_ragged(batch.kv_len_bound.subspan(static_cast<size_t>(range.first_req),
                                                         static_cast<size_t>(range.num_reqs))),
          .q_len = std::max(range.max_q_len, 1)};
}

Result<AttentionSelector> AttentionSelector::create(const BackendSet& backends,
                                                    const PhaseShapes& shapes, const Device& device,
                                                    const BackendPreference& preference,
                                                    std::shared_ptr<const TuningTable> table,
                                                    std::span<const int> q_lens) {
  AttentionSelector selector;
  selector.shapes_ = shapes;
  selector.table_ = std::move(table);
  const std::vector<AttentionUse> uses = uses_of(q_lens);
  // Whether --attention-backend serves any use without a flag of its own.
  const bool any_serves = std::ranges::any_of(uses, [&](const AttentionUse& use) {
    return !has_own_flag(use.phase, preference) &&
           backends.select(shapes.of(use.phase), use, device, {.name = preference.any}).ok();
  });
  for (const AttentionUse& use : uses) {
    const AttentionShape& shape = shapes.of(use.phase);
    ForcedBackend forced = preference_for(use.phase, preference);
    Result<std::vector<AttentionBackend*>> found = backends.select(shape, use, device, forced);
    if (!found.ok() && forced.is_forced()) {
      if (has_own_flag(use.phase, preference) || !any_serves) return found.status();
      selector.add_remark(as_remark(found.status().message()) + " So auto selects another.");
      forced = {};
      found = backends.select(shape, use, device, forced);
    }
    QUIRE_RETURN_IF_ERROR(found.status());
    Candidates candidates = {
        .use = use,
        .backends = {},
        .forced_by = forced.is_forced() ? std::string(forced.flag) : std::string()};
    selector.set_backends(candidates, std::move(*found));
    selector.candidates_.push_back(std::move(candidates));
  }
  return selector;
}

void AttentionSelector::set_backends(Candidates& candidates,
                                     std::vector<AttentionBackend*> backends) const {
  candidates.names.clear();
  for (const AttentionBackend* backend : backends) candidates.names.push_back(backend->name());
  candidates.backends = std::move(backends);
  const Phase phase = candidates.use.phase;
  candidates.table = table_->narrowed(
      tuning_point(shapes_.of(phase), phase, 1, candidates.use.q_len, 1), candidates.names);
}

void AttentionSelector::add_remark(std::string remark) {
  if (std::ranges::find(remarks_, remark) == remarks_.end()) remarks_.push_back(std::move(remark));
}

std::vector<AttentionUse> AttentionSelector::eager_uses() const {
  std::vector<AttentionUse> uses;
  for (const Candidates& candidates : candidates_) {
    if (!candidates.use.in_graph) uses.push_back(candidates.use);
  }
  return uses;
}

Status AttentionSelector::leave_out(const AttentionBackend& backend, Phase phase,
                                    const Status& reason) {
  for (Candidates& candidates : candidates_) {
    if (candidates.use.phase != phase) continue;
    std::vector<AttentionBackend*> left = candidates.backends;
    if (std::erase(left, &backend) == 0) continue;
    if (left.empty()) return reason;
    set_backends(candidates, std::move(left));
  }
  add_remark(
      fmt::format("{} is left out of {}: {}", backend.name(), phase_name(phase), reason.message()));
  return {};
}

const AttentionSelector::Candidates& AttentionSelector::of(const AttentionUse& use) const {
  const auto found = std::ranges::find_if(candidates_, [&](const Candidates& candidates) {
    if (candidates.use.phase != use.phase) return false;
    return use.phase == Phase::kPrefill ||
           (candidates.use.in_graph == use.in_graph && candidates.use.q_len >= use.q_len);
  });
  QUIRE_CHECK(found != candidates_.end(),
              "[attention] a decode step has more query tokens than selection was made for");
  return *found;
}

AttentionSelector::Choice AttentionSelector::choose(const Candidates& candidates,
                                                    const TuningPoint& point) {
  if (candidates.backends.size() == 1) return {.backend = candidates.backends.front()};
  const auto best = candidates.table.best(point, candidates.names);
  return {.backend = candidates.backends[best.candidate], .cell = best.cell};
}

AttentionSelector::Choice AttentionSelector::choose_decode(const DecodeKey& key) const {
  return choose(of(key.use()), tuning_point(shapes_.decode, Phase::kDecode, key.num_reqs, key.q_len,
                                            key.max_kv_len, key.ragged));
}

AttentionSelector::Choice AttentionSelector::choose_prefill(int num_reqs, int num_tokens,
                                                            int max_kv_len) const {
  return choose(of({.phase = Phase::kPrefill}),
                tuning_point(shapes_.prefill, Phase::kPrefill, num_reqs,
                             num_tokens / std::max(num_reqs, 1), max_kv_len));
}

AttentionBackend* AttentionSelector::decode(const DecodeKey& key) const {
  return choose_decode(key).backend;
}

AttentionBackend* AttentionSelector::prefill(int num_reqs, int num_tokens, int max_kv_len) const {
  return choose_prefill(num_reqs, num_tokens, max_kv_len).backend;
}

std::string AttentionSelector::reason(const Candidates& candidates, const Choice& choice) {
  if (!candidates.forced_by.empty()) return fmt::format("forced by {}", candidates.forced_by);
  if (candidates.backends.size() == 1) return "the only one that serves this shape";
  if (choice.cell == nullptr) return "nothing is measured here: the first that serves this shape";
  const TuningPoint& point = choice.cell->point;
  return fmt::format("measured at {} x {} of {} {}, heads {}:{} of {}: {}", point.num_reqs,
                     point.q_len, lengths_name(point.ragged), point.kv_len, point.num_heads,
                     point.num_kv_heads, point.head_dim,
                     list_times(*choice.cell, candidates.names));
}

std::vector<AttentionService> AttentionSelector::decode_services(
    std::span<const DecodeKey> keys) const {
  std::vector<AttentionService> services;
  for (const DecodeKey& key : keys) {
    const Choice choice = choose_decode(key);
    const std::string_view name = choice.backend->name();
    if (services.empty() || services.back().q_len != key.q_len ||
        services.back().max_kv_len != key.max_kv_len || services.back().ragged != key.ragged ||
        services.back().backend != name) {
      services.push_back({.backend = name,
                          .min_size = key.num_reqs,
                          .max_kv_len = key.max_kv_len,
                          .ragged = key.ragged,
                          .q_len = key.q_len});
    }
    services.back().max_size = key.num_reqs;
    services.back().reason = reason(of(key.use()), choice);
  }
  return services;
}

std::vector<AttentionService> AttentionSelector::prefill_services() const {
  std::vector<AttentionService> services;
  for (const int num_tokens : {512, 2048, 8192}) {
    const Choice choice = choose_prefill(1, num_tokens, num_tokens);
    const std::string_view name = choice.backend->name();
    if (services.empty() || services.back().backend != name) {
      services.push_back({.backend = name, .min_size = num_tokens});
    }
    services.back().max_size = services.back().max_kv_len = num_tokens;
    services.back().reason = reason(of({.phase = Phase::kPrefill}), choice);
  }
  return services;
}

}  // namespace quire
