// Flags of vLLM and llama.cpp that Quire does not have: the reason and the remedy for each.
#pragma once

#include <string>
#include <string_view>

namespace quire::cli {

// For example "is not needed: …" for "--swap-space". Empty for an unknown flag.
std::string_view foreign_flag_remedy(std::string_view flag);

// Replaces vLLM's -tp by --tensor-parallel-size, because CLI11 parses short flags of one letter
// only.
std::string spelled_as_here(std::string_view argument);

}  // namespace quire::cli
