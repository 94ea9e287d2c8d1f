// How statements execute, with macros and the variable `loop`.
#include <fmt/format.h>

#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

// ---- macros

namespace {

// A macro, or the body of a call block, which is passed to a macro as `caller`.
struct Macro : Object {
  Macro(const MacroDef& the_def, Scope& the_scope) : def(the_def), scope(the_scope) {}
  std::string type_name() const override { return "Macro"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(Interpreter& vm, std::string_view name) override {
    if (name == "name") return vm.make_string(def.name);
    return std::nullopt;
  }

  Value call(Interpreter& vm, Args args) override {
    const Interpreter::CallLevel call_level(vm);
    const Interpreter::ScopeGuard guard(vm, &scope);
    bind(vm, args);
    return vm.make_string(vm.capture([&] { return vm.exec(def.body); }).second);
  }

  void bind(Interpreter& vm, Args& args) const {
    const size_t num_params = def.params.size();
    const size_t num_given = std::min(args.positional.size(), num_params);
    for (size_t i = 0; i < num_given; ++i) vm.set(def.params[i], args.positional[i]);
    bool found_caller = false;
    std::vector<std::optional<Value>> by_name(num_params);
    for (size_t i = num_given; i < num_params; ++i) {
      vm.budget.step();
      by_name[i] = args.take(vm.name(def.params[i]), vm.budget);
      found_caller = found_caller || vm.name(def.params[i]) == "caller";
    }
    bind_specials(vm, args, found_caller);
    // Defaults are evaluated last and in order, because they may read earlier parameters.
    for (size_t i = num_given; i < num_params; ++i) {
      const size_t first_default = num_params - def.defaults.size();
      Value value;
      if (by_name[i]) {
        value = *by_name[i];
      } else if (i >= first_default) {
        value = vm.eval(*def.defaults[i - first_default]);
      } else {
        value = vm.make_undefined(
            fmt::format("parameter '{}' was not provided", shortened(vm.name(def.params[i]))));
      }
      vm.set(def.params[i], std::move(value));
    }
  }

  void bind_specials(Interpreter& vm, Args& args, bool found_caller) const {
    if (def.uses_caller && !found_caller) {
      const std::optional<Value> caller = args.take("caller", vm.budget);
      vm.set(kCallerName,
             caller && !caller->is_none() ? *caller : Value::undefined("No caller defined"));
    }
    if (def.uses_kwargs) {
      std::vector<Dict::Entry> rest;
      for (const auto& [key, value] : args.keyword) {
        rest.emplace_back(vm.make_string(key), value);
      }
      vm.set(kKwargsName, vm.make_dict(std::move(rest)));
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
      vm.set(kVarargsName, vm.make_tuple(std::move(rest)));
    } else if (args.positional.size() > num_params) {
      fail(fmt::format("macro '{}' takes not more than {} argument(s)", def.name, num_params));
    }
  }

  const MacroDef& def;
  Scope& scope;
};

}  // namespace

// ---- loops

namespace {

// `outer` is the scope that encloses the loop.
Flow run_loop(Interpreter& vm, const ForStmt& stmt, const Value& items, int depth0, Scope& outer);
std::string run_recursive_loop(Interpreter& vm, const ForStmt& stmt, const Value& items, int depth0,
                               Scope& outer);

bool passes(Interpreter& vm, const ForStmt& stmt, Scope& outer, const Value& item) {
  const Interpreter::ScopeGuard guard(vm, &outer);
  vm.assign(stmt.target, item);
  return truthy(vm.eval(*stmt.test));
}

// The variable `loop`. Like Jinja, it applies the loop's filter to an item only when the loop, or a
// look ahead such as loop.last, asks for the next item.
struct Loop : Object, std::enable_shared_from_this<Loop> {
  Loop(const ForStmt& the_stmt, std::vector<Value> the_items, int the_depth0, Scope& the_outer)
      : stmt(&the_stmt),
        items(std::move(the_items)),
        filters(the_stmt.test != nullptr),
        depth0(the_depth0),
        outer(&the_outer) {
    for (const Value& item : items) depth = std::max(depth, item.depth());
    ++depth;
  }
  std::string type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  std::optional<int64_t> length() const override { return total >= 0 ? total : index0 + 1; }

  std::optional<Value> pull(Interpreter& vm) {
    while (stmt != nullptr && position < items.size()) {
      vm.budget.step();
      const Value item = items[position++];
      if (!filters || passes(vm, *stmt, *outer, item)) return item;
    }
    return std::nullopt;
  }

  const std::optional<Value>& peek(Interpreter& vm) {
    if (!std::exchange(peeked, true)) after = pull(vm);
    return after;
  }

  bool advance(Interpreter& vm) {
    std::optional<Value> item = peeked ? std::move(after) : pull(vm);
    peeked = false;
    if (!item) return false;
    ++index0;
    before = std::exchange(current, std::move(item));
    return true;
  }

  int64_t count(Interpreter& vm) {
    if (total >= 0) return total;
    if (stmt == nullptr) return index0 + 1;
    if (!filters) return total = static_cast<int64_t>(items.size());
    // Filters the remaining items.
    std::vector<Value> rest;
    while (auto item = pull(vm)) rest.push_back(*item);
    total = index0 + 1 + (peeked && after ? 1 : 0) + static_cast<int64_t>(rest.size());
    filters = false;
    items = std::move(rest);
    position = 0;
    return total;
  }

  bool changed(Interpreter& vm, const Args& args) {
    if (stmt == nullptr) fail("loop.changed() after the end of its loop");
    Value now = vm.make_list(args.positional);
    const bool same = last_changed && equal(now, *last_changed, &vm.budget);
    if (!same) last_changed = std::move(now);
    return !same;
  }

  void clear() override {
    stmt = nullptr;
    items.clear();
    before.reset();
    current.reset();
    after.reset();
    last_changed.reset();
  }

  void write_repr(TextBuilder& out, int) const override {
    out.append(fmt::format("<LoopContext {}/{}>", index0 + 1,
                           total >= 0 ? total : static_cast<int64_t>(items.size())));
  }

  Value call(Interpreter& vm, Args args) override {
    if (stmt == nullptr || !stmt->recursive) {
      fail("The loop must have the 'recursive' marker to be called recursively.");
    }
    if (args.positional.size() != 1) fail("loop() takes one argument, what to loop over");
    return vm.make_string(run_recursive_loop(vm, *stmt, args.positional[0], depth0 + 1, *outer));
  }

  std::optional<Value> attribute(Interpreter& vm, std::string_view name) override {
    const auto number = [](int64_t n) { return Value::integer(n); };
    if (name == "index") return number(index0 + 1);
    if (name == "index0") return number(index0);
    if (name == "first") return Value::boolean(index0 == 0);
    if (name == "last") return Value::boolean(!peek(vm).has_value());
    if (name == "length") return number(count(vm));
    if (name == "revindex") return number(count(vm) - index0);
    if (name == "revindex0") return number(count(vm) - index0 - 1);
    if (name == "depth") return number(depth0 + 1);
    if (name == "depth0") return number(depth0);
    if (name == "previtem") {
      return before && index0 > 0 ? *before : Value::undefined("there is no previous item");
    }
    if (name == "nextitem") {
      const std::optional<Value>& item = peek(vm);
      return item ? *item : Value::undefined("there is no next item");
    }
    if (name == "cycle") {
      return vm.make_function(
          depth + 1, [self = shared_from_this()](Interpreter&, const Args& args) {
            if (args.positional.empty()) fail("no items for cycling given");
            return args.positional[static_cast<size_t>(self->index0) % args.positional.size()];
          });
    }
    if (name == "changed") {
      return vm.make_function(depth + 1,
                              [self = shared_from_this()](Interpreter& run, const Args& args) {
                                return Value::boolean(self->changed(run, args));
                              });
    }
    return std::nullopt;
  }

  const ForStmt* stmt;  // null when the loop has ended
  std::vector<Value> items;
  bool filters;  // the items from `position` on are not filtered yet
  size_t position = 0;
  std::optional<Value> before, current, after;
  bool peeked = false;
  int64_t index0 = -1;
  int64_t total = -1;
  std::optional<Value> last_changed;
  int depth0;
  Scope* outer;
};

Flow run_loop(Interpreter& vm, const ForStmt& stmt, const Value& items, int depth0, Scope& outer) {
  const auto loop = std::make_shared<Loop>(stmt, to_items(vm, items), depth0, outer);
  vm.check_depth(loop->depth);
  loop->charge = MemoryCharge(vm.budget, sizeof(Loop) + loop->items.size() * sizeof(Value));
  // A template may keep `loop` after its end; clear() drops everything that it refers to.
  struct Finish {
    Loop& loop;
    ~Finish() { loop.clear(); }
  } finish{*loop};

  bool completed = false;
  {
    Interpreter::ScopeGuard guard(vm, &outer);
    while (loop->advance(vm)) {
      guard.renew();
      vm.assign(stmt.target, *loop->current);
      vm.set(kLoopName, Value::of(Value::ObjectPtr(loop)));
      const Flow flow = vm.exec(stmt.body);
      completed = completed || flow == Flow::kNext;
      if (flow == Flow::kBreak) break;
    }
  }
  // In Jinja, `else` runs unless an iteration ran to its end. `break` and `continue` prevent that.
  if (completed) return Flow::kNext;
  const Interpreter::ScopeGuard guard(vm, &outer);
  return vm.exec(stmt.otherwise);
}

std::string run_recursive_loop(Interpreter& vm, const ForStmt& stmt, const Value& items, int depth0,
                               Scope& outer) {
  const Interpreter::CallLevel call_level(vm);
  return vm.capture([&] { return run_loop(vm, stmt, items, depth0, outer); }).second;
}

}  // namespace

// ---- statements

Flow TextStmt::exec(Interpreter& vm) const {
  vm.emit(text);
  return Flow::kNext;
}

Flow PrintStmt::exec(Interpreter& vm) const {
  for (const ExprPtr& expr : values) {
    const Value value = vm.eval(*expr);
    if (value.is_string()) {
      vm.emit(value.as_string());
    } else {
      vm.emit(to_str(value, vm.budget));
    }
  }
  return Flow::kNext;
}

Flow IfStmt::exec(Interpreter& vm) const {
  for (const auto& [test, body] : branches) {
    if (truthy(vm.eval(*test))) return vm.exec(body);
  }
  return vm.exec(otherwise);
}

Flow ForStmt::exec(Interpreter& vm) const {
  const Value items = vm.eval(*iterable);
  if (!recursive) return run_loop(vm, *this, items, 0, vm.current_scope());
  const std::string text = run_recursive_loop(vm, *this, items, 0, vm.current_scope());
  vm.emit(text);
  return Flow::kNext;
}

Flow SetStmt::exec(Interpreter& vm) const {
  vm.assign(target, vm.eval(*value));
  return Flow::kNext;
}

Flow CaptureStmt::exec(Interpreter& vm) const {
  Value value;
  {
    const Interpreter::ScopeGuard guard(vm);
    auto [flow, text] = vm.capture([&] { return vm.exec(body); });
    if (flow != Flow::kNext) return flow;
    value = vm.make_string(std::move(text));
    if (filter) value = static_cast<const FilterOrTestExpr&>(*filter).apply(vm, value);
  }
  if (target) {
    vm.assign(*target, value);
  } else {
    vm.emit(to_str(value, vm.budget));
  }
  return Flow::kNext;
}

Flow MacroStmt::exec(Interpreter& vm) const {
  vm.set(name, vm.make_object(std::make_shared<Macro>(def, vm.keep_scope())));
  return Flow::kNext;
}

Flow CallBlockStmt::exec(Interpreter& vm) const {
  const Value caller = vm.make_object(std::make_shared<Macro>(def, vm.keep_scope()));
  const Value callee = vm.eval(*call->operands[0]);
  Args args = vm.eval_args(*call, static_cast<const CallExpr&>(*call).arg_names);
  args.keyword.emplace_back("caller", caller);
  const Value result = vm.call(callee, std::move(args));
  vm.emit(to_str(result, vm.budget));
  return Flow::kNext;
}

Flow ScopeStmt::exec(Interpreter& vm) const {
  std::vector<Value> values;
  for (const auto& [target, expr] : variables) values.push_back(vm.eval(*expr));
  const Interpreter::ScopeGuard guard(vm);
  for (size_t i = 0; i < values.size(); ++i) vm.assign(variables[i].first, values[i]);
  return vm.exec(body);
}

}  // namespace quire::jinja
