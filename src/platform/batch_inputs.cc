#include "platform/batch_inputs.h"

#include <algorithm>

#include "base/check.h"
#include "kv/kv_layout.h"
#include "sched/policy.h"

namespace quire {

PhaseRange phase_range(std::span<const SeqSpan> spans, int first, int last) {
  PhaseRange range;
  range.first_req = first;
  range.num_reqs = last - first;
  if (first == last) return range;
  range.first_token = spans[first].first_token;
  for (const SeqSpan& span : spans.subspan(first, last - first)) {
    range.num_tokens += span.num_tokens;
    range.max_q_len = std::max(range.max_q_len, span.num_tokens);
    range.max_kv_len = std::max(range.max_kv_len, span.kv_len_bound());
  }
  return range;
}

std::vector<SeqSpan> cut_drafts(const BatchPlan& plan, std::span<const int32_t> num_proposed) {
  std::vector<SeqSpan> spans = plan.spans;
  int first_token = 0;
  for (SeqSpan& span : spans) {
    if (span.decodes) {
      span.num_drafts = std::min(span.num_drafts, num_proposed[static_cast<size_t>(span.slot)]);
      span.num_tokens = 1 + span.num_drafts;
    }
    span.first_token = first_token;
    first_token += span.num_tokens;
  }
  return spans;
}

// `planned_ids` begins with the span's tokens.
void BatchInputs::add_span(std::span<const int32_t> planned_ids, const SeqSpan& span,
                           const SlotView& slot, int page_size, std::span<const int> windows) {
  // The sequence may have ended in a step whose result the host has not received. Its length then
  // stays within its blocks, and tokens before num_kept are not written again, because other
  // sequences may read the blocks.
  const int last = span.num_blocks * page_size - 1;
  const int num_kept = span.decodes ? slot.num_computed : span.num_computed;
  const int num_computed = span.decodes ? std::min(num_kept, last) : num_kept;
  QUIRE_CHECK(num_computed <= span.num_computed,
              "[platform] a slot is longer than its upper bound");
  const int kv_len = num_computed + span.num_tokens;
  for (int i = 0; i < span.num_tokens; ++i) {
    const int32_t token = planned_ids[static_cast<size_t>(i)];
    token_ids.push_back(token == kPlaceholderToken ? slot.next_tokens[i] : token);
    positions.push_back(num_computed + i);
  }
  query_start.push_back(static_cast<int32_t>(token_ids.size()));
  seq_lens.push_back(kv_len);
  kv_len_bound.push_back(span.kv_len_bound());
  // Only drafts can be beyond the slot's blocks.
  const int num_pages = std::min(num_blocks_for(kv_len, page_size), span.num_blocks);
  for (size_t t = 0; t < windows.size(); ++t) {
    TableInputs& table = tables[t];
    const std::vector<int32_t>& block_ids = slot.block_ids[t];
    for (int position = num_computed; position < kv_len; ++position) {
      const int page = position / page_size;
      table.kv_slots.push_back(position >= num_kept && page < num_pages
                                   ? int64_t{block_ids[static_cast<size_t>(page)]} * page_size +
                                         position % page_size
                                   : -1);
    }
    const size_t begin = table.block_table.size();
    table.block_table.resize(begin + static_cast<size_t>(table.attention.max_pages), 0);
    for (int page = first_page_read(num_computed, windows[t], page_size); page < num_pages;
         ++page) {
      const auto at = static_cast<size_t>(page);
      table.block_table[begin + at] = block_ids[at];
    }
  }
}

void BatchInputs::build(const BatchPlan& plan, std::span<const SeqSpan> spans,
                        std::span<const SlotView> slots, int page_size,
                        std::span<const int> windows) {
  token_ids.clear();
  positions.clear();
  query_start.assign(1, 0);
  seq_lens.clear();
  kv_len_bound.clear();
  tables.resize(windows.size());
  const int num_reqs = static_cast<int>(spans.size());
  const PhaseRange decode = phase_range(spans, 0, plan.num_decode);
  const PhaseRange prefill = phase_range(spans, plan.num_decode, num_reqs);
  const int max_kv_len = std::max(decode.max_kv_len, prefill.max_kv_len);
  for (TableInputs& table : tables) {
    table.kv_slots.clear();
    table.block_table.clear();
    table.attention.max_pages = num_blocks_for(max_kv_len, page_size);
  }
  for (int i = 0; i < num_reqs; ++i) {
    const auto first_planned = static_cast<size_t>(plan.spans[i].first_token);
    add_span(std::span(plan.token_ids).subspan(first_planned), spans[i], slots[i], page_size,
             windows);
  }
  for (TableInputs& table : tables) {
    AttentionBatch& attention = table.attention;
    attention.decode = decode;
    attention.prefill = prefill;
    attention.query_start = {query_start.data(), query_start.data()};
    attention.seq_lens = seq_lens.data();
    attention.kv_len_bound = kv_len_bound;
    attention.block_table = table.block_table.data();
    attention.kv_slots = table.kv_slots.data();
  }
}

}  // namespace quire
