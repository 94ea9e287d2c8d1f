// The block tables of all sequences: for each table of the configuration, one pool of blocks and
// its prefix cache. What a sequence needs, it needs in all tables.
#pragma once

#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "sched/scheduler.h"
#include "sched/seq_record.h"

namespace quire {

// Cached blocks that a sequence could start with, as its block tables would hold them.
struct CachedPrefix {
  int num_blocks = 0;
  std::vector<SeqBlocks> tables;
};

class BlockTables {
 public:
  explicit BlockTables(const SchedulerConfig& config);

  // Over all tables.
  int num_free() const;
  int num_total() const;
  // The share of blocks in use of the fullest table.
  double usage() const;

  // The longest prefix of a waiting sequence whose blocks are cached, as far as later queries read
  // them. Its last known token is always left to compute, because its logits are wanted; with
  // prompt_logprobs, every token is.
  void match_prefix(SeqRecord& rec, CachedPrefix& prefix) const;

  // Whether the known tokens of a waiting sequence that adopts `prefix`, and num_spare blocks more,
  // fit into what is free now and what `victims` hold.
  bool can_admit(const SeqRecord& rec, const CachedPrefix& prefix, int num_spare,
                 std::span<SeqRecord* const> victims) const;
  void adopt_prefix(SeqRecord& rec, const CachedPrefix& prefix);

  // Frees the blocks that no step from now on reads. Steps already planned may read them: the next
  // owner of such a block writes it in a step planned later.
  void leave_behind(SeqRecord& rec);
  // Whether blocks for the next num_tokens of a sequence are free; grow() takes them.
  bool has_room(const SeqRecord& rec, int num_tokens) const;
  void grow(SeqRecord& rec, int num_tokens);
  // Gives the blocks behind the scheduled tokens back: those of a slice that was taken back from
  // the step, or of drafts that were not accepted.
  void shrink(SeqRecord& rec);
  void release(SeqRecord& rec);

  // Offers to the cache the blocks that known tokens fill and that planned steps write.
  //
  // Why already when the step is planned: steps run in the order of their planning, so whoever
  // finds such a block is planned into the same step or a later one. In a later step the block has
  // been written. In the same step every layer writes the keys and values of the whole batch before
  // its attention reads any, so it has been written too. For this, a slice whose blocks were
  // offered must stay in its plan: the scheduler takes back only slices that it has not committed.
  //
  // Why this stays right when the writer is finished, cancelled or preempted: the plans that
  // contain it run all the same. Its blocks may be handed out at once, since their next owner
  // writes them in a step planned later; until then they hold what their hash says.
  void register_full_blocks(SeqRecord& rec);

  // records: all that hold blocks. Ends the program when a block leaked, is lost or is shared
  // without being cached.
  void check_invariants(std::span<const SeqRecord* const> records) const;

 private:
  struct Table {
    explicit Table(const KvTableConfig& cfg)
        : config(cfg), pool(cfg.num_blocks), cache(cfg.num_blocks) {}

    KvTableConfig config;
    BlockPool pool;
    PrefixCache cache;
  };

  int num_blocks_of(const Sequence& seq, int num_tokens) const;
  int longest_prefix(std::span<const SeqBlocks> cached) const;
  int first_read(size_t table, int num_blocks) const;
  static std::vector<int32_t> find_cached(const Table& table, std::span<const BlockHash> hashes);
  int num_free_beside(size_t table, std::span<const int32_t> prefix) const;
  int num_freed_by(size_t table, std::span<SeqRecord* const> victims,
                   std::span<const int32_t> prefix) const;
  void extend_hashes(SeqRecord& rec, int num_blocks) const;
  void check_table(size_t table, std::span<const SeqRecord* const> records) const;

  SchedulerConfig config_;
  std::vector<Table> tables_;
};

}  // namespace quire
