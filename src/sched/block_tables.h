// The KV tables of the scheduler, each with one pool of blocks and a prefix cache, and the block
// tables of all sequences in them. A sequence has a block table in every KV table.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kv/block_pool.h"
#include "kv/kv_events.h"
#include "sched/kv_table.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"

namespace quire {

// Cached blocks that a sequence could start with, in the form of its block tables.
struct CachedPrefix {
  int num_blocks = 0;
  std::vector<SeqBlocks> tables;
  std::vector<int32_t> older_states;  // the cached states of its earlier blocks
};

class BlockTables {
 public:
  explicit BlockTables(const SchedulerConfig& config);

  // Blocks of all KV tables together, without their padding blocks.
  int num_free() const;
  int num_total() const;
  // The used fraction of the fullest table, 0 to 1.
  double usage() const;
  // Whether match_prefix() searches the prefix caches for the sequence.
  bool looks_up(const Sequence& seq) const;

  // Finds the longest cached prefix of a waiting sequence, and sets the record's block_hashes and
  // branch_block. A table with a window needs only the blocks that later queries read. The last
  // known token is never part of the prefix, because its logits are needed. With prompt_logprobs
  // the prefix is empty, because every token's logits are needed.
  void match_prefix(SeqRecord& rec, CachedPrefix& prefix) const;

  // Returns whether a waiting sequence that adopts `prefix` can start after `victims` have released
  // their blocks: every KV table has room for its known tokens and for num_spare more blocks.
  bool can_start(const SeqRecord& rec, const CachedPrefix& prefix, int num_spare,
                 std::span<SeqRecord* const> victims) const;
  void adopt_prefix(SeqRecord& rec, const CachedPrefix& prefix);
  // Returns why `prefix`, the result of match_prefix(), lacks full blocks of the sequence. Needs no
  // list of past prompts, because each prefix cache records the hashes that it has evicted.
  CacheMiss cache_miss(const SeqRecord& rec, const CachedPrefix& prefix) const;

  // Frees the blocks that no step planned from now on reads. Steps planned before may still read
  // them, which is safe: the next owner of such a block writes it in a step planned later.
  void free_outside_window(SeqRecord& rec);
  // Returns whether blocks for the next num_tokens of a sequence are free; grow() takes them.
  bool has_room(const SeqRecord& rec, int num_tokens) const;
  void grow(SeqRecord& rec, int num_tokens);
  // Frees the blocks after the scheduled tokens: blocks of a span that was unscheduled from the
  // step, or of drafts that were not accepted.
  void free_unscheduled_blocks(SeqRecord& rec);
  void release(SeqRecord& rec);

  // Registers full blocks of known, scheduled tokens in the prefix cache. num_tokens_ahead tokens
  // after a block must be known, too, because the block's hash depends on them.
  //
  // Blocks are registered as soon as the step is planned, because steps run in the order of their
  // planning: a sequence that finds such a block runs in the same step or a later one. In a later
  // step the block has been written. In the same step every layer writes the keys and values of the
  // whole batch before its attention reads any, so the block has been written too. Therefore a
  // span whose blocks were registered must stay in its plan: the scheduler unschedules only spans
  // that it has not committed.
  //
  // This stays correct when the writer finishes, is cancelled or is preempted: the plans that
  // contain it still run. Its blocks may be allocated again at once, because their next owner
  // writes them in a step planned later; until then they hold the content that their hash names.
  void register_full_blocks(SeqRecord& rec);
  // Registers the states of blocks, but later than register_full_blocks(). A layer reads states
  // before or while it writes them, so only a later step may read a state that a step writes.
  // States are registered when the step has ended or the sequence's next step is planned:
  // free_outside_window() and release() call this function, too.
  void register_states(SeqRecord& rec);

  // Returns the changes of the prefix caches since the last call, in their order. Empty unless the
  // configuration collects them.
  std::vector<KvEvent> take_events() { return std::exchange(events_, {}); }

  // For tests.
  std::vector<BlockHash> cached_hashes(size_t table) const { return tables_[table].cache.hashes(); }
  // `records`: all records that hold blocks. Ends the program if a block's reference count is not
  // its number of holders, or if a block is shared without being cached.
  void check_invariants(std::span<const SeqRecord* const> records) const;

 private:
  int num_blocks_of(const Sequence& seq, int num_tokens) const;
  int num_hashable(int num_tokens) const;
  int num_lookup_blocks(const Sequence& seq) const;
  int longest_prefix(std::span<const SeqBlocks> cached) const;
  int first_read(size_t table, int num_blocks) const;
  static std::vector<int32_t> find_cached(const KvTable& table, std::span<const BlockHash> hashes);
  int num_free_beside(size_t table, std::span<const int32_t> prefix) const;
  int num_freed_by(size_t table, std::span<SeqRecord* const> victims,
                   std::span<const int32_t> prefix) const;
  bool needs_page(const KvTable& table, const SeqRecord& rec, int block, int num_tokens) const;
  int32_t take_block(size_t table);
  void register_in(size_t table, SeqRecord& rec);
  bool collects_events(size_t table) const;
  void extend_hashes(SeqRecord& rec, int num_blocks) const;
  void record_stored(const SeqRecord& rec, size_t table, int first, int end);
  void record_removed(size_t table, const BlockHash& hash);
  void check_table(size_t table, std::span<const SeqRecord* const> records) const;

  SchedulerConfig config_;
  HashedBlocks hashed_;
  std::vector<KvTable> tables_;
  std::vector<KvEvent> events_;
};

}  // namespace quire
