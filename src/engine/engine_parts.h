// From a configuration to everything that a running engine is made of.
#pragma once

#include <memory>

#include "attn/backend_set.h"
#include "base/thread_pool.h"
#include "engine/kv_cache.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "engine/runner.h"
#include "model/model.h"
#include "quire/engine.h"
#include "sched/scheduler.h"

namespace quire {

// In the order in which each needs the ones before it.
struct EngineParts {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
  BackendSet attention;
  std::unique_ptr<Model> model;
  std::vector<AttentionBackend*> decode_backends;   // one a KV group
  std::vector<AttentionBackend*> prefill_backends;  // one a KV group
  Buffer workspace;
  KvCache kv_cache;
  std::unique_ptr<Runner> runner;
  SchedulerConfig scheduler;
  ModelInfo info;
};

// Loads files.weights. Prints the memory plan before the cache is allocated.
Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config, ModelFiles& files);

// The longest context that the model is made for: its positions, stretched by its rope scaling.
int longest_model_len(const ModelConfig& config);

}  // namespace quire
