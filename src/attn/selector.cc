#include "attn/selector.h"

#include <fmt/format.h>

#include <algorithm>

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

bool takes(const AttentionBackend& backend, const DecodeKey& key, int q_len) {
  return q_len <= backend.max_decode_q_len() && !(key.eager && backend.plans_each_size());
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

Result<AttentionSelector> AttentionSelector::create(const BackendSet& backends,
                                                    const AttentionShape& shape,
                                                    const Device& device,
                                                    const ForcedBackend& decode,
                                                    const ForcedBackend& prefill,
                                                    std::shared_ptr<const TuningTable> table) {
  AttentionSelector selector;
  selector.shape_ = shape;
  selector.table_ = std::move(table);
  QUIRE_ASSIGN_OR_RETURN(selector.decode_, find(backends, shape, Phase::kDecode, device, decode));
  QUIRE_ASSIGN_OR_RETURN(selector.prefill_,
                         find(backends, shape, Phase::kPrefill, device, prefill));
  return selector;
}

Result<AttentionSelector::Candidates> AttentionSelector::find(const BackendSet& backends,
                                                              const AttentionShape& shape,
                                                              Phase phase, const Device& device,
                                                              const ForcedBackend& forced) {
  QUIRE_ASSIGN_OR_RETURN(AttentionBackend* const first,
                         backends.select(shape, phase, device, forced));
  Candidates found;
  if (forced.is_forced()) {
    found.backends = {first};
    found.forced_by = forced.flag;
  } else {
    found.backends = backends.supporting(shape, phase, device);
  }
  return found;
}

AttentionSelector::Choice AttentionSelector::choose(Phase phase, const DecodeKey& key,
                                                    int q_len) const {
  std::vector<AttentionBackend*> able;
  Choice choice;
  for (AttentionBackend* backend : candidates(phase)) {
    if (phase == Phase::kDecode && !takes(*backend, key, q_len)) continue;
    able.push_back(backend);
    choice.among.push_back(backend->name());
  }
  // A forced one that cannot says so itself.
  if (able.empty()) return {.backend = candidates(phase).front()};
  choice.backend = able.front();
  if (able.size() == 1) return choice;
  const auto best = table_->best(
      tuning_point(shape_, phase, key.num_reqs, q_len, key.max_kv_len, key.ragged), choice.among);
  choice.backend = able[best.candidate];
  choice.cell = best.cell;
  return choice;
}

AttentionBackend* AttentionSelector::decode(const DecodeKey& key, int q_len) const {
  return choose(Phase::kDecode, key, q_len).backend;
}

AttentionBackend* AttentionSelector::prefill(int num_reqs, int num_tokens, int max_kv_len) const {
  return choose(Phase::kPrefill, {num_reqs, max_kv_len}, num_tokens / std::max(num_reqs, 1))
      .backend;
}

std::span<AttentionBackend* const> AttentionSelector::candidates(Phase phase) const {
  return of(phase).backends;
}

size_t AttentionSelector::workspace_bytes(const AttentionLimits& limits) const {
  size_t bytes = 0;
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    for (const AttentionBackend* backend : candidates(phase)) {
      bytes = std::max(bytes, backend->workspace_bytes(shape_, limits));
    }
  }
  return bytes;
}

std::string AttentionSelector::reason(Phase phase, const Choice& choice) const {
  const std::string& flag = of(phase).forced_by;
  if (!flag.empty()) return fmt::format("forced by {}", flag);
  if (choice.among.size() == 1) return "the only one that serves this shape";
  if (choice.cell == nullptr) return "nothing is measured here: the first that serves this shape";
  const TuningPoint& point = choice.cell->point;
  return fmt::format("measured at {} x {} of {} {}, heads {}:{} of {}: {}", point.num_reqs,
                     point.q_len, lengths_name(point.ragged), point.kv_len, point.num_heads,
                     point.num_kv_heads, point.head_dim, list_times(*choice.cell, choice.among));
}

std::vector<AttentionService> AttentionSelector::decode_services(
    std::span<const DecodeKey> keys) const {
  std::vector<AttentionService> services;
  for (const DecodeKey& key : keys) {
    const Choice choice = choose(Phase::kDecode, key, 1);
    const std::string_view name = choice.backend->name();
    if (services.empty() || services.back().max_kv_len != key.max_kv_len ||
        services.back().ragged != key.ragged || services.back().backend != name) {
      services.push_back({.backend = name,
                          .min_size = key.num_reqs,
                          .max_kv_len = key.max_kv_len,
                          .ragged = key.ragged});
    }
    services.back().max_size = key.num_reqs;
    services.back().reason = reason(Phase::kDecode, choice);
  }
  return services;
}

std::vector<AttentionService> AttentionSelector::prefill_services() const {
  std::vector<AttentionService> services;
  for (const int num_tokens : {512, 2048, 8192}) {
    const Choice choice = choose(Phase::kPrefill, {1, num_tokens}, num_tokens);
    const std::string_view name = choice.backend->name();
    if (services.empty() || services.back().backend != name) {
      services.push_back({.backend = name, .min_size = num_tokens});
    }
    services.back().max_size = services.back().max_kv_len = num_tokens;
    services.back().reason = reason(Phase::kPrefill, choice);
  }
  return services;
}

}  // namespace quire
