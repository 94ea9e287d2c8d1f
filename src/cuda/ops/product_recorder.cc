#include "cuda/ops/product_recorder.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace quire::cuda {
namespace {

// With this many calls, even a large model's smallest matrices exceed any L2.
constexpr size_t kMaxCalls = 8;

bool are_alike(const GemmCall& a, const GemmCall& b) {
  return a.w.shape == b.w.shape && a.w.dtype == b.w.dtype && a.out.dtype == b.out.dtype &&
         a.x.shape == b.x.shape && a.scale_rows == b.scale_rows &&
         a.operation.index() == b.operation.index() &&
         (a.bias.data == nullptr) == (b.bias.data == nullptr) &&
         (a.gated_out.data == nullptr) == (b.gated_out.data == nullptr);
}

bool are_alike(const PerHeadGemmCall& a, const PerHeadGemmCall& b) {
  return a.w.shape == b.w.shape && a.x.shape == b.x.shape && a.out.shape == b.out.shape;
}

// Tunes the calls in groups of one shape.
template <typename Call, typename Runner>
Status tune_alike(std::vector<Call> left, Runner& runner, std::span<const int> row_counts) {
  while (!left.empty()) {
    const Call first = left.front();
    std::vector<Call> alike;
    std::erase_if(left, [&](const Call& call) {
      if (!are_alike(call, first)) return false;
      alike.push_back(call);
      return true;
    });
    alike.resize(std::min(alike.size(), kMaxCalls), first);
    int64_t last = 0;
    for (const int num_rows : row_counts) {
      const int64_t rows = std::min(row_bucket(num_rows), first.x.shape[0]);
      if (rows <= last) continue;
      QUIRE_RETURN_IF_ERROR(runner.tune(alike, rows));
      last = rows;
    }
  }
  return {};
}

}  // namespace

void ProductRecorder::run(const GemmCall& call) {
  record(call);
  products_.run(call);
}

// Products are measured in the order of their first record, so that down's choice is known when
// gate_up's is measured.
void ProductRecorder::run(const MlpCalls& mlp) {
  record(mlp.gated_down);
  GemmCall gate_up = mlp.gate_up;
  if (gate_up.gated_out.data != nullptr && mlp.down.has_fp8_weights()) {
    record(mlp.down);
    gate_up.next = std::make_shared<const GemmCall>(mlp.down);
  }
  record(std::move(gate_up));
  products_.run(mlp);
}

void ProductRecorder::run(const PerHeadGemmCall& call) {
  per_head_calls_.push_back(call);
  products_.run(call);
}

bool ProductRecorder::try_run(const LayerTail& tail, bool /*has_sums*/) {
  tails_.push_back(tail);
  return false;
}

// The kernel that computes x depends on the product's kernel only with FP8 weights.
void ProductRecorder::record(GemmCall call) {
  // Every rank has the whole router. If ranks chose different kernels for it, they could choose
  // different experts. Its logits are F32.
  if (has_ranks_ && call.out.dtype == DType::kF32) return;
  if (!call.has_fp8_weights()) call.operation = {};
  calls_.push_back(std::move(call));
}

Status ProductRecorder::tune(std::span<const int> row_counts, Ops& ops) {
  QUIRE_RETURN_IF_ERROR(tune_alike(std::move(calls_), products_.dense(), row_counts));
  QUIRE_RETURN_IF_ERROR(tune_alike(std::move(per_head_calls_), products_.heads(), row_counts));
  return products_.tails().tune(tails_, ops);
}

}  // namespace quire::cuda
