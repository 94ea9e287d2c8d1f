#include "sched/kept_states.h"

#include <algorithm>
#include <optional>

namespace quire {
namespace {

// Whether the block ends at a multiple of kTokensBetweenStates.
bool ends_interval(int block, int block_size) {
  return (block + 1) * block_size % kTokensBetweenStates == 0;
}

// The last block whose state a prompt that is equal to the sequence's can begin with; -1: none. The
// last token of a prompt is always computed.
int last_prompt_block(const Sequence& seq, int block_size) {
  return (seq.num_prompt_tokens - 1) / block_size - 1;
}

// Whether a later prompt may begin after the block: it is the last full block of the prompt, or of
// the prompt without its last message.
bool ends_part(const Sequence& seq, int block, int block_size) {
  return block == last_prompt_block(seq, block_size) ||
         block == seq.num_history_tokens / block_size - 1;
}

// Makes the cached state of a block the next one to be overwritten, unless a sequence holds it.
void drop_state(const SeqRecord& rec, int block, KvTable& table) {
  if (block < 0 || block >= static_cast<int>(rec.block_hashes.size())) return;
  const std::optional<int32_t> id = table.cache.find(rec.block_hashes[static_cast<size_t>(block)]);
  if (!id || table.pool.ref_count(*id) > 0) return;
  table.cache.evict(*id);
  table.pool.acquire(*id);
  table.pool.release(*id, false);
}

// Drops the states at the intervals of a prompt that has been computed.
void drop_interval_states(const SeqRecord& rec, int block_size, KvTable& table) {
  const int last = last_prompt_block(*rec.seq, block_size);
  for (int block = last - 2 * kTokensBetweenStates / block_size; block < last; ++block) {
    if (ends_interval(block, block_size) && !ends_part(*rec.seq, block, block_size)) {
      drop_state(rec, block, table);
    }
  }
}

}  // namespace

bool writes_state(const Sequence& seq, int block, int last_block, int block_size) {
  const int num_behind = (last_block - block) * block_size;
  return block >= last_block || ends_part(seq, block, block_size) ||
         (ends_interval(block, block_size) && num_behind <= 2 * kTokensBetweenStates);
}

void drop_states_behind(const SeqRecord& rec, const SeqBlocks& blocks, int block, int block_size,
                        KvTable& table) {
  if (ends_part(*rec.seq, block, block_size)) {
    if (rec.seq->decodes()) drop_interval_states(rec, block_size, table);
    return;
  }
  if (ends_interval(block, block_size) && !rec.seq->decodes()) {
    const int older = block - 2 * kTokensBetweenStates / block_size;
    if (!ends_part(*rec.seq, older, block_size)) drop_state(rec, older, table);
    return;
  }
  const int32_t id = blocks.ids[static_cast<size_t>(block)];
  if (id != 0 && table.pool.ref_count(id) == 1) table.cache.evict(id);
}

void release_states(const SeqRecord& rec, const SeqBlocks& blocks, int block_size, KvTable& table) {
  const auto is_cached = [&](int32_t id) { return id != 0 && table.cache.contains(id); };
  const auto newest = std::ranges::find_if(blocks.ids.rbegin(), blocks.ids.rend(), is_cached);
  const auto newest_idx = static_cast<int>(blocks.ids.rend() - newest) - 1;
  for (int block = blocks.first; block < static_cast<int>(blocks.ids.size()); ++block) {
    const int32_t id = blocks.ids[static_cast<size_t>(block)];
    if (id == 0) continue;
    const bool is_older = block < newest_idx && rec.seq->decodes();
    if (is_older) drop_states_behind(rec, blocks, block, block_size, table);
    table.pool.release(id, table.cache.contains(id));
  }
  if (newest_idx >= last_prompt_block(*rec.seq, block_size)) {
    drop_interval_states(rec, block_size, table);
  }
}

}  // namespace quire
