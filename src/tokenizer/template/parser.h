#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/template/ast.h"

namespace quire::jinja {

// Throws Error. `max_depth` bounds how deep blocks and brackets nest.
std::unique_ptr<Program> parse_template(std::string_view source, int max_depth);

}  // namespace quire::jinja
