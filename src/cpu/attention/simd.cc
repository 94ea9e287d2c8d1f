#include "cpu/attention/simd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "cpu/attention/simd_kernels.h"
#include "cpu/attention/simd_plan.h"
#include "cpu/attention/support.h"

namespace quire {
namespace {

using cpu::AttentionTask;
using cpu::pad_lanes;
using cpu::Partial;
using cpu::TaskScratch;
using cpu::WorkItem;

constexpr int kMaxPlans = 16;  // live at once: KV groups times batches in flight

// The arena, cut: scratch of each thread, then the partials of split items.
class ArenaLayout {
 public:
  ArenaLayout(const AttentionShape& shape, int max_rows)
      : max_rows_(max_rows),
        q_(max_rows * pad_lanes(shape.head_dim)),
        scores_(int64_t{max_rows} * cpu::kTileTokens),
        sums_(int64_t{max_rows} * cpu::kMaxLanes),
        block_(cpu::kBlockTokens * pad_lanes(std::max(shape.head_dim, shape.head_dim_v))),
        partial_(cpu::partial_floats(shape, max_rows)) {}

  size_t num_bytes(int num_threads, int64_t num_partials) const {
    const int64_t floats = num_threads * thread_floats() + num_partials * partial_;
    return static_cast<size_t>(floats) * sizeof(float) + kAlignment;
  }
  static float* aligned_base(const Workspace& workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace.arena.data());
    return reinterpret_cast<float*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }

  TaskScratch scratch(float* base, int thread_idx) const {
    float* q = base + thread_idx * thread_floats();
    return {q, q + q_, q + q_ + scores_, q + q_ + scores_ + sums_};
  }
  // A thread's own: the running result and the partition at hand.
  Partial running(float* base, int thread_idx, int which) const {
    return partial_at(base + thread_idx * thread_floats() + q_ + scores_ + sums_ + block_ +
                      which * partial_);
  }
  Partial shared_partial(float* base, int num_threads, int64_t idx) const {
    return partial_at(base + num_threads * thread_floats() + idx * partial_);
  }

 private:
  static constexpr size_t kAlignment = 64;

  int64_t thread_floats() const { return q_ + scores_ + sums_ + block_ + 2 * partial_; }
  Partial partial_at(float* at) const {
    return {at, at + pad_lanes(max_rows_), at + 2 * pad_lanes(max_rows_)};
  }

  int max_rows_;
  int64_t q_, scores_, sums_, block_, partial_;
};

// What one call needs at hand on every thread.
struct CallContext {
  const AttentionCall& call;
  const cpu::PhasePlan& plan;
  const cpu::WorkSplit& split;
  ArenaLayout layout;
  float* base;
  int num_threads;
  std::atomic<int>* pending;  // of each split group, zero between calls
  std::atomic<int64_t> next_unit = 0;
};

// One item for one KV head, on one thread.
class ItemRun {
 public:
  ItemRun(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx)
      : context_(context), item_(item), kv_head_(kv_head), thread_idx_(thread_idx) {
    const AttentionBatch& batch = *context.call.batch;
    first_token_ = batch.query_start.host[item.req] + item.first_query;
    const int q_len = batch.query_start.host[item.req + 1] - batch.query_start.host[item.req];
    for (int i = 0; i < item.num_queries; ++i) {
      visible_[static_cast<size_t>(i)] = cpu::visible_range(
          *context.call.shape, batch.seq_lens[item.req], q_len, item.first_query + i);
    }
    make_task();
  }

  void run() {
    const bool any = task_.first_position() < task_.end_position();
    const int first = task_.first_position() / cpu::kPartitionTokens;
    const int end = any ? (task_.end_position() - 1) / cpu::kPartitionTokens + 1 : first;
    if (item_.partition < 0) return run_whole(first, end);
    const int partition = first + item_.partition;
    if (partition < end) {
      cpu::load_queries(task_);
      cpu::attend_partition(task_, partition, shared_partial(item_.partition));
    }
    const int64_t group = int64_t{item_.split_idx} * context_.call.shape->num_kv_heads + kv_head_;
    if (context_.pending[group].fetch_add(1, std::memory_order_acq_rel) + 1 <
        item_.num_partitions) {
      return;
    }
    // The last one to arrive folds, in the order in which run_whole does.
    context_.pending[group].store(0, std::memory_order_relaxed);
    for (int i = 1; i < end - first; ++i) {
      cpu::fold_partial(task_, shared_partial(i), shared_partial(0));
    }
    write(end > first ? shared_partial(0) : empty_result());
  }

 private:
  void make_task() {
    const AttentionCall& call = context_.call;
    const AttentionShape& shape = *call.shape;
    const int group = context_.split.group();
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
             .kv = call.kv,
             .pages = call.batch->block_table + item_.req * call.batch->max_pages,
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
    cpu::load_queries(task_);
    const Partial result = context_.layout.running(context_.base, thread_idx_, 0);
    const Partial next = context_.layout.running(context_.base, thread_idx_, 1);
    cpu::attend_partition(task_, first, result);
    for (int partition = first + 1; partition < end; ++partition) {
      cpu::attend_partition(task_, partition, next);
      cpu::fold_partial(task_, next, result);
    }
    write(result);
  }

  Partial shared_partial(int partition) const {
    const int64_t idx = item_.first_partial + int64_t{kv_head_} * item_.num_partitions + partition;
    return context_.layout.shared_partial(context_.base, context_.num_threads, idx);
  }

  // Only sums are read of a row that saw nothing.
  Partial empty_result() const {
    const Partial result = context_.layout.running(context_.base, thread_idx_, 0);
    std::fill_n(result.sum, task_.num_rows(), 0.0F);
    return result;
  }

  void write(const Partial& result) const {
    const AttentionCall& call = context_.call;
    const AttentionShape& shape = *call.shape;
    const int64_t first_head = int64_t{kv_head_} * task_.group;
    const int64_t row = int64_t{first_token_} * shape.num_heads + first_head;
    cpu::write_rows(task_, result,
                    {.out = call.out.as<float>() + row * shape.head_dim_v,
                     .out_token_stride = int64_t{shape.num_heads} * shape.head_dim_v,
                     .lse = call.lse == nullptr ? nullptr : call.lse + row,
                     .lse_token_stride = shape.num_heads,
                     .sinks = shape.sinks ? call.sinks + first_head : nullptr,
                     .v_scale = v_scale_});
  }

  const CallContext& context_;
  const WorkItem& item_;
  int kv_head_;
  int thread_idx_;
  int first_token_ = 0;
  float v_scale_ = 1.0F;
  std::array<cpu::VisibleRange, cpu::kRowsPerItem> visible_;
  AttentionTask task_ = {};
};

void run_units(CallContext& context, int thread_idx) {
  const int num_kv_heads = context.call.shape->num_kv_heads;
  const auto num_units = static_cast<int64_t>(context.plan.items.size()) * num_kv_heads;
  while (true) {
    const int64_t unit = context.next_unit.fetch_add(1, std::memory_order_relaxed);
    if (unit >= num_units) return;
    const WorkItem& item = context.plan.items[static_cast<size_t>(unit / num_kv_heads)];
    ItemRun(context, item, static_cast<int>(unit % num_kv_heads), thread_idx).run();
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

  Status plan(const AttentionShape& shape, const AttentionBatch& batch,
              Workspace& workspace) override {
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
