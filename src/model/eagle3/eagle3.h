// EAGLE-3 (https://arxiv.org/abs/2503.01840): a draft head of mostly one Llama layer. It reads the
// inputs of a few layers of its target, combined by one matrix, beside the embedding of the token
// that the target sampled from them. Its output is its own next input, so a chain of drafts needs
// the target once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/draft_config.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

// ModelConfig::hidden_size and num_layers are the head's.
struct Eagle3Config : DraftConfig {
  // The target's ModelLimits::tapped_layers; empty: three layers that depend on its depth.
  std::vector<int> tapped_layers = {};
  bool norm_before_fc = false;        // the taps of a token are normed together
  bool norm_before_residual = false;  // the residual begins with the normed hidden state
  bool norm_output = false;           // the next pass reads the output after the final norm
  std::string first_layer;            // name prefix of its tensors: "midlayer." or "layers.0."

  int64_t num_taps() const;
};

// Parses a head's config.json, in the layout of the EAGLE authors (which SpecForge and SGLang
// share) or in the layout of `speculators`. `weights` are the tensors beside it, of which only the
// names are read. `source` (a path) names the text in errors. Variants that are not served are
// errors that name their field.
Result<ModelConfig> parse_eagle3_config(std::string_view json, std::string_view source,
                                        const WeightSource& weights);

// ModelLimits::tapped_layers of a target with this head.
std::vector<int> eagle3_tapped_layers(const ModelConfig& head, const ModelConfig& target);
// Checks that the head was made for a target of this shape.
Status check_eagle3(const ModelConfig& head, const ModelConfig& target);

// Like list_tensors() and decoder_activation_bytes(). The KV groups are decoder_kv_groups().
std::vector<TensorSpec> list_eagle3_tensors(const ModelConfig& head);
int64_t eagle3_activation_bytes(const ModelConfig& head, const ModelLimits& limits, const Ops& ops);

// Loads a head for `target`, which must outlive it: embeddings and an lm_head that the head's
// checkpoint does not have are the target's. limits.tapped_layers are not read.
Result<std::unique_ptr<Model>> load_eagle3(const ModelConfig& head, const Model& target,
                                           WeightSource& source, Ops& ops,
                                           const ModelLimits& limits,
                                           const LoadOptions& options = {});

}  // namespace quire
