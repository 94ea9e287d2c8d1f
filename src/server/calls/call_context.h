// The objects that every route uses, and one request until its response is sent.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/engine_api.h"
#include "server/gate.h"
#include "server/generation.h"
#include "server/grammar_queue.h"
#include "server/health_watch.h"
#include "server/http/server.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/api_error.h"
#include "server/request_log.h"
#include "server/service_config.h"
#include "server/workers.h"

namespace quire::server {

struct CallContext {
  EngineApi& engine;
  const ServiceConfig& config;
  Gate& gate;
  HealthWatch& health;
  ServerMetrics& metrics;
  WorkerPool& writers;  // format responses; separate, so that they do not wait for the tokenizing
                        // of prompts
  Generations& generations;
  GrammarQueue& grammars;  // separate, because compiling a grammar can take seconds
  const WorkerPool& workers;
  const WorkerPool& tokenizers;
  size_t max_prompt_bytes = 0;  // a longer prompt cannot fit the model's context
  std::atomic<const http::Server*> transport = nullptr;
};

// A request that gets exactly one response: from respond(), from refuse(), or from the object that
// takes its exchange.
struct Call {
  // If `exchange` is null, only refusal() may be called.
  Call(CallContext& context, http::Request&& request, std::shared_ptr<http::Exchange>&& exchange);

  void respond(std::string body, std::string content_type = "application/json");
  void refuse(const ApiError& error);
  // Records the refusal and returns the response, which the caller sends.
  http::Response refusal(const ApiError& error);
  // Records that the client disconnected before the generation started.
  void note_cancelled();

  CallContext* context;
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  http::Headers response_headers;  // x-request-id, and the CORS headers if enabled
  RequestLog log;
  int key_idx = -1;  // index of the caller's key; -1: the server has no keys
};

// If the call names a model that is not served, refuses the call and returns true.
bool refuse_unknown_model(Call& call, const std::string& model);

}  // namespace quire::server
