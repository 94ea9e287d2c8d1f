#include "cpu/ops/gemm_quantized.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::cpu {
namespace {

constexpr int64_t kBlockRows = 256;          // rows rounded at a time
constexpr int64_t kRoundOnOneThread = 4096;  // elements of x
constexpr int kMaxTerms = 2;

int64_t row_bytes(int64_t in_features, int num_terms) {
  return ceil_div(in_features, quantized::kBlockK) * quantized::activation_bytes(num_terms);
}

// Panels of a task: some in a row, so that the end of one prefetches the beginning of the next, but
// few enough that threads end together.
int64_t task_panels(int64_t num_panels, int num_threads) {
  constexpr int64_t kMostPanels = 8;
  constexpr int64_t kTasksPerThread = 4;
  return std::clamp(num_panels / (num_threads * kTasksPerThread), int64_t{1}, kMostPanels);
}

}  // namespace

Status QuantizedScratch::reserve(int64_t in_features) {
  const auto num_bytes = static_cast<size_t>(kBlockRows * row_bytes(in_features, kMaxTerms));
  if (num_bytes <= x_.num_bytes()) return {};
  QUIRE_ASSIGN_OR_RETURN(x_, Buffer::host(num_bytes));
  return {};
}

void linear_quantized(const QuantizedLinear& w, const quantized::Kernel& kernel, const float* x,
                      int64_t num_rows, int num_terms, float* out, ThreadPool& pool,
                      const QuantizedScratch& scratch) {
  const int64_t num_k = w.in_features();
  const int64_t x_bytes = row_bytes(num_k, num_terms);
  for (int64_t first = 0; first < num_rows; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, num_rows - first);
    const auto round = [&](int64_t row) {
      kernel.quantize_row(x + (first + row) * num_k, num_k, num_terms, scratch.x() + row * x_bytes);
    };
    if (rows * num_k > kRoundOnOneThread && rows > 1) {
      pool.parallel_for(rows, round);
    } else {
      for (int64_t row = 0; row < rows; ++row) round(row);
    }
    const int64_t num_panels = std::ssize(w.panels());
    const int64_t step = task_panels(num_panels, pool.num_threads());
    const auto run_panels = [&](int64_t begin) {
      for (int64_t i = begin; i < std::min(begin + step, num_panels); ++i) {
        const QuantizedLinear::Panel& panel = w.panels()[static_cast<size_t>(i)];
        kernel.run({.format = panel.format,
                    .panel = w.data(panel),
                    .num_groups = w.num_groups(),
                    .x = scratch.x(),
                    .num_terms = num_terms,
                    .num_rows = rows,
                    .out = out + first * w.out_features() + panel.first_feature,
                    .out_stride = w.out_features(),
                    .num_columns = panel.num_features,
                    .bias = w.bias() == nullptr ? nullptr : w.bias() + panel.first_feature});
      }
    };
    NodeTasks tasks(pool);
    pool.run([&](int thread_idx) {
      tasks.run(thread_idx, ceil_div(num_panels, step), [&](int64_t i) { run_panels(i * step); });
    });
  }
}

}  // namespace quire::cpu
