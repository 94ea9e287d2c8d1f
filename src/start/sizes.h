// The sizes of an engine: the values of EngineConfig, with defaults for a model and a platform.
#pragma once

#include "model/config.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "quire/status.h"

namespace quire {

struct Sizes {
  int max_num_seqs = 0;       // in one step: at most max_num_tokens / (1 + num_drafts)
  int max_num_rule_seqs = 0;  // sequences with sampling rules (has_rules())
  int max_num_tokens = 0;     // in one step
  int max_model_len = 0;      // tokens of prompt and output
  int block_size = 0;         // tokens per KV page
  int num_drafts = 0;         // that a step verifies per sequence

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

// Fills in the platform's defaults and the model's context. Limits the numbers of sequences to the
// capacity of a step, and logs the limits.
Result<Sizes> choose_sizes(const EngineConfig& config, const ModelConfig& model,
                           const PlatformDefaults& defaults, int num_drafts);

}  // namespace quire
