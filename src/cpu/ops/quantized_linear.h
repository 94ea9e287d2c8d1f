// A weight matrix of quantized blocks in the order in which the kernels of quantized/ stream it. It
// is the only copy of the weights, and about as large as the blocks.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "cpu/ops/quantized/kernel.h"
#include "ops/ops.h"

namespace quire::cpu {

// How a panel keeps blocks of this type. Values of 2 and 3 bits take 4 bits, those of 5 bits 6.
quantized::Format quantized_format(const GgufBlockType& type);

class QuantizedLinear final : public Linear {
 public:
  // Features of one type and of one matrix of the source; the last of a matrix may be incomplete.
  struct Panel {
    quantized::Format format;
    int64_t offset;         // of its first byte in the weights
    int64_t first_feature;  // of the Linear
    int64_t num_features;
  };

  // Fails with kInvalidArgument if the shapes are inconsistent, and with kResourceExhausted.
  static Result<std::unique_ptr<QuantizedLinear>> pack(const LinearSource& source,
                                                       ThreadPool& pool);

  int64_t in_features() const override { return in_features_; }
  int64_t out_features() const override { return out_features_; }
  size_t num_bytes() const override { return weights_.num_bytes() + bias_.size() * sizeof(float); }

  int64_t num_groups() const { return in_features_ / quantized::kGroupK; }
  const std::vector<Panel>& panels() const { return panels_; }
  const std::byte* data(const Panel& panel) const {
    return static_cast<const std::byte*>(weights_.data()) + panel.offset;
  }
  // [out_features]; null if the source has no bias.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  // Writes row `feature` of the matrix as F32.
  void unpack_row(int64_t feature, float* out) const;

 private:
  QuantizedLinear() = default;
  void list_panels(const LinearSource& source);
  void pack_panel(const Panel& panel, const LinearSource& source);

  Buffer weights_;
  std::vector<Panel> panels_;
  std::vector<float> bias_;
  int64_t in_features_ = 0;
  int64_t out_features_ = 0;
};

}  // namespace quire::cpu
