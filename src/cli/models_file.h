// Reads the models of `quire serve` with several models, from its INI file or its folder.
#pragma once

#include <vector>

#include "cli/serve_models.h"
#include "quire/status.h"
#include "supervisor/model_list.h"

namespace quire::cli {

// Reads the models, and checks the flags of each model. Flags of the command line take precedence
// over the flags of the model's section, and these over the flags of the section [*].
Result<std::vector<supervisor::ModelEntry>> read_models(const ModelsOptions& options);

}  // namespace quire::cli
