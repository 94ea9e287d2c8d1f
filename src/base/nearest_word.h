// Finds the word that a mistyped one probably means.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace quire {

// The least number of letters inserted, deleted, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate with the least edit distance to `word`, at most 1, or at most 2 if `word` has more
// than four letters. Empty: no candidate is near, or `word` is a candidate.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire
