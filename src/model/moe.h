// Mixture of experts: a layer with many small MLPs, of which a router selects a few per token. This
// is the part that decoders share: configuration, weights, and the step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/weights.h"
#include "ops/expert_ops.h"

namespace quire {

struct MoeConfig {
  ExpertRouting routing;
  int intermediate_size = 0;         // of each expert
  int shared_intermediate_size = 0;  // of the MLP that every token also passes through; 0: none
  bool has_shared_gate = false;      // sigmoid(shared_gate x) multiplies that MLP's output
  bool has_correction_bias = false;  // ExpertOps::route's bias, in the checkpoint
  bool has_biases = false;           // of the router and of the experts' matrices
  // The shared MLP and the experts each have a norm before and after them, and the router has one
  // before it. A number per expert multiplies the routing weights.
  bool has_branch_norms = false;
  // The weight of a token's only expert multiplies the expert's input instead of its output.
  bool weighs_input = false;
  std::vector<bool> layers;  // [num_layers], whether a layer is a mixture; the others are dense
};

// One rank's router and experts of one layer; empty in a dense layer.
struct MoeLayer {
  std::unique_ptr<Linear> router;  // [num_experts, hidden]
  Tensor correction_bias;          // [num_experts], or empty
  std::unique_ptr<Linear>
      shared_gate;                   // [1, hidden] with MoeConfig::has_shared_gate, otherwise null
  std::unique_ptr<Experts> experts;  // null: the layer is dense
  // With MoeConfig::has_branch_norms, otherwise empty. [hidden]: the norms of the router's and of
  // the experts' input, and of the outputs of the MLP and of the experts.
  Tensor router_norm;
  Tensor input_norm;
  Tensor mlp_output_norm;
  Tensor output_norm;
  Tensor expert_scales;  // [num_experts], ExpertRouting::expert_scales
};

// Adds the bindings of a layer's router and experts, and of their norms. `format` is the experts'.
void add_moe_weights(const MoeConfig& config, int64_t hidden_size, const std::string& prefix,
                     const std::optional<WeightFormat>& format, MoeLayer& layer,
                     WeightGroup& group);

// The device's operations of experts. Fails with kUnimplemented if it has none.
Result<ExpertOps*> expert_ops_of(const Ops& ops);

// The number of shared experts that a device may merge with the others
// (WeightStore::merges_shared_experts). 0: the model has no shared experts, or their MLP cannot be
// divided into experts.
int num_mergeable_experts(const ModelConfig& config);

// The buffers of a step, which all layers share, and the computation of a layer.
class MoeStep {
 public:
  // Bytes of the buffers that every kind of device needs; ExpertOps::workspace_bytes is extra.
  static int64_t num_bytes(const ModelConfig& config, int64_t max_num_tokens);
  // The largest shape of a rank's layer: with shared experts, if `ops` merges them.
  static ExpertsShape experts_shape(const ModelConfig& config, const Parallel& parallel,
                                    const Ops& ops);

  Status allocate(const ModelConfig& config, const ModelLimits& limits, Ops& ops);
  // Chooses the experts of each token of x = the norm, and sets `call`.
  void route(const MoeLayer& layer, const ResidualNorm& norm, TensorView x, ExpertsCall& call,
             Ops& ops) const;
  // Multiplies the shared experts' output by the gates of x. Comes after route(), whose buffer it
  // uses.
  void gate_shared(const MoeLayer& layer, TensorView x, TensorView output, Ops& ops) const;
  // out (+)= the weighted sum of the chosen experts of each token of x. With
  // MoeConfig::weighs_input, x is multiplied by the weights.
  void run_experts(const MoeLayer& layer, ExpertsCall call, Ops& ops) const;

 private:
  ExpertRouting routing_;  // without shared experts
  Tensor logits_;          // F32 [max_num_tokens, num_experts]
  // [max_num_tokens, experts per token], shared experts that may be merged included.
  Tensor ids_;      // I32
  Tensor weights_;  // F32
  Tensor ones_;     // F32 [max_num_tokens], with MoeConfig::weighs_input; otherwise empty
  Tensor workspace_;
};

}  // namespace quire
