// CPU time of the calling thread or of the process. It excludes the time of other programs (and,
// for a thread, of other threads), so bounds hold on a loaded machine.
#pragma once

#include <cstdint>
#include <ctime>

namespace quire {

inline int64_t cpu_ns_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// CPU time of the calling thread in nanoseconds.
inline int64_t thread_cpu_ns() {
  return cpu_ns_on(CLOCK_THREAD_CPUTIME_ID);
}

// CPU time of all threads of the process in nanoseconds.
inline int64_t process_cpu_ns() {
  return cpu_ns_on(CLOCK_PROCESS_CPUTIME_ID);
}

// CPU time in nanoseconds that `work` takes on the calling thread.
template <typename Work>
int64_t cpu_ns_of(Work work) {
  const int64_t start = thread_cpu_ns();
  work();
  return thread_cpu_ns() - start;
}

}  // namespace quire
