// Matrices whose weights stay packed on the device.
#pragma once

#include <vector>

#include "cuda/base/memory.h"
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/packed/packed_kernels.h"
#include "ops/ops.h"
#include "ops/quantized_source.h"

namespace quire::cuda {

// Whether the kernels support a matrix of this format. It requires that rows of activations are
// whole 16-byte vectors, and that 8-bit values have no scales for groups of 16 columns. Other
// matrices are expanded to 16 bits at load. CudaOps packs matrices only on Hopper, and never with
// F32 activations.
bool can_pack(const QuantizedFormat& format, int64_t num_columns);
// The bytes of one row in a block.
int64_t packed_block_bytes(const GgufBlockType& type);
// The size of a matrix in bytes, or 0 if can_pack() is false.
int64_t packed_bytes(const WeightScheme& scheme, DType scales, const Shape& matrix);

// Quantized matrices on the device. Each consists of a source's matrices, one below the other. All
// have the same layout. This is the only copy of the weights, and about as large as the sources.
class PackedMatrices {
 public:
  // Allocates `count` matrices in the layout of this source. Fails as quantized_matrices() does,
  // and with kUnimplemented if can_pack() is false.
  static Result<PackedMatrices> allocate(const LinearSource& source, int64_t count = 1);
  // Packs matrix `idx` on the host and enqueues its upload. Fails as allocate() does, and with
  // kUnimplemented if the source has another layout.
  Status load(int64_t idx, const LinearSource& source, WeightUpload& upload);

  // The parts of the first matrix. Adjacent matrices of one format form one part, if the rows of
  // the first of them fill whole panels.
  const std::vector<PackedRows>& parts() const { return parts_; }
  int64_t num_rows() const { return parts_.back().first_row + parts_.back().num_rows; }
  int64_t num_columns() const { return parts_.front().num_columns; }
  // The distance between the panels of two matrices in bytes.
  int64_t matrix_bytes() const { return matrix_bytes_; }
  // Column i of the parts is column order()[i] of the first matrix. The orders of the other
  // matrices follow. Null: the columns are in order.
  const int32_t* order() const { return order_.view.as<const int32_t>(); }
  size_t num_bytes() const { return panels_.num_bytes() + order_.buffer.num_bytes(); }

 private:
  PackedMatrices() = default;
  Status load_order(int64_t idx, const LinearSource& source, WeightUpload& upload);

  Buffer panels_;
  int64_t count_ = 0;
  int64_t matrix_bytes_ = 0;
  std::vector<PackedRows> parts_;
  Tensor order_;  // [count, columns], or empty
};

}  // namespace quire::cuda
