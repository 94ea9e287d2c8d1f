// The server's routes on top of a loaded model, for `quire serve` and `quire batch`.
#pragma once

#include "cli/serve_flags.h"
#include "quire/engine.h"
#include "server/service.h"

namespace quire::cli {

// Returns the configuration of the routes, without the access to them: keys, hosts and the version
// (set_access()). Chooses the dialects in which the model writes its tool calls and its reasoning,
// and logs them.
server::ServiceConfig model_service_config(const ServeOptions& options, const Engine& engine);

}  // namespace quire::cli
