// Flags of vLLM and llama.cpp that Quire has not: why, and what to do instead.
#pragma once

#include <string>
#include <string_view>

namespace quire::cli {

// For "--swap-space": "is not needed: …". Empty where the flag is not known from elsewhere.
std::string_view foreign_flag_remedy(std::string_view flag);

// vLLM's -tp, which a parser of one-letter flags cannot know, is --tensor-parallel-size.
std::string spelled_as_here(std::string_view argument);

}  // namespace quire::cli
