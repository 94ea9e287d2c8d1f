#include "cuda/gemm/heads/heads_choice.h"

#include <optional>
#include <string>

#include "base/check.h"
#include "cuda/ops/launch_gate.h"
#include "measure/rounds.h"

namespace quire::cuda {
namespace {

constexpr int kMaxAlgorithms = 4;
constexpr int kNumRounds = 5;

GemmShape shape_of(const PerHeadGemmCall& call) {
  GemmShape shape;
  shape.n = call.w.shape[1];
  shape.k = call.w.shape[2];
  shape.type = shape.weights = shape.out = call.x.dtype;
  shape.num_heads = call.w.shape[0];
  shape.x_width = call.x.shape[2];
  shape.out_width = call.out.shape[2];
  return shape;
}

// If the output has no gaps, the matrices of all heads are one matrix.
GemmShape shared_shape_of(const PerHeadGemmCall& call, bool transposed) {
  const int64_t num_heads = call.w.shape[0];
  GemmShape shape;
  shape.type = shape.weights = shape.out = call.x.dtype;
  shape.k = call.x.shape[1];
  shape.n = call.w.shape[transposed ? 2 : 1];
  if (!transposed && call.out.shape[2] == shape.n) {
    shape.n *= num_heads;
    return shape;
  }
  shape.num_heads = num_heads;
  shape.out_width = call.out.shape[2];
  shape.shares_x = true;
  shape.transposes_w = transposed;
  return shape;
}

PerHeadGemmCall first_rows(PerHeadGemmCall call, int64_t num_rows) {
  call.x = call.x.rows(0, num_rows);
  call.out = call.out.rows(0, num_rows);
  return call;
}

}  // namespace

Result<std::unique_ptr<CudaPerHeadLinear>> CudaPerHeadLinear::load(
    std::span<const TensorView> matrices, DType dtype, WeightUpload& upload) {
  QUIRE_CHECK(!matrices.empty(), "[ops] make_per_head_linear: there are no heads");
  std::vector<WeightView> rows;
  for (const TensorView& matrix : matrices) {
    QUIRE_CHECK(matrix.shape == matrices.front().shape,
                "[ops] make_per_head_linear: the heads differ in shape");
    rows.emplace_back(matrix);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaLinear> linear,
                         CudaLinear::load({.numbers = StoredMatrices{rows}}, dtype, upload));
  return std::unique_ptr<CudaPerHeadLinear>(
      new CudaPerHeadLinear(static_cast<int>(matrices.size()), std::move(linear)));
}

TensorView CudaPerHeadLinear::weights() const {
  const TensorView& rows = rows_->weights();
  return {rows.data, rows.dtype, {num_heads_, out_features(), in_features()}};
}

std::vector<GemmChoice> PerHeadGemm::candidates(const PerHeadGemmCall& call, int64_t num_rows,
                                                int max_algorithms) {
  std::vector<GemmChoice> all;
  if (skinny_takes(call)) all.push_back({.kind = GemmChoice::Kind::kSkinny});
  for (const auto& algorithm : cublas_.algorithms(shape_of(call), num_rows, max_algorithms)) {
    all.push_back({.kind = GemmChoice::Kind::kCublasLt, .algorithm = algorithm});
  }
  if (all.empty()) all.push_back({.kind = GemmChoice::Kind::kGeneric});
  return all;
}

void PerHeadGemm::run(const PerHeadGemmCall& call) {
  const int64_t num_rows = call.x.shape[0];
  if (num_rows == 0) return;
  const auto key = std::pair(shape_of(call), row_bucket(num_rows));
  auto found = chosen_.find(key);
  if (found == chosen_.end()) {
    found = chosen_.emplace(key, candidates(call, key.second, 1).front()).first;
  }
  Status status = run_choice(call, found->second);
  if (!status.ok()) context_.stream->record_error(std::move(status));
}

void PerHeadGemm::run_shared(const PerHeadGemmCall& call, bool transposed) {
  if (call.x.shape[0] == 0) return;
  const GemmCall plain = {.x = call.x, .w = call.w, .bias = {}, .out = call.out};
  Status status = shared_.run(*context_.stream, shared_shape_of(call, transposed), plain);
  if (!status.ok()) context_.stream->record_error(std::move(status));
}

Status PerHeadGemm::run_choice(const PerHeadGemmCall& call, const GemmChoice& choice) {
  if (choice.kind == GemmChoice::Kind::kCublasLt) {
    const GemmCall plain = {.x = call.x, .w = call.w, .bias = {}, .out = call.out};
    return cublas_.run(*context_.stream, shape_of(call), plain, choice.algorithm);
  }
  // The choice may have been made for other addresses than this call has.
  if (choice.kind == GemmChoice::Kind::kSkinny && skinny_takes(call)) {
    run_skinny_gemm(context_, call);
  } else {
    run_generic_gemm(context_, call);
  }
  return {};
}

Result<GemmChoice> PerHeadGemm::measure(std::span<const PerHeadGemmCall> calls, int64_t num_rows) {
  QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch watch, Stopwatch::create());
  QUIRE_ASSIGN_OR_RETURN(LaunchGate gate, LaunchGate::create());
  const std::vector<GemmChoice> all = candidates(calls.front(), num_rows, kMaxAlgorithms);
  const auto time = [&](size_t i) -> Result<double> {
    QUIRE_RETURN_IF_ERROR(run_choice(calls.front(), all[i]));  // CUDA loads the kernel
    const auto enqueue = [&]() -> Status {
      watch.start(*context_.stream);
      for (const PerHeadGemmCall& call : calls) {
        run_empty_kernel(context_);  // a model has another kernel between two products
        QUIRE_RETURN_IF_ERROR(run_choice(call, all[i]));
      }
      watch.end(*context_.stream);
      return {};
    };
    QUIRE_RETURN_IF_ERROR(gate.hold(*context_.stream, enqueue));
    QUIRE_RETURN_IF_ERROR(context_.stream->synchronize());
    return watch.elapsed();
  };
  // Leaves out the algorithms that cuBLASLt refuses when they run.
  QUIRE_ASSIGN_OR_RETURN(const Comparison compared,
                         compare(all.size(), {.num_rounds = kNumRounds}, one_by_one(time)));
  if (compared.finalists.empty()) return compared.trials.front().error;
  return all[compared.fastest()];
}

Status PerHeadGemm::tune(std::span<const PerHeadGemmCall> calls, int64_t num_rows) {
  std::vector<PerHeadGemmCall> narrowed;
  for (const PerHeadGemmCall& call : calls) narrowed.push_back(first_rows(call, num_rows));
  const PerHeadGemmCall& call = narrowed.front();
  const GemmShape shape = shape_of(call);
  const int64_t bucket = row_bucket(num_rows);
  const auto runs = [&](const GemmChoice& choice) {
    return run_choice(call, choice).ok() && context_.stream->take_error().ok();
  };
  const ChoiceSteps steps = {.unmeasured = [&] { return candidates(call, num_rows, 1).front(); },
                             .runs = runs,
                             .measure = [&] { return measure(narrowed, num_rows); }};
  QUIRE_ASSIGN_OR_RETURN(const std::optional<GemmChoice> choice,
                         find_or_measure(*choices_, ChoiceKind::kHeadProduct,
                                         choice_key(shape, bucket, cublas_.version()), steps));
  if (choice) chosen_.insert_or_assign({shape, bucket}, *choice);
  return {};
}

}  // namespace quire::cuda
