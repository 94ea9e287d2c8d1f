// Waiting for what other threads and processes do.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace quire::testing {

// Returns whether the condition holds within the deadline. The deadline is generous, because only a
// test that fails waits so long. The pause between two looks grows, so that a costly condition
// leaves the processor to what it waits for.
template <typename Condition>
bool eventually(const Condition& condition,
                std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + deadline;
  for (milliseconds pause(1);; pause = std::min(2 * pause, milliseconds(32))) {
    if (condition()) return true;
    if (steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace quire::testing
