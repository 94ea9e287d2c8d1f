// Reports which attention backend serves which steps, and why, for the log and for `quire doctor`.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_plan.h"

namespace quire {

// Lists the backends of each KV group, for example "decode: xqa and native, prefill: flashinfer".
std::string list_backends(const EnginePlan& plan);

// One line per range of contexts that the same backends serve, and one for prompts.
std::vector<std::string> summarize_services(const EnginePlan& plan);

// One line per choice, with the measured times that support it.
std::vector<std::string> describe_services(const EnginePlan& plan);

}  // namespace quire
