#include <fmt/format.h>

#include <algorithm>

#include "jinja/budget.h"
#include "jinja/parser_impl.h"

namespace quire::jinja {

ExprPtr Parser::done(std::unique_ptr<Expr> expr, std::initializer_list<const Expr*> children,
                     int children_depth) {
  for (const Expr* child : children) {
    if (child != nullptr) children_depth = std::max(children_depth, child->depth);
  }
  expr->depth = children_depth + 1;
  // A long chain of operators gives a deep tree although the source does not nest.
  if (expr->depth > 2 * max_depth_) {
    fail_at(expr->line,
            fmt::format("an expression is too long; expected at most {} levels", 2 * max_depth_));
  }
  return expr;
}

bool Parser::at_tuple_end(std::string_view end_name) const {
  if (current().type == TokenType::kVariableEnd || current().type == TokenType::kBlockEnd) {
    return true;
  }
  return current().is_op(")") || (!end_name.empty() && current().is_name(end_name));
}

ExprPtr Parser::parse_tuple(TupleRules rules) {
  const Nesting nesting(*this);
  auto tuple = make<SequenceExpr>(current().line);
  tuple->is_tuple = true;
  bool is_tuple = false;
  int depth = 0;
  while (true) {
    if (!tuple->items.empty()) expect_op(",");
    if (at_tuple_end(rules.end_name)) break;
    tuple->items.push_back(rules.with_cond ? parse_cond() : parse_or());
    depth = std::max(depth, tuple->items.back()->depth);
    if (!current().is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!tuple->items.empty()) return std::move(tuple->items[0]);
    if (!rules.parenthesized) fail_here("Expected an expression");
  }
  return done(std::move(tuple), {}, depth);
}

ExprPtr Parser::parse_cond() {
  const Nesting nesting(*this);
  int line = current().line;
  const bool had_unknown = unknown_.has_value();
  ExprPtr then = parse_or();
  while (skip_name("if")) {
    if (!had_unknown) unknown_.reset();  // the unknown filter or test is conditional
    auto cond = make<CondExpr>(line);
    const bool was_conditional = std::exchange(conditional_, true);
    cond->then = std::move(then);
    cond->test = parse_or();
    if (skip_name("else")) cond->otherwise = parse_cond();
    conditional_ = was_conditional;
    const CondExpr& c = *cond;
    then = done(std::move(cond), {c.then.get(), c.test.get(), c.otherwise.get()});
    line = current().line;
  }
  return then;
}

ExprPtr Parser::parse_or() {
  ExprPtr left = parse_and();
  while (current().is_name("or")) {
    auto node = make<LogicExpr>(next().line);
    node->is_and = false;
    node->left = std::move(left);
    node->right = parse_and();
    const LogicExpr& n = *node;
    left = done(std::move(node), {n.left.get(), n.right.get()});
  }
  return left;
}

ExprPtr Parser::parse_and() {
  ExprPtr left = parse_not();
  while (current().is_name("and")) {
    auto node = make<LogicExpr>(next().line);
    node->left = std::move(left);
    node->right = parse_not();
    const LogicExpr& n = *node;
    left = done(std::move(node), {n.left.get(), n.right.get()});
  }
  return left;
}

ExprPtr Parser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  const Nesting nesting(*this);
  auto node = make<UnaryExpr>(next().line);
  node->operand = parse_not();
  const UnaryExpr& n = *node;
  return done(std::move(node), {n.operand.get()});
}

ExprPtr Parser::parse_compare() {
  constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  auto node = make<CompareExpr>(current().line);
  node->first = parse_sum();
  int depth = node->first->depth;
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const auto& o) { return current().is_op(o.first); });
    CompareOp found = CompareOp::kIn;
    if (op != std::end(kOps)) {
      found = op->second;
      next();
    } else if (current().is_name("not") && look().is_name("in")) {
      found = CompareOp::kNotIn;
      next();
      next();
    } else if (!skip_name("in")) {
      break;
    }
    node->rest.emplace_back(found, parse_sum());
    depth = std::max(depth, node->rest.back().second->depth);
  }
  if (node->rest.empty()) return std::move(node->first);
  return done(std::move(node), {}, depth);
}

namespace {

std::unique_ptr<BinaryExpr> binary(int line, BinaryOp op, ExprPtr left, ExprPtr right) {
  auto node = std::make_unique<BinaryExpr>();
  node->line = line;
  node->op = op;
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

}  // namespace

ExprPtr Parser::parse_sum() {
  ExprPtr left = parse_concat();
  while (current().is_op("+") || current().is_op("-")) {
    const Token op = next();
    auto node = binary(op.line, op.text == "+" ? BinaryOp::kAdd : BinaryOp::kSub, std::move(left),
                       parse_concat());
    const BinaryExpr& n = *node;
    left = done(std::move(node), {n.left.get(), n.right.get()});
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  auto node = make<ConcatExpr>(current().line);
  node->parts.push_back(parse_product());
  int depth = node->parts[0]->depth;
  while (skip_op("~")) {
    node->parts.push_back(parse_product());
    depth = std::max(depth, node->parts.back()->depth);
  }
  if (node->parts.size() == 1) return std::move(node->parts[0]);
  return done(std::move(node), {}, depth);
}

ExprPtr Parser::parse_product() {
  constexpr std::pair<std::string_view, BinaryOp> kOps[] = {{"*", BinaryOp::kMul},
                                                            {"/", BinaryOp::kDiv},
                                                            {"//", BinaryOp::kFloorDiv},
                                                            {"%", BinaryOp::kMod}};
  ExprPtr left = parse_power();
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const auto& o) { return current().is_op(o.first); });
    if (op == std::end(kOps)) return left;
    const int line = next().line;
    auto node = binary(line, op->second, std::move(left), parse_power());
    const BinaryExpr& n = *node;
    left = done(std::move(node), {n.left.get(), n.right.get()});
  }
}

ExprPtr Parser::parse_power() {
  // Associates to the left, as in Jinja's grammar.
  ExprPtr left = parse_unary();
  while (current().is_op("**")) {
    const int line = next().line;
    auto node = binary(line, BinaryOp::kPow, std::move(left), parse_unary());
    const BinaryExpr& n = *node;
    left = done(std::move(node), {n.left.get(), n.right.get()});
  }
  return left;
}

ExprPtr Parser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  ExprPtr expr;
  if (current().is_op("-") || current().is_op("+")) {
    const Token op = next();
    auto node = make<UnaryExpr>(op.line);
    node->op = op.text == "-" ? UnaryExpr::Op::kMinus : UnaryExpr::Op::kPlus;
    node->operand = parse_unary(false);
    const UnaryExpr& n = *node;
    expr = done(std::move(node), {n.operand.get()});
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filter ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parse_name() {
  const Token token = next();
  auto constant = make<ConstExpr>(token.line);
  if (token.text == "true" || token.text == "True") {
    constant->value = Value::boolean(true);
  } else if (token.text == "false" || token.text == "False") {
    constant->value = Value::boolean(false);
  } else if (token.text != "none" && token.text != "None") {
    for (MacroUse& use : macros_) {
      use.caller = use.caller || token.text == "caller";
      use.varargs = use.varargs || token.text == "varargs";
      use.kwargs = use.kwargs || token.text == "kwargs";
    }
    auto name = make<NameExpr>(token.line);
    name->name = name_id(token.text);
    return name;
  }
  return constant;
}

ExprPtr Parser::parse_primary() {
  if (current().type == TokenType::kName) return parse_name();
  auto constant = make<ConstExpr>(current().line);
  if (current().type == TokenType::kString) {
    std::string text;
    while (current().type == TokenType::kString) text += next().text;
    constant->value = Value::string(text);
    return constant;
  }
  if (current().type == TokenType::kNumber) {
    constant->value = next().number;
    return constant;
  }
  if (skip_op("(")) {
    ExprPtr inner = parse_tuple({.with_cond = true, .parenthesized = true});
    expect_op(")");
    return inner;
  }
  if (current().is_op("[")) return parse_list();
  if (current().is_op("{")) return parse_dict();
  fail_here("unexpected");
}

ExprPtr Parser::parse_list() {
  auto list = make<SequenceExpr>(next().line);
  int depth = 0;
  while (!current().is_op("]")) {
    if (!list->items.empty()) expect_op(",");
    if (current().is_op("]")) break;
    list->items.push_back(parse_expression());
    depth = std::max(depth, list->items.back()->depth);
  }
  expect_op("]");
  return done(std::move(list), {}, depth);
}

ExprPtr Parser::parse_dict() {
  auto dict = make<DictExpr>(next().line);
  int depth = 0;
  while (!current().is_op("}")) {
    if (!dict->entries.empty()) expect_op(",");
    if (current().is_op("}")) break;
    ExprPtr key = parse_expression();
    expect_op(":");
    ExprPtr value = parse_expression();
    depth = std::max({depth, key->depth, value->depth});
    dict->entries.emplace_back(std::move(key), std::move(value));
  }
  expect_op("}");
  return done(std::move(dict), {}, depth);
}

}  // namespace quire::jinja
