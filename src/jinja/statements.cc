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
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override {
    if (name == "name") return interpreter.make_literal(def.name);
    return std::nullopt;
  }

  Value call(Interpreter& interpreter, Args args) override {
    const Interpreter::CallLevel call_level(interpreter);
    const Interpreter::ScopeGuard guard(interpreter, &scope);
    bind(interpreter, args);
    return interpreter.make_string(
        interpreter.capture([&] { return interpreter.exec(def.body); }).second);
  }

  void bind(Interpreter& interpreter, Args& args) const {
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

  void bind_specials(Interpreter& interpreter, Args& args, bool found_caller) const {
    if (def.uses_caller && !found_caller) {
      const std::optional<Value> caller = args.take("caller", interpreter.budget);
      interpreter.set(kCallerName, caller && !caller->is_none()
                                       ? *caller
                                       : Value::undefined("No caller defined"));
    }
    if (def.uses_kwargs) {
      std::vector<Dict::Entry> rest;
      for (const auto& [key, value] : args.keyword) {
        rest.emplace_back(interpreter.make_keyword(key), value);
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

  const MacroDef& def;
  Scope& scope;
};

}  // namespace

// ---- loops

namespace {

// `outer` is the scope that encloses the loop.
Flow run_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items, int depth0,
              Scope& outer);
MarkedText run_recursive_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items,
                              int depth0, Scope& outer);

bool passes(Interpreter& interpreter, const ForStmt& stmt, Scope& outer, const Value& item) {
  const Interpreter::ScopeGuard guard(interpreter, &outer);
  interpreter.assign(stmt.target, item);
  return truthy(interpreter.eval(*stmt.test));
}

// The variable `loop`. Like Jinja, it applies the loop's filter to an item only when the loop, or a
// look ahead such as loop.last, needs the next item.
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

  std::optional<Value> pull(Interpreter& interpreter) {
    while (stmt != nullptr && position < items.size()) {
      interpreter.budget.step();
      const Value item = items[position++];
      if (!filters || passes(interpreter, *stmt, *outer, item)) return item;
    }
    return std::nullopt;
  }

  const std::optional<Value>& peek(Interpreter& interpreter) {
    if (!std::exchange(peeked, true)) after = pull(interpreter);
    return after;
  }

  bool advance(Interpreter& interpreter) {
    std::optional<Value> item = peeked ? std::move(after) : pull(interpreter);
    peeked = false;
    if (!item) return false;
    ++index0;
    before = std::exchange(current, std::move(item));
    return true;
  }

  int64_t count(Interpreter& interpreter) {
    if (total >= 0) return total;
    if (stmt == nullptr) return index0 + 1;
    if (!filters) return total = static_cast<int64_t>(items.size());
    // Filters the remaining items.
    std::vector<Value> rest;
    while (auto item = pull(interpreter)) rest.push_back(*item);
    total = index0 + 1 + (peeked && after ? 1 : 0) + static_cast<int64_t>(rest.size());
    filters = false;
    items = std::move(rest);
    position = 0;
    return total;
  }

  bool changed(Interpreter& interpreter, const Args& args) {
    if (stmt == nullptr) fail("loop.changed() after the end of its loop");
    Value now = interpreter.make_list(args.positional);
    const bool same = last_changed && equal(now, *last_changed, &interpreter.budget);
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
    out.append_literal(fmt::format("<LoopContext {}/{}>", index0 + 1,
                                   total >= 0 ? total : static_cast<int64_t>(items.size())));
  }

  Value call(Interpreter& interpreter, Args args) override {
    if (stmt == nullptr || !stmt->recursive) {
      fail("The loop must have the 'recursive' marker to be called recursively.");
    }
    if (args.positional.size() != 1) fail("loop() takes one argument, what to loop over");
    return interpreter.make_string(
        run_recursive_loop(interpreter, *stmt, args.positional[0], depth0 + 1, *outer));
  }

  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override {
    const auto number = [](int64_t n) { return Value::integer(n); };
    if (name == "index") return number(index0 + 1);
    if (name == "index0") return number(index0);
    if (name == "first") return Value::boolean(index0 == 0);
    if (name == "last") return Value::boolean(!peek(interpreter).has_value());
    if (name == "length") return number(count(interpreter));
    if (name == "revindex") return number(count(interpreter) - index0);
    if (name == "revindex0") return number(count(interpreter) - index0 - 1);
    if (name == "depth") return number(depth0 + 1);
    if (name == "depth0") return number(depth0);
    if (name == "previtem") {
      return before && index0 > 0 ? *before : Value::undefined("there is no previous item");
    }
    if (name == "nextitem") {
      const std::optional<Value>& item = peek(interpreter);
      return item ? *item : Value::undefined("there is no next item");
    }
    if (name == "cycle") {
      return interpreter.make_function(
          depth + 1, [self = shared_from_this()](Interpreter&, const Args& args) {
            if (args.positional.empty()) fail("no items for cycling given");
            return args.positional[static_cast<size_t>(self->index0) % args.positional.size()];
          });
    }
    if (name == "changed") {
      return interpreter.make_function(
          depth + 1, [self = shared_from_this()](Interpreter& run, const Args& args) {
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

Flow run_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items, int depth0,
              Scope& outer) {
  const auto loop = std::make_shared<Loop>(stmt, to_items(interpreter, items), depth0, outer);
  interpreter.check_depth(loop->depth);
  loop->charge =
      MemoryCharge(interpreter.budget, sizeof(Loop) + loop->items.size() * sizeof(Value));
  // A template may keep `loop` after its end; clear() drops everything that it refers to.
  struct Finish {
    Loop& loop;
    ~Finish() { loop.clear(); }
  } finish{*loop};

  bool completed = false;
  {
    Interpreter::ScopeGuard guard(interpreter, &outer);
    while (loop->advance(interpreter)) {
      guard.renew();
      interpreter.assign(stmt.target, *loop->current);
      interpreter.set(kLoopName, Value::of(Value::ObjectPtr(loop)));
      const Flow flow = interpreter.exec(stmt.body);
      completed = completed || flow == Flow::kNext;
      if (flow == Flow::kBreak) break;
    }
  }
  // In Jinja, `else` runs unless an iteration ran to its end. `break` and `continue` prevent that.
  if (completed) return Flow::kNext;
  const Interpreter::ScopeGuard guard(interpreter, &outer);
  return interpreter.exec(stmt.otherwise);
}

MarkedText run_recursive_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items,
                              int depth0, Scope& outer) {
  const Interpreter::CallLevel call_level(interpreter);
  return interpreter.capture([&] { return run_loop(interpreter, stmt, items, depth0, outer); })
      .second;
}

}  // namespace

// ---- statements

Flow TextStmt::exec(Interpreter& interpreter) const {
  interpreter.emit(text);
  return Flow::kNext;
}

Flow PrintStmt::exec(Interpreter& interpreter) const {
  for (const ExprPtr& expr : values) {
    const Value value = interpreter.eval(*expr);
    if (value.is_string()) {
      interpreter.emit(*value.text());
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
  const MarkedText text =
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
    value = interpreter.make_string(std::move(text));
    if (filter) value = static_cast<const FilterOrTestExpr&>(*filter).apply(interpreter, value);
  }
  if (target) {
    interpreter.assign(*target, value);
  } else {
    interpreter.emit(to_str(value, interpreter.budget));
  }
  return Flow::kNext;
}

Flow MacroStmt::exec(Interpreter& interpreter) const {
  interpreter.set(name,
                  interpreter.make_object(std::make_shared<Macro>(def, interpreter.keep_scope())));
  return Flow::kNext;
}

Flow CallBlockStmt::exec(Interpreter& interpreter) const {
  const Value caller =
      interpreter.make_object(std::make_shared<Macro>(def, interpreter.keep_scope()));
  const Value callee = interpreter.eval(*call->operands[0]);
  Args args = interpreter.eval_args(*call, static_cast<const CallExpr&>(*call).arg_names);
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
