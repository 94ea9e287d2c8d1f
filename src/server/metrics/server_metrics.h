// The metrics of the server and its engine, and their text for /metrics.
#pragma once

#include <array>
#include <string>

#include "grammar/grammar_compiler.h"
#include "quire/engine.h"
#include "server/http/server.h"
#include "server/metrics/metrics.h"

namespace quire::server {

// Requests that have not reached the engine yet.
struct WaitingStats {
  int num_for_grammars = 0;
  size_t num_for_workers = 0;
  GrammarStats grammars = {};
};

class ServerMetrics {
 public:
  ServerMetrics();

  Histogram time_to_first_token;    // seconds
  Histogram inter_token_latency;    // seconds
  Histogram e2e_request_latency;    // seconds
  Histogram queue_time;             // seconds: per sequence, from arrival to its first step
  Histogram prefill_time;           // seconds: per sequence, from its first step to its first token
  Histogram decode_time;            // seconds: per sequence, from its first token to its last
  Histogram inference_time;         // seconds: prefill_time + decode_time
  Histogram num_prompt_tokens;      // per request
  Histogram num_generation_tokens;  // per sequence
  Histogram max_generation_tokens;  // per request, of its longest sequence
  Histogram params_n;               // per request
  Histogram params_max_tokens;      // per request

  void finished(FinishReason reason) { success_[static_cast<size_t>(reason)].add(); }
  void answered(int http_status);
  Counter num_cancelled;  // requests whose clients disconnected

  std::string text(std::string_view model_name, const EngineStats& engine,
                   const http::ServerStats& http, const WaitingStats& waiting) const;

 private:
  std::array<Counter, 4> success_;    // by FinishReason
  std::array<Counter, 600> answers_;  // by HTTP status
};

}  // namespace quire::server
