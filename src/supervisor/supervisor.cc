#include "supervisor/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "base/json_writer.h"
#include "base/machine.h"
#include "base/text.h"
#include "server/entry_checks.h"
#include "server/http/request_parser.h"
#include "server/ollama_api/ollama_writer.h"
#include "server/routes/routes.h"
#include "supervisor/json_members.h"
#include "supervisor/metrics_merge.h"

namespace quire::supervisor {
namespace {

using server::ApiError;
using server::ErrorShape;
using server::make_api_error;
using server::RequestContext;

constexpr std::string_view kModelsPrefix = "/v1/models/";
constexpr std::string_view kResponsesPath = "/v1/responses";
constexpr size_t kMaxResponseIds = 4096;

// The routes that a server of one model lacks, and their description.
constexpr server::Route kMoreRoutes[] = {
    {"POST", "/models/load", server::Access::kNeedsKey, server::RunsOn::kTransport, nullptr},
    {"POST", "/models/unload", server::Access::kNeedsKey, server::RunsOn::kTransport, nullptr},
};
constexpr std::string_view kMorePaths = R"({
  "/models/load": {
    "post": {
      "operationId": "load_model",
      "summary": "Starts to load a model, and returns at once",
      "request": {
        "type": "object",
        "properties": {"model": {"type": "string"}},
        "required": ["model"]
      },
      "response": {
        "type": "object",
        "properties": {"success": {"const": true}},
        "required": ["success"]
      }
    }
  },
  "/models/unload": {
    "post": {
      "operationId": "unload_model",
      "summary": "Unloads a model once its running requests have ended, and returns at once",
      "request": {
        "type": "object",
        "properties": {"model": {"type": "string"}},
        "required": ["model"]
      },
      "response": {
        "type": "object",
        "properties": {"success": {"const": true}},
        "required": ["success"]
      }
    }
  }
})";

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// The decoded value of a parameter of the query; "" if it is absent.
std::string query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    if (!part.starts_with(key) || part.substr(key.size(), 1) != "=") continue;
    const auto target = http::parse_target("GET", "/" + std::string(part.substr(key.size() + 1)));
    return target ? target->path.substr(1) : "";
  }
  return "";
}

// Whether a model that is loaded with the server has neither been loaded nor failed yet.
bool is_first_load(const ReportedModel& model) {
  const ModelStatus& status = model.status;
  return model.entry.loads_at_start && status.state == ModelState::kLoading &&
         status.start_seconds == 0 && status.num_failed_starts == 0;
}

ApiError is_shutting_down() {
  return make_api_error(503, "[server] the server is shutting down", "", "shutting_down");
}

// Gathers the metrics of all loaded models. The response is sent when the last part has arrived or
// is lost.
class MetricsParts {
 public:
  explicit MetricsParts(RequestContext&& context) : context_(std::move(context)) {}
  ~MetricsParts() {
    constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
    run_guarded("[supervisor] could not send the metrics",
                [this] { context_.respond(merge_metrics(parts_), kPrometheusText); });
  }
  MetricsParts(const MetricsParts&) = delete;
  MetricsParts& operator=(const MetricsParts&) = delete;

  void add(const std::string& model, std::string text) {
    const std::lock_guard lock(mutex_);
    parts_.emplace_back(model, std::move(text));
  }

 private:
  RequestContext context_;
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> parts_;
};

class MetricsPart final : public http_client::ResponseHandler {
 public:
  MetricsPart(std::shared_ptr<MetricsParts> all, std::string model)
      : all_(std::move(all)), model_(std::move(model)) {}
  void on_head(int status) override { is_ok_ = status == 200; }
  bool on_body(std::string_view piece) override {
    text_ += piece;
    return true;
  }
  void on_end(const Status& status) override {
    if (status.ok() && is_ok_) all_->add(model_, std::move(text_));
    all_.reset();
  }

 private:
  std::shared_ptr<MetricsParts> all_;
  const std::string model_;
  bool is_ok_ = false;
  std::string text_;
};

// Passes the response to a probe on, or responds with 503 if none has come.
class ProbeResponse final : public http_client::ResponseHandler {
 public:
  explicit ProbeResponse(RequestContext&& context) : context_(std::move(context)) {}
  ~ProbeResponse() override {
    run_guarded("[supervisor] could not respond to a probe", [this] {
      refuse(make_api_error(503, "[supervisor] the model's process does not respond", "",
                            "no_response"));
    });
  }
  ProbeResponse(const ProbeResponse&) = delete;
  ProbeResponse& operator=(const ProbeResponse&) = delete;

  void refuse(const ApiError& error) {
    if (!std::exchange(has_responded_, true)) context_.refuse(error);
  }
  void on_head(int status) override { status_ = status; }
  bool on_body(std::string_view piece) override {
    body_ += piece;
    return true;
  }
  void on_end(const Status& status) override {
    if (!status.ok() || std::exchange(has_responded_, true)) return;
    context_.record(status_);
    context_.exchange->respond({.status = status_,
                                .headers = std::move(context_.response_headers),
                                .body = std::move(body_)});
  }

 private:
  RequestContext context_;
  bool has_responded_ = false;
  int status_ = 0;
  std::string body_;
};

}  // namespace

Supervisor::Supervisor(SupervisorConfig config)
    : service_(std::move(config.service)),
      process_keys_(std::move(config.process_keys)),
      pool_(std::move(config.pool)) {
  for (const ModelEntry& model : pool_.models()) files_.push_back(facts_of_files(model.files));
}

const std::vector<Supervisor::Route>& Supervisor::own_routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/health", true, &Supervisor::answer_health},
      {"GET", "/ping", true, &Supervisor::answer_health},
      {"GET", "/ready", true, &Supervisor::answer_ready},
      {"GET", "/version", false, &Supervisor::answer_version},
      {"GET", "/v1/models", false, &Supervisor::answer_models},
      {"POST", "/models/load", false, &Supervisor::answer_load},
      {"POST", "/models/unload", false, &Supervisor::answer_unload},
      {"GET", "/metrics", false, &Supervisor::answer_metrics},
      {"GET", "/load", false, &Supervisor::answer_num_requests},
      {"GET", "/openapi.json", false, &Supervisor::answer_openapi},
      {"POST", "/api/pull", false, &Supervisor::answer_ollama_pull},
      {"GET", "/api/tags", false, &Supervisor::answer_ollama_tags},
      {"GET", "/api/ps", false, &Supervisor::answer_ollama_ps},
      {"GET", "/api/version", false, &Supervisor::answer_ollama_version},
  };
  return kRoutes;
}

std::optional<ApiError> Supervisor::find(Context& context, Target& target) const {
  if (auto error = check_host(service_, context)) return error;
  const std::string& method = context.request.method;
  const std::string_view verb = method == "HEAD" ? "GET" : std::string_view(method);
  target.page = server::find_page_file(context.request.path);
  if (target.page != nullptr) {
    if (verb != "GET") return wrong_method(context, "GET, HEAD");
    return std::nullopt;  // the page has no secrets, and asks for the key itself
  }
  const std::string routed = server::routed_path(context.request.path);
  std::string allowed;
  const auto allow = [&](std::string_view other) {
    if (!allowed.empty()) allowed += ", ";
    allowed += other == "GET" ? "GET, HEAD" : other;
  };
  for (const Route& route : own_routes()) {
    if (route.path != routed && route.path != without_slashes(context.request.path)) continue;
    if (route.method != verb) {
      allow(route.method);
      continue;
    }
    target.own = &route;
    return route.is_public ? std::nullopt : authorize(service_, context);
  }
  // A process has a route with the same path: GET /models/load does not ask for a model "load".
  if (!allowed.empty()) return wrong_method(context, allowed);
  for (const server::Route& route : server::routes()) {
    if (!match_path(route, routed)) continue;
    if (route.method == verb) return authorize(service_, context);
    allow(route.method);
  }
  if (!allowed.empty()) return wrong_method(context, allowed);
  return make_api_error(404,
                        fmt::format("there is no route {}; {}", routed.substr(0, 200),
                                    server::replacement_of(routed)),
                        "", "not_found");
}

void Supervisor::handle(http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
  Context context(service_, metrics_, std::move(request), std::move(exchange));
  if (server::is_preflight(context.request)) return respond_to_preflight(service_, context);
  Target target;
  if (const auto error = find(context, target)) return context.refuse(*error);
  if (target.page != nullptr) return serve_page(*target.page, std::move(context));
  if (const auto error = check_body_type(context)) return context.refuse(*error);
  if (target.own != nullptr) return (this->*target.own->handler)(std::move(context));
  const std::string routed = server::routed_path(context.request.path);
  if (routed.starts_with(kModelsPrefix)) {
    context.path_parameter = routed.substr(kModelsPrefix.size());
    return answer_model(std::move(context));
  }
  auto waiting = std::make_shared<Context>(std::move(context));
  workers_.post([this, waiting] { forward(std::move(*waiting)); });
}

http::Hooks Supervisor::hooks() {
  return server::make_hooks(service_, metrics_, unread_requests_, [this](Context& context) {
    Target target;
    return find(context, target);
  });
}

// --- Requests for a model ---

void Supervisor::forward(Context&& context) {
  if (is_closed_) return context.refuse(is_shutting_down());
  size_t model = 0;
  std::optional<size_t> unnamed = model_of_response(context);
  if (!unnamed) unnamed = pool_.default_model();
  if (const auto error = choose_model(context, unnamed, model)) return context.refuse(*error);
  if (context.error_shape == ErrorShape::kOllama) {
    const auto keep = parse_keep_alive(json_member(context.request.body, "keep_alive"));
    if (keep && keep->count() == 0 && only_unloads(context)) {
      pool_.unload(model);
      const auto use = context.request.path.find("chat") == std::string::npos
                           ? server::OllamaUse::kGenerate
                           : server::OllamaUse::kChat;
      const std::string name = named_model(context);
      return context.respond(server::ollama_without_prompt(
          use, name.empty() ? pool_.models()[model].name : name, "unload"));
    }
    if (keep) pool_.keep_alive(model, *keep);
  }
  forward_to(model, std::move(context));
}

void Supervisor::forward_to(size_t model, Context&& context) {
  ProxiedRequest::OnFirstPiece on_first_piece;
  if (server::routed_path(context.request.path) == kResponsesPath) {
    on_first_piece = [this, model](std::string_view piece) { remember_response(model, piece); };
  }
  const std::string key = context.key_idx < 0 || process_keys_.empty()
                              ? ""
                              : process_keys_[static_cast<size_t>(context.key_idx)];
  const auto request = std::make_shared<ProxiedRequest>(pool_, model, std::move(context), key,
                                                        std::move(on_first_piece));
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() == requests_.capacity()) {
      std::erase_if(requests_, [](const auto& weak) { return weak.expired(); });
    }
    requests_.push_back(request);
  }
  request->submit();
}

bool Supervisor::only_unloads(const Context& context) {
  const std::string path = server::routed_path(context.request.path);
  if (path != "/api/generate" && path != "/api/chat") return false;
  const std::string_view key = path == "/api/chat" ? "messages" : "prompt";
  std::string_view value = json_member(context.request.body, key);
  return value.empty() || value == "\"\"" || value == "[]" || value == "null";
}

std::string Supervisor::named_model(const Context& context) const {
  std::string name = query_value(context.request.query, "model");
  const std::string_view body = context.request.body;
  if (name.empty()) name = json_string(json_member(body, "model"));
  // Ollama's /api/show also takes `name`.
  const bool is_ollama = context.error_shape == ErrorShape::kOllama;
  if (name.empty() && is_ollama) name = json_string(json_member(body, "name"));
  return name;
}

std::optional<ApiError> Supervisor::choose_model(const Context& context,
                                                 std::optional<size_t> unnamed,
                                                 size_t& model) const {
  const std::string name = named_model(context);
  const std::optional<size_t> found = name.empty() ? unnamed : pool_.find(name);
  if (found) {
    model = *found;
    return std::nullopt;
  }
  if (!name.empty()) return unknown_model(name);
  return make_api_error(400,
                        fmt::format("the request names no model, and there is no default; expected "
                                    "`model` to be one of {}",
                                    names_text()),
                        "model", "model_required");
}

std::optional<size_t> Supervisor::model_of_response(const Context& context) {
  const std::string path = server::routed_path(context.request.path);
  if (!path.starts_with(kResponsesPath)) return std::nullopt;
  std::string id = json_string(json_member(context.request.body, "previous_response_id"));
  if (path.size() > kResponsesPath.size()) {
    const std::string_view rest = std::string_view(path).substr(kResponsesPath.size() + 1);
    id = rest.substr(0, rest.find('/'));
  }
  const std::lock_guard lock(mutex_);
  const auto found = models_of_responses_.find(id);
  if (found == models_of_responses_.end()) return std::nullopt;
  return found->second;
}

void Supervisor::remember_response(size_t model, std::string_view piece) {
  constexpr std::string_view kMark = "\"id\":\"resp_";
  const size_t mark = piece.find(kMark);
  if (mark == std::string_view::npos) return;
  const size_t begin = mark + kMark.find("resp_");
  const std::string id(piece.substr(begin, piece.find('"', begin) - begin));
  const std::lock_guard lock(mutex_);
  if (response_ids_.size() < kMaxResponseIds) {
    response_ids_.push_back(id);
  } else {
    std::string& oldest = response_ids_[next_response_++ % kMaxResponseIds];
    models_of_responses_.erase(std::exchange(oldest, id));
  }
  models_of_responses_[id] = model;
}

std::string Supervisor::names_text() const {
  std::string text;
  for (const ModelEntry& model : pool_.models()) {
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", model.name);
  }
  return text;
}

ApiError Supervisor::unknown_model(std::string_view name) const {
  return make_api_error(
      404,
      fmt::format("the model '{}' is not served; expected one of {}", clipped(name), names_text()),
      "model", "model_not_found");
}

bool Supervisor::ask_named_model(Context& context) {
  const std::string name = query_value(context.request.query, "model");
  if (name.empty()) return false;
  const std::optional<size_t> model = pool_.find(name);
  if (!model) {
    context.refuse(unknown_model(name));
    return true;
  }
  const std::string_view state = name_of(pool_.status()[*model].state);
  const std::string path = context.request.path;
  const std::string& key = process_keys_.empty() ? "" : process_keys_.front();
  http_client::Request request = {.target = path};
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const auto probe = std::make_shared<ProbeResponse>(std::move(context));
  if (!pool_.ask(*model, std::move(request), probe)) {
    probe->refuse(make_api_error(
        503, fmt::format("[supervisor] the model '{}' is {}, expected loaded", name, state), "",
        std::string(state)));
  }
  return true;
}

// --- The supervisor's own routes ---

void Supervisor::answer_health(Context&& context) {
  context.log.success_level = LogLevel::kDebug;
  if (ask_named_model(context)) return;
  context.respond("{\"status\":\"ok\"}");
}

void Supervisor::answer_ready(Context&& context) {
  context.log.success_level = LogLevel::kDebug;
  if (is_closed_) return context.refuse(is_shutting_down());
  if (ask_named_model(context)) return;
  std::string loading;
  report([&](const ReportedModel& model) {
    if (is_first_load(model)) loading += (loading.empty() ? "" : ", ") + model.entry.name;
  });
  if (!loading.empty()) {
    return context.refuse(make_api_error(
        503, fmt::format("[supervisor] the server loads {} first", loading), "", "loading"));
  }
  context.respond("{\"status\":\"ok\"}");
}

void Supervisor::answer_version(Context&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("version", std::string_view(service_.version));
  json.end_object();
  context.respond(json.take());
}

template <typename Use>
void Supervisor::report(const Use& use) const {
  const std::vector<ModelStatus> all = pool_.status();
  for (size_t i = 0; i < all.size(); ++i) {
    use(ReportedModel{.entry = pool_.models()[i], .status = all[i], .files = files_[i]});
  }
}

void Supervisor::answer_models(Context&& context) {
  const bool is_anthropic = context.error_shape == ErrorShape::kAnthropic;
  JsonWriter json;
  json.begin_object();
  if (!is_anthropic) json.field("object", "list");
  json.key("data");
  json.begin_array();
  report([&](const ReportedModel& model) {
    json.raw(is_anthropic ? anthropic_model_json(model, service_.started_at)
                          : model_json(model, service_.started_at));
  });
  json.end_array();
  if (is_anthropic) {
    json.field("has_more", false);
    json.field("first_id", std::string_view(pool_.models().front().name));
    json.field("last_id", std::string_view(pool_.models().back().name));
  }
  json.end_object();
  context.respond(json.take());
}

void Supervisor::answer_model(Context&& context) {
  const std::optional<size_t> wanted = pool_.find(context.path_parameter);
  if (!wanted) return context.refuse(unknown_model(context.path_parameter));
  const bool is_anthropic = context.error_shape == ErrorShape::kAnthropic;
  std::string text;
  report([&](const ReportedModel& model) {
    if (&model.entry != &pool_.models()[*wanted]) return;
    text = is_anthropic ? anthropic_model_json(model, service_.started_at)
                        : model_json(model, service_.started_at);
  });
  context.respond(std::move(text));
}

void Supervisor::answer_load(Context&& context) {
  size_t model = 0;
  if (const auto error = choose_model(context, std::nullopt, model)) return context.refuse(*error);
  if (is_closed_) return context.refuse(is_shutting_down());
  pool_.load(model);
  context.respond("{\"success\":true}");
}

void Supervisor::answer_unload(Context&& context) {
  size_t model = 0;
  if (const auto error = choose_model(context, std::nullopt, model)) return context.refuse(*error);
  pool_.unload(model);
  context.respond("{\"success\":true}");
}

void Supervisor::answer_metrics(Context&& context) {
  context.log.success_level = LogLevel::kDebug;
  const auto parts = std::make_shared<MetricsParts>(std::move(context));
  const std::vector<ModelStatus> all = pool_.status();
  std::vector<ReportedModel> models;
  for (size_t i = 0; i < all.size(); ++i) {
    models.push_back({.entry = pool_.models()[i], .status = all[i], .files = files_[i]});
  }
  parts->add("", supervisor_metrics(models, service_.version));
  // The supervisor's own metrics have no model_name, so that they differ from the processes'.
  const http::Server* transport = transport_.load();
  parts->add("",
             metrics_.text({.model_name = {},
                            .version = service_.version,
                            .model = {},
                            .engines = {},
                            .http = transport == nullptr ? http::ServerStats() : transport->stats(),
                            .waiting = {},
                            .process = process_use()}));
  for (size_t i = 0; i < all.size(); ++i) {
    http_client::Request request = {.target = "/metrics"};
    if (!process_keys_.empty()) {
      request.headers.emplace_back("authorization", "Bearer " + process_keys_.front());
    }
    pool_.ask(i, std::move(request), std::make_shared<MetricsPart>(parts, pool_.models()[i].name));
  }
}

void Supervisor::answer_num_requests(Context&& context) {
  int num_requests = 0;
  report([&](const ReportedModel& model) {
    num_requests += model.status.num_running + model.status.num_waiting;
  });
  context.log.success_level = LogLevel::kDebug;
  context.respond(fmt::format("{{\"server_load\":{}}}", num_requests));
}

void Supervisor::answer_openapi(Context&& context) {
  static const std::string text = server::openapi_json(kMoreRoutes, kMorePaths);
  context.respond(text);
}

void Supervisor::answer_ollama_pull(Context&& context) {
  const auto is_served = [this](std::string_view model) { return pool_.find(model).has_value(); };
  server::OllamaPulled pulled;
  if (const auto error = server::pull_for_ollama(context.request.body, server::RequestLimits(),
                                                 names_text(), is_served, pulled)) {
    return context.refuse(*error);
  }
  context.respond(std::move(pulled.body), std::move(pulled.content_type));
}

// Lists every alias, because clients look for their model's name in the list.
void Supervisor::answer_ollama_tags(Context&& context) {
  std::string list;
  report([&](const ReportedModel& model) {
    list +=
        (list.empty() ? "" : ",") + ollama_tag_json(model, model.entry.name, service_.started_at);
    for (const std::string& alias : model.entry.aliases) {
      list += "," + ollama_tag_json(model, alias, service_.started_at);
    }
  });
  context.respond("{\"models\":[" + list + "]}");
}

void Supervisor::answer_ollama_ps(Context&& context) {
  context.log.success_level = LogLevel::kDebug;
  std::string list;
  report([&](const ReportedModel& model) {
    const ModelState state = model.status.state;
    if (state != ModelState::kLoaded && state != ModelState::kUnloading) return;
    list += (list.empty() ? "" : ",") + ollama_ps_json(model);
  });
  context.respond("{\"models\":[" + list + "]}");
}

void Supervisor::answer_ollama_version(Context&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("version", server::kOllamaVersion);
  json.field("quire_version", std::string_view(service_.version));
  json.end_object();
  context.respond(json.take());
}

// --- The end ---

int Supervisor::num_running() const {
  int num_running = 0;
  report([&](const ReportedModel& model) { num_running += model.status.num_running; });
  return num_running;
}

void Supervisor::close() {
  is_closed_ = true;
  pool_.close();
}

void Supervisor::cancel() {
  std::vector<std::weak_ptr<ProxiedRequest>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests = requests_;
  }
  for (const auto& weak : requests) {
    if (const auto request = weak.lock()) request->cancel(is_shutting_down());
  }
}

void Supervisor::stop() {
  workers_.stop();
  pool_.stop();
}

}  // namespace quire::supervisor
