// Lets the ranks that share a model make one choice. Ranks with different choices would run
// different kernels, or wait for each other forever.
#pragma once

#include <string>
#include <utility>

#include "base/rank_join.h"
#include "quire/status.h"

namespace quire {

// Every rank makes the same calls in the same order. They fail if a rank has failed. A single rank
// never waits.
class Agreement {
 public:
  Agreement() = default;  // of a single rank
  // `ranks` must outlive the object.
  Agreement(RankJoin& ranks, int rank) : ranks_(&ranks), rank_(rank) {}

  bool is_first() const { return rank_ == 0; }
  bool is_alone() const { return ranks_ == nullptr; }
  // Waits until every rank has called it.
  Status wait() const { return ranks_ == nullptr ? Status() : ranks_->join({}); }
  // Whether every rank of this process agrees.
  Result<bool> all_agree(bool agrees) const {
    return ranks_ == nullptr ? agrees : ranks_->all_agree(agrees);
  }
  // The text of rank 0, on every rank.
  Result<std::string> from_first(std::string own) const {
    if (ranks_ == nullptr) return own;
    return ranks_->broadcast(is_first() ? std::move(own) : std::string());
  }

 private:
  RankJoin* ranks_ = nullptr;
  int rank_ = 0;
};

}  // namespace quire
