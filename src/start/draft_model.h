// The model of a drafter: opens its checkpoint, plans it together with the target, and loads it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "quire/config.h"
#include "quire/status.h"
#include "start/speculation.h"
#include "tensor/weight_source.h"

namespace quire {

class Nodes;

// Whether the target's checkpoint, whose tensors are `weights`, has a layer with which method mtp
// drafts.
bool has_own_drafter(const ModelConfig& target, const WeightSource& weights);

// The opened checkpoint of a drafter, which fits its target.
class DraftModel {
 public:
  // Opens the checkpoint with the load format of `engine`. Fails if it cannot draft for `target`.
  static Result<std::unique_ptr<DraftModel>> open(const EngineConfig& engine,
                                                  const DraftModelChoice& choice,
                                                  const ModelConfig& target);
  virtual ~DraftModel() = default;

  const std::string& name() const { return name_; }
  // ModelLimits::tapped_layers of the target.
  virtual std::vector<int> tapped_layers() const { return {}; }
  // SchedulerConfig::num_draft_kv_slots and num_tokens_ahead.
  virtual int num_kv_slots(int num_drafts) const { return num_drafts; }
  virtual int num_tokens_ahead() const { return 0; }
  // Whether the model's layers read the target's caches (DraftHead::reads_target_cache).
  virtual bool reads_target_cache() const { return false; }
  // The query lengths for which a GPU plans the drafter's decode attention, ascending. The first
  // length belongs to a drafting pass. q_lens: the query lengths of the target's steps, ascending.
  virtual std::vector<int> decode_q_lens(std::vector<int> q_lens) const;
  // Returns the drafter's limits. `target`: the limits of its target, whose steps have at most
  // max_num_seqs sequences.
  virtual ModelLimits limits(const ModelLimits& target, int max_num_seqs) const = 0;

  std::vector<KvGroup> kv_groups(const ModelLimits& limits, DType activation) const;
  // This and activation_bytes() fail if the device cannot compute the model.
  Result<WeightPlan> plan_weights(const ModelLimits& limits, const Ops& ops) const;
  // Covers the model and its drafter's buffers.
  virtual Result<int64_t> activation_bytes(const ModelLimits& limits, const Ops& ops) const = 0;
  // `target` must outlive the model.
  virtual Result<std::unique_ptr<Model>> load(const Model& target, Ops& ops,
                                              const ModelLimits& limits,
                                              const LoadOptions& options) = 0;

  const ModelConfig& config() const { return config_; }
  const WeightSource& checkpoint() const { return *weights_; }
  // Ends load() once the nodes have failed (node_setup.h); null: a single node.
  void stop_with(std::shared_ptr<Nodes> nodes);

 protected:
  WeightSource& weights() const { return *weights_; }

 private:
  virtual std::vector<TensorSpec> tensors() const = 0;
  // Reads the drafter's config.json, and checks that the drafter fits its target.
  virtual Result<ModelConfig> read_config(const std::string& text, const std::string& path,
                                          const ModelConfig& target) = 0;

  std::string name_;
  ModelConfig config_;
  std::unique_ptr<WeightSource> weights_;
};

}  // namespace quire
