#include "cuda/step/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/numbers.h"
#include "model/model.h"
#include "platform/batch_inputs.h"

namespace quire::cuda {
namespace {

// The number of the plan's appends, from the first on, that fit into the packed step.
size_t num_appends_inside(const BatchPlan& plan, const StepLimits& limits) {
  size_t num_pages = 0;
  size_t count = 0;
  for (const BlockTableAppend& append : plan.block_appends) {
    num_pages += append.block_ids.size();
    if (num_pages > static_cast<size_t>(limits.max_new_pages)) break;
    ++count;
  }
  return count;
}

// Appends are in the order of their spans, at most one per span and block table.
void write_appends(std::span<const BlockTableAppend> from, std::span<const SeqSpan> of_spans,
                   std::span<StepSpan> spans, StepAppend* appends, int32_t* pages) {
  size_t span_idx = 0;
  int32_t num_pages = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const BlockTableAppend& append = from[i];
    while (span_idx < of_spans.size() && of_spans[span_idx].slot != append.slot) ++span_idx;
    QUIRE_CHECK(span_idx < of_spans.size(),
                "[cuda] pages are appended to a slot that the step does not compute");
    StepSpan& span = spans[span_idx];
    if (span.num_appends++ == 0) span.first_append = static_cast<int32_t>(i);
    appends[i] = {.table = append.table,
                  .first_page = append.first,
                  .num_pages = static_cast<int32_t>(append.block_ids.size()),
                  .pages_at = num_pages};
    std::copy(append.block_ids.begin(), append.block_ids.end(), pages + num_pages);
    num_pages += appends[i].num_pages;
  }
}

template <typename T>
int32_t num_words(size_t count) {
  return static_cast<int32_t>(count * sizeof(T) / sizeof(int32_t));
}

// The first token whose logits are sampled. For a prefill chunk it is the last token.
int sample_token(const SeqSpan& span) {
  return span.decodes ? 0 : span.num_tokens - 1;
}

// Sets everything except the logits rows.
StepSpan span_of(const SeqSpan& from) {
  return {.slot = from.slot,
          .num_computed = from.decodes ? -1 : from.num_computed,
          .q_len = from.num_tokens,
          .first_token = from.first_token,
          .token_after = from.token_after,
          .num_pages = from.num_blocks,
          .sample_token = sample_token(from),
          .num_samples = from.max_sampled()};
}

// Every token of a graph's batch has a logits row. Tokens beyond those of the plan are padding.
void lay_out_graph(const GraphBatch& graph, std::span<StepSpan> spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    const int first = static_cast<int>(i) * graph.q_len;
    spans[i].q_len = graph.q_len;
    spans[i].first_token = first;
    spans[i].first_logits_row = first;
    spans[i].num_logits_rows = graph.q_len;
  }
}

void lay_out_rows(std::span<const SampleRange> ranges, std::span<StepSpan> spans) {
  for (const SampleRange& range : ranges) {
    StepSpan& span = spans[range.span_idx];
    span.first_logits_row = range.first_row;
    span.num_logits_rows = range.num_rows;
    span.logits_token = span.sample_token;
  }
}

}  // namespace

std::vector<SampleRange> sample_ranges(const BatchPlan& plan, const GraphBatch* graph) {
  std::vector<SampleRange> ranges;
  ranges.reserve(plan.spans.size());
  int num_rows = 0;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const SeqSpan& span = plan.spans[i];
    if (!span.samples) continue;
    const int first =
        graph != nullptr ? static_cast<int>(i) * graph->q_len + sample_token(span) : num_rows;
    ranges.push_back({.span_idx = i, .first_row = first, .num_rows = span.max_sampled()});
    num_rows += span.max_sampled();
  }
  return ranges;
}

size_t max_step_bytes(const StepLimits& limits) {
  const auto seqs = static_cast<size_t>(limits.max_num_seqs);
  return sizeof(StepHeader) +
         seqs * (sizeof(StepSpan) + limits.windows.size() * sizeof(StepAppend)) +
         static_cast<size_t>(limits.max_new_pages + limits.max_num_tokens) * sizeof(int32_t);
}

size_t write_step(const BatchPlan& plan, std::span<const SampleRange> ranges,
                  const StepLimits& limits, const GraphBatch* graph, std::byte* memory) {
  const size_t num_real = plan.spans.size();
  const size_t num_spans = graph != nullptr ? static_cast<size_t>(graph->num_reqs) : num_real;
  const int num_tokens = graph != nullptr ? graph->num_tokens() : plan.num_tokens();
  QUIRE_CHECK(num_spans >= num_real && num_spans <= static_cast<size_t>(limits.max_num_seqs) &&
                  num_tokens >= plan.num_tokens() && num_tokens <= limits.max_num_tokens,
              "[cuda] a step exceeds the limits that the runner was created with");
  auto* header = reinterpret_cast<StepHeader*>(memory);
  auto* words = reinterpret_cast<int32_t*>(memory);
  const std::span spans(reinterpret_cast<StepSpan*>(memory + sizeof(StepHeader)), num_spans);
  std::ranges::transform(plan.spans, spans.begin(), span_of);
  std::fill(spans.begin() + static_cast<std::ptrdiff_t>(num_real), spans.end(), StepSpan());
  if (graph != nullptr) {
    lay_out_graph(*graph, spans);
  } else {
    lay_out_rows(ranges, spans);
  }
  header->num_spans = static_cast<int32_t>(num_spans);
  header->num_tokens = num_tokens;
  header->num_given_tokens = plan.num_tokens();
  const auto appends = std::span(plan.block_appends).first(num_appends_inside(plan, limits));
  size_t num_pages = 0;
  for (const BlockTableAppend& append : appends) num_pages += append.block_ids.size();
  header->appends_at = num_words<StepHeader>(1) + num_words<StepSpan>(num_spans);
  header->pages_at = header->appends_at + num_words<StepAppend>(appends.size());
  header->tokens_at = header->pages_at + static_cast<int32_t>(num_pages);
  write_appends(appends, plan.spans, spans,
                reinterpret_cast<StepAppend*>(words + header->appends_at),
                words + header->pages_at);
  std::copy(plan.token_ids.begin(), plan.token_ids.end(), words + header->tokens_at);
  return static_cast<size_t>(header->tokens_at + plan.num_tokens()) * sizeof(int32_t);
}

std::vector<OverflowPages> overflow_pages(const BatchPlan& plan, const StepLimits& limits) {
  std::vector<OverflowPages> overflow;
  for (size_t i = num_appends_inside(plan, limits); i < plan.block_appends.size(); ++i) {
    const BlockTableAppend& append = plan.block_appends[i];
    std::span<const int32_t> left = append.block_ids;
    for (int first = append.first; !left.empty(); first += OverflowPages::kMaxPages) {
      const size_t count = std::min(left.size(), size_t{OverflowPages::kMaxPages});
      OverflowPages pages{.slot = append.slot,
                          .table = append.table,
                          .first = first,
                          .num_pages = static_cast<int32_t>(count)};
      std::copy_n(left.begin(), count, pages.page_ids);
      overflow.push_back(pages);
      left = left.subspan(count);
    }
  }
  return overflow;
}

StepBuffers::Parts StepBuffers::lay_out(BumpAllocator allocator, const StepLimits& limits) {
  const auto seqs = static_cast<size_t>(limits.max_num_seqs);
  const auto tokens = static_cast<size_t>(limits.max_num_tokens);
  Parts parts;
  StepArrays& arrays = parts.arrays;
  const auto logit_rows = static_cast<size_t>(limits.max_num_logit_rows);
  arrays.page_size = limits.page_size;
  arrays.max_q_len = limits.decode_q_len;
  arrays.max_pages = ceil_div(limits.max_kv_len, limits.page_size);
  const size_t num_entries = seqs * static_cast<size_t>(arrays.max_pages);
  arrays.num_tables = static_cast<int>(limits.windows.size());
  for (size_t t = 0; t < limits.windows.size(); ++t) {
    arrays.tables[t] = {.window = limits.windows[t],
                        .slot_pages = allocator.allocate<int32_t>(num_entries),
                        .block_table = allocator.allocate<int32_t>(num_entries),
                        .kv_slots = allocator.allocate<int64_t>(tokens)};
  }
  arrays.token_ids = allocator.allocate<int32_t>(tokens);
  arrays.positions = allocator.allocate<int32_t>(tokens);
  arrays.query_start = allocator.allocate<int32_t>(seqs + 1);
  arrays.seq_lens = allocator.allocate<int32_t>(seqs);
  arrays.settled_lens = allocator.allocate<int32_t>(seqs);
  arrays.logit_tokens = allocator.allocate<int32_t>(logit_rows);
  arrays.sample_slots = allocator.allocate<int32_t>(logit_rows);
  arrays.sample_offsets = allocator.allocate<int32_t>(logit_rows);
  arrays.span_slots = allocator.allocate<int32_t>(seqs);
  parts.packed_step = allocator.allocate<std::byte>(max_step_bytes(limits));
  arrays.packed_step = parts.packed_step;
  parts.overflow = allocator.allocate<OverflowPages>(StepBuffers::kMaxOverflow);
  parts.num_bytes = allocator.num_bytes();
  return parts;
}

size_t StepBuffers::device_bytes(const StepLimits& limits) {
  return lay_out(BumpAllocator(), limits).num_bytes;
}

Result<StepBuffers> StepBuffers::create(const StepLimits& limits, CudaStream& stream) {
  StepBuffers buffers;
  buffers.limits_ = limits;
  QUIRE_ASSIGN_OR_RETURN(buffers.ring_, PinnedRing::create(max_step_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(buffers.overflow_ring_,
                         PinnedRing::create(kMaxOverflow * sizeof(OverflowPages)));
  const size_t num_bytes = device_bytes(limits);
  QUIRE_ASSIGN_OR_RETURN(buffers.memory_, device_memory(num_bytes));
  stream.set_zero(buffers.memory_.data(), num_bytes);
  const Parts& parts = buffers.parts_ = lay_out(BumpAllocator(buffers.memory_.data()), limits);
  // Initially all tokens have KV slot -1, so that no keys and values are written for tokens that no
  // step has described.
  for (int t = 0; t < parts.arrays.num_tables; ++t) {
    QUIRE_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
        parts.arrays.tables[t].kv_slots, 0xFF,
        static_cast<size_t>(limits.max_num_tokens) * sizeof(int64_t), stream.get()));
  }
  return buffers;
}

Status StepBuffers::upload(const BatchPlan& plan, std::span<const SampleRange> ranges,
                           const GraphBatch* graph, CudaStream& stream) {
  QUIRE_RETURN_IF_ERROR(append_overflow(plan, stream));
  QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, ring_.begin(stream));
  const size_t num_bytes = write_step(plan, ranges, limits_, graph, staging);
  stream.copy_to_device(parts_.packed_step, staging, num_bytes);
  ring_.end(stream);
  return {};
}

Status StepBuffers::append_overflow(const BatchPlan& plan, CudaStream& stream) {
  const std::vector<OverflowPages> overflow = overflow_pages(plan, limits_);
  for (size_t first = 0; first < overflow.size(); first += kMaxOverflow) {
    const size_t count = std::min(overflow.size() - first, size_t{kMaxOverflow});
    QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, overflow_ring_.begin(stream));
    std::memcpy(staging, &overflow[first], count * sizeof(OverflowPages));
    stream.copy_to_device(parts_.overflow, staging, count * sizeof(OverflowPages));
    overflow_ring_.end(stream);
    launch_append_pages(parts_.arrays, parts_.overflow, static_cast<int>(count), stream);
  }
  return {};
}

void StepBuffers::derive(int num_spans, CudaStream& stream) const {
  launch_metadata(parts_.arrays, num_spans, stream);
}

void AttentionInputs::describe(const BatchPlan& plan, const StepArrays& arrays) {
  const auto num_reqs = static_cast<int>(plan.spans.size());
  query_start_.assign(1, 0);
  kv_len_bound_.clear();
  for (const SeqSpan& span : plan.spans) {
    query_start_.push_back(span.first_token + span.num_tokens);
    kv_len_bound_.push_back(span.kv_len_bound());
  }
  batches_.assign(static_cast<size_t>(arrays.num_tables),
                  {.decode = phase_range(plan.spans, 0, plan.num_decode),
                   .prefill = phase_range(plan.spans, plan.num_decode, num_reqs),
                   .query_start = {query_start_.data(), arrays.query_start},
                   .seq_lens = arrays.seq_lens,
                   .kv_len_bound = kv_len_bound_,
                   .max_pages = arrays.max_pages,
                   .settled_lens = arrays.settled_lens});
  views_.clear();
  for (size_t t = 0; t < batches_.size(); ++t) {
    batches_[t].block_table = arrays.tables[t].block_table;
    batches_[t].kv_slots = arrays.tables[t].kv_slots;
    views_.push_back(&batches_[t]);
  }
}

void AttentionInputs::pad_to_graph(const GraphBatch& graph, int max_kv_len) {
  for (auto i = static_cast<int32_t>(query_start_.size()); i <= graph.num_reqs; ++i) {
    query_start_.push_back(i * graph.q_len);
  }
  kv_len_bound_.resize(static_cast<size_t>(graph.num_reqs), 0);
  for (AttentionBatch& batch : batches_) {
    batch.decode = {.num_reqs = graph.num_reqs,
                    .num_tokens = graph.num_tokens(),
                    .max_q_len = graph.q_len,
                    .max_kv_len = max_kv_len};
    batch.prefill = {};
    batch.query_start.host = query_start_.data();
    batch.kv_len_bound = kv_len_bound_;
  }
}

}  // namespace quire::cuda
