// The options of `quire serve` and `quire batch`, and the checks that need no model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "quire/config.h"
#include "server/http/listen.h"
#include "server/http/server.h"
#include "server/service.h"

namespace quire::cli {

// Default limits of the sequences that wait. The limit for embeddings is larger, because an
// embedding takes only a few steps, and clients send 1,000 texts or more at once.
inline constexpr int kMaxQueuedGenerations = 512;
inline constexpr int kMaxQueuedEmbeddings = 4096;

struct ServeOptions {
  // By default a server keeps no packed weights: it starts rarely, and often in a container, whose
  // layer a file of the model's size would fill. A server with packed weights stops without waiting
  // for the file.
  ServeOptions() {
    engine.packed_weights = "off";
    engine.waits_for_packed_weights = false;
  }

  EngineConfig engine;
  http::ServerConfig transport;
  server::ServiceConfig service;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "auto";
  bool generic_tools = false;
  int max_num_queued_reqs = -1;  // -1: kMaxQueuedGenerations or kMaxQueuedEmbeddings
  int max_num_queued_tokens = static_cast<int>(server::AdmissionConfig().max_num_queued_tokens);
  int64_t max_request_bytes = static_cast<int64_t>(http::Limits().max_body_bytes);
  int64_t max_total_request_bytes = static_cast<int64_t>(http::Limits().max_total_body_bytes);
  int64_t max_tokenize_bytes = static_cast<int64_t>(server::ServiceConfig().max_tokenize_bytes);
  int64_t max_stored_response_bytes = static_cast<int64_t>(server::ResponseStoreLimits().max_bytes);
  int drain_timeout = 30;  // seconds
  bool headless = false;   // refuses to be node 0
};

// The environment variable that a supervisor sets for its processes.
inline constexpr const char* kSupervised = "QUIRE_SUPERVISED";

void add_serve_flags(FlagSet& flags, ServeOptions* options);
// Adds only the flags that have a meaning without clients.
void add_batch_flags(FlagSet& flags, ServeOptions* options);

// Find contradictions, values that are never valid, and flags that would have no effect.
void check_serve(const ServeOptions& options, Complaints& complaints);
void check_batch(const ServeOptions& options, Complaints& complaints);

}  // namespace quire::cli
