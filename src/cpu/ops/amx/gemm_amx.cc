#include "cpu/ops/gemm_amx.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "cpu/ops/amx/kernel.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/isa.h"

namespace quire::cpu {
namespace {

constexpr int64_t kBlockRows = kMaxGroupedRows;        // rows that are converted to tiles together
constexpr int64_t kBlockTileBytes = int64_t{1} << 20;  // tiles of x that stay in L2 across panels
// The number of k tiles for which a thread has memory for split weights.
constexpr int64_t kMaxBlockKTiles = 256;
constexpr int64_t kSplitWeights =
    kMaxBlockKTiles * 2 * amx::kMaxTerms * amx::kTileElements;  // BF16
// Upper bound for a task; enough for prefetching to be effective.
constexpr int64_t kTaskWeightBytes = 1 << 20;
constexpr int64_t kTasksPerThread = 4;  // lower bound, so that threads finish at about the
                                        // same time

static_assert(kGroupAlign == amx::kTileRows, "a group's rows begin with a tile");

// The instructions of the processor that leaf 7 of CPUID reports.
struct Instructions {
  bool vbmi = false;
  bool amx_tile = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;
};

Instructions find_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  const auto bit = [](unsigned word, int idx) { return ((word >> idx) & 1U) != 0; };
  return {
      .vbmi = bit(c, 1), .amx_tile = bit(d, 24), .amx_bf16 = bit(d, 22), .amx_int8 = bit(d, 25)};
}

bool has_tiles() {
  const Instructions has = find_instructions();
  return has.amx_tile && has.amx_bf16;
}

// Linux grants the use of tile registers on request (see arch/x86/xstate in the kernel's
// documentation).
bool has_permission() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

int64_t x_bytes(int64_t padded_k) {
  return kBlockRows * padded_k * amx::kMaxTerms * int64_t{sizeof(uint16_t)};
}

int64_t most_rows(std::span<const RowGroup> groups) {
  return std::ranges::max_element(groups, {}, &RowGroup::num_rows)->num_rows;
}

// The number of k tiles that all rows process before the next k tiles: all of them for few rows,
// otherwise as many as keep x in L2.
int64_t block_k_tiles(int64_t num_rows, int64_t k_tiles, int num_terms) {
  if (num_rows <= amx::kGroupRows) return k_tiles;
  const int64_t row_tiles = ceil_div(num_rows, amx::kTileRows);
  const int64_t bytes_per_k_tile =
      row_tiles * num_terms * amx::kTileElements * static_cast<int64_t>(sizeof(uint16_t));
  return std::clamp(kBlockTileBytes / bytes_per_k_tile, int64_t{1},
                    std::min(k_tiles, kMaxBlockKTiles));
}

int64_t panels_per_task(const PackedLinear& w, int64_t k_tiles, int num_threads) {
  const int64_t panel_bytes = k_tiles * amx::kTileK * kPanelWidth * 2;
  const int64_t shared = w.num_panels() / (kTasksPerThread * num_threads);
  return std::max(int64_t{1}, std::min(kTaskWeightBytes / panel_bytes, shared));
}

// Runs panels [begin, end) for all rows of `task`, whose panel fields are not set yet.
void run_panels(const PackedLinear& w, int64_t begin, int64_t end, const amx::Kernel& kernel,
                amx::Task task) {
  const int64_t first_feature = begin * kPanelWidth;
  task.panels = reinterpret_cast<const uint16_t*>(w.panel(begin));
  task.out += first_feature;
  task.num_columns = std::min(end * kPanelWidth, w.out_features()) - first_feature;
  if (w.bias() != nullptr) task.bias = w.bias() + first_feature;
  kernel.run(task);
}

}  // namespace

bool amx_usable() {
  static const bool usable =
      may_use(IsaLevel::kAmx) && amx_avx512_usable() && has_tiles() && has_permission();
  return usable;
}

const amx::Kernel* amx_kernel() {
  return amx_usable() ? &amx::kKernel : nullptr;
}

bool amx_avx512_usable() {
  return find_instructions().vbmi && avx512_bf16_usable();
}

bool amx_int8_usable() {
  const Instructions has = find_instructions();
  return may_use(IsaLevel::kAmx) && has.amx_tile && has.amx_int8 && has_permission();
}

Status AmxScratch::reserve(int64_t padded_k, int num_threads) {
  QUIRE_RETURN_IF_ERROR(grow(x_bytes(padded_k), x_tiles_));
  return grow(num_threads * kSplitWeights * int64_t{sizeof(uint16_t)}, weights_);
}

int64_t AmxScratch::num_bytes(int64_t padded_k, int num_threads) {
  return x_bytes(padded_k) + num_threads * kSplitWeights * int64_t{sizeof(uint16_t)};
}

bool amx_encode_f16(uint16_t* values, int64_t count) {
  return amx::encode_f16(values, count);
}

uint16_t* AmxScratch::weights(int thread_idx) const {
  return static_cast<uint16_t*>(weights_.data()) + thread_idx * kSplitWeights;
}

void linear_amx(std::span<const RowGroup> groups, const amx::Kernel& kernel, const float* x,
                int num_terms, float* out, ThreadPool& pool, const AmxScratch& scratch) {
  const PackedLinear& first = *groups.front().w;
  const int64_t num_k = first.in_features();
  const int64_t k_tiles = first.padded_k() / amx::kTileK;
  const auto num_terms_of = [&](const RowGroup& group) {
    return group.w->dtype() == DType::kF16 ? amx::kMaxTerms : num_terms;
  };
  // Each group has memory for the maximum number of terms, because groups may have different types.
  const auto x_tiles_of = [&](const RowGroup& group) {
    return scratch.x_tiles() + group.first_row * first.padded_k() * amx::kMaxTerms;
  };
  for_group_rows(groups, num_k, pool, [&](const RowGroup& group, int64_t row) {
    amx::convert_row(x + row * num_k, num_k, k_tiles, num_terms_of(group), row - group.first_row,
                     x_tiles_of(group));
  });
  const int most_terms = num_terms_of(*std::ranges::max_element(groups, {}, num_terms_of));
  const int64_t k_step = block_k_tiles(most_rows(groups), k_tiles, most_terms);
  const int64_t task_panels = panels_per_task(first, k_step, pool.num_threads());
  const auto num_parts = [&](const RowGroup& group) {
    return ceil_div(group.w->num_panels(), task_panels);
  };
  for (int64_t k = 0; k < k_tiles; k += k_step) {
    NodeTasks tasks(pool);
    pool.run([&](int thread_idx) {
      const auto run = [&](const RowGroup& group, int64_t part) {
        const PackedLinear& w = *group.w;
        const amx::Task task = {.panels = nullptr,
                                .is_f16 = w.dtype() == DType::kF16,
                                .x_tiles = x_tiles_of(group),
                                .num_terms = num_terms_of(group),
                                .num_k_tiles = k_tiles,
                                .k_begin = k,
                                .k_end = std::min(k + k_step, k_tiles),
                                .num_rows = group.num_rows,
                                .out = out + group.first_row * w.out_features(),
                                .out_stride = w.out_features(),
                                .num_columns = 0,
                                .bias = nullptr,
                                .weights_scratch = scratch.weights(thread_idx)};
        run_panels(w, part * task_panels, std::min((part + 1) * task_panels, w.num_panels()),
                   kernel, task);
      };
      run_group_tasks(groups, tasks, thread_idx, num_parts, run);
      kernel.release_tiles();
    });
  }
}

}  // namespace quire::cpu
