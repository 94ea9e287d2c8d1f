#include "sched/kept_states.h"

#include <algorithm>
#include <cstddef>

namespace quire {
namespace {

constexpr size_t kMaxIntervalStates = 2;

// Whether the block ends at a multiple of SchedulerConfig::tokens_between_states.
bool ends_interval(const SchedulerConfig& config, int block) {
  return (block + 1) * config.block_size % config.tokens_between_states == 0;
}

// Whether a later prompt may begin after the block. The last token of a prompt is always computed,
// so an equal prompt begins after the last full block before it.
bool ends_part(const SchedulerConfig& config, const SeqRecord& rec, int block) {
  const Sequence& seq = *rec.seq;
  return block == (seq.num_prompt_tokens - 1) / config.block_size - 1 ||
         block == seq.num_history_tokens / config.block_size - 1 || block == rec.branch_block;
}

// Makes the state the next one to be overwritten. Does nothing if its page has another state now,
// or if a sequence holds it.
void drop_state(const IntervalState& state, const SeqRecord& rec, KvTable& table) {
  const auto found = table.cache.find(rec.block_hashes[static_cast<size_t>(state.block)]);
  if (found != state.block_id || table.pool.ref_count(state.block_id) > 0) return;
  table.cache.remove(state.block_id);
  table.pool.acquire(state.block_id);
  table.pool.release(state.block_id, false);
}

void drop_interval_states(SeqRecord& rec, KvTable& table) {
  for (const IntervalState& state : rec.interval_states) drop_state(state, rec, table);
  rec.interval_states.clear();
}

}  // namespace

bool writes_state(const SchedulerConfig& config, const SeqRecord& rec, int block, int last_block) {
  if (block >= last_block) return true;
  if (!config.enable_prefix_caching) return false;
  const int tokens_behind = (last_block - block) * config.block_size;
  const bool is_newest =
      tokens_behind <= static_cast<int>(kMaxIntervalStates) * config.tokens_between_states;
  return ends_part(config, rec, block) || (is_newest && ends_interval(config, block));
}

void release_state_of_block(const SchedulerConfig& config, const SeqBlocks& blocks, int block,
                            SeqRecord& rec, KvTable& table) {
  const bool decodes = rec.seq->decodes();
  if (decodes) drop_interval_states(rec, table);
  const int32_t id = blocks.ids[static_cast<size_t>(block)];
  // States that the sequence found in the cache belong to other sequences.
  if (id == 0 || block < rec.num_adopted_blocks || ends_part(config, rec, block)) return;
  if (!decodes && ends_interval(config, block) && table.cache.contains(id)) {
    rec.interval_states.push_back({block, id});
    if (rec.interval_states.size() <= kMaxIntervalStates) return;
    drop_state(rec.interval_states.front(), rec, table);
    rec.interval_states.erase(rec.interval_states.begin());
    return;
  }
  if (table.pool.ref_count(id) == 1) table.cache.remove(id);
}

void supersede_states(std::span<const int32_t> states, KvTable& table) {
  if (states.size() < 3) return;
  for (const int32_t id : states.subspan(1, states.size() - 2)) {
    if (table.pool.ref_count(id) == 0) table.pool.supersede(id);
  }
}

void release_states(const SchedulerConfig& config, const SeqBlocks& blocks, SeqRecord& rec,
                    KvTable& table) {
  const auto is_cached = [&](int block) {
    const int32_t id = blocks.ids[static_cast<size_t>(block)];
    return id != 0 && table.cache.contains(id);
  };
  const auto num_blocks = static_cast<int>(blocks.ids.size());
  int newest = std::min(num_blocks, rec.num_delivered_tokens / config.block_size) - 1;
  while (newest >= 0 && !is_cached(newest)) --newest;
  for (int block = blocks.first; block < num_blocks; ++block) {
    const int32_t id = blocks.ids[static_cast<size_t>(block)];
    if (id == 0) continue;
    if (block != newest && rec.seq->decodes())
      release_state_of_block(config, blocks, block, rec, table);
    table.pool.release(id, table.cache.contains(id));
  }
  if (rec.seq->decodes()) drop_interval_states(rec, table);
  rec.interval_states.clear();
}

}  // namespace quire
