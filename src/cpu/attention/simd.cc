#include "cpu/attention/simd.h"

#include <atomic>

#include "base/check.h"
#include "cpu/attention/simd_arena.h"
#include "cpu/attention/simd_item.h"
#include "cpu/attention/simd_plan.h"
#include "cpu/attention/support.h"

namespace quire {
namespace {

using cpu::ArenaLayout;
using cpu::CallContext;

void run_units(CallContext& context, int thread_idx) {
  const int num_kv_heads = context.shape.num_kv_heads;
  const auto num_units = static_cast<int64_t>(context.plan.items.size()) * num_kv_heads;
  while (true) {
    const int64_t unit = context.next_unit.fetch_add(1, std::memory_order_relaxed);
    if (unit >= num_units) return;
    const cpu::WorkItem& item = context.plan.items[static_cast<size_t>(unit / num_kv_heads)];
    run_item(context, item, static_cast<int>(unit % num_kv_heads), thread_idx);
  }
}

class CpuPlan final : public AttentionPlan {
 public:
  CpuPlan(const AttentionShape& shape, const PlanLimits& limits, ThreadPool& pool)
      : shape_(shape),
        phase_(limits.use.phase),
        pool_(pool),
        split_(shape_, pool.num_threads()),
        layout_(shape_, split_.max_rows()),
        max_partials_(split_.max_partials(limits.max_kv_len)),
        pending_(static_cast<size_t>(cpu::WorkSplit::max_split_groups(pool.num_threads()))) {}

  size_t workspace_bytes() const override {
    return layout_.num_bytes(pool_.num_threads(), max_partials_);
  }

  Status update(const AttentionBatch& batch, Stream& /*stream*/) override {
    batch_ = batch;
    split_.plan(batch, batch.range(phase_), work_);
    QUIRE_CHECK(work_.num_partials <= max_partials_,
                "[attention] a context is longer than the plan was made for");
    return {};
  }

  Status run(const AttentionCall& call, Stream& /*stream*/) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes(),
                "[attention] the workspace is smaller than what the plan asked for");
    CallContext context{.shape = shape_,
                        .batch = batch_,
                        .call = call,
                        .plan = work_,
                        .split = split_,
                        .layout = layout_,
                        .base = ArenaLayout::aligned_base(call.workspace),
                        .num_threads = pool_.num_threads(),
                        .pending = pending_.data()};
    if (!work_.worth_threads) {
      run_units(context, 0);
    } else {
      pool_.run([&context](int thread_idx) { run_units(context, thread_idx); });
    }
    return {};
  }

 private:
  const AttentionShape shape_;
  const Phase phase_;
  ThreadPool& pool_;
  const cpu::WorkSplit split_;
  const ArenaLayout layout_;
  const int64_t max_partials_;
  std::vector<std::atomic<int>> pending_;
  AttentionBatch batch_;  // from the last update()
  cpu::PhasePlan work_;
};

class CpuAttention final : public AttentionBackend {
 public:
  explicit CpuAttention(ThreadPool& pool) : pool_(pool) {}

  std::string_view name() const override { return "cpu"; }

  Support supports(const AttentionShape& shape, const AttentionUse& /*use*/,
                   const Device& device) const override {
    return cpu::attention_support(shape, device);
  }

  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    return std::unique_ptr<AttentionPlan>(std::make_unique<CpuPlan>(shape, limits, pool_));
  }

 private:
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_cpu_attention(ThreadPool& pool) {
  return std::make_unique<CpuAttention>(pool);
}

}  // namespace quire
