// What a mistyped word was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire::cli {

// How many letters to insert, leave out, replace, or swap with their neighbour.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate nearest to `word`, where so few letters differ that it may be meant: one of up to
// four, two of more. Empty: none, or the word itself is one.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace quire::cli
