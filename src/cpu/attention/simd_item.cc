#include "cpu/attention/simd_item.h"

#include <algorithm>
#include <array>

#include "cpu/attention/simd_kernels.h"
#include "cpu/attention/support.h"

namespace quire::cpu {
namespace {

class ItemRun {
 public:
  ItemRun(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx)
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
    if (context_.pending[group].fetch_add(1, std::memory_order_acq_rel) + 1 <
        item_.num_partitions) {
      return;
    }
    // The last thread to finish merges the partials, in the same order as run_whole.
    context_.pending[group].store(0, std::memory_order_relaxed);
    for (int i = 1; i < end - first; ++i) {
      fold_partial(task_, shared_partial(i), shared_partial(0));
    }
    write(end > first ? shared_partial(0) : empty_result());
  }

 private:
  void make_task() {
    const AttentionCall& call = context_.call;
    const AttentionShape& shape = context_.shape;
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

  // For a row that sees no position, write_rows reads only the sum.
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

}  // namespace

void run_item(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx) {
  ItemRun(context, item, kv_head, thread_idx).run();
}

}  // namespace quire::cpu
