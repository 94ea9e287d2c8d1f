#include "engine/draft_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/numbers.h"
#include "engine/model_files.h"
#include "model/decoder.h"
#include "model/eagle3/eagle3.h"
#include "model/families.h"

namespace quire {
namespace {

Status check_vocabulary(const ModelConfig& draft, const ModelConfig& target,
                        const std::string& config_path) {
  if (draft.vocab_size == target.vocab_size) return {};
  return invalid_argument(fmt::format(
      "[engine] {}: vocab_size; got {}, expected the {} of the model that it drafts for; take a "
      "drafter of the same family",
      config_path, draft.vocab_size, target.vocab_size));
}

}  // namespace

Result<DraftModel> DraftModel::open(const EngineConfig& engine, const DraftModelChoice& choice,
                                    const ModelConfig& target) {
  DraftModel draft;
  draft.kind_ = choice.kind;
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile config, find_config(choice.model, engine));
  draft.name_ = config.model_name;
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(config.path, kMaxConfigBytes));
  QUIRE_ASSIGN_OR_RETURN(draft.weights_,
                         open_weights(engine, config.path.parent_path(), target.dtype));
  if (draft.is_head()) {
    QUIRE_ASSIGN_OR_RETURN(draft.config_,
                           parse_eagle3_config(text, config.path.string(), *draft.weights_));
    QUIRE_RETURN_IF_ERROR(check_eagle3(draft.config_, target));
    draft.tapped_layers_ = eagle3_tapped_layers(draft.config_, target);
  } else {
    QUIRE_ASSIGN_OR_RETURN(draft.config_, parse_model_config(text, config.path.string()));
    QUIRE_RETURN_IF_ERROR(check_vocabulary(draft.config_, target, config.path.string()));
  }
  return draft;
}

// A head does not limit the context, because its rotary positions need no table: beyond the context
// that it was trained for, fewer of its drafts are accepted. A model computes at most its own
// context.
//
// In one pass a drafter computes the step's tokens, and a model also each sequence's newest token.
ModelLimits DraftModel::limits(const ModelLimits& target, int max_num_seqs) const {
  ModelLimits limits = target;
  limits.tapped_layers.clear();
  limits.num_drafts = 0;
  limits.max_num_logit_rows = max_num_seqs;
  if (is_head()) return limits;
  limits.max_num_tokens = target.max_num_tokens + max_num_seqs;
  limits.max_model_len = std::min(target.max_model_len, config_.longest_model_len);
  return limits;
}

std::vector<KvGroup> DraftModel::kv_groups(const ModelLimits& limits, DType activation) const {
  return is_head() ? decoder_kv_groups(config_, limits, activation)
                   : make_kv_groups(config_, limits, activation);
}

int64_t DraftModel::weight_bytes(const ModelLimits& limits, const Ops& ops) const {
  return is_head()
             ? estimate_weight_bytes(list_eagle3_tensors(config_), *weights_, ops, limits.parallel)
             : estimate_weight_bytes(config_, *weights_, ops, limits.parallel);
}

// The drafter keeps two copies of the hidden states that a head reads.
int64_t DraftModel::activation_bytes(const ModelLimits& limits, DType activation) const {
  if (!is_head()) return estimate_activation_bytes(config_, limits, activation);
  const Saturated hidden = 2 * Saturated(limits.max_num_tokens) * config_.hidden_size *
                           static_cast<int64_t>(dtype_bytes(activation));
  return (hidden + eagle3_activation_bytes(config_, limits, activation)).get();
}

Result<std::unique_ptr<Model>> DraftModel::load(const Model& target, Ops& ops,
                                                const ModelLimits& limits) {
  if (!is_head()) return load_model(config_, *weights_, ops, limits);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DraftHead> head,
                         load_eagle3(config_, target, *weights_, ops, limits));
  return std::unique_ptr<Model>(std::move(head));
}

}  // namespace quire
