// The server's routes over an engine: who may call, what is let in, and what answers. Knows
// nothing of sockets: the transport hands it whole requests.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_keys.h"
#include "server/engine_api.h"
#include "server/gate.h"
#include "server/generation.h"
#include "server/grammar_queue.h"
#include "server/health_watch.h"
#include "server/http/server.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/parse.h"
#include "server/workers.h"

namespace quire::server {

// Compiles what restricts an answer: may take seconds. Thread-safe.
using CompileConstraint = std::function<Result<ConstraintFactory>(const GrammarSpec&)>;
// What it made of the same before, if that is known at once.
using FindConstraint = std::function<std::optional<Result<ConstraintFactory>>(const GrammarSpec&)>;

struct ServiceConfig {
  std::vector<std::string> model_names = {};  // the first is the one in answers; any is taken
  ApiKeys keys = {};
  GateConfig gate = {};
  int num_workers = 2;
  int num_grammar_threads = 2;
  GrammarQueueLimits grammar_queue = {};
  bool allow_request_priority = false;  // else a call's own is ignored
  std::string tool_call_parser = {};    // empty: tools are refused
  std::string reasoning_parser = {};
  std::vector<std::string> allowed_origins = {};  // CORS; empty: off
  bool checks_host = false;                       // see hosts.h
  std::vector<std::string> allowed_hosts = {};
  std::string version = {};
  int64_t started_at = 0;                          // seconds since the epoch
  std::chrono::seconds patience{30};               // without progress, before /health says so
  CompileConstraint compile_constraint = nullptr;  // null: structured output is refused
  FindConstraint find_constraint = nullptr;
  std::function<GrammarStats()> grammar_stats = nullptr;  // for /metrics
};

class Service {
 public:
  // The engine outlives the service's stop(), and has ended, or has no more to say, before the
  // service is destroyed.
  Service(EngineApi& engine, ServiceConfig config);
  ~Service();

  void handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange);
  // For the transport: keys are checked before a body is read, and its own refusals are written as
  // OpenAI's errors, with the same headers as all answers.
  http::Hooks hooks();
  // For /metrics; set once the transport stands, which must outlive stop().
  void watch(const http::Server* transport);

  // From now on no call for an answer is let in (503), and /ready says so.
  void close();
  // Nothing is worked on any more. Before the engine is destroyed.
  void stop();
  // Logs a time without progress, once; to be called now and then.
  void check_progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server
