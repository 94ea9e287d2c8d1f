// Reference counts and the free list of the paged cache's blocks.
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

// Holds the blocks' reference counts, and the unused blocks in the order in which they will be
// allocated: a doubly linked list inside two arrays, so that every operation is O(1). Block 0 is
// the padding page: it is never allocated and marks the end of the list.
class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(next_.size()); }
  int num_free() const { return num_free_; }
  int ref_count(int32_t block_id) const;

  // Takes the unused block at the head of the list; its content is lost. The list must not be
  // empty.
  int32_t allocate();
  // Adds a holder. An unused block leaves the list and keeps its content.
  void acquire(int32_t block_id);
  // Removes a holder. When the last one goes, the block joins the tail of the list if keep_content
  // is true, and the head otherwise.
  void release(int32_t block_id, bool keep_content);

  // Ends the program when the list and the counts disagree.
  void check_invariants() const;

 private:
  void link_before(int32_t block_id, int32_t successor);
  void unlink(int32_t block_id);
  void check_id(int32_t block_id) const;

  std::vector<int32_t> next_, prev_;  // links of unused blocks; a used block points at itself
  std::vector<int32_t> ref_counts_;
  int num_free_ = 0;
};

}  // namespace quire
