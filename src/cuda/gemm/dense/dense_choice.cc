#include "cuda/gemm/dense/dense_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/numbers.h"
#include "cuda/gemm/dense/grouped_gemm.h"

namespace quire::cuda {
namespace {

// After a short round over all candidates, the finalists run more rounds. Products of many rows
// take long and their candidates differ less, so they get fewer candidates and rounds.
struct GemmEffort {
  GemmSearch search;
  size_t runs_per_round;
  Effort effort;
};
constexpr int64_t kManyRows = 512;
constexpr double kNearBest = 1.06;
constexpr GemmEffort kEffort = {
    .search = {.max_algorithms = 8, .max_plans = 4},
    .runs_per_round = 2,
    .effort = {.num_rounds = 4, .near_best = kNearBest, .max_finalists = 4}};
constexpr GemmEffort kLongEffort = {
    .search = {.max_algorithms = 4, .max_plans = 1},
    .runs_per_round = 1,
    .effort = {.num_rounds = 3, .near_best = kNearBest, .max_finalists = 2}};

constexpr const GemmEffort& effort_for(int64_t num_rows) {
  return num_rows > kManyRows ? kLongEffort : kEffort;
}

// With more rows, the generic kernel reads the weights several times per product.
constexpr int64_t kMaxGenericRows = 4;
// Up to this number of rows, activations are not quantized: the kernels for few rows need as little
// time, and do not round activations to E4M3.
constexpr int64_t kMaxExactRows = 8;
constexpr int64_t kMaxQuantizedRows = int64_t{1} << 15;
// Parts of a product's rows are rounded up to a multiple of this if that fits into the workspace,
// so that few tiles are incomplete.
constexpr int64_t kPartStep = 128;
// Upper bound of the F32 scales of quantized activations: one per row, or one per row and
// kScaleColumns columns, with both numbers rounded up; and the tile that kernels read past the end.
constexpr int64_t kMaxQuantizedScales =
    2 * kQuantizedBytes / kScaleColumns + kMaxQuantizedRows + 2 * wgmma::kMostGroupedTokens;
// Kernels with E4M3 activations require rows whose length is a multiple of 16 bytes.
constexpr int64_t kFp8Step = 16;

// A candidate replaces the best earlier candidate only if it is 2 % faster, because it may add in
// another order, and so round differently.
constexpr double kWorthwhile = 0.98;

GemmShape shape_of(const GemmCall& call) {
  GemmShape shape;
  shape.n = call.w.shape[0];
  shape.k = call.w.shape[1];
  shape.type = call.x.dtype;
  shape.weights = call.w.dtype;
  shape.out = call.out.dtype;
  shape.has_bias = call.bias.data != nullptr;
  shape.is_gated = call.gated_out.data != nullptr;
  shape.scale_rows = call.scale_rows;
  if (call.has_fp8_weights()) shape.operation = call.operation.index();
  return shape;
}

// Whether a separate kernel adds the bias: cuBLASLt only adds a bias of the output's type, and its
// E4M3 products with one scale per row are not documented to add any.
bool adds_bias_after(const GemmShape& shape) {
  return shape.has_bias && (shape.out != shape.type || shape.weights != shape.type);
}

// The part of the product that cuBLASLt computes.
GemmShape cublas_shape(GemmShape shape) {
  shape.has_bias = shape.has_bias && !adds_bias_after(shape);
  shape.is_gated = false;
  shape.operation = 0;
  return shape;
}

RowOperation part_of(RowOperation operation, int64_t first, int64_t num_rows) {
  if (auto* norm = std::get_if<ResidualNorm>(&operation)) {
    norm->residual = norm->residual.rows(first, num_rows);
    if (norm->delta.data != nullptr) norm->delta = norm->delta.rows(first, num_rows);
  } else if (auto* product = std::get_if<GatedMul>(&operation)) {
    product->gate_up = product->gate_up.rows(first, num_rows);
  }
  return operation;
}

GemmCall part_of(GemmCall call, int64_t first, int64_t num_rows) {
  call.operation = part_of(call.operation, first, num_rows);
  call.x = call.x.rows(first, num_rows);
  call.out = call.out.rows(first, num_rows);
  if (call.gated_out.data != nullptr) call.gated_out = call.gated_out.rows(first, num_rows);
  return call;
}

std::vector<GemmCall> first_rows(std::span<const GemmCall> calls, int64_t num_rows) {
  std::vector<GemmCall> narrowed;
  for (const GemmCall& call : calls) narrowed.push_back(part_of(call, 0, num_rows));
  return narrowed;
}

// Whether the kernels of this kind compute gated_out with the product.
bool multiplies_halves(GemmChoice::Kind kind) {
  return kind == GemmChoice::Kind::kWgmma || kind == GemmChoice::Kind::kGrouped;
}

std::string capability_text(const LaunchLimits& limits) {
  return fmt::format("{}.{}", limits.compute_capability / 10, limits.compute_capability % 10);
}

// Products of more rows use the algorithm for this number of rows, which is a row bucket.
constexpr int kMaxBucketedRows = 16384;

}  // namespace

Status BucketedProducts::choose(const GemmShape& shape) {
  for (const int num_rows : row_buckets(kMaxBucketedRows)) {
    const auto algorithms = cublas_.algorithms(shape, num_rows, 1);
    if (algorithms.empty()) {
      return unimplemented(fmt::format(
          "[ops] cuBLASLt has no algorithm for a product; got {} rows by {} x {} in {}, expected a "
          "product that it computes",
          num_rows, shape.n, shape.k, dtype_name(shape.type)));
    }
    algorithms_.emplace(std::pair(shape, num_rows), algorithms.front());
  }
  return {};
}

Status BucketedProducts::run(CudaStream& stream, const GemmShape& shape, const GemmCall& call) {
  const int64_t num_rows = std::min<int64_t>(call.x.shape[0], kMaxBucketedRows);
  const auto key = std::pair(shape, row_bucket(num_rows));
  if (!algorithms_.contains(key)) QUIRE_RETURN_IF_ERROR(choose(shape));
  return cublas_.run(stream, shape, call, algorithms_.at(key));
}

int64_t quantized_rows(int64_t num_rows, int64_t width) {
  const int64_t most = std::min(kQuantizedBytes / width, kMaxQuantizedRows);
  if (num_rows <= most) return num_rows;
  const int64_t even = ceil_div(num_rows, ceil_div(num_rows, most));
  const int64_t whole = round_up(even, kPartStep);
  return whole <= most ? whole : even;
}

Result<std::unique_ptr<GemmRunner>> GemmRunner::create(const LaunchContext& context,
                                                       std::shared_ptr<MeasuredChoices> choices) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CublasLt> cublas, CublasLt::open());
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<WgmmaGemm> wgmma, WgmmaGemm::create(context));
  std::unique_ptr<GemmRunner> runner(
      new GemmRunner(context, std::move(cublas), std::move(wgmma), std::move(choices)));
  runner->fp8_support_ = runner->query_fp8();
  return runner;
}

Status GemmRunner::query_fp8() const {
  const GemmShape sample = {
      .n = 1024, .k = 1024, .type = DType::kBF16, .weights = DType::kF8E4M3, .out = DType::kBF16};
  if (!cublas_->algorithms(sample, 1024, 1).empty()) return {};
  const size_t version = cublas_->version();
  return unimplemented(
      fmt::format("[ops] this GPU cannot compute with FP8 weights; got compute capability {} and "
                  "cuBLASLt {}.{}.{}, expected 9.0 and at least 12.9; use `device` cpu, or the "
                  "BF16 checkpoint of the model",
                  capability_text(context_.stream->limits()), version / 10000, version / 100 % 100,
                  version % 100));
}

Status GemmRunner::prepare_fp8() {
  if (quantized_.num_bytes() > 0) return {};
  QUIRE_RETURN_IF_ERROR(check_fp8());
  const auto scale_bytes = static_cast<size_t>(kMaxQuantizedScales) * sizeof(float);
  QUIRE_ASSIGN_OR_RETURN(quantized_,
                         device_memory(static_cast<size_t>(kQuantizedBytes) + scale_bytes));
  return {};
}

// Empty if cuBLASLt cannot compute the product. Quantized activations need prepare_fp8().
std::vector<cublasLtMatmulAlgo_t> GemmRunner::cublas_algorithms(const GemmCall& call,
                                                                int64_t num_rows, int max_count) {
  if (call.has_fp8_weights()) {
    const int64_t k = call.w.shape[1];
    if (quantized_.num_bytes() == 0 || call.scale_rows > 0 || num_rows <= kMaxExactRows ||
        call.x.dtype == DType::kF32 || k % kFp8Step != 0 || k > kQuantizedBytes) {
      return {};
    }
    num_rows = quantized_rows(num_rows, k);
  }
  return cublas_->algorithms(cublas_shape(shape_of(call)), num_rows, max_count);
}

void GemmRunner::warn_of_generic(const GemmCall& call) {
  if (has_warned_ || !call.has_fp8_weights() || call.x.shape[0] <= kMaxSkinnyRows) return;
  has_warned_ = true;
  log_warning(
      "[ops] products of many rows with FP8 weights run on the generic kernel, which is slow; "
      "no other kernel takes {} activations and weights of {} x {}",
      dtype_name(call.x.dtype), call.w.shape[0], call.w.shape[1]);
}

const GemmChoice& GemmRunner::choice_for(const GemmCall& call) {
  const auto key = std::pair(shape_of(call), row_bucket(call.x.shape[0]));
  const auto found = chosen_.find(key);
  if (found != chosen_.end()) return found->second;
  return chosen_.emplace(key, choose_unmeasured(call, key.second)).first->second;
}

void GemmRunner::run(const GemmCall& call) {
  if (call.x.shape[0] == 0) return;
  Status status = run_choice(call, choice_for(call));
  if (!status.ok()) context_.stream->record_error(std::move(status));
}

bool GemmRunner::run_gated(const GemmCall& call) {
  if (call.x.shape[0] == 0) return false;
  const GemmChoice& choice = choice_for(call);
  Status status = run_product(call, choice);
  if (!status.ok()) context_.stream->record_error(std::move(status));
  return call.gated_out.data != nullptr && multiplies_halves(kind_for(call, choice));
}

GemmChoice GemmRunner::choose_unmeasured(const GemmCall& call, int64_t num_rows) {
  // Measured on an H200 (bench/results/h200/gemm.md).
  constexpr int64_t kSmallMatrix = int64_t{20} << 20;
  if (num_rows == 1) return {.kind = GemmChoice::Kind::kGeneric};
  const bool is_small = call.has_fp8_weights() || call.w.shape.num_elements() <= kSmallMatrix;
  if (skinny_takes(call) && is_small) {
    return {.kind = GemmChoice::Kind::kSkinny, .skinny_variant = num_skinny_variants() - 1};
  }
  if (call.scale_rows > 0 && takes_grouped(call)) {
    const bool has_few_rows = num_rows <= 2 * wgmma::kGroupedTokens[0];
    return {.kind = GemmChoice::Kind::kGrouped,
            .tile_rows = has_few_rows ? wgmma::kGroupedTokens[0] : wgmma::kMostGroupedTokens};
  }
  const auto algorithms = cublas_algorithms(call, num_rows, 1);
  if (algorithms.empty()) {
    warn_of_generic(call);
    return {.kind = GemmChoice::Kind::kGeneric};
  }
  return {.kind = GemmChoice::Kind::kCublasLt, .algorithm = algorithms.front()};
}

GemmSearch gemm_search(int64_t num_rows) {
  return effort_for(num_rows).search;
}

std::vector<GemmChoice> GemmRunner::candidates(const GemmCall& call, const GemmSearch& search) {
  const int64_t num_rows = call.x.shape[0];
  std::vector<GemmChoice> all;
  const auto add = [&](const GemmChoice& choice) { all.push_back(choice); };
  const auto add_wgmma = [&] {
    if (!takes_wgmma(call)) return;
    for (const WgmmaPlan& plan : wgmma_->plans(call, search.max_plans)) {
      add({.kind = GemmChoice::Kind::kWgmma, .wgmma = plan});
    }
  };
  // The fused kernels come first, so that they win a tie: a step of a few hundred rows runs at the
  // device's power limit, and they save the memory traffic of `out`.
  const bool is_gated = call.gated_out.data != nullptr;
  if (is_gated) add_wgmma();
  if (skinny_takes(call)) {
    for (int variant = 0; variant < num_skinny_variants(); ++variant) {
      add({.kind = GemmChoice::Kind::kSkinny, .skinny_variant = variant});
    }
  }
  for (const auto& algorithm : cublas_algorithms(call, num_rows, search.max_algorithms)) {
    add({.kind = GemmChoice::Kind::kCublasLt, .algorithm = algorithm});
  }
  // With scales per row, the wgmma kernels are faster.
  if (takes_grouped(call) && call.scale_rows > 0) {
    for (const int tile_rows : wgmma::kGroupedTokens) {
      add({.kind = GemmChoice::Kind::kGrouped, .tile_rows = tile_rows});
    }
  }
  if (!is_gated) add_wgmma();
  if (all.empty()) warn_of_generic(call);
  if (num_rows <= kMaxGenericRows || all.empty()) add({.kind = GemmChoice::Kind::kGeneric});
  return all;
}

// A bucket's choice may have been made for more rows and other addresses than this call has.
GemmChoice::Kind GemmRunner::kind_for(const GemmCall& call, const GemmChoice& choice) const {
  using Kind = GemmChoice::Kind;
  const bool is_taken = choice.kind == Kind::kWgmma     ? takes_wgmma(call)
                        : choice.kind == Kind::kGrouped ? takes_grouped(call)
                        : choice.kind == Kind::kSkinny  ? skinny_takes(call)
                                                        : true;
  return is_taken ? choice.kind : Kind::kGeneric;
}

// Computes gated_out too, if multiplies_halves().
Status GemmRunner::run_product(const GemmCall& call, const GemmChoice& choice) {
  using Kind = GemmChoice::Kind;
  const Kind kind = kind_for(call, choice);
  const bool quantizes =
      call.has_fp8_weights() && (kind == Kind::kCublasLt || multiplies_halves(kind));
  if (!quantizes) run_row_operation(context_, call.operation, call.x);
  switch (kind) {
    case Kind::kWgmma:
      return run_wgmma(call, choice.wgmma);
    case Kind::kGrouped:
      return run_grouped(call, choice.tile_rows);
    case Kind::kSkinny:
      run_skinny_gemm(context_, call, choice.skinny_variant);
      return {};
    case Kind::kCublasLt:
      QUIRE_RETURN_IF_ERROR(run_cublas(call, choice.algorithm));
      if (adds_bias_after(shape_of(call))) run_add_bias(context_, call.bias, call.out);
      return {};
    case Kind::kGeneric:
      run_generic_gemm(context_, call);
      return {};
  }
  return {};
}

Status GemmRunner::run_choice(const GemmCall& call, const GemmChoice& choice) {
  QUIRE_RETURN_IF_ERROR(run_product(call, choice));
  if (call.gated_out.data != nullptr && !multiplies_halves(kind_for(call, choice))) {
    run_gated_mul(context_, Activation::kSilu, call.out, call.gated_out);
  }
  return {};
}

// Runs a choice to be timed. If a product follows, also runs its choice.
Status GemmRunner::run_candidate(const GemmCall& call, const GemmChoice& choice) {
  if (call.next == nullptr) return run_choice(call, choice);
  QUIRE_RETURN_IF_ERROR(run_product(call, choice));
  GemmCall next = part_of(*call.next, 0, call.x.shape[0]);
  if (!multiplies_halves(kind_for(call, choice))) {
    next.operation = GatedMul{Activation::kSilu, call.out};
  }
  return run_choice(next, choice_for(next));
}

// Whether Hopper's kernels may multiply the call's activations in E4M3.
bool GemmRunner::can_quantize(const GemmCall& call) const {
  const int64_t k = call.w.shape[1];
  return call.has_fp8_weights() && wgmma_ != nullptr && quantized_.num_bytes() > 0 &&
         call.x.dtype != DType::kF32 && call.x.shape[0] > kMaxExactRows && k % kFp8Step == 0 &&
         k <= kQuantizedBytes;
}

bool GemmRunner::takes_wgmma(const GemmCall& call) const {
  return wgmma_ != nullptr && WgmmaGemm::takes(call) &&
         (!call.has_fp8_weights() || can_quantize(call));
}

// The gated product needs groups of 8 rows of gate and of up.
bool GemmRunner::takes_grouped(const GemmCall& call) const {
  const bool is_gated = call.gated_out.data != nullptr;
  return can_quantize(call) && call.w.shape[0] % (is_gated ? 16 : 8) == 0 &&
         !(is_gated && call.bias.data != nullptr) &&
         is_aligned({call.w.data, call.x.data, call.out.data, call.gated_out.data}, 16);
}

// Quantizes x, or the rows that the operation makes, with the scales that a product with these
// weights needs.
void GemmRunner::quantize(const GemmCall& call, const TensorView& quantized,
                          const TensorView& scales) {
  if (call.scale_rows == 0) {
    return run_quantize_rows(context_, call.x, quantized, scales, call.operation);
  }
  run_quantize_blocks(context_, call.x, quantized, scales, call.operation);
}

// Splits the rows into parts whose quantized activations fit into the workspace. Quantizes the
// activations of each part, then calls body(part, quantized, scales).
template <typename Body>
Status GemmRunner::for_each_quantized_part(const GemmCall& call, const Body& body) {
  const int64_t num_rows = call.x.shape[0];
  const int64_t width = call.x.shape[1];
  const int64_t step = quantized_rows(num_rows, width);
  auto* const scales_start = static_cast<std::byte*>(quantized_.data()) + kQuantizedBytes;
  for (int64_t first = 0; first < num_rows; first += step) {
    const int64_t count = std::min(step, num_rows - first);
    const GemmCall part = part_of(call, first, count);
    const TensorView quantized = {quantized_.data(), DType::kF8E4M3, {count, width}};
    TensorView scales = {scales_start, DType::kF32, {count}};
    // The grouped kernel reads a row of scales by pairs if its length is even.
    if (call.scale_rows > 0) scales.shape = {num_scale_columns(width), round_up(count, 2)};
    quantize(part, quantized, scales);
    QUIRE_RETURN_IF_ERROR(body(part, quantized, scales));
  }
  return {};
}

Status GemmRunner::run_wgmma(const GemmCall& call, const WgmmaPlan& plan) {
  if (!call.has_fp8_weights()) return wgmma_->run(call, plan);
  return for_each_quantized_part(
      call, [&](GemmCall part, const TensorView& quantized, const TensorView& scales) {
        part.x = quantized;
        return wgmma_->run(part, plan, scales.as<const float>());
      });
}

Status GemmRunner::run_grouped(const GemmCall& call, int tile_rows) {
  return for_each_quantized_part(
      call, [&](const GemmCall& part, const TensorView& quantized, const TensorView& scales) {
        const int64_t width = quantized.shape[1];
        const bool is_gated = part.gated_out.data != nullptr;
        return run_grouped_gemm(context_, context_.stream->limits().num_sms,
                                {.w = {call.w.data, call.w.dtype, {1, call.w.shape[0], width}},
                                 .x = quantized,
                                 .out = is_gated ? part.gated_out : part.out,
                                 .type = call.x.dtype,
                                 .bias = call.bias,
                                 .is_gated = is_gated,
                                 .tile_rows = tile_rows,
                                 .w_scales = call.w_scales,
                                 .x_scales = scales,
                                 .scale_rows = call.scale_rows});
      });
}

Status GemmRunner::run_cublas(const GemmCall& call, const cublasLtMatmulAlgo_t& algorithm) {
  const GemmShape shape = cublas_shape(shape_of(call));
  if (!call.has_fp8_weights()) return cublas_->run(*context_.stream, shape, call, algorithm);
  return for_each_quantized_part(
      call, [&](GemmCall part, const TensorView& quantized, const TensorView& scales) {
        part.x = quantized;
        return cublas_->run(*context_.stream, shape, part, algorithm, scales.data);
      });
}

// Takes the calls in turn, so that the L2 does not hold the weights of the next one.
Status GemmRunner::run_next(std::span<const GemmCall> calls, const GemmChoice& choice) {
  return run_candidate(calls[next_call_++ % calls.size()], choice);
}

// Enqueues num_runs runs between the watch's start and end. Before the first runs of a candidate,
// one untimed run lets CUDA load its kernel.
Status GemmRunner::run_timed(std::span<const GemmCall> calls, const GemmChoice& choice,
                             bool is_first, size_t num_runs, const Stopwatch& watch) {
  if (is_first) QUIRE_RETURN_IF_ERROR(run_next(calls, choice));
  const auto enqueue = [&]() -> Status {
    watch.start(*context_.stream);
    for (size_t i = 0; i < num_runs; ++i) {
      run_empty_kernel(context_);  // a model has another kernel between two products
      QUIRE_RETURN_IF_ERROR(run_next(calls, choice));
    }
    watch.end(*context_.stream);
    return {};
  };
  QUIRE_RETURN_IF_ERROR(gate_->hold(*context_.stream, enqueue));
  return context_.stream->take_error();
}

// The host waits only once per round, so that the device is not idle between candidates.
Status GemmRunner::time_round(std::span<const GemmCall> calls, std::span<const GemmChoice> choices,
                              size_t num_runs, std::span<const size_t> candidates,
                              std::span<Trial> trials) {
  if (!gate_) {
    QUIRE_ASSIGN_OR_RETURN(gate_, LaunchGate::create());
  }
  while (watches_.size() < candidates.size()) {
    QUIRE_ASSIGN_OR_RETURN(Stopwatch watch, Stopwatch::create());
    watches_.push_back(std::move(watch));
  }
  for (size_t place = 0; place < candidates.size(); ++place) {
    const size_t i = candidates[place];
    trials[i].error =
        run_timed(calls, choices[i], trials[i].times.empty(), num_runs, watches_[place]);
  }
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  for (size_t place = 0; place < candidates.size(); ++place) {
    Trial& trial = trials[candidates[place]];
    if (!trial.error.ok()) continue;
    QUIRE_ASSIGN_OR_RETURN(const double microseconds, watches_[place].elapsed());
    trial.times.push_back(microseconds / static_cast<double>(num_runs));
  }
  return {};
}

Result<Comparison> GemmRunner::compare_choices(std::span<const GemmCall> calls,
                                               std::span<const GemmChoice> choices,
                                               int64_t num_rows) {
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  const GemmEffort& effort = effort_for(num_rows);
  QUIRE_ASSIGN_OR_RETURN(Comparison compared,
                         compare(choices.size(), effort.effort,
                                 [&](std::span<const size_t> candidates, std::span<Trial> trials) {
                                   return time_round(calls, choices, effort.runs_per_round,
                                                     candidates, trials);
                                 }));
  if (compared.finalists.empty()) return compared.trials.front().error;
  return compared;
}

Result<std::vector<GemmTiming>> GemmRunner::measure(std::span<const GemmCall> calls,
                                                    int64_t num_rows, const GemmSearch& search) {
  const std::vector<GemmCall> narrowed = first_rows(calls, num_rows);
  const std::vector<GemmChoice> all = candidates(narrowed.front(), search);
  QUIRE_ASSIGN_OR_RETURN(const Comparison compared, compare_choices(narrowed, all, num_rows));
  std::vector<GemmTiming> timings;
  for (size_t i = 0; i < all.size(); ++i) {
    const Trial& trial = compared.trials[i];
    if (trial.error.ok()) timings.push_back({all[i], trial.median()});
  }
  return timings;
}

bool GemmRunner::runs(const GemmCall& call, const GemmChoice& choice) {
  if (kind_for(call, choice) != choice.kind) return false;
  if (choice.kind == GemmChoice::Kind::kWgmma && !wgmma_->fits(call, choice.wgmma)) return false;
  const bool has_run = run_candidate(call, choice).ok();
  // Also takes the error of a failed run, which would otherwise exclude the next candidate.
  return context_.stream->take_error().ok() && has_run;
}

Status GemmRunner::tune(std::span<const GemmCall> calls, int64_t num_rows) {
  const std::vector<GemmCall> narrowed = first_rows(calls, num_rows);
  const GemmCall& call = narrowed.front();
  const GemmShape shape = shape_of(call);
  const int64_t bucket = row_bucket(num_rows);
  const ChoiceSteps steps = {
      .unmeasured = [&] { return choose_unmeasured(call, num_rows); },
      .runs = [&](const GemmChoice& choice) { return runs(call, choice); },
      .measure = [&]() -> Result<GemmChoice> {
        const std::vector<GemmChoice> all = candidates(call, gemm_search(num_rows));
        QUIRE_ASSIGN_OR_RETURN(const Comparison compared, compare_choices(narrowed, all, num_rows));
        return all[compared.fastest(kWorthwhile)];
      }};
  QUIRE_ASSIGN_OR_RETURN(const std::optional<GemmChoice> choice,
                         find_or_measure(*choices_, ChoiceKind::kProduct,
                                         choice_key(shape, bucket, cublas_->version()), steps));
  if (choice) chosen_.insert_or_assign({shape, bucket}, *choice);
  return {};
}

}  // namespace quire::cuda
