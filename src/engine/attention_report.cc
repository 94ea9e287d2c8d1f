#include "engine/attention_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace quire {
namespace {

using Services = std::span<const AttentionService>;

// The prefix of a line about one KV group; empty if there is only one group.
std::string group_name(const EnginePlan& plan, size_t g) {
  if (plan.attention.kv_groups.size() == 1) return "";
  const KvGroup& group = plan.attention.kv_groups[g];
  if (group.decode.window == 0) {
    return fmt::format("{} layers without a window, ", group.layers.size());
  }
  return fmt::format("{} layers of window {}, ", group.layers.size(), group.decode.window);
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
  return fmt::format("{}; of ragged lengths {}", of_full, list_sizes(services));
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
      lines.push_back(fmt::format("{}{} of up to {} tokens: {} ({})", group,
                                  decode_name(alike.front()), max_kv_len, names,
                                  common_reason(all)));
      last = names;
    }
  }
}

}  // namespace

std::string list_backends(const EnginePlan& plan) {
  std::vector<std::string> groups;
  for (size_t g = 0; g < plan.attention.kv_groups.size(); ++g) {
    const AttentionSelector& selector = plan.attention.selectors[g];
    groups.push_back(fmt::format("{}decode: {}, prefill: {}", group_name(plan, g),
                                 list_names(selector.decode_services(plan.attention.decode_keys)),
                                 list_names(selector.prefill_services())));
  }
  return fmt::format("{}", fmt::join(groups, "; "));
}

std::vector<std::string> summarize_services(const EnginePlan& plan) {
  std::vector<std::string> lines;
  for (size_t g = 0; g < plan.attention.kv_groups.size(); ++g) {
    const AttentionSelector& selector = plan.attention.selectors[g];
    const std::string group = group_name(plan, g);
    for (const std::string& remark : selector.remarks()) lines.push_back(group + remark);
    summarize_decode(selector.decode_services(plan.attention.decode_keys), group, lines);
    const std::vector<AttentionService> prefill = selector.prefill_services();
    lines.push_back(
        fmt::format("{}prefill: {} ({})", group, list_sizes(prefill), common_reason(prefill)));
  }
  return lines;
}

std::vector<std::string> describe_services(const EnginePlan& plan) {
  std::vector<std::string> lines;
  for (size_t g = 0; g < plan.attention.kv_groups.size(); ++g) {
    const AttentionSelector& selector = plan.attention.selectors[g];
    const std::string group = group_name(plan, g);
    for (const std::string& remark : selector.remarks()) lines.push_back(group + remark);
    for (const AttentionService& service : selector.decode_services(plan.attention.decode_keys)) {
      lines.push_back(fmt::format(
          "{}{} of {} up to {}{}: {} ({})", group, decode_name(service), size_range(service),
          service.max_kv_len, service.ragged ? " ragged" : "", service.backend, service.reason));
    }
    for (const AttentionService& service : selector.prefill_services()) {
      lines.push_back(fmt::format("{}prefill of {}: {} ({})", group, size_range(service),
                                  service.backend, service.reason));
    }
  }
  return lines;
}

}  // namespace quire
