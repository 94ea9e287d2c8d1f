// The model of a drafter: opens its checkpoint, plans it beside the target, and loads it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "ops/ops.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

enum class DraftModelKind {
  kModel,   // an ordinary model, which reads tokens
  kEagle3,  // a head, which also reads hidden states of the target (model/eagle3)
};

struct DraftModelChoice {
  DraftModelKind kind = DraftModelKind::kModel;
  std::string model;  // a directory, or a name in the hub's cache
};

// The opened checkpoint of a drafter, which fits its target.
class DraftModel {
 public:
  // Opens the checkpoint with the load format of `engine`. Fails if it cannot draft for `target`.
  static Result<DraftModel> open(const EngineConfig& engine, const DraftModelChoice& choice,
                                 const ModelConfig& target);

  const std::string& name() const { return name_; }
  bool is_head() const { return kind_ == DraftModelKind::kEagle3; }
  // As ModelLimits::tapped_layers of the target.
  const std::vector<int>& tapped_layers() const { return tapped_layers_; }
  // The limits of a drafter for steps of at most max_num_seqs sequences of a target with the limits
  // `target`.
  ModelLimits limits(const ModelLimits& target, int max_num_seqs) const;

  std::vector<KvGroup> kv_groups(const ModelLimits& limits, DType activation) const;
  int64_t weight_bytes(const ModelLimits& limits, const Ops& ops) const;
  int64_t activation_bytes(const ModelLimits& limits, DType activation) const;
  // A DraftHead if is_head(). `target` outlives it.
  Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops, const ModelLimits& limits);

 private:
  DraftModelKind kind_ = DraftModelKind::kModel;
  std::string name_;
  ModelConfig config_;
  std::unique_ptr<WeightSource> weights_;
  std::vector<int> tapped_layers_;
};

}  // namespace quire
