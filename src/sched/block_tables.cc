#include "sched/block_tables.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "sched/policy.h"

namespace quire {

BlockTables::BlockTables(const SchedulerConfig& config)
    : block_size_(config.block_size),
      caching_(config.enable_prefix_caching),
      pool_(config.num_blocks),
      cache_(config.num_blocks) {}

void BlockTables::extend_hashes(SeqRecord& rec, int num_blocks) const {
  const Sequence& seq = *rec.seq;
  const auto extend = [&](int count, std::vector<BlockHash>& hashes) {
    extend_block_hashes(seq.cache_salt, block_size_, seq.token_ids.get(), count, hashes);
  };
  if (seq.prompt_hashes != nullptr) {
    const int num_of_prompt = std::min(num_blocks, seq.num_prompt_tokens / block_size_);
    extend(num_of_prompt, *seq.prompt_hashes);
    for (auto i = rec.block_hashes.size(); i < static_cast<size_t>(num_of_prompt); ++i) {
      rec.block_hashes.push_back((*seq.prompt_hashes)[i]);
    }
  }
  extend(num_blocks, rec.block_hashes);
}

void BlockTables::match_prefix(SeqRecord& rec, std::vector<int32_t>& block_ids) const {
  block_ids.clear();
  const Sequence& seq = *rec.seq;
  if (!caching_ || seq.sampling->params->prompt_logprobs) return;
  const int num_blocks = (static_cast<int>(seq.token_ids.size()) - 1) / block_size_;
  extend_hashes(rec, num_blocks);
  cache_.match(std::span(rec.block_hashes).first(static_cast<size_t>(num_blocks)), block_ids);
}

int BlockTables::num_free_beside(std::span<const int32_t> prefix) const {
  const auto is_free = [&](int32_t block_id) { return pool_.ref_count(block_id) == 0; };
  return pool_.num_free() - static_cast<int>(std::ranges::count_if(prefix, is_free));
}

int BlockTables::num_freed_by(std::span<SeqRecord* const> victims,
                              std::span<const int32_t> prefix) const {
  int num_freed = 0;
  std::unordered_map<int32_t, int> num_victims;  // that hold a shared block
  for (const SeqRecord* rec : victims) {
    const std::vector<int32_t>& block_ids = rec->seq->block_ids;
    for (size_t idx = 0; idx < block_ids.size(); ++idx) {
      const int32_t block_id = block_ids[idx];
      if (idx < prefix.size() && prefix[idx] == block_id) continue;
      const int num_holders = pool_.ref_count(block_id);
      if (num_holders == 1 || ++num_victims[block_id] == num_holders) ++num_freed;
    }
  }
  return num_freed;
}

void BlockTables::adopt_prefix(SeqRecord& rec, std::span<const int32_t> prefix) {
  for (const int32_t block_id : prefix) pool_.acquire(block_id);
  rec.seq->block_ids.assign(prefix.begin(), prefix.end());
  rec.seq->num_scheduled = static_cast<int>(prefix.size()) * block_size_;
  rec.num_registered_blocks = static_cast<int>(prefix.size());
}

// A sequence's last token is returned and never fed, so it needs no place, and neither do drafts
// behind it.
int BlockTables::num_blocks_of(const Sequence& seq, int num_tokens) const {
  return num_blocks_for(std::min(num_tokens, seq.max_total_tokens - 1), block_size_);
}

int BlockTables::num_missing(const SeqRecord& rec, int num_tokens) const {
  const int num_blocks = num_blocks_of(*rec.seq, rec.seq->num_scheduled + num_tokens);
  return std::max(0, num_blocks - static_cast<int>(rec.seq->block_ids.size()));
}

void BlockTables::grow(SeqRecord& rec, int num_tokens) {
  for (int i = num_missing(rec, num_tokens); i > 0; --i) {
    const int32_t block_id = pool_.allocate();
    cache_.evict(block_id);
    rec.seq->block_ids.push_back(block_id);
  }
}

// Such blocks hold no known token, so none is cached. The device may still list them in the row's
// table: no step looks behind the row's length, and the next blocks announced take their entries.
void BlockTables::shrink(SeqRecord& rec) {
  std::vector<int32_t>& block_ids = rec.seq->block_ids;
  const int num_kept = num_blocks_of(*rec.seq, rec.seq->num_scheduled);
  while (static_cast<int>(block_ids.size()) > num_kept) {
    pool_.release(block_ids.back(), false);
    block_ids.pop_back();
  }
  rec.num_announced_blocks = std::min(rec.num_announced_blocks, num_kept);
}

// Deepest first, so that the pool takes children before their parents.
void BlockTables::release(SeqRecord& rec) {
  std::vector<int32_t>& block_ids = rec.seq->block_ids;
  for (; !block_ids.empty(); block_ids.pop_back()) {
    pool_.release(block_ids.back(), cache_.contains(block_ids.back()));
  }
  rec.seq->num_scheduled = 0;
  rec.num_registered_blocks = rec.num_announced_blocks = 0;
}

void BlockTables::register_full_blocks(SeqRecord& rec) {
  const Sequence& seq = *rec.seq;
  const int num_known = static_cast<int>(seq.token_ids.size());
  const int num_full = std::min(seq.num_scheduled, num_known) / block_size_;
  if (!caching_ || num_full <= rec.num_registered_blocks) return;
  extend_hashes(rec, num_full);
  for (int& idx = rec.num_registered_blocks; idx < num_full; ++idx) {
    const auto i = static_cast<size_t>(idx);
    cache_.insert(rec.block_hashes[i], seq.block_ids[i]);
  }
}

void BlockTables::check_invariants(std::span<const SeqRecord* const> records) const {
  pool_.check_invariants();
  cache_.check_invariants();
  std::vector<int> num_holders(static_cast<size_t>(pool_.num_blocks()));
  for (const SeqRecord* rec : records) {
    for (const int32_t block_id : rec->seq->block_ids) {
      ++num_holders.at(static_cast<size_t>(block_id));
    }
    for (size_t idx = 0; idx < static_cast<size_t>(rec->num_registered_blocks); ++idx) {
      const int32_t block_id = rec->seq->block_ids[idx];
      QUIRE_CHECK(!cache_.contains(block_id) || cache_.find(rec->block_hashes[idx]) == block_id,
                  "[sched] a held block is cached under another hash");
    }
    QUIRE_CHECK(static_cast<int>(rec->seq->block_ids.size()) ==
                    num_blocks_of(*rec->seq, rec->seq->num_scheduled),
                "[sched] a block table is not as long as its tokens need");
  }
  for (int32_t id = 1; id < pool_.num_blocks(); ++id) {
    const int count = num_holders[static_cast<size_t>(id)];
    QUIRE_CHECK(pool_.ref_count(id) == count, "[sched] a block leaked or is held unnoticed");
    QUIRE_CHECK(count <= 1 || cache_.contains(id), "[sched] a block is shared but not cached");
  }
}

}  // namespace quire
