// Which kernel computes a product: the skinny one, cuBLASLt's many, or the one for anything. Known
// by measurement where tune() ran, and by a rule before.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/ops/cublas_lt.h"

namespace quire::cuda {

// Numbers of rows that share a choice: the smallest of the steps 1, 2, 4, 8, 16, then multiples of
// 16 to 128, of 64 to 512, of 256 to 2048, of 1024, that is not below num_rows.
int64_t row_bucket(int64_t num_rows);
// All that steps of up to max_rows fall into; of the last one only max_rows of it.
std::vector<int> row_buckets(int max_rows);

struct GemmChoice {
  enum class Kind { kSkinny, kCublasLt, kAny };
  Kind kind = Kind::kAny;
  int skinny_variant = 0;
  cublasLtMatmulAlgo_t algorithm = {};
};

// A choice and what it took.
struct GemmTiming {
  GemmChoice choice;
  double microseconds = 0;
};

class GemmRunner {
 public:
  static Result<std::unique_ptr<GemmRunner>> create(const LaunchContext& context);

  // Enqueues; capturable.
  void run(const GemmCall& call);
  // Measures all ways to compute calls of one shape (other weights each, so that the L2 holds none
  // of them) at `num_rows` rows, and remembers the best. Not while capturing. Overwrites outputs.
  Status tune(std::span<const GemmCall> calls, int64_t num_rows);
  // All of them that work: at least one, else the first one's error.
  Result<std::vector<GemmTiming>> measure(std::span<const GemmCall> calls, int64_t num_rows);

 private:
  GemmRunner(const LaunchContext& context, std::unique_ptr<CublasLt> cublas)
      : context_(context), cublas_(std::move(cublas)) {}

  GemmChoice choose_unmeasured(const GemmCall& call, int64_t num_rows);
  std::vector<GemmChoice> choices(const GemmCall& call, int64_t num_rows);
  Status run_choice(const GemmCall& call, const GemmChoice& choice);
  Result<double> time_choice(std::span<const GemmCall> calls, const GemmChoice& choice);

  LaunchContext context_;
  std::unique_ptr<CublasLt> cublas_;
  std::map<std::pair<GemmShape, int64_t>, GemmChoice> chosen_;  // by shape and row bucket
};

}  // namespace quire::cuda
