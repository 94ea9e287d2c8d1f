// The kernel of a product, and the numbers of rows for which it is chosen.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/wgmma_gemm.h"
#include "measure/choices.h"

namespace quire::cuda {

// Returns the bucket of a number of rows: the smallest bucket of at least num_rows. A bucket's
// numbers share a choice. Buckets are 1, 2, 4, 8, 16, then multiples of 16 up to 128, of 64 up to
// 512, of 256 up to 2048, and of 1024.
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

// The functions that find one product's choice.
struct ChoiceSteps {
  std::function<GemmChoice()> unmeasured;  // by fixed rules
  // Runs the choice, so that its kernel is loaded: otherwise a graph's capture would load it, and a
  // step would wait. Returns false if the choice cannot compute the product.
  std::function<bool(const GemmChoice&)> runs;
  std::function<Result<GemmChoice>()> measure;
};
// Returns the choice that `choices` keeps under `key`, if it runs; otherwise measures and keeps
// one. Without measurements: the choice of the fixed rules; absent if it does not run.
Result<std::optional<GemmChoice>> find_or_measure(MeasuredChoices& choices, ChoiceKind kind,
                                                  const std::string& key, const ChoiceSteps& steps);

}  // namespace quire::cuda
