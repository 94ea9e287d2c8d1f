// Matrix products by cuBLASLt with F32 accumulation and row-major operands (linear of ops/ops.h).
// The library is loaded when it is needed.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dynamic_library.h"
#include "cuda/base/memory.h"
#include "cuda/gemm/dense/dense_kernels.h"

namespace quire::cuda {

// The properties that identify a product, independently of its number of rows.
struct GemmShape {
  int64_t n = 0;
  int64_t k = 0;
  DType type = DType::kF32;     // of x and bias
  DType weights = DType::kF32;  // equals `type`, or E4M3: then cuBLASLt also requires x in E4M3
  DType out = DType::kF32;      // equals `type`, or F32
  bool has_bias = false;
  bool is_gated = false;   // GemmCall::gated_out is also computed, by another kernel
  size_t operation = 0;    // the index of GemmCall::operation, if the choice depends on it
  int64_t scale_rows = 0;  // GemmCall::scale_rows; cuBLASLt computes products with 0
  // One product per head: x is [m, num_heads, x_width], w [num_heads, n, k], and out [m, num_heads,
  // out_width].
  int64_t num_heads = 1;
  int64_t x_width = 0;        // 0: k
  int64_t out_width = 0;      // 0: n
  bool shares_x = false;      // x is [m, k], the input of all heads
  bool transposes_w = false;  // w is [num_heads, k, n]
  auto operator<=>(const GemmShape&) const = default;
};

// X(name in cuBLASLt, member of CublasLtApi): the functions that Quire calls.
#define QUIRE_CUBLAS_LT_FUNCTIONS(X)              \
  X(GetVersion, get_version)                      \
  X(Create, create)                               \
  X(Destroy, destroy)                             \
  X(Matmul, matmul)                               \
  X(MatmulDescCreate, desc_create)                \
  X(MatmulDescDestroy, desc_destroy)              \
  X(MatmulDescSetAttribute, desc_set)             \
  X(MatrixLayoutCreate, layout_create)            \
  X(MatrixLayoutDestroy, layout_destroy)          \
  X(MatrixLayoutSetAttribute, layout_set)         \
  X(MatmulPreferenceCreate, preference_create)    \
  X(MatmulPreferenceDestroy, preference_destroy)  \
  X(MatmulPreferenceSetAttribute, preference_set) \
  X(MatmulAlgoGetHeuristic, heuristic)

struct CublasLtApi {
  DynamicLibrary library;
#define QUIRE_MEMBER(name, member) decltype(::cublasLt##name)* member = nullptr;
  QUIRE_CUBLAS_LT_FUNCTIONS(QUIRE_MEMBER)
#undef QUIRE_MEMBER
};

class CublasLt {
 public:
  // Fails with kUnavailable if the library is missing or too old.
  static Result<std::unique_ptr<CublasLt>> open();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // For example 130100 for version 13.1.0.
  size_t version() const { return api_.get_version(); }

  // At most max_count algorithms for the product at `num_rows` rows, in the order of the library's
  // heuristic; empty if it has none. Runs on the host only.
  std::vector<cublasLtMatmulAlgo_t> algorithms(const GemmShape& shape, int64_t num_rows,
                                               int max_count);
  // Enqueues. Fails with kInternal if the library refuses, for example because the algorithm was
  // chosen for another number of rows. With E4M3 weights, call.x is E4M3 too, and x_scales (F32)
  // has the scale of each of its rows.
  Status run(CudaStream& stream, const GemmShape& shape, const GemmCall& call,
             const cublasLtMatmulAlgo_t& algorithm, const void* x_scales = nullptr);

 private:
  template <typename T>
  using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

  // Descriptors of the product out^T [n, m] = w [n, k] * x^T [k, m] in the library's column-major
  // order. In that order, a row-major matrix is its own transpose: w is stored as w^T [k, n], and
  // the library transposes it unless transposes_w.
  struct Problem {
    Owned<cublasLtMatmulDescOpaque_t> desc;
    Owned<cublasLtMatrixLayoutOpaque_t> w;
    Owned<cublasLtMatrixLayoutOpaque_t> x;
    Owned<cublasLtMatrixLayoutOpaque_t> out;
  };

  explicit CublasLt(CublasLtApi api) : api_(std::move(api)) {}
  Status set_scales(const Problem& problem, const void* w_scales, const void* x_scales) const;
  Result<Problem> make_problem(const GemmShape& shape, int64_t num_rows);
  Result<Problem*> problem(const GemmShape& shape);

  CublasLtApi api_;
  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
  std::vector<std::pair<GemmShape, Problem>> problems_;  // few per model, so searched linearly
};

}  // namespace quire::cuda
