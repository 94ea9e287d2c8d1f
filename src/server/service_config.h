// Settings of the server that hold for all calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/api_keys.h"
#include "server/gate.h"
#include "server/grammar_queue.h"
#include "server/structured_output.h"

namespace quire::server {

struct ServiceConfig {
  std::vector<std::string> model_names = {};  // accepted names; responses show the first
  std::string model_path = {};                // also accepted as a name; never shown
  ApiKeys keys = {};
  GateConfig gate = {};
  int num_workers = 2;
  int num_grammar_threads = 2;
  GrammarQueueLimits grammar_queue = {};
  // Upper bound on a text of /tokenize or /detokenize, in bytes; twice as many tokens are allowed.
  // The memory and time of a call are small multiples of it.
  size_t max_tokenize_bytes = size_t{4} << 20;
  bool allow_request_priority = false;  // false: a call's own priority is ignored
  std::string tool_call_parser = {};    // empty: tool calls stay text
  std::string reasoning_parser = {};
  std::vector<std::string> allowed_origins = {};  // CORS; empty: off
  bool checks_host = false;                       // see hosts.h
  std::vector<std::string> allowed_hosts = {};
  std::string version = {};
  int64_t started_at = 0;               // seconds since the epoch
  std::chrono::seconds patience{30};    // time without progress until /health reports it
  ConstraintCompiler constraints = {};  // for structured output
};

}  // namespace quire::server
