#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "server/calls/call_context.h"
#include "server/calls/generate_calls.h"
#include "server/calls/info_calls.h"
#include "server/calls/text_calls.h"
#include "server/cors.h"
#include "server/error_response.h"
#include "server/http/ascii.h"
#include "server/page/page.h"

namespace quire::server {
namespace {

using Run = void (*)(CallContext& context, Call&& call);

enum class Access { kAnyone, kKeyHolder };
// kAtOnce: microseconds, on the transport's thread; kWorker: parses, tokenizes.
enum class Where { kAtOnce, kWorker };

struct Route {
  std::string_view method;
  std::string_view path;
  Access access;
  Where where;
  Run run;
};

// All there is: what is not here is 404, with or without a key.
constexpr Route kRoutes[] = {
    {"GET", "/health", Access::kAnyone, Where::kAtOnce, get_health},
    {"GET", "/ready", Access::kAnyone, Where::kAtOnce, get_ready},
    {"GET", "/version", Access::kKeyHolder, Where::kAtOnce, get_version},
    {"GET", "/metrics", Access::kKeyHolder, Where::kWorker, get_metrics},
    {"GET", "/openapi.json", Access::kKeyHolder, Where::kAtOnce, get_openapi},
    {"GET", "/v1/models", Access::kKeyHolder, Where::kAtOnce, get_models},
    {"GET", "/tokenizer_info", Access::kKeyHolder, Where::kAtOnce, get_tokenizer_info},
    {"POST", "/tokenize", Access::kKeyHolder, Where::kWorker, post_tokenize},
    {"POST", "/detokenize", Access::kKeyHolder, Where::kWorker, post_detokenize},
    {"POST", "/v1/completions", Access::kKeyHolder, Where::kWorker, post_completions},
    {"POST", "/v1/chat/completions", Access::kKeyHolder, Where::kWorker, post_chat_completions},
};

bool is_generation(const Route& route) {
  return route.run == post_completions || route.run == post_chat_completions;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

void refuse_method(Call& call, std::string_view allowed) {
  call.response_headers.emplace_back("allow", allowed == "GET" ? "GET, HEAD" : allowed);
  call.refuse(make_call_error(
      405, fmt::format("{} takes {}, not {}", call.request.path, allowed, call.request.method), "",
      "method_not_allowed"));
}

// Also what keeps other sites' pages from posting here without asking first.
bool is_json(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view rest = content_type.substr(std::min(kJson.size(), content_type.size()));
  return http::equals_ignoring_case(content_type.substr(0, kJson.size()), kJson) &&
         (rest.empty() || rest.front() == ';' || rest.front() == ' ');
}

}  // namespace

struct Service::Impl {
  Impl(EngineApi& engine, ServiceConfig given)
      : config(std::move(given)),
        gate(config.gate, config.keys.size()),
        health(config.patience),
        workers(config.num_workers),
        grammar_workers(config.num_grammar_threads),
        context{engine, config, gate, health, metrics, workers, grammar_workers, nullptr} {}

  void dispatch(const Route& route, Call&& call);
  void serve_page(const PageFile& file, Call&& call);
  // Whether the call has a key, if one is needed; if not, it has been refused.
  bool authorize(Call& call, std::string_view scheme);

  const ServiceConfig config;
  Gate gate;
  HealthWatch health;
  ServerMetrics metrics;
  WorkerPool workers;
  WorkerPool grammar_workers;
  CallContext context;
  bool was_healthy = true;
};

Service::Service(EngineApi& engine, ServiceConfig config)
    : impl_(std::make_unique<Impl>(engine, std::move(config))) {}

Service::~Service() {
  stop();
}

void Service::watch(const http::Server* transport) {
  impl_->context.transport.store(transport);
}

void Service::close() {
  impl_->gate.close();
}

void Service::stop() {
  impl_->grammar_workers.stop();
  impl_->workers.stop();
}

void Service::check_progress() {
  const EngineApi& engine = impl_->context.engine;
  const Status status =
      impl_->health.check(engine.health(), engine.stats(), HealthWatch::Clock::now());
  if (!status.ok() && impl_->was_healthy) log_error("{}", status.message());
  if (status.ok() && !impl_->was_healthy) log_info("[server] the engine makes progress again");
  impl_->was_healthy = status.ok();
}

void Service::handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
  if (is_preflight(request)) {
    return exchange->respond(preflight_response(impl_->config.allowed_origins, request));
  }
  Call call(impl_->context, std::move(request), std::move(exchange));
  if (const PageFile* file = find_page_file(call.request.path)) {
    return impl_->serve_page(*file, std::move(call));
  }
  const Route* other_method = nullptr;
  for (const Route& route : kRoutes) {
    if (route.path != call.request.path) continue;
    if (takes(route, call.request.method)) return impl_->dispatch(route, std::move(call));
    other_method = &route;
  }
  if (other_method != nullptr) return refuse_method(call, other_method->method);
  call.refuse(make_call_error(404, fmt::format("there is no {}", call.request.path.substr(0, 200)),
                              "", "not_found"));
}

bool Service::Impl::authorize(Call& call, std::string_view scheme) {
  if (config.keys.empty()) return true;
  const std::optional<int> key = config.keys.find(call.request.header("authorization"));
  if (key) {
    call.key_idx = *key;
    return true;
  }
  call.response_headers.emplace_back("www-authenticate", scheme);
  call.refuse(make_call_error(401, "a valid key is needed: Authorization: Bearer KEY", "",
                              "invalid_api_key"));
  return false;
}

void Service::Impl::dispatch(const Route& route, Call&& call) {
  if (route.access == Access::kKeyHolder && !authorize(call, "Bearer")) return;
  if (route.method == "POST" && !is_json(call.request.header("content-type"))) {
    return call.refuse(make_call_error(415, "expected a body of Content-Type: application/json", "",
                                       "unsupported_media_type"));
  }
  // What there is no room for costs no parsing.
  if (is_generation(route)) {
    const Status room = gate.check_room(call.key_idx);
    if (!room.ok()) return call.refuse(call_error(room));
  }
  if (route.where == Where::kAtOnce) return route.run(context, std::move(call));
  auto waiting = std::make_shared<Call>(std::move(call));
  workers.post([this, run = route.run, waiting] { run(context, std::move(*waiting)); });
}

// A browser asks its user for the key, as a password, and sends it with the page's own calls.
void Service::Impl::serve_page(const PageFile& file, Call&& call) {
  if (call.request.method != "GET" && call.request.method != "HEAD") {
    return refuse_method(call, "GET");
  }
  if (!authorize(call, "Basic realm=\"quire\"")) return;
  http::Headers& headers = call.response_headers;
  headers.emplace_back("content-security-policy", page_security_policy());
  headers.emplace_back("x-content-type-options", "nosniff");
  headers.emplace_back("referrer-policy", "no-referrer");
  headers.emplace_back("cache-control", "no-cache");
  call.respond(std::string(file.body), std::string(file.content_type));
}

}  // namespace quire::server
