// The common parts of the drafters that read hidden states of their target: a configuration whose
// variants are refused by name, and matrices that are the target's where the checkpoint has none.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "model/decoder.h"
#include "model/decoder_config.h"
#include "quire/status.h"

namespace quire {

class ConfigFields;

struct DraftConfig : DecoderConfig {
  int target_hidden_size = 0;  // width of one tap
  // Whether the checkpoint has these tensors.
  bool has_embeddings = false;
  bool has_lm_head = false;

  // Whether the logits come from the target's lm_head.
  bool shares_lm_head() const { return !has_lm_head && !(tie_word_embeddings && has_embeddings); }
};

// Upper bound of the tapped layers.
inline constexpr size_t kMaxTaps = 64;

// Parses a drafter's config.json into a configuration without a family, whose fields `read` reads.
// `source` (a path) names the text in errors, and `architecture` the drafter.
Result<ModelConfig> parse_draft_config(
    std::string_view json, std::string_view source, std::string_view architecture,
    const std::function<void(ConfigFields&, ModelConfig&)>& read);

// At least one of `architectures`, if there are any, must be served.
void require_architecture(ConfigFields& fields, std::initializer_list<std::string_view> served);

// The error of a drafter that was made for another target.
Status refuse_target(const ModelConfig& drafter, std::string_view what, int got, int expected);
// Checks that the target's matrices have the shapes of those that the drafter's checkpoint lacks.
Status check_shared_ends(const ModelConfig& drafter, const DraftConfig& config,
                         const ModelConfig& target);
// Takes the matrices that the checkpoint lacks from the target.
void share_ends(const DraftConfig& config, const Model& target, DecoderEnds& ends);

}  // namespace quire
