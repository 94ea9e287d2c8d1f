// Parses what may follow an operand: attributes, subscripts, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>

#include "jinja/budget.h"
#include "jinja/parser_impl.h"

namespace quire::jinja {

ExprPtr Parser::parse_postfix(ExprPtr base) {
  while (true) {
    if (current().is_op(".") || current().is_op("[")) {
      base = parse_subscript(std::move(base));
    } else if (current().is_op("(")) {
      base = parse_call(std::move(base));
    } else {
      return base;
    }
  }
}

ExprPtr Parser::parse_filters_and_tests(ExprPtr base) {
  while (true) {
    if (current().is_op("|")) {
      base = parse_filter_chain(std::move(base));
    } else if (current().is_name("is")) {
      base = parse_test(std::move(base));
    } else if (current().is_op("(")) {
      base = parse_call(std::move(base));
    } else {
      return base;
    }
  }
}

ExprPtr Parser::parse_subscript(ExprPtr base) {
  const Token open = next();
  if (open.text == ".") {
    const Token attribute = next();
    if (attribute.type == TokenType::kName) {
      auto node = make<AttributeExpr>(open.line);
      node->name = attribute.text;
      node->base = std::move(base);
      const AttributeExpr& n = *node;
      return done(std::move(node), {n.base.get()});
    }
    if (attribute.type != TokenType::kNumber || !attribute.number.is_int()) {
      fail_at(attribute.line, "expected name or number");
    }
    auto key = make<ConstExpr>(attribute.line);
    key->value = attribute.number;
    auto node = make<ItemExpr>(open.line);
    node->base = std::move(base);
    node->key = std::move(key);
    const ItemExpr& n = *node;
    return done(std::move(node), {n.base.get()});
  }
  if (current().is_op(":")) return parse_slice(std::move(base), nullptr, open.line);
  auto node = make<ItemExpr>(open.line);
  auto keys = make<SequenceExpr>(open.line);
  keys->is_tuple = true;
  int depth = 0;
  while (!current().is_op("]")) {
    if (!keys->items.empty()) expect_op(",");
    keys->items.push_back(parse_expression());
    depth = std::max(depth, keys->items.back()->depth);
    if (current().is_op(":") && keys->items.size() == 1) {
      return parse_slice(std::move(base), std::move(keys->items[0]), open.line);
    }
  }
  expect_op("]");
  node->base = std::move(base);
  node->key = keys->items.size() == 1 ? std::move(keys->items[0]) : std::move(keys);
  const ItemExpr& n = *node;
  return done(std::move(node), {n.base.get()}, depth + 1);
}

// Parses the rest of a slice, from the first colon.
ExprPtr Parser::parse_slice(ExprPtr base, ExprPtr start, int line) {
  auto node = make<SliceExpr>(line);
  node->base = std::move(base);
  node->start = std::move(start);
  const auto part = [&]() -> ExprPtr {
    if (current().is_op(":") || current().is_op("]")) return nullptr;
    return parse_expression();
  };
  expect_op(":");
  node->stop = part();
  if (skip_op(":")) node->step = part();
  expect_op("]");
  const SliceExpr& n = *node;
  return done(std::move(node), {n.base.get(), n.start.get(), n.stop.get(), n.step.get()});
}

int Parser::depth_of(const CallArgs& args) const {
  int depth = 0;
  const auto see = [&](const ExprPtr& expr) {
    if (expr != nullptr) depth = std::max(depth, expr->depth);
  };
  for (const ExprPtr& arg : args.positional) see(arg);
  for (const auto& [name, arg] : args.keyword) see(arg);
  see(args.spread);
  see(args.keyword_spread);
  return depth;
}

void Parser::check_count(size_t count) const {
  constexpr size_t kMaxArguments = 1000;
  if (count >= kMaxArguments) {
    fail_at(current().line, fmt::format("too many arguments; expected at most {}", kMaxArguments));
  }
}

CallArgs Parser::parse_call_args() {
  const int line = current().line;
  expect_op("(");
  CallArgs args;
  const auto ensure = [&](bool ok) {
    if (!ok) fail_at(line, "invalid syntax for function call expression");
  };
  bool first = true;
  while (!current().is_op(")")) {
    if (!first) expect_op(",");
    if (!first && current().is_op(")")) break;
    first = false;
    check_count(args.positional.size() + args.keyword.size());
    if (skip_op("*")) {
      ensure(args.spread == nullptr && args.keyword_spread == nullptr);
      args.spread = parse_expression();
    } else if (skip_op("**")) {
      ensure(args.keyword_spread == nullptr);
      args.keyword_spread = parse_expression();
    } else if (current().type == TokenType::kName && look().is_op("=")) {
      ensure(args.keyword_spread == nullptr);
      const std::string name = next().text;
      next();
      for (const auto& [present, value] : args.keyword) {
        if (present == name) fail_at(line, "keyword argument repeated: " + name);
      }
      args.keyword.emplace_back(name, parse_expression());
    } else {
      ensure(args.spread == nullptr && args.keyword_spread == nullptr && args.keyword.empty());
      args.positional.push_back(parse_expression());
    }
  }
  expect_op(")");
  return args;
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  auto node = make<CallExpr>(current().line);
  node->callee = std::move(callee);
  node->args = parse_call_args();
  const CallExpr& n = *node;
  return done(std::move(node), {n.callee.get()}, depth_of(n.args));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_op(".")) name += "." + expect_name();
  return name;
}

void Parser::note_unknown(int line, std::string_view kind, const std::string& name) {
  if (conditional_ || unknown_) return;
  unknown_ = Error{fmt::format("No {} named '{}'.", kind, name), line};
}

ExprPtr Parser::parse_filter(ExprPtr input) {
  auto node = make<FilterExpr>(current().line);
  node->name = parse_dotted_name();
  node->filter = find_filter(node->name);
  if (node->filter == nullptr) note_unknown(node->line, "filter", node->name);
  node->input = std::move(input);
  if (current().is_op("(")) node->args = parse_call_args();
  const FilterExpr& n = *node;
  return done(std::move(node), {n.input.get()}, depth_of(n.args));
}

ExprPtr Parser::parse_filter_chain(ExprPtr input) {
  while (skip_op("|")) input = parse_filter(std::move(input));
  return input;
}

ExprPtr Parser::parse_test(ExprPtr input) {
  auto node = make<TestExpr>(next().line);
  const bool negated = skip_name("not");
  node->name = parse_dotted_name();
  node->test = find_test(node->name);
  if (node->test == nullptr) note_unknown(node->line, "test", node->name);
  node->input = std::move(input);
  const Token& t = current();
  const bool has_argument = t.type == TokenType::kName || t.type == TokenType::kString ||
                            t.type == TokenType::kNumber || t.is_op("[") || t.is_op("{");
  if (t.is_op("(")) {
    node->args = parse_call_args();
  } else if (has_argument && !t.is_name("else") && !t.is_name("or") && !t.is_name("and")) {
    if (t.is_name("is")) fail_here("You cannot chain multiple tests with is");
    node->args.positional.push_back(parse_postfix(parse_primary()));
  }
  const TestExpr& n = *node;
  ExprPtr test = done(std::move(node), {n.input.get()}, depth_of(n.args));
  if (!negated) return test;
  auto inverse = make<UnaryExpr>(test->line);
  inverse->operand = std::move(test);
  const UnaryExpr& i = *inverse;
  return done(std::move(inverse), {i.operand.get()});
}

}  // namespace quire::jinja
