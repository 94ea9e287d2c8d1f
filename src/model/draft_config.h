// The common parts of the drafters that read hidden states of their target: the configuration, and
// the target's matrices that replace matrices missing in the checkpoint. Variants that are not
// served are refused by name.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "model/decoder_config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

class ConfigFields;

// ModelConfig::vocab_size is the size of the draft vocabulary.
struct DraftConfig : DecoderConfig {
  std::string source;          // the config.json that it was read from, for errors
  int target_vocab_size = 0;   // of the token ids that the drafter reads
  int target_hidden_size = 0;  // width of one tap
  // Whether the checkpoint has these tensors.
  bool has_embeddings = false;
  bool has_lm_head = false;

  // Whether the logits come from the target's lm_head.
  bool shares_lm_head() const { return !has_lm_head && !(tie_word_embeddings && has_embeddings); }
};

// Upper bound of the tapped layers.
inline constexpr size_t kMaxTaps = 64;

// Parses a drafter's config.json into a configuration without a family, by calling `read`. Errors
// name the text by `source` (a path), and the drafter by `architecture`.
Result<ModelConfig> parse_draft_config(
    std::string_view json, std::string_view source, std::string_view architecture,
    const std::function<void(ConfigFields&, ModelConfig&)>& read);

// Records an error if config.json lists `architectures`, but none of `served`.
void require_architecture(ConfigFields& fields, std::initializer_list<std::string_view> served);

// The error of a drafter that was made for another target.
Status refuse_target(const ModelConfig& drafter, std::string_view what, int got, int expected);
// Checks that the target's matrices have the shapes of the matrices that the drafter's checkpoint
// lacks.
Status check_shared_ends(const ModelConfig& drafter, const DraftConfig& config,
                         const ModelConfig& target);
// Reads TapReader::target_ids() from the tensor "d2t", which has the target's id minus the draft id
// per draft id.
Result<std::vector<int32_t>> read_target_ids(const ModelConfig& drafter, const DraftConfig& config,
                                             WeightSource& source);
// The tensors beside the weights that a checkpoint in the layout of `speculators` may have:
// read_target_ids() reads d2t, of which t2d is the inverse, and the others are copies of the
// target's last matrices.
inline constexpr std::array<std::string_view, 4> kSpeculatorsTensors = {
    "d2t", "t2d", "verifier_norm.", "verifier_lm_head."};
// Takes the matrices that the checkpoint lacks from the target.
void share_ends(const DraftConfig& config, const Model& target, DecoderEnds& ends);

}  // namespace quire
