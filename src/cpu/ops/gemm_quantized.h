// Computes out = x · Wᵀ + bias with quantized weights, as quantized/kernel.h describes: activations
// are rounded to integers of 8 or 16 bits per block of 256, and the products are summed exactly
// within a group of weights. If the columns of the weights have another order, the activations are
// put into this order before they are rounded.
#pragma once

#include <span>
#include <string_view>

#include "base/thread_pool.h"
#include "cpu/ops/quantized_linear.h"
#include "cpu/ops/row_group.h"

namespace quire::cpu {

struct QuantizedKernel {
  std::string_view name;
  const quantized::Kernel* kernel;
};

inline constexpr std::string_view kAmxInt8Name = "amx_int8";

// The kernels that this processor can run and may_use() allows, the fastest first; at least
// "plain".
std::span<const QuantizedKernel> quantized_kernels();

// Scratch for the activations as integers, and for activations in the order of a Linear's columns,
// shared by all threads. It is sized when a Linear is made, so that linear() allocates nothing.
class QuantizedScratch {
 public:
  Status reserve(const QuantizedLinear& w);
  // Upper bound of the bytes for matrices of up to `in_features` columns.
  static int64_t num_bytes(int64_t in_features);
  std::byte* x() const { return static_cast<std::byte*>(x_.data()); }
  float* ordered() const { return static_cast<float*>(ordered_.data()); }

 private:
  Buffer x_;
  Buffer ordered_;
};

// x: rows of in_features, out: rows of out_features, both dense; at most kMaxGroupedRows rows in
// all. num_terms: bytes per activation, 1 or 2. The first of `kernels` whose min_rows a group
// reaches multiplies it, otherwise the last.
void linear_quantized(std::span<const QuantizedRowGroup> groups,
                      std::span<const QuantizedKernel> kernels, const float* x, int num_terms,
                      float* out, ThreadPool& pool, const QuantizedScratch& scratch);

}  // namespace quire::cpu
