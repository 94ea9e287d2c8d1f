#include "cpu/attention/simd.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "cpu/attention/simd_kernels.h"
#include "cpu/attention/simd_plan.h"
#include "cpu/attention/support.h"

namespace quire {
namespace cpu {
namespace {

// The state of one call. All threads read it.
struct CallContext {
  const AttentionShape& shape;
  const AttentionBatch& batch;
  const AttentionCall& call;
  const PhasePlan& plan;
  const WorkSplitter& splitter;
  ArenaLayout layout;
  float* base;
  int num_threads;
  // Finished partitions of each split item and KV head; zero between calls.
  std::atomic<int>* num_finished;
  std::atomic<int64_t> next_unit = 0;  // units are numbered by item, then by KV head
};

// A unit is one item of the plan for one KV head; one thread computes it. The thread that finishes
// the last partition of a split item also merges the partials and writes the output.
class WorkUnit {
 public:
  WorkUnit(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx)
      : context_(context), item_(item), kv_head_(kv_head), thread_idx_(thread_idx) {
    const AttentionBatch& batch = context.batch;
    first_token_ = batch.query_start.host[item.req] + item.first_query;
    const int q_len = batch.query_start.host[item.req + 1] - batch.query_start.host[item.req];
    for (int i = 0; i < item.num_queries; ++i) {
      visible_[static_cast<size_t>(i)] =
          visible_range(context.shape, batch.seq_lens[item.req], q_len, item.first_query + i);
    }
    make_task();
  }

  void run() {
    const bool any = task_.first_position() < task_.end_position();
    const int first = task_.first_position() / kPartitionTokens;
    const int end = any ? (task_.end_position() - 1) / kPartitionTokens + 1 : first;
    if (item_.partition < 0) return run_whole(first, end);
    const int partition = first + item_.partition;
    if (partition < end) {
      load_queries(task_);
      attend_partition(task_, partition, shared_partial(item_.partition));
    }
    const int64_t group = int64_t{item_.split_idx} * context_.shape.num_kv_heads + kv_head_;
    if (context_.num_finished[group].fetch_add(1, std::memory_order_acq_rel) + 1 <
        item_.num_partitions) {
      return;
    }
    // The last thread that finishes merges the partials, in the same order as run_whole().
    context_.num_finished[group].store(0, std::memory_order_relaxed);
    for (int i = 1; i < end - first; ++i) {
      fold_partial(task_, shared_partial(i), shared_partial(0));
    }
    write(end > first ? shared_partial(0) : empty_result());
  }

 private:
  void make_task() {
    const AttentionCall& call = context_.call;
    const AttentionShape& shape = context_.shape;
    const int group = context_.splitter.group();
    const auto element_bytes = static_cast<int64_t>(dtype_bytes(call.kv.dtype));
    const bool fp8 = call.kv.dtype == DType::kF8E4M3;
    const int64_t first_head = int64_t{kv_head_} * group;
    task_ = {.q = call.q.as<const float>() +
                  (int64_t{first_token_} * shape.num_heads + first_head) * shape.head_dim,
             .q_token_stride = int64_t{shape.num_heads} * shape.head_dim,
             .num_queries = item_.num_queries,
             .group = group,
             .head_dim = shape.head_dim,
             .head_dim_v = shape.head_dim_v,
             .is_latent = shape.is_latent,
             .kv = call.kv,
             .pages = context_.batch.block_table + item_.req * context_.batch.max_pages,
             .page_size = shape.page_size,
             .visible = visible_.data(),
             .score_scale = shape.scale * (fp8 && call.kv.k_scale ? *call.kv.k_scale : 1.0F),
             .softcap = shape.softcap,
             .scratch = context_.layout.scratch(context_.base, thread_idx_)};
    task_.kv.k = static_cast<char*>(call.kv.k) + kv_head_ * call.kv.head_stride_k * element_bytes;
    task_.kv.v = static_cast<char*>(call.kv.v) + kv_head_ * call.kv.head_stride_v * element_bytes;
    v_scale_ = fp8 && call.kv.v_scale ? *call.kv.v_scale : 1.0F;
  }

  void run_whole(int first, int end) {
    if (first == end) return write(empty_result());
    load_queries(task_);
    const Partial result = context_.layout.running(context_.base, thread_idx_, 0);
    const Partial next = context_.layout.running(context_.base, thread_idx_, 1);
    attend_partition(task_, first, result);
    for (int partition = first + 1; partition < end; ++partition) {
      attend_partition(task_, partition, next);
      fold_partial(task_, next, result);
    }
    write(result);
  }

  Partial shared_partial(int partition) const {
    const int64_t idx = item_.first_partial + int64_t{kv_head_} * item_.num_partitions + partition;
    return context_.layout.shared_partial(context_.base, context_.num_threads, idx);
  }

  // For a row without a visible position, write_rows reads only `sum`.
  Partial empty_result() const {
    const Partial result = context_.layout.running(context_.base, thread_idx_, 0);
    std::fill_n(result.sum, task_.num_rows(), 0.0F);
    return result;
  }

  void write(const Partial& result) const {
    const AttentionCall& call = context_.call;
    const AttentionShape& shape = context_.shape;
    const int64_t first_head = int64_t{kv_head_} * task_.group;
    const int64_t row = int64_t{first_token_} * shape.num_heads + first_head;
    write_rows(task_, result,
               {.out = call.out.as<float>() + row * shape.head_dim_v,
                .out_token_stride = int64_t{shape.num_heads} * shape.head_dim_v,
                .sinks = shape.sinks ? call.sinks + first_head : nullptr,
                .v_scale = v_scale_});
  }

  const CallContext& context_;
  const WorkItem& item_;
  int kv_head_;
  int thread_idx_;
  int first_token_ = 0;
  float v_scale_ = 1.0F;
  std::array<VisibleRange, kRowsPerItem> visible_;
  AttentionTask task_ = {};
};

void run_units(CallContext& context, int thread_idx) {
  const int num_kv_heads = context.shape.num_kv_heads;
  const auto num_units = static_cast<int64_t>(context.plan.items.size()) * num_kv_heads;
  while (true) {
    const int64_t unit = context.next_unit.fetch_add(1, std::memory_order_relaxed);
    if (unit >= num_units) return;
    const WorkItem& item = context.plan.items[static_cast<size_t>(unit / num_kv_heads)];
    WorkUnit(context, item, static_cast<int>(unit % num_kv_heads), thread_idx).run();
  }
}

class CpuPlan final : public AttentionPlan {
 public:
  CpuPlan(const AttentionShape& shape, const PlanLimits& limits, ThreadPool& pool)
      : shape_(shape),
        phase_(limits.use.phase),
        pool_(pool),
        splitter_(shape_, pool.num_threads()),
        layout_(shape_, splitter_.max_rows()),
        max_partials_(splitter_.max_partials(limits.max_kv_len)),
        num_finished_(static_cast<size_t>(WorkSplitter::max_split_groups(pool.num_threads()))) {}

  size_t workspace_bytes() const override {
    return layout_.num_bytes(pool_.num_threads(), max_partials_);
  }

  Status update(const AttentionBatch& batch, Stream& /*stream*/) override {
    batch_ = batch;
    splitter_.plan(batch, batch.range(phase_), plan_);
    QUIRE_CHECK(plan_.num_partials <= max_partials_,
                "[attention] a context is longer than the plan's max_kv_len");
    return {};
  }

  Status run(const AttentionCall& call, Stream& /*stream*/) override {
    QUIRE_CHECK(call.workspace.size() >= workspace_bytes(),
                "[attention] the workspace is smaller than workspace_bytes()");
    CallContext context{.shape = shape_,
                        .batch = batch_,
                        .call = call,
                        .plan = plan_,
                        .splitter = splitter_,
                        .layout = layout_,
                        .base = ArenaLayout::aligned_base(call.workspace),
                        .num_threads = pool_.num_threads(),
                        .num_finished = num_finished_.data()};
    if (!plan_.uses_threads) {
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
  const WorkSplitter splitter_;
  const ArenaLayout layout_;
  const int64_t max_partials_;
  std::vector<std::atomic<int>> num_finished_;
  AttentionBatch batch_;  // from the last update()
  PhasePlan plan_;
};

class CpuAttention final : public AttentionBackend {
 public:
  explicit CpuAttention(ThreadPool& pool) : pool_(pool) {}

  std::string_view name() const override { return "cpu"; }

  Support supports(const AttentionShape& shape, const AttentionUse& /*use*/,
                   const Device& device) const override {
    return attention_support(shape, device);
  }

  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    return std::unique_ptr<AttentionPlan>(std::make_unique<CpuPlan>(shape, limits, pool_));
  }

 private:
  ThreadPool& pool_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<AttentionBackend> make_cpu_attention(ThreadPool& pool) {
  return std::make_unique<cpu::CpuAttention>(pool);
}

}  // namespace quire
