// Finds builtins by name and binds call arguments to their parameters.
#include "jinja/builtins.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "jinja/interpreter.h"

namespace quire::jinja {

namespace {

using Table = std::unordered_map<std::string_view, const Builtin*>;

Table make_table(std::initializer_list<std::span<const Builtin>> parts) {
  Table table;
  for (const std::span<const Builtin> part : parts) {
    for (const Builtin& builtin : part) table.emplace(builtin.name, &builtin);
  }
  return table;
}

const Builtin* find(const Table& table, std::string_view name) {
  const auto at = table.find(name);
  return at == table.end() ? nullptr : at->second;
}

const Builtin* find(std::span<const Builtin> table, std::string_view prefix,
                    std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name.starts_with(prefix) && builtin.name.substr(prefix.size()) == name) {
      return &builtin;
    }
  }
  return nullptr;
}

struct Params {
  std::array<std::string_view, 8> names;
  size_t count = 0;
  size_t num_required = 0;
};

Params split_params(std::string_view text) {
  Params params;
  bool has_bar = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == "|") {
      has_bar = true;
      params.num_required = params.count;
    } else {
      params.names[params.count++] = word;
    }
  }
  if (!has_bar) params.num_required = params.count;
  return params;
}

}  // namespace

int64_t Bound::integer(size_t idx, int64_t otherwise) const {
  if ((*this)[idx] == nullptr) return otherwise;
  if (value(idx).is_undefined()) fail(value(idx).undefined_reason());
  if (!value(idx).is_integral()) {
    fail(fmt::format("'{}' object cannot be interpreted as an integer", value(idx).type_name()));
  }
  return value(idx).as_int();
}

const std::string& Bound::text(size_t idx) const {
  if (!value(idx).is_string()) {
    fail(fmt::format("an argument must be str, not {}", value(idx).type_name()));
  }
  budget.read(value(idx).as_string().size());
  return value(idx).as_string();
}

Value call_method(Interpreter& interpreter, const Builtin& method, const Value& self,
                  const Args& args) {
  if (self.is_string()) interpreter.budget.read(self.as_string().size());
  return call_builtin(interpreter, method, self, args);
}

Value call_builtin(Interpreter& interpreter, const Builtin& builtin, const Value& self,
                   const Args& args) {
  Bound bound(interpreter.budget, args);
  if (builtin.params == "*") return builtin.run(interpreter, self, bound);
  const Params params = split_params(builtin.params);
  bound.values.resize(params.count, nullptr);
  if (args.positional.size() > params.count) {
    fail(fmt::format("{}() takes at most {} argument(s) ({} given)", builtin.name, params.count,
                     args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) bound.values[i] = &args.positional[i];
  for (const auto& [name, value] : args.keyword) {
    size_t idx = 0;
    while (idx < params.count && params.names[idx] != name) ++idx;
    if (idx == params.count) {
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", builtin.name, name));
    }
    if (bound.values[idx] != nullptr) {
      fail(fmt::format("{}() got multiple values for argument '{}'", builtin.name, name));
    }
    bound.values[idx] = &value;
  }
  for (size_t i = 0; i < params.num_required; ++i) {
    if (bound.values[i] == nullptr) {
      fail(fmt::format("{}() missing the argument '{}'", builtin.name, params.names[i]));
    }
  }
  return builtin.run(interpreter, self, bound);
}

const Builtin* find_filter(std::string_view name) {
  static const Table table =
      make_table({text_filters(), sequence_filters(), number_filters(), selection_filters()});
  return find(table, name);
}
const Builtin* find_test(std::string_view name) {
  static const Table table = make_table({tests()});
  return find(table, name);
}
const Builtin* find_global(std::string_view name) {
  static const Table table = make_table({globals()});
  return find(table, name);
}
const Builtin* find_string_method(std::string_view name) {
  static const Table table = make_table({string_methods()});
  return find(table, name);
}

const Builtin* find_method(const Value& self, std::string_view name) {
  if (self.is_string()) return find_string_method(name);
  if (self.is_dict()) return find(container_methods(), "dict.", name);
  if (self.is_list()) return find(container_methods(), "list.", name);
  if (self.is_tuple()) return find(container_methods(), "tuple.", name);
  if (self.is_float()) return find(container_methods(), "float.", name);
  return nullptr;
}

}  // namespace quire::jinja
