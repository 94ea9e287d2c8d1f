// For commands that create an engine: flags with vLLM's names, the creation of the engine, and its
// error messages.
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

// Adds a flag per setting; `config` must outlive the parse. kOfCommand: without --seed, because the
// command adds its own, which has another meaning.
enum class SeedFlag { kOfEngine, kOfCommand };
void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed);

// Adds the flag of one setting, which has the name of its field in EngineConfig.
void add_setting(FlagSet& flags, EngineConfig* config, std::string_view name);

// Returns the argument MODEL, which means the same as --model MODEL. kIsPulled: the help states
// that a missing model is downloaded, because the command calls pull_missing_model().
enum class MissingModel { kIsPulled, kFails };
Positional model_argument(EngineConfig* config, MissingModel missing = MissingModel::kFails);
inline constexpr std::string_view kPullsMissingModel =
    "A model of the hub that is not on this machine is pulled first; HF_HUB_OFFLINE=1 forbids it";
// Sets the model to a word of the command line. Fails if another model is set.
Status set_model(std::string_view word, EngineConfig* config);
// Returns whether a word names a model, and is not a prompt: an existing file or folder, a path
// that begins with "/", "./", "../" or "~/" or ends with ".gguf", a hub's name such as
// Qwen/Qwen3-0.6B, a model in the model folder, a model that `quire pull` downloads by name, or the
// embedded model.
bool names_model(std::string_view word);

// Fails if the first of several words, which does not name a model, has only characters of a
// model's name: a misspelt name would become a part of the text for another model. `text_name`
// names the text in the error, such as "a message".
Status check_first_word(std::string_view word, std::string_view text_name);

// The model of a command line without one: the default model if the model folder has it, otherwise
// the embedded model.
struct DefaultModel {
  std::string model;  // its file; empty: the embedded model
  std::string note;   // a line for the user that states the model and the reason
};
DefaultModel default_model();
// Sets an empty `model` to the default model, and prints the note on standard error.
void use_default_model(std::string* model);

// Flags for commands that render conversations.
void add_chat_flags(FlagSet& flags, EngineConfig* config);

// Adds the flags that affect the speed of attention backends: the model, types and page size.
void add_attention_flags(FlagSet& flags, EngineConfig* config);

// Adds --device, and the flags with which `quire tune` measures a CPU: weights, activations, cores
// and pinning.
void add_tuned_cpu_flags(FlagSet& flags, EngineConfig* config);

// Returns `config`, with dummy weights if its model is a JSON file: reports and measurements of
// time need only a config.json, not the weights of a checkpoint.
EngineConfig with_dummy_weights_of_config(EngineConfig config);

// Calls Engine::create with a progress bar on standard error while weights are read, and warns of
// settings that are valid but unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);
// Does the same with Engine::run_node().
Status run_engine_node(const EngineConfig& config, const std::function<bool()>& should_stop);

// Fails if the model cannot chat, or if its template refuses the system message (if any), so that a
// command reports the error before the first message.
Status check_chat_template(const Engine& engine, const std::string& system = "");

// Returns the message of an engine's error, with flags in place of the fields of EngineConfig.
std::string engine_message(const Status& error);

}  // namespace quire::cli
