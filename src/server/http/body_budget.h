// A bound on the memory of all request bodies together, however many connections there are. A
// second one bounds all responses that are not yet sent.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace quire::http {

class BodyBudget {
 public:
  explicit BodyBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  bool take(size_t num_bytes) {
    if (in_use_.fetch_add(num_bytes) + num_bytes <= max_bytes_) return true;
    in_use_ -= num_bytes;
    return false;
  }
  void give_back(size_t num_bytes) { in_use_ -= num_bytes; }

 private:
  const size_t max_bytes_;
  std::atomic<size_t> in_use_ = 0;
};

// The share of one body in a budget; the destructor returns it.
class BodyShare {
 public:
  explicit BodyShare(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyShare() { budget_->give_back(num_bytes_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // Returns false, without any change, if the budget is exhausted.
  bool grow_to(size_t num_bytes) {
    if (num_bytes <= num_bytes_) return true;
    if (!budget_->take(num_bytes - num_bytes_)) return false;
    num_bytes_ = num_bytes;
    return true;
  }

 private:
  const std::shared_ptr<BodyBudget> budget_;
  size_t num_bytes_ = 0;
};

}  // namespace quire::http
