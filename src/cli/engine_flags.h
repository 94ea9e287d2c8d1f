// The flags that every command with an engine takes; names as vLLM's.
#pragma once

#include "cli/flags.h"
#include "quire/config.h"

namespace quire::cli {

// `config` outlives the parse. Where --seed means something else, the command adds its own.
enum class SeedFlag { kOfEngine, kOfCommand };
void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed);

// For commands that render conversations.
void add_chat_template_flag(FlagSet& flags, EngineConfig* config);

// Of them, those that an attention backend's speed depends on: the model, types and page size.
void add_attention_flags(FlagSet& flags, EngineConfig* config);

}  // namespace quire::cli
