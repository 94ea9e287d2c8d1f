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
#include "start/setting_values.h"
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
  const EngineConfig config;
  std::set<const void*> members;
  for (const Setting& setting : all_settings()) {
    const void* member = std::visit(
        [&](auto of) { return static_cast<const void*>(&(config.*of)); }, setting.member);
    EXPECT_TRUE(members.insert(member).second) << setting.name << " has two rows";
  }
  EXPECT_EQ(members.size(), num_members<EngineConfig>());
}

TEST(Settings, DefaultsAreValid) {
  EXPECT_TRUE(check_settings(EngineConfig()).ok()) << error_of(EngineConfig());
}

TEST(Settings, RefuseUnknownWords) {
  for (const Setting& setting : all_settings()) {
    const auto* word = std::get_if<std::string EngineConfig::*>(&setting.member);
    if (word == nullptr || !setting.is_choice()) continue;
    EngineConfig config;
    config.*(*word) = "nonsense";
    EXPECT_THAT(error_of(config), HasSubstr(fmt::format("{}: must be {}, got nonsense",
                                                        setting.name, setting.listed_values())));
    // A value may be refused beside other settings, but not as a value.
    for (const SettingWord& other : setting.words) {
      config.*(*word) = other.word;
      const bool is_refused = error_of(config).find("must be") != std::string::npos;
      EXPECT_EQ(is_refused, !other.is_value()) << setting.name << " " << other.word;
    }
  }
}

TEST(Settings, RefuseUnknownBackends) {
  EngineConfig config;
  config.decode_attention_backend = "nonsense";
  EXPECT_THAT(error_of(config),
              HasSubstr("decode_attention_backend: must be one of auto, cpu, reference"));
  config.decode_attention_backend = "reference";
  EXPECT_TRUE(check_settings(config).ok()) << error_of(config);
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
  EXPECT_EQ(error_of(config), "[engine] nnodes: must be 0 to 64, got -1");
  config = {};
  config.rank_timeout = 0;
  EXPECT_EQ(error_of(config), "[engine] rank_timeout: must be 1 to 3600 s, got 0");
  config = {};
  config.max_model_len = 1;
  EXPECT_THAT(error_of(config), HasSubstr("max_model_len: must be 0 to 16777216, got 1; 0 or at "
                                          "least 2: a token of prompt and one of output"));
}

TEST(Settings, ReadTheTextsOfJsonObjects) {
  EngineConfig config;
  config.speculative_config = "{";
  EXPECT_THAT(error_of(config), HasSubstr("[config] `speculative_config`: "));
  config = {};
  config.kv_events_config = R"({"publisher": "kafka"})";
  EXPECT_THAT(error_of(config), HasSubstr("[config] `kv_events_config`: publisher"));
}

struct Conflict {
  std::string_view error;
  void (*set)(EngineConfig& config);
};

constexpr Conflict kConflicts[] = {
    {"tokenizer: must be empty", [](EngineConfig& config) { config.tokenizer = "other"; }},
    {"kv_cache_dtype: got int8 on a GPU",
     [](EngineConfig& config) {
       config.kv_cache_dtype = "int8";
       config.device = "cuda";
     }},
    {"calculate_kv_scales: got true",
     [](EngineConfig& config) { config.calculate_kv_scales = true; }},
    {"cpu_activations: got int8 with `quantization` fp8",
     [](EngineConfig& config) {
       config.quantization = "fp8";
       config.cpu_activations = "int8";
     }},
    {"packed_weights: must be", [](EngineConfig& config) { config.packed_weights = ""; }},
    {"long_prefill_token_threshold: got 64 without chunked prefill",
     [](EngineConfig& config) {
       config.long_prefill_token_threshold = 64;
       config.enable_chunked_prefill = false;
     }},
    {"data_parallel_size: got 2 on 2 nodes",
     [](EngineConfig& config) { config.data_parallel_size = config.nnodes = 2; }},
    {"`max_num_batched_tokens`: got 4, expected at least 5",
     [](EngineConfig& config) {
       config.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 4})";
       config.max_num_batched_tokens = 4;
     }},
    {"`speculative_config`: disable_padded_drafter_batch",
     [](EngineConfig& config) {
       config.speculative_config =
           R"({"method": "ngram", "num_speculative_tokens": 4, "disable_padded_drafter_batch": true})";
       config.device = "cuda";
     }},
};

TEST(Settings, NameEachConflict) {
  for (const Conflict& conflict : kConflicts) {
    EngineConfig config;
    conflict.set(config);
    const std::vector<Status> found = find_conflicts(config);
    ASSERT_EQ(found.size(), 1) << conflict.error;
    EXPECT_THAT(std::string(found.front().message()), HasSubstr(conflict.error));
    EXPECT_EQ(check_settings(config).message(), found.front().message());
  }
}

TEST(Settings, NameAllConflicts) {
  EngineConfig config;
  config.tokenizer = "other";
  config.calculate_kv_scales = true;
  EXPECT_EQ(find_conflicts(config).size(), 2);
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
  if (setting.is_choice()) return setting.listed_values();
  if (std::holds_alternative<bool EngineConfig::*>(setting.member)) return "true or false";
  const bool is_text = std::holds_alternative<std::string EngineConfig::*>(setting.member);
  std::string words;
  for (const SettingWord& word : setting.words) {
    if (word.is_value()) words += fmt::format("{} or ", word.word);
  }
  switch (setting.notation) {
    case Notation::kFile:
      return words + "a file";
    case Notation::kDirectory:
      return words + "a directory";
    case Notation::kModel:
      return "a path or a name";
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
                         setting.nodes == NodeAgreement::kSame ? "same" : "");
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
      "A setting is a member of `EngineConfig` (`include/quire/config.h`). Its flag, if it has "
      "one,\n"
      "is below. The fourth column names the device on which it has an effect, if it has none on\n"
      "others. The settings marked \"same\" must have the same value on all nodes.\n\n"
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
