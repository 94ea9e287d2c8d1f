// One server for several models: it has no engine, and passes each request to the process of the
// model that the request names.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/server.h"
#include "server/page/page.h"
#include "server/request_context.h"
#include "server/workers.h"
#include "supervisor/model_pool.h"
#include "supervisor/model_reports.h"
#include "supervisor/proxied_request.h"

namespace quire::supervisor {

struct SupervisorConfig {
  PoolConfig pool;
  server::ServiceConfig service;  // keys, origins, hosts and version
  // By index of the caller's key: the key of the processes, which separates callers there as the
  // caller's own key would. Empty: the supervisor has no keys.
  std::vector<std::string> process_keys = {};
};

class Supervisor {
 public:
  explicit Supervisor(SupervisorConfig config);

  void handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange);
  http::Hooks hooks();

  // Sets the transport whose counters /metrics shows. It must outlive stop().
  void set_transport(const http::Server* transport) { transport_.store(transport); }

  int num_running() const;
  void close();   // refuses waiting and later requests
  void cancel();  // ends the running requests with an error
  void stop();    // ends all processes

 private:
  using Context = server::RequestContext;
  using OwnHandler = void (Supervisor::*)(Context&& context);

  // A route that the supervisor answers itself.
  struct Route {
    std::string_view method;
    std::string_view path;  // may end in {model}
    bool is_public = false;
    OwnHandler handler = nullptr;
  };
  static const std::vector<Route>& own_routes();
  struct Target {
    const server::PageFile* page = nullptr;
    const Route* own = nullptr;  // null with a page, and for routes of the processes
  };
  std::optional<server::ApiError> find(Context& context, Target& target) const;

  void answer_health(Context&& context);
  void answer_ready(Context&& context);
  void answer_version(Context&& context);
  void answer_models(Context&& context);
  void answer_model(Context&& context);
  void answer_load(Context&& context);
  void answer_unload(Context&& context);
  void answer_metrics(Context&& context);
  void answer_num_requests(Context&& context);
  void answer_openapi(Context&& context);
  void answer_ollama_pull(Context&& context);
  void answer_ollama_tags(Context&& context);
  void answer_ollama_ps(Context&& context);
  void answer_ollama_version(Context&& context);

  void forward(Context&& context);
  void forward_to(size_t model, Context&& context);
  // Sets the model that a request names in its query or its body. `unnamed` is the model of a
  // request without a name, which is an error if there is no such model.
  std::optional<server::ApiError> choose_model(const Context& context,
                                               std::optional<size_t> unnamed, size_t& model) const;
  std::string named_model(const Context& context) const;
  // Returns the model that made the stored response whose id the request has.
  std::optional<size_t> model_of_response(const Context& context);
  // Ollama's requests without a prompt and with keep_alive 0.
  static bool only_unloads(const Context& context);
  // Passes a probe on, which neither starts the model nor keeps it busy. Returns false if the
  // request names no model.
  bool ask_named_model(Context& context);
  void remember_response(size_t model, std::string_view piece);
  server::ApiError unknown_model(std::string_view name) const;
  std::string names_text() const;
  template <typename Use>
  void report(const Use& use) const;  // calls use(ReportedModel) per model

  server::ServiceConfig service_;
  const std::vector<std::string> process_keys_;
  server::ServerMetrics metrics_;
  server::LogThrottle unread_requests_;
  std::vector<FileFacts> files_;  // by model
  std::atomic<bool> is_closed_ = false;
  std::atomic<const http::Server*> transport_ = nullptr;
  std::mutex mutex_;
  std::vector<std::weak_ptr<ProxiedRequest>> requests_;
  std::map<std::string, size_t, std::less<>> models_of_responses_;  // by the id of the response
  std::vector<std::string> response_ids_;                           // a ring of the latest
  size_t next_response_ = 0;
  ModelPool pool_;
  server::WorkerPool workers_{2};  // search bodies
};

}  // namespace quire::supervisor
