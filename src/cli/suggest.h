// Suggests a correction for a mistyped word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire::cli {

// The least number of letters inserted, deleted, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate closest to `word`, if at most one letter differs (two in a word of more than four
// letters). Empty: no candidate is close enough, or `word` is itself a candidate.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire::cli
