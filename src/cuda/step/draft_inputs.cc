#include "cuda/step/draft_inputs.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::cuda {

DraftArrays DraftInputs::lay_out(BumpAllocator& allocator, const DraftLimits& limits) {
  const auto seqs = static_cast<size_t>(limits.step.max_num_seqs);
  const size_t tokens = seqs * static_cast<size_t>(limits.q_len);
  const int max_pages = ceil_div(limits.step.max_kv_len, limits.step.page_size);
  DraftArrays arrays;
  arrays.num_ahead = limits.num_ahead;
  arrays.num_passes = limits.num_passes;
  arrays.q_len = limits.q_len;
  arrays.reads_target_cache = limits.reads_target_cache;
  arrays.step_token_ids =
      allocator.allocate<int32_t>(static_cast<size_t>(limits.step.max_num_tokens));
  arrays.last_rows = allocator.allocate<int32_t>(seqs);
  arrays.token_ids = allocator.allocate<int32_t>(tokens);
  arrays.positions = allocator.allocate<int32_t>(tokens);
  arrays.query_start = allocator.allocate<int32_t>(seqs + 1);
  arrays.seq_lens = allocator.allocate<int32_t>(seqs);
  arrays.logit_tokens = allocator.allocate<int32_t>(tokens);
  arrays.previous_tokens = allocator.allocate<int32_t>(seqs);
  for (size_t t = 0; t < limits.step.windows.size(); ++t) {
    arrays.tables[t] = {
        .window = limits.step.windows[t],
        .block_table = allocator.allocate<int32_t>(seqs * static_cast<size_t>(max_pages)),
        .kv_slots = allocator.allocate<int64_t>(tokens)};
  }
  return arrays;
}

size_t DraftInputs::device_bytes(const DraftLimits& limits) {
  BumpAllocator allocator;
  (void)lay_out(allocator, limits);
  return allocator.num_bytes();
}

Result<DraftInputs> DraftInputs::create(const DraftLimits& limits, CudaStream& stream) {
  DraftInputs inputs;
  inputs.limits_ = limits;
  const size_t num_bytes = device_bytes(limits);
  QUIRE_ASSIGN_OR_RETURN(inputs.memory_, device_memory(num_bytes));
  stream.set_zero(inputs.memory_.data(), num_bytes);
  BumpAllocator allocator(inputs.memory_.data());
  inputs.arrays_ = lay_out(allocator, limits);
  const int num_starts = limits.step.max_num_seqs + 1;
  for (int i = 0; i < num_starts; ++i) inputs.query_start_.push_back(i * limits.q_len);
  launch_count_up(inputs.arrays_.query_start, num_starts, limits.q_len, stream);
  return inputs;
}

void DraftInputs::describe(const DraftStep& step) {
  const AttentionBatch& from = *step.batches.front();
  const int num_reqs = from.decode.num_reqs + from.prefill.num_reqs;
  const int num_new = limits_.num_passes * limits_.q_len;
  kv_len_bound_.clear();
  for (int i = 0; i < num_reqs; ++i) {
    kv_len_bound_.push_back(
        std::min(from.kv_len_bound[static_cast<size_t>(i)] + num_new, limits_.step.max_kv_len));
  }
  const int longest =
      step.graph != nullptr ? limits_.step.max_kv_len : *std::ranges::max_element(kv_len_bound_);
  const AttentionBatch batch = {.decode = {.num_reqs = num_reqs,
                                           .num_tokens = num_reqs * limits_.q_len,
                                           .max_q_len = limits_.q_len,
                                           .max_kv_len = longest},
                                .prefill = {},
                                .query_start = {query_start_.data(), arrays_.query_start},
                                .seq_lens = arrays_.seq_lens,
                                .kv_len_bound = kv_len_bound_,
                                .max_pages = step.arrays->max_pages};
  batches_.assign(limits_.step.windows.size(), batch);
  views_.clear();
  for (size_t t = 0; t < batches_.size(); ++t) {
    batches_[t].block_table = arrays_.tables[t].block_table;
    batches_[t].kv_slots = arrays_.tables[t].kv_slots;
    views_.push_back(&batches_[t]);
  }
}

}  // namespace quire::cuda
