// `quire serve` with several models: the flags of the supervisor, and the models of its INI file or
// folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/serve.h"
#include "supervisor/model_list.h"

namespace quire::cli {

struct ModelsOptions {
  std::string models_dir;
  std::string models_file;
  int max_loaded_models = 0;
  int model_start_timeout = 120;  // seconds
  int sleep_idle_seconds = 0;     // 0: never
  // The other flags of the command line, in order, with the names of their values.
  std::vector<std::pair<std::string, std::string>> given = {};

  bool is_set() const { return !models_dir.empty() || !models_file.empty(); }
};

void add_models_flags(FlagSet& flags, ModelsOptions* options);
// Finds flags that contradict the supervisor's.
void check(const ServeOptions& options, const ModelsOptions& given, Complaints& complaints);

// Reads the models, and checks the flags of each of them. The flags of the command line take
// precedence over those of a section, and these over the section [*].
Result<std::vector<supervisor::ModelEntry>> read_models(const ModelsOptions& options);

Result<int> run_supervisor(const ServeOptions& options, const ModelsOptions& given,
                           const LogOptions& log);

}  // namespace quire::cli
