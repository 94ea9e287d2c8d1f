#include "cli/load_engine.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/log.h"
#include "base/machine.h"
#include "cli/progress.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

// Warns of settings that are valid but probably not what the user wants.
void warn_of(const EngineConfig& config) {
  const int num_cores = num_usable_cores();
  if (config.num_threads > num_cores) {
    log_warning(
        "[cli] --threads {} is more than the {} usable cores: they will wait for each other",
        config.num_threads, num_cores);
  }
  if (config.device != "cpu" && cuda_status().ok()) return;
  if (config.enforce_eager) log_warning("[cli] --enforce-eager has no effect on a CPU");
  if (config.gpu_memory_utilization != EngineConfig().gpu_memory_utilization) {
    log_warning("[cli] --gpu-memory-utilization has no effect on a CPU");
  }
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config) {
  warn_of(config);
  std::optional<Progress> progress;
  return Engine::create(config, [&](int num_done, int num_layers) {
    if (!progress) progress.emplace("loading", static_cast<size_t>(num_layers));
    progress->update(static_cast<size_t>(num_done), "layers");
    if (num_done == num_layers) progress.reset();  // clears the bar before the next log line
  });
}

Status check_chat_template(const Engine& engine, const std::string& system) {
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", "hello"});
  const Status status = engine.render_chat(messages).status();
  if (status.ok()) return status;
  return {status.code(),
          fmt::format("[chat] {} has no usable chat template; {}; plain prompts go to quire "
                      "generate without --chat",
                      engine.model_info().name, status.message())};
}

}  // namespace quire::cli
