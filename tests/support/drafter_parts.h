// The common parts of the tests of drafters that read hidden states, beside their references.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "support/reference_layer.h"
#include "support/reference_ops.h"
#include "tensor/checkpoint.h"

namespace quire::testing {

// Limits of a small model: steps of 16 tokens, and a context of 32.
ModelLimits drafter_limits();

// The file of a drafter; the checkpoint refers to its bytes.
struct DrafterFile {
  explicit DrafterFile(const StoredTensors& tensors)
      : bytes(safetensors_file(tensors)),
        weights(Checkpoint::from_memory(bytes, "drafter.safetensors").value()) {}

  std::vector<std::byte> bytes;
  std::unique_ptr<Checkpoint> weights;
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
std::vector<float> output_states(DraftHead& head, int first, int count);

}  // namespace quire::testing
