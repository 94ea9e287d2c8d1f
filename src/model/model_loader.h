// Loads a model from its configuration and checkpoint, and reports what the load needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"
#include "tensor/weight_source.h"

namespace quire {

// Loads all weights of the configuration from `source` and packs them for `ops`, which must outlive
// the model. A tensor's memory in the source is released once it is packed. Fails, naming the
// tensor, if one is missing, has another shape, or is left over.
Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits,
                                          const LoadOptions& options = {});

// If config.json does not say whether lm_head is tied to the embeddings, a stored lm_head decides.
void settle_tie(const WeightSource& checkpoint, ModelConfig& config);
// Calls settle_tie(). Returns the checkpoint's tensors under the decoder's names, which the other
// functions read.
Result<std::unique_ptr<WeightSource>> present_weights(std::unique_ptr<WeightSource> checkpoint,
                                                      ModelConfig& config);

// The checkpoint's tensors of the configuration.
std::vector<TensorSpec> list_tensors(const ModelConfig& config);

// The number of all weights; tied embeddings count once.
int64_t num_parameters(const ModelConfig& config);

// Fails if a matrix cannot be divided among the ranks, by the shapes and the order of its columns.
Status check_slices(const ModelConfig& config, WeightSource& source, const Ops& ops,
                    const Parallel& parallel);

// The weights of the configuration, as one rank keeps them.
Result<WeightPlan> plan_weights(const ModelConfig& config, const WeightSource& source,
                                const Ops& ops, const Parallel& parallel);

// Describes how the rank of `plan` keeps the quantized matrices of `source`, for example "4-bit
// integers with a scale per group of 128, computed as they are" or "blocks of Q4_K, Q6_K, computed
// as they are"; empty: the model has none.
std::string describe_quantization(const ModelConfig& config, const WeightSource& source,
                                  const Ops& ops, const WeightPlan& plan);

// Counts of the layers with a KV cache of their own.
struct KvScaleCounts {
  int num_layers = 0;
  int num_stored = 0;  // layers for whose FP8 cache the checkpoint has scales
};

KvScaleCounts count_kv_scales(const ModelConfig& config, const WeightSource& source);

// Calls check_stored_tensors() of weights.h for the model's tensors.
Status check_stored_tensors(const ModelConfig& config, const WeightSource& source);

// Bytes of the buffers of one step within `limits`, with the workspaces of the device. Fails with
// kUnimplemented if the device does not compute experts, or recurrent states.
Result<int64_t> estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                          const Ops& ops);

}  // namespace quire
