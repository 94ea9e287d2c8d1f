// Lets another thread end a call into XGrammar. XGrammar's own sources include only work_budget.h.
#pragma once

#include <atomic>
#include <stdexcept>

namespace quire::grammar {

struct WorkStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// While a scope exists, this thread's calls into XGrammar throw WorkStopped once `stop` is set. The
// constructor throws it if `stop` is already set. At most one scope per thread.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
};

}  // namespace quire::grammar
