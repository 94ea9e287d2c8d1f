// The state of one render, and the operations on its values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/syntax.h"
#include "jinja/value.h"

namespace quire::jinja {

// The variables set inside one for, macro, block or the like. Other names are looked up in `outer`.
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<NameId, Value>> variables;
  bool is_kept = false;  // a macro refers to it, so it exists until the end of the render

  Value* find(NameId name, Budget& budget);
  void set(NameId name, Value value, Budget& budget);
};

// A function as a value, see Interpreter::make_function.
template <typename Call>
struct Function : Object {
  Function(int the_depth, Call the_run) : run(std::move(the_run)) { depth = the_depth; }
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args args) override { return run(interpreter, args); }

  Call run;
};

// Executes a template once.
class Interpreter {
 public:
  Interpreter(const Program& program, const Value& variables, const TemplateLimits& limits);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  MarkedText run();

  // ---- evaluating the syntax tree
  Value eval(const Expr& expr);
  Flow exec(const Body& body);
  Value lookup(NameId name);
  void assign(const Target& target, const Value& value);
  void set(NameId name, Value value) { scope_->set(name, std::move(value), budget); }
  // Evaluates the operands after the first: the arguments of a call, filter or test.
  Args eval_args(const Expr& call, const ArgNames& names);
  Value call(const Value& callee, Args args);
  const std::string& name(NameId id) const { return program_.names[static_cast<size_t>(id)]; }

  // ---- output
  void emit(const MarkedText& text);
  // Runs `run` and returns its output instead of printing it.
  std::pair<Flow, MarkedText> capture(const std::function<Flow()>& run);

  // ---- scopes
  class ScopeGuard {
   public:
    // Opens a scope inside `outer`, by default inside the current scope.
    explicit ScopeGuard(Interpreter& interpreter, Scope* outer = nullptr);
    ~ScopeGuard();
    // Replaces the scope by a new one for the next iteration of a loop.
    void renew();

   private:
    Interpreter& interpreter_;
    Scope* before_;
    std::unique_ptr<Scope> scope_;
  };
  Scope& current_scope() { return *scope_; }
  Scope& keep_scope();

  // ---- values, charged to the budget
  Value make_string(MarkedText text, bool markup = false);
  Value make_literal(std::string text) { return make_string({std::move(text), {}}); }
  // The name of a keyword argument. It counts as a request's text, because `**` may have spread a
  // dict of the request.
  Value make_keyword(std::string_view name) { return make_string(copy_untrusted(name)); }
  Value make_list(std::vector<Value> items, Sequence::Type type = Sequence::Type::kList);
  Value make_tuple(std::vector<Value> items) {
    return make_list(std::move(items), Sequence::Type::kTuple);
  }
  Value make_dict(std::vector<Dict::Entry> entries);
  Value make_object(std::shared_ptr<Object> object, size_t num_extra_bytes = 0);
  Value make_iterator(std::vector<Value> items);
  // A builtin as a value, bound to the `self` that it will be called with.
  Value make_method(const Value& self, const Builtin& builtin);
  // A function Value(Interpreter&, const Args&) as a value; `depth`: depth of the values in it.
  template <typename Call>
  Value make_function(int depth, Call call) {
    return make_object(std::make_shared<Function<Call>>(depth, std::move(call)));
  }
  Value make_undefined(std::string reason);
  // For objects that may come to refer to themselves: they are cleared when the render ends.
  Value make_mutable(std::shared_ptr<Object> object);
  void check_depth(int value_depth) const;

  // Bounds all recursion: of the tree, of macros and of recursive loops.
  class Level {
   public:
    explicit Level(Interpreter& interpreter);
    ~Level() { --interpreter_.level_; }

   private:
    Interpreter& interpreter_;
  };
  class CallLevel {
   public:
    explicit CallLevel(Interpreter& interpreter);
    ~CallLevel();

   private:
    Interpreter& interpreter_;
    int line_;
  };

  Budget budget;
  const TemplateLimits& limits;
  int line = 1;

 private:
  friend class ScopeGuard;

  void spread_keywords(const Value& value, Args& args);

  const Program& program_;
  const Value& variables_;
  Scope root_;
  Scope* scope_ = &root_;
  std::vector<std::unique_ptr<Scope>> kept_scopes_;
  std::vector<std::shared_ptr<Object>> mutable_objects_;
  // A destination of output.
  struct Sink {
    MarkedText text;
    MemoryCharge charge;  // for the marks
  };
  Sink output_;
  Sink* sink_ = &output_;
  size_t captured_bytes_ = 0;
  int level_ = 0;
  int call_level_ = 0;
};

// ---- Python's operations (operators.cc)

Value apply_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& operand, bool minus);
bool contains(Interpreter& interpreter, const Value& container, const Value& item);
bool compare(Interpreter& interpreter, CompareOp op, const Value& left, const Value& right);

// base.name and base['name'], each with Jinja's order of lookups.
Value get_attribute(Interpreter& interpreter, const Value& base, std::string_view name);
Value get_item(Interpreter& interpreter, const Value& base, const Value& key);
Value get_slice(Interpreter& interpreter, const Value& base, const Value& start, const Value& stop,
                const Value& step);
// The value of a filter's `attribute="a.b.0"`. If `otherwise` is given, it replaces undefined
// values on the path.
Value attribute_path(Interpreter& interpreter, const Value& item, const Value& path,
                     const Value* otherwise = nullptr);
// Returns the items of an iterable value. Charges a step per item, so that loops over the items
// need not charge. Fails if the value is not iterable.
std::vector<Value> to_items(Interpreter& interpreter, const Value& value);
bool is_iterable(const Value& value);
std::optional<int64_t> length_of(const Value& value);
// Applies a function of python_text.h to the text. Charges for the result before it is made. All of
// the result is untrusted if a byte of the text is.
MarkedText map_text(Budget& budget, std::string (*map)(std::string_view), const MarkedText& text);

// ---- text (strings.cc, python_text.cc)

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  std::optional<MarkedText> indent;
  MarkedText item_separator = {", ", {}}, key_separator = {": ", {}};
};
MarkedText dump_json(const Value& value, const JsonStyle& style, Budget& budget);
// Replaces &, <, >, " and ' by character references.
void write_html_escaped(const MarkedText& text, TextBuilder& out);
// "%s is %d" % args; `escapes`: the format is markup, so texts in `args` are escaped.
MarkedText format_percent(Interpreter& interpreter, const MarkedText& format, const Value& args,
                          bool escapes);

}  // namespace quire::jinja
