// The common parts of the tests of drafters that read hidden states, beside their references.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/model_loader.h"
#include "support/reference_layer.h"
#include "support/reference_ops.h"
#include "tensor/checkpoint.h"
#include "tensor/weight_source.h"

namespace quire::testing {

// Limits of a small model: steps of 16 tokens, and a context of 32.
ModelLimits drafter_limits();

// The file of a drafter or of another small model; the weights refer to its bytes.
struct DrafterFile {
  explicit DrafterFile(const StoredTensors& tensors)
      : bytes(safetensors_file(tensors)),
        weights(Checkpoint::from_memory(bytes, "drafter.safetensors").value()) {}
  // The file of a model, under the names of the decoder.
  DrafterFile(const StoredTensors& tensors, ModelConfig config) : DrafterFile(tensors) {
    weights = present_weights(std::move(weights), config).value();
  }

  std::vector<std::byte> bytes;
  std::unique_ptr<WeightSource> weights;
};

// A small target of such drafters.
inline constexpr int kTargetLayers = 7;
ModelConfig target_config(int hidden = 16, int vocab = 20, int num_layers = kTargetLayers);

// A drafter in a file, and a target of random weights, whose embeddings and lm_head it may share.
class DrafterWithTarget {
 public:
  DrafterWithTarget(const ModelConfig& target, const StoredTensors& tensors, Ops& ops);

  const StoredTensors& tensors() const { return tensors_; }
  WeightSource& weights() { return *file_.weights; }
  const Model& target() const { return *target_; }
  Ops& ops() { return ops_; }
  const ModelLimits& limits() const { return limits_; }
  // The drafter's tensor, or the target's tensor if the drafter has none.
  std::vector<float> own_or_shared(const std::string& name, const Shape& shape);

 private:
  StoredTensors tensors_;
  DrafterFile file_;
  Ops& ops_;
  ModelLimits limits_ = drafter_limits();
  DummyWeights target_weights_{DType::kF32};
  std::unique_ptr<Model> target_;
};

// Counts the memory of activations.
class CountingOps final : public ReferenceOps {
 public:
  Result<Tensor> allocate(const Shape& shape, DType dtype) override {
    num_bytes += shape.num_elements() * static_cast<int64_t>(dtype_bytes(dtype));
    return ReferenceOps::allocate(shape, dtype);
  }
  int64_t num_bytes = 0;
};

std::vector<float> random_floats(size_t count, uint32_t seed);
// Rows of `width` values.
std::vector<ReferenceTensors::Row> rows_of(std::span<const float> values, size_t width);
void expect_near_rows(std::span<const float> got, std::span<const ReferenceTensors::Row> expected,
                      double tolerance, const std::string& what);

// DraftHead::output_states() of `count` tokens of the last step.
std::vector<float> output_states(Model& model, int first, int count);

}  // namespace quire::testing
