#include "jinja/loop.h"

#include <fmt/format.h>

#include <algorithm>

namespace quire::jinja {

namespace {

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
  Value call(Interpreter& interpreter, Args args) override;
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;
  std::optional<int64_t> length(Budget& budget) override;
  void write_repr(TextBuilder& out, int level) const override;
  void clear() override;

  bool advance(Interpreter& interpreter);
  const std::optional<Value>& peek(Interpreter& interpreter);
  std::optional<Value> pull(Interpreter& interpreter);
  int64_t count(Interpreter& interpreter);
  bool changed(Interpreter& interpreter, const Args& args);

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

bool passes(Interpreter& interpreter, const ForStmt& stmt, Scope& outer, const Value& item) {
  const Interpreter::ScopeGuard guard(interpreter, &outer);
  interpreter.assign(stmt.target, item);
  return truthy(interpreter.eval(*stmt.test));
}

std::optional<Value> Loop::pull(Interpreter& interpreter) {
  while (stmt != nullptr && position < items.size()) {
    interpreter.budget.step();
    const Value item = items[position++];
    if (!filters || passes(interpreter, *stmt, *outer, item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek(Interpreter& interpreter) {
  if (!std::exchange(peeked, true)) after = pull(interpreter);
  return after;
}

bool Loop::advance(Interpreter& interpreter) {
  std::optional<Value> item = peeked ? std::move(after) : pull(interpreter);
  peeked = false;
  if (!item) return false;
  ++index0;
  before = std::exchange(current, std::move(item));
  return true;
}

int64_t Loop::count(Interpreter& interpreter) {
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

std::optional<int64_t> Loop::length(Budget&) {
  return total >= 0 ? total : index0 + 1;
}

bool Loop::changed(Interpreter& interpreter, const Args& args) {
  if (stmt == nullptr) fail("loop.changed() after the end of its loop");
  Value now = interpreter.make_list(args.positional);
  const bool same = last_changed && equal(now, *last_changed, &interpreter.budget);
  if (!same) last_changed = std::move(now);
  return !same;
}

void Loop::clear() {
  stmt = nullptr;
  items.clear();
  before.reset();
  current.reset();
  after.reset();
  last_changed.reset();
}

void Loop::write_repr(TextBuilder& out, int) const {
  out.append(fmt::format("<LoopContext {}/{}>", index0 + 1,
                         total >= 0 ? total : static_cast<int64_t>(items.size())));
}

Value Loop::call(Interpreter& interpreter, Args args) {
  if (stmt == nullptr || !stmt->recursive) {
    fail("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (args.positional.size() != 1) fail("loop() takes one argument, what to loop over");
  return interpreter.make_string(
      run_recursive_loop(interpreter, *stmt, args.positional[0], depth0 + 1, *outer));
}

// The methods loop.cycle and loop.changed, bound to their loop.
struct LoopMethod : Object {
  LoopMethod(std::shared_ptr<Loop> the_loop, bool is_cycle)
      : loop(std::move(the_loop)), cycles(is_cycle) {
    depth = loop->depth + 1;
  }
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args args) override {
    if (!cycles) return Value::boolean(loop->changed(interpreter, args));
    if (args.positional.empty()) fail("no items for cycling given");
    return args.positional[static_cast<size_t>(loop->index0) % args.positional.size()];
  }

  std::shared_ptr<Loop> loop;
  bool cycles;
};

std::optional<Value> Loop::attribute(Interpreter& interpreter, std::string_view name) {
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
  if (name == "cycle" || name == "changed") {
    return interpreter.make_object(
        std::make_shared<LoopMethod>(shared_from_this(), name == "cycle"));
  }
  return std::nullopt;
}

}  // namespace

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

std::string run_recursive_loop(Interpreter& interpreter, const ForStmt& stmt, const Value& items,
                               int depth0, Scope& outer) {
  const Interpreter::CallLevel call_level(interpreter);
  return interpreter.capture([&] { return run_loop(interpreter, stmt, items, depth0, outer); })
      .second;
}

}  // namespace quire::jinja
