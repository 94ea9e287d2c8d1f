// A template's tokens, from tokenize() (lexer.cc), and its syntax tree, from parse_template()
// (parser.cc), which calls tokenize(). The nodes evaluate and execute themselves (interpreter.cc).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace quire::jinja {

class Interpreter;
struct Builtin;

// ---- tokens

enum class TokenType {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kNumber,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type;
  std::string text;  // data and strings: the value; operators and names: as written
  Value number;
  int line = 1;

  bool is_op(std::string_view op) const { return type == TokenType::kOperator && text == op; }
  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
};

// Splits a template into tokens, with the white-space rules of Jinja's lexer under
// trim_blocks=True, lstrip_blocks=True and keep_trailing_newline=False. The last token is kEnd.
// Throws Error.
std::vector<Token> tokenize(std::string_view source);

// Reads tokens one after the other.
class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  const Token& current() const { return tokens_[pos_]; }
  const Token& peek() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  Token next() { return pos_ + 1 < tokens_.size() ? tokens_[pos_++] : tokens_[pos_]; }
  // Returns whether the token is this operator, such as `+` or `and`.
  bool at(std::string_view op) const { return current().is_op(op) || current().is_name(op); }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(TokenType type);
  // Fails with the message and the current token.
  [[noreturn]] void fail_here(std::string_view message) const;

 protected:
  std::vector<Token> tokens_;
  size_t pos_ = 0;
};

// ---- expressions

// A variable's name, as its index in Program::names.
using NameId = int32_t;
// The names with a built-in meaning come first in every program (kSpecialNames).
inline constexpr NameId kLoopName = 0, kCallerName = 1, kVarargsName = 2, kKwargsName = 3;
inline constexpr const char* kSpecialNames[] = {"loop", "caller", "varargs", "kwargs"};

struct Expr {
  virtual ~Expr() = default;
  // Called only through Interpreter::eval, which counts the work and bounds the recursion.
  virtual Value eval(Interpreter& interpreter) const = 0;

  int line = 1;
  int depth = 1;  // of the tree below, including this node
  // The parts of this expression, in the order given at each node. Null: the part is absent.
  std::vector<std::unique_ptr<Expr>> operands;
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstExpr : Expr {
  Value eval(Interpreter&) const override { return value; }
  Value value;
};

struct NameExpr : Expr {
  Value eval(Interpreter& interpreter) const override;
  NameId name = 0;
};

struct SequenceExpr : Expr {  // items
  Value eval(Interpreter& interpreter) const override;
  bool is_tuple = false;
};

struct DictExpr : Expr {  // key, value, key, value, …
  Value eval(Interpreter& interpreter) const override;
};

struct UnaryExpr : Expr {  // operand
  enum class Op { kNot, kMinus, kPlus };
  Value eval(Interpreter& interpreter) const override;
  Op op = Op::kNot;
};

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kAnd, kOr };
struct BinaryExpr : Expr {  // left, right
  Value eval(Interpreter& interpreter) const override;
  BinaryOp op = BinaryOp::kAdd;
};

enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
struct CompareExpr : Expr {  // the values compared, one more than operators
  Value eval(Interpreter& interpreter) const override;
  std::vector<CompareOp> ops;
};

struct ConcatExpr : Expr {  // parts
  Value eval(Interpreter& interpreter) const override;
};

struct CondExpr : Expr {  // then, test, otherwise (may be null)
  Value eval(Interpreter& interpreter) const override;
};

struct AttributeExpr : Expr {  // base
  Value eval(Interpreter& interpreter) const override;
  std::string name;
};

struct ItemExpr : Expr {  // base, key
  Value eval(Interpreter& interpreter) const override;
};

struct SliceExpr : Expr {  // base, start, stop, step; the last three may be null
  Value eval(Interpreter& interpreter) const override;
};

// The names of a call's arguments: "" for a positional one, "*" and "**" for spread ones.
using ArgNames = std::vector<std::string>;

struct CallExpr : Expr {  // callee, arguments
  Value eval(Interpreter& interpreter) const override;
  ArgNames arg_names;
};

// value|filter(…) or value is test(…).
struct FilterOrTestExpr : Expr {  // input, arguments
  Value eval(Interpreter& interpreter) const override;
  // Applies the chain of filters that ends here to `head`, the input of the first filter. In the
  // chain of a filter block or a block set, the first filter has no input expression.
  Value apply(Interpreter& interpreter, const Value& head) const;
  std::string name;
  bool is_test = false;
  const Builtin* builtin = nullptr;  // null: an unknown name in a condition; fails if evaluated
  ArgNames arg_names;
};

// ---- statements

enum class Flow { kNext, kBreak, kContinue };

struct Stmt {
  virtual ~Stmt() = default;
  virtual Flow exec(Interpreter& interpreter) const = 0;

  int line = 1;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// The target of an assignment, a loop or a set block: a name, an attribute of a namespace, or a
// tuple of these.
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
  MarkedText text;
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
  ExprPtr filter;  // a FilterOrTestExpr, or null
  Body body;
};

struct MacroStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  NameId name = 0;
  MacroDef def;
};

struct CallBlockStmt : Stmt {
  Flow exec(Interpreter& interpreter) const override;
  MacroDef def;
  ExprPtr call;  // a CallExpr
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

// Parses a template, or throws Error. `max_depth` bounds the nesting of blocks and brackets, and
// 2 * max_depth the depth of an expression's tree, such as a chain of operators.
std::unique_ptr<Program> parse_template(std::string_view source, int max_depth);

}  // namespace quire::jinja
