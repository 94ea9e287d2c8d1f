// The configuration of the server's routes for a loaded model, in `quire serve` and `quire batch`.
#pragma once

#include "cli/serve_flags.h"
#include "quire/engine.h"
#include "server/service.h"

namespace quire::cli {

// Returns the configuration of the routes, without the members that set_access() sets. Chooses the
// dialects in which the model writes its tool calls and its reasoning, and logs them.
server::ServiceConfig model_service_config(const ServeOptions& options, const Engine& engine);

}  // namespace quire::cli
