#include "platform/batch_inputs.h"

#include <algorithm>

#include "base/check.h"

namespace quire {

PhaseRange phase_range(std::span<const SeqSlice> slices, int first, int last) {
  PhaseRange range;
  range.first_req = first;
  range.num_reqs = last - first;
  if (first == last) return range;
  range.first_token = slices[first].first_token;
  range.uniform_q = true;
  for (const SeqSlice& slice : slices.subspan(first, last - first)) {
    range.num_tokens += slice.num_tokens;
    range.uniform_q &= slice.num_tokens == slices[first].num_tokens;
    range.max_q_len = std::max(range.max_q_len, slice.num_tokens);
    range.max_kv_len = std::max(range.max_kv_len, slice.num_computed + slice.num_tokens);
  }
  return range;
}

void BatchInputs::add_slice(const BatchPlan& plan, const SeqSlice& slice, const RowView& row,
                            int page_size) {
  const int kv_len = slice.num_computed + slice.num_tokens;
  const auto num_pages = static_cast<size_t>((kv_len + page_size - 1) / page_size);
  QUIRE_CHECK(num_pages <= row.block_ids.size(), "[engine] a slice is longer than its blocks");
  for (int i = 0; i < slice.num_tokens; ++i) {
    const int32_t token = plan.token_ids[static_cast<size_t>(slice.first_token + i)];
    const int position = slice.num_computed + i;
    token_ids.push_back(token == kPlaceholderToken ? row.last_token : token);
    positions.push_back(position);
    const int64_t page = row.block_ids[static_cast<size_t>(position / page_size)];
    slot_mapping.push_back(page * page_size + position % page_size);
  }
  query_start.push_back(static_cast<int32_t>(token_ids.size()));
  seq_lens.push_back(kv_len);
  const size_t row_begin = block_table.size();
  block_table.insert(block_table.end(), row.block_ids.begin(),
                     row.block_ids.begin() + static_cast<std::ptrdiff_t>(num_pages));
  // The rest of the row points at page 0: zeroed, never written.
  block_table.resize(row_begin + static_cast<size_t>(attention.max_pages), 0);
}

void BatchInputs::build(const BatchPlan& plan, std::span<const RowView> rows, int page_size) {
  token_ids.clear();
  positions.clear();
  slot_mapping.clear();
  query_start.assign(1, 0);
  seq_lens.clear();
  block_table.clear();
  const int num_reqs = static_cast<int>(plan.slices.size());
  attention.decode = phase_range(plan.slices, 0, plan.num_decode);
  attention.prefill = phase_range(plan.slices, plan.num_decode, num_reqs);
  const int max_kv_len = std::max(attention.decode.max_kv_len, attention.prefill.max_kv_len);
  attention.max_pages = (max_kv_len + page_size - 1) / page_size;
  for (int i = 0; i < num_reqs; ++i) add_slice(plan, plan.slices[i], rows[i], page_size);
  attention.query_start = {query_start.data(), query_start.data()};
  attention.seq_lens = seq_lens.data();
  attention.kv_len_bound = seq_lens;
  attention.block_table = block_table.data();
  attention.slot_mapping = slot_mapping.data();
}

}  // namespace quire
