#include "attn/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

// Formats the reasons as "a) …; b) …".
std::string list_reasons(const std::vector<std::string>& reasons) {
  std::string text;
  for (size_t i = 0; i < reasons.size(); ++i) {
    // Labels after z are numbers.
    const std::string label =
        i < 26 ? std::string(1, static_cast<char>('a' + i)) : std::to_string(i + 1);
    text += fmt::format("{}{}) {}", i == 0 ? "" : " ", label, reasons[i]);
  }
  return text;
}

// All uses: decode of each query length in graphs, then eager decode of each query length, then
// prompts.
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

// Names the fields of config.json that determine head_dim in a latent cache, and the remedy.
std::string origin_of_sizes(const AttentionShape& shape) {
  if (!shape.is_latent) return "";
  return fmt::format(
      "; head_dim is the sum of kv_lora_rank {} and qk_rope_head_dim {} of the model's "
      "configuration: use another checkpoint or `device`",
      shape.head_dim_v, shape.head_dim - shape.head_dim_v);
}

}  // namespace

std::string_view BackendPreference::option(Phase phase) const {
  if (own(phase).empty()) return any_option;
  return phase == Phase::kDecode ? "`decode_attention_backend`" : "`prefill_attention_backend`";
}

void BackendSet::add(std::unique_ptr<AttentionBackend> backend) {
  for (const std::string_view name : names()) {
    QUIRE_CHECK(name != backend->name(), "[attention] two backends have the same name");
  }
  backends_.push_back(std::move(backend));
}

std::vector<std::string_view> BackendSet::names() const {
  std::vector<std::string_view> names;
  for (const auto& backend : backends_) names.push_back(backend->name());
  return names;
}

std::vector<AttentionBackend*> BackendSet::supporting(const AttentionShape& shape,
                                                      const AttentionUse& use,
                                                      const Device& device) const {
  std::vector<AttentionBackend*> preferred;
  std::vector<AttentionBackend*> others;
  for (const auto& backend : backends_) {
    const Support support = backend->supports(shape, use, device);
    if (!support.ok()) continue;
    (support.reasons_to_prefer_others.empty() ? preferred : others).push_back(backend.get());
  }
  return preferred.empty() ? others : preferred;
}

Result<std::vector<AttentionBackend*>> BackendSet::select(
    const AttentionShape& shape, const AttentionUse& use, const Device& device,
    const BackendPreference& preference) const {
  if (!preference.is_forced(use.phase)) {
    std::vector<AttentionBackend*> all = supporting(shape, use, device);
    if (!all.empty()) return all;
    const std::string refusals = list_refusals(shape, use, device);
    return invalid_argument(fmt::format("[attention] no backend can serve {}: {}{}", describe(use),
                                        refusals.empty() ? "none is built in" : refusals,
                                        origin_of_sizes(shape)));
  }
  const std::string_view name = preference.name(use.phase);
  AttentionBackend* const backend = find(name);
  if (backend == nullptr) {
    const auto known = std::ranges::find(backend_names(), name, &BackendName::name);
    const bool needs_gpu = known != backend_names().end() && known->device == DeviceKind::kCuda;
    return invalid_argument(fmt::format("[attention] {}: must be one of auto, {}, got {}{}",
                                        preference.option(use.phase), fmt::join(names(), ", "),
                                        name, needs_gpu ? ", which needs a GPU" : ""));
  }
  if (backend->supports(shape, use, device).ok()) return std::vector{backend};
  return invalid_argument("[attention] " + refusal(shape, use, device, preference));
}

std::string BackendSet::refusal(const AttentionShape& shape, const AttentionUse& use,
                                const Device& device, const BackendPreference& preference) const {
  const std::string_view name = preference.name(use.phase);
  return fmt::format("{} {} cannot serve {}: {}", preference.option(use.phase), name, describe(use),
                     list_reasons(find(name)->supports(shape, use, device).reasons));
}

std::string BackendSet::list_refusals(const AttentionShape& shape, const AttentionUse& use,
                                      const Device& device) const {
  std::string refusals;
  for (const auto& backend : backends_) {
    const Support support = backend->supports(shape, use, device);
    if (support.ok()) continue;
    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : " | ", backend->name(),
                            list_reasons(support.reasons));
  }
  return refusals;
}

std::string BackendSet::why_slow(const AttentionShape& shape, const AttentionUse& use,
                                 const Device& device) const {
  const std::vector<AttentionBackend*> found = supporting(shape, use, device);
  if (found.empty()) return "";
  const Support support = found.front()->supports(shape, use, device);
  if (support.reasons_to_prefer_others.empty()) return "";
  const std::string refusals = list_refusals(shape, use, device);
  return fmt::format("{} serves {}, which is slow: {}{}{}", found.front()->name(), describe(use),
                     list_reasons(support.reasons_to_prefer_others),
                     refusals.empty() ? "" : " Others cannot: ", refusals);
}

AttentionBackend* BackendSet::find(std::string_view name) const {
  for (const auto& backend : backends_) {
    if (backend->name() == name) return backend.get();
  }
  return nullptr;
}

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
  std::vector<Result<std::vector<AttentionBackend*>>> preferred;  // per use
  bool any_serves = false;  // attention_backend serves a use that no other field names
  for (const AttentionUse& use : uses) {
    preferred.push_back(backends.select(shapes.of(use.phase), use, device, preference));
    any_serves |= preferred.back().ok() && preference.own(use.phase).empty();
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    const AttentionUse& use = uses[i];
    Result<std::vector<AttentionBackend*>> found = std::move(preferred[i]);
    bool is_forced = preference.is_forced(use.phase);
    if (!found.ok() && is_forced) {
      if (!preference.own(use.phase).empty() || !any_serves) return found.status();
      selector.add_remark(backends.refusal(shapes.of(use.phase), use, device, preference) +
                          " So auto selects another.");
      is_forced = false;
      found = backends.select(shapes.of(use.phase), use, device, {});
    }
    QUIRE_RETURN_IF_ERROR(found.status());
    const bool is_first_of_phase = use.phase == Phase::kPrefill || use.q_len == q_lens.front();
    if (!is_forced && !use.in_graph && is_first_of_phase) {
      const std::string slow = backends.why_slow(shapes.of(use.phase), use, device);
      if (!slow.empty()) selector.add_remark(slow);
    }
    Candidates candidates = {.use = use, .backends = {}, .forced_by = {}};
    if (is_forced) candidates.forced_by = preference.option(use.phase);
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
  candidates.table = table_->restricted_to(
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

Status AttentionSelector::remove_backend(const AttentionBackend& backend, Phase phase,
                                         const Status& reason) {
  for (Candidates& candidates : candidates_) {
    if (candidates.use.phase != phase) continue;
    std::vector<AttentionBackend*> left = candidates.backends;
    if (std::erase(left, &backend) == 0) continue;
    if (left.empty()) return reason;
    set_backends(candidates, std::move(left));
  }
  add_remark(
      fmt::format("{} does not serve {}: {}", backend.name(), phase_name(phase), reason.message()));
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

// Decision: a pure function of the candidates, the table and the step's sizes.

AttentionSelector::Choice AttentionSelector::choose(const Candidates& candidates,
                                                    const TuningPoint& point) {
  if (candidates.backends.size() == 1) return {.backend = candidates.backends.front()};
  const auto best = candidates.table.best(point, candidates.names);
  return {.backend = candidates.backends[best.candidate], .measured = best.measured};
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

// Report.

namespace {

using Services = std::span<const AttentionService>;

std::string list_times(const TuningTable::MeasuredPoint& measured,
                       std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    const TuningTable::Time* time = measured.find(name);
    if (time == nullptr) continue;
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", name, time->us);
  }
  return text;
}

std::string list_names(Services services) {
  std::vector<std::string_view> names;
  for (const AttentionService& service : services) {
    if (std::ranges::find(names, service.backend) == names.end()) names.push_back(service.backend);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string size_range(const AttentionService& service) {
  if (service.min_size == service.max_size) return std::to_string(service.min_size);
  return fmt::format("{}-{}", service.min_size, service.max_size);
}

// Returns for example "xqa for 1-64, native for 72-256", or a single name.
std::string list_sizes(Services services) {
  if (services.size() == 1) return std::string(services.front().backend);
  std::vector<std::string> parts;
  for (const AttentionService& service : services) {
    parts.push_back(fmt::format("{} for {}", service.backend, size_range(service)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string common_reason(Services services) {
  const bool is_one = std::ranges::all_of(services, [&](const AttentionService& service) {
    return service.reason == services.front().reason;
  });
  return is_one ? services.front().reason : "as measured";
}

std::string in_parentheses(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(" ({})", reason);
}

// Removes the services at the front that satisfy the predicate, and returns them.
template <typename Predicate>
Services take_while(Services& services, const Predicate& predicate) {
  const auto end = std::ranges::find_if_not(services, predicate);
  const Services taken(services.begin(), end);
  services = Services(end, services.end());
  return taken;
}

// Lists the services of one query length and longest context, full lengths first.
std::string list_decode_sizes(Services services) {
  const Services full =
      take_while(services, [](const AttentionService& service) { return !service.ragged; });
  const std::string of_full = list_sizes(full);
  if (services.empty() || list_sizes(services) == of_full) return of_full;
  return fmt::format("{}; with ragged lengths: {}", of_full, list_sizes(services));
}

// Names the decode steps of one query length.
std::string decode_name(const AttentionService& service) {
  return describe({.phase = Phase::kDecode, .q_len = service.q_len});
}

void summarize_decode(Services services, const std::string& group,
                      std::vector<std::string>& lines) {
  while (!services.empty()) {
    const int q_len = services.front().q_len;
    const Services all = take_while(
        services, [&](const AttentionService& service) { return service.q_len == q_len; });
    Services left = all;
    std::string last;
    while (!left.empty()) {
      const int max_kv_len = left.front().max_kv_len;
      const Services alike = take_while(
          left, [&](const AttentionService& service) { return service.max_kv_len == max_kv_len; });
      const std::string names = list_decode_sizes(alike);
      if (names == last) lines.pop_back();  // this range includes the previous one
      lines.push_back(fmt::format("{}{} of up to {} tokens: {}{}", group,
                                  decode_name(alike.front()), max_kv_len, names,
                                  in_parentheses(common_reason(all))));
      last = names;
    }
  }
}

void describe_group(const AttentionSelector& selector, const std::string& group,
                    std::span<const DecodeKey> keys, SelectionReport& report) {
  const std::vector<AttentionService> decode = selector.decode_services(keys);
  const std::vector<AttentionService> prefill = selector.prefill_services();
  report.backends += fmt::format("{}{}decode: {}, prefill: {}", report.backends.empty() ? "" : "; ",
                                 group, list_names(decode), list_names(prefill));
  for (const std::string& remark : selector.remarks()) {
    report.summary.push_back(group + remark);
    report.details.push_back(group + remark);
  }
  summarize_decode(decode, group, report.summary);
  report.summary.push_back(fmt::format("{}prefill: {}{}", group, list_sizes(prefill),
                                       in_parentheses(common_reason(prefill))));
  for (const AttentionService& service : decode) {
    report.details.push_back(fmt::format("{}{} of {} up to {}{}: {}{}", group, decode_name(service),
                                         size_range(service), service.max_kv_len,
                                         service.ragged ? " ragged" : "", service.backend,
                                         in_parentheses(service.reason)));
  }
  for (const AttentionService& service : prefill) {
    const std::string sizes = prefill.size() == 1 ? "" : fmt::format(" of {}", size_range(service));
    report.details.push_back(fmt::format("{}prefill{}: {}{}", group, sizes, service.backend,
                                         in_parentheses(service.reason)));
  }
}

}  // namespace

std::string AttentionSelector::reason(const Candidates& candidates, const Choice& choice) {
  if (!candidates.forced_by.empty()) return fmt::format("forced by {}", candidates.forced_by);
  if (candidates.backends.size() == 1) return "the only backend that serves this shape";
  // The reference backend is for tests, and tables have no times of it, so it does not count.
  const auto num_rivals = std::ranges::count_if(
      candidates.backends, [](const auto* backend) { return backend->name() != "reference"; });
  if (choice.measured == nullptr && num_rivals == 1) return "";
  if (choice.measured == nullptr) {
    return "not measured; the first backend that serves this shape";
  }
  const TuningPoint& point = choice.measured->point;
  return fmt::format("measured at {} x {} of {} {}, heads {}:{} of {}: {}", point.num_reqs,
                     point.q_len, lengths_name(point.ragged), point.kv_len, point.num_heads,
                     point.num_kv_heads, point.head_dim,
                     list_times(*choice.measured, candidates.names));
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

SelectionReport report_selection(std::span<const AttentionSelector> selectors,
                                 std::span<const std::string> group_names,
                                 std::span<const DecodeKey> keys) {
  SelectionReport report;
  for (size_t g = 0; g < selectors.size(); ++g) {
    describe_group(selectors[g], group_names[g], keys, report);
  }
  return report;
}

}  // namespace quire
