#include "cli/load_engine.h"

#include <optional>

#include "base/log.h"
#include "base/machine.h"
#include "cli/progress.h"

namespace quire::cli {

Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config) {
  const int num_cores = num_usable_cores();
  if (config.num_threads > num_cores) {
    log_warning(
        "[cli] --threads {} is more than the {} usable cores: they will wait for each other",
        config.num_threads, num_cores);
  }
  std::optional<Progress> progress;
  return Engine::create(config, [&](int num_done, int num_layers) {
    if (!progress) progress.emplace("loading", static_cast<size_t>(num_layers));
    progress->update(static_cast<size_t>(num_done), "layers");
    if (num_done == num_layers) progress.reset();  // before the log speaks again
  });
}

}  // namespace quire::cli
