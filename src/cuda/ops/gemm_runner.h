// Chooses the kernel of a product: the skinny one, cuBLASLt's, the wgmma kernels, or the one for
// anything. The choice is measured by tune(), and follows a rule until then.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/base/stopwatch.h"
#include "cuda/ops/cublas_lt.h"
#include "cuda/ops/wgmma_gemm.h"

namespace quire::cuda {

// Numbers of rows that share a choice: the smallest of the steps 1, 2, 4, 8, 16, then multiples of
// 16 to 128, of 64 to 512, of 256 to 2048, of 1024, that is not below num_rows.
int64_t row_bucket(int64_t num_rows);
// All that steps of up to max_rows fall into; of the last one only max_rows of it.
std::vector<int> row_buckets(int max_rows);

struct GemmChoice {
  enum class Kind { kSkinny, kCublasLt, kWgmma, kAny };
  Kind kind = Kind::kAny;
  int skinny_variant = 0;
  cublasLtMatmulAlgo_t algorithm = {};
  WgmmaPlan wgmma = {};
};

// How many ways to compute a product are measured, besides the skinny kernel's variants.
struct GemmSearch {
  int max_algorithms = 0;  // of cuBLASLt, in the order of its heuristic
  size_t max_plans = 0;    // of the wgmma kernels, in the order of their estimate
};
// The search of tune().
GemmSearch gemm_search(int64_t num_rows);

// A choice and the median of its times.
struct GemmTiming {
  GemmChoice choice;
  double microseconds = 0;
  bool is_finalist = false;  // measured several times, in turn with other finalists
};

class GemmRunner {
 public:
  static Result<std::unique_ptr<GemmRunner>> create(const LaunchContext& context);

  // Enqueues; capturable.
  void run(const GemmCall& call);
  // Measures ways to compute calls of one shape at `num_rows` rows, and remembers the best. The
  // calls have different weights, so that the L2 holds none of them. Not while capturing.
  // Overwrites outputs.
  Status tune(std::span<const GemmCall> calls, int64_t num_rows);
  // The times of all candidates that work: at least one, otherwise the first one's error.
  Result<std::vector<GemmTiming>> measure(std::span<const GemmCall> calls, int64_t num_rows,
                                          const GemmSearch& search);

 private:
  // A way to compute a product, and the times it took.
  struct Candidate {
    GemmChoice choice;
    std::vector<double> microseconds;
    Status error;

    double median() const;
  };

  GemmRunner(const LaunchContext& context, std::unique_ptr<CublasLt> cublas,
             std::unique_ptr<WgmmaGemm> wgmma)
      : context_(context), cublas_(std::move(cublas)), wgmma_(std::move(wgmma)) {}

  GemmChoice choose_unmeasured(const GemmCall& call, int64_t num_rows);
  std::vector<Candidate> candidates(const GemmCall& call, const GemmSearch& search);
  Status run_choice(const GemmCall& call, const GemmChoice& choice);
  Status run_timed(std::span<const GemmCall> calls, const Candidate& candidate, size_t num_runs,
                   const Stopwatch& watch);
  Status time_round(std::span<const GemmCall> calls, std::span<Candidate* const> candidates,
                    size_t num_runs);

  LaunchContext context_;
  std::unique_ptr<CublasLt> cublas_;
  std::unique_ptr<WgmmaGemm> wgmma_;  // null: the device has no such instructions
  std::vector<Stopwatch> watches_;    // of a round
  size_t next_call_ = 0;              // of those that are measured
  std::map<std::pair<GemmShape, int64_t>, GemmChoice> chosen_;  // by shape and row bucket
};

}  // namespace quire::cuda
