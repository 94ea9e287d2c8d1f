// Unicode's four normal forms (UAX #15), linear in the text's length whatever is in it.
#pragma once

#include <string>
#include <string_view>

namespace quire {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` is valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace quire
