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
// PCRE2 is refused. A search counts the steps that it takes against its text's budget.
Result<std::unique_ptr<Pattern>> compile_regex(std::string_view pattern);

}  // namespace quire
