// The numbers of threads that `quire tune` measured to be the fastest on a CPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/thread_choice.h"
#include "measure/choices.h"
#include "platform/platform.h"
#include "quire/config.h"

namespace quire {

struct ModelFiles;

inline constexpr int kMaxTunedThreads = 1024;  // the limit of EngineConfig::num_threads

// The key of a choice of threads: the CPUs that the process may use, and the model. `choice`: made
// with ThreadOptions::num_threads = 0.
std::string threads_key(const ThreadChoice& choice, const EngineConfig& config,
                        const ModelFiles& files);
void keep_tuned_threads(std::string_view key, const StepThreads& threads, MeasuredChoices& choices);
// nullopt: not measured.
std::optional<StepThreads> find_tuned_threads(std::string_view key, MeasuredChoices& choices);

}  // namespace quire
