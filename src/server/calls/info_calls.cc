#include "server/calls/info_calls.h"

#include <utility>

#include "base/json.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

http::ServerStats transport_stats(const CallContext& context) {
  const http::Server* transport = context.transport.load();
  return transport == nullptr ? http::ServerStats() : transport->stats();
}

WaitingStats waiting(const CallContext& context) {
  return {.num_for_grammars = context.grammars.num_waiting(),
          .num_for_workers = context.workers.num_waiting() + context.tokenizers.num_waiting() +
                             context.writers.num_waiting(),
          .grammars = context.config.constraints.stats()};
}

Status progress(CallContext& context) {
  const Status status = context.health.check(context.engine.health(), context.engine.stats(),
                                             HealthWatch::Clock::now());
  return status.ok() ? status : engine_is_out();
}

void write_model(const CallContext& context, std::string_view name, JsonWriter& json) {
  json.begin_object();
  json.field("id", name);
  json.field("object", "model");
  json.field("created", context.config.started_at);
  json.field("owned_by", "quire");
  json.field("root", context.engine.model_info().name);
  json.key("parent");
  json.null();
  json.field("max_model_len", context.engine.model_info().max_model_len);
  json.end_object();
}

void write_or_null(std::string_view name, std::string_view text, JsonWriter& json) {
  json.key(name);
  if (text.empty()) return json.null();
  json.value(text);
}

void respond_ok(Call& call) {
  call.respond("{\"status\":\"ok\"}");
}

}  // namespace

// Liveness probe: an error means that a restart can help. A draining server is healthy.
void get_health(CallContext& context, Call&& call) {
  const Status status = progress(context);
  if (!status.ok()) return call.refuse(api_error(status));
  respond_ok(call);
}

// Readiness probe: an error means that no new requests should be sent to this server.
void get_ready(CallContext& context, Call&& call) {
  Status status = progress(context);
  if (status.ok() && context.gate.is_closed()) {
    status = unavailable("[server] the server is shutting down");
  }
  if (!status.ok()) return call.refuse(api_error(status));
  respond_ok(call);
}

void get_version(CallContext& context, Call&& call) {
  JsonWriter json;
  json.begin_object();
  json.field("version", context.config.version);
  json.end_object();
  call.respond(json.text());
}

void get_metrics(CallContext& context, Call&& call) {
  call.respond(context.metrics.text(context.config.model_names.front(), context.engine.stats(),
                                    transport_stats(context), waiting(context)),
               std::string(kPrometheusText));
}

void get_openapi(CallContext& /*context*/, Call&& call) {
  call.respond(std::string(openapi_json()));
}

void get_models(CallContext& context, Call&& call) {
  JsonWriter json;
  json.begin_object();
  json.field("object", "list");
  json.key("data");
  json.begin_array();
  for (const std::string& name : context.config.model_names) write_model(context, name, json);
  json.end_array();
  json.end_object();
  call.respond(json.text());
}

void get_model(CallContext& context, Call&& call) {
  const std::string name = call.request.path.substr(kModelPrefix.size());
  if (name.empty()) {
    return call.refuse(make_api_error(404, "a model's name is missing", "model", "not_found"));
  }
  if (refuse_unknown_model(call, name)) return;
  JsonWriter json;
  write_model(context, name, json);
  call.respond(json.text());
}

void get_tokenizer_info(CallContext& context, Call&& call) {
  const ModelInfo& info = context.engine.model_info();
  JsonWriter json;
  json.begin_object();
  json.field("vocab_size", info.vocab_size);
  json.field("max_model_len", info.max_model_len);
  const auto text_of = [&](int32_t id) { return context.engine.decode({id}, false); };
  const std::vector<int32_t>& eos_ids = info.eos_token_ids;
  write_or_null("bos_token", info.bos_token_id ? text_of(*info.bos_token_id) : "", json);
  json.key("bos_token_id");
  if (info.bos_token_id) {
    json.value(*info.bos_token_id);
  } else {
    json.null();
  }
  write_or_null("eos_token", eos_ids.empty() ? "" : text_of(eos_ids.front()), json);
  json.key("eos_token_ids");
  json.ids(eos_ids);
  write_or_null("chat_template", context.engine.chat_template(), json);
  json.end_object();
  call.respond(json.text());
}

}  // namespace quire::server
