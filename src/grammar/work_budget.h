// A bound on what one call into XGrammar may cost its caller. cmake/xgrammar.cmake writes the loops
// of its sources with QUIRE_FOR and QUIRE_WHILE and puts this header before each source. Loops in
// its headers and in the standard library's algorithms spend nothing.
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
  size_t compile_bytes = SIZE_MAX;  // of rules, expressions and token masks, whether kept or not
  size_t state_bytes = SIZE_MAX;    // of what a parse remembers, taken back or not
};

// While it lives, this thread's calls into XGrammar throw BudgetExceeded once they have taken more
// than is allowed. One at a time.
class WorkBudget {
 public:
  explicit WorkBudget(const Allowance& allowance);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  int64_t left_ns() const;  // may be below 0
  size_t left_state_bytes() const;
};

// Loops turn this often between two looks at the clock.
inline constexpr int32_t kTurnsPerLook = 2048;
inline thread_local int32_t turns_left = kTurnsPerLook;

void look_at_clock();
void spend_compile_bytes(size_t num_bytes);
void spend_states(size_t num_states);

inline void spend_work() {
  if (--turns_left <= 0) look_at_clock();
}

}  // namespace quire::grammar

// `for (head)` and `while (condition)`, also that of a do, which spend at each turn. The loop's
// body follows, with or without braces.
#define QUIRE_FOR(...)                           \
  for (__VA_ARGS__)                              \
    if (::quire::grammar::spend_work(), false) { \
    } else
#define QUIRE_WHILE(...) while (::quire::grammar::spend_work(), (__VA_ARGS__))
#define QUIRE_SPEND_COMPILE_BYTES(num_bytes) ::quire::grammar::spend_compile_bytes(num_bytes)
#define QUIRE_SPEND_STATES(num_states) ::quire::grammar::spend_states(num_states)
