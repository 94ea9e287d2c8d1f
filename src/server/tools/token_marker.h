// The markers of dialects that are tokens of the tokenizer.
#pragma once

#include <cstdint>
#include <string>

namespace quire::server {

// An added token of the tokenizer that is a marker of a dialect.
struct TokenMarker {
  int32_t token_id = 0;
  std::string text = {};
  bool is_hidden = false;  // a special token that the visible text leaves out
};

}  // namespace quire::server
