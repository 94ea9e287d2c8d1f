// Runs the real binary, for the tests of its outside.
#pragma once

#include <string>
#include <vector>

namespace quire::testing {

struct SpawnResult {
  int exit_code = -1;  // -1: it did not exit by itself
  int signal = 0;      // that ended it
  std::string out;
  std::string err;
};

struct SpawnOptions {
  std::string input = {};          // on standard input
  int interrupt_after_bytes = -1;  // SIGINT once this much has come out; < 0: never
  std::string out_file = {};       // standard output goes there, not into the result
  std::string err_file = {};
  int timeout_s = 60;  // then SIGKILL
};

// `quire` with these arguments; the binary is what QUIRE_BINARY names (CTest sets it).
SpawnResult run_quire(const std::vector<std::string>& arguments, const SpawnOptions& options = {});

}  // namespace quire::testing
