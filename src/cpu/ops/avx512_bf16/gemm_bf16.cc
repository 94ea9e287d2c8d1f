#include "cpu/ops/gemm_bf16.h"

#include <cpuid.h>

#include <algorithm>

#include "cpu/ops/avx512_bf16/kernel.h"
#include "cpu/ops/isa.h"

namespace quire::cpu {
namespace {

using avx512_bf16::kMaxTerms;

constexpr int64_t kBlockRows = kMaxGroupedRows;  // rows converted at a time
constexpr int64_t kTaskPanels = 2;               // panels of a task
constexpr int64_t kFewRows = 12;                 // rows of one group, which read the weights once
constexpr int64_t kBlockPairs = 128;  // pairs of k that several groups of rows use in turn

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const auto bit = [](unsigned word, int idx) { return ((word >> idx) & 1U) != 0; };
  const bool avx512 = bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);  // F, DQ, BW, VL
  if (!avx512 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return false;
  return bit(a, 5);  // AVX512_BF16
}

// Whether the operating system saves the registers of AVX-512.
bool has_os_support() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || ((c >> 27) & 1U) == 0) return false;  // OSXSAVE
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kAvx512State = 0xE6;  // SSE, AVX, and the three parts of AVX-512
  return (low & kAvx512State) == kAvx512State;
}

// The first of a row's converted activations.
uint16_t* converted_row(const PackedLinear& w, int64_t row, int num_terms, uint16_t* converted) {
  return converted + row * w.padded_k() * num_terms;
}

// Multiplies all rows of `task` with two panels, or with the last one.
void run_panels(const PackedLinear& w, int64_t panel_idx, avx512_bf16::Task task) {
  const int64_t first_feature = panel_idx * kPanelWidth;
  task.panels = reinterpret_cast<const uint16_t*>(w.panel(panel_idx));
  task.out += first_feature;
  task.num_columns = std::min(kTaskPanels * kPanelWidth, w.out_features() - first_feature);
  if (w.bias() != nullptr) task.bias = w.bias() + first_feature;
  const int64_t step = task.num_rows <= kFewRows ? task.num_pairs : kBlockPairs;
  for (int64_t pair = 0; pair < task.num_pairs; pair += step) {
    task.pair_begin = pair;
    task.pair_end = std::min(pair + step, task.num_pairs);
    avx512_bf16::run(task);
  }
}

}  // namespace

bool avx512_bf16_usable() {
  static const bool usable = may_use(IsaLevel::kAvx512) && has_instructions() && has_os_support();
  return usable;
}

Status Bf16Scratch::reserve(int64_t padded_k) {
  return grow(num_bytes(padded_k), x_);
}

int64_t Bf16Scratch::num_bytes(int64_t padded_k) {
  return kBlockRows * padded_k * kMaxTerms * int64_t{sizeof(uint16_t)};
}

void linear_bf16(std::span<const RowGroup> groups, const float* x, int num_terms, float* out,
                 ThreadPool& pool, const Bf16Scratch& scratch) {
  const int64_t num_k = groups.front().w->in_features();
  for_group_rows(groups, num_k, pool, [&](const RowGroup& group, int64_t row) {
    avx512_bf16::convert_row(x + row * num_k, num_k, group.w->padded_k(), num_terms,
                             converted_row(*group.w, row, num_terms, scratch.x()));
  });
  const auto num_parts = [](const RowGroup& group) {
    return ceil_div(group.w->num_panels(), kTaskPanels);
  };
  NodeTasks tasks(pool);
  pool.run([&](int thread_idx) {
    const auto run = [&](const RowGroup& group, int64_t part) {
      const PackedLinear& w = *group.w;
      const avx512_bf16::Task task = {
          .panels = nullptr,
          .x = converted_row(w, group.first_row, num_terms, scratch.x()),
          .num_terms = num_terms,
          .num_pairs = w.padded_k() / 2,
          .pair_begin = 0,
          .pair_end = 0,
          .num_rows = group.num_rows,
          .out = out + group.first_row * w.out_features(),
          .out_stride = w.out_features(),
          .num_columns = 0,
          .bias = nullptr};
      run_panels(w, part * kTaskPanels, task);
    };
    run_group_tasks(groups, tasks, thread_idx, num_parts, run);
  });
}

}  // namespace quire::cpu
