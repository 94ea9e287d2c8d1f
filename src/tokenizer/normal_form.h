// Unicode's four normal forms (UAX #15). The time is linear in the size of any text.
#pragma once

#include <string>
#include <string_view>

namespace quire {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` must be valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace quire
