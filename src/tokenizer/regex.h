// PCRE2 with a budget, for patterns without a hand-written scanner.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/pattern.h"

namespace quire {

// `pattern` is in Oniguruma's dialect, as in tokenizer.json. Fails on constructs that have another
// meaning in PCRE2. A search charges its steps to the budget of its text.
Result<std::unique_ptr<Pattern>> compile_regex(std::string_view pattern);

}  // namespace quire
