// Computes out = x · Wᵀ + bias with quantized weights, as quantized/kernel.h describes: activations
// are rounded to integers of 16 bits per block of 256, or of 8 bits per 32, and the products are
// summed exactly within a group of weights. If the columns of the weights are reordered, the
// activations are reordered in the same way before they are rounded.
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

// The kernels that this processor can run and may_use() allows, fastest first. There is always at
// least "plain".
std::span<const QuantizedKernel> quantized_kernels();

// Scratch memory, which all threads share, for the activations as integers, and for activations in
// the order of a Linear's columns. It is allocated when a Linear is made, so that linear()
// allocates nothing.
class QuantizedScratch {
 public:
  Status reserve(const QuantizedLinear& w);
  // An upper bound on the bytes for matrices of up to `in_features` columns.
  static int64_t num_bytes(int64_t in_features);
  std::byte* x() const { return static_cast<std::byte*>(x_.data()); }
  float* ordered() const { return static_cast<float*>(ordered_.data()); }

 private:
  Buffer x_;
  Buffer ordered_;
};

// x: rows of in_features, out: rows of out_features, both dense; at most kMaxGroupedRows rows in
// total. num_terms: bytes per activation, 1 or 2; with several kernels, 1 may become 2 for matrices
// whose products are faster with 2. Each group uses the first of `kernels` whose min_rows is at
// most the group's number of rows, and the last kernel if there is none.
void linear_quantized(std::span<const QuantizedRowGroup> groups,
                      std::span<const QuantizedKernel> kernels, const float* x, int num_terms,
                      float* out, ThreadPool& pool, const QuantizedScratch& scratch);

}  // namespace quire::cpu
