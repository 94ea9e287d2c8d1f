// Checks that an input's work takes CPU time linear in its size.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/check.h"

namespace quire {

// Time of all threads of the process: that of other processes does not count.
class CpuBound {
 public:
  CpuBound() : start_ns_(now_ns()) {}

  // A build with sanitizers takes up to 1,200 ns per byte to render and tokenize a text.
  void check(size_t num_bytes) const {
    constexpr int64_t kFixedNs = 500'000'000;
    constexpr int64_t kNsPerByte = 2500;
    const int64_t most = kFixedNs + kNsPerByte * static_cast<int64_t>(num_bytes);
    const int64_t spent = now_ns() - start_ns_;
    QUIRE_CHECK(spent <= most, fmt::format("{} bytes took {} ms of CPU time, expected at most {}",
                                           num_bytes, spent / 1'000'000, most / 1'000'000));
  }

 private:
  static int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  int64_t start_ns_;
};

}  // namespace quire
