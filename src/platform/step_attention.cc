#include "platform/step_attention.h"

namespace quire {

DecodeKey decode_key(const AttentionBatch& batch) {
  const PhaseRange& range = batch.decode;
  return {.num_reqs = range.num_reqs,
          .max_kv_len = range.max_kv_len,
          .ragged = is_ragged(batch.kv_len_bound.subspan(static_cast<size_t>(range.first_req),
                                                         static_cast<size_t>(range.num_reqs)))};
}

std::vector<AttentionChoice> StepAttention::choose(const AttentionBatch& batch) const {
  DecodeKey key = decode_key(batch);
  key.eager = true;
  const PhaseRange& prefill = batch.prefill;
  std::vector<AttentionChoice> choices;
  for (const AttentionSelector& selector : parts_->attention) {
    AttentionChoice choice;
    if (key.num_reqs > 0) choice.decode = selector.decode(key, batch.decode.max_q_len);
    if (prefill.num_reqs > 0) {
      choice.prefill = selector.prefill(prefill.num_reqs, prefill.num_tokens, prefill.max_kv_len);
    }
    choices.push_back(choice);
  }
  return choices;
}

// Each plans the whole batch: what it runs is handed the same one.
Result<std::span<const KvGroupStep>> StepAttention::plan(const AttentionBatch& batch,
                                                         std::span<const AttentionChoice> choices,
                                                         Stream& stream) {
  steps_.clear();
  const std::vector<KvGroup>& groups = parts_->model->kv_groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto [decode, prefill] = choices[g];
    steps_.push_back({&batch, decode, prefill, parts_->kv_cache->caches(g), parts_->workspace});
    Workspace& workspace = steps_.back().workspace;
    if (decode != nullptr) {
      QUIRE_RETURN_IF_ERROR(decode->plan(groups[g].shape, batch, workspace, stream));
    }
    if (prefill != nullptr && prefill != decode) {
      QUIRE_RETURN_IF_ERROR(prefill->plan(groups[g].shape, batch, workspace, stream));
    }
  }
  return std::span<const KvGroupStep>(steps_);
}

}  // namespace quire
