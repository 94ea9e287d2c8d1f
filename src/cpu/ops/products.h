// Matrix products of a CPU: packs matrices, chooses a matrix's kernel, and multiplies rows by one
// or several matrices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/gemm_fma.h"
#include "cpu/ops/gemm_quantized.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/row_group.h"
#include "ops/weight_store.h"

namespace quire::cpu {

class Products {
 public:
  // `pool` and `options.kept` must outlive the object.
  Products(ThreadPool& pool, const CpuOpsOptions& options);

  // Packs the matrices, and grows the scratch for their products. The calling thread takes part in
  // packing. With several NUMA nodes, it is bound to the CPUs of thread 0 during that time.
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source);

  // out[r, :] = x[r, :] · Wᵀ + bias for all rows.
  void multiply(const Linear& w, const float* x, int64_t num_rows, float* out);
  // Multiplies each part's rows of x by its matrix. Adjacent parts with the same kernel share a
  // parallel region; F16 matrices of one layer may have different kernels. A part has a first_row,
  // which is a multiple of kGroupAlign, and num_rows.
  template <class Parts, class MatrixOf>
  void multiply_parts(const Parts& parts, const MatrixOf& matrix_of, const float* x, float* out);

  ThreadPool& pool() const { return pool_; }

 private:
  // The kernels of matrix products. A matrix has one kernel for any number of rows.
  enum class Kernel { kFma, kAmx, kBf16, kQuantized };

  Result<std::unique_ptr<Linear>> pack(const LinearSource& source);
  Kernel kernel_of(const Linear& w) const;
  void multiply_packed(Kernel kernel, std::span<const RowGroup> groups, const float* x, float* out);
  void multiply_quantized(std::span<const QuantizedRowGroup> groups, const float* x, float* out);

  ThreadPool& pool_;
  FmaScratch fma_scratch_;
  AmxScratch amx_scratch_;
  Bf16Scratch bf16_scratch_;
  QuantizedScratch quantized_scratch_;
  const amx::Kernel* amx_kernel_;  // null: AMX is not used
  bool use_bf16_;
  std::span<const QuantizedKernel> quantized_kernels_;
  InputRounding rounding_;
  PackedWeights* kept_;
};

template <class Parts, class MatrixOf>
void Products::multiply_parts(const Parts& parts, const MatrixOf& matrix_of, const float* x,
                              float* out) {
  std::array<RowGroup, kMaxGroups> packed;
  std::array<QuantizedRowGroup, kMaxGroups> quantized;
  size_t num_groups = 0;
  Kernel kernel = Kernel::kFma;
  const auto flush = [&] {
    if (num_groups == 0) return;
    if (kernel == Kernel::kQuantized) {
      multiply_quantized(std::span(quantized).first(num_groups), x, out);
    } else {
      multiply_packed(kernel, std::span(packed).first(num_groups), x, out);
    }
    num_groups = 0;
  };
  for (const auto& part : parts) {
    const Linear& w = matrix_of(part);
    const Kernel next = kernel_of(w);
    if (next != kernel) flush();
    kernel = next;
    if (kernel == Kernel::kQuantized) {
      quantized[num_groups++] = {static_cast<const QuantizedLinear*>(&w), part.first_row,
                                 part.num_rows};
    } else {
      packed[num_groups++] = {static_cast<const PackedLinear*>(&w), part.first_row, part.num_rows};
    }
  }
  flush();
}

}  // namespace quire::cpu
