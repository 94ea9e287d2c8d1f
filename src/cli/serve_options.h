// What `quire serve` is told: its flags, and what is wrong with them before anything is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "quire/config.h"
#include "server/http/server.h"
#include "server/service_config.h"

namespace quire::cli {

struct ServeOptions {
  EngineConfig engine;
  std::string model_dir;  // the same as engine.model, named without a flag
  http::ServerConfig transport;
  server::ServiceConfig service;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "auto";
  int max_num_queued_tokens = static_cast<int>(server::GateConfig().max_num_queued_tokens);
  int64_t max_request_bytes = static_cast<int64_t>(http::Limits().max_body_bytes);
  int64_t max_total_request_bytes = static_cast<int64_t>(http::Limits().max_total_body_bytes);
  int64_t max_tokenize_bytes = static_cast<int64_t>(server::ServiceConfig().max_tokenize_bytes);
  int drain_timeout = 30;  // seconds
};

void add_serve_flags(FlagSet& flags, ServeOptions* options);

// Takes the directory as the model, and refuses what contradicts itself or could never do anything.
Status settle(ServeOptions& options);

}  // namespace quire::cli
