#include "cuda/step/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace quire::cuda {
namespace {

// The number of the plan's first appends that fit into the step's block.
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
    QUIRE_CHECK(span_idx < of_spans.size(), "[cuda] pages are appended where tokens are");
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
          .num_pages = from.num_blocks,
          .sample_token = sample_token(from),
          .num_samples = from.max_sampled()};
}

// Every token of a graph's batch has a logits row, and the tokens after the plan's are padding.
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

size_t write_step(const BatchPlan& plan, const StepLimits& limits, const GraphBatch* graph,
                  std::byte* memory) {
  const size_t num_real = plan.spans.size();
  const size_t num_spans = graph != nullptr ? static_cast<size_t>(graph->num_reqs) : num_real;
  const int num_tokens = graph != nullptr ? graph->num_reqs * graph->q_len : plan.num_tokens();
  QUIRE_CHECK(num_spans >= num_real && num_spans <= static_cast<size_t>(limits.max_num_seqs) &&
                  num_tokens >= plan.num_tokens() && num_tokens <= limits.max_num_tokens,
              "[cuda] a step is larger than the engine was made for");
  auto* header = reinterpret_cast<StepHeader*>(memory);
  auto* words = reinterpret_cast<int32_t*>(memory);
  const std::span spans(reinterpret_cast<StepSpan*>(memory + sizeof(StepHeader)), num_spans);
  std::ranges::transform(plan.spans, spans.begin(), span_of);
  std::fill(spans.begin() + static_cast<std::ptrdiff_t>(num_real), spans.end(), StepSpan());
  if (graph != nullptr) {
    lay_out_graph(*graph, spans);
  } else {
    lay_out_rows(sample_ranges(plan, nullptr), spans);
  }
  header->num_spans = static_cast<int32_t>(num_spans);
  header->num_tokens = num_tokens;
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

std::vector<PagePiece> pages_ahead(const BatchPlan& plan, const StepLimits& limits) {
  std::vector<PagePiece> pieces;
  for (size_t i = num_appends_inside(plan, limits); i < plan.block_appends.size(); ++i) {
    const BlockTableAppend& append = plan.block_appends[i];
    std::span<const int32_t> left = append.block_ids;
    for (int first = append.first; !left.empty(); first += PagePiece::kMaxPages) {
      const size_t count = std::min(left.size(), size_t{PagePiece::kMaxPages});
      PagePiece piece{.slot = append.slot,
                      .table = append.table,
                      .first = first,
                      .num_pages = static_cast<int32_t>(count)};
      std::copy_n(left.begin(), count, piece.page_ids);
      pieces.push_back(piece);
      left = left.subspan(count);
    }
  }
  return pieces;
}

}  // namespace quire::cuda
