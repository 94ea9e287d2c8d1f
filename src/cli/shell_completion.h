#pragma once

#include <string>

#include "cli/command.h"

namespace quire::cli {

// Scripts that complete all commands, flags and choices of `root`.
std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

}  // namespace quire::cli
