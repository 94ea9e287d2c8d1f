// The table of settings: a row per member of EngineConfig with all that is stated about it: the
// values it may have, its flag and help, and whether all nodes must have the same. The command
// line, the checks of values, the comparison of nodes, `quire doctor` and docs/settings.md read it.
//
// A new setting is a member of EngineConfig, a row, and the code that uses the value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/numbers.h"
#include "base/thread_choice.h"
#include "ops/ops.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace quire {

inline constexpr int kMaxNumBatchedTokens = 1 << 20;

// How a user writes the value.
enum class Notation {
  kPlain,  // one of the words, a number, or a switch
  kText,
  kFile,
  kDirectory,
  kCount,    // 8192, 8k (8000) or 8K (8192)
  kBytes,    // 1048576, 512M or 4GiB
  kBackend,  // an attention backend of this build, or "auto"
  kJson,     // an object
};

// A word that a user may write.
struct SettingWord {
  std::string_view word;          // "*", as the last one: any other
  std::string_view meaning = {};  // another spelling of this value; empty: the word is the value
  std::string_view remedy = {};   // not empty: the word is refused, with this text

  bool is_value() const { return meaning.empty() && remedy.empty(); }
};

struct Setting {
  using Member =
      std::variant<std::string EngineConfig::*, bool EngineConfig::*, int EngineConfig::*,
                   int64_t EngineConfig::*, double EngineConfig::*, uint64_t EngineConfig::*>;

  std::string_view name;  // of the member
  Member member;
  std::string_view help = {};   // of a switch that is on by default: what --no-NAME does
  std::string_view group = {};  // of the flags that every command with an engine has; empty: a
                                // command adds the flag by name, or there is none
  std::span<const SettingWord> words = {};  // empty: any text or number
  Range range = {};                         // of a number
  Notation notation = Notation::kPlain;
  std::string_view flag = {};              // empty: "--" and the name with dashes
  std::string_view alias = {};             // another name of the flag
  std::string_view value_name = {};        // in the help; empty: by notation
  bool is_agreed = false;                  // all nodes must have the same value
  bool is_secret = false;                  // reports do not show the value
  std::optional<DeviceKind> only_on = {};  // without effect on other devices
  // Checks a JSON text.
  Status (*check_text)(std::string_view text) = nullptr;
  // Refuses the value beside those of other settings, on any model and machine.
  Status (*check_conflict)(const EngineConfig& config) = nullptr;

  std::string flag_name() const;                       // "--block-size"
  std::string text(const EngineConfig& config) const;  // the value
  bool is_default(const EngineConfig& config) const;
  bool has_values() const;            // the words are all values that there are
  std::string listed_values() const;  // "auto, cpu or cuda"
};

// In the order of the help.
std::span<const Setting> all_settings();
// There must be one.
const Setting& setting(std::string_view name);

// Fails for the first value that is not allowed, naming the member, and for the first conflict.
// Reads no file and no device. The steps of a start check the settings that they are called with,
// because commands and tests also run them alone.
Status check_settings(const EngineConfig& config);
// One error per conflict between settings.
std::vector<Status> find_conflicts(const EngineConfig& config);

// ---- The words as types. The settings must have passed check_settings().

bool uses_dummy_weights(const EngineConfig& config);
bool quantizes_at_load(const EngineConfig& config);
// The type of dummy weights; nullopt: the checkpoint's.
std::optional<DType> forced_dtype(const EngineConfig& config);
// nullopt: the type of the weights.
std::optional<DType> forced_kv_dtype(const EngineConfig& config);
// nullopt: a GPU if the build supports it and the machine has one.
std::optional<DeviceKind> forced_device(const EngineConfig& config);
// The ranks of this process; the nodes are placed (place_node).
inline int num_local_ranks(const EngineConfig& config) {
  return config.tensor_parallel_size / std::max(config.nnodes, 1);
}
ThreadOptions thread_options(const EngineConfig& config);
InputRounding input_rounding(const EngineConfig& config);

// ---- Conflicts that also depend on what a start finds out.

// Fails if the configuration names an attention backend of GPUs. `no_gpu` says why there is none.
Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu);
// Fails if the configuration asks for a cache that only CPUs have. Called for a GPU.
Status refuse_cpu_cache(const EngineConfig& config);
// A step must have room for one sequence with its drafts.
Status check_step_tokens(int max_num_batched_tokens, int num_drafts);

}  // namespace quire
