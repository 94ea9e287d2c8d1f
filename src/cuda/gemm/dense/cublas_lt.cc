#include "cuda/gemm/dense/cublas_lt.h"

#include <fmt/format.h>

#include <utility>

namespace quire::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// Enumerators of cublasLt.h from version 12.9 on. Earlier libraries refuse these attributes.
const auto kScaleModeOfA = static_cast<cublasLtMatmulDescAttributes_t>(31);
const auto kScaleModeOfB = static_cast<cublasLtMatmulDescAttributes_t>(32);
constexpr int32_t kOneScalePerRow = 3;  // CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F

Status check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return internal_error(
      fmt::format("[ops] cuBLASLt could not {}; got status {}", what, static_cast<int>(status)));
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kF8E4M3:
      return CUDA_R_8F_E4M3;
    case DType::kBF16:
      return CUDA_R_16BF;
    default:
      QUIRE_CHECK(false, "[ops] cuBLASLt has no products of integers");
  }
}

Result<CublasLtApi> load_api() {
  CublasLtApi api;
  QUIRE_ASSIGN_OR_RETURN(
      api.library,
      DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}));
#define QUIRE_FIND(name, member) \
  QUIRE_RETURN_IF_ERROR(api.library.find("cublasLt" #name, api.member));
  QUIRE_CUBLAS_LT_FUNCTIONS(QUIRE_FIND)
#undef QUIRE_FIND
  return api;
}

// The greatest power of two up to 256 that divides the bytes of a row.
uint32_t alignment_of(int64_t row_elements, DType dtype) {
  const auto bytes = static_cast<uint64_t>(row_elements) * dtype_bytes(dtype);
  uint32_t alignment = 256;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

int64_t x_width_of(const GemmShape& shape) {
  return shape.x_width > 0 ? shape.x_width : shape.k;
}

int64_t out_width_of(const GemmShape& shape) {
  return shape.out_width > 0 ? shape.out_width : shape.n;
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::open() {
  QUIRE_ASSIGN_OR_RETURN(CublasLtApi api, load_api());
  std::unique_ptr<CublasLt> library(new CublasLt(std::move(api)));
  QUIRE_RETURN_IF_ERROR(check(library->api_.create(&library->handle_), "start"));
  QUIRE_ASSIGN_OR_RETURN(library->workspace_, device_memory(kWorkspaceBytes));
  return library;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) (void)api_.destroy(handle_);
}

Result<CublasLt::Problem> CublasLt::make_problem(const GemmShape& shape, int64_t num_rows) {
  cublasLtMatmulDesc_t desc = nullptr;
  QUIRE_RETURN_IF_ERROR(
      check(api_.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product"));
  Problem problem = {{desc, api_.desc_destroy},
                     {nullptr, api_.layout_destroy},
                     {nullptr, api_.layout_destroy},
                     {nullptr, api_.layout_destroy}};
  const cublasOperation_t transposed = shape.transposes_w ? CUBLAS_OP_N : CUBLAS_OP_T;
  QUIRE_RETURN_IF_ERROR(
      check(api_.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
            "set TRANSA"));
  if (shape.has_bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    QUIRE_RETURN_IF_ERROR(
        check(api_.desc_set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)),
              "set the epilogue"));
  }
  // `width`: the distance between the rows of two adjacent heads.
  const auto layout = [&](Owned<cublasLtMatrixLayoutOpaque_t>& owned, DType dtype, int64_t rows,
                          int64_t columns, int64_t stride, int64_t width) -> Status {
    cublasLtMatrixLayout_t raw = nullptr;
    const cublasStatus_t status =
        api_.layout_create(&raw, data_type(dtype), static_cast<uint64_t>(rows),
                           static_cast<uint64_t>(columns), stride);
    owned.reset(raw);
    QUIRE_RETURN_IF_ERROR(check(status, "create a layout"));
    if (shape.num_heads == 1) return {};
    const auto num_heads = static_cast<int32_t>(shape.num_heads);
    QUIRE_RETURN_IF_ERROR(check(
        api_.layout_set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &num_heads, sizeof(num_heads)),
        "set the number of heads"));
    return check(
        api_.layout_set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &width, sizeof(width)),
        "set the width of a head");
  };
  const int64_t x_width = x_width_of(shape);
  const int64_t out_width = out_width_of(shape);
  const int64_t w_rows = shape.transposes_w ? shape.n : shape.k;
  const int64_t w_columns = shape.transposes_w ? shape.k : shape.n;
  QUIRE_RETURN_IF_ERROR(
      layout(problem.w, shape.weights, w_rows, w_columns, w_rows, shape.n * shape.k));
  QUIRE_RETURN_IF_ERROR(layout(problem.x, shape.weights, shape.k, num_rows,
                               shape.shares_x ? x_width : shape.num_heads * x_width,
                               shape.shares_x ? 0 : x_width));
  QUIRE_RETURN_IF_ERROR(
      layout(problem.out, shape.out, shape.n, num_rows, shape.num_heads * out_width, out_width));
  if (shape.weights != DType::kF8E4M3) return problem;
  // Fast accumulation stays off, which is the library's default. With it, the sums over all of K
  // would stay in the tensor cores, which keep fewer bits than F32.
  for (const auto mode : {kScaleModeOfA, kScaleModeOfB}) {
    QUIRE_RETURN_IF_ERROR(check(api_.desc_set(desc, mode, &kOneScalePerRow, sizeof(int32_t)),
                                "set one scale per row"));
  }
  // The heuristic requires addresses, but does not read the memory.
  QUIRE_RETURN_IF_ERROR(set_scales(problem, workspace_.data(), workspace_.data()));
  return problem;
}

Status CublasLt::set_scales(const Problem& problem, const void* w_scales,
                            const void* x_scales) const {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* scales) {
    return check(api_.desc_set(problem.desc.get(), attribute, &scales, sizeof(scales)),
                 "set the scales");
  };
  QUIRE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w_scales));
  return set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x_scales);
}

Result<CublasLt::Problem*> CublasLt::problem(const GemmShape& shape) {
  for (auto& [known, prepared] : problems_) {
    if (known == shape) return &prepared;
  }
  QUIRE_ASSIGN_OR_RETURN(Problem prepared, make_problem(shape, 1));
  problems_.emplace_back(shape, std::move(prepared));
  return &problems_.back().second;
}

std::vector<cublasLtMatmulAlgo_t> CublasLt::algorithms(const GemmShape& shape, int64_t num_rows,
                                                       int max_count) {
  const Result<Problem> problem = make_problem(shape, num_rows);
  cublasLtMatmulPreference_t raw = nullptr;
  if (!problem.ok() || api_.preference_create(&raw) != CUBLAS_STATUS_SUCCESS) return {};
  const Owned<cublasLtMatmulPreferenceOpaque_t> preference(raw, api_.preference_destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    (void)api_.preference_set(raw, attribute, &value, sizeof(value));
  };
  // Buffers are at least 16-byte aligned; rows may be aligned to fewer bytes.
  const uint32_t w_alignment =
      std::min(16U, alignment_of(shape.transposes_w ? shape.n : shape.k, shape.weights));
  const uint32_t x_alignment = std::min(16U, alignment_of(x_width_of(shape), shape.weights));
  const uint32_t out_alignment = std::min(16U, alignment_of(out_width_of(shape), shape.out));
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, w_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, x_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out_alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(max_count));
  int count = 0;
  if (api_.heuristic(handle_, problem->desc.get(), problem->w.get(), problem->x.get(),
                     problem->out.get(), problem->out.get(), raw, max_count, results.data(),
                     &count) != CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < count; ++i) {
    const auto& result = results[static_cast<size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

Status CublasLt::run(CudaStream& stream, const GemmShape& shape, const GemmCall& call,
                     const cublasLtMatmulAlgo_t& algorithm, const void* x_scales) {
  QUIRE_ASSIGN_OR_RETURN(Problem* const problem, this->problem(shape));
  const auto num_rows = static_cast<uint64_t>(call.x.shape[0]);
  for (auto* layout : {problem->x.get(), problem->out.get()}) {
    QUIRE_RETURN_IF_ERROR(
        check(api_.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &num_rows, sizeof(num_rows)),
              "set the rows"));
  }
  if (shape.has_bias) {
    const void* bias = call.bias.data;
    QUIRE_RETURN_IF_ERROR(check(
        api_.desc_set(problem->desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
        "set the bias"));
  }
  if (shape.weights == DType::kF8E4M3) {
    QUIRE_RETURN_IF_ERROR(set_scales(*problem, call.w_scales.data, x_scales));
  }
  const float one = 1.0F;
  const float zero = 0.0F;
  return check(
      api_.matmul(handle_, problem->desc.get(), &one, call.w.data, problem->w.get(), call.x.data,
                  problem->x.get(), &zero, call.out.data, problem->out.get(), call.out.data,
                  problem->out.get(), &algorithm, workspace_.data(), kWorkspaceBytes, stream.get()),
      "multiply");
}

}  // namespace quire::cuda
