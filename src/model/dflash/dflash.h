// Block drafters: DFlash (https://arxiv.org/abs/2602.06036), and DSpark, which adds a low-rank bias
// per pair of successive tokens. A few Qwen3 layers draft a whole block in one pass. They read the
// inputs of a few layers of the target, combined by one matrix, as keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/draft_config.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

enum class BlockMethod { kDFlash, kDSpark };

// The numbering of the states that the drafter reads, in one layout of config.json.
struct TapIds {
  std::string_view key;  // of config.json
  int layer_offset = 0;  // an id plus this is a layer of ModelLimits::tapped_layers
};

struct DFlashConfig : DraftConfig {
  BlockLayout block;
  TapIds tap_ids;
  std::vector<int> tapped_layers;        // as ModelLimits::tapped_layers of the target
  std::optional<int> num_target_layers;  // of the model that the drafter was trained for
  int markov_rank = 0;                   // of DSpark's transitions; 0: none
};

// Parses a drafter's config.json, in the layout of the methods' authors or that of `speculators`.
// `weights` are the tensors beside it, of which only the names are read. `source` (a path) names
// the text in errors. Variants that are not served are errors that name their field.
Result<ModelConfig> parse_dflash_config(std::string_view json, std::string_view source,
                                        const WeightSource& weights, BlockMethod method);

const DFlashConfig& dflash_config(const ModelConfig& drafter);
// Checks that the drafter was made for a target of this shape.
Status check_dflash(const ModelConfig& drafter, const ModelConfig& target);

// Like list_tensors() and decoder_activation_bytes(). The KV groups are decoder_kv_groups().
std::vector<TensorSpec> list_dflash_tensors(const ModelConfig& drafter);
int64_t dflash_activation_bytes(const ModelConfig& drafter, const ModelLimits& limits,
                                const Ops& ops);

// Loads a drafter for `target`, which must outlive it: embeddings and an lm_head that the drafter's
// checkpoint does not have are the target's. limits.tapped_layers are not read.
Result<std::unique_ptr<Model>> load_dflash(const ModelConfig& drafter, const Model& target,
                                           WeightSource& source, Ops& ops,
                                           const ModelLimits& limits,
                                           const LoadOptions& options = {});

}  // namespace quire
