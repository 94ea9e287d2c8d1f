// Which attention backend serves which steps, and why: for the log and for `quire doctor`.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_plan.h"

namespace quire {

// "decode: xqa and native, prefill: flashinfer", of each KV group.
std::string list_backends(const EnginePlan& plan);

// A line for each range of contexts that is served alike, and one for prompts.
std::vector<std::string> summarize_services(const EnginePlan& plan);

// A line for every choice, with the times that speak for it.
std::vector<std::string> describe_services(const EnginePlan& plan);

}  // namespace quire
