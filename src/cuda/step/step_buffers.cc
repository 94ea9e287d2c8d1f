#include "cuda/step/step_buffers.h"

#include <algorithm>

#include "cuda/base/memory.h"
#include "platform/batch_inputs.h"

namespace quire::cuda {
namespace {

// Hands out parts of one allocation, or, without one, adds up what they would take.
class Carver {
 public:
  explicit Carver(std::byte* base = nullptr) : base_(base) {}
  template <typename T>
  T* take(int64_t count) {
    const size_t at = num_bytes_;
    num_bytes_ += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  size_t num_bytes() const { return num_bytes_; }

 private:
  std::byte* base_;
  size_t num_bytes_ = 0;
};

std::byte* carve(Carver& carver, const StepLimits& limits, int max_model_len, int page_size,
                 StepArrays& arrays) {
  const int64_t seqs = limits.max_num_seqs;
  const int64_t tokens = limits.max_num_tokens;
  arrays.page_size = page_size;
  arrays.max_pages = (max_model_len + page_size - 1) / page_size;
  arrays.row_block_table = carver.take<int32_t>(seqs * arrays.max_pages);
  arrays.block_table = carver.take<int32_t>(seqs * arrays.max_pages);
  arrays.token_ids = carver.take<int32_t>(tokens);
  arrays.positions = carver.take<int32_t>(tokens);
  arrays.slot_mapping = carver.take<int64_t>(tokens);
  arrays.query_start = carver.take<int32_t>(seqs + 1);
  arrays.seq_lens = carver.take<int32_t>(seqs);
  arrays.logit_rows = carver.take<int32_t>(seqs);
  arrays.sample_rows = carver.take<int32_t>(seqs);
  return carver.take<std::byte>(static_cast<int64_t>(max_step_bytes(limits)));
}

}  // namespace

size_t StepBuffers::device_bytes(const StepLimits& limits, int max_model_len, int page_size) {
  Carver carver;
  StepArrays arrays;
  carve(carver, limits, max_model_len, page_size, arrays);
  return carver.num_bytes();
}

Result<StepBuffers> StepBuffers::create(const StepLimits& limits, int max_model_len,
                                        int page_size) {
  StepBuffers buffers;
  buffers.limits_ = limits;
  QUIRE_ASSIGN_OR_RETURN(buffers.ring_, PinnedRing::create(max_step_bytes(limits)));
  const size_t num_bytes = device_bytes(limits, max_model_len, page_size);
  QUIRE_ASSIGN_OR_RETURN(buffers.memory_, device_memory(num_bytes));
  QUIRE_CUDA_RETURN_IF_ERROR(cudaMemset(buffers.memory_.data(), 0, num_bytes));
  Carver carver(static_cast<std::byte*>(buffers.memory_.data()));
  buffers.block_ = carve(carver, limits, max_model_len, page_size, buffers.arrays_);
  buffers.arrays_.step = buffers.block_;
  // A token that no step has described is written nowhere.
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemset(buffers.arrays_.slot_mapping, 0xFF,
                 static_cast<size_t>(limits.max_num_tokens) * sizeof(int64_t)));
  return buffers;
}

Status StepBuffers::upload(const BatchPlan& plan, int num_slices, bool for_graph,
                           CudaStream& stream) {
  for (const PageAppend& append : appended_ahead(plan, limits_)) {
    append_pages(arrays_, append.row, append.first, append.page_ids.data(),
                 static_cast<int>(append.page_ids.size()), stream);
  }
  QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, ring_.begin(stream));
  const size_t num_bytes = write_step(plan, limits_, num_slices, for_graph, slot);
  stream.copy_to_device(block_, slot, num_bytes);
  ring_.end(stream);
  return {};
}

void StepBuffers::derive(int num_slices, CudaStream& stream) const {
  launch_metadata(arrays_, num_slices, stream);
}

void AttentionInputs::set_views(const StepArrays& arrays) {
  batch.query_start = {query_start.data(), arrays.query_start};
  batch.seq_lens = arrays.seq_lens;
  batch.kv_len_bound = kv_len_bound;
  batch.block_table = arrays.block_table;
  batch.max_pages = arrays.max_pages;
  batch.slot_mapping = arrays.slot_mapping;
}

void AttentionInputs::describe(const BatchPlan& plan, const StepArrays& arrays) {
  const auto num_reqs = static_cast<int>(plan.slices.size());
  query_start.assign(1, 0);
  kv_len_bound.clear();
  for (const SeqSlice& slice : plan.slices) {
    query_start.push_back(slice.first_token + slice.num_tokens);
    kv_len_bound.push_back(slice.num_computed + slice.num_tokens);
  }
  batch.decode = phase_range(plan.slices, 0, plan.num_decode);
  batch.prefill = phase_range(plan.slices, plan.num_decode, num_reqs);
  batch.for_graph = false;
  set_views(arrays);
}

void AttentionInputs::pad_to_graph(int num_reqs, int max_kv_len) {
  for (auto i = static_cast<int32_t>(query_start.size()); i <= num_reqs; ++i) {
    query_start.push_back(i);
  }
  kv_len_bound.resize(static_cast<size_t>(num_reqs), 0);
  batch.decode = {.num_reqs = num_reqs,
                  .num_tokens = num_reqs,
                  .max_q_len = 1,
                  .max_kv_len = max_kv_len,
                  .uniform_q = true};
  batch.prefill = {};
  batch.for_graph = true;
  batch.query_start.host = query_start.data();
  batch.kv_len_bound = kv_len_bound;
}

}  // namespace quire::cuda
