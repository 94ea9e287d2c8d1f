// `quire serve` with several models: the flags of the supervisor, and the function that runs it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/serve_flags.h"

namespace quire::cli {

struct ModelsOptions {
  std::string models_dir;
  std::string models_file;
  int max_loaded_models = 0;      // 0: as many as the memory holds
  int model_start_timeout = 120;  // seconds
  int sleep_idle_seconds = 0;     // 0: never
  // The other flags of the command line: names and values, in order.
  std::vector<std::pair<std::string, std::string>> given = {};

  bool is_set() const { return !models_dir.empty() || !models_file.empty(); }
};

void add_models_flags(FlagSet& flags, ModelsOptions* options);
// Finds contradictions between the supervisor's flags and the other flags.
void check_models_flags(const ServeOptions& options, const ModelsOptions& given,
                        Complaints& complaints);

Result<int> run_supervisor(const ServeOptions& options, const ModelsOptions& given,
                           const LogOptions& log);

}  // namespace quire::cli
