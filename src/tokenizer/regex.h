// PCRE2 behind budgets, for the patterns that no hand-written scanner knows.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/pattern.h"

namespace quire {

// The pattern's dialect is Oniguruma's, as tokenizer.json has it; what would mean something else in
// PCRE2 is refused. A search that outruns its budget counts as "no match from here on", so a
// hostile pattern costs bounded time.
Result<std::unique_ptr<Pattern>> compile_regex(std::string_view pattern);

}  // namespace quire
