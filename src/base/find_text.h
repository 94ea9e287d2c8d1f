// Substring search in time linear in the text, for any input.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire {

// Returns the position of the first occurrence of `part` at or after `from`, or npos.
// std::string_view::find is quadratic in the worst case, which a client that chooses both texts can
// trigger.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
// Returns the position of the last occurrence, or npos. Copies both texts.
size_t rfind_text(std::string_view text, std::string_view part);

}  // namespace quire
