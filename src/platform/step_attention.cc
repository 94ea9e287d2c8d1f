#include "platform/step_attention.h"

namespace quire {

std::span<const AttentionChoice> StepAttention::choose(const AttentionBatch& batch) {
  DecodeKey key = decode_key(batch);
  key.eager = true;
  const PhaseRange& prefill = batch.prefill;
  choices_.clear();
  for (size_t g = 0; g < instance_->attention.size(); ++g) {
    const AttentionSelector& selector = instance_->attention[g];
    const AttentionPlans& plans = instance_->plans[g];
    AttentionChoice choice;
    if (key.num_reqs > 0) choice.decode = &plans.find(key.use(), *selector.decode(key));
    if (prefill.num_reqs > 0) {
      choice.prefill =
          &plans.find({.phase = Phase::kPrefill},
                      *selector.prefill(prefill.num_reqs, prefill.num_tokens, prefill.max_kv_len));
    }
    choices_.push_back(choice);
  }
  return choices_;
}

std::span<const AttentionChoice> StepAttention::of_graph(
    std::span<AttentionBackend* const> backends, int num_reqs, int q_len) {
  const AttentionUse use = {.phase = Phase::kDecode, .q_len = q_len, .in_graph = true};
  choices_.clear();
  for (size_t g = 0; g < backends.size(); ++g) {
    choices_.push_back({.decode = &instance_->plans[g].find(use, *backends[g], num_reqs)});
  }
  return choices_;
}

Result<std::span<const KvGroupStep>> StepAttention::update(
    std::span<const AttentionBatch* const> batches, std::span<const AttentionChoice> choices,
    Stream& stream) {
  steps_.clear();
  for (size_t g = 0; g < choices.size(); ++g) {
    const auto [decode, prefill] = choices[g];
    const AttentionBatch& batch = *batches[instance_->kv_cache->table(g)];
    if (decode != nullptr) QUIRE_RETURN_IF_ERROR(decode->update(batch, stream));
    if (prefill != nullptr) QUIRE_RETURN_IF_ERROR(prefill->update(batch, stream));
    steps_.push_back({&batch, decode, prefill, instance_->kv_cache->caches(g), workspace_});
  }
  return std::span<const KvGroupStep>(steps_);
}

}  // namespace quire
