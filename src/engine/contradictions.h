// Settings that contradict each other: no model and no machine can serve them together.
#pragma once

#include <vector>

#include "engine/speculation.h"
#include "quire/config.h"
#include "quire/status.h"

namespace quire {

// One error per contradiction; reads no file and no device. The engine refuses these settings too,
// where it uses them. An invalid speculative_config is not among the errors.
std::vector<Status> find_contradictions(const EngineConfig& config);

// Fails if the configuration names an attention backend of GPUs. `no_gpu` says why there is none.
Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu);
// Fails if the configuration asks for a cache that only CPUs have. Called for a GPU.
Status refuse_cpu_cache(const EngineConfig& config);
// Fails if drafts are to be computed as only CPUs compute them. Called for a GPU.
Status refuse_unpadded_drafts(const Speculation& speculation);
// Scales of keys and values are calculated for an FP8 cache alone.
Status check_calculated_scales(const EngineConfig& config);
// The embedded model has its own tokenizer.
Status check_tokenizer(const EngineConfig& config);
// A step must have room for one sequence with its drafts.
Status check_step_tokens(int max_num_batched_tokens, int num_drafts);

}  // namespace quire
