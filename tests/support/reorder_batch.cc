#include "support/reorder_batch.h"

#include <algorithm>

#include "base/check.h"

namespace quire::testing {
namespace {

// The query length of the decode requests; 0: no request is decode.
int pick_decode_q_len(std::span<const int32_t> q_lens, int max_decode_q_len) {
  std::vector<int> num_reqs(static_cast<size_t>(std::max(0, max_decode_q_len)) + 1, 0);
  for (const int32_t q_len : q_lens) {
    if (q_len >= 1 && q_len <= max_decode_q_len) ++num_reqs[static_cast<size_t>(q_len)];
  }
  int best = 0;
  for (int q_len = 1; q_len <= max_decode_q_len; ++q_len) {
    const int count = num_reqs[static_cast<size_t>(q_len)];
    if (count > 0 && count >= num_reqs[static_cast<size_t>(best)]) best = q_len;
  }
  return best;
}

PhaseRange describe_range(std::span<const int32_t> order, std::span<const int32_t> q_lens,
                          std::span<const int32_t> kv_lens, int first_req, int first_token) {
  PhaseRange range{.first_req = first_req,
                   .num_reqs = static_cast<int>(order.size()),
                   .first_token = first_token};
  for (const int32_t req : order) {
    const int q_len = q_lens[static_cast<size_t>(req)];
    range.num_tokens += q_len;
    range.max_q_len = std::max(range.max_q_len, q_len);
    range.max_kv_len = std::max(range.max_kv_len, kv_lens[static_cast<size_t>(req)]);
  }
  return range;
}

}  // namespace

BatchOrder reorder_batch(std::span<const int32_t> q_lens, std::span<const int32_t> kv_lens,
                         int max_decode_q_len) {
  QUIRE_CHECK(q_lens.size() == kv_lens.size(), "one kv_len for each q_len");
  const int decode_q_len = pick_decode_q_len(q_lens, max_decode_q_len);
  BatchOrder result;
  result.order.resize(q_lens.size());
  for (size_t i = 0; i < q_lens.size(); ++i) result.order[i] = static_cast<int32_t>(i);
  const auto is_decode = [&](int32_t req) {
    return decode_q_len > 0 && q_lens[static_cast<size_t>(req)] == decode_q_len;
  };
  const auto middle = std::stable_partition(result.order.begin(), result.order.end(), is_decode);
  const std::span<const int32_t> order = result.order;
  const auto num_decode = static_cast<size_t>(middle - result.order.begin());
  result.decode = describe_range(order.first(num_decode), q_lens, kv_lens, 0, 0);
  result.prefill = describe_range(order.subspan(num_decode), q_lens, kv_lens,
                                  result.decode.num_reqs, result.decode.num_tokens);
  return result;
}

}  // namespace quire::testing
