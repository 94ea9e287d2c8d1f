#include "platform/tune.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire {

int AttentionWorkload::longest() const {
  return kv_lens.empty() ? 0 : *std::ranges::max_element(kv_lens);
}

int64_t num_pages(const AttentionWorkload& workload, int page_size) {
  int64_t total = 0;
  for (const int32_t kv_len : workload.kv_lens) total += ceil_div(kv_len, page_size);
  return total;
}

DecodeKey decode_key(const AttentionWorkload& workload) {
  return {.num_reqs = workload.num_reqs(),
          .max_kv_len = workload.longest(),
          .ragged = is_ragged(workload.kv_lens),
          .q_len = workload.q_len};
}

AttentionUse use_of(const AttentionWorkload& workload) {
  if (workload.phase == Phase::kPrefill) return {.phase = Phase::kPrefill};
  return decode_key(workload).use();
}

}  // namespace quire
