#include "cuda/ops/gemm_runner.h"

#include <algorithm>

#include "cuda/base/stopwatch.h"

namespace quire::cuda {
namespace {

// Products of many rows take long: fewer ways are tried, and each fewer times.
constexpr int64_t kManyRows = 512;
constexpr int kMaxAlgorithms = 8;
constexpr int kMaxLongAlgorithms = 4;
// Above it the kernel for anything reads the weights again and again.
constexpr int64_t kMaxAnyRows = 4;
// A way that is not clearly better than an earlier one is not worth another order of sums.
constexpr double kWorthwhile = 0.98;

GemmShape shape_of(const GemmCall& call) {
  GemmShape shape;
  shape.n = call.w.shape[0];
  shape.k = call.w.shape[1];
  shape.type = call.w.dtype;
  shape.out = call.out.dtype;
  shape.has_bias = call.bias.data != nullptr;
  return shape;
}

// The library adds a bias of the output's type only.
bool adds_bias_after(const GemmShape& shape) {
  return shape.has_bias && shape.out != shape.type;
}

GemmShape without_foreign_bias(GemmShape shape) {
  shape.has_bias = shape.has_bias && !adds_bias_after(shape);
  return shape;
}

GemmCall first_rows(GemmCall call, int64_t num_rows) {
  call.x = call.x.rows(0, num_rows);
  call.out = call.out.rows(0, num_rows);
  return call;
}

}  // namespace

int64_t row_bucket(int64_t num_rows) {
  for (const int64_t small : {1, 2, 4, 8, 16}) {
    if (num_rows <= small) return small;
  }
  const int64_t step = num_rows <= 128 ? 16 : num_rows <= 512 ? 64 : num_rows <= 2048 ? 256 : 1024;
  return (num_rows + step - 1) / step * step;
}

std::vector<int> row_buckets(int max_rows) {
  std::vector<int> buckets;
  for (int64_t rows = 1; rows < max_rows; rows = row_bucket(rows + 1)) {
    buckets.push_back(static_cast<int>(rows));
  }
  buckets.push_back(max_rows);
  return buckets;
}

Result<std::unique_ptr<GemmRunner>> GemmRunner::create(const LaunchContext& context) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CublasLt> cublas, CublasLt::open());
  return std::unique_ptr<GemmRunner>(new GemmRunner(context, std::move(cublas)));
}

void GemmRunner::run(const GemmCall& call) {
  const int64_t num_rows = call.x.shape[0];
  if (num_rows == 0) return;
  const auto key = std::pair(shape_of(call), row_bucket(num_rows));
  auto found = chosen_.find(key);
  if (found == chosen_.end()) {
    found = chosen_.emplace(key, choose_unmeasured(call, key.second)).first;
  }
  Status status = run_choice(call, found->second);
  if (!status.ok()) context_.stream->note(std::move(status));
}

GemmChoice GemmRunner::choose_unmeasured(const GemmCall& call, int64_t num_rows) {
  // As measured on an H200 (bench/results/h200/gemm.md).
  constexpr int64_t kSmallMatrix = int64_t{20} << 20;
  if (num_rows == 1) return {.kind = GemmChoice::Kind::kAny};
  if (skinny_takes(call) && call.w.shape.num_elements() <= kSmallMatrix) {
    return {.kind = GemmChoice::Kind::kSkinny, .skinny_variant = num_skinny_variants() - 1};
  }
  const auto algorithms = cublas_->algorithms(without_foreign_bias(shape_of(call)), num_rows, 1);
  if (algorithms.empty()) return {.kind = GemmChoice::Kind::kAny};
  return {.kind = GemmChoice::Kind::kCublasLt, .algorithm = algorithms.front()};
}

std::vector<GemmChoice> GemmRunner::choices(const GemmCall& call, int64_t num_rows) {
  std::vector<GemmChoice> all;
  if (skinny_takes(call)) {
    for (int variant = 0; variant < num_skinny_variants(); ++variant) {
      all.push_back({.kind = GemmChoice::Kind::kSkinny, .skinny_variant = variant});
    }
  }
  const int count = num_rows > kManyRows ? kMaxLongAlgorithms : kMaxAlgorithms;
  for (const auto& algorithm :
       cublas_->algorithms(without_foreign_bias(shape_of(call)), num_rows, count)) {
    all.push_back({.kind = GemmChoice::Kind::kCublasLt, .algorithm = algorithm});
  }
  if (num_rows <= kMaxAnyRows || all.empty()) all.push_back({.kind = GemmChoice::Kind::kAny});
  return all;
}

Status GemmRunner::run_choice(const GemmCall& call, const GemmChoice& choice) {
  // A bucket's choice may be for more rows and addresses than this call has.
  if (choice.kind == GemmChoice::Kind::kSkinny && skinny_takes(call)) {
    run_skinny_gemm(context_, call, choice.skinny_variant);
    return {};
  }
  if (choice.kind != GemmChoice::Kind::kCublasLt) {
    run_any_gemm(context_, call);
    return {};
  }
  const GemmShape shape = shape_of(call);
  QUIRE_RETURN_IF_ERROR(
      cublas_->run(*context_.stream, without_foreign_bias(shape), call, choice.algorithm));
  if (adds_bias_after(shape)) run_add_bias(context_, call.bias, call.out);
  return {};
}

Result<double> GemmRunner::time_choice(std::span<const GemmCall> calls, const GemmChoice& choice) {
  const bool is_long = calls.front().x.shape[0] > kManyRows;
  const size_t num_runs = is_long ? 2 : std::max(calls.size(), size_t{6});
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch watch, Stopwatch::create());
  run_pause(context_);
  QUIRE_RETURN_IF_ERROR(run_choice(calls.back(), choice));
  watch.start(*context_.stream);
  for (size_t i = 0; i < num_runs; ++i) {
    run_pause(context_);  // no product of a model follows another
    QUIRE_RETURN_IF_ERROR(run_choice(calls[i % calls.size()], choice));
  }
  QUIRE_ASSIGN_OR_RETURN(const double microseconds, watch.stop(*context_.stream));
  return microseconds / static_cast<double>(num_runs);
}

Result<std::vector<GemmTiming>> GemmRunner::measure(std::span<const GemmCall> calls,
                                                    int64_t num_rows) {
  std::vector<GemmCall> narrowed;
  for (const GemmCall& call : calls) narrowed.push_back(first_rows(call, num_rows));
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  std::vector<GemmTiming> timings;
  Status first_error;
  for (const GemmChoice& choice : choices(narrowed.front(), num_rows)) {
    const Result<double> microseconds = time_choice(narrowed, choice);
    if (microseconds.ok()) {
      timings.push_back({choice, *microseconds});
    } else if (first_error.ok()) {
      first_error = microseconds.status();
    }
  }
  if (timings.empty()) return first_error;
  return timings;
}

Status GemmRunner::tune(std::span<const GemmCall> calls, int64_t num_rows) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<GemmTiming> timings, measure(calls, num_rows));
  const GemmTiming* best = &timings.front();
  for (const GemmTiming& timing : timings) {
    if (timing.microseconds < kWorthwhile * best->microseconds) best = &timing;
  }
  chosen_.insert_or_assign({shape_of(calls.front()), row_bucket(num_rows)}, best->choice);
  return {};
}

}  // namespace quire::cuda
