// Runs another program, without a shell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

struct ProgramResult {
  int exit_code = 0;   // 128 + the signal's number if a signal ended it
  std::string output;  // the last 64 KiB of both streams
};

// Runs arguments[0], which it finds in PATH, with no input and with `variables` ("NAME=VALUE")
// added to the environment. `keep_running` is called about ten times per second; once it returns
// false, the program and its children are ended and the result is kCancelled. Fails with kNotFound
// if there is no such program.
Result<ProgramResult> run_program(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& variables,
                                  const std::function<bool()>& keep_running);

// Kills the program that run_program() waits for, and its children. For signal handlers: Ctrl-C
// does not reach these processes, because they have a process group of their own.
void kill_running_program();

}  // namespace quire::hub
