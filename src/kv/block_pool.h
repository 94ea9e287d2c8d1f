// Who holds which block of the paged cache.
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

// Reference counts, and a list of the unused blocks in the order in which they will be handed out
// again: a doubly linked list inside two arrays, so that every operation is O(1). Block 0 is the
// padding page: never handed out, it is the list's end mark.
class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(next_.size()); }
  int num_free() const { return num_free_; }
  int ref_count(int32_t block_id) const;

  // Takes the unused block at the head of the list; its content is lost. There must be one.
  int32_t allocate();
  // One more holder; a block that nobody held leaves the list with its content.
  void acquire(int32_t block_id);
  // One holder less. The last one puts the block at the tail of the list when its content is worth
  // keeping, and at the head when not.
  void release(int32_t block_id, bool keep_content);

  // Ends the program when the list and the counts disagree.
  void check_invariants() const;

 private:
  void link_before(int32_t block_id, int32_t successor);
  void unlink(int32_t block_id);
  void check_id(int32_t block_id) const;

  std::vector<int32_t> next_, prev_;  // of unused blocks; a used one points at itself
  std::vector<int32_t> ref_counts_;
  int num_free_ = 0;
};

}  // namespace quire
