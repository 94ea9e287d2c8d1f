// Parses the command line: chooses the command, sets its flags, and collects all mistakes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace quire::cli {

struct CommandLine {
  enum class Action { kRun, kHelp, kVersion };

  const Command* command = nullptr;
  std::string path;  // "quire bench latency"
  Action action = Action::kRun;
  Complaints complaints;
  // One per ignored flag of another engine, with the reason.
  std::vector<std::string> warnings;
};

// `arguments`: without the program's name. If all values are valid, the result includes the
// complaints of the command's check. `root` must outlive the result.
CommandLine read_command_line(const Command& root, std::span<const char* const> arguments);

// The text of `quire PATH --help`.
std::string help_text(const Command& command, const std::string& path);

}  // namespace quire::cli
