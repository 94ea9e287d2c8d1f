// What the operating system says about this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::cli {

struct Machine {
  std::string cpu;                    // "Intel(R) Xeon(R) …"; "unknown" where it is not said
  std::vector<std::string> features;  // those that matter to us, of the CPU's flags
  int64_t total_bytes = 0;            // memory
  std::string transparent_huge_pages;  // "always", "madvise", "never" or "unknown"
  int64_t num_huge_pages = 0;          // reserved
};

Machine inspect_machine();

// The value behind "key :" of the first line of /proc/cpuinfo or /proc/meminfo that has it.
std::string proc_field(std::string_view text, std::string_view key);
// "16384 kB" in bytes; 0 where that is not what it is.
int64_t kib_field_bytes(std::string_view value);
// "always [madvise] never": the word in brackets.
std::string bracketed(std::string_view text);

}  // namespace quire::cli
