// For loops and their variable `loop`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jinja/ast.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

// `outer` is the scope that encloses the loop.
Flow run_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items, int depth0,
              Scope& outer);
std::string run_recursive_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items,
                               int depth0, Scope& outer);

}  // namespace quire::jinja
