// Commands that create an engine: their flags, with vLLM's names, the engine itself, and its
// messages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/flags.h"
#include "quire/config.h"
#include "quire/engine.h"

namespace quire::cli {

// `config` must outlive the parse. A command in which --seed has another meaning adds its own.
enum class SeedFlag { kOfEngine, kOfCommand };
void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed);

// The flag of one setting.
void add_setting(FlagSet& flags, EngineConfig* config, std::string_view name);

// The argument MODEL, which means the same as --model MODEL. kIsPulled: the command calls
// pull_missing_model(), and the help says so.
enum class MissingModel { kIsPulled, kFails };
Positional model_argument(EngineConfig* config, MissingModel missing = MissingModel::kFails);
inline constexpr std::string_view kPullsMissingModel =
    "A model of the hub that is not on this machine is pulled first; HF_HUB_OFFLINE=1 forbids it";
// Sets the model to a word of the command line. Fails if another model is set.
Status set_model(std::string_view word, EngineConfig* config);
// Whether a word names a model and not a prompt: an existing file or folder, a path that begins
// with "/", "./", "../" or "~/", a name of a hub such as Qwen/Qwen3-0.6B, a model of the model
// folder, a model that `quire pull` has by name, or the embedded model.
bool names_model(std::string_view word);

// Fails if the first of several words, which names no model, is like a misspelt name of one: it
// would become a part of the text, and another model would read it.
Status check_first_word(std::string_view word, std::string_view text_name);

// The model of a command that names none: the default model, if the model folder has it.
struct DefaultModel {
  std::string model;  // its file; empty: the embedded model
  std::string note;   // a line for the user that says which model it is, and why
};
DefaultModel default_model();
// Sets an empty `model` to the default model, and prints the note on standard error.
void use_default_model(std::string* model);

// Flags for commands that render conversations.
void add_chat_flags(FlagSet& flags, EngineConfig* config);

// The subset that affects the speed of attention backends: the model, types and page size.
void add_attention_flags(FlagSet& flags, EngineConfig* config);

// The device, and what `quire tune` measures a CPU with: weights, activations, cores and pinning.
void add_tuned_cpu_flags(FlagSet& flags, EngineConfig* config);

// Returns `config`, with dummy weights if its model is a config.json: this file alone is enough for
// reports and times, which need no weights of a checkpoint.
EngineConfig with_dummy_weights_of_config(EngineConfig config);

// Calls Engine::create with a progress bar on standard error while weights are read, and warns of
// settings that are valid but unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);
// load_engine() for Engine::run_node.
Status run_engine_node(const EngineConfig& config, const std::function<bool()>& should_stop);

// Fails if the model cannot chat, or not with this system message (if any), so that a command
// reports it before the first question.
Status check_chat_template(const Engine& engine, const std::string& system = "");

// The message of an engine's error, with flags in place of the fields of EngineConfig.
std::string engine_message(const Status& error);

}  // namespace quire::cli
