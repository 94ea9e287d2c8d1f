#include <fmt/format.h>

#include <algorithm>

#include "jinja/budget.h"
#include "jinja/parser.h"
#include "jinja/parser_impl.h"

namespace quire::jinja {

namespace {

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "template data / text";
    case TokenType::kVariableBegin:
      return "begin of print statement";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kBlockBegin:
      return "begin of statement block";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kString:
      return "string";
    case TokenType::kNumber:
      return token.number.is_int() ? "integer" : "float";
    case TokenType::kEnd:
      return "end of template";
    case TokenType::kName:
    case TokenType::kOperator:
      break;
  }
  return token.text;
}

}  // namespace

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  // Each level of an expression constructs three of these.
  if (++parser_.nesting_ > 3 * parser_.max_depth_) {
    --parser_.nesting_;
    fail_at(parser_.current().line, fmt::format("the template is nested too deeply; expected at "
                                                "most {} levels",
                                                parser_.max_depth_));
  }
}

// ---- tokens

void Parser::fail_here(std::string message) const {
  fail_at(current().line, fmt::format("{}, got '{}'", message, describe(current())));
}

bool Parser::skip_op(std::string_view op) {
  if (!current().is_op(op)) return false;
  next();
  return true;
}
bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}
void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_here(fmt::format("expected token '{}'", op));
}
std::string Parser::expect_name() {
  if (current().type != TokenType::kName) fail_here("expected token 'name'");
  return next().text;
}
void Parser::expect(TokenType type) {
  if (current().type != type) {
    fail_here(fmt::format("expected token '{}'", describe({type, "", {}, 0})));
  }
  next();
}

NameId Parser::name_id(const std::string& name) {
  const auto [at, is_new] =
      name_ids_.try_emplace(name, static_cast<NameId>(program_->names.size()));
  if (is_new) program_->names.push_back(name);
  return at->second;
}

// ---- bodies

std::unique_ptr<Program> Parser::run() {
  program_ = std::make_unique<Program>();
  for (const char* name : kSpecialNames) name_id(name);
  parse_body({}, program_->body);
  if (unknown_) throw *unknown_;
  return std::move(program_);
}

void Parser::parse_body(Names ends, Body& body) {
  const Nesting nesting(*this);
  while (current().type != TokenType::kEnd) {
    const Token token = next();
    if (token.type == TokenType::kData) {
      auto text = make<TextStmt>(token.line);
      text->text = token.text;
      body.push_back(std::move(text));
    } else if (token.type == TokenType::kVariableBegin) {
      auto print = make<PrintStmt>(token.line);
      print->values.push_back(parse_tuple());
      expect(TokenType::kVariableEnd);
      body.push_back(std::move(print));
    } else {
      if (current().type != TokenType::kName) fail_here("tag name expected");
      if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return;
      body.push_back(parse_statement());
      expect(TokenType::kBlockEnd);
    }
  }
  if (ends.size() > 0) {
    fail_at(current().line,
            fmt::format("Unexpected end of template. Jinja was looking for the following tags: "
                        "'{}'.",
                        fmt::join(ends, "' or '")));
  }
}

// Parses the body of a statement, from the end of its opening tag. Returns the name of the end tag.
std::string Parser::parse_block(Names ends, Body& body) {
  skip_op(":");
  expect(TokenType::kBlockEnd);
  parse_body(ends, body);
  return next().text;
}

std::unique_ptr<Stmt> Parser::parse_statement() {
  using Parse = std::unique_ptr<Stmt> (Parser::*)();
  constexpr std::pair<std::string_view, Parse> kStatements[] = {
      {"for", &Parser::parse_for},         {"if", &Parser::parse_if},
      {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
      {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
      {"print", &Parser::parse_print},     {"break", &Parser::parse_flow},
      {"continue", &Parser::parse_flow},
  };
  const Token tag = current();
  for (const auto& [name, parse] : kStatements) {
    if (tag.text != name) continue;
    std::unique_ptr<Stmt> stmt = (this->*parse)();
    stmt->line = tag.line;
    return stmt;
  }
  for (const std::string_view other :
       {"include", "import", "from", "extends", "block", "autoescape"}) {
    if (tag.text == other) {
      fail_at(tag.line, fmt::format("the tag '{}' has no meaning in a chat template", tag.text));
    }
  }
  fail_at(tag.line, fmt::format("Encountered unknown tag '{}'.", tag.text));
}

// ---- targets

Target Parser::name_target(const std::string& name, int line) {
  if (name == "loop" && any_loop_depth_ > 0) {
    fail_at(line, "Can't assign to special loop variable in for-loop target");
  }
  for (const std::string_view constant : {"true", "True", "false", "False", "none", "None"}) {
    if (name == constant) fail_at(line, "can't assign to 'const'");
  }
  Target target;
  target.name = name_id(name);
  return target;
}

Target Parser::to_target(const Expr& expr) {
  if (const auto* name = dynamic_cast<const NameExpr*>(&expr)) {
    return name_target(program_->names[static_cast<size_t>(name->name)], expr.line);
  }
  const auto* tuple = dynamic_cast<const SequenceExpr*>(&expr);
  if (tuple == nullptr || !tuple->is_tuple) fail_at(expr.line, "can't assign to this expression");
  Target target;
  for (const ExprPtr& item : tuple->items) target.parts.push_back(to_target(*item));
  return target;
}

Target Parser::parse_target_part(bool with_namespace) {
  if (current().type != TokenType::kName) return to_target(*parse_primary());
  const Token name = next();
  if (!with_namespace || !skip_op(".")) return name_target(name.text, name.line);
  Target target;
  target.name = name_id(name.text);
  target.attribute = expect_name();
  return target;
}

Target Parser::parse_target(bool with_namespace, bool ends_at_in) {
  Target tuple;
  bool is_tuple = false;
  while (true) {
    if (!tuple.parts.empty()) expect_op(",");
    if (at_tuple_end(ends_at_in ? "in" : "")) break;
    tuple.parts.push_back(parse_target_part(with_namespace));
    if (!current().is_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (tuple.parts.empty()) fail_here("Expected an expression");
  Target only = std::move(tuple.parts[0]);
  return only;
}

// ---- statements

std::unique_ptr<Stmt> Parser::parse_for() {
  auto node = make<ForStmt>(next().line);
  ++any_loop_depth_;
  node->target = parse_target(false, true);
  if (!skip_name("in")) fail_here("expected token 'in'");
  node->iterable = parse_tuple({.with_cond = false, .end_name = "recursive"});
  if (skip_name("if")) {
    const bool was_conditional = std::exchange(conditional_, false);
    node->test = parse_expression();
    conditional_ = was_conditional;
  }
  node->recursive = skip_name("recursive");
  const bool was_conditional = std::exchange(conditional_, false);
  ++loop_depth_;
  const std::string end = parse_block({"endfor", "else"}, node->body);
  --loop_depth_;
  if (end == "else") {
    // The else branch of a recursive loop belongs to the loop's own function, so break is not
    // allowed.
    const int outer = std::exchange(loop_depth_, node->recursive ? 0 : loop_depth_);
    parse_block({"endfor"}, node->otherwise);
    loop_depth_ = outer;
  }
  conditional_ = was_conditional;
  --any_loop_depth_;
  return node;
}

std::unique_ptr<Stmt> Parser::parse_if() {
  auto node = make<IfStmt>(next().line);
  const bool was_conditional = std::exchange(conditional_, true);
  std::string end = "elif";
  while (end == "elif") {
    auto& [test, body] = node->branches.emplace_back();
    test = parse_tuple({.with_cond = false});
    end = parse_block({"elif", "else", "endif"}, body);
  }
  if (end == "else") parse_block({"endif"}, node->otherwise);
  conditional_ = was_conditional;
  return node;
}

std::unique_ptr<Stmt> Parser::parse_set() {
  const int line = next().line;
  Target target = parse_target(true);
  if (skip_op("=")) {
    auto node = make<SetStmt>(line);
    node->target = std::move(target);
    node->value = parse_tuple();
    return node;
  }
  auto node = make<CaptureStmt>(line);
  node->target = std::move(target);
  const bool was_conditional = std::exchange(conditional_, false);
  node->filter = parse_filter_chain(nullptr);
  parse_block({"endset"}, node->body);
  conditional_ = was_conditional;
  return node;
}

std::unique_ptr<Stmt> Parser::parse_filter_block() {
  auto node = make<CaptureStmt>(next().line);
  const bool was_conditional = std::exchange(conditional_, false);
  node->filter = parse_filter_chain(parse_filter(nullptr));
  parse_block({"endfilter"}, node->body);
  conditional_ = was_conditional;
  return node;
}

void Parser::parse_signature(MacroDef& def) {
  expect_op("(");
  while (!current().is_op(")")) {
    if (!def.params.empty()) expect_op(",");
    check_count(def.params.size());
    const int line = current().line;
    def.params.push_back(name_target(expect_name(), line).name);
    if (skip_op("=")) {
      def.defaults.push_back(parse_expression());
    } else if (!def.defaults.empty()) {
      fail_at(line, "non-default argument follows default argument");
    }
  }
  expect_op(")");
}

void Parser::parse_macro_body(MacroDef& def, std::string_view end) {
  const int outer_loops = std::exchange(loop_depth_, 0);
  const bool was_conditional = std::exchange(conditional_, false);
  macros_.emplace_back();
  parse_block({end}, def.body);
  const MacroUse use = macros_.back();
  macros_.pop_back();
  loop_depth_ = outer_loops;
  conditional_ = was_conditional;
  const auto is_param = [&](NameId name) {
    return std::find(def.params.begin(), def.params.end(), name) != def.params.end();
  };
  def.uses_caller = use.caller && !is_param(kCallerName);
  def.uses_varargs = use.varargs && !is_param(kVarargsName);
  def.uses_kwargs = use.kwargs && !is_param(kKwargsName);
}

std::unique_ptr<Stmt> Parser::parse_macro() {
  const Token tag = next();
  auto node = make<MacroStmt>(tag.line);
  node->def = std::make_unique<MacroDef>();
  node->def->name = expect_name();
  node->name = name_target(node->def->name, tag.line).name;
  parse_signature(*node->def);
  parse_macro_body(*node->def, "endmacro");
  return node;
}

std::unique_ptr<Stmt> Parser::parse_call_block() {
  const Token tag = next();
  auto node = make<CallBlockStmt>(tag.line);
  node->def = std::make_unique<MacroDef>();
  if (current().is_op("(")) parse_signature(*node->def);
  ExprPtr call = parse_expression();
  if (dynamic_cast<CallExpr*>(call.get()) == nullptr) fail_at(tag.line, "expected call");
  node->call.reset(static_cast<CallExpr*>(call.release()));
  parse_macro_body(*node->def, "endcall");
  return node;
}

std::unique_ptr<Stmt> Parser::parse_with() {
  auto node = make<ScopeStmt>(next().line);
  while (current().type != TokenType::kBlockEnd && !current().is_op(":")) {
    if (!node->variables.empty()) expect_op(",");
    Target target = parse_target(false);
    expect_op("=");
    node->variables.emplace_back(std::move(target), parse_expression());
  }
  const bool was_conditional = std::exchange(conditional_, false);
  parse_block({"endwith"}, node->body);
  conditional_ = was_conditional;
  return node;
}

// {% generation %} marks the assistant's text for training. A render treats it as a scope.
std::unique_ptr<Stmt> Parser::parse_generation() {
  auto node = make<ScopeStmt>(next().line);
  const int outer_loops = std::exchange(loop_depth_, 0);
  const bool was_conditional = std::exchange(conditional_, false);
  parse_block({"endgeneration"}, node->body);
  conditional_ = was_conditional;
  loop_depth_ = outer_loops;
  return node;
}

std::unique_ptr<Stmt> Parser::parse_print() {
  auto node = make<PrintStmt>(next().line);
  while (current().type != TokenType::kBlockEnd) {
    if (!node->values.empty()) expect_op(",");
    node->values.push_back(parse_expression());
  }
  return node;
}

std::unique_ptr<Stmt> Parser::parse_flow() {
  const Token tag = next();
  if (loop_depth_ == 0) fail_at(tag.line, fmt::format("'{}' outside loop", tag.text));
  auto node = make<FlowStmt>(tag.line);
  node->flow = tag.text == "break" ? Flow::kBreak : Flow::kContinue;
  return node;
}

std::unique_ptr<Program> parse_template(std::string_view source, int max_depth) {
  return Parser(tokenize(source), max_depth).run();
}

}  // namespace quire::jinja
