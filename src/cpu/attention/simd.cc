#include "cpu/attention/simd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "cpu/attention/simd_arena.h"
#include "cpu/attention/simd_item.h"
#include "cpu/attention/simd_plan.h"
#include "cpu/attention/support.h"

namespace quire {
namespace {

using cpu::ArenaLayout;
using cpu::CallContext;

constexpr int kMaxPlans = 16;  // live at once: KV groups times batches in flight

void run_units(CallContext& context, int thread_idx) {
  const int num_kv_heads = context.call.shape->num_kv_heads;
  const auto num_units = static_cast<int64_t>(context.plan.items.size()) * num_kv_heads;
  while (true) {
    const int64_t unit = context.next_unit.fetch_add(1, std::memory_order_relaxed);
    if (unit >= num_units) return;
    const cpu::WorkItem& item = context.plan.items[static_cast<size_t>(unit / num_kv_heads)];
    run_item(context, item, static_cast<int>(unit % num_kv_heads), thread_idx);
  }
}

// What a plan depends on beside the batch itself.
struct PlanKey {
  const AttentionBatch* batch = nullptr;
  int num_heads = 0, num_kv_heads = 0, head_dim_v = 0, window = 0;
  bool causal = true;
  bool operator==(const PlanKey&) const = default;
};

PlanKey plan_key(const AttentionShape& shape, const AttentionBatch& batch) {
  return {&batch,           shape.num_heads, shape.num_kv_heads,
          shape.head_dim_v, shape.window,    shape.causal};
}

struct StepPlan {
  PlanKey key;
  uint64_t age = 0;
  cpu::PhasePlan decode;
  cpu::PhasePlan prefill;
};

class CpuAttention final : public AttentionBackend {
 public:
  explicit CpuAttention(ThreadPool& pool)
      : pool_(pool),
        pending_(static_cast<size_t>(cpu::WorkSplit::max_split_groups(pool.num_threads()))) {}

  std::string_view name() const override { return "cpu"; }

  Support supports(const AttentionShape& shape, Phase /*phase*/,
                   const Device& device) const override {
    return cpu::attention_support(shape, device);
  }

  size_t workspace_bytes(const AttentionShape& shape,
                         const AttentionLimits& limits) const override {
    const cpu::WorkSplit split(shape, pool_.num_threads());
    return ArenaLayout(shape, split.max_rows())
        .num_bytes(pool_.num_threads(), split.max_partials(limits.max_kv_len));
  }

  Status plan(const AttentionShape& shape, const AttentionBatch& batch, Workspace& workspace,
              Stream& /*stream*/) override {
    const cpu::WorkSplit split(shape, pool_.num_threads());
    StepPlan& plan = slot_for(plan_key(shape, batch));
    split.plan(batch, batch.decode, plan.decode);
    split.plan(batch, batch.prefill, plan.prefill);
    const size_t needed = ArenaLayout(shape, split.max_rows())
                              .num_bytes(pool_.num_threads(), std::max(plan.decode.num_partials,
                                                                       plan.prefill.num_partials));
    if (needed <= workspace.arena.size()) return {};
    plan.key = {};
    return internal_error(
        fmt::format("[attention] the workspace is too small; got {} bytes, expected {}",
                    workspace.arena.size(), needed));
  }

  Status run(const AttentionCall& call, Stream& /*stream*/) override {
    const PlanKey key = plan_key(*call.shape, *call.batch);
    const auto plan =
        std::find_if(plans_.begin(), plans_.end(), [&](const auto& p) { return p.key == key; });
    if (plan == plans_.end()) {
      return internal_error("[attention] run() before plan() of this batch and shape");
    }
    const cpu::WorkSplit split(*call.shape, pool_.num_threads());
    CallContext context{.call = call,
                        .plan = call.phase == Phase::kDecode ? plan->decode : plan->prefill,
                        .split = split,
                        .layout = ArenaLayout(*call.shape, split.max_rows()),
                        .base = ArenaLayout::aligned_base(call.workspace),
                        .num_threads = pool_.num_threads(),
                        .pending = pending_.data()};
    if (context.plan.items.empty()) return {};
    if (!context.plan.worth_threads) {
      run_units(context, 0);
    } else {
      pool_.run([&context](int thread_idx) { run_units(context, thread_idx); });
    }
    return {};
  }

 private:
  // The plan of this key, or else the oldest one.
  StepPlan& slot_for(const PlanKey& key) {
    const auto found =
        std::find_if(plans_.begin(), plans_.end(), [&](const auto& p) { return p.key == key; });
    const auto oldest = std::min_element(
        plans_.begin(), plans_.end(), [](const auto& a, const auto& b) { return a.age < b.age; });
    StepPlan& plan = found != plans_.end() ? *found : *oldest;
    plan.key = key;
    plan.age = ++clock_;
    return plan;
  }

  ThreadPool& pool_;
  std::vector<std::atomic<int>> pending_;
  std::array<StepPlan, kMaxPlans> plans_;
  uint64_t clock_ = 0;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_cpu_attention(ThreadPool& pool) {
  return std::make_unique<CpuAttention>(pool);
}

}  // namespace quire
