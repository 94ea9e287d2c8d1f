#include "cuda/step/step_buffers.h"

#include <algorithm>
#include <cstring>

#include "base/numbers.h"
#include "cuda/base/memory.h"
#include "platform/batch_inputs.h"

namespace quire::cuda {
namespace {

struct Parts {
  StepArrays arrays = {};
  std::byte* block = nullptr;
  PagePiece* ahead = nullptr;
  size_t num_bytes = 0;
};

Parts lay_out(BumpAllocator allocator, const StepLimits& limits) {
  const auto seqs = static_cast<size_t>(limits.max_num_seqs);
  const auto tokens = static_cast<size_t>(limits.max_num_tokens);
  Parts parts;
  StepArrays& arrays = parts.arrays;
  const auto logit_rows = static_cast<size_t>(limits.max_num_logit_rows);
  arrays.page_size = limits.page_size;
  arrays.q_len = limits.decode_q_len;
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
  arrays.logit_tokens = allocator.allocate<int32_t>(logit_rows);
  arrays.sample_slots = allocator.allocate<int32_t>(logit_rows);
  arrays.sample_offsets = allocator.allocate<int32_t>(logit_rows);
  arrays.span_slots = allocator.allocate<int32_t>(seqs);
  parts.block = allocator.allocate<std::byte>(max_step_bytes(limits));
  arrays.step = parts.block;
  parts.ahead = allocator.allocate<PagePiece>(StepBuffers::kMaxPieces);
  parts.num_bytes = allocator.num_bytes();
  return parts;
}

}  // namespace

size_t StepBuffers::device_bytes(const StepLimits& limits) {
  return lay_out(BumpAllocator(), limits).num_bytes;
}

Result<StepBuffers> StepBuffers::create(const StepLimits& limits, CudaStream& stream) {
  StepBuffers buffers;
  buffers.limits_ = limits;
  QUIRE_ASSIGN_OR_RETURN(buffers.ring_, PinnedRing::create(max_step_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(buffers.ahead_ring_, PinnedRing::create(kMaxPieces * sizeof(PagePiece)));
  const size_t num_bytes = device_bytes(limits);
  QUIRE_ASSIGN_OR_RETURN(buffers.memory_, device_memory(num_bytes));
  stream.set_zero(buffers.memory_.data(), num_bytes);
  const Parts parts = lay_out(BumpAllocator(buffers.memory_.data()), limits);
  buffers.block_ = parts.block;
  buffers.ahead_ = parts.ahead;
  buffers.arrays_ = parts.arrays;
  // Until a step describes a token, its staging is -1, so that its keys and values are not written.
  for (int t = 0; t < buffers.arrays_.num_tables; ++t) {
    QUIRE_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
        buffers.arrays_.tables[t].kv_slots, 0xFF,
        static_cast<size_t>(limits.max_num_tokens) * sizeof(int64_t), stream.get()));
  }
  return buffers;
}

Status StepBuffers::upload(const BatchPlan& plan, const GraphBatch* graph, CudaStream& stream) {
  QUIRE_RETURN_IF_ERROR(append_ahead(plan, stream));
  QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, ring_.begin(stream));
  const size_t num_bytes = write_step(plan, limits_, graph, staging);
  stream.copy_to_device(block_, staging, num_bytes);
  ring_.end(stream);
  return {};
}

Status StepBuffers::append_ahead(const BatchPlan& plan, CudaStream& stream) {
  const std::vector<PagePiece> pieces = pages_ahead(plan, limits_);
  for (size_t first = 0; first < pieces.size(); first += kMaxPieces) {
    const size_t count = std::min(pieces.size() - first, size_t{kMaxPieces});
    QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, ahead_ring_.begin(stream));
    std::memcpy(staging, &pieces[first], count * sizeof(PagePiece));
    stream.copy_to_device(ahead_, staging, count * sizeof(PagePiece));
    ahead_ring_.end(stream);
    launch_append_pages(arrays_, ahead_, static_cast<int>(count), stream);
  }
  return {};
}

void StepBuffers::derive(int num_spans, CudaStream& stream) const {
  launch_metadata(arrays_, num_spans, stream);
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
                   .max_pages = arrays.max_pages});
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
                    .num_tokens = graph.num_reqs * graph.q_len,
                    .max_q_len = graph.q_len,
                    .max_kv_len = max_kv_len};
    batch.prefill = {};
    batch.query_start.host = query_start_.data();
    batch.kv_len_bound = kv_len_bound_;
  }
}

}  // namespace quire::cuda
