#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "server/entry_checks.h"
#include "server/page/page.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

constexpr int kMaxTokenizing = 64;

bool matches_method(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// Returns an error if the model cannot serve a route of this kind. As in vLLM, a server has only
// the routes that its model serves, so the status is 404.
std::optional<ApiError> check_model(RouteKind kind, const ServerState& state) {
  const bool embeds = state.engine.model_info().embedding_size > 0;
  if (embeds == (kind == RouteKind::kEmbedding)) return std::nullopt;
  const std::string& name = state.config.model_names.front();
  return make_api_error(
      404,
      embeds
          ? fmt::format("the model '{}' embeds texts and does not generate; use POST "
                        "/v1/embeddings, or serve a model that generates",
                        name)
          : fmt::format("the model '{}' generates text and has no embeddings; serve an embedding "
                        "model with last-token pooling, such as Qwen/Qwen3-Embedding-0.6B",
                        name),
      "model", "unsupported_model");
}

// Reads the headers that choose a replica. A repeated header is refused unless its values are
// equal.
std::optional<ApiError> read_replica(const ModelInfo& model, RequestContext& context) {
  context.session_id = context.request.header("x-session-id");
  const std::string_view text = context.request.header("x-data-parallel-rank");
  if (text.data() == nullptr) return std::nullopt;  // no header; an empty one is refused below
  for (const auto& [name, value] : context.request.headers) {
    if (name != "x-data-parallel-rank" || value == text) continue;
    return make_api_error(
        400,
        fmt::format("the header x-data-parallel-rank is repeated: got '{}' and '{}', expected one "
                    "replica; send it once",
                    text.substr(0, 200), std::string_view(value).substr(0, 200)),
        "x-data-parallel-rank");
  }
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || rank < 0 || rank >= model.data_parallel_size) {
    return make_api_error(
        400,
        fmt::format("the header x-data-parallel-rank names no replica of the model: got '{}', "
                    "expected 0 to {}; without it, the server chooses one",
                    text.substr(0, 200), model.data_parallel_size - 1),
        "x-data-parallel-rank");
  }
  context.data_parallel_rank = rank;
  return std::nullopt;
}

}  // namespace

struct Service::Impl {
  Impl(EngineApi& engine, ServiceConfig config) : state(engine, std::move(config)) {}

  // The target of a request; exactly one of the two is set.
  struct Target {
    const Route* route = nullptr;
    const PageFile* page = nullptr;
  };
  // Runs the checks that need no body: finds the target and authorizes the caller.
  std::optional<ApiError> find(RequestContext& context, Target& target);
  std::optional<ApiError> find_route(RequestContext& context, Target& target);
  void dispatch(const Route& route, RequestContext&& context);
  void tokenize(const Route& route, RequestContext&& context);

  ServerState state;
  std::atomic<int> num_tokenizing = 0;  // requests that wait for a tokenize worker
  bool was_healthy = true;
};

Service::Service(EngineApi& engine, ServiceConfig config)
    : impl_(std::make_unique<Impl>(engine, std::move(config))) {}

Service::~Service() {
  stop();
}

void Service::set_transport(const http::Server* transport) {
  impl_->state.transport.store(transport);
}

void Service::close() {
  impl_->state.admission.close();
}

int Service::num_running() const {
  return impl_->state.generations.num_running() + impl_->state.grammars.num_waiting();
}

void Service::cancel() {
  impl_->state.generations.cancel();  // first, so that the requests that run_all() runs are refused
  impl_->state.config.constraints.stop();
  impl_->state.grammars.run_all();
}

void Service::stop() {
  impl_->state.grammar_workers.stop();
  impl_->state.tokenize_workers.stop();
  impl_->state.workers.stop();
  impl_->state.writers.stop();
}

void Service::check_progress() {
  const std::vector<ReplicaState> replicas = impl_->state.engine.replicas();
  const auto now = HealthWatch::Clock::now();
  for (size_t r = 0; r < replicas.size(); ++r) {
    impl_->state.token_rates[r].sample(replicas[r].stats.num_generated_tokens, now);
  }
  const Status status = impl_->state.health.check(replicas, now).status;
  // An engine logs its own failure, but without the number of its replica.
  const bool is_logged = replicas.size() == 1 && !replicas.front().health.ok();
  if (!status.ok() && impl_->was_healthy && !is_logged) log_error("{}", status.message());
  if (status.ok() && !impl_->was_healthy) log_info("[server] the server makes progress again");
  impl_->was_healthy = status.ok();
}

void Service::handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
  RequestContext context(impl_->state.config, impl_->state.metrics, std::move(request),
                         std::move(exchange));
  if (is_preflight(context.request)) {
    return respond_to_preflight(impl_->state.config, context);
  }
  Impl::Target target;
  if (const auto error = impl_->find(context, target)) return context.refuse(*error);
  if (target.page != nullptr) return serve_page(*target.page, std::move(context));
  impl_->dispatch(*target.route, std::move(context));
}

http::Hooks Service::hooks() {
  const auto check = [this](RequestContext& context) {
    Impl::Target target;
    return impl_->find(context, target);
  };
  return make_hooks(impl_->state.config, impl_->state.metrics, impl_->state.unread_requests, check);
}

std::optional<ApiError> Service::Impl::find(RequestContext& context, Target& target) {
  if (const auto error = check_host(state.config, context)) return error;
  target.page = find_page_file(context.request.path);
  if (target.page == nullptr) return find_route(context, target);
  context.log.success_level = LogLevel::kDebug;  // the page consists of many files
  if (context.request.method != "GET" && context.request.method != "HEAD") {
    return wrong_method(context, "GET, HEAD");
  }
  // The page's files have no secrets and need no key: the page asks for a key when a route needs
  // one.
  return std::nullopt;
}

std::optional<ApiError> Service::Impl::find_route(RequestContext& context, Target& target) {
  const std::string path = routed_path(context.request.path);
  std::string allowed;
  for (const Route& route : routes()) {
    const auto parameter = match_path(route, path);
    if (!parameter) continue;
    if (matches_method(route, context.request.method)) {
      target.route = &route;
      context.path_parameter = *parameter;
      return route.access == Access::kNeedsKey ? authorize(state.config, context) : std::nullopt;
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (!allowed.empty()) return wrong_method(context, allowed);
  return make_api_error(
      404, fmt::format("there is no route {}; {}", path.substr(0, 200), replacement_of(path)), "",
      "not_found");
}

void Service::Impl::dispatch(const Route& route, RequestContext&& context) {
  if (route.kind == RouteKind::kPolled) context.log.success_level = LogLevel::kDebug;
  if (const auto error = check_body_type(context)) return context.refuse(*error);
  // Requests that the model cannot serve, or for which there is no capacity, are refused before
  // their bodies are parsed.
  const bool uses_engine =
      route.kind == RouteKind::kGeneration || route.kind == RouteKind::kEmbedding;
  if (uses_engine) {
    if (const auto error = check_model(route.kind, state)) return context.refuse(*error);
  }
  if (uses_engine || route.kind == RouteKind::kRender) {
    if (const auto error = read_replica(state.engine.model_info(), context)) {
      return context.refuse(*error);
    }
  }
  if (uses_engine) {
    Status capacity = state.admission.check_capacity(context.key_idx);
    if (!state.engine.health().ok()) capacity = engine_unavailable();
    if (!capacity.ok()) return context.refuse(api_error(capacity));
  }
  if (route.runs_on == RunsOn::kTransport) return route.handler(state, std::move(context));
  if (route.runs_on == RunsOn::kTokenizer) return tokenize(route, std::move(context));
  auto waiting = std::make_shared<RequestContext>(std::move(context));
  state.workers.post(
      [this, handler = route.handler, waiting] { handler(state, std::move(*waiting)); });
}

void Service::Impl::tokenize(const Route& route, RequestContext&& context) {
  if (num_tokenizing.fetch_add(1) >= kMaxTokenizing) {
    --num_tokenizing;
    return context.refuse(make_api_error(
        429,
        fmt::format("[server] {} requests wait to be tokenized; try again later", kMaxTokenizing)));
  }
  auto waiting = std::make_shared<RequestContext>(std::move(context));
  state.tokenize_workers.post([this, handler = route.handler, waiting] {
    --num_tokenizing;  // before the response
    if (state.generations.is_cancelled()) return waiting->refuse(api_error(shutting_down()));
    handler(state, std::move(*waiting));
  });
}

}  // namespace quire::server
