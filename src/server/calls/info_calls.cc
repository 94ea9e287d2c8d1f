#include "server/calls/info_calls.h"

#include <utility>

#include "base/json.h"
#include "server/openai/openapi.h"

namespace quire::server {
namespace {

constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

http::ServerStats transport_stats(const CallContext& context) {
  const http::Server* transport = context.transport.load();
  return transport == nullptr ? http::ServerStats() : transport->stats();
}

Status progress(CallContext& context) {
  return context.health.check(context.engine.health(), context.engine.stats(),
                              HealthWatch::Clock::now());
}

void respond_ok(Call& call) {
  call.respond("{\"status\":\"ok\"}");
}

}  // namespace

// Whether a restart would help: a draining server is healthy.
void get_health(CallContext& context, Call&& call) {
  const Status status = progress(context);
  if (!status.ok()) return call.refuse(call_error(status));
  respond_ok(call);
}

// Whether new requests should come here.
void get_ready(CallContext& context, Call&& call) {
  Status status = progress(context);
  if (status.ok() && context.gate.is_closed()) {
    status = unavailable("[server] the server is shutting down");
  }
  if (!status.ok()) return call.refuse(call_error(status));
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
                                    transport_stats(context)),
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
  for (const std::string& name : context.config.model_names) {
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
  json.end_array();
  json.end_object();
  call.respond(json.text());
}

void get_tokenizer_info(CallContext& context, Call&& call) {
  const ModelInfo& info = context.engine.model_info();
  JsonWriter json;
  json.begin_object();
  json.field("vocab_size", info.vocab_size);
  json.field("max_model_len", info.max_model_len);
  json.key("chat_template");
  const std::string_view chat_template = context.engine.chat_template();
  if (chat_template.empty()) {
    json.null();
  } else {
    json.value(chat_template);
  }
  json.end_object();
  call.respond(json.text());
}

}  // namespace quire::server
