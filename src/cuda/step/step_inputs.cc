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

// Appends are in the order of their slices, at most one per slice and block table.
void write_appends(std::span<const BlockTableAppend> from, std::span<const SeqSlice> of_slices,
                   std::span<StepSlice> slices, StepAppend* appends, int32_t* pages) {
  size_t slice_idx = 0;
  int32_t num_pages = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const BlockTableAppend& append = from[i];
    while (slice_idx < of_slices.size() && of_slices[slice_idx].row != append.row) ++slice_idx;
    QUIRE_CHECK(slice_idx < of_slices.size(), "[cuda] pages are appended where tokens are");
    StepSlice& slice = slices[slice_idx];
    if (slice.num_appends++ == 0) slice.first_append = static_cast<int32_t>(i);
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
int sample_token(const SeqSlice& slice) {
  return slice.decodes ? 0 : slice.num_tokens - 1;
}

// Sets everything except the logits rows.
StepSlice slice_of(const SeqSlice& from) {
  return {.row = from.row,
          .num_computed = from.decodes ? -1 : from.num_computed,
          .q_len = from.num_tokens,
          .first_token = from.first_token,
          .num_pages = from.num_blocks,
          .sample_token = sample_token(from),
          .num_samples = from.max_sampled()};
}

// Every token of a graph's batch has a logits row, and the tokens after the plan's are padding.
void lay_out_graph(const GraphBatch& graph, std::span<StepSlice> slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    const int first = static_cast<int>(i) * graph.q_len;
    slices[i].q_len = graph.q_len;
    slices[i].first_token = first;
    slices[i].first_logits_row = first;
    slices[i].num_logits_rows = graph.q_len;
  }
}

void lay_out_rows(std::span<const SampleRange> ranges, std::span<StepSlice> slices) {
  for (const SampleRange& range : ranges) {
    StepSlice& slice = slices[range.slice_idx];
    slice.first_logits_row = range.first_row;
    slice.num_logits_rows = range.num_rows;
    slice.logits_token = slice.sample_token;
  }
}

}  // namespace

std::vector<SampleRange> sample_ranges(const BatchPlan& plan, const GraphBatch* graph) {
  std::vector<SampleRange> ranges;
  ranges.reserve(plan.slices.size());
  int num_rows = 0;
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    const SeqSlice& slice = plan.slices[i];
    if (!slice.samples) continue;
    const int first =
        graph != nullptr ? static_cast<int>(i) * graph->q_len + sample_token(slice) : num_rows;
    ranges.push_back({.slice_idx = i, .first_row = first, .num_rows = slice.max_sampled()});
    num_rows += slice.max_sampled();
  }
  return ranges;
}

size_t max_step_bytes(const StepLimits& limits) {
  const auto seqs = static_cast<size_t>(limits.max_num_seqs);
  return sizeof(StepHeader) +
         seqs * (sizeof(StepSlice) + limits.windows.size() * sizeof(StepAppend)) +
         static_cast<size_t>(limits.max_new_pages + limits.max_num_tokens) * sizeof(int32_t);
}

size_t write_step(const BatchPlan& plan, const StepLimits& limits, const GraphBatch* graph,
                  std::byte* memory) {
  const size_t num_real = plan.slices.size();
  const size_t num_slices = graph != nullptr ? static_cast<size_t>(graph->num_reqs) : num_real;
  const int num_tokens = graph != nullptr ? graph->num_reqs * graph->q_len : plan.num_tokens();
  QUIRE_CHECK(num_slices >= num_real && num_slices <= static_cast<size_t>(limits.max_num_seqs) &&
                  num_tokens >= plan.num_tokens() && num_tokens <= limits.max_num_tokens,
              "[cuda] a step is larger than the engine was made for");
  auto* header = reinterpret_cast<StepHeader*>(memory);
  auto* words = reinterpret_cast<int32_t*>(memory);
  const std::span slices(reinterpret_cast<StepSlice*>(memory + sizeof(StepHeader)), num_slices);
  std::ranges::transform(plan.slices, slices.begin(), slice_of);
  std::fill(slices.begin() + static_cast<std::ptrdiff_t>(num_real), slices.end(), StepSlice());
  if (graph != nullptr) {
    lay_out_graph(*graph, slices);
  } else {
    lay_out_rows(sample_ranges(plan, nullptr), slices);
  }
  header->num_slices = static_cast<int32_t>(num_slices);
  header->num_tokens = num_tokens;
  const auto appends = std::span(plan.block_appends).first(num_appends_inside(plan, limits));
  size_t num_pages = 0;
  for (const BlockTableAppend& append : appends) num_pages += append.block_ids.size();
  header->appends_at = num_words<StepHeader>(1) + num_words<StepSlice>(num_slices);
  header->pages_at = header->appends_at + num_words<StepAppend>(appends.size());
  header->tokens_at = header->pages_at + static_cast<int32_t>(num_pages);
  write_appends(appends, plan.slices, slices,
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
      PagePiece piece{.row = append.row,
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
