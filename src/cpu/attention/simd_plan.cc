#include "cpu/attention/simd_plan.h"

#include <algorithm>

#include "base/numbers.h"
#include "cpu/attention/support.h"

namespace quire::cpu {
namespace {

constexpr int64_t kPartialBytes = int64_t{32} << 20;  // upper bound for all partials of a call
constexpr int64_t kSerialMacs = 32768;  // multiply-adds; a smaller call ends before a thread wakes

}  // namespace

int64_t partial_floats(const AttentionShape& shape, int num_rows) {
  return pad_lanes(num_rows) * 2 + int64_t{num_rows} * pad_lanes(shape.head_dim_v);
}

WorkSplitter::WorkSplitter(const AttentionShape& shape, int num_threads)
    : shape_(shape),
      num_threads_(num_threads),
      group_(shape.num_heads / shape.num_kv_heads),
      queries_per_item_(std::max(1, kRowsPerItem / group_)),
      partial_budget_(kPartialBytes /
                      (partial_floats(shape, max_rows()) * static_cast<int64_t>(sizeof(float)))) {}

int64_t WorkSplitter::visible_tokens(int kv_len, int q_len, int first_query,
                                     int num_queries) const {
  const int first = visible_range(shape_, kv_len, q_len, first_query).first;
  return visible_range(shape_, kv_len, q_len, first_query + num_queries - 1).end - first;
}

// The bound includes one extra partition: the exact positions may be lower than their bound, so
// their alignment is not known here.
int WorkSplitter::partition_bound(int64_t visible) const {
  return visible <= 0 ? 0 : static_cast<int>(ceil_div(visible - 1, kPartitionTokens) + 1);
}

int64_t WorkSplitter::max_partials(int max_kv_len) const {
  if (num_threads_ == 1) return 0;
  return std::min(partial_budget_, int64_t{max_split_groups(num_threads_)} *
                                       partition_bound(std::max(1, max_kv_len)));
}

void WorkSplitter::append_split(const WorkItem& item, int num_partitions, PhasePlan& out) const {
  WorkItem part = item;
  part.num_partitions = num_partitions;
  part.first_partial = out.num_partials;
  out.num_partials += int64_t{num_partitions} * shape_.num_kv_heads;
  for (part.partition = 0; part.partition < num_partitions; ++part.partition) {
    out.items.push_back(part);
  }
}

void WorkSplitter::plan(const AttentionBatch& batch, const PhaseRange& range,
                        PhasePlan& out) const {
  out.items.clear();
  out.num_partials = 0;
  const int end_req = range.first_req + range.num_reqs;
  const int32_t* query_start = batch.query_start.host;
  const auto bound = [&](int req) { return batch.kv_len_bound[static_cast<size_t>(req)]; };
  const auto for_each_item = [&](auto&& visit) {
    for (int req = range.first_req; req < end_req; ++req) {
      const int q_len = query_start[req + 1] - query_start[req];
      const int num_items = static_cast<int>(ceil_div(q_len, queries_per_item_));
      // The loop runs backwards, because later queries attend to more positions, and long items
      // should start first.
      for (int i = num_items - 1; i >= 0; --i) {
        const int first = i * queries_per_item_;
        const int count = std::min(queries_per_item_, q_len - first);
        visit(WorkItem{.req = req, .first_query = first, .num_queries = count},
              std::max<int64_t>(1, visible_tokens(bound(req), q_len, first, count)));
      }
    }
  };

  int64_t total = 0;  // (query, position) pairs
  for_each_item(
      [&](const WorkItem& item, int64_t visible) { total += visible * item.num_queries; });
  out.uses_threads = num_threads_ > 1 &&
                     total * shape_.num_heads * (shape_.head_dim + shape_.head_dim_v) > kSerialMacs;

  const int64_t fair_share = ceil_div(total * shape_.num_kv_heads, max_split_groups(num_threads_));
  int num_splits = 0;
  for_each_item([&](WorkItem item, int64_t visible) {
    const int num_partitions = partition_bound(visible);
    const int64_t partials = int64_t{num_partitions} * shape_.num_kv_heads;
    const bool split = out.uses_threads && num_partitions > 1 && visible > kPartitionTokens &&
                       visible * item.num_queries > fair_share &&
                       out.num_partials + partials <= partial_budget_;
    if (!split) return out.items.push_back(item);
    item.split_idx = num_splits++;
    append_split(item, num_partitions, out);
  });
}

}  // namespace quire::cpu
