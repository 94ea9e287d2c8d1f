#include "start/start.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "engine/engine_impl.h"
#include "engine/engine_internals.h"
#include "engine/sampling_defaults.h"
#include "model/decoder_config.h"
#include "platform/remote_ranks.h"
#include "sample/sampling_fields.h"
#include "start/draft_model.h"
#include "start/kv_event_sources.h"
#include "start/load.h"
#include "start/model_files.h"
#include "start/node_setup.h"
#include "start/platform_choice.h"
#include "start/report.h"
#include "start/settings.h"

namespace quire {
namespace {

using EngineReplicas = std::vector<std::unique_ptr<ReplicaParts>>;

// Calls start(). An error ends the start of all nodes. nodes: null on a single node.
Status start_together(const std::shared_ptr<Nodes>& nodes, const std::function<Status()>& start) {
  const Status status = guarded_status("[engine] cannot start", start);
  if (status.ok() || nodes == nullptr) return status;
  nodes->fail(status);
  return nodes->status();
}

// Makes the checks that need no other node, because the wait for other nodes may take minutes.
Status check_alone(const EngineConfig& config, const ModelFiles& files) {
  if (config.nnodes == 1) return {};
  QUIRE_RETURN_IF_ERROR(
      check_shards(files.config, {.rank = 0, .size = config.tensor_parallel_size}));
  return check_devices(config);
}

// Keeps the choices that this start has measured, and logs a report.
void keep_choices(MeasuredChoices& choices) {
  if (const Status kept = choices.keep(); !kept.ok()) {
    log_warning("{}; the next start measures again", kept.message());
  }
  if (const std::string report = choices.report(); !report.empty()) {
    log_info("[measure] {}", report);
  }
}

// Waits for the other nodes, plans and loads all replicas, and closes the files of the weights.
Result<EngineReplicas> plan_and_load(const EngineConfig& config, const Speculation& wanted,
                                     ModelFiles& files, const LoadProgress& progress) {
  QUIRE_RETURN_IF_ERROR(check_alone(config, files));
  QUIRE_ASSIGN_OR_RETURN(const Speculation speculation, settle_method(wanted, config, files));
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Nodes> nodes, connect_nodes(config, files));
  // Destroyed only after an error has reached the other nodes, because the destruction may take
  // long.
  std::vector<PlannedReplica> planned;
  EngineReplicas replicas;
  const auto start = [&]() -> Status {
    QUIRE_RETURN_IF_ERROR(plan_replicas(config, speculation, files, nodes, planned));
    files.weights = stop_with_nodes(std::move(files.weights), nodes);
    for (const PlannedReplica& replica : planned) {
      if (replica.draft) replica.draft->stop_with(nodes);
    }
    log_plans(config, planned, files);
    for (size_t r = 0; r < planned.size(); ++r) {
      replicas.push_back(std::make_unique<ReplicaParts>());
      replicas.back()->nodes = nodes;
    }
    return load_replicas(config, speculation, files, planned, progress, replicas);
  };
  QUIRE_RETURN_IF_ERROR(start_together(nodes, start));
  keep_choices(*replicas.front()->platform->choices());
  files.weights.reset();  // the models have copied their weights
  return replicas;
}

void log_model(const ModelInfo& info) {
  log_info("[engine] {} ({}, {:.1f} M parameters{}), context {}, attention {}", info.name,
           info.architecture, static_cast<double>(info.num_parameters) / 1e6,
           info.embedding_size > 0 ? ", embeds prompts" : "", info.max_model_len,
           info.attention_backend);
  if (info.has_synthetic_acceptance) {
    log_warning(
        "[engine] drafts are accepted at synthetic rates, so the outputs have no meaning, and only "
        "times can be measured; leave out rejection_sample_method synthetic to serve requests");
  }
}

// Fails if the sampling values of the model's files are out of range.
Status check_sampling_defaults(const GenerationConfig& generation, const ModelInfo& info) {
  const SamplingDefaults defaults = choose_sampling_defaults(generation, SamplingFallback::kNone);
  const Status status =
      validate_sampling_params(defaults.params, info.vocab_size, info.max_model_len);
  if (status.ok()) return status;
  return invalid_argument(fmt::format("[model] {}: {}", generation.source, status.message()));
}

InputProcessor::Limits request_limits(const EngineConfig& config, const ModelFiles& files,
                                      const ModelInfo& info) {
  for (const int32_t id : info.eos_token_ids) {
    if (id >= 0 && id < info.vocab_size) continue;
    log_warning(
        "[model] {}: eos_token_id {} is not in the vocabulary of {}: no sequence ends at it",
        files.generation.eos_token_ids.empty() ? "config.json" : "generation_config.json", id,
        info.vocab_size);
  }
  return {.vocab_size = info.vocab_size,
          .max_model_len = info.max_model_len,
          .eos_ids = info.eos_token_ids,
          .seed = config.seed,
          .embedding_size = info.embedding_size,
          .normalizes = files.embedding.value_or(EmbeddingModules()).normalizes,
          .num_replicas = info.data_parallel_size};
}

// The loop of one replica, with the publisher of its KV events (null: no events).
std::unique_ptr<EngineCore> make_core(const EngineConfig& config, ReplicaParts& parts,
                                      size_t replica, std::unique_ptr<KvEventPublisher> publisher) {
  if (publisher != nullptr) {
    start_kv_events(config, parts, *publisher);
    const KvEventsConfig& events = publisher->config();
    log_info("[kv_events] publishing at {}{}", events.endpoint,
             events.replay_endpoint.empty() ? "" : ", replay at " + events.replay_endpoint);
  }
  return std::make_unique<EngineCore>(parts.scheduler, std::move(parts.runner),
                                      static_cast<int>(replica), std::move(publisher));
}

// publishers: by replica; empty: no events.
Result<std::unique_ptr<Engine>> assemble(
    const EngineConfig& config, ModelFiles&& files, EngineReplicas parts,
    std::vector<std::unique_ptr<KvEventPublisher>> publishers) {
  auto impl = std::make_unique<EngineInternals::Impl>();
  impl->parts = std::move(parts);
  const ModelInfo& info = impl->parts.front()->info;
  log_model(info);
  QUIRE_RETURN_IF_ERROR(check_sampling_defaults(files.generation, info));
  impl->input_processor = std::make_unique<InputProcessor>(
      files.tokenizer, request_limits(config, files, info), impl->parts.front()->platform.get());
  impl->text = std::move(static_cast<ModelText&>(files));
  std::vector<std::unique_ptr<EngineCore>> cores;
  int64_t num_prefix_tokens = 0;
  for (const auto& replica : impl->parts) {
    if (config.enable_prefix_caching) num_prefix_tokens += replica->num_kv_tokens;
    std::unique_ptr<KvEventPublisher> publisher;
    if (!publishers.empty()) {
      publisher = std::move(publishers[cores.size()]);
      impl->kv_event_sources.push_back(publisher->config());
    }
    cores.push_back(make_core(config, *replica, cores.size(), std::move(publisher)));
  }
  impl->replicas = std::make_shared<Replicas>(std::move(cores), num_prefix_tokens);
  return EngineInternals::make(std::move(impl));
}

}  // namespace

Result<std::unique_ptr<Engine>> start_engine(const EngineConfig& wanted,
                                             const Speculation& speculation,
                                             const LoadProgress& progress) {
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig config, place_node(wanted));
  QUIRE_RETURN_IF_ERROR(check_settings(config));
  if (config.node_rank > 0) {
    return invalid_argument(fmt::format(
        "[nodes] `node_rank`: got {}, expected 0; the other nodes run quire serve with the same "
        "flags, or Engine::run_node()",
        config.node_rank));
  }
  QUIRE_ASSIGN_OR_RETURN(auto publishers, open_kv_events(config));
  QUIRE_ASSIGN_OR_RETURN(ModelFiles files, open_model_files(config));
  QUIRE_ASSIGN_OR_RETURN(EngineReplicas parts, plan_and_load(config, speculation, files, progress));
  return assemble(config, std::move(files), std::move(parts), std::move(publishers));
}

Result<std::unique_ptr<Engine>> Engine::create(const EngineConfig& config,
                                               const LoadProgress& progress) {
  try {
    QUIRE_RETURN_IF_ERROR(check_settings(config));
    return start_engine(config, *read_speculation(config.speculative_config), progress);
  } catch (const std::exception& error) {  // e.g. no thread or no memory
    return resource_exhausted(fmt::format("[engine] cannot start; {}", text_of(error)));
  }
}

Status Engine::run_node(const EngineConfig& config, const std::function<bool()>& should_stop,
                        const LoadProgress& progress) {
  try {
    QUIRE_RETURN_IF_ERROR(check_settings(config));
    QUIRE_ASSIGN_OR_RETURN(const EngineConfig placed, place_node(config));
    QUIRE_RETURN_IF_ERROR(check_settings(placed));
    if (placed.node_rank < 1) {
      return invalid_argument(
          "[nodes] `node_rank`: got 0, expected at least 1: node 0 has the engine");
    }
    QUIRE_ASSIGN_OR_RETURN(ModelFiles files, open_model_files(placed));
    QUIRE_ASSIGN_OR_RETURN(
        const EngineReplicas replicas,
        plan_and_load(placed, *read_speculation(config.speculative_config), files, progress));
    ReplicaParts& parts = *replicas.front();
    log_info("[engine] node {} of {} runs its ranks of {}", placed.node_rank, placed.nnodes,
             parts.info.name);
    return serve_remote_ranks(*parts.nodes, *parts.runner, parts.scheduler, parts.info.vocab_size,
                              should_stop);
  } catch (const std::exception& error) {  // e.g. no thread or no memory
    return resource_exhausted(fmt::format("[engine] cannot run; {}", text_of(error)));
  }
}

}  // namespace quire
