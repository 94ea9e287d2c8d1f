#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/log.h"
#include "server/calls/call_context.h"
#include "server/calls/generate_calls.h"
#include "server/calls/info_calls.h"
#include "server/calls/prompts.h"
#include "server/calls/text_calls.h"
#include "server/cors.h"
#include "server/error_response.h"
#include "server/hosts.h"
#include "server/http/ascii.h"
#include "server/page/page.h"

namespace quire::server {
namespace {

using Run = void (*)(CallContext& context, Call&& call);

enum class Access { kAnyone, kKeyHolder };
// kAtOnce: runs on the transport's thread, within microseconds. kWorker: runs on the worker pool,
// which parses and tokenizes. kTokenizer: runs on a separate pool for /tokenize and /detokenize
// with texts up to max_tokenize_bytes, so that no generation request waits behind them.
enum class Where { kAtOnce, kWorker, kTokenizer };
constexpr int kNumTokenizers = 1;
constexpr int kMaxTokenizing = 64;

struct Route {
  std::string_view method;
  std::string_view path;  // a path that ends in '/' matches all paths below it
  Access access;
  Where where;
  Run run;
};

// The complete list of routes; any other path is 404, with or without a key.
constexpr Route kRoutes[] = {
    {"GET", "/health", Access::kAnyone, Where::kAtOnce, get_health},
    {"GET", "/ready", Access::kAnyone, Where::kAtOnce, get_ready},
    {"GET", "/version", Access::kKeyHolder, Where::kAtOnce, get_version},
    {"GET", "/metrics", Access::kKeyHolder, Where::kWorker, get_metrics},
    {"GET", "/openapi.json", Access::kKeyHolder, Where::kAtOnce, get_openapi},
    {"GET", "/v1/models", Access::kKeyHolder, Where::kAtOnce, get_models},
    {"GET", kModelPrefix, Access::kKeyHolder, Where::kAtOnce, get_model},
    {"GET", "/tokenizer_info", Access::kKeyHolder, Where::kAtOnce, get_tokenizer_info},
    {"POST", "/tokenize", Access::kKeyHolder, Where::kTokenizer, post_tokenize},
    {"POST", "/detokenize", Access::kKeyHolder, Where::kTokenizer, post_detokenize},
    {"POST", "/v1/completions", Access::kKeyHolder, Where::kWorker, post_completions},
    {"POST", "/v1/chat/completions", Access::kKeyHolder, Where::kWorker, post_chat_completions},
};

bool is_generation(const Route& route) {
  return route.run == post_completions || route.run == post_chat_completions;
}

bool is_at(const Route& route, std::string_view path) {
  return route.path.ends_with('/') ? path.starts_with(route.path) : path == route.path;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

ApiError wrong_method(Call& call, std::string_view allowed) {
  call.response_headers.emplace_back("allow", allowed == "GET" ? "GET, HEAD" : allowed);
  return make_api_error(
      405, fmt::format("{} takes {}, not {}", call.request.path, allowed, call.request.method), "",
      "method_not_allowed");
}

// Also prevents cross-site form posts: a page of another site cannot send this content type without
// a CORS preflight.
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
        health(config.patience,
               {{"parsing", &workers}, {"writing", &writers}, {"grammar", &grammar_workers}}),
        workers(config.num_workers),
        // Not in health: long texts can occupy this pool for more than `patience`, and a restart
        // would not help.
        tokenizers(kNumTokenizers),
        writers(config.num_workers),
        grammar_workers(config.num_grammar_threads),
        grammars(grammar_workers, config.grammar_queue),
        context{.engine = engine,
                .config = config,
                .gate = gate,
                .health = health,
                .metrics = metrics,
                .writers = writers,
                .generations = generations,
                .grammars = grammars,
                .workers = workers,
                .tokenizers = tokenizers,
                .max_prompt_bytes = max_prompt_bytes(engine)} {}

  // The target of a call; exactly one of the two is set.
  struct Target {
    const Route* route = nullptr;
    const PageFile* page = nullptr;
  };
  // Runs the checks that need no body: finds the target and authorizes the caller.
  std::optional<ApiError> find(Call& call, Target& target);
  std::optional<ApiError> find_route(Call& call, Target& target);
  std::optional<ApiError> authorize(Call& call, std::string_view scheme);
  void dispatch(const Route& route, Call&& call);
  void tokenize(const Route& route, Call&& call);
  static void serve_page(const PageFile& file, Call&& call);

  const ServiceConfig config;
  Gate gate;
  HealthWatch health;
  ServerMetrics metrics;
  Generations generations;
  WorkerPool workers;
  WorkerPool tokenizers;
  WorkerPool writers;
  WorkerPool grammar_workers;
  GrammarQueue grammars;
  CallContext context;
  std::atomic<int> num_tokenizing = 0;  // calls that wait for the tokenizers
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

void Service::cancel() {
  impl_->generations.cancel();  // first, so that the calls below are refused
  impl_->config.constraints.stop();
  impl_->grammars.run_all();
}

void Service::stop() {
  impl_->grammar_workers.stop();
  impl_->tokenizers.stop();
  impl_->workers.stop();
  impl_->writers.stop();
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
    exchange->respond(preflight_response(impl_->config.allowed_origins, request));
    return;
  }
  Call call(impl_->context, std::move(request), std::move(exchange));
  Impl::Target target;
  if (const auto error = impl_->find(call, target)) return call.refuse(*error);
  if (target.page != nullptr) return Impl::serve_page(*target.page, std::move(call));
  impl_->dispatch(*target.route, std::move(call));
}

http::Hooks Service::hooks() {
  const auto check_head = [this](const http::Request& head) -> std::optional<http::Response> {
    if (is_preflight(head)) return std::nullopt;
    Call call(impl_->context, http::Request(head), nullptr);
    Impl::Target target;
    if (const auto error = impl_->find(call, target)) return call.refusal(*error);
    return std::nullopt;
  };
  const auto write_refusal = [this](const http::Request& head, const http::Refusal& refusal) {
    Call call(impl_->context, http::Request(head), nullptr);
    return call.refusal(make_api_error(refusal.status, std::string(refusal.message), "",
                                       std::string(refusal.code)));
  };
  return {.check_head = check_head, .write_refusal = write_refusal};
}

std::optional<ApiError> Service::Impl::find(Call& call, Target& target) {
  const std::string_view host = call.request.header("host");
  if (config.checks_host && !is_allowed_host(host, config.allowed_hosts)) {
    return make_api_error(403,
                          fmt::format("this server is not '{}'; expected an address, localhost, or "
                                      "what --allowed-hosts names",
                                      host.substr(0, 200)),
                          "", "host_not_allowed");
  }
  target.page = find_page_file(call.request.path);
  if (target.page == nullptr) return find_route(call, target);
  if (call.request.method != "GET" && call.request.method != "HEAD") {
    return wrong_method(call, "GET");
  }
  // With the Basic scheme a browser asks its user for the key as a password, and sends it with the
  // page's own requests too.
  return authorize(call, "Basic realm=\"quire\"");
}

std::optional<ApiError> Service::Impl::find_route(Call& call, Target& target) {
  const Route* other_method = nullptr;
  for (const Route& route : kRoutes) {
    if (!is_at(route, call.request.path)) continue;
    if (takes(route, call.request.method)) {
      target.route = &route;
      return route.access == Access::kKeyHolder ? authorize(call, "Bearer") : std::nullopt;
    }
    other_method = &route;
  }
  if (other_method != nullptr) return wrong_method(call, other_method->method);
  return make_api_error(404, fmt::format("there is no {}", call.request.path.substr(0, 200)), "",
                        "not_found");
}

std::optional<ApiError> Service::Impl::authorize(Call& call, std::string_view scheme) {
  if (config.keys.empty()) return std::nullopt;
  const std::optional<int> key = config.keys.find(call.request.header("authorization"));
  if (key) {
    call.key_idx = *key;
    return std::nullopt;
  }
  call.response_headers.emplace_back("www-authenticate", scheme);
  return make_api_error(401, "a valid key is needed: Authorization: Bearer KEY", "",
                        "invalid_api_key");
}

void Service::Impl::dispatch(const Route& route, Call&& call) {
  if (route.method == "POST" && !is_json(call.request.header("content-type"))) {
    return call.refuse(make_api_error(415, "expected a body of Content-Type: application/json", "",
                                      "unsupported_media_type"));
  }
  const std::string_view coding = call.request.header("content-encoding");
  if (!coding.empty() && !http::equals_ignoring_case(coding, "identity")) {
    return call.refuse(make_api_error(
        415,
        fmt::format("expected a body without Content-Encoding; got '{}'", coding.substr(0, 200)),
        "", "unsupported_media_type"));
  }
  // Refuses generation requests without capacity before their bodies are parsed.
  if (is_generation(route)) {
    Status room = gate.check_room(call.key_idx);
    if (!context.engine.health().ok()) room = engine_is_out();
    if (!room.ok()) return call.refuse(api_error(room));
  }
  if (route.where == Where::kAtOnce) return route.run(context, std::move(call));
  if (route.where == Where::kTokenizer) return tokenize(route, std::move(call));
  auto waiting = std::make_shared<Call>(std::move(call));
  workers.post([this, run = route.run, waiting] { run(context, std::move(*waiting)); });
}

void Service::Impl::tokenize(const Route& route, Call&& call) {
  if (num_tokenizing.fetch_add(1) >= kMaxTokenizing) {
    --num_tokenizing;
    return call.refuse(make_api_error(
        429,
        fmt::format("[server] {} texts wait to be tokenized; try again later", kMaxTokenizing)));
  }
  auto waiting = std::make_shared<Call>(std::move(call));
  tokenizers.post([this, run = route.run, waiting] {
    --num_tokenizing;  // before the response
    if (generations.is_cancelled()) return waiting->refuse(api_error(shutting_down()));
    run(context, std::move(*waiting));
  });
}

void Service::Impl::serve_page(const PageFile& file, Call&& call) {
  http::Headers& headers = call.response_headers;
  headers.emplace_back("content-security-policy", page_security_policy());
  headers.emplace_back("x-content-type-options", "nosniff");
  headers.emplace_back("referrer-policy", "no-referrer");
  headers.emplace_back("cache-control", "no-cache");
  call.respond(std::string(file.body), std::string(file.content_type));
}

}  // namespace quire::server
