// The CPU time of the calling thread: unlike wall-clock time it does not count what the machine
// gives to other threads.
#pragma once

#include <cstdint>
#include <ctime>

namespace quire {

inline int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace quire
