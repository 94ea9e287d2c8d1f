// FlashInfer's planners allocate in reserve() alone. These need no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "cuda/attention/flashinfer/expanded_plan.h"
#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda/attention/flashinfer/plan.h"
#include "support/scarce_memory.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

namespace fi = cuda::flashinfer_backend;

constexpr int kNumSms = 132;

// A batch of one phase on the host.
struct Batch {
  Batch(Phase phase, const std::vector<int32_t>& q_lens, std::vector<int32_t> lens)
      : kv_lens(std::move(lens)) {
    for (const int32_t q_len : q_lens) query_start.push_back(query_start.back() + q_len);
    PhaseRange& range = phase == Phase::kDecode ? batch.decode : batch.prefill;
    range = {.num_reqs = static_cast<int>(q_lens.size()),
             .num_tokens = query_start.back(),
             .max_q_len = std::ranges::max(q_lens),
             .max_kv_len = std::ranges::max(kv_lens)};
    batch.query_start.host = query_start.data();
    batch.kv_len_bound = kv_lens;
    batch.max_pages = 100;
  }

  std::vector<int32_t> query_start = {0};
  std::vector<int32_t> kv_lens;
  AttentionBatch batch;
};

// Batches that are as large as these limits allow: one long prompt, many short ones, both at once,
// and prompts of medium length, in short and long contexts.
constexpr PlanLimits kLimits = {.use = {.phase = Phase::kPrefill},
                                .max_num_reqs = 64,
                                .max_num_tokens = 2048,
                                .max_kv_len = 4000};

std::vector<Batch> largest_batches() {
  std::vector<int32_t> uneven(64, 1);
  uneven.front() = 2048 - 63;
  std::vector<int32_t> empty(64, 0);
  empty.back() = 2048;
  std::vector<Batch> batches;
  for (const int32_t kv_len : {2048, 4000}) {
    batches.emplace_back(Phase::kPrefill, std::vector<int32_t>{2048}, std::vector{kv_len});
    for (const std::vector<int32_t>& q_lens :
         {std::vector<int32_t>(64, 32), std::vector<int32_t>(20, 102), uneven, empty}) {
      batches.emplace_back(Phase::kPrefill, q_lens, std::vector<int32_t>(q_lens.size(), kv_len));
    }
  }
  return batches;
}

AttentionShape shape_of(int num_heads, int num_kv_heads, int head_dim, DType kv) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .head_dim = head_dim,
          .head_dim_v = head_dim,
          .q = DType::kBF16,
          .kv = kv,
          .out = DType::kBF16};
}

void expect_no_allocation(const AttentionShape& shape, fi::DeviceLimits limits) {
  fi::Planner planner;
  planner.reserve(shape, kLimits, limits);
  const int64_t max_tiles = fi::max_tiles(shape, kLimits, limits);
  std::vector<int32_t> words(static_cast<size_t>(fi::plan_words(max_tiles, kLimits.max_num_reqs)));
  for (const Batch& of : largest_batches()) {
    const PhaseRange& range = of.batch.prefill;
    const ScarceMemory none(0);
    const fi::PhaseShape phase = fi::choose_shape(shape, of.batch, range, limits);
    planner.fill(shape, of.batch, range, phase, limits,
                 fi::place_arrays(words.data(), phase.num_tiles, range.num_reqs));
  }
}

TEST(FlashInferMemory, PlansAllocateInReserveAlone) {
  for (const int num_kv_heads : {8, 32}) {
    for (const DType kv : {DType::kBF16, DType::kF8E4M3}) {
      const AttentionShape shape = shape_of(32, num_kv_heads, 128, kv);
      fi::DeviceLimits limits = {.num_resident_blocks = std::max(1, 2 * kNumSms / num_kv_heads)};
      expect_no_allocation(shape, limits);  // FA2
      limits.can_gather = true;
      limits.has_fa3 = kv == DType::kBF16;
      limits.scratch_tokens = 4096;
      expect_no_allocation(shape, limits);  // FA3, and gathered groups for long prompts
    }
  }
}

TEST(FlashInferMemory, LatentPlansAllocateInReserveAlone) {
  for (const int num_heads : {1, 16, 20, 40, 128}) {
    AttentionShape shape = shape_of(num_heads, 1, 576, DType::kBF16);
    shape.head_dim_v = 512;
    shape.is_latent = true;
    fi::LatentPlanner planner;
    planner.reserve(shape, kLimits, kNumSms);
    const int64_t max_works = fi::max_latent_works(shape, kLimits, kNumSms);
    std::vector<fi::LatentWork> memory(
        ceil_div(fi::latent_array_bytes(kNumSms, max_works), sizeof(fi::LatentWork)));
    for (const Batch& of : largest_batches()) {
      const PhaseRange& range = of.batch.prefill;
      const ScarceMemory none(0);
      planner.measure(shape, of.batch, range, fi::choose_latent_grid(shape, range, kNumSms));
      planner.fill(kNumSms, fi::place_latent_arrays(memory.data(), kNumSms));
    }
  }
}

TEST(FlashInferMemory, ExpandedPlansAllocateInReserveAlone) {
  for (const int max_rows : {128, 640, 4096}) {
    fi::ExpandedPlanner planner;
    planner.reserve(kLimits, max_rows);
    for (const Batch& of : largest_batches()) {
      const ScarceMemory none(0);
      planner.plan(of.batch, of.batch.prefill, max_rows);
    }
  }
}

}  // namespace
}  // namespace quire::testing
