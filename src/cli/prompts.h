// The prompts of `generate`, from flags and files, in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire::cli {

// A prompt, or why it is none: a bad line costs only itself.
struct Prompt {
  Request request = {};
  std::string source = {};  // "FILE:3"; empty: a flag
  Status error = {};
};

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults);

// A problem to show the embedded model with.
std::string_view example_problem();

}  // namespace quire::cli
