// What an operator and the engine settle for all calls.
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
  std::vector<std::string> model_names = {};  // the first is the one in answers; any is taken
  std::string model_path = {};                // taken for one of them, and shown to nobody
  ApiKeys keys = {};
  GateConfig gate = {};
  int num_workers = 2;
  int num_grammar_threads = 2;
  GrammarQueueLimits grammar_queue = {};
  // Bounds a text of /tokenize or /detokenize, in bytes, and the number of its tokens; the memory
  // and the time of a call are small multiples of it.
  size_t max_tokenize_bytes = size_t{4} << 20;
  bool allow_request_priority = false;  // else a call's own is ignored
  std::string tool_call_parser = {};    // empty: calls stay text
  std::string reasoning_parser = {};
  std::vector<std::string> allowed_origins = {};  // CORS; empty: off
  bool checks_host = false;                       // see hosts.h
  std::vector<std::string> allowed_hosts = {};
  std::string version = {};
  int64_t started_at = 0;               // seconds since the epoch
  std::chrono::seconds patience{30};    // without progress, before /health says so
  ConstraintCompiler constraints = {};  // of structured output
};

}  // namespace quire::server
