#include "cpu/ops/gemm_bf16.h"

#include <cpuid.h>

#include <algorithm>
#include <atomic>

#include "cpu/ops/avx512_bf16/kernel.h"

namespace quire::cpu {
namespace {

using avx512_bf16::kMaxTerms;

constexpr int64_t kBlockRows = 256;            // rows converted at a time
constexpr int64_t kTaskPanels = 2;             // panels of a task
constexpr int64_t kFewRows = 12;               // rows of one group, which read the weights once
constexpr int64_t kBlockPairs = 128;           // pairs of k that several groups of rows use in turn
constexpr int64_t kConvertOnOneThread = 4096;  // elements of x

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

void convert_x(const PackedLinear& w, const float* x, int64_t num_rows, int num_terms,
               uint16_t* out, ThreadPool& pool) {
  const int64_t num_k = w.in_features();
  const auto convert = [&](int64_t row) {
    avx512_bf16::convert_row(x + row * num_k, num_k, w.padded_k(), num_terms,
                             out + row * w.padded_k() * num_terms);
  };
  if (num_rows * num_k > kConvertOnOneThread) return pool.parallel_for(num_rows, convert);
  for (int64_t row = 0; row < num_rows; ++row) convert(row);
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
  static const bool usable = has_instructions() && has_os_support();
  return usable;
}

Status Bf16Scratch::reserve(int64_t padded_k) {
  const auto num_bytes = static_cast<size_t>(kBlockRows * padded_k * kMaxTerms) * sizeof(uint16_t);
  if (num_bytes <= x_.num_bytes()) return {};
  QUIRE_ASSIGN_OR_RETURN(x_, Buffer::host(num_bytes));
  return {};
}

void linear_bf16(const PackedLinear& w, const float* x, int64_t num_rows, int num_terms, float* out,
                 ThreadPool& pool, const Bf16Scratch& scratch) {
  const int64_t num_tasks = ceil_div(w.num_panels(), kTaskPanels);
  for (int64_t row = 0; row < num_rows; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, num_rows - row);
    convert_x(w, x + row * w.in_features(), rows, num_terms, scratch.x(), pool);
    const avx512_bf16::Task task = {.panels = nullptr,
                                    .x = scratch.x(),
                                    .num_terms = num_terms,
                                    .num_pairs = w.padded_k() / 2,
                                    .pair_begin = 0,
                                    .pair_end = 0,
                                    .num_rows = rows,
                                    .out = out + row * w.out_features(),
                                    .out_stride = w.out_features(),
                                    .num_columns = 0,
                                    .bias = nullptr};
    std::atomic<int64_t> next = 0;
    pool.run([&](int) {
      for (int64_t i = next.fetch_add(1); i < num_tasks; i = next.fetch_add(1)) {
        run_panels(w, i * kTaskPanels, task);
      }
    });
  }
}

}  // namespace quire::cpu
