// The syntax tree of a template. Each node evaluates or executes itself (eval_expr.cc,
// exec_stmt.cc).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jinja/builtins.h"
#include "jinja/value.h"

namespace quire::jinja {

class Interpreter;

// A variable's name, as its index in Program::names.
using NameId = int32_t;
// The names with a built-in meaning come first in every program (kSpecialNames).
inline constexpr NameId kLoopName = 0, kCallerName = 1, kVarargsName = 2, kKwargsName = 3;
inline constexpr const char* kSpecialNames[] = {"loop", "caller", "varargs", "kwargs"};

enum class Flow { kNext, kBreak, kContinue };

struct Expr {
  virtual ~Expr() = default;
  // Called only through Interpreter::eval, which counts the work and bounds the recursion.
  virtual Value eval(Interpreter& interpreter) const = 0;

  int line = 1;
  int depth = 1;  // of the tree below, including this node
};
using ExprPtr = std::unique_ptr<Expr>;

struct Stmt {
  virtual ~Stmt() = default;
  virtual Flow exec(Interpreter& interpreter) const = 0;

  int line = 1;
};
using Body = std::vector<std::unique_ptr<Stmt>>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr spread;          // *args
  ExprPtr keyword_spread;  // **kwargs
};

// ---- expressions

struct ConstExpr : Expr {
  Value eval(Interpreter&) const override { return value; }
  Value value;
};

struct NameExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  NameId name = 0;
};

struct SequenceExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
};

struct DictExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct UnaryExpr : Expr {
  enum class Op { kNot, kMinus, kPlus };
  Value eval(Interpreter& interpreter) const override;
  Op op = Op::kNot;
  ExprPtr operand;
};

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
struct BinaryExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  BinaryOp op = BinaryOp::kAdd;
  ExprPtr left, right;
};

struct LogicExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  bool is_and = true;
  ExprPtr left, right;
};

enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
struct CompareExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct ConcatExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  std::vector<ExprPtr> parts;
};

struct CondExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr test, then, otherwise;  // otherwise may be null
};

struct AttributeExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr base;
  std::string name;
};

struct ItemExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr base, key;
};

struct SliceExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr base, start, stop, step;  // all but base may be null
};

struct CallExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr callee;
  CallArgs args;
};

struct FilterExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  Value apply(Interpreter& interpreter, const Value& value) const;
  ExprPtr input;  // null at the head of the chain of a filter block or block set
  std::string name;
  const Builtin* filter = nullptr;  // null: an unknown filter, which is an error only if evaluated
  CallArgs args;
};

struct TestExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  ExprPtr input;
  std::string name;
  const Builtin* test = nullptr;
  CallArgs args;
};

// ---- statements

// The left side of `=`: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  NameId name = -1;  // -1: a tuple
  std::optional<std::string> attribute;
  std::vector<Target> parts;
};

struct MacroDef {
  std::string name;
  std::vector<NameId> params;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct TextStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::string text;
};

struct PrintStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::vector<ExprPtr> values;
};

struct IfStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

struct ForStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  Target target;
  ExprPtr iterable, test;  // test may be null
  bool recursive = false;
  Body body, otherwise;
};

struct SetStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  Target target;
  ExprPtr value;
};

// {% set x %}…{% endset %} or {% filter f %}…{% endfilter %}. Without a target it prints the
// result.
struct CaptureStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::optional<Target> target;
  ExprPtr filter;  // may be null; the innermost FilterExpr has no input
  Body body;
};

struct MacroStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  NameId name = 0;
  std::unique_ptr<MacroDef> def;
};

struct CallBlockStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::unique_ptr<MacroDef> def;
  std::unique_ptr<CallExpr> call;
};

// {% with %} and {% generation %}.
struct ScopeStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  std::vector<std::pair<Target, ExprPtr>> variables;
  Body body;
};

struct FlowStmt : Stmt {
  Flow exec(Interpreter&) const override { return flow; }
  Flow flow = Flow::kBreak;
};

struct Program {
  Body body;
  std::vector<std::string> names;  // indexed by NameId
};

}  // namespace quire::jinja
