// What every route has at hand, and one request on its way to an answer.
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
#include "server/openai/call_error.h"
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
  WorkerPool& writers;  // of answers: waits behind no prompt's tokenizing
  Generations& generations;
  GrammarQueue& grammars;  // a grammar may take long: nothing else waits behind it
  const WorkerPool& workers;
  const WorkerPool& tokenizers;
  size_t max_prompt_bytes = 0;  // what is longer cannot fit the model's context
  std::atomic<const http::Server*> transport = nullptr;
};

// Answered once: by respond(), refuse(), or whoever takes its exchange.
struct Call {
  // Without an exchange there is only refusal().
  Call(CallContext& context, http::Request&& request, std::shared_ptr<http::Exchange>&& exchange);

  void respond(std::string body, std::string content_type = "application/json");
  void refuse(const CallError& error);
  // The same where somebody else sends it: notes it, and returns what to send.
  http::Response refusal(const CallError& error);
  // The client has gone before there was anything to answer.
  void note_cancelled();

  CallContext* context;
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  http::Headers response_headers;  // x-request-id, and CORS' where it is on
  RequestLog log;
  int key_idx = -1;  // whose call it is; -1: the server has no keys
};

// Whether the call names a model that is not served: then it has been refused.
bool refuse_unknown_model(Call& call, const std::string& model);

}  // namespace quire::server
