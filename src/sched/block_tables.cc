#include "sched/block_tables.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/check.h"
#include "kv/kv_layout.h"
#include "sched/kept_states.h"
#include "sched/policy.h"

namespace quire {

BlockTables::BlockTables(const SchedulerConfig& config)
    : config_(config),
      hashed_({.root = none_hash(config.block_hash_seed),
               .size = config.block_size,
               .num_tokens_ahead = config.num_tokens_ahead}),
      tables_(config.tables.begin(), config.tables.end()) {}

int BlockTables::num_free() const {
  int count = 0;
  for (const KvTable& table : tables_) count += table.pool.num_free();
  return count;
}

int BlockTables::num_total() const {
  int count = 0;
  for (const KvTable& table : tables_) count += table.pool.num_blocks() - 1;
  return count;
}

double BlockTables::usage() const {
  double most = 0;
  for (const KvTable& table : tables_) {
    const double num_total = table.pool.num_blocks() - 1;
    if (num_total > 0) most = std::max(most, 1 - table.pool.num_free() / num_total);
  }
  return most;
}

void BlockTables::extend_hashes(SeqRecord& rec, int num_blocks) const {
  const Sequence& seq = *rec.seq;
  const auto extend = [&](int count, std::vector<BlockHash>& hashes) {
    extend_block_hashes(seq.cache_salt, hashed_, seq.token_ids.get(), count, hashes);
  };
  if (seq.prompt_hashes != nullptr) {
    const int num_of_prompt = std::min(num_blocks, num_hashable(seq.num_prompt_tokens));
    extend(num_of_prompt, *seq.prompt_hashes);
    for (auto i = rec.block_hashes.size(); i < static_cast<size_t>(num_of_prompt); ++i) {
      rec.block_hashes.push_back((*seq.prompt_hashes)[i]);
    }
  }
  extend(num_blocks, rec.block_hashes);
}

// In a table with a window, a prefix only needs the blocks that the first query after it reads.
int BlockTables::longest_prefix(std::span<const SeqBlocks> cached) const {
  auto longest = cached[0].ids.size();
  for (const SeqBlocks& blocks : cached) longest = std::min(longest, blocks.ids.size());
  std::vector<int> runs(cached.size());  // by table: consecutive cached blocks before block n
  int best = 0;
  for (int n = 1; n <= static_cast<int>(longest); ++n) {
    bool is_whole = true;
    for (size_t t = 0; t < cached.size(); ++t) {
      runs[t] = cached[t].ids[static_cast<size_t>(n - 1)] != 0 ? runs[t] + 1 : 0;
      is_whole &= runs[t] >= n - first_read(t, n);
    }
    if (is_whole) best = n;
  }
  return best;
}

// The number of leading blocks whose hashes depend only on the first num_tokens tokens.
int BlockTables::num_hashable(int num_tokens) const {
  return std::max(num_tokens - config_.num_tokens_ahead, 0) / config_.block_size;
}

// Returns the most blocks that a prefix may have: the last known token is never part of a prefix.
int BlockTables::num_lookup_blocks(const Sequence& seq) const {
  return (static_cast<int>(seq.token_ids.size()) - 1) / config_.block_size;
}

bool BlockTables::looks_up(const Sequence& seq) const {
  return config_.enable_prefix_caching && !seq.sampling->params->prompt_logprobs;
}

// The first block read by the query that follows a prefix of num_blocks blocks.
int BlockTables::first_read(size_t table, int num_blocks) const {
  return first_page_read(num_blocks * config_.block_size, tables_[table].config.window,
                         config_.block_size);
}

// The cached block of each hash; 0: not cached. Without a window, the search stops at the first
// hash that is not cached, because a prefix cannot extend past it.
std::vector<int32_t> BlockTables::find_cached(const KvTable& table,
                                              std::span<const BlockHash> hashes) {
  std::vector<int32_t> ids;
  for (const BlockHash& hash : hashes) {
    ids.push_back(table.cache.find(hash).value_or(0));
    if (ids.back() == 0 && table.config.window == 0) break;
  }
  return ids;
}

void BlockTables::match_prefix(SeqRecord& rec, CachedPrefix& prefix) const {
  prefix.num_blocks = 0;
  prefix.tables.assign(tables_.size(), {});
  prefix.older_states.clear();
  const Sequence& seq = *rec.seq;
  if (!looks_up(seq)) return;
  const int num_full = num_lookup_blocks(seq);
  extend_hashes(rec, num_full);
  auto hashes = std::span(rec.block_hashes).first(static_cast<size_t>(num_full));
  for (size_t t = 0; t < tables_.size(); ++t) {
    prefix.tables[t].ids = find_cached(tables_[t], hashes);
    hashes = hashes.first(prefix.tables[t].ids.size());
  }
  prefix.num_blocks = longest_prefix(prefix.tables);
  rec.branch_block = -1;
  if (tables_.back().config.holds_states) {
    const int num_with_keys = longest_prefix(std::span(prefix.tables).first(tables_.size() - 1));
    if (num_with_keys > prefix.num_blocks) rec.branch_block = num_with_keys - 1;
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    SeqBlocks& blocks = prefix.tables[t];
    blocks.first = first_read(t, prefix.num_blocks);
    blocks.ids.resize(static_cast<size_t>(prefix.num_blocks));
    if (tables_[t].config.holds_states) {
      std::copy_if(blocks.ids.begin(), blocks.ids.begin() + blocks.first,
                   std::back_inserter(prefix.older_states), [](int32_t id) { return id != 0; });
    }
    std::fill_n(blocks.ids.begin(), blocks.first, 0);
    blocks.num_registered = prefix.num_blocks;
    blocks.num_sent = blocks.first;  // no step reads earlier entries
  }
}

// Checks the states of the blocks whose keys and values are cached, and the blocks that a prefix
// with one more block of keys and values needs. A block that was cached under another salt counts
// as never cached, because its hash is unrelated.
CacheMiss BlockTables::cache_miss(const SeqRecord& rec, const CachedPrefix& prefix) const {
  if (!looks_up(*rec.seq)) return CacheMiss::kDisabled;
  const int num_full = num_lookup_blocks(*rec.seq);
  if (num_full == 0) return CacheMiss::kTooShort;
  if (prefix.num_blocks == num_full) return CacheMiss::kNone;
  const auto was_evicted = [&](const KvTable& table, int first, int end) {
    return std::any_of(rec.block_hashes.begin() + first, rec.block_hashes.begin() + end,
                       [&](const BlockHash& hash) {
                         return !table.cache.find(hash) && table.cache.was_evicted(hash);
                       });
  };
  const int num_with_keys = std::max(prefix.num_blocks, rec.branch_block + 1);
  const bool lacks_state = num_with_keys > prefix.num_blocks;
  if (lacks_state && was_evicted(tables_.back(), prefix.num_blocks, num_with_keys)) {
    return CacheMiss::kEvicted;
  }
  const int num_wanted = std::min(num_with_keys + 1, num_full);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].config.holds_states) continue;
    if (was_evicted(tables_[t], first_read(t, num_wanted), num_wanted)) return CacheMiss::kEvicted;
  }
  if (lacks_state) return CacheMiss::kNoSnapshot;
  return prefix.num_blocks == 0 ? CacheMiss::kFirstUse : CacheMiss::kChangedPrompt;
}

// Returns the number of free blocks after the prefix is adopted. Blocks of the prefix that are free
// now are in use then.
int BlockTables::num_free_beside(size_t table, std::span<const int32_t> prefix) const {
  const BlockPool& pool = tables_[table].pool;
  const auto is_free = [&](int32_t id) { return id != 0 && pool.ref_count(id) == 0; };
  return pool.num_free() - static_cast<int>(std::ranges::count_if(prefix, is_free));
}

// Returns the blocks that become free when all victims release their blocks. Blocks in `prefix` do
// not count, because the sequence that adopts the prefix keeps them.
int BlockTables::num_freed_by(size_t table, std::span<SeqRecord* const> victims,
                              std::span<const int32_t> prefix) const {
  int num_freed = 0;
  std::unordered_map<int32_t, int> num_victims;  // number of victims that hold a shared block
  for (const SeqRecord* rec : victims) {
    const std::vector<int32_t>& ids = rec->seq->tables[table].ids;
    for (size_t idx = 0; idx < ids.size(); ++idx) {
      const int32_t id = ids[idx];
      if (id == 0 || (idx < prefix.size() && prefix[idx] == id)) continue;
      const int num_holders = tables_[table].pool.ref_count(id);
      if (num_holders == 1 || ++num_victims[id] == num_holders) ++num_freed;
    }
  }
  return num_freed;
}

// All known tokens must fit, not only the first chunk, because a preempted prompt must be computed
// again.
bool BlockTables::can_start(const SeqRecord& rec, const CachedPrefix& prefix, int num_spare,
                            std::span<SeqRecord* const> victims) const {
  const Sequence& seq = *rec.seq;
  const int num_kv_slots = max_kv_slots(config_, seq, static_cast<int>(seq.token_ids.size()));
  for (size_t t = 0; t < tables_.size(); ++t) {
    const SeqBlocks& held = prefix.tables[t];
    const int num_held = prefix.num_blocks - held.first;
    const int num_new = max_blocks_held(config_, tables_[t].config, num_kv_slots) - num_held;
    const int num_free = num_free_beside(t, held.ids) + num_freed_by(t, victims, held.ids);
    if (num_new + num_spare > num_free) return false;
  }
  return true;
}

void BlockTables::adopt_prefix(SeqRecord& rec, const CachedPrefix& prefix) {
  rec.seq->tables = prefix.tables;
  rec.seq->num_scheduled = prefix.num_blocks * config_.block_size;
  rec.num_adopted_blocks = prefix.num_blocks;
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (const int32_t id : prefix.tables[t].ids) {
      if (id != 0) tables_[t].pool.acquire(id);
    }
  }
  if (rec.seq->num_preemptions == 0) supersede_states(prefix.older_states, tables_.back());
}

void BlockTables::free_outside_window(SeqRecord& rec) {
  register_states(rec);
  for (size_t t = 0; t < tables_.size(); ++t) {
    KvTable& table = tables_[t];
    SeqBlocks& blocks = rec.seq->tables[t];
    const int first =
        first_page_read(rec.seq->min_computed(), table.config.window, config_.block_size);
    for (; blocks.first < first; ++blocks.first) {
      if (table.config.holds_states)
        release_state_of_block(config_, blocks, blocks.first, rec, table);
      int32_t& id = blocks.ids[static_cast<size_t>(blocks.first)];
      if (id != 0) table.pool.release(id, table.cache.contains(id));
      id = 0;
    }
    blocks.num_registered = std::max(blocks.num_registered, blocks.first);
    blocks.num_sent = std::max(blocks.num_sent, blocks.first);
  }
}

// The last token of a sequence is returned but never fed to the model, so neither it nor any draft
// after it needs a place in the cache.
int BlockTables::num_blocks_of(const Sequence& seq, int num_tokens) const {
  return num_blocks_for(max_kv_slots(config_, seq, num_tokens), config_.block_size);
}

// Returns whether a new block of the sequence needs a page in the table when the next num_tokens
// tokens are scheduled. The host has only an upper bound of a decoding sequence's length, so each
// of its new blocks gets a state.
bool BlockTables::needs_page(const KvTable& table, const SeqRecord& rec, int block,
                             int num_tokens) const {
  if (!table.config.holds_states || rec.seq->decodes()) return true;
  const int last_block = (rec.seq->num_scheduled + num_tokens - 1) / config_.block_size;
  return writes_state(config_, rec, block, last_block);
}

bool BlockTables::has_room(const SeqRecord& rec, int num_tokens) const {
  const Sequence& seq = *rec.seq;
  const int num_blocks = num_blocks_of(seq, seq.num_scheduled + num_tokens);
  return std::ranges::all_of(tables_, [&](const KvTable& table) {
    int num_missing = 0;
    for (auto block = static_cast<int>(seq.tables[0].ids.size()); block < num_blocks; ++block) {
      num_missing += needs_page(table, rec, block, num_tokens) ? 1 : 0;
    }
    return table.pool.num_free() >= num_missing;
  });
}

void BlockTables::grow(SeqRecord& rec, int num_tokens) {
  const int num_blocks = num_blocks_of(*rec.seq, rec.seq->num_scheduled + num_tokens);
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::vector<int32_t>& ids = rec.seq->tables[t].ids;
    while (static_cast<int>(ids.size()) < num_blocks) {
      const bool has_page = needs_page(tables_[t], rec, static_cast<int>(ids.size()), num_tokens);
      ids.push_back(has_page ? take_block(t) : 0);
    }
  }
}

int32_t BlockTables::take_block(size_t table) {
  const int32_t id = tables_[table].pool.allocate();
  const std::optional<BlockHash> evicted = tables_[table].cache.evict(id);
  if (evicted) record_removed(table, *evicted);
  return id;
}

// The released blocks hold no known token, so none of them is cached. The slot's table on the
// device may still list them, which is safe: steps do not read past the slot's length, and later
// appends overwrite these entries.
void BlockTables::free_unscheduled_blocks(SeqRecord& rec) {
  const int num_kept = num_blocks_of(*rec.seq, rec.seq->num_scheduled);
  for (size_t t = 0; t < tables_.size(); ++t) {
    SeqBlocks& blocks = rec.seq->tables[t];
    while (static_cast<int>(blocks.ids.size()) > num_kept) {
      if (blocks.ids.back() != 0) tables_[t].pool.release(blocks.ids.back(), false);
      blocks.ids.pop_back();
    }
    blocks.num_sent = std::min(blocks.num_sent, num_kept);
  }
}

// Releases the deepest blocks first, so that the pool reuses children before their parents.
void BlockTables::release(SeqRecord& rec) {
  register_states(rec);
  for (size_t t = 0; t < tables_.size(); ++t) {
    KvTable& table = tables_[t];
    SeqBlocks& blocks = rec.seq->tables[t];
    if (table.config.holds_states) {
      release_states(config_, blocks, rec, table);
      continue;
    }
    for (; static_cast<int>(blocks.ids.size()) > blocks.first; blocks.ids.pop_back()) {
      table.pool.release(blocks.ids.back(), table.cache.contains(blocks.ids.back()));
    }
  }
  rec.seq->tables.clear();
  rec.seq->num_scheduled = 0;
}

void BlockTables::register_full_blocks(SeqRecord& rec) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_[t].config.holds_states) register_in(t, rec);
  }
}

void BlockTables::register_states(SeqRecord& rec) {
  if (tables_.back().config.holds_states) register_in(tables_.size() - 1, rec);
}

void BlockTables::register_in(size_t table, SeqRecord& rec) {
  const Sequence& seq = *rec.seq;
  const int num_known = static_cast<int>(seq.token_ids.size());
  const int num_full = std::min(seq.num_scheduled / config_.block_size, num_hashable(num_known));
  SeqBlocks& blocks = rec.seq->tables[table];
  if (!config_.enable_prefix_caching || num_full <= blocks.num_registered) return;
  extend_hashes(rec, num_full);
  int first_new = blocks.num_registered;  // first block of a run that the cache accepts
  for (int& idx = blocks.num_registered; idx < num_full; ++idx) {
    const auto i = static_cast<size_t>(idx);
    const bool has_block = blocks.ids[i] != 0;
    if (has_block && tables_[table].cache.insert(rec.block_hashes[i], blocks.ids[i])) continue;
    record_stored(rec, table, first_new, idx);
    first_new = idx + 1;
  }
  record_stored(rec, table, first_new, num_full);
}

// KV events do not include states.
bool BlockTables::collects_events(size_t table) const {
  return config_.collects_kv_events && !tables_[table].config.holds_states;
}

void BlockTables::record_stored(const SeqRecord& rec, size_t table, int first, int end) {
  if (!collects_events(table) || first == end) return;
  const auto size = static_cast<size_t>(config_.block_size);
  const auto num_ahead = static_cast<size_t>(config_.num_tokens_ahead);
  const std::span<const int32_t> ids = rec.seq->token_ids.get();
  const auto begin = rec.block_hashes.begin();
  BlocksStored stored = {.table = static_cast<int>(table), .hashes = {begin + first, begin + end}};
  if (first > 0) stored.parent = begin[first - 1];
  if (first == 0) stored.salt = rec.seq->cache_salt;
  const std::span<const int32_t> tokens =
      ids.subspan(static_cast<size_t>(first) * size, static_cast<size_t>(end - first) * size);
  stored.token_ids.assign(tokens.begin(), tokens.end());
  for (auto idx = static_cast<size_t>(first); num_ahead > 0 && idx < static_cast<size_t>(end);
       ++idx) {
    const std::span<const int32_t> ahead = ids.subspan((idx + 1) * size, num_ahead);
    stored.ahead.insert(stored.ahead.end(), ahead.begin(), ahead.end());
  }
  events_.emplace_back(std::move(stored));
}

void BlockTables::record_removed(size_t table, const BlockHash& hash) {
  if (!collects_events(table)) return;
  BlocksRemoved* last = events_.empty() ? nullptr : std::get_if<BlocksRemoved>(&events_.back());
  if (last == nullptr || last->table != static_cast<int>(table)) {
    last = &std::get<BlocksRemoved>(
        events_.emplace_back(BlocksRemoved{.table = static_cast<int>(table)}));
  }
  last->hashes.push_back(hash);
}

void BlockTables::check_invariants(std::span<const SeqRecord* const> records) const {
  for (size_t t = 0; t < tables_.size(); ++t) check_table(t, records);
}

void BlockTables::check_table(size_t t, std::span<const SeqRecord* const> records) const {
  const KvTable& table = tables_[t];
  table.pool.check_invariants();
  table.cache.check_invariants();
  std::vector<int> num_holders(static_cast<size_t>(table.pool.num_blocks()));
  for (const SeqRecord* rec : records) {
    if (rec->seq->tables.empty()) continue;
    const SeqBlocks& blocks = rec->seq->tables[t];
    QUIRE_CHECK(
        static_cast<int>(blocks.ids.size()) == num_blocks_of(*rec->seq, rec->seq->num_scheduled),
        "[sched] a block table is not as long as its tokens need");
    for (size_t idx = 0; idx < blocks.ids.size(); ++idx) {
      const int32_t id = blocks.ids[idx];
      const bool is_before = static_cast<int>(idx) < blocks.first;
      QUIRE_CHECK(is_before ? id == 0 : id != 0 || table.config.holds_states,
                  "[sched] a sequence holds a block before its window, or lacks one inside it");
      if (id == 0) continue;
      ++num_holders.at(static_cast<size_t>(id));
      const bool is_registered = static_cast<int>(idx) < blocks.num_registered;
      QUIRE_CHECK(!is_registered || !table.cache.contains(id) ||
                      table.cache.find(rec->block_hashes[idx]) == id,
                  "[sched] a held block is cached under another hash");
    }
  }
  for (int32_t id = 1; id < table.pool.num_blocks(); ++id) {
    const int count = num_holders[static_cast<size_t>(id)];
    QUIRE_CHECK(table.pool.ref_count(id) == count,
                "[sched] a block's reference count is not its number of holders");
    QUIRE_CHECK(count <= 1 || table.cache.contains(id), "[sched] a block is shared but not cached");
  }
}

}  // namespace quire
