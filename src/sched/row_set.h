#pragma once

#include <utility>
#include <vector>

namespace quire {

// The set of free rows in the device's state, numbered from 0. A freed row may be reused in the
// same plan, because a plan announces removed rows before added ones.
class RowSet {
 public:
  explicit RowSet(int num_rows) {
    for (int row = num_rows - 1; row >= 0; --row) free_.push_back(row);
  }

  bool has_free() const { return !free_.empty(); }
  int take() {
    const int row = free_.back();
    free_.pop_back();
    return row;
  }
  void give_back(int row) {
    free_.push_back(row);
    unannounced_.push_back(row);
  }
  std::vector<int> take_unannounced() { return std::exchange(unannounced_, {}); }

 private:
  std::vector<int> free_;         // a stack with low rows on top
  std::vector<int> unannounced_;  // freed, but not yet removed by a plan
};

}  // namespace quire
