#include "platform/runner.h"

#include <algorithm>

#include "base/check.h"
#include "base/numbers.h"

namespace quire {

std::vector<KvTableBytes> kv_table_bytes(std::span<const KvGroup> groups, const StateGroup& states,
                                         int block_size) {
  const std::vector<int> windows = table_windows(groups);
  std::vector<Saturated> bytes(windows.size(), 0);
  for (const KvGroup& group : groups) {
    if (!group.target_layers.empty()) continue;
    const auto num_layers = static_cast<int64_t>(group.layers.size());
    Saturated& table_bytes = bytes[static_cast<size_t>(group.table)];
    table_bytes = table_bytes + num_layers * Saturated(group.layout.page_bytes());
  }
  std::vector<KvTableBytes> tables;
  for (size_t t = 0; t < windows.size(); ++t) tables.push_back({bytes[t].get(), windows[t]});
  if (!states.layers.empty()) {
    const Saturated page_bytes = std::ssize(states.layers) * Saturated(states.page_bytes);
    tables.push_back({page_bytes.get(), state_window(block_size), true});
  }
  return tables;
}

DrafterLimits drafter_limits(const RunnerSizes& sizes) {
  return {.num_drafts = sizes.limits.num_drafts,
          .max_num_seqs = sizes.max_num_seqs,
          .max_model_len = sizes.limits.max_model_len,
          .vocab_size = sizes.vocab_size};
}

Result<KvCache> KvCache::allocate(std::span<const KvGroup> groups, const StateGroup& states,
                                  std::span<const int> num_blocks, Ops& ops) {
  KvCache cache;
  for (const KvGroup& group : groups) {
    const KvLayout& layout = group.layout;
    std::vector<KvCacheView> views;
    for (size_t i = 0; i < group.layers.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(Tensor memory,
                             ops.allocate_cache(Shape{num_blocks[static_cast<size_t>(group.table)],
                                                      layout.page_stride()},
                                                layout.dtype));
      views.push_back(kv_cache_view(layout, memory.view.data));
      cache.memory_.push_back(std::move(memory));
    }
    cache.views_.push_back(std::move(views));
    cache.tables_.push_back(static_cast<size_t>(group.table));
  }
  cache.state_table_ = static_cast<size_t>(states.table);
  for (size_t i = 0; i < states.layers.size(); ++i) {
    const Shape shape = {num_blocks[cache.state_table_], states.page_bytes};
    QUIRE_ASSIGN_OR_RETURN(Tensor memory, ops.allocate_cache(shape, DType::kI8));
    cache.states_.push_back(memory.view.as<std::byte>());
    cache.memory_.push_back(std::move(memory));
  }
  return cache;
}

KvCache KvCache::of_target(std::span<const KvGroup> groups, const KvCache& target,
                           std::span<const KvGroup> target_groups) {
  KvCache cache;
  for (const KvGroup& group : groups) {
    std::vector<KvCacheView> views;
    for (const int layer : group.target_layers) {
      for (size_t g = 0; g < target_groups.size(); ++g) {
        const std::vector<int>& layers = target_groups[g].layers;
        const auto found = std::ranges::find(layers, layer);
        if (found == layers.end()) continue;
        views.push_back(target.caches(g)[static_cast<size_t>(found - layers.begin())]);
      }
    }
    QUIRE_CHECK(views.size() == group.layers.size(),
                "[kv] a drafter's layer reads a cache that its target does not have");
    cache.views_.push_back(std::move(views));
    cache.tables_.push_back(static_cast<size_t>(group.table));
  }
  return cache;
}

StateStep KvCache::states(std::span<const AttentionBatch* const> batches) const {
  if (states_.empty()) return {};
  return {.batch = batches[state_table_], .pages = states_};
}

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

std::span<const AttentionChoice> StepAttention::choose_for_graph(
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
