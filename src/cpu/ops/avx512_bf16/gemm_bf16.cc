#include "cpu/ops/gemm_bf16.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cpu/ops/avx512_bf16/kernel.h"
#include "cpu/ops/isa.h"

namespace quire::cpu {
namespace {

using avx512_bf16::kMaxTerms;
using avx512_bf16::kTaskColumns;
using avx512_bf16::kTaskPanels;

static_assert(avx512_bf16::kPanelColumns == kPanelWidth);

// Up to this many rows form one batch, which reads each panel once, in order.
constexpr int64_t kFewRows = avx512_bf16::kMaxRowsOnePanel;
// With more rows, k is divided into blocks of this many pairs. The batches of rows read a block's
// weights one after another, while the weights (32 KiB of two panels) are in the L1 or the L2.
constexpr int64_t kBlockPairs = 128;
constexpr int64_t kSumsFloats = kMaxGroupedRows * kTaskColumns;
constexpr int64_t kSumsBytes = kSumsFloats * int64_t{sizeof(float)};

int64_t x_bytes(int64_t padded_k) {
  return kMaxGroupedRows * padded_k * kMaxTerms * int64_t{sizeof(uint16_t)};
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const auto bit = [](unsigned word, int idx) { return ((word >> idx) & 1U) != 0; };
  const bool avx512 = bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);  // F, DQ, BW, VL
  if (!avx512 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return false;
  return bit(a, 5);  // AVX512_BF16
}

// Whether the operating system saves the AVX-512 registers.
bool has_os_support() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || ((c >> 27) & 1U) == 0) return false;  // OSXSAVE
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kAvx512State = 0xE6;  // SSE, AVX, and the three parts of AVX-512
  return (low & kAvx512State) == kAvx512State;
}

RowBatches row_batches(int64_t num_rows) {
  return {num_rows, num_rows <= kFewRows ? kFewRows : avx512_bf16::kMaxRowsTwoPanels};
}

int64_t num_blocks(const PackedLinear& w) {
  return ceil_div(w.padded_k() / 2, kBlockPairs);
}

int64_t pairs_of_block(const PackedLinear& w, int64_t block) {
  return std::min(kBlockPairs, w.padded_k() / 2 - block * kBlockPairs);
}

// Converts a block of a batch of rows: packed[block][batch][pair][row][term][2], so that a product
// reads consecutive memory. Without packing, rows at distances of a multiple of 4 KiB would map to
// the same L1 sets. `Pair` holds the terms of one pair: uint32_t for one term, uint64_t for two.
template <typename Pair>
void pack_batch(const RowGroup& group, int64_t block, int64_t batch, const float* x,
                uint16_t* packed) {
  constexpr int kTerms = sizeof(Pair) / 4;
  const int64_t num_k = group.w->in_features();
  const int64_t first_k = 2 * block * kBlockPairs;
  const int64_t num_pairs = pairs_of_block(*group.w, block);
  const int64_t num_values = std::min(num_k - first_k, 2 * num_pairs);
  const RowBatches batches = row_batches(group.num_rows);
  const int64_t first_row = batches.begin(batch);
  const int64_t num_rows = batches.num_rows(batch);
  std::array<Pair, kBlockPairs> converted = {};  // the padding of k stays zero
  auto* const to = reinterpret_cast<Pair*>(packed) + block * kBlockPairs * group.num_rows +
                   num_pairs * first_row;
  for (int64_t r = 0; r < num_rows; ++r) {
    avx512_bf16::convert(x + (first_row + r) * num_k + first_k, num_values, kTerms,
                         converted.data());
    for (int64_t i = 0; i < num_pairs; ++i) {
      to[i * num_rows + r] = converted[static_cast<size_t>(i)];
    }
  }
}

// Sets the part of the next weights that a batch prefetches: all batches together prefetch
// num_pairs pairs of each panel, from `first` on.
void set_prefetch(const uint16_t* first, int64_t num_pairs, const RowBatches& batches,
                  int64_t batch, avx512_bf16::Task& task) {
  const int64_t begin = num_pairs * batch / batches.count();
  task.next = first + begin * kPanelWidth * 2;
  task.num_next = num_pairs * (batch + 1) / batches.count() - begin;
}

// Multiplies few rows by the panels of `task`: by two panels at once, or by one after the other if
// the sums for two would not fit into registers.
void run_few_rows(avx512_bf16::Task task) {
  if (task.num_rows <= avx512_bf16::kMaxRowsTwoPanels) return avx512_bf16::run(task);
  const int64_t num_panels = std::exchange(task.num_panels, 1);
  for (int64_t p = 0; p < num_panels; ++p) {
    avx512_bf16::run(task);
    task.panels += task.panel_stride;
    task.sums += kPanelWidth;
  }
}

// Multiplies many rows by the panels of `task`, block by block. next_panels: the panels that the
// thread will probably multiply next, or null.
void run_many_rows(const PackedLinear& w, const uint16_t* next_panels, avx512_bf16::Task task) {
  const RowBatches batches = row_batches(task.num_rows);
  const uint16_t* x = task.x;
  float* const sums = task.sums;
  for (int64_t block = 0; block < num_blocks(w); ++block) {
    const bool is_last = block + 1 == num_blocks(w);
    task.num_pairs = pairs_of_block(w, block);
    task.is_first_block = block == 0;
    const int64_t block_elements = task.num_pairs * kPanelWidth * 2;
    const uint16_t* next = is_last ? next_panels : task.panels + block_elements;
    const int64_t num_next = next == nullptr ? 0 : pairs_of_block(w, is_last ? 0 : block + 1);
    for (int64_t i = 0; i < batches.count(); ++i) {
      task.panels_are_cached = i > 0;
      task.num_rows = batches.num_rows(i);
      task.x = x;
      task.sums = sums + batches.begin(i) * kTaskColumns;
      set_prefetch(next, num_next, batches, i, task);
      avx512_bf16::run(task);
      x += task.num_pairs * task.num_rows * task.num_terms * 2;
    }
    task.panels += block_elements;
  }
}

}  // namespace

bool avx512_bf16_usable() {
  static const bool usable = may_use(IsaLevel::kAvx512) && has_instructions() && has_os_support();
  return usable;
}

Status Bf16Scratch::reserve(int64_t padded_k, int num_threads) {
  QUIRE_RETURN_IF_ERROR(grow(num_threads * kSumsBytes, sums_));
  return grow(x_bytes(padded_k), x_);
}

int64_t Bf16Scratch::num_bytes(int64_t padded_k, int num_threads) {
  return num_threads * kSumsBytes + x_bytes(padded_k);
}

float* Bf16Scratch::sums(int thread_idx) const {
  return static_cast<float*>(sums_.data()) + thread_idx * kSumsFloats;
}

void linear_bf16(std::span<const RowGroup> groups, const float* x, int num_terms, float* out,
                 ThreadPool& pool, const Bf16Scratch& scratch) {
  const auto packed_x = [&](const RowGroup& group) {
    return scratch.x() + group.first_row * group.w->padded_k() * num_terms;
  };
  const auto num_packed_parts = [](const RowGroup& group) {
    return num_blocks(*group.w) * row_batches(group.num_rows).count();
  };
  const auto pack = [&](const RowGroup& group, int64_t part) {
    const int64_t num_batches = row_batches(group.num_rows).count();
    const auto pack_pairs = num_terms == 1 ? pack_batch<uint32_t> : pack_batch<uint64_t>;
    pack_pairs(group, part / num_batches, part % num_batches,
               x + group.first_row * group.w->in_features(), packed_x(group));
  };
  for_group_parts(groups, groups.front().w->in_features(), pool, num_packed_parts, pack);
  const auto num_parts = [](const RowGroup& group) {
    return ceil_div(group.w->num_panels(), kTaskPanels);
  };
  NodeTasks tasks(pool);
  pool.run([&](int thread_idx) {
    NextPart next_part;
    const auto run = [&](const RowGroup& group, int64_t part) {
      const PackedLinear& w = *group.w;
      const auto panels = [&](int64_t of_part) {
        return reinterpret_cast<const uint16_t*>(w.panel(of_part * kTaskPanels));
      };
      const int64_t next = next_part.after(part);
      const bool has_next = (next + 1) * kTaskPanels <= w.num_panels();
      const avx512_bf16::Task task = {
          .panels = panels(part),
          .panel_stride = w.padded_k() * kPanelWidth,
          .num_panels = std::min(kTaskPanels, w.num_panels() - part * kTaskPanels),
          .panels_are_cached = false,
          .x = packed_x(group),
          .num_terms = num_terms,
          .num_pairs = w.padded_k() / 2,
          .num_rows = group.num_rows,
          .sums = scratch.sums(thread_idx),
          .is_first_block = true,
          .next = nullptr,
          .num_next = 0};
      if (group.num_rows <= kFewRows) {
        run_few_rows(task);
      } else {
        run_many_rows(w, has_next ? panels(next) : nullptr, task);
      }
      w.write_sums(task.sums, kTaskColumns, group.num_rows, part * kTaskColumns,
                   out + group.first_row * w.out_features());
    };
    run_group_tasks(groups, tasks, thread_idx, num_parts, run);
  });
}

}  // namespace quire::cpu
