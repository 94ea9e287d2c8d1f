// The table of settings. `QUIRE_UPDATE_DOCS=1 settings_test` writes docs/settings.md anew.
#include "start/settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/file.h"
#include "support/shared_data.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const EngineConfig& config) {
  return std::string(check_settings(config).message());
}

// Initializes a member of any type.
struct AnyValue {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

// The number of members of an aggregate.
template <typename T, typename... Values>
constexpr size_t num_members() {
  if constexpr (requires { T{std::declval<Values>()..., AnyValue()}; }) {
    return num_members<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

// A member without a row has no flag, is not checked, and may differ between nodes.
TEST(Settings, HaveARowPerMember) {
  std::set<std::string_view> names;
  for (const Setting& setting : all_settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " has two rows";
  }
  EXPECT_EQ(names.size(), num_members<EngineConfig>());
}

TEST(Settings, DefaultsAreValid) {
  EXPECT_TRUE(check_settings(EngineConfig()).ok()) << error_of(EngineConfig());
}

TEST(Settings, RefuseUnknownWords) {
  for (const Setting& setting : all_settings()) {
    const auto* word = std::get_if<std::string EngineConfig::*>(&setting.member);
    if (word == nullptr || !setting.has_values()) continue;
    EngineConfig config;
    config.*(*word) = "nonsense";
    EXPECT_THAT(error_of(config), HasSubstr(fmt::format("{}: must be {}, got nonsense",
                                                        setting.name, setting.listed_values())));
    for (const SettingWord& other : setting.words) {
      config.*(*word) = other.word;
      EXPECT_EQ(check_settings(config).ok(), other.is_value()) << setting.name << " " << other.word;
      // Words that need another setting beside them.
      if (other.word == "int8") break;
    }
  }
}

TEST(Settings, RefuseNumbersOutOfRange) {
  EngineConfig config;
  config.block_size = 24;
  EXPECT_EQ(error_of(config), "[engine] block_size: must be 16, 32 or 64, got 24");
  config = {};
  config.num_threads = -1;
  EXPECT_EQ(error_of(config), "[engine] num_threads: must be 0 to 1024, got -1");
  config = {};
  config.gpu_memory_utilization = 0.0;
  EXPECT_EQ(error_of(config),
            "[engine] gpu_memory_utilization: must be more than 0 and at most 1, got 0");
  config = {};
  config.nnodes = 0;  // as the launcher says
  EXPECT_TRUE(check_settings(config).ok()) << error_of(config);
  config.nnodes = -1;
  EXPECT_EQ(error_of(config), "[engine] nnodes: must be 1 to 64, got -1");
}

TEST(Settings, ReadTheTextsOfJsonObjects) {
  EngineConfig config;
  config.speculative_config = "{";
  EXPECT_THAT(error_of(config), HasSubstr("[config] `speculative_config`: "));
  config = {};
  config.kv_events_config = R"({"publisher": "kafka"})";
  EXPECT_THAT(error_of(config), HasSubstr("[config] `kv_events_config`: publisher"));
}

TEST(Settings, NameConflicts) {
  EngineConfig config;
  config.tokenizer = "other";
  config.calculate_kv_scales = true;
  std::vector<std::string> found;
  for (const Status& status : find_conflicts(config)) found.emplace_back(status.message());
  EXPECT_THAT(found, ElementsAre(HasSubstr("tokenizer: must be empty"),
                                 HasSubstr("calculate_kv_scales: got true")));
}

TEST(Settings, WordsHaveTypes) {
  EngineConfig config;
  EXPECT_EQ(forced_kv_dtype(config), std::nullopt);
  EXPECT_EQ(forced_device(config), std::nullopt);
  EXPECT_EQ(thread_options(config).pinning, CpuPinning::kAuto);
  config.kv_cache_dtype = "fp8";
  config.device = "cuda";
  config.cpu_cores = "all";
  config.cpu_pinning = "off";
  config.cpu_activations = "bf16";
  EXPECT_EQ(forced_kv_dtype(config), DType::kF8E4M3);
  EXPECT_EQ(forced_device(config), DeviceKind::kCuda);
  EXPECT_EQ(thread_options(config).cores, CpuCores::kAll);
  EXPECT_EQ(thread_options(config).pinning, CpuPinning::kOff);
  EXPECT_EQ(input_rounding(config), InputRounding::kBf16);
}

// ---- docs/settings.md

std::string values_of(const Setting& setting) {
  if (setting.has_values()) return setting.listed_values();
  if (std::holds_alternative<bool EngineConfig::*>(setting.member)) return "true or false";
  const bool is_text = std::holds_alternative<std::string EngineConfig::*>(setting.member);
  switch (setting.notation) {
    case Notation::kFile:
      return "a file";
    case Notation::kDirectory:
      return "a directory";
    case Notation::kBackend:
      return "auto or a backend";
    case Notation::kJson:
      return "a JSON object";
    case Notation::kBytes:
      return "bytes";
    default:
      break;
  }
  if (is_text) return "text";
  const std::string range = setting.range.text();
  return range.empty() ? "an integer" : range;
}

std::string devices_of(const Setting& setting) {
  if (!setting.only_on) return "";
  return *setting.only_on == DeviceKind::kCpu ? "CPU" : "GPU";
}

std::string page() {
  const EngineConfig defaults;
  std::string table;
  std::string meanings;
  for (const Setting& setting : all_settings()) {
    const std::string value = setting.text(defaults);
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, values_of(setting),
                         value.empty() ? "" : "`" + value + "`", devices_of(setting),
                         setting.is_agreed ? "alike" : "");
    if (setting.help.empty()) continue;
    const bool is_off = setting.text(defaults) == "true";
    meanings += fmt::format("- `{}`{}: {}\n", setting.flag_name().insert(2, is_off ? "no-" : ""),
                            setting.alias.empty() ? "" : fmt::format(", `{}`", setting.alias),
                            setting.help);
  }
  return fmt::format(
      "# Settings\n\n"
      "This page is made from the table in `src/start/settings.cc` by `QUIRE_UPDATE_DOCS=1 "
      "settings_test`.\n\n"
      "A setting is a member of `EngineConfig` (`include/quire/config.h`), and a flag of the same\n"
      "name with dashes, except `--threads`. Without a device, it has effect on all. On several\n"
      "nodes, settings marked \"alike\" must have the same value.\n\n"
      "| setting | values | default | device | nodes |\n|---|---|---|---|---|\n{}\n"
      "## Flags\n\n{}",
      table, meanings);
}

TEST(Settings, AreThePageInDocs) {
  const auto path = testing::source_path("docs/settings.md");
  if (std::getenv("QUIRE_UPDATE_DOCS") != nullptr) std::ofstream(path) << page();
  const auto text = read_file(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, page()) << "QUIRE_UPDATE_DOCS=1 settings_test writes the page anew";
}

}  // namespace
}  // namespace quire
