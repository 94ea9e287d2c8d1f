#pragma once

#include <utility>
#include <vector>

namespace quire {

// The set of free slots in the device's state, numbered from 0. A freed slot may be reused in the
// same plan, because a plan announces removed slots before added ones.
class SlotSet {
 public:
  explicit SlotSet(int num_slots) {
    for (int slot = num_slots - 1; slot >= 0; --slot) free_.push_back(slot);
  }

  bool has_free() const { return !free_.empty(); }
  int take() {
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(int slot) {
    free_.push_back(slot);
    unannounced_.push_back(slot);
  }
  std::vector<int> take_unannounced() { return std::exchange(unannounced_, {}); }

 private:
  std::vector<int> free_;         // a stack with low slots on top
  std::vector<int> unannounced_;  // freed, but not yet removed by a plan
};

}  // namespace quire
