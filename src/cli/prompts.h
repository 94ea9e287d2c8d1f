// The prompts of `generate`, from flags and files, in their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire::cli {

// A prompt, or the error of its line. A bad line does not affect the other prompts.
struct Prompt {
  Request request = {};
  std::string source = {};  // "FILE:3"; empty: from a flag
  Status error = {};
};

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults);

// A word problem to demonstrate the embedded model.
std::string_view example_problem();

}  // namespace quire::cli
