#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

// Returns a tokenizer.json that has these added tokens too, with ids from `first_id` on. They
// replace those of the file that have the same text.
std::string with_added_tokens(std::string_view tokenizer_json,
                              const std::vector<std::string>& tokens, bool are_special,
                              int32_t first_id);

}  // namespace quire::testing
