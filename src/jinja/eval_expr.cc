#include <fmt/format.h>

#include "jinja/ast.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

Value NameExpr::eval(Interpreter& interpreter) const {
  return interpreter.lookup(name);
}

Value SequenceExpr::eval(Interpreter& interpreter) const {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExprPtr& item : items) values.push_back(interpreter.eval(*item));
  return interpreter.make_list(std::move(values),
                               is_tuple ? Sequence::Type::kTuple : Sequence::Type::kList);
}

Value DictExpr::eval(Interpreter& interpreter) const {
  std::vector<Dict::Entry> values;
  values.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    Value key_value = interpreter.eval(*key);
    values.emplace_back(std::move(key_value), interpreter.eval(*value));
  }
  return interpreter.make_dict(std::move(values));
}

Value UnaryExpr::eval(Interpreter& interpreter) const {
  const Value value = interpreter.eval(*operand);
  if (op == Op::kNot) return Value::boolean(!truthy(value));
  return negate(value, op == Op::kMinus);
}

Value BinaryExpr::eval(Interpreter& interpreter) const {
  const Value left_value = interpreter.eval(*left);
  const Value right_value = interpreter.eval(*right);
  return apply_binary(interpreter, op, left_value, right_value);
}

Value LogicExpr::eval(Interpreter& interpreter) const {
  Value value = interpreter.eval(*left);
  if (truthy(value) != is_and) return value;
  return interpreter.eval(*right);
}

Value CompareExpr::eval(Interpreter& interpreter) const {
  Value left = interpreter.eval(*first);
  for (const auto& [op, expr] : rest) {
    Value right = interpreter.eval(*expr);
    if (!compare(interpreter, op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value ConcatExpr::eval(Interpreter& interpreter) const {
  std::vector<Value> values;
  for (const ExprPtr& part : parts) values.push_back(interpreter.eval(*part));
  TextBuilder text(interpreter.budget);
  for (const Value& value : values) write_str(value, text);
  return interpreter.make_string(text.take());
}

Value CondExpr::eval(Interpreter& interpreter) const {
  if (truthy(interpreter.eval(*test))) return interpreter.eval(*then);
  if (otherwise != nullptr) return interpreter.eval(*otherwise);
  return interpreter.make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  line));
}

Value AttributeExpr::eval(Interpreter& interpreter) const {
  return get_attribute(interpreter, interpreter.eval(*base), name);
}

Value ItemExpr::eval(Interpreter& interpreter) const {
  const Value base_value = interpreter.eval(*base);
  const Value key_value = interpreter.eval(*key);
  return get_item(interpreter, base_value, key_value);
}

Value SliceExpr::eval(Interpreter& interpreter) const {
  const auto part = [&](const ExprPtr& expr) {
    return expr == nullptr ? Value() : interpreter.eval(*expr);
  };
  const Value base_value = interpreter.eval(*base);
  const Value start_value = part(start);
  const Value stop_value = part(stop);
  return get_slice(interpreter, base_value, start_value, stop_value, part(step));
}

Value CallExpr::eval(Interpreter& interpreter) const {
  const Value callee_value = interpreter.eval(*callee);
  Args values = interpreter.eval_args(args);
  interpreter.line = line;
  return interpreter.call(callee_value, std::move(values));
}

Value FilterExpr::eval(Interpreter& interpreter) const {
  return apply(interpreter, interpreter.eval(*input));
}

// Applies the filter to `value`, which is also the input of a chain whose head has no input.
Value FilterExpr::apply(Interpreter& interpreter, const Value& value) const {
  if (filter == nullptr) fail(fmt::format("No filter named '{}' found.", name));
  const Args values = interpreter.eval_args(args);
  return call_builtin(interpreter, *filter, value, values);
}

Value TestExpr::eval(Interpreter& interpreter) const {
  if (test == nullptr) fail(fmt::format("No test named '{}' found.", name));
  const Value value = interpreter.eval(*input);
  const Args values = interpreter.eval_args(args);
  return call_builtin(interpreter, *test, value, values);
}

}  // namespace quire::jinja
