// Runs sequences of operations on the scheduler, its block pool and its prefix cache. Each number
// that a scenario needs is read from the input.
#include <cstddef>
#include <cstdint>
#include <span>

#include "sched/scheduler_sim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = 4096;
  constexpr int kMaxOps = 400;
  std::span<const uint8_t> input(data, size);
  if (input.size() > kMaxBytes) return 0;
  size_t at = 0;
  const auto below = [&](uint32_t n) { return at < input.size() ? input[at++] % n : 0; };
  quire::testing::run_scenario(below,
                               static_cast<int>(input.size() < kMaxOps ? input.size() : kMaxOps));
  return 0;
}
