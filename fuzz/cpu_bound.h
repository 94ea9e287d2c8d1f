// Checks that an input's work takes CPU time linear in its size.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/machine.h"

namespace quire::fuzz {

// The default is for a build with sanitizers, which takes up to 1,200 ns per byte to render and
// tokenize a text.
struct CpuLimit {
  int64_t fixed_ns = 500'000'000;
  int64_t ns_per_byte = 2500;
};

// Counts the CPU time of all threads of the process since the construction.
class CpuBound {
 public:
  explicit CpuBound(const CpuLimit& limit = {}) : limit_(limit), start_ns_(process_cpu_ns()) {}

  bool holds(size_t num_bytes) const { return process_cpu_ns() - start_ns_ <= most_ns(num_bytes); }
  void check(size_t num_bytes) const {
    const int64_t most = most_ns(num_bytes);
    const int64_t spent = process_cpu_ns() - start_ns_;
    QUIRE_CHECK(spent <= most, fmt::format("{} bytes took {} ms of CPU time, expected at most {}",
                                           num_bytes, spent / 1'000'000, most / 1'000'000));
  }

 private:
  int64_t most_ns(size_t num_bytes) const {
    return limit_.fixed_ns + limit_.ns_per_byte * static_cast<int64_t>(num_bytes);
  }

  CpuLimit limit_;
  int64_t start_ns_;
};

}  // namespace quire::fuzz
