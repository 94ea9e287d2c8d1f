// Builtins: the filters, tests, methods and global functions of templates, with their parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace quire::jinja {

// Parameter names in order. Parameters before '|' are required ("old new | count"); "*" means that
// the builtin reads all arguments itself (BoundArgs::raw). Parsed at compile time.
struct Signature {
  static constexpr size_t kMaxParams = 4;

  constexpr Signature(const char* text) {  // NOLINT: the tables below convert
    std::string_view rest(text);
    variadic = rest == "*";
    bool optional = false;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == "|") {
        optional = true;
      } else {
        num_required += optional ? 0 : 1;
        names[count++] = rest.substr(0, end);
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  std::array<std::string_view, kMaxParams> names;
  size_t count = 0;
  size_t num_required = 0;
  bool variadic = false;
};

// The arguments of a call in the order of the parameters; null if not given.
class BoundArgs {
 public:
  BoundArgs(Budget& the_budget, const Args& args) : budget(the_budget), raw(&args) {}

  const Value* operator[](size_t idx) const { return values[idx]; }
  const Value& value(size_t idx) const { return *values[idx]; }  // for required parameters
  // Returns whether the argument is given and is not None.
  bool has(size_t idx) const { return values[idx] != nullptr && !values[idx]->is_none(); }
  bool flag(size_t idx) const { return values[idx] != nullptr && truthy(*values[idx]); }
  int64_t integer(size_t idx, int64_t otherwise = 0) const;
  // The text of the argument; charges for reading it.
  const MarkedText& marked(size_t idx) const;
  const std::string& text(size_t idx) const { return marked(idx).text; }

  Budget& budget;
  std::array<const Value*, Signature::kMaxParams> values{};
  const Args* raw;  // all arguments
};

struct Builtin {
  std::string_view name;
  Signature params;
  Value (*run)(Interpreter& interpreter, const Value& self, const BoundArgs& args);
};

Value call_builtin(Interpreter& interpreter, const Builtin& builtin, const Value& self,
                   const Args& args);

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
// A method of a value that is not an object; null if it has no method of this name.
const Builtin* find_method(const Value& self, std::string_view name);

// The tables.
std::span<const Builtin> text_filters();      // strings.cc
std::span<const Builtin> string_methods();    // strings.cc
std::span<const Builtin> sequence_filters();  // filters.cc
std::span<const Builtin> tests();             // builtins.cc
std::span<const Builtin> globals();
std::span<const Builtin> dict_methods();
std::span<const Builtin> list_methods();  // and of tuples

}  // namespace quire::jinja
