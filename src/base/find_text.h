// Substring search in time linear in the text, whatever the texts are.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire {

// The first byte of the first occurrence of `part` at or behind `from`; npos if there is none.
// std::string_view::find is quadratic in the worst case, which a client that chooses both texts can
// trigger.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
// The same for the last occurrence. Copies both texts.
size_t rfind_text(std::string_view text, std::string_view part);

}  // namespace quire
