// Flags shared by all commands that create an engine, with vLLM's names.
#pragma once

#include "cli/flags.h"
#include "quire/config.h"

namespace quire::cli {

// `config` must outlive the parse. A command in which --seed has another meaning adds its own.
enum class SeedFlag { kOfEngine, kOfCommand };
void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed);

// Flags for commands that render conversations.
void add_chat_template_flag(FlagSet& flags, EngineConfig* config);

// The subset that affects the speed of attention backends: the model, types and page size.
void add_attention_flags(FlagSet& flags, EngineConfig* config);

}  // namespace quire::cli
