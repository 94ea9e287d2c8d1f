#include "jinja/interpreter.h"

#include <fmt/format.h>

#include "base/text.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

// Bounds the stack used by recursions over values (repr, equality, destruction).
constexpr int kMaxValueDepth = 500;
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
      variables_(variables) {}

Interpreter::~Interpreter() {
  for (const auto& object : mutable_objects_) object->clear();
}

std::string Interpreter::run() {
  exec(program_.body);
  return std::move(output_);
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
  if (const Builtin* global = find_global(wanted)) {
    struct Global : Object {
      explicit Global(const Builtin& the_builtin) : builtin(the_builtin) {}
      std::string type_name() const override { return "function"; }
      bool callable() const override { return true; }
      Value call(Interpreter& interpreter, Args args) override {
        return call_builtin(interpreter, builtin, Value(), args);
      }
      const Builtin& builtin;
    };
    return make_object(std::make_shared<Global>(*global));
  }
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

Args Interpreter::eval_args(const CallArgs& args) {
  Args values;
  for (const ExprPtr& arg : args.positional) values.positional.push_back(eval(*arg));
  for (const auto& [key, arg] : args.keyword) {
    budget.read(key.size());
    values.keyword.emplace_back(key, eval(*arg));
  }
  if (args.spread != nullptr) {
    for (Value& item : to_items(*this, eval(*args.spread))) {
      values.positional.push_back(std::move(item));
    }
  }
  if (args.keyword_spread != nullptr) {
    const Value spread = eval(*args.keyword_spread);
    if (!spread.is_dict()) fail("argument after ** must be a mapping");
    const NamedValues explicit_args = values.keyword;
    for (const auto& [key, value] : spread.dict()->entries()) {
      if (!key.is_string()) fail("keywords must be strings");
      budget.step();
      budget.read(key.as_string().size());
      if (find_named(explicit_args, key.as_string(), budget)) {
        fail(fmt::format("got multiple values for keyword argument '{}'", key.as_string()));
      }
      values.keyword.emplace_back(key.as_string(), value);
    }
  }
  return values;
}

Value Interpreter::call(const Value& callee, Args args) {
  if (callee.is_undefined()) fail(callee.undefined_reason());
  if (!callee.is_object()) fail(fmt::format("'{}' object is not callable", callee.type_name()));
  const Value::ObjectPtr keep = callee.object();
  return keep->call(*this, std::move(args));
}

// ---- output

void Interpreter::emit(std::string_view text) {
  if (sink_ != &output_) {
    budget.want(captured_bytes_ + text.size());
    captured_bytes_ += text.size();
  }
  if (text.size() > limits.max_output_bytes - sink_->size()) {
    fail(
        fmt::format("the output is too large; expected at most {} bytes", limits.max_output_bytes));
  }
  budget.read(text.size());
  sink_->append(text);
}

std::pair<Flow, std::string> Interpreter::capture(const std::function<Flow()>& run) {
  std::string text;
  struct Redirect {
    Interpreter& interpreter;
    std::string* before;
    std::string& text;
    ~Redirect() {
      interpreter.sink_ = before;
      interpreter.captured_bytes_ -= text.size();
    }
  };
  Flow flow = Flow::kNext;
  {
    const Redirect redirect{*this, std::exchange(sink_, &text), text};
    flow = run();
  }
  return {flow, std::move(text)};
}

// ---- scopes

Interpreter::ScopeGuard::ScopeGuard(Interpreter& interpreter, Scope* outer)
    : interpreter_(interpreter), before_(interpreter.scope_), scope_(std::make_unique<Scope>()) {
  scope_->outer = outer != nullptr ? outer : before_;
  interpreter_.scope_ = scope_.get();
}

Interpreter::ScopeGuard::~ScopeGuard() {
  interpreter_.scope_ = before_;
  if (scope_->captured) interpreter_.kept_scopes_.push_back(std::move(scope_));
}

void Interpreter::ScopeGuard::renew() {
  if (!scope_->captured) return scope_->variables.clear();
  auto fresh = std::make_unique<Scope>();
  fresh->outer = scope_->outer;
  interpreter_.kept_scopes_.push_back(std::exchange(scope_, std::move(fresh)));
  interpreter_.scope_ = scope_.get();
}

Scope& Interpreter::capture_scope() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->outer) {
    scope->captured = true;
    budget.take(sizeof(Scope));  // never given back, because the scope lives until the end
  }
  return *scope_;
}

// ---- values

void Interpreter::check_depth(int value_depth) const {
  if (value_depth > kMaxValueDepth) {
    fail(fmt::format("values are nested too deeply; expected at most {} levels", kMaxValueDepth));
  }
}

Value Interpreter::make_string(std::string text, bool markup) {
  budget.step();
  budget.read(text.size());
  auto made = std::make_shared<Text>();
  made->charge = MemoryCharge(budget, sizeof(Text) + text.capacity());
  made->num_chars = count_chars(text);
  made->utf8 = std::move(text);
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

std::string map_text(Budget& budget, std::string (*map)(std::string_view), std::string_view text) {
  budget.want(text.size() * 8);  // twice the text as code points
  budget.read(text.size() * 2);
  return map(text);
}

bool classify_text(Budget& budget, std::string_view question, std::string_view text) {
  budget.read(text.size() * 2);
  return *classify(question, text);
}

std::string_view shortened(std::string_view text) {
  constexpr size_t kMaxBytes = 200;
  if (text.size() <= kMaxBytes) return text;
  return text.substr(0, complete_utf8_prefix(text.substr(0, kMaxBytes)));
}

Value Interpreter::make_mutable(std::shared_ptr<Object> object) {
  mutable_objects_.push_back(object);
  return make_object(std::move(object));
}

}  // namespace quire::jinja
