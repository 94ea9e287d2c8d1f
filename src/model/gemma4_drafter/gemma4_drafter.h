// The drafter of Gemma 4, a checkpoint of its own ("…-it-assistant"): a few small decoder layers
// that have queries alone and attend to the target's caches. It reads the embedding of the newest
// token beside the target's last hidden state, and has an lm_head of its own. Its output, projected
// to the target's width, is its own next input.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/decoder_config.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

// DecoderConfig::target_layers are those of one target.
struct Gemma4DrafterConfig : DecoderConfig {
  int target_hidden_size = 0;
};

// Parses the drafter's config.json for a target, whose layers it reads. `source` (a path) names the
// text in errors. Fails if the drafter was made for a target of another shape.
Result<ModelConfig> parse_gemma4_drafter(std::string_view json, std::string_view source,
                                         const ModelConfig& target);

// Like list_tensors() and estimate_activation_bytes(); the KV groups are decoder_kv_groups().
std::vector<TensorSpec> list_gemma4_drafter_tensors(const ModelConfig& drafter);
Result<int64_t> gemma4_drafter_activation_bytes(const ModelConfig& drafter,
                                                const ModelLimits& limits, const Ops& ops);

// Loads the drafter for `target`, which must outlive it and tap the output of its last layer.
Result<std::unique_ptr<Model>> load_gemma4_drafter(const ModelConfig& drafter, const Model& target,
                                                   WeightSource& source, Ops& ops,
                                                   const ModelLimits& limits,
                                                   const LoadOptions& options = {});

}  // namespace quire
