// Helps with arguments that Quire does not have: flags of other servers, and mistyped words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::cli {

// The reason and the remedy for a flag of vLLM or llama.cpp, for example "is not needed: …" for
// "--swap-space". Empty for an unknown flag.
std::string_view foreign_flag_remedy(std::string_view flag);

// Replaces vLLM's -tp by --tensor-parallel-size, because CLI11 parses short flags of one letter
// only.
std::string canonical_flag(std::string_view argument);

// Returns whether a flag's name, also a mistyped one, says that its value is a secret: "--api_key",
// "--apikey=…", "--hf-token". Errors must not show such a value, because they end in logs.
bool is_secret_flag(std::string_view flag);

// Joins arguments by spaces, with "…" for the values of flags that are secret.
std::string shown_arguments(const std::vector<std::string>& arguments);

// The least number of letters inserted, deleted, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate closest to `word`, if at most one letter differs (two in a word of more than four
// letters, without the dashes of a flag), otherwise the first flag that begins with `word`. Empty:
// no candidate is close enough, or `word` is itself a candidate.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire::cli
