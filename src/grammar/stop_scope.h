// Lets another thread end a call into XGrammar. XGrammar's sources include work_budget.h alone.
#pragma once

#include <atomic>
#include <stdexcept>

namespace quire::grammar {

struct WorkStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// While it lives, this thread's calls into XGrammar throw WorkStopped once `stop` is set. The
// constructor throws it where `stop` is set already. At most one scope per thread.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
};

}  // namespace quire::grammar
