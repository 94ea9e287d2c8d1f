#include "attn/backend_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace quire {
namespace {

constexpr auto kBackendNames = std::to_array<BackendName>({{"cpu", DeviceKind::kCpu},
                                                           {"reference", DeviceKind::kCpu},
                                                           {"native", DeviceKind::kCuda},
                                                           {"flashinfer", DeviceKind::kCuda},
                                                           {"xqa", DeviceKind::kCuda},
                                                           {"cudnn", DeviceKind::kCuda}});

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

}  // namespace

std::span<const BackendName> backend_names() {
  return kBackendNames;
}

std::string describe(const AttentionUse& use) {
  if (use.phase == Phase::kPrefill || use.q_len == 1) return std::string(phase_name(use.phase));
  return fmt::format("decode of {} query tokens", use.q_len);
}

void BackendSet::add(std::unique_ptr<AttentionBackend> backend) {
  for (const std::string_view name : names()) {
    QUIRE_CHECK(name != backend->name(), "two attention backends of one name");
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
  std::vector<AttentionBackend*> reserved;
  for (const auto& backend : backends_) {
    const Support support = backend->supports(shape, use, device);
    if (support.ok())
      (support.reservations.empty() ? preferred : reserved).push_back(backend.get());
  }
  return preferred.empty() ? reserved : preferred;
}

Result<std::vector<AttentionBackend*>> BackendSet::select(const AttentionShape& shape,
                                                          const AttentionUse& use,
                                                          const Device& device,
                                                          const ForcedBackend& forced) const {
  if (!forced.is_forced()) {
    std::vector<AttentionBackend*> all = supporting(shape, use, device);
    if (!all.empty()) return all;
    std::string refusals;
    for (const auto& backend : backends_) {
      refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : " | ", backend->name(),
                              list_reasons(backend->supports(shape, use, device).reasons));
    }
    return invalid_argument(fmt::format("[attention] no backend can serve {}: {}", describe(use),
                                        refusals.empty() ? "none is built in" : refusals));
  }
  const auto found = std::find_if(backends_.begin(), backends_.end(), [&](const auto& backend) {
    return backend->name() == forced.name;
  });
  if (found == backends_.end()) {
    return invalid_argument(
        fmt::format("[attention] {} names no backend of this build; got {}, expected auto, {}",
                    forced.flag, forced.name, fmt::join(names(), ", ")));
  }
  const Support support = (*found)->supports(shape, use, device);
  if (support.ok()) return std::vector{found->get()};
  return invalid_argument(fmt::format("[attention] {} {} cannot serve {}: {}", forced.flag,
                                      forced.name, describe(use), list_reasons(support.reasons)));
}

}  // namespace quire
