#include <fmt/format.h>

#include "jinja/ast.h"
#include "jinja/interpreter.h"
#include "jinja/loop.h"

namespace quire::jinja {

namespace {

// A macro, or the body of a call block, which is passed to a macro as `caller`.
struct Macro : Object {
  Macro(const MacroDef& the_def, Scope& the_scope) : def(the_def), scope(the_scope) {}
  std::string type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override {
    if (name == "name") return interpreter.make_string(def.name);
    return std::nullopt;
  }
  Value call(Interpreter& interpreter, Args args) override;

  void bind(Interpreter& interpreter, Args& args) const;
  void bind_specials(Interpreter& interpreter, Args& args, bool found_caller) const;

  const MacroDef& def;
  Scope& scope;
};

Value Macro::call(Interpreter& interpreter, Args args) {
  const Interpreter::CallLevel call_level(interpreter);
  const Interpreter::ScopeGuard guard(interpreter, &scope);
  bind(interpreter, args);
  return interpreter.make_string(
      interpreter.capture([&] { return interpreter.exec(def.body); }).second);
}

void Macro::bind(Interpreter& interpreter, Args& args) const {
  const size_t num_params = def.params.size();
  const size_t num_given = std::min(args.positional.size(), num_params);
  for (size_t i = 0; i < num_given; ++i) interpreter.set(def.params[i], args.positional[i]);
  bool found_caller = false;
  std::vector<std::optional<Value>> by_name(num_params);
  for (size_t i = num_given; i < num_params; ++i) {
    interpreter.budget.step();
    by_name[i] = args.take(interpreter.name(def.params[i]), interpreter.budget);
    found_caller = found_caller || interpreter.name(def.params[i]) == "caller";
  }
  bind_specials(interpreter, args, found_caller);
  // Defaults are evaluated last and in order, because they may read earlier parameters.
  for (size_t i = num_given; i < num_params; ++i) {
    const size_t first_default = num_params - def.defaults.size();
    Value value;
    if (by_name[i]) {
      value = *by_name[i];
    } else if (i >= first_default) {
      value = interpreter.eval(*def.defaults[i - first_default]);
    } else {
      value = interpreter.make_undefined(fmt::format("parameter '{}' was not provided",
                                                     shortened(interpreter.name(def.params[i]))));
    }
    interpreter.set(def.params[i], std::move(value));
  }
}

void Macro::bind_specials(Interpreter& interpreter, Args& args, bool found_caller) const {
  if (def.uses_caller && !found_caller) {
    const std::optional<Value> caller = args.take("caller", interpreter.budget);
    interpreter.set(kCallerName,
                    caller && !caller->is_none() ? *caller : Value::undefined("No caller defined"));
  }
  if (def.uses_kwargs) {
    std::vector<Dict::Entry> rest;
    for (const auto& [key, value] : args.keyword) {
      rest.emplace_back(interpreter.make_string(key), value);
    }
    interpreter.set(kKwargsName, interpreter.make_dict(std::move(rest)));
  } else if (!args.keyword.empty()) {
    const std::string& extra = args.keyword[0].first;
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", def.name, extra));
  }
  const size_t num_params = def.params.size();
  if (def.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = num_params; i < args.positional.size(); ++i) {
      rest.push_back(args.positional[i]);
    }
    interpreter.set(kVarargsName, interpreter.make_tuple(std::move(rest)));
  } else if (args.positional.size() > num_params) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", def.name, num_params));
  }
}

Value filtered(Interpreter& interpreter, const Expr* filter, const Value& text) {
  if (filter == nullptr) return text;
  const Interpreter::Level level(interpreter);
  const auto& node = static_cast<const FilterExpr&>(*filter);
  return node.apply(interpreter, filtered(interpreter, node.input.get(), text));
}

}  // namespace

Flow TextStmt::exec(Interpreter& interpreter) const {
  interpreter.emit(text);
  return Flow::kNext;
}

Flow PrintStmt::exec(Interpreter& interpreter) const {
  for (const ExprPtr& expr : values) {
    const Value value = interpreter.eval(*expr);
    if (value.is_string()) {
      interpreter.emit(value.as_string());
    } else {
      interpreter.emit(to_str(value, interpreter.budget));
    }
  }
  return Flow::kNext;
}

Flow IfStmt::exec(Interpreter& interpreter) const {
  for (const auto& [test, body] : branches) {
    if (truthy(interpreter.eval(*test))) return interpreter.exec(body);
  }
  return interpreter.exec(otherwise);
}

Flow ForStmt::exec(Interpreter& interpreter) const {
  const Value items = interpreter.eval(*iterable);
  if (!recursive) return run_loop(interpreter, *this, items, 0, interpreter.current_scope());
  const std::string text =
      run_recursive_loop(interpreter, *this, items, 0, interpreter.current_scope());
  interpreter.emit(text);
  return Flow::kNext;
}

Flow SetStmt::exec(Interpreter& interpreter) const {
  interpreter.assign(target, interpreter.eval(*value));
  return Flow::kNext;
}

Flow CaptureStmt::exec(Interpreter& interpreter) const {
  Value value;
  {
    const Interpreter::ScopeGuard guard(interpreter);
    auto [flow, text] = interpreter.capture([&] { return interpreter.exec(body); });
    if (flow != Flow::kNext) return flow;
    value = filtered(interpreter, filter.get(), interpreter.make_string(std::move(text)));
  }
  if (target) {
    interpreter.assign(*target, value);
  } else {
    interpreter.emit(to_str(value, interpreter.budget));
  }
  return Flow::kNext;
}

Flow MacroStmt::exec(Interpreter& interpreter) const {
  interpreter.set(
      name, interpreter.make_object(std::make_shared<Macro>(*def, interpreter.capture_scope())));
  return Flow::kNext;
}

Flow CallBlockStmt::exec(Interpreter& interpreter) const {
  const Value caller =
      interpreter.make_object(std::make_shared<Macro>(*def, interpreter.capture_scope()));
  const Value callee = interpreter.eval(*call->callee);
  Args args = interpreter.eval_args(call->args);
  args.keyword.emplace_back("caller", caller);
  const Value result = interpreter.call(callee, std::move(args));
  interpreter.emit(to_str(result, interpreter.budget));
  return Flow::kNext;
}

Flow ScopeStmt::exec(Interpreter& interpreter) const {
  std::vector<Value> values;
  for (const auto& [target, expr] : variables) values.push_back(interpreter.eval(*expr));
  const Interpreter::ScopeGuard guard(interpreter);
  for (size_t i = 0; i < values.size(); ++i) interpreter.assign(variables[i].first, values[i]);
  return interpreter.exec(body);
}

}  // namespace quire::jinja
