#pragma once

#include <utility>
#include <vector>

namespace quire {

// The rows of the device's state: dense small numbers. A freed row may be taken again at once,
// because a plan announces removed rows before added ones.
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
  std::vector<int> free_;         // a stack: low rows first
  std::vector<int> unannounced_;  // removed, and no plan has said so yet
};

}  // namespace quire
