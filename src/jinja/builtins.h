// The filters, tests, methods and global functions, with one table of each kind per file.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/object.h"
#include "jinja/value.h"

namespace quire::jinja {

class Interpreter;

// The arguments of a call in the order of the parameters; null if not given.
class Bound {
 public:
  Bound(Budget& the_budget, const Args& args) : budget(the_budget), raw(&args) {}

  const Value* operator[](size_t idx) const { return idx < values.size() ? values[idx] : nullptr; }
  const Value& value(size_t idx) const { return *values[idx]; }  // for required parameters
  // Whether the argument is given and is not None.
  bool has(size_t idx) const { return (*this)[idx] != nullptr && !values[idx]->is_none(); }
  bool flag(size_t idx, bool otherwise = false) const {
    return (*this)[idx] != nullptr ? truthy(*values[idx]) : otherwise;
  }
  int64_t integer(size_t idx, int64_t otherwise = 0) const;
  // The text of the argument; charges for reading it.
  const std::string& text(size_t idx) const;

  Budget& budget;
  std::vector<const Value*> values;
  const Args* raw;  // all arguments, for variadic builtins
};

struct Builtin {
  std::string_view name;
  // Parameter names in order. Those before '|' are required ("old new | count"); "*" means
  // variadic.
  std::string_view params;
  Value (*run)(Interpreter& interpreter, const Value& self, const Bound& args);
};

Value call_builtin(Interpreter& interpreter, const Builtin& builtin, const Value& self,
                   const Args& args);
// Charges for reading the text before one of its methods runs, so that the methods need not.
Value call_method(Interpreter& interpreter, const Builtin& method, const Value& self,
                  const Args& args);

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_string_method(std::string_view name);
// A method of a list, tuple, dict or number; null if it has none of that name.
const Builtin* find_method(const Value& self, std::string_view name);

// The tables. Each is defined in the file with the same name.
std::span<const Builtin> text_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> selection_filters();
std::span<const Builtin> tests();
std::span<const Builtin> string_methods();
std::span<const Builtin> container_methods();
std::span<const Builtin> globals();

}  // namespace quire::jinja
