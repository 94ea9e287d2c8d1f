// CPU time of a thread. Unlike wall-clock time it does not count what the machine gives to other
// threads, so a bound on it holds on a loaded machine.
#pragma once

#include <cstdint>
#include <ctime>

namespace quire {

// Nanoseconds of the calling thread.
inline int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Nanoseconds that `work` takes of the calling thread.
template <typename Work>
int64_t cpu_ns_of(Work work) {
  const int64_t start = thread_cpu_ns();
  work();
  return thread_cpu_ns() - start;
}

}  // namespace quire
