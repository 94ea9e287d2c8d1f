// The block tables of all sequences over one pool and its prefix cache.
#pragma once

#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "sched/scheduler.h"
#include "sched/seq_record.h"

namespace quire {

class BlockTables {
 public:
  explicit BlockTables(const SchedulerConfig& config);

  int num_free() const { return pool_.num_free(); }

  // The cached blocks that a waiting sequence could start with. Its last known token is always
  // left to compute, because its logits are wanted; with prompt_logprobs, every token is.
  void match_prefix(SeqRecord& rec, std::vector<int32_t>& block_ids) const;

  // Blocks that are free now and would stay so if `prefix` were adopted.
  int num_free_beside(std::span<const int32_t> prefix) const;
  // Blocks that would become free for a sequence with `prefix` if all victims gave theirs up.
  int num_freed_by(std::span<SeqRecord* const> victims, std::span<const int32_t> prefix) const;

  void adopt_prefix(SeqRecord& rec, std::span<const int32_t> prefix);
  // New blocks that the next num_tokens of a sequence need.
  int num_missing(const SeqRecord& rec, int num_tokens) const;
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
  void extend_hashes(SeqRecord& rec, int num_blocks) const;
  int num_blocks_of(const Sequence& seq, int num_tokens) const;

  int block_size_;
  bool caching_;
  BlockPool pool_;
  PrefixCache cache_;
};

}  // namespace quire
