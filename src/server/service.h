// The server on top of an engine: authorization, admission control and the dispatch to handlers.
// Independent of sockets: the transport passes whole requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv_events/publisher.h"
#include "server/access_control.h"
#include "server/admission_control.h"
#include "server/engine_api.h"
#include "server/http/server.h"
#include "server/responses_api/response_store.h"
#include "server/structured_output.h"

namespace quire::server {

struct ResponseTemplate;

// Settings of the server that hold for all requests.
struct ServiceConfig {
  std::vector<std::string> model_names = {};  // accepted names; responses show the first
  std::string model_path = {};                // also accepted as a name; never shown
  ApiKeys keys = {};
  AdmissionConfig admission = {};
  ResponseStoreLimits stored_responses = {};
  int num_workers = 2;
  int num_grammar_threads = 2;
  GrammarQueueLimits grammar_queue = {};
  // Upper bound on a text of /tokenize or /detokenize, in bytes; twice as many tokens are allowed.
  // The memory and time of a request are small multiples of this bound.
  size_t max_tokenize_bytes = size_t{4} << 20;
  bool allow_request_priority = false;  // false: a request's own priority is ignored
  std::string tool_call_parser = {};    // empty: tool calls stay text
  std::string reasoning_parser = {};
  // The checkpoint's own templates, which take precedence over the parsers that are named above.
  std::shared_ptr<const ResponseTemplate> call_template = {};
  std::shared_ptr<const ResponseTemplate> reasoning_template = {};
  // The chat template shows tools, but the dialect of its calls is not known: requests with tools
  // are refused, unless they force or forbid calls.
  bool lacks_dialect = false;
  bool has_generic_tools = false;  // the template ignores tools, and the server writes them
  std::vector<std::string> allowed_origins = {};  // CORS; empty: off
  bool checks_host = false;                       // see is_allowed_host()
  std::vector<std::string> allowed_hosts = {};
  std::string version = {};
  int tensor_parallel_size = 1;
  std::vector<KvEventsConfig> kv_event_sources = {};  // by data-parallel rank
  std::string build = {};  // the version and the compiler; part of system_fingerprint
  int64_t started_at = 0;  // seconds since the epoch
  std::chrono::seconds stall_timeout{30};  // time without progress until /health reports it
  ConstraintCompiler constraints = {};     // for structured output
};

// Threads of RunsOn::kTokenizer.
inline constexpr int kNumTokenizeWorkers = 1;

class Service {
 public:
  // The engine must outlive stop(). Before the service is destroyed, the engine must have ended or
  // must have delivered its last output.
  Service(EngineApi& engine, ServiceConfig config);
  ~Service();

  void handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange);
  // Hooks for the transport. They run all checks that need no body, such as the API key's, before a
  // body is read, and write the transport's own refusals as errors of the request's API.
  http::Hooks hooks();
  // Sets the transport whose counters /metrics shows. It must outlive stop().
  void set_transport(const http::Server* transport);

  // Refuses all later generation requests with 503, which /ready then returns too.
  void close();
  int num_running() const;  // generation requests, including those that wait for their grammar
  // Cancels all running generations: their clients get a 503, and streams end with an error. This
  // takes one engine step, and the time to send the errors.
  void cancel();
  // Stops all worker pools. Call it before the engine is destroyed.
  void stop();
  // Logs a stall once, and its end. Call it periodically.
  void check_progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire::server
