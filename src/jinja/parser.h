#pragma once

#include <memory>
#include <string_view>

#include "jinja/ast.h"

namespace quire::jinja {

// Parses a template, or throws Error. `max_depth` bounds the nesting of blocks and brackets.
std::unique_ptr<Program> parse_template(std::string_view source, int max_depth);

}  // namespace quire::jinja
