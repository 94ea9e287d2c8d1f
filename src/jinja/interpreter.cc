#include "jinja/interpreter.h"

#include <fmt/format.h>

#include <new>

#include "base/text.h"
#include "jinja/builtins.h"
#include "jinja/chat_template.h"
#include "jinja/python_text.h"

namespace quire::jinja {
namespace {

// Bounds the stack used by recursions over values (repr, equality, destruction).
constexpr int kMaxValueDepth = 500;
// Nested calls of eval(), exec() and filters that are allowed per level of
// TemplateLimits::max_depth.
constexpr int kMaxLevelsPerDepth = 12;

}  // namespace

Value* Scope::find(NameId name, Budget& budget) {
  budget.visit(1 + variables.size() / 2);
  for (auto& [id, value] : variables) {
    if (id == name) return &value;
  }
  return nullptr;
}

void Scope::set(NameId name, Value value, Budget& budget) {
  if (Value* present = find(name, budget)) {
    *present = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

Interpreter::Interpreter(const Program& program, const Value& variables,
                         const TemplateLimits& the_limits)
    : budget(the_limits.max_steps, the_limits.max_live_bytes),
      limits(the_limits),
      program_(program),
      variables_(variables),
      output_{.text = {}, .charge = MemoryCharge(budget, 0)} {}

Interpreter::~Interpreter() {
  for (const auto& object : mutable_objects_) object->clear();
}

MarkedText Interpreter::run() {
  exec(program_.body);
  return std::move(output_.text);
}

Interpreter::Level::Level(Interpreter& interpreter) : interpreter_(interpreter) {
  if (++interpreter_.level_ > kMaxLevelsPerDepth * interpreter_.limits.max_depth) {
    --interpreter_.level_;
    fail(fmt::format("the template recurses too deeply; expected at most {} levels",
                     interpreter_.limits.max_depth));
  }
}

Interpreter::CallLevel::CallLevel(Interpreter& interpreter)
    : interpreter_(interpreter), line_(interpreter.line) {
  if (++interpreter_.call_level_ > interpreter_.limits.max_depth) {
    --interpreter_.call_level_;
    fail(fmt::format("macros call each other too deeply; expected at most {} levels",
                     interpreter_.limits.max_depth));
  }
}

Interpreter::CallLevel::~CallLevel() {
  --interpreter_.call_level_;
  // On an error, `line` stays where the error occurred.
  if (std::uncaught_exceptions() == 0) interpreter_.line = line_;
}

Value Interpreter::eval(const Expr& expr) {
  const Level level(*this);
  budget.step();
  line = expr.line;
  return expr.eval(*this);
}

Flow Interpreter::exec(const Body& body) {
  const Level level(*this);
  for (const auto& stmt : body) {
    budget.step();
    line = stmt->line;
    if (const Flow flow = stmt->exec(*this); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Value Interpreter::lookup(NameId id) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    if (const Value* value = scope->find(id, budget)) return *value;
  }
  const std::string& wanted = name(id);
  budget.read(wanted.size());
  if (const Value* value = variables_.dict()->find(wanted, budget)) return *value;
  if (const Builtin* global = find_global(wanted)) return make_method(Value(), *global);
  return make_undefined(fmt::format("'{}' is undefined", shortened(wanted)));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.attribute) {
    auto* space = lookup(target.name).object_as<Namespace>();
    if (space == nullptr) fail("cannot assign attribute on non-namespace object");
    space->set(*target.attribute, value, budget);
  } else if (target.name >= 0) {
    set(target.name, value);
  } else {
    const std::vector<Value> items = to_items(*this, value);
    if (items.size() != target.parts.size()) {
      fail(items.size() > target.parts.size()
               ? fmt::format("too many values to unpack (expected {})", target.parts.size())
               : fmt::format("not enough values to unpack (expected {}, got {})",
                             target.parts.size(), items.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
  }
}

Args Interpreter::eval_args(const Expr& call, const ArgNames& names) {
  Args args;
  for (size_t i = 0; i < names.size(); ++i) {
    Value value = eval(*call.operands[i + 1]);
    if (names[i].empty()) {
      args.positional.push_back(std::move(value));
    } else if (names[i] == "*") {
      for (Value& item : to_items(*this, value)) args.positional.push_back(std::move(item));
    } else if (names[i] == "**") {
      spread_keywords(value, args);
    } else {
      budget.read(names[i].size());
      args.keyword.emplace_back(names[i], std::move(value));
    }
  }
  return args;
}

// Adds the entries of `**value` to the arguments.
void Interpreter::spread_keywords(const Value& value, Args& args) {
  if (!value.is_dict()) fail("argument after ** must be a mapping");
  const NamedValues explicit_args = args.keyword;
  for (const auto& [key, item] : value.dict()->entries()) {
    if (!key.is_string()) fail("keywords must be strings");
    budget.step();
    budget.read(key.as_string().size());
    if (find_named(explicit_args, key.as_string(), budget)) {
      fail(fmt::format("got multiple values for keyword argument '{}'", key.as_string()));
    }
    args.keyword.emplace_back(key.as_string(), item);
  }
}

Value Interpreter::call(const Value& callee, Args args) {
  if (callee.is_undefined()) fail(callee.undefined_reason());
  if (!callee.is_object()) fail(fmt::format("'{}' object is not callable", callee.type_name()));
  const Value::ObjectPtr keep = callee.object();
  return keep->call(*this, std::move(args));
}

// ---- output

void Interpreter::emit(const MarkedText& text) {
  const size_t num_bytes = text.text.size();
  MarkedText& out = sink_->text;
  if (sink_ != &output_) {
    budget.require_free(captured_bytes_ + num_bytes);
    captured_bytes_ += num_bytes;
  }
  if (num_bytes > limits.max_output_bytes - out.text.size()) {
    fail(fmt::format("the output is too large; expected at most {} bytes: shorten the messages",
                     limits.max_output_bytes));
  }
  budget.read(num_bytes);
  const size_t num_mark_bytes = out.untrusted.num_heap_bytes();
  out.append(text);
  sink_->charge.add(out.untrusted.num_heap_bytes() - num_mark_bytes);
}

std::pair<Flow, MarkedText> Interpreter::capture(const std::function<Flow()>& run) {
  Sink captured = {.text = {}, .charge = MemoryCharge(budget, 0)};
  struct Redirect {
    Interpreter& interpreter;
    Sink* before;
    Sink& captured;
    ~Redirect() {
      interpreter.sink_ = before;
      interpreter.captured_bytes_ -= captured.text.text.size();
    }
  };
  Flow flow = Flow::kNext;
  {
    const Redirect redirect{*this, std::exchange(sink_, &captured), captured};
    flow = run();
  }
  return {flow, std::move(captured.text)};
}

// ---- scopes

Interpreter::ScopeGuard::ScopeGuard(Interpreter& interpreter, Scope* outer)
    : interpreter_(interpreter), before_(interpreter.scope_), scope_(std::make_unique<Scope>()) {
  scope_->outer = outer != nullptr ? outer : before_;
  interpreter_.scope_ = scope_.get();
}

Interpreter::ScopeGuard::~ScopeGuard() {
  interpreter_.scope_ = before_;
  if (scope_->is_kept) interpreter_.kept_scopes_.push_back(std::move(scope_));
}

void Interpreter::ScopeGuard::renew() {
  if (!scope_->is_kept) return scope_->variables.clear();
  auto fresh = std::make_unique<Scope>();
  fresh->outer = scope_->outer;
  interpreter_.kept_scopes_.push_back(std::exchange(scope_, std::move(fresh)));
  interpreter_.scope_ = scope_.get();
}

Scope& Interpreter::keep_scope() {
  for (Scope* scope = scope_; scope != nullptr && !scope->is_kept; scope = scope->outer) {
    scope->is_kept = true;
    budget.take(sizeof(Scope));  // never released, because the scope exists until the end
  }
  return *scope_;
}

// ---- values

void Interpreter::check_depth(int value_depth) const {
  if (value_depth > kMaxValueDepth) {
    fail(fmt::format("values are nested too deeply; expected at most {} levels", kMaxValueDepth));
  }
}

Value Interpreter::make_string(MarkedText text, bool markup) {
  budget.step();
  budget.read(text.text.size());
  auto made = std::make_shared<Text>();
  made->charge =
      MemoryCharge(budget, sizeof(Text) + text.text.capacity() + text.untrusted.num_heap_bytes());
  made->num_chars = count_chars(text.text);
  static_cast<MarkedText&>(*made) = std::move(text);
  made->markup = markup;
  return Value::of(Value::TextPtr(std::move(made)));
}

Value Interpreter::make_list(std::vector<Value> items, Sequence::Type type) {
  budget.step();
  budget.visit(items.size());
  MemoryCharge charge(budget, sizeof(Sequence) + items.capacity() * sizeof(Value));
  auto made = std::make_shared<Sequence>(std::move(items), type);
  made->charge = std::move(charge);
  check_depth(made->depth);
  return Value::of(Value::SequencePtr(std::move(made)));
}

Value Interpreter::make_dict(std::vector<Dict::Entry> entries) {
  budget.step();
  budget.visit(2 * entries.size());
  MemoryCharge charge(budget, sizeof(Dict) + entries.size() * (2 * sizeof(Dict::Entry) + 8));
  std::shared_ptr<Dict> made = Dict::build(std::move(entries), &budget);
  made->charge = std::move(charge);
  check_depth(made->depth());
  return Value::of(Value::DictPtr(std::move(made)));
}

Value Interpreter::make_object(std::shared_ptr<Object> object, size_t num_extra_bytes) {
  check_depth(object->depth);
  object->charge = MemoryCharge(budget, 128 + num_extra_bytes);
  return Value::of(Value::ObjectPtr(std::move(object)));
}

Value Interpreter::make_iterator(std::vector<Value> items) {
  budget.visit(items.size());
  const size_t num_bytes = items.size() * sizeof(Value);
  return make_object(std::make_shared<Iterator>(std::move(items)), num_bytes);
}

Value Interpreter::make_undefined(std::string reason) {
  MemoryCharge charge(budget, sizeof(UndefinedReason) + reason.size());
  return Value::of(std::make_shared<const UndefinedReason>(
      UndefinedReason{std::move(reason), std::move(charge)}));
}

Value Interpreter::make_method(const Value& self, const Builtin& builtin) {
  return make_function(self.depth() + 1,
                       [self, &builtin](Interpreter& interpreter, const Args& args) {
                         // Charged here, so that the methods of str need not charge for it.
                         if (self.is_string()) interpreter.budget.read(self.as_string().size());
                         return call_builtin(interpreter, builtin, self, args);
                       });
}

Value Interpreter::make_mutable(std::shared_ptr<Object> object) {
  mutable_objects_.push_back(object);
  return make_object(std::move(object));
}

// ---- expressions

Value NameExpr::eval(Interpreter& interpreter) const {
  return interpreter.lookup(name);
}

Value SequenceExpr::eval(Interpreter& interpreter) const {
  std::vector<Value> items;
  items.reserve(operands.size());
  for (const ExprPtr& item : operands) items.push_back(interpreter.eval(*item));
  return interpreter.make_list(std::move(items),
                               is_tuple ? Sequence::Type::kTuple : Sequence::Type::kList);
}

Value DictExpr::eval(Interpreter& interpreter) const {
  std::vector<Dict::Entry> entries;
  entries.reserve(operands.size() / 2);
  for (size_t i = 0; i < operands.size(); i += 2) {
    Value key = interpreter.eval(*operands[i]);
    entries.emplace_back(std::move(key), interpreter.eval(*operands[i + 1]));
  }
  return interpreter.make_dict(std::move(entries));
}

Value UnaryExpr::eval(Interpreter& interpreter) const {
  const Value value = interpreter.eval(*operands[0]);
  return op == Op::kNot ? Value::boolean(!truthy(value)) : negate(value, op == Op::kMinus);
}

Value BinaryExpr::eval(Interpreter& interpreter) const {
  const Value left = interpreter.eval(*operands[0]);
  if (op == BinaryOp::kAnd || op == BinaryOp::kOr) {
    return truthy(left) == (op == BinaryOp::kAnd) ? interpreter.eval(*operands[1]) : left;
  }
  return apply_binary(interpreter, op, left, interpreter.eval(*operands[1]));
}

Value CompareExpr::eval(Interpreter& interpreter) const {
  Value left = interpreter.eval(*operands[0]);
  for (size_t i = 0; i < ops.size(); ++i) {
    Value right = interpreter.eval(*operands[i + 1]);
    if (!compare(interpreter, ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value ConcatExpr::eval(Interpreter& interpreter) const {
  std::vector<Value> values;
  for (const ExprPtr& part : operands) values.push_back(interpreter.eval(*part));
  TextBuilder text(interpreter.budget);
  for (const Value& value : values) write_str(value, text);
  return interpreter.make_string(text.take());
}

Value CondExpr::eval(Interpreter& interpreter) const {
  if (truthy(interpreter.eval(*operands[1]))) return interpreter.eval(*operands[0]);
  if (operands[2] != nullptr) return interpreter.eval(*operands[2]);
  return interpreter.make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  line));
}

Value AttributeExpr::eval(Interpreter& interpreter) const {
  return get_attribute(interpreter, interpreter.eval(*operands[0]), name);
}

Value ItemExpr::eval(Interpreter& interpreter) const {
  const Value base = interpreter.eval(*operands[0]);
  return get_item(interpreter, base, interpreter.eval(*operands[1]));
}

Value SliceExpr::eval(Interpreter& interpreter) const {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (operands[i] != nullptr) parts[i] = interpreter.eval(*operands[i]);
  }
  return get_slice(interpreter, parts[0], parts[1], parts[2], parts[3]);
}

Value CallExpr::eval(Interpreter& interpreter) const {
  const Value callee = interpreter.eval(*operands[0]);
  Args args = interpreter.eval_args(*this, arg_names);
  interpreter.line = line;
  return interpreter.call(callee, std::move(args));
}

Value FilterOrTestExpr::eval(Interpreter& interpreter) const {
  if (builtin == nullptr) {
    fail(fmt::format("No {} named '{}' found.", is_test ? "test" : "filter", name));
  }
  const Value input = interpreter.eval(*operands[0]);
  return call_builtin(interpreter, *builtin, input, interpreter.eval_args(*this, arg_names));
}

Value FilterOrTestExpr::apply(Interpreter& interpreter, const Value& head) const {
  const Interpreter::Level level(interpreter);
  if (builtin == nullptr) fail(fmt::format("No filter named '{}' found.", name));
  const auto* input = static_cast<const FilterOrTestExpr*>(operands[0].get());
  return call_builtin(interpreter, *builtin,
                      input == nullptr ? head : input->apply(interpreter, head),
                      interpreter.eval_args(*this, arg_names));
}

}  // namespace quire::jinja

// ---- the public functions

namespace quire {

namespace {

Status template_error(int line, std::string_view message) {
  constexpr size_t kMaxMessageBytes = 16'384;
  message = message.substr(0, complete_utf8_prefix(message.substr(0, kMaxMessageBytes)));
  return invalid_argument(fmt::format("[template] line {}: {}", line, message));
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const jinja::Program> program)
    : program_(std::move(program)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const TemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return template_error(1, fmt::format("the template is too large; got {} bytes, expected at "
                                         "most {}",
                                         source.size(), limits.max_source_bytes));
  }
  try {
    return ChatTemplate(jinja::parse_template(replace_invalid_utf8(source), limits.max_depth));
  } catch (const jinja::Error& error) {
    return template_error(error.line, error.message);
  } catch (const std::bad_alloc&) {
    return template_error(1, "out of memory");
  }
}

Result<MarkedText> ChatTemplate::render(const jinja::Value& variables, const TemplateLimits& limits,
                                        int64_t* num_steps) const {
  if (num_steps != nullptr) *num_steps = 0;
  if (!variables.is_dict()) {
    return invalid_argument(
        fmt::format("[template] the variables are not an object; got {}", variables.type_name()));
  }
  jinja::Interpreter interpreter(*program_, variables, limits);
  const struct Report {
    ~Report() {
      if (num_steps != nullptr) *num_steps = interpreter.budget.num_steps();
    }
    const jinja::Interpreter& interpreter;
    int64_t* num_steps;
  } report{interpreter, num_steps};
  try {
    return interpreter.run();
  } catch (const jinja::Error& error) {
    return template_error(error.line > 0 ? error.line : interpreter.line, error.message);
  } catch (const std::bad_alloc&) {
    return template_error(interpreter.line, "out of memory");
  }
}

}  // namespace quire
