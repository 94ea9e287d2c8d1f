// The kernel of a product, and the numbers of rows for which it is chosen.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/wgmma_gemm.h"

namespace quire::cuda {

// Numbers of rows are grouped into buckets that share a choice: the smallest of 1, 2, 4, 8, 16,
// then multiples of 16 up to 128, of 64 up to 512, of 256 up to 2048, and of 1024, that is at least
// num_rows.
int64_t row_bucket(int64_t num_rows);
// The buckets of all steps of up to max_rows rows; the last one is limited to max_rows.
std::vector<int> row_buckets(int max_rows);

struct GemmChoice {
  enum class Kind { kSkinny, kCublasLt, kWgmma, kGrouped, kGeneric };
  Kind kind = Kind::kGeneric;
  int skinny_variant = 0;
  cublasLtMatmulAlgo_t algorithm = {};
  WgmmaPlan wgmma = {};
  int tile_rows = 0;  // kGrouped: GroupedGemmCall::tile_rows
};

// The key and the value of a kept choice (MeasuredChoices). An algorithm of cuBLASLt is only valid
// in the version that made it, so the version is a part of the key.
std::string choice_key(const GemmShape& shape, int64_t row_bucket, size_t cublas_version);
std::string to_text(const GemmChoice& choice);
// Absent if the text is not a choice of this build.
std::optional<GemmChoice> gemm_choice(std::string_view text);

}  // namespace quire::cuda
