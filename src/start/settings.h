// The table of settings. One row per member of EngineConfig states the values that it may have, its
// flag and help, and whether all nodes must have the same value. The command line, the checks of
// values, the comparison of nodes, `quire doctor` and docs/settings.md use the table.
//
// A new setting is a member of EngineConfig, a row, and the code that uses the value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/numbers.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

inline constexpr int kMaxNumBatchedTokens = 1 << 20;

// Decides how a flag is parsed and shown.
enum class Notation {
  kPlain,  // one of the words, a number, or a switch
  kText,
  kFile,       // a path, or one of the words
  kDirectory,  // a path, or one of the words
  kModel,      // a path, or a model's name
  kCount,      // 8192, 8k (8000) or 8K (8192)
  kBytes,      // 1048576, 512M or 4GiB
  kBackend,    // "auto" or an attention backend; a flag takes only backends of the build
  kJson,       // an object
};

enum class NodeAgreement {
  kSame,       // nodes with another value than node 0 are refused
  kMayDiffer,  // nodes may have different values
};

// A word that a user may write for a value.
struct SettingWord {
  std::string_view word;         // "*", as the last word: any other word
  std::string_view value = {};   // the value that it means; empty: the word itself
  std::string_view remedy = {};  // if not empty, the word is refused with this text

  constexpr bool is_value() const { return value.empty() && remedy.empty(); }
};

struct Setting {
  using Member =
      std::variant<std::string EngineConfig::*, bool EngineConfig::*, int EngineConfig::*,
                   int64_t EngineConfig::*, double EngineConfig::*, uint64_t EngineConfig::*>;

  std::string_view name;  // of the member
  Member member;
  NodeAgreement nodes;
  // The text of the flag. A switch that is on by default has the flag --no-NAME, and the text
  // describes that flag.
  std::string_view help = {};
  // The heading of the flag in the help of all commands that make an engine. Empty: no heading,
  // because only some commands add the flag (add_setting), or no command does.
  std::string_view group = {};
  std::span<const SettingWord> words = {};  // empty: any text or number
  Range range = {};                         // of a number
  std::string_view unit = {};               // of a number
  Notation notation = Notation::kPlain;
  std::string_view flag = {};              // empty: "--" and the name with dashes
  std::string_view alias = {};             // another name of the flag
  std::string_view value_name = {};        // in the help; empty: by notation
  bool is_secret = false;                  // reports do not show the value
  std::optional<DeviceKind> only_on = {};  // has no effect on other devices
  // The value that turns the feature off, which causes no warning on a device without the feature.
  std::string_view off_value = {};
  // The part of the text that nodes compare; null: all of it.
  std::string (*compared_text)(std::string_view text) = nullptr;
  // Checks a text that is not empty.
  Status (*check_text)(std::string_view text) = nullptr;
  // Fails if the value contradicts other settings on any model and machine.
  Status (*check_conflict)(const EngineConfig& config) = nullptr;

  std::string flag_name() const;                       // "--block-size"
  std::string text(const EngineConfig& config) const;  // the value
  bool is_default(const EngineConfig& config) const;
  bool is_choice() const;             // only the words are valid
  std::string listed_values() const;  // of a choice: "auto, cpu or cuda"
};

// In the order of the help.
std::span<const Setting> all_settings();
// Ends the program if no setting has this name.
const Setting& setting(std::string_view name);

// Fails for the first value that is not allowed, naming the member, and for the first conflict.
// Reads no file and no device. Each step of a start checks the settings that it gets, because some
// commands and tests call a step alone.
Status check_settings(const EngineConfig& config);
// One error per conflict between settings.
std::vector<Status> find_conflicts(const EngineConfig& config);

// ---- Conflicts that also depend on the device or on the number of drafts

// Fails if the configuration names an attention backend of GPUs. `no_gpu` is the reason why no GPU
// can be used.
Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu);
// Fails if the configuration asks for a cache that only CPUs have. Called for a GPU.
Status refuse_cpu_cache(const EngineConfig& config);
// Fails unless a step has room for the newest token of one sequence and its drafts.
Status check_step_tokens(int max_num_batched_tokens, int num_drafts);

}  // namespace quire
