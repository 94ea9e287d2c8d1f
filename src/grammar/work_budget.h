// Bounds the cost of one call into XGrammar. cmake/xgrammar.cmake rewrites the loops of XGrammar's
// sources with QUIRE_FOR and QUIRE_WHILE and includes this header before each source. Loops in
// XGrammar's headers and in the standard library's algorithms are not charged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace quire::grammar {

struct BudgetExceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Allowance {
  int64_t cpu_ns = INT64_MAX;       // of the thread's own CPU time
  size_t compile_bytes = SIZE_MAX;  // of rules, expressions and token masks, also of discarded ones
  size_t state_bytes = SIZE_MAX;    // of the parser's states, also of those rolled back
};

// While a budget exists, this thread's calls into XGrammar throw BudgetExceeded when they exceed
// the allowance. At most one per thread.
class WorkBudget {
 public:
  explicit WorkBudget(const Allowance& allowance);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  int64_t left_ns() const;  // may be below 0
  size_t left_state_bytes() const;
};

// The number of loop iterations between two readings of the clock.
inline constexpr int32_t kTurnsPerLook = 2048;
inline thread_local int32_t turns_left = kTurnsPerLook;

void look_at_clock();
void spend_compile_bytes(size_t num_bytes);
void spend_states(size_t num_states);

inline void spend_work() {
  if (--turns_left <= 0) look_at_clock();
}

}  // namespace quire::grammar

// Replace `for (head)` and `while (condition)`, including that of a do, and charge each iteration.
// The loop's body follows, with or without braces.
#define QUIRE_FOR(...)                           \
  for (__VA_ARGS__)                              \
    if (::quire::grammar::spend_work(), false) { \
    } else
#define QUIRE_WHILE(...) while (::quire::grammar::spend_work(), (__VA_ARGS__))
#define QUIRE_SPEND_COMPILE_BYTES(num_bytes) ::quire::grammar::spend_compile_bytes(num_bytes)
#define QUIRE_SPEND_STATES(num_states) ::quire::grammar::spend_states(num_states)
