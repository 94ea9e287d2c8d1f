#include "start/kv_event_sources.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "model/config_fields.h"

namespace quire {
namespace {

constexpr JsonLimits kEventsConfigLimits = {.max_bytes = size_t{64} << 10, .max_depth = 2};
constexpr int kMaxCount = 100'000'000;

// Returns vLLM's name of the kind of KV cache.
std::string table_kind(bool is_latent, int window) {
  if (window > 0) return is_latent ? "sliding_window_mla" : "sliding_window";
  return is_latent ? "mla_attention" : "full_attention";
}

}  // namespace

Result<KvEventsConfig> read_kv_events_config(std::string_view kv_events_config) {
  KvEventsConfig config;
  if (kv_events_config.empty()) return config;
  const Result<JsonDocument> document =
      JsonDocument::parse(kv_events_config, "", kEventsConfigLimits);
  simdjson::dom::object object;
  if (!document.ok() || document->root().get(object)) {
    return invalid_argument(fmt::format(
        "got {}, expected a JSON object such as {{\"enable_kv_cache_events\": true, \"endpoint\": "
        "\"tcp://*:5557\"}}",
        quote_name(kv_events_config)));
  }
  ConfigFields fields(object, "");
  fields.expect_only({"enable_kv_cache_events", "publisher", "endpoint", "replay_endpoint",
                      "buffer_steps", "hwm", "max_queue_size", "topic"});
  config.enable_kv_cache_events = fields.boolean("enable_kv_cache_events", false);
  config.publisher =
      fields.optional_text("publisher").value_or(config.enable_kv_cache_events ? "zmq" : "null");
  config.endpoint = fields.optional_text("endpoint").value_or(config.endpoint);
  config.replay_endpoint = fields.optional_text("replay_endpoint").value_or("");
  config.buffer_steps = fields.integer("buffer_steps", 0, kMaxCount, config.buffer_steps);
  config.hwm = fields.integer("hwm", 0, kMaxCount, config.hwm);
  config.max_queue_size = fields.integer("max_queue_size", 1, kMaxCount, config.max_queue_size);
  config.topic = fields.optional_text("topic").value_or("");
  if (config.publisher != "zmq" && config.publisher != "null") {
    fields.fail("publisher", quote_name(config.publisher), "zmq or null");
  }
  QUIRE_RETURN_IF_ERROR(fields.status());
  return config;
}

Result<std::vector<std::unique_ptr<KvEventPublisher>>> open_kv_events(const EngineConfig& config) {
  const Result<KvEventsConfig> events = read_kv_events_config(config.kv_events_config);
  if (!events.ok()) {
    return invalid_argument("[config] `kv_events_config`: " + events.status().message());
  }
  std::vector<std::unique_ptr<KvEventPublisher>> publishers;
  if (!events->publishes()) return publishers;
  QUIRE_RETURN_IF_ERROR(check_ports(*events, config.data_parallel_size));
  for (int replica = 0; replica < config.data_parallel_size; ++replica) {
    QUIRE_ASSIGN_OR_RETURN(auto publisher, KvEventPublisher::open(*events, replica));
    publishers.push_back(std::move(publisher));
  }
  return publishers;
}

void start_kv_events(const EngineConfig& config, ReplicaParts& parts, KvEventPublisher& publisher) {
  SchedulerConfig& scheduler = parts.scheduler;
  scheduler.collects_kv_events = true;
  KvEventForm form = {.medium = parts.info.on_gpu ? "GPU" : "CPU",
                      .block_size = scheduler.block_size,
                      .tables = {},
                      .has_int_hashes = config.int_block_hashes};
  for (const KvTableConfig& table : scheduler.tables) {
    if (table.holds_states) continue;  // the last table, which events do not describe
    form.tables.push_back({table_kind(false, table.window), table.window});
  }
  for (const KvGroup& group : parts.ranks.front().target.attention.kv_groups) {
    KvEventTable& table = form.tables.at(static_cast<size_t>(group.table));
    table.kind = table_kind(group.layout.is_latent, table.window);
  }
  publisher.start(std::move(form));
}

}  // namespace quire
