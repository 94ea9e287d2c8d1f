// The models of `quire serve` with several models: those of its INI file, or of its folder.
#pragma once

#include <vector>

#include "cli/serve_models.h"
#include "quire/status.h"
#include "supervisor/model_list.h"

namespace quire::cli {

// Reads the models, and checks the flags of each of them. The flags of the command line take
// precedence over those of a section, and these over the section [*].
Result<std::vector<supervisor::ModelEntry>> read_models(const ModelsOptions& options);

}  // namespace quire::cli
