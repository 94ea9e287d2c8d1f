#include "cuda/platform/draft_attention.h"

#include <vector>

namespace quire::cuda {

StepLimits draft_step_limits(const DraftModelParts& parts, int max_num_seqs) {
  return {.max_num_seqs = max_num_seqs,
          .max_num_tokens = parts.limits.max_num_tokens,
          .max_kv_len = parts.limits.max_kv_len(),
          .page_size = parts.limits.page_size,
          .windows = parts.windows};
}

Result<Buffer> upload_target_ids(const TapReader& model, CudaStream& stream) {
  const std::span<const int32_t> ids = model.target_ids();
  if (ids.empty()) return Buffer();
  QUIRE_ASSIGN_OR_RETURN(Buffer copy, device_memory(ids.size_bytes()));
  stream.copy_to_device(copy.data(), ids.data(), ids.size_bytes());
  QUIRE_RETURN_IF_ERROR(stream.synchronize());
  return copy;
}

Result<std::span<const KvGroupStep>> DraftAttention::plan(
    std::span<const AttentionBatch* const> batches, bool in_graph, CudaStream& stream) {
  const AttentionBatch& batch = *batches.front();
  if (!in_graph) return attention_.update(batches, attention_.choose(batch), stream);
  const int num_reqs = batch.decode.num_reqs;
  const int q_len = batch.decode.max_q_len;
  std::vector<AttentionBackend*> backends;
  for (const AttentionSelector& selector : parts_.instance.attention) {
    backends.push_back(selector.decode(
        {.num_reqs = num_reqs, .max_kv_len = parts_.limits.max_kv_len(), .q_len = q_len}));
  }
  return attention_.update(batches, attention_.choose_for_graph(backends, num_reqs, q_len), stream);
}

Result<std::span<const KvGroupStep>> DraftAttention::without_plans(
    std::span<const AttentionBatch* const> batches, CudaStream& stream) {
  const std::vector<AttentionChoice> none(parts_.instance.attention.size());
  return attention_.update(batches, none, stream);
}

}  // namespace quire::cuda
