#include "cuda/step/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace quire::cuda {
namespace {

// How many of the plan's first appends fit into the step's block.
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

// Appends come in the order of their slices, at most one each.
void write_appends(const BatchPlan& plan, const StepLimits& limits, std::span<StepSlice> slices,
                   int32_t* pages, int32_t& num_pages) {
  size_t slice_idx = 0;
  const size_t count = num_appends_inside(plan, limits);
  for (size_t i = 0; i < count; ++i) {
    const BlockTableAppend& append = plan.block_appends[i];
    while (slice_idx < plan.slices.size() && plan.slices[slice_idx].row != append.row) ++slice_idx;
    QUIRE_CHECK(slice_idx < plan.slices.size(), "[cuda] pages are appended where tokens are");
    StepSlice& slice = slices[slice_idx];
    slice.first_page = append.first;
    slice.num_new_pages = static_cast<int32_t>(append.block_ids.size());
    slice.new_pages_at = num_pages;
    std::copy(append.block_ids.begin(), append.block_ids.end(), pages + num_pages);
    num_pages += slice.num_new_pages;
  }
}

StepSlice slice_of(const SeqSlice& from, bool for_graph, int idx, int& num_logit_rows) {
  StepSlice slice{.row = from.row,
                  .num_computed = from.num_computed,
                  .q_len = from.num_tokens,
                  .first_token = from.first_token,
                  .samples = from.samples ? 1 : 0};
  if (for_graph) {
    slice.logit_idx = idx;
  } else if (from.samples) {
    slice.logit_idx = num_logit_rows++;
  }
  return slice;
}

}  // namespace

size_t max_step_bytes(const StepLimits& limits) {
  return sizeof(StepHeader) + static_cast<size_t>(limits.max_num_seqs) * sizeof(StepSlice) +
         static_cast<size_t>(limits.max_new_pages + limits.max_num_tokens) * sizeof(int32_t);
}

size_t write_step(const BatchPlan& plan, const StepLimits& limits, int num_slices, bool for_graph,
                  std::byte* memory) {
  const auto num_real = static_cast<int>(plan.slices.size());
  QUIRE_CHECK(num_slices >= num_real && num_slices <= limits.max_num_seqs &&
                  plan.num_tokens() <= limits.max_num_tokens,
              "[cuda] a step is larger than the engine was made for");
  auto* header = reinterpret_cast<StepHeader*>(memory);
  auto* slices = reinterpret_cast<StepSlice*>(memory + sizeof(StepHeader));
  auto* words = reinterpret_cast<int32_t*>(memory);
  int num_logit_rows = 0;
  for (int i = 0; i < num_real; ++i) {
    slices[i] = slice_of(plan.slices[static_cast<size_t>(i)], for_graph, i, num_logit_rows);
  }
  for (int i = num_real; i < num_slices; ++i) {
    slices[i] = {.first_token = plan.num_tokens() + i - num_real, .logit_idx = for_graph ? i : -1};
  }
  header->num_slices = num_slices;
  header->num_tokens = plan.num_tokens() + num_slices - num_real;
  header->pages_at = static_cast<int32_t>(
      (sizeof(StepHeader) + static_cast<size_t>(num_slices) * sizeof(StepSlice)) / sizeof(int32_t));
  int32_t num_pages = 0;
  write_appends(plan, limits, {slices, static_cast<size_t>(num_slices)}, words + header->pages_at,
                num_pages);
  header->tokens_at = header->pages_at + num_pages;
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
      PagePiece piece{.row = append.row, .first = first, .num_pages = static_cast<int32_t>(count)};
      std::copy_n(left.begin(), count, piece.page_ids);
      pieces.push_back(piece);
      left = left.subspan(count);
    }
  }
  return pieces;
}

}  // namespace quire::cuda
