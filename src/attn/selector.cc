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

ForcedBackend wish_for(Phase phase, const BackendWishes& wishes) {
  const bool is_decode = phase == Phase::kDecode;
  const std::string_view name = is_decode ? wishes.decode : wishes.prefill;
  if (name.empty()) return {.name = wishes.any};
  return {.name = name,
          .flag = is_decode ? "--decode-attention-backend" : "--prefill-attention-backend"};
}

// A refusal, said as a remark: without the module's name.
std::string as_remark(const std::string& message) {
  return message.substr(message.find(']') + 2);
}

// Whether a backend that was wished for both phases serves the one that is not `phase`.
bool serves_the_other(const BackendSet& backends, const AttentionShape& shape, const Device& device,
                      Phase phase, const BackendWishes& wishes) {
  if (!wishes.decode.empty() || !wishes.prefill.empty()) return false;
  const Phase other = phase == Phase::kDecode ? Phase::kPrefill : Phase::kDecode;
  return backends.select(shape, other, device, {.name = wishes.any}).ok();
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
                                                    const BackendWishes& wishes,
                                                    std::shared_ptr<const TuningTable> table) {
  AttentionSelector selector;
  selector.shape_ = shape;
  selector.table_ = std::move(table);
  QUIRE_RETURN_IF_ERROR(selector.find(backends, device, Phase::kDecode, wishes));
  QUIRE_RETURN_IF_ERROR(selector.find(backends, device, Phase::kPrefill, wishes));
  return selector;
}

Status AttentionSelector::find(const BackendSet& backends, const Device& device, Phase phase,
                               const BackendWishes& wishes) {
  Candidates& found = of(phase);
  const ForcedBackend forced = wish_for(phase, wishes);
  if (forced.is_forced()) {
    const Result<AttentionBackend*> one = backends.select(shape_, phase, device, forced);
    if (one.ok()) {
      found = {.backends = {*one}, .forced_by = std::string(forced.flag)};
      return {};
    }
    if (!serves_the_other(backends, shape_, device, phase, wishes)) return one.status();
    remarks_.push_back(as_remark(one.status().message()) + " So auto chooses who does.");
  }
  QUIRE_RETURN_IF_ERROR(backends.select(shape_, phase, device, {}).status());
  found.backends = backends.supporting(shape_, phase, device);
  return {};
}

std::vector<int> AttentionSelector::graph_sizes(const AttentionBackend& backend,
                                                std::span<const DecodeKey> keys) const {
  std::vector<int> sizes;
  for (const DecodeKey& key : keys) {
    if (!key.eager && decode(key) == &backend) sizes.push_back(key.num_reqs);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Status AttentionSelector::prepare(const AttentionLimits& limits, std::span<const DecodeKey> keys) {
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    Candidates& candidates = of(phase);
    for (size_t i = 0; i < candidates.backends.size();) {
      AttentionBackend* backend = candidates.backends[i];
      AttentionLimits its_limits = limits;
      std::vector<int> sizes;
      if (backend->plans_each_size()) {
        sizes = graph_sizes(*backend, keys);
        its_limits.graph_sizes = sizes;
        its_limits.eager = candidates.backends.size() == 1;
      }
      const Status prepared = backend->prepare(shape_, its_limits);
      if (prepared.ok()) {
        ++i;
        continue;
      }
      if (candidates.backends.size() == 1) return prepared;
      remarks_.push_back(fmt::format("{} is left out of {}: {}", backend->name(), phase_name(phase),
                                     prepared.message()));
      candidates.backends.erase(candidates.backends.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return {};
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
