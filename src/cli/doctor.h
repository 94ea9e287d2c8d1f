// Facts about this machine, from the operating system, for `quire doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::cli {

struct Machine {
  std::string cpu;                     // "Intel(R) Xeon(R) …", or "unknown"
  std::vector<std::string> features;   // the CPU flags that matter to Quire
  int64_t total_bytes = 0;             // of memory; 0: unknown
  std::string transparent_huge_pages;  // "always", "madvise", "never" or "unknown"
  int64_t num_huge_pages = 0;          // reserved ones (HugePages_Total)
};

Machine inspect_machine();

// Returns the bytes of a value such as "16384 kB" (in KiB); 0 if the value is malformed.
int64_t kib_field_bytes(std::string_view value);
// Returns the word in brackets, such as "madvise" in "always [madvise] never"; empty: none.
std::string bracketed(std::string_view text);

}  // namespace quire::cli
