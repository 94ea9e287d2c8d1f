#include "start/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "attn/backend.h"
#include "base/check.h"
#include "base/text.h"
#include "start/setting_values.h"

namespace quire {
namespace {

// Returns for example "more than 0 and at most 1", or "1 to 3600 s".
std::string describe_range(const Setting& setting) {
  const Range& range = setting.range;
  if (range.min_excluded) return fmt::format("more than {} and at most {}", range.min, range.max);
  return fmt::format("{:.0f} to {:.0f}{}{}", range.min, range.max, setting.unit.empty() ? "" : " ",
                     setting.unit);
}

// Returns the remedy for a refused word; empty if the table has none.
std::string_view remedy_for(const Setting& setting, std::string_view text) {
  for (const SettingWord& word : setting.words) {
    if (word.word == text || word.word == "*") return word.remedy;
  }
  return {};
}

bool is_backend(std::string_view text) {
  return text.empty() || text == "auto" ||
         std::ranges::find(backend_names(), text, &BackendName::name) != backend_names().end();
}

std::string known_backends() {
  std::vector<std::string_view> names = {"auto"};
  for (const BackendName& backend : backend_names()) names.push_back(backend.name);
  return fmt::format("one of {}", fmt::join(names, ", "));
}

bool is_in_range(const Setting& setting, const EngineConfig& config) {
  return std::visit(
      [&](auto member) {
        using Value = std::remove_cvref_t<decltype(config.*member)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return setting.range.contains(static_cast<double>(config.*member));
        } else {
          return true;
        }
      },
      setting.member);
}

// Returns the values that the setting may have, or nullopt if the configured value is one of them.
std::optional<std::string> find_expected(const Setting& setting, const EngineConfig& config) {
  const std::string text = setting.text(config);
  if (setting.is_choice()) {
    const auto word = std::ranges::find(setting.words, text, &SettingWord::word);
    if (word != setting.words.end() && word->is_value()) return std::nullopt;
    return setting.listed_values();
  }
  if (setting.notation == Notation::kBackend) {
    return is_backend(text) ? std::nullopt : std::optional(known_backends());
  }
  if (is_in_range(setting, config) && remedy_for(setting, text).empty()) return std::nullopt;
  return describe_range(setting);
}

Status check_value(const Setting& setting, const EngineConfig& config) {
  const std::string text = setting.text(config);
  if (setting.check_text != nullptr && !text.empty()) {
    const Status status = setting.check_text(text);
    if (status.ok()) return status;
    return invalid_argument(fmt::format("[config] `{}`: {}", setting.name, status.message()));
  }
  const std::optional<std::string> expected = find_expected(setting, config);
  if (!expected) return {};
  const std::string_view remedy = remedy_for(setting, text);
  return invalid_argument(fmt::format("[engine] {}: must be {}, got {}{}{}", setting.name,
                                      *expected, clipped(text), remedy.empty() ? "" : "; ",
                                      remedy));
}

}  // namespace

std::string Setting::flag_name() const {
  if (!flag.empty()) return std::string(flag);
  std::string dashed = "--" + std::string(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

std::string Setting::text(const EngineConfig& config) const {
  return std::visit([&](auto of) { return fmt::format("{}", config.*of); }, member);
}

bool Setting::is_default(const EngineConfig& config) const {
  return text(config) == text(EngineConfig());
}

bool Setting::is_choice() const {
  const bool is_path = notation == Notation::kFile || notation == Notation::kDirectory;
  return !is_path && std::ranges::any_of(words, &SettingWord::is_value);
}

std::string Setting::listed_values() const {
  std::vector<std::string_view> values;
  for (const SettingWord& word : words) {
    if (word.is_value()) values.push_back(word.word);
  }
  const std::string_view last = values.back();
  values.pop_back();
  return fmt::format("{} or {}", fmt::join(values, ", "), last);
}

const Setting& setting(std::string_view name) {
  const auto found = std::ranges::find(all_settings(), name, &Setting::name);
  QUIRE_CHECK(found != all_settings().end(), fmt::format("[settings] no row is named {}", name));
  return *found;
}

Status check_settings(const EngineConfig& config) {
  for (const Setting& setting : all_settings()) QUIRE_RETURN_IF_ERROR(check_value(setting, config));
  const std::vector<Status> conflicts = find_conflicts(config);
  return conflicts.empty() ? Status() : conflicts.front();
}

std::vector<Status> find_conflicts(const EngineConfig& config) {
  std::vector<Status> found;
  for (const Setting& setting : all_settings()) {
    if (setting.check_conflict == nullptr) continue;
    Status status = setting.check_conflict(config);
    if (!status.ok()) found.push_back(std::move(status));
  }
  return found;
}

Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu) {
  for (const Setting& setting : all_settings()) {
    if (setting.notation != Notation::kBackend) continue;
    const auto backend =
        std::ranges::find(backend_names(), setting.text(config), &BackendName::name);
    if (backend == backend_names().end() || backend->device != DeviceKind::kCuda) continue;
    return unavailable(fmt::format("[attention] {}: {} needs a GPU; {}; for a CPU expected auto",
                                   setting.name, backend->name, no_gpu.message()));
  }
  return {};
}

Status refuse_cpu_cache(const EngineConfig& config) {
  if (forced_kv_dtype(config) != DType::kI8) return {};
  return invalid_argument(
      "[engine] kv_cache_dtype: got int8 on a GPU, expected fp8, a GPU's cache in 8 bits; int8 is "
      "for `device` cpu");
}

Status check_step_tokens(int max_num_batched_tokens, int num_drafts) {
  if (max_num_batched_tokens > num_drafts) return {};
  return invalid_argument(fmt::format(
      "[engine] `max_num_batched_tokens`: got {}, expected at least {}, the newest token of a "
      "sequence and its drafts; raise it, or lower num_speculative_tokens",
      max_num_batched_tokens, 1 + num_drafts));
}

}  // namespace quire
