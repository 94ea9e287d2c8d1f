// Routes that report on the server and its model.
#include <utility>

#include "base/json_writer.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";  // followed by a model's name
constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

http::ServerStats transport_stats(const ServerState& state) {
  const http::Server* transport = state.transport.load();
  return transport == nullptr ? http::ServerStats() : transport->stats();
}

WaitingStats waiting_stats(const ServerState& state) {
  return {.num_for_grammars = state.grammars.num_waiting(),
          .num_for_workers = state.workers.load().num_waiting +
                             state.tokenize_workers.load().num_waiting +
                             state.writers.load().num_waiting,
          .grammars = state.config.constraints.stats()};
}

Status check_progress(ServerState& state) {
  const Status status =
      state.health.check(state.engine.health(), state.engine.stats(), HealthWatch::Clock::now());
  return status.ok() ? status : engine_unavailable();
}

void write_model(const ServerState& state, std::string_view name, JsonWriter& json) {
  json.begin_object();
  json.field("id", name);
  json.field("object", "model");
  json.field("created", state.config.started_at);
  json.field("owned_by", "quire");
  json.field("root", state.engine.model_info().name);
  json.key("parent");
  json.null();
  json.field("max_model_len", state.engine.model_info().max_model_len);
  json.end_object();
}

void respond_ok(RequestContext& context) {
  context.respond("{\"status\":\"ok\"}");
}

}  // namespace

// Liveness probe: an error means that a restart can help. A draining server is healthy.
void get_health(ServerState& state, RequestContext&& context) {
  const Status status = check_progress(state);
  if (!status.ok()) return context.refuse(api_error(status));
  respond_ok(context);
}

// Readiness probe: an error means that no new requests should be sent to this server.
void get_ready(ServerState& state, RequestContext&& context) {
  Status status = check_progress(state);
  if (status.ok() && state.admission.is_closed()) status = shutting_down();
  if (!status.ok()) return context.refuse(api_error(status));
  respond_ok(context);
}

void get_version(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("version", state.config.version);
  json.end_object();
  context.respond(json.text());
}

void get_metrics(ServerState& state, RequestContext&& context) {
  context.respond(state.metrics.text({.model_name = state.config.model_names.front(),
                                      .version = state.config.version,
                                      .model = state.engine.model_info(),
                                      .engine = state.engine.stats(),
                                      .http = transport_stats(state),
                                      .waiting = waiting_stats(state),
                                      .process = process_use()}),
                  std::string(kPrometheusText));
}

void get_openapi(ServerState& /*state*/, RequestContext&& context) {
  context.respond(std::string(openapi_json()));
}

void get_models(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("object", "list");
  json.key("data");
  json.begin_array();
  for (const std::string& name : state.config.model_names) write_model(state, name, json);
  json.end_array();
  json.end_object();
  context.respond(json.text());
}

void get_model(ServerState& state, RequestContext&& context) {
  const std::string name = context.request.path.substr(kModelPrefix.size());
  if (name.empty()) {
    return context.refuse(make_api_error(
        404, "the path has no model name; expected /v1/models/NAME", "model", "not_found"));
  }
  if (refuse_unknown_model(state, context, name)) return;
  JsonWriter json;
  write_model(state, name, json);
  context.respond(json.text());
}

void get_tokenizer_info(ServerState& state, RequestContext&& context) {
  const ModelInfo& info = state.engine.model_info();
  JsonWriter json;
  json.begin_object();
  json.field("vocab_size", info.vocab_size);
  json.field("max_model_len", info.max_model_len);
  const auto text_of = [&](int32_t id) { return state.engine.decode({id}, false); };
  const std::vector<int32_t>& eos_ids = info.eos_token_ids;
  json.key("bos_token");
  json.value_or_null(info.bos_token_id ? text_of(*info.bos_token_id) : "");
  json.key("bos_token_id");
  if (info.bos_token_id) {
    json.value(*info.bos_token_id);
  } else {
    json.null();
  }
  json.key("eos_token");
  json.value_or_null(eos_ids.empty() ? "" : text_of(eos_ids.front()));
  json.key("eos_token_ids");
  json.ids(eos_ids);
  json.key("chat_template");
  json.value_or_null(state.engine.chat_template());
  json.end_object();
  context.respond(json.text());
}

}  // namespace quire::server
