// Matrix products by cuBLASLt, which is opened when it is needed: F32 accumulation, row-major
// operands (ops/ops.h's linear).
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/base/dynamic_library.h"
#include "cuda/base/memory.h"
#include "cuda/ops/skinny_gemm.h"

namespace quire::cuda {

// What a product needs to be described by; how many rows it has may vary.
struct GemmShape {
  int64_t n = 0;
  int64_t k = 0;
  DType type = DType::kF32;  // of x, w and bias
  DType out = DType::kF32;   // `type`, or F32
  bool has_bias = false;
  bool is_gated = false;  // GemmCall::gated_out is wanted too, which is not the library's work
  auto operator<=>(const GemmShape&) const = default;
};

// The functions of the library that are used.
struct CublasLtApi {
  DynamicLibrary library;
  decltype(::cublasLtCreate)* create = nullptr;
  decltype(::cublasLtDestroy)* destroy = nullptr;
  decltype(::cublasLtMatmul)* matmul = nullptr;
  decltype(::cublasLtMatmulDescCreate)* desc_create = nullptr;
  decltype(::cublasLtMatmulDescDestroy)* desc_destroy = nullptr;
  decltype(::cublasLtMatmulDescSetAttribute)* desc_set = nullptr;
  decltype(::cublasLtMatrixLayoutCreate)* layout_create = nullptr;
  decltype(::cublasLtMatrixLayoutDestroy)* layout_destroy = nullptr;
  decltype(::cublasLtMatrixLayoutSetAttribute)* layout_set = nullptr;
  decltype(::cublasLtMatmulPreferenceCreate)* preference_create = nullptr;
  decltype(::cublasLtMatmulPreferenceDestroy)* preference_destroy = nullptr;
  decltype(::cublasLtMatmulPreferenceSetAttribute)* preference_set = nullptr;
  decltype(::cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
};

class CublasLt {
 public:
  // kUnavailable without the library, or where it is too old.
  static Result<std::unique_ptr<CublasLt>> open();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // At most max_count ways to compute the product at `num_rows` rows, the library's favourite
  // first. Empty where it has none. Touches only the host.
  std::vector<cublasLtMatmulAlgo_t> algorithms(const GemmShape& shape, int64_t num_rows,
                                               int max_count);
  // Enqueues. kInternal where the library refuses; the algorithm may be for another number of rows.
  Status run(CudaStream& stream, const GemmShape& shape, const GemmCall& call,
             const cublasLtMatmulAlgo_t& algorithm);

 private:
  template <typename T>
  using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

  // Column-major for the library: out^T [n, m] = w^T' [k, n]' * x^T [k, m].
  struct Problem {
    Owned<cublasLtMatmulDescOpaque_t> desc;
    Owned<cublasLtMatrixLayoutOpaque_t> w;
    Owned<cublasLtMatrixLayoutOpaque_t> x;
    Owned<cublasLtMatrixLayoutOpaque_t> out;
  };

  explicit CublasLt(CublasLtApi api) : api_(std::move(api)) {}
  Result<Problem> make_problem(const GemmShape& shape, int64_t num_rows);
  Result<Problem*> problem(const GemmShape& shape);

  CublasLtApi api_;
  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
  std::vector<std::pair<GemmShape, Problem>> problems_;  // a model has a handful
};

}  // namespace quire::cuda
