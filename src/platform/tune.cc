#include "platform/tune.h"

#include <algorithm>
#include <random>

#include "base/numbers.h"

namespace quire {

int AttentionWorkload::longest() const {
  return kv_lens.empty() ? 0 : *std::ranges::max_element(kv_lens);
}

AttentionWorkload full_workload(Phase phase, int num_reqs, int q_len, int kv_len) {
  return {.phase = phase,
          .q_len = q_len,
          .max_kv_len = kv_len,
          .kv_lens = std::vector<int32_t>(static_cast<size_t>(num_reqs), kv_len)};
}

AttentionWorkload ragged_workload(int num_reqs, int q_len, int max_kv_len, uint64_t seed) {
  AttentionWorkload workload = full_workload(Phase::kDecode, num_reqs, q_len, max_kv_len);
  workload.ragged = true;
  std::seed_seq sizes{seed, uint64_t(num_reqs), uint64_t(max_kv_len)};
  std::mt19937_64 random(sizes);
  // Distributions of the standard library differ between implementations. The remainder's bias is
  // negligible.
  const auto range = static_cast<uint64_t>(max_kv_len - q_len + 1);
  for (int32_t& kv_len : workload.kv_lens) {
    kv_len = q_len + static_cast<int32_t>(random() % range);
  }
  return workload;
}

int64_t num_pages(const AttentionWorkload& workload, int page_size) {
  int64_t total = 0;
  for (const int32_t kv_len : workload.kv_lens) total += ceil_div(kv_len, page_size);
  return total;
}

DecodeKey workload_key(const AttentionWorkload& workload) {
  return {.num_reqs = workload.num_reqs(),
          .max_kv_len = workload.longest(),
          .ragged = is_ragged(workload.kv_lens),
          .q_len = workload.q_len};
}

AttentionUse use_of(const AttentionWorkload& workload) {
  if (workload.phase == Phase::kPrefill) return {.phase = Phase::kPrefill};
  return workload_key(workload).use();
}

TuningPoint tuning_point(const AttentionShape& shape, const AttentionWorkload& workload) {
  return tuning_point(shape, workload.phase, workload.num_reqs(), workload.q_len,
                      workload.max_kv_len, workload.ragged);
}

std::vector<TuningRow> tuning_rows(const AttentionShape& shape, const AttentionWorkload& workload,
                                   const MeasuredWorkload& measured) {
  std::vector<TuningRow> rows;
  for (const AttentionTimes& times : measured.times) {
    if (!times.status.ok()) continue;
    rows.push_back({tuning_point(shape, workload), std::string(times.backend), times.graph_us});
  }
  return rows;
}

}  // namespace quire
