// Builds everything that a running engine consists of from its configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine_plan.h"
#include "engine/speculation.h"
#include "kv_events/publisher.h"
#include "model/families.h"
#include "platform/platform.h"
#include "platform/runner.h"
#include "quire/engine.h"

namespace quire::jinja {
class Value;
}

namespace quire {

// A model on one device, with what its runner needs there.
struct LoadedModel {
  std::unique_ptr<Model> model;
  KvCache kv_cache;
  AttentionSetup attention;

  // Points into this object.
  ModelInstance instance() const;
};

// The plans of a replica's ranks, and the model of its drafter.
struct PlannedEngine {
  std::vector<EnginePlan> plans;      // by rank
  std::unique_ptr<DraftModel> draft;  // opened, and in the plan; null: no model drafts
};

// Opens the drafter's model, if a model drafts, and plans the engine with it. `platform` outlives
// the plan.
Result<PlannedEngine> plan_with_drafter(const EngineConfig& config, const Speculation& speculation,
                                        const ModelFiles& files, const Platform& platform);
// Loads files.weights onto the device that `plan` was made for, allocates the KV cache, and moves
// the attention plans out of `plan`.
Result<LoadedModel> load_onto(DeviceContext& context, const ModelFiles& files, EnginePlan& plan,
                              const LoadProgress& progress = {});
// Makes a runner for one model loaded by `plan`. `target` and `drafter` (or null) outlive it.
Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, Drafter* drafter,
                                            const Verification& verification = {});

// A replica before anything is loaded.
struct PlannedReplica {
  std::unique_ptr<Platform> platform;
  PlannedEngine engine;
};

// Fails if so many replicas are not served, as on several nodes.
Status check_replicas(const EngineConfig& config);
// Plans all replicas of the configuration, one after the other. They serve the same context, but
// may have different numbers of KV blocks. There is one node.
Result<std::vector<PlannedReplica>> plan_replicas(const EngineConfig& config,
                                                  const Speculation& speculation,
                                                  const ModelFiles& files);

// One line about a CPU's threads; empty for other devices.
std::string describe_threads(const Platform& platform);

// The parts of one rank, on its device.
struct RankParts {
  LoadedModel target;
  LoadedModel draft;                 // empty: no model drafts
  std::unique_ptr<Drafter> drafter;  // null: no speculation
};

// The parts of one replica. Each member needs the members before it.
struct EngineParts {
  std::shared_ptr<Nodes> nodes;  // null: there is one
  std::unique_ptr<Platform> platform;
  std::vector<RankParts> ranks;    // of this process
  std::unique_ptr<Runner> runner;  // of all ranks; on a node other than 0, of its own
  SchedulerConfig scheduler;
  int64_t num_kv_tokens = 0;  // that the KV cache holds
  ModelInfo info;
};

// Waits for the other nodes, logs the plan, then loads files.weights and allocates, all replicas at
// the same time. An error ends the start of all nodes. `config` is a result of place_node().
Result<std::vector<std::unique_ptr<EngineParts>>> assemble_replicas(const EngineConfig& config,
                                                                    const Speculation& speculation,
                                                                    ModelFiles& files,
                                                                    const LoadProgress& progress);

// The parts of Engine that are not in its public interface.
struct EngineInternals {
  // Same as Engine::create for an engine with speculation, but may throw where Engine::create does
  // not.
  static Result<std::unique_ptr<Engine>> create(const EngineConfig& config,
                                                const Speculation& speculation,
                                                const LoadProgress& progress = {});
  // That of the first replica. Its threads may be changed while no request runs.
  static Platform& platform(const Engine& engine);
  // Null: the model has no tokenizer.
  static const Tokenizer* tokenizer(const Engine& engine);
  // By data-parallel rank; empty: no KV events.
  static const std::vector<KvEventsConfig>& kv_event_sources(const Engine& engine);
  // Does the same as Engine::render_chat_json() for a dict of the template's values, and marks the
  // values' texts in the prompt.
  static Result<MarkedText> render_chat(const Engine& engine, const jinja::Value& variables);
  // Does the same as Engine::encode() for a text with untrusted bytes.
  static Result<std::vector<int32_t>> encode(const Engine& engine, std::string_view text,
                                             bool add_special_tokens, const ByteSpans& untrusted);
};

}  // namespace quire
