#include "kv/block_pool.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace quire {
namespace {
constexpr int32_t kEnd = 0;
}  // namespace

BlockPool::BlockPool(int num_blocks) {
  QUIRE_CHECK(num_blocks >= 2, "[kv] a pool needs block 0 and at least one to hand out");
  next_.resize(static_cast<size_t>(num_blocks));
  prev_.resize(static_cast<size_t>(num_blocks));
  ref_counts_.resize(static_cast<size_t>(num_blocks));
  next_[kEnd] = prev_[kEnd] = kEnd;
  for (int32_t id = 1; id < num_blocks; ++id) link_before(id, kEnd);
}

int BlockPool::ref_count(int32_t block_id) const {
  check_id(block_id);
  return ref_counts_[static_cast<size_t>(block_id)];
}

int32_t BlockPool::allocate() {
  QUIRE_CHECK(num_free_ > 0, "[kv] the pool is empty");
  const int32_t block_id = next_[kEnd];
  unlink(block_id);
  ref_counts_[static_cast<size_t>(block_id)] = 1;
  return block_id;
}

void BlockPool::acquire(int32_t block_id) {
  check_id(block_id);
  int32_t& count = ref_counts_[static_cast<size_t>(block_id)];
  if (count == 0) unlink(block_id);
  ++count;
}

void BlockPool::release(int32_t block_id, bool keep_content) {
  check_id(block_id);
  int32_t& count = ref_counts_[static_cast<size_t>(block_id)];
  QUIRE_CHECK(count > 0, "[kv] block " + std::to_string(block_id) + " was released twice");
  if (--count == 0) link_before(block_id, keep_content ? kEnd : next_[kEnd]);
}

void BlockPool::link_before(int32_t block_id, int32_t successor) {
  const int32_t predecessor = prev_[static_cast<size_t>(successor)];
  next_[static_cast<size_t>(block_id)] = successor;
  prev_[static_cast<size_t>(block_id)] = predecessor;
  next_[static_cast<size_t>(predecessor)] = block_id;
  prev_[static_cast<size_t>(successor)] = block_id;
  ++num_free_;
}

void BlockPool::unlink(int32_t block_id) {
  int32_t& next = next_[static_cast<size_t>(block_id)];
  int32_t& prev = prev_[static_cast<size_t>(block_id)];
  next_[static_cast<size_t>(prev)] = next;
  prev_[static_cast<size_t>(next)] = prev;
  next = prev = block_id;
  --num_free_;
}

void BlockPool::check_id(int32_t block_id) const {
  QUIRE_CHECK(block_id > 0 && block_id < num_blocks(),
              "[kv] no such block; got " + std::to_string(block_id) + ", expected 1 to " +
                  std::to_string(num_blocks() - 1));
}

void BlockPool::check_invariants() const {
  int num_listed = 0;
  for (int32_t id = next_[kEnd]; id != kEnd; id = next_[static_cast<size_t>(id)]) {
    QUIRE_CHECK(++num_listed < num_blocks(), "[kv] the free list has a loop");
    QUIRE_CHECK(ref_counts_[static_cast<size_t>(id)] == 0, "[kv] a held block is on the free list");
    QUIRE_CHECK(prev_[static_cast<size_t>(next_[static_cast<size_t>(id)])] == id,
                "[kv] the free list's links disagree");
  }
  const auto num_unused = std::count(ref_counts_.begin() + 1, ref_counts_.end(), 0);
  QUIRE_CHECK(num_listed == num_free_ && num_listed == num_unused, "[kv] a block was lost");
  QUIRE_CHECK(ref_counts_[kEnd] == 0, "[kv] the padding page was handed out");
}

}  // namespace quire
