// Chooses the kernel of a product: the skinny kernel, cuBLASLt, a wgmma kernel, or the generic
// kernel. tune() chooses by measurement, now or at an earlier start; without it a fixed rule
// applies.
//
// With E4M3 weights, the skinny and the generic kernel multiply activations in their own type. The
// other kernels multiply E4M3 by E4M3, so the activations are quantized first. For weights with a
// scale per row (cuBLASLt and the wgmma kernels), they get one scale per row. For weights with a
// scale per block (the grouped kernel), they get one per row and kScaleColumns columns. If another
// operation computes the activations (GemmCall::operation), one kernel computes and quantizes them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/gemm_choice.h"
#include "cuda/gemm/dense/wgmma_gemm.h"
#include "cuda/ops/launch_gate.h"
#include "measure/choices.h"
#include "measure/rounds.h"

namespace quire::cuda {

// Computes products by cuBLASLt without measurements. The first call of a shape, which the warm-up
// makes, queries the heuristic for all row buckets, so that no later step does.
class BucketedProducts {
 public:
  // The library must outlive this.
  explicit BucketedProducts(CublasLt& cublas) : cublas_(cublas) {}

  // Enqueues. Fails with kUnimplemented if the library has no algorithm for the shape.
  Status run(CudaStream& stream, const GemmShape& shape, const GemmCall& call);

 private:
  Status choose(const GemmShape& shape);

  CublasLt& cublas_;
  std::map<std::pair<GemmShape, int64_t>, cublasLtMatmulAlgo_t> algorithms_;  // by row bucket
};

// Quantized activations are kept in a workspace of this size. A product with more activations takes
// its rows in several parts. The largest in_features of current models, 28672, gives 1170 rows.
inline constexpr int64_t kQuantizedBytes = int64_t{32} << 20;
// The number of rows of [num_rows, width] that are quantized at a time: num_rows if they fit,
// otherwise parts of nearly equal size. width is at most kQuantizedBytes.
int64_t quantized_rows(int64_t num_rows, int64_t width);

// Number of candidates that are measured, besides the variants of the skinny kernel.
struct GemmSearch {
  int max_algorithms = 0;  // of cuBLASLt, in the order of its heuristic
  size_t max_plans = 0;    // of the wgmma kernels, in the order of their estimate
};
// The search of tune().
GemmSearch gemm_search(int64_t num_rows);

// A choice and the median of its times, in microseconds.
struct GemmTiming {
  GemmChoice choice;
  double microseconds = 0;
};

class GemmRunner {
 public:
  // choices: null to measure, and keep nothing.
  static Result<std::unique_ptr<GemmRunner>> create(
      const LaunchContext& context, std::shared_ptr<MeasuredChoices> choices = nullptr);

  // Fails with kUnimplemented if cuBLASLt has no product with E4M3 weights on this device, because
  // the skinny and the generic kernel alone are slow for many rows.
  const Status& check_fp8() const { return fp8_support_; }
  // Allocates what products with E4M3 weights need, once; called before the first of them. Fails as
  // check_fp8() does.
  Status prepare_fp8();

  CublasLt& cublas() { return *cublas_; }

  // Enqueues; capturable.
  void run(const GemmCall& call);
  // Like run(), but if the product's kernel computes only `out`, the caller computes gated_out.
  // Returns whether gated_out was computed.
  bool run_gated(const GemmCall& call);
  // Chooses the kernel for calls of one shape at `num_rows` rows: the kept choice, otherwise the
  // best candidate by measurement. The calls have different weights, so that the L2 holds none of
  // them. The times include those of GemmCall::operation and GemmCall::next. Cannot be captured.
  // Overwrites outputs and residuals.
  Status tune(std::span<const GemmCall> calls, int64_t num_rows);
  // Returns the times of all candidates that succeed. If all fail, returns the first one's error.
  Result<std::vector<GemmTiming>> measure(std::span<const GemmCall> calls, int64_t num_rows,
                                          const GemmSearch& search);

 private:
  Status query_fp8() const;
  GemmRunner(const LaunchContext& context, std::unique_ptr<CublasLt> cublas,
             std::unique_ptr<WgmmaGemm> wgmma, std::shared_ptr<MeasuredChoices> choices)
      : context_(context),
        cublas_(std::move(cublas)),
        wgmma_(std::move(wgmma)),
        choices_(choices == nullptr ? std::make_shared<MeasuredChoices>() : std::move(choices)) {}

  std::vector<cublasLtMatmulAlgo_t> cublas_algorithms(const GemmCall& call, int64_t num_rows,
                                                      int max_count);
  void warn_of_generic(const GemmCall& call);
  bool can_quantize(const GemmCall& call) const;
  bool takes_wgmma(const GemmCall& call) const;
  bool takes_grouped(const GemmCall& call) const;
  GemmChoice::Kind kind_for(const GemmCall& call, const GemmChoice& choice) const;
  const GemmChoice& choice_for(const GemmCall& call);
  void quantize(const GemmCall& call, const TensorView& quantized, const TensorView& scales);
  template <typename Body>
  Status for_each_quantized_part(const GemmCall& call, const Body& body);
  Status run_wgmma(const GemmCall& call, const WgmmaPlan& plan);
  Status run_grouped(const GemmCall& call, int tile_rows);
  Status run_cublas(const GemmCall& call, const cublasLtMatmulAlgo_t& algorithm);
  GemmChoice choose_unmeasured(const GemmCall& call, int64_t num_rows);
  std::vector<GemmChoice> candidates(const GemmCall& call, const GemmSearch& search);
  Status run_product(const GemmCall& call, const GemmChoice& choice);
  Status run_choice(const GemmCall& call, const GemmChoice& choice);
  Status run_candidate(const GemmCall& call, const GemmChoice& choice);
  Result<Comparison> compare_choices(std::span<const GemmCall> calls,
                                     std::span<const GemmChoice> choices, int64_t num_rows);
  // See ChoiceSteps::runs.
  bool runs(const GemmCall& call, const GemmChoice& choice);
  // Runs a call to be timed.
  Status run_next(std::span<const GemmCall> calls, const GemmChoice& choice);
  Status run_timed(std::span<const GemmCall> calls, const GemmChoice& choice, bool is_first,
                   size_t num_runs, const Stopwatch& watch);
  Status time_round(std::span<const GemmCall> calls, std::span<const GemmChoice> choices,
                    size_t num_runs, std::span<const size_t> candidates, std::span<Trial> trials);

  LaunchContext context_;
  std::unique_ptr<CublasLt> cublas_;
  std::unique_ptr<WgmmaGemm> wgmma_;  // null: the device has no wgmma instructions
  const std::shared_ptr<MeasuredChoices> choices_;
  Status fp8_support_;  // check_fp8()
  Buffer quantized_;    // activations in E4M3, then their scales
  bool has_warned_ = false;
  std::optional<LaunchGate> gate_;  // with the first measurement
  std::vector<Stopwatch> watches_;  // by place in a round
  size_t next_call_ = 0;            // index into the calls that are measured
  std::map<std::pair<GemmShape, int64_t>, GemmChoice> chosen_;  // by shape and row bucket
};

}  // namespace quire::cuda
