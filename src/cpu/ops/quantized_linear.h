// A weight matrix of quantized blocks, or of integers with scales, in the order in which the
// kernels of quantized/ stream it. It is the only copy of the weights, and about as large as the
// source.
#pragma once

#include <span>
#include <vector>

#include "base/numbers.h"
#include "base/thread_pool.h"
#include "cpu/ops/quantized/kernel.h"
#include "ops/ops.h"
#include "ops/quantized_source.h"
#include "tensor/packed_weights.h"

namespace quire::cpu {

class QuantizedLinear final : public Linear {
 public:
  // Features of one type and of one matrix of the source. The last panel of a matrix may be
  // incomplete.
  struct Panel {
    quantized::Format format;
    int64_t offset;         // of the panel's first byte in the weights
    int64_t first_feature;  // index in the Linear
    int64_t num_features;
  };

  // Packs the source's blocks or, without blocks, its integer weights. Fails with kInvalidArgument
  // if the shapes or the orders of columns are inconsistent, with kUnimplemented if a panel cannot
  // keep the integers, and with kResourceExhausted.
  // `kept`: as in kept_matrix().
  static Result<std::unique_ptr<QuantizedLinear>> pack(const LinearSource& source, ThreadPool& pool,
                                                       PackedWeights* kept);

  int64_t in_features() const override { return in_features_; }
  int64_t out_features() const override { return out_features_; }
  size_t num_bytes() const override {
    return weights_.num_bytes() + bias_.size() * sizeof(float) + order_.size() * sizeof(int32_t);
  }

  int64_t num_groups() const { return ceil_div(in_features_, quantized::kGroupK); }
  const std::vector<Panel>& panels() const { return panels_; }
  const std::byte* data(const Panel& panel) const {
    return static_cast<const std::byte*>(weights_.data()) + panel.offset;
  }
  // [out_features]; null if the source has no bias.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  // Column i of the panels is column order()[i] of the matrix; empty: the columns are in order.
  std::span<const int32_t> order() const { return order_; }

  // Writes row `feature` of the matrix as F32.
  void unpack_row(int64_t feature, float* out) const;

 private:
  QuantizedLinear() = default;
  void list_panels(std::span<const QuantizedMatrix> matrices);
  void pack_panel(const Panel& panel, std::span<const QuantizedMatrix> matrices,
                  std::byte* block) const;
  void unpack_block(const Panel& panel, const std::byte* block, int64_t lane, int64_t first_group,
                    float* out) const;

  Buffer weights_;
  std::vector<Panel> panels_;
  std::vector<float> bias_;
  std::vector<int32_t> order_;
  int64_t in_features_ = 0;
  int64_t out_features_ = 0;
};

}  // namespace quire::cpu
