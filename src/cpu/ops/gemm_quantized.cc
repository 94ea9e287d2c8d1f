#include "cpu/ops/gemm_quantized.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::cpu {
namespace {

constexpr int64_t kBlockRows = kMaxGroupedRows;  // rows that are rounded together
constexpr int kMaxTerms = 2;
// The size of activations that stay in L2, for a kernel that requires that. Every processor with
// AMX has an L2 of 2 MiB.
constexpr int64_t kResidentBytes = int64_t{3} << 19;

static_assert(quantized::kMaxRows == kMaxGroupedRows);

int64_t row_bytes(int64_t in_features, int num_terms) {
  return ceil_div(in_features, quantized::kBlockK) * quantized::activation_bytes(num_terms);
}

int64_t x_bytes(int64_t in_features) {
  return kBlockRows * row_bytes(in_features, kMaxTerms);
}

int64_t ordered_bytes(int64_t in_features) {
  return kBlockRows * in_features * int64_t{sizeof(float)};
}

// The number of panels per task. A task has adjacent panels, so that the end of a panel prefetches
// the beginning of the next, but few enough that threads finish at about the same time. num_panels:
// the panels of all matrices.
int64_t task_panels(int64_t num_panels, int num_threads) {
  constexpr int64_t kMostPanels = 8;
  constexpr int64_t kTasksPerThread = 4;
  return std::clamp(num_panels / (num_threads * kTasksPerThread), int64_t{1}, kMostPanels);
}

// Returns the first kernel that is not slower than the kernels after it for the group's number of
// rows. If a matrix has several types, the type of its first panel decides, because in a matrix of
// queries, keys and values, the queries come first and have the most rows.
const quantized::Kernel& kernel_of(std::span<const QuantizedKernel> kernels,
                                   const QuantizedRowGroup& group, int num_terms) {
  const quantized::Format& format = group.w->panels().front().format;
  const auto takes = [&](const QuantizedKernel& k) {
    const auto min_rows = k.kernel->min_rows;
    return min_rows == nullptr || min_rows(format, num_terms) <= group.num_rows;
  };
  const auto found = std::ranges::find_if(kernels, takes);
  return found == kernels.end() ? *kernels.back().kernel : *found->kernel;
}

// Returns the bytes per activation: num_terms, or two if these are faster than one. This depends on
// the matrix alone, so that a row has the same bits in every batch. If an option names a single
// kernel, returns num_terms.
int terms_of(std::span<const QuantizedKernel> kernels, const QuantizedRowGroup& group,
             int num_terms) {
  const auto gains = kernels.front().kernel->gains_by_one_term;
  if (kernels.size() == 1 || gains == nullptr) return num_terms;
  return gains(group.w->panels().front().format) ? num_terms : kMaxTerms;
}

// The number of blocks of k, at most num_blocks, that all rows process before the next blocks.
int64_t block_step(std::span<const QuantizedRowGroup> groups,
                   std::span<const QuantizedKernel> kernels, int num_terms, int64_t num_blocks) {
  int64_t most_bytes = 0;  // of a block of a group's rows
  for (const QuantizedRowGroup& group : groups) {
    const int terms = terms_of(kernels, group, num_terms);
    if (kernel_of(kernels, group, terms).needs_x_in_l2) {
      most_bytes = std::max(most_bytes, group.num_rows * quantized::activation_bytes(terms));
    }
  }
  if (most_bytes == 0) return num_blocks;
  return std::clamp(kResidentBytes / most_bytes, int64_t{1}, num_blocks);
}

}  // namespace

Status QuantizedScratch::reserve(const QuantizedLinear& w) {
  const int64_t num_k = w.in_features();
  QUIRE_RETURN_IF_ERROR(grow(x_bytes(num_k), x_));
  return w.order().empty() ? Status() : grow(ordered_bytes(num_k), ordered_);
}

int64_t QuantizedScratch::num_bytes(int64_t in_features) {
  return x_bytes(in_features) + ordered_bytes(in_features);
}

void linear_quantized(std::span<const QuantizedRowGroup> groups,
                      std::span<const QuantizedKernel> kernels, const float* x, int num_terms,
                      float* out, ThreadPool& pool, const QuantizedScratch& scratch) {
  const int64_t num_k = groups.front().w->in_features();
  const auto x_of = [&](const QuantizedRowGroup& group) {
    return scratch.x() + group.first_row * row_bytes(num_k, kMaxTerms);
  };
  const auto round_row = [&](const QuantizedRowGroup& group, int64_t row) {
    const float* from = x + row * num_k;
    const std::span<const int32_t> order = group.w->order();
    if (!order.empty()) {
      float* const ordered = scratch.ordered() + row * num_k;
      for (int64_t k = 0; k < num_k; ++k) ordered[k] = from[order[static_cast<size_t>(k)]];
      from = ordered;
    }
    const int terms = terms_of(kernels, group, num_terms);
    kernel_of(kernels, group, terms)
        .quantize_row(from, num_k, terms, row - group.first_row, group.num_rows, x_of(group));
  };
  for_group_rows(groups, num_k, pool, round_row);
  int64_t num_panels = 0;
  for (const QuantizedRowGroup& group : groups) num_panels += std::ssize(group.w->panels());
  const int64_t step = task_panels(num_panels, pool.num_threads());
  const auto num_parts = [&](const QuantizedRowGroup& group) {
    return ceil_div(std::ssize(group.w->panels()), step);
  };
  const int64_t num_blocks = ceil_div(num_k, quantized::kBlockK);
  const int64_t blocks = block_step(groups, kernels, num_terms, num_blocks);
  for (int64_t block = 0; block < num_blocks; block += blocks) {
    const auto run_panel = [&](const QuantizedRowGroup& group,
                               const QuantizedLinear::Panel& panel) {
      const QuantizedLinear& w = *group.w;
      const int terms = terms_of(kernels, group, num_terms);
      kernel_of(kernels, group, terms)
          .run({.format = panel.format,
                .panel = w.data(panel),
                .num_groups = w.num_groups(),
                .block_begin = block,
                .block_end = std::min(block + blocks, num_blocks),
                .x = x_of(group),
                .num_terms = terms,
                .num_rows = group.num_rows,
                .out = out + group.first_row * w.out_features() + panel.first_feature,
                .out_stride = w.out_features(),
                .num_columns = panel.num_features,
                .bias = w.bias() == nullptr ? nullptr : w.bias() + panel.first_feature});
    };
    const auto run_panels = [&](const QuantizedRowGroup& group, int64_t part) {
      const std::vector<QuantizedLinear::Panel>& panels = group.w->panels();
      const int64_t end = std::min((part + 1) * step, std::ssize(panels));
      for (int64_t i = part * step; i < end; ++i) run_panel(group, panels[static_cast<size_t>(i)]);
    };
    NodeTasks tasks(pool);
    pool.run(
        [&](int thread_idx) { run_group_tasks(groups, tasks, thread_idx, num_parts, run_panels); });
  }
}

}  // namespace quire::cpu
