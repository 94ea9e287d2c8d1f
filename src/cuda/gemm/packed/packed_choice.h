// Chooses the method of a product with packed matrices, and computes it.
#pragma once

#include <cstdint>

#include "cuda/base/memory.h"
#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/packed/packed_kernels.h"
#include "cuda/gemm/packed/packed_matrices.h"

namespace quire::cuda {

struct PackedProduct {
  const PackedMatrices* w = nullptr;
  TensorView x;
  TensorView bias;  // data null: none
  TensorView out;
  TensorView gated_out = {};  // PackedGemmCall's; data null: none
};

// The ways to compute a product: the kernel for few rows, the kernel for tiles of rows, or cuBLASLt
// after unpacking the matrix into a workspace, as many rows at a time as fit.
enum class PackedMethod { kFewRows, kTiles, kUnpacked };

// The maximum number of rows of x that are tiled at a time. The workspace holds this many rows of
// the width of the widest matrix.
inline constexpr int64_t kMaxTiledRows = 256;

// The fastest method for m rows of x, as measured on an H200.
constexpr PackedMethod packed_method(int64_t m, bool can_unpack) {
  if (m <= kMaxPackedRows) return PackedMethod::kFewRows;
  return m <= kMaxTiledRows || !can_unpack ? PackedMethod::kTiles : PackedMethod::kUnpacked;
}

// Whether the kernel for few rows computes the gated product: gate and up must be one part.
bool has_gates(const PackedMatrices& w);

// Computes products with packed matrices.
class PackedGemm {
 public:
  // The library must outlive the PackedGemm.
  PackedGemm(const LaunchContext& context, CublasLt& cublas)
      : context_(context), unpacked_(cublas) {}

  // Allocates what products with the matrix need. Called once per matrix, before its products.
  Status reserve(const PackedMatrices& matrix);
  // Enqueues; capturable.
  void run(const PackedProduct& product);
  void run(const PackedProduct& product, PackedMethod method);

 private:
  void run_few_rows(const PackedProduct& product);
  void run_tiles(const PackedProduct& product);
  // False if a part begins at a row that is not a multiple of 8, because its format differs from
  // the previous part's. reserve() warns of this at load.
  bool can_unpack(const PackedProduct& product) const;
  Status run_unpacked(const PackedProduct& product);
  Status multiply(const TensorView& x, const TensorView& w, const TensorView& out,
                  int64_t first_row);

  LaunchContext context_;
  BucketedProducts unpacked_;
  bool has_warned_ = false;  // that a matrix cannot be unpacked
  Buffer workspace_;         // rows of a matrix, or rows of x in another order
};

}  // namespace quire::cuda
