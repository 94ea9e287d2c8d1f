// For loops and what `loop` is inside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/template/ast.h"
#include "tokenizer/template/interpreter.h"

namespace quire::jinja {

// `outer`: the scope that the loop stands in.
Flow run_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items, int depth0,
              Scope& outer);
std::string run_recursive_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items,
                               int depth0, Scope& outer);

}  // namespace quire::jinja
