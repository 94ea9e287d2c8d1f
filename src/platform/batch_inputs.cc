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
  for (const SeqSlice& slice : slices.subspan(first, last - first)) {
    range.num_tokens += slice.num_tokens;
    range.max_q_len = std::max(range.max_q_len, slice.num_tokens);
    range.max_kv_len = std::max(range.max_kv_len, slice.kv_len_bound());
  }
  return range;
}

void BatchInputs::add_slice(const BatchPlan& plan, const SeqSlice& slice, const RowView& row,
                            int page_size) {
  // A sequence that has ended in a step that the host has not seen is not longer than its blocks.
  const int last = slice.num_blocks * page_size - 1;
  const int num_computed = slice.decodes ? std::min(row.num_computed, last) : slice.num_computed;
  QUIRE_CHECK(num_computed <= slice.num_computed, "[engine] a row is longer than its upper bound");
  const int kv_len = num_computed + slice.num_tokens;
  // Only drafts may lie behind the row's blocks; those pages are the padding page.
  const auto num_pages = std::min(static_cast<size_t>((kv_len + page_size - 1) / page_size),
                                  static_cast<size_t>(slice.num_blocks));
  for (int i = 0; i < slice.num_tokens; ++i) {
    const int32_t token = plan.token_ids[static_cast<size_t>(slice.first_token + i)];
    const int position = num_computed + i;
    const auto page_idx = static_cast<size_t>(position / page_size);
    token_ids.push_back(token == kPlaceholderToken ? row.next_tokens[i] : token);
    positions.push_back(position);
    slot_mapping.push_back(page_idx < num_pages
                               ? int64_t{row.block_ids[page_idx]} * page_size + position % page_size
                               : -1);
  }
  query_start.push_back(static_cast<int32_t>(token_ids.size()));
  seq_lens.push_back(kv_len);
  kv_len_bound.push_back(slice.kv_len_bound());
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
  kv_len_bound.clear();
  block_table.clear();
  const int num_reqs = static_cast<int>(plan.slices.size());
  attention.decode = phase_range(plan.slices, 0, plan.num_decode);
  attention.prefill = phase_range(plan.slices, plan.num_decode, num_reqs);
  const int max_kv_len = std::max(attention.decode.max_kv_len, attention.prefill.max_kv_len);
  attention.max_pages = (max_kv_len + page_size - 1) / page_size;
  for (int i = 0; i < num_reqs; ++i) add_slice(plan, plan.slices[i], rows[i], page_size);
  attention.query_start = {query_start.data(), query_start.data()};
  attention.seq_lens = seq_lens.data();
  attention.kv_len_bound = kv_len_bound;
  attention.block_table = block_table.data();
  attention.slot_mapping = slot_mapping.data();
}

}  // namespace quire
