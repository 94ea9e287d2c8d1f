// Routes that report on the server and its model.
#include <chrono>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "base/utc_time.h"
#include "engine/sampling_defaults.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

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

// Returns the generation requests that run or wait, including those that wait for their grammar.
int num_requests(const ServerState& state) {
  return state.generations.num_running() + state.grammars.num_waiting();
}

// The load of one replica's scheduler, or of all together. A request in SGLang's sense is a
// sequence.
struct SchedulerLoad {
  int num_running = 0;
  int num_waiting = 0;
  int max_running = 0;
  int64_t num_used_tokens = 0;  // KV slots of the blocks in use
  int64_t max_tokens = 0;
  int64_t num_queued_tokens = 0;  // of prompts that have not started
  double kv_cache_usage = 0;      // 0 to 1
  double cache_hit_rate = 0;      // since the start
  double utilization = 0;         // of the slots
  double tokens_per_second = 0;   // generated
};

SchedulerLoad scheduler_load(const ModelInfo& model, const EngineStats& stats, int max_running) {
  const auto share = [](auto part, auto whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  const int num_used_blocks = stats.num_total_blocks - stats.num_free_blocks;
  return {.num_running = stats.num_running,
          .num_waiting = stats.num_waiting,
          .max_running = max_running,
          .num_used_tokens = int64_t{num_used_blocks} * model.block_size,
          .max_tokens = int64_t{stats.num_total_blocks} * model.block_size,
          .kv_cache_usage = stats.kv_cache_usage,
          .cache_hit_rate = share(stats.prefix_cache_hits, stats.prefix_cache_queries),
          .utilization = share(stats.num_running, max_running)};
}

void write_load(const SchedulerLoad& load, size_t replica, JsonWriter& json) {
  json.begin_object();
  json.field("dp_rank", static_cast<int64_t>(replica));
  json.field("num_running_reqs", load.num_running);
  json.field("num_waiting_reqs", load.num_waiting);
  json.field("num_total_reqs", load.num_running + load.num_waiting);
  json.field("num_used_tokens", load.num_used_tokens);
  json.field("num_total_tokens", load.num_used_tokens + load.num_queued_tokens);
  json.field("max_total_num_tokens", load.max_tokens);
  json.field("token_usage", load.kv_cache_usage);
  json.field("gen_throughput", load.tokens_per_second);
  json.field("cache_hit_rate", load.cache_hit_rate);
  json.field("utilization", load.utilization);
  json.field("max_running_requests", load.max_running);
  json.end_object();
}

Status check_progress(ServerState& state) {
  return state.health.check(state.engine.replicas(), HealthWatch::Clock::now()).for_clients;
}

// Writes the values for requests that give none, and the source of the values.
void write_sampling_defaults(const ServerState& state, JsonWriter& json) {
  const SamplingDefaults defaults = state.engine.sampling_defaults(SamplingFallback::kChat);
  json.begin_object();
  for (const auto& [name, number] : default_values(defaults.params)) {
    json.key(name);
    json.raw(number);
  }
  json.field("source", std::string_view(defaults.source));
  json.end_object();
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
  const bool embeds = state.engine.model_info().embedding_size > 0;
  json.field("task", embeds ? "embed" : "generate");
  if (!embeds) {
    json.key("sampling_defaults");
    write_sampling_defaults(state, json);
  }
  json.end_object();
}

// Whether the request comes from a client of Anthropic's API, which expects its shape.
bool wants_anthropic(const RequestContext& context) {
  return context.error_shape == ErrorShape::kAnthropic;
}

void write_anthropic_model(const ServerState& state, std::string_view name, JsonWriter& json) {
  json.begin_object();
  json.field("type", "model");
  json.field("id", name);
  json.field("display_name", name);
  json.field("created_at", utc_time(std::chrono::system_clock::time_point(
                               std::chrono::seconds(state.config.started_at))));
  json.field("max_input_tokens", state.engine.model_info().max_model_len);
  json.end_object();
}

void respond_anthropic_models(const ServerState& state, RequestContext& context) {
  const std::vector<std::string>& names = state.config.model_names;
  JsonWriter json;
  json.begin_object();
  json.key("data");
  json.begin_array();
  for (const std::string& name : names) write_anthropic_model(state, name, json);
  json.end_array();
  json.field("has_more", false);
  json.field("first_id", names.front());
  json.field("last_id", names.back());
  json.end_object();
  context.respond(json.take());
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
  std::vector<EngineStats> engines;
  for (const ReplicaState& replica : state.engine.replicas()) engines.push_back(replica.stats);
  context.respond(state.metrics.text({.model_name = state.config.model_names.front(),
                                      .version = state.config.version,
                                      .model = state.engine.model_info(),
                                      .engines = std::move(engines),
                                      .http = transport_stats(state),
                                      .waiting = waiting_stats(state),
                                      .process = process_use()}),
                  std::string(kPrometheusText));
}

// vLLM's route: the number of requests in progress.
void get_load(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("server_load", num_requests(state));
  json.end_object();
  context.respond(json.text());
}

// The route that vllm-router polls.
void get_router_load(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("load", num_requests(state));
  json.end_object();
  context.respond(json.text());
}

// SGLang's route, which its model gateway (SMG) polls: one entry per data-parallel rank. With
// several ranks, requests that wait in the server itself are only in the aggregate.
void get_gateway_loads(ServerState& state, RequestContext&& context) {
  const ModelInfo& model = state.engine.model_info();
  const std::vector<ReplicaState> replicas = state.engine.replicas();
  JsonWriter json;
  json.begin_object();
  json.field("timestamp", utc_time(std::chrono::system_clock::now()));
  json.field("version", state.config.version);
  json.field("dp_rank_count", model.data_parallel_size);
  json.key("loads");
  json.begin_array();
  const auto add_queue = [&](SchedulerLoad& load) {
    load.num_waiting += state.grammars.num_waiting();
    load.num_queued_tokens = state.admission.num_queued_tokens();
  };
  double tokens_per_second = 0;
  for (size_t r = 0; r < replicas.size(); ++r) {
    SchedulerLoad one = scheduler_load(model, replicas[r].stats, model.max_num_seqs);
    if (replicas.size() == 1) add_queue(one);
    one.tokens_per_second = state.token_rates[r].per_second();
    tokens_per_second += one.tokens_per_second;
    write_load(one, r, json);
  }
  json.end_array();
  SchedulerLoad load = scheduler_load(model, state.engine.stats(), model.max_num_running());
  add_queue(load);
  load.tokens_per_second = tokens_per_second;
  json.key("aggregate");
  json.begin_object();
  json.field("total_running_reqs", load.num_running);
  json.field("total_waiting_reqs", load.num_waiting);
  json.field("total_reqs", load.num_running + load.num_waiting);
  json.field("total_used_tokens", load.num_used_tokens);
  json.field("total_tokens", load.num_used_tokens + load.num_queued_tokens);
  json.field("avg_token_usage", load.kv_cache_usage);
  json.field("avg_throughput", load.tokens_per_second);
  json.field("avg_utilization", load.utilization);
  json.end_object();
  json.end_object();
  context.respond(json.text());
}

// The fields of SGLang's route that routers read, under SGLang's names.
void get_server_info(ServerState& state, RequestContext&& context) {
  const ModelInfo& model = state.engine.model_info();
  const SchedulerLoad load = scheduler_load(model, state.engine.stats(), model.max_num_running());
  JsonWriter json;
  json.begin_object();
  json.field("version", state.config.version);
  json.field("model_path", model.name);
  json.field("served_model_name", state.config.model_names.front());
  json.field("architecture", model.architecture);
  json.field("is_embedding", model.embedding_size > 0);
  json.field("device", model.on_gpu ? "cuda" : "cpu");
  json.field("dtype", model.weight_dtype);
  json.field("kv_cache_dtype", model.kv_cache_dtype);
  json.field("context_length", model.max_model_len);
  json.field("page_size", model.block_size);
  json.field("tp_size", state.config.tensor_parallel_size);
  json.field("pp_size", 1);
  json.field("dp_size", model.data_parallel_size);
  json.field("max_running_requests", load.max_running);
  json.field("max_total_num_tokens", load.max_tokens);
  json.field("max_total_tokens", load.max_tokens);
  json.field("disaggregation_mode", "null");
  json.end_object();
  context.respond(json.text());
}

// vLLM's route: the configuration of each data-parallel rank that publishes KV events.
void get_kv_event_sources(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  const std::vector<KvEventsConfig>& sources = state.config.kv_event_sources;
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    const KvEventsConfig& source = sources[rank];
    json.key(std::string_view(std::to_string(rank)));
    json.begin_object();
    json.field("enable_kv_cache_events", source.enable_kv_cache_events);
    json.field("publisher", source.publisher);
    json.field("endpoint", source.endpoint);
    json.key("replay_endpoint");
    json.value_or_null(source.replay_endpoint);
    json.field("buffer_steps", source.buffer_steps);
    json.field("hwm", source.hwm);
    json.field("max_queue_size", source.max_queue_size);
    json.field("topic", source.topic);
    json.end_object();
  }
  json.end_object();
  context.respond(json.text());
}

void get_openapi(ServerState& /*state*/, RequestContext&& context) {
  static const std::string text = openapi_json();
  context.respond(text);
}

void get_models(ServerState& state, RequestContext&& context) {
  if (wants_anthropic(context)) return respond_anthropic_models(state, context);
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
  const std::string name = context.path_parameter;
  if (refuse_unknown_model(state, context, name)) return;
  JsonWriter json;
  wants_anthropic(context) ? write_anthropic_model(state, name, json)
                           : write_model(state, name, json);
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
