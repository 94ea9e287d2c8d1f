// A recursive-descent parser of Jinja's grammar.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/syntax.h"

namespace quire::jinja {

namespace {

// Gives a variable another value until the end of the scope.
template <typename T>
class Scoped {
 public:
  Scoped(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Scoped() { variable_ = before_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& variable_;
  T before_;
};

struct BinaryToken {
  std::string_view text;
  BinaryOp op;
};
constexpr BinaryToken kOr[] = {{"or", BinaryOp::kOr}};
constexpr BinaryToken kAnd[] = {{"and", BinaryOp::kAnd}};
constexpr BinaryToken kSum[] = {{"+", BinaryOp::kAdd}, {"-", BinaryOp::kSub}};
constexpr BinaryToken kProduct[] = {{"*", BinaryOp::kMul},
                                    {"/", BinaryOp::kDiv},
                                    {"//", BinaryOp::kFloorDiv},
                                    {"%", BinaryOp::kMod}};
constexpr BinaryToken kPower[] = {{"**", BinaryOp::kPow}};

class Parser : TokenReader {
 public:
  Parser(std::vector<Token> tokens, int max_depth)
      : TokenReader(std::move(tokens)), max_depth_(max_depth) {}

  std::unique_ptr<Program> run() {
    for (const char* name : kSpecialNames) name_id(name);
    parse_body({}, program_->body);
    if (unknown_) throw *unknown_;
    return std::move(program_);
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // ---- nodes
  // Counts the levels of nesting. Each level of an expression calls it three times.
  Scoped<int> nest() {
    if (nesting_ >= 3 * max_depth_) {
      fail_at(current().line, fmt::format("the template is nested too deeply; expected at most {} "
                                          "levels",
                                          max_depth_));
    }
    return {nesting_, nesting_ + 1};
  }
  template <typename T, typename... Operands>
  std::unique_ptr<T> make(int line, Operands... operands) {
    auto made = std::make_unique<T>();
    made->line = line;
    (adopt(*made, std::move(operands)), ...);
    return made;
  }
  void adopt(Expr& parent, ExprPtr operand) {
    if (operand != nullptr) parent.depth = std::max(parent.depth, operand->depth + 1);
    parent.operands.push_back(std::move(operand));
    // A long chain of operators gives a deep tree although the source does not nest.
    if (parent.depth > 2 * max_depth_) {
      fail_at(parent.line,
              fmt::format("an expression is too long; expected at most {} levels", 2 * max_depth_));
    }
  }
  NameId name_id(const std::string& name) {
    const auto [at, is_new] =
        name_ids_.try_emplace(name, static_cast<NameId>(program_->names.size()));
    if (is_new) program_->names.push_back(name);
    return at->second;
  }

  // ---- statements

  void parse_body(Names ends, Body& body) {
    const auto nesting = nest();
    while (current().type != TokenType::kEnd) {
      const Token token = next();
      if (token.type == TokenType::kData) {
        auto text = make<TextStmt>(token.line);
        text->text.text = token.text;
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

  // Parses the body of a statement, from the end of its opening tag. Returns the name of the end
  // tag.
  std::string parse_block(Names ends, Body& body) {
    skip_op(":");
    expect(TokenType::kBlockEnd);
    parse_body(ends, body);
    return next().text;
  }

  StmtPtr parse_statement() {
    constexpr std::pair<std::string_view, StmtPtr (Parser::*)()> kStatements[] = {
        {"for", &Parser::parse_for},         {"if", &Parser::parse_if},
        {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
        {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
    };
    const Token tag = next();
    for (const auto& [name, parse] : kStatements) {
      if (tag.text != name) continue;
      StmtPtr stmt = (this->*parse)();
      stmt->line = tag.line;
      return stmt;
    }
    if (tag.text == "break" || tag.text == "continue") {
      if (loop_depth_ == 0) fail_at(tag.line, fmt::format("'{}' outside loop", tag.text));
      auto flow = make<FlowStmt>(tag.line);
      flow->flow = tag.text == "break" ? Flow::kBreak : Flow::kContinue;
      return flow;
    }
    for (const std::string_view other :
         {"include", "import", "from", "extends", "block", "autoescape", "print"}) {
      if (tag.text == other) {
        fail_at(tag.line,
                fmt::format("the tag '{}' is not supported in a chat template", tag.text));
      }
    }
    fail_at(tag.line, fmt::format("Encountered unknown tag '{}'.", tag.text));
  }

  Target name_target(NameId name, int line) {
    if (name == kLoopName && any_loop_depth_ > 0) {
      fail_at(line, "Can't assign to special loop variable in for-loop target");
    }
    Target target;
    target.name = name;
    return target;
  }

  Target to_target(const Expr& expr) {
    if (const auto* name = dynamic_cast<const NameExpr*>(&expr)) {
      return name_target(name->name, expr.line);
    }
    Target target;
    if (const auto* attribute = dynamic_cast<const AttributeExpr*>(&expr)) {
      const auto* space = dynamic_cast<const NameExpr*>(attribute->operands[0].get());
      if (space == nullptr) fail_at(expr.line, "can't assign to this expression");
      target.name = space->name;
      target.attribute = attribute->name;
      return target;
    }
    const auto* tuple = dynamic_cast<const SequenceExpr*>(&expr);
    if (tuple == nullptr || !tuple->is_tuple) fail_at(expr.line, "can't assign to this expression");
    for (const ExprPtr& item : tuple->operands) target.parts.push_back(to_target(*item));
    return target;
  }

  // The item of a target that may be the attribute of a namespace.
  ExprPtr parse_target_item() {
    ExprPtr item = parse_primary();
    return current().is_op(".") ? parse_attribute(std::move(item)) : std::move(item);
  }

  StmtPtr parse_for() {
    auto node = std::make_unique<ForStmt>();
    const Scoped any_loops(any_loop_depth_, any_loop_depth_ + 1);
    node->target = to_target(*parse_tuple({&Parser::parse_primary, "in"}));
    if (!skip_name("in")) fail_here("expected token 'in'");
    node->iterable = parse_tuple({&Parser::parse_or, "recursive"});
    const Scoped unconditional(conditional_, false);
    if (skip_name("if")) node->test = parse_expression();
    node->recursive = skip_name("recursive");
    ++loop_depth_;
    const std::string end = parse_block({"endfor", "else"}, node->body);
    --loop_depth_;
    if (end == "else") {
      // The else branch of a recursive loop belongs to the loop's own function, so break is not
      // allowed.
      const Scoped loops(loop_depth_, node->recursive ? 0 : loop_depth_);
      parse_block({"endfor"}, node->otherwise);
    }
    return node;
  }

  StmtPtr parse_if() {
    auto node = std::make_unique<IfStmt>();
    const Scoped conditional(conditional_, true);
    std::string end = "elif";
    while (end == "elif") {
      auto& [test, body] = node->branches.emplace_back();
      test = parse_tuple({&Parser::parse_or});
      end = parse_block({"elif", "else", "endif"}, body);
    }
    if (end == "else") parse_block({"endif"}, node->otherwise);
    return node;
  }

  StmtPtr parse_set() {
    Target target = to_target(*parse_tuple({&Parser::parse_target_item}));
    if (skip_op("=")) {
      auto node = std::make_unique<SetStmt>();
      node->target = std::move(target);
      node->value = parse_tuple();
      return node;
    }
    auto node = std::make_unique<CaptureStmt>();
    node->target = std::move(target);
    const Scoped unconditional(conditional_, false);
    node->filter = parse_filter_chain(nullptr);
    parse_block({"endset"}, node->body);
    return node;
  }

  StmtPtr parse_filter_block() {
    auto node = std::make_unique<CaptureStmt>();
    const Scoped unconditional(conditional_, false);
    node->filter = parse_filter_chain(parse_filter(nullptr));
    parse_block({"endfilter"}, node->body);
    return node;
  }

  void parse_signature(MacroDef& def) {
    expect_op("(");
    while (!current().is_op(")")) {
      if (!def.params.empty()) expect_op(",");
      check_count(def.params.size());
      const int line = current().line;
      def.params.push_back(name_target(name_id(expect_name()), line).name);
      if (skip_op("=")) {
        def.defaults.push_back(parse_expression());
      } else if (!def.defaults.empty()) {
        fail_at(line, "non-default argument follows default argument");
      }
    }
    expect_op(")");
  }

  void parse_macro_body(MacroDef& def, std::string_view end) {
    const Scoped loops(loop_depth_, 0);
    const Scoped unconditional(conditional_, false);
    const size_t first = pos_;
    parse_block({end}, def.body);
    const auto uses = [&](NameId name) {
      if (std::find(def.params.begin(), def.params.end(), name) != def.params.end()) return false;
      for (size_t i = first; i < pos_; ++i) {
        if (tokens_[i].is_name(kSpecialNames[name]) && !tokens_[i - 1].is_op(".")) return true;
      }
      return false;
    };
    def.uses_caller = uses(kCallerName);
    def.uses_varargs = uses(kVarargsName);
    def.uses_kwargs = uses(kKwargsName);
  }

  StmtPtr parse_macro() {
    auto node = std::make_unique<MacroStmt>();
    const int line = current().line;
    node->def.name = expect_name();
    node->name = name_target(name_id(node->def.name), line).name;
    parse_signature(node->def);
    parse_macro_body(node->def, "endmacro");
    return node;
  }

  StmtPtr parse_call_block() {
    auto node = std::make_unique<CallBlockStmt>();
    const int line = current().line;
    if (current().is_op("(")) parse_signature(node->def);
    node->call = parse_expression();
    if (dynamic_cast<CallExpr*>(node->call.get()) == nullptr) fail_at(line, "expected call");
    parse_macro_body(node->def, "endcall");
    return node;
  }

  StmtPtr parse_with() {
    auto node = std::make_unique<ScopeStmt>();
    while (current().type != TokenType::kBlockEnd && !current().is_op(":")) {
      if (!node->variables.empty()) expect_op(",");
      Target target = to_target(*parse_tuple({&Parser::parse_primary}));
      expect_op("=");
      node->variables.emplace_back(std::move(target), parse_expression());
    }
    const Scoped unconditional(conditional_, false);
    parse_block({"endwith"}, node->body);
    return node;
  }

  // {% generation %} marks the assistant's text for training. A render treats it as a scope.
  StmtPtr parse_generation() {
    auto node = std::make_unique<ScopeStmt>();
    const Scoped loops(loop_depth_, 0);
    const Scoped unconditional(conditional_, false);
    parse_block({"endgeneration"}, node->body);
    return node;
  }

  // ---- expressions, from the operators that bind least

  struct TupleRules {
    ExprPtr (Parser::*item)() = &Parser::parse_expression;
    std::string_view end_name = {};  // a name that ends the tuple, such as `in`
    bool may_be_empty = false;
  };
  ExprPtr parse_tuple() { return parse_tuple(TupleRules{}); }

  bool at_tuple_end(std::string_view end_name) const {
    return current().type == TokenType::kVariableEnd || current().type == TokenType::kBlockEnd ||
           current().is_op(")") || (!end_name.empty() && current().is_name(end_name));
  }

  ExprPtr parse_tuple(TupleRules rules) {
    const auto nesting = nest();
    auto tuple = make<SequenceExpr>(current().line);
    tuple->is_tuple = true;
    while (!at_tuple_end(rules.end_name)) {
      ExprPtr item = (this->*rules.item)();
      const bool more = skip_op(",");
      if (!more && tuple->operands.empty()) return item;
      adopt(*tuple, std::move(item));
      if (!more) break;
    }
    if (tuple->operands.empty() && !rules.may_be_empty) fail_here("Expected an expression");
    return tuple;
  }

  ExprPtr parse_expression() {
    const auto nesting = nest();
    int line = current().line;
    const bool had_unknown = unknown_.has_value();
    ExprPtr then = parse_or();
    while (skip_name("if")) {
      if (!had_unknown) unknown_.reset();  // the unknown filter or test is conditional
      const Scoped conditional(conditional_, true);
      ExprPtr test = parse_or();
      ExprPtr otherwise = skip_name("else") ? parse_expression() : nullptr;
      then = make<CondExpr>(line, std::move(then), std::move(test), std::move(otherwise));
      line = current().line;
    }
    return then;
  }

  ExprPtr parse_or() { return parse_binary(kOr, &Parser::parse_and); }
  ExprPtr parse_and() { return parse_binary(kAnd, &Parser::parse_not); }
  ExprPtr parse_sum() { return parse_binary(kSum, &Parser::parse_concat); }
  ExprPtr parse_product() { return parse_binary(kProduct, &Parser::parse_power); }
  // Associates to the left, as in Jinja's grammar.
  ExprPtr parse_power() { return parse_binary(kPower, &Parser::parse_filtered); }
  ExprPtr parse_filtered() { return parse_filters_and_tests(parse_unary()); }

  // Parses `operand op operand op …`, which associates to the left.
  ExprPtr parse_binary(std::span<const BinaryToken> ops, ExprPtr (Parser::*operand)()) {
    ExprPtr left = (this->*operand)();
    while (true) {
      const auto op =
          std::find_if(ops.begin(), ops.end(), [&](const BinaryToken& o) { return at(o.text); });
      if (op == ops.end()) return left;
      const int line = next().line;
      auto node = make<BinaryExpr>(line, std::move(left), (this->*operand)());
      node->op = op->op;
      left = std::move(node);
    }
  }

  ExprPtr parse_not() {
    if (!current().is_name("not")) return parse_compare();
    const auto nesting = nest();
    const int line = next().line;
    return make<UnaryExpr>(line, parse_not());
  }

  ExprPtr parse_compare() {
    constexpr std::pair<std::string_view, CompareOp> kOps[] = {
        {"==", CompareOp::kEq}, {"!=", CompareOp::kNe},    {"<", CompareOp::kLt},
        {"<=", CompareOp::kLe}, {">", CompareOp::kGt},     {">=", CompareOp::kGe},
        {"in", CompareOp::kIn}, {"not", CompareOp::kNotIn}};
    const int line = current().line;
    ExprPtr first = parse_sum();
    std::unique_ptr<CompareExpr> node;
    while (true) {
      const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                    [&](const auto& o) { return at(o.first); });
      if (op == std::end(kOps)) break;
      if (op->second == CompareOp::kNotIn && !peek().is_name("in")) break;
      next();
      if (op->second == CompareOp::kNotIn) next();
      if (node == nullptr) node = make<CompareExpr>(line, std::move(first));
      node->ops.push_back(op->second);
      adopt(*node, parse_sum());
    }
    return node == nullptr ? std::move(first) : std::move(node);
  }

  ExprPtr parse_concat() {
    const int line = current().line;
    ExprPtr first = parse_product();
    if (!current().is_op("~")) return first;
    auto node = make<ConcatExpr>(line, std::move(first));
    while (skip_op("~")) adopt(*node, parse_product());
    return node;
  }

  ExprPtr parse_unary() {
    const auto nesting = nest();
    if (!current().is_op("-") && !current().is_op("+")) return parse_postfix(parse_primary());
    const Token op = next();
    auto node = make<UnaryExpr>(op.line, parse_unary());
    node->op = op.text == "-" ? UnaryExpr::Op::kMinus : UnaryExpr::Op::kPlus;
    return parse_postfix(std::move(node));
  }

  ExprPtr parse_name() {
    const Token token = next();
    auto constant = make<ConstExpr>(token.line);
    if (token.text == "true" || token.text == "True") {
      constant->value = Value::boolean(true);
    } else if (token.text == "false" || token.text == "False") {
      constant->value = Value::boolean(false);
    } else if (token.text != "none" && token.text != "None") {
      auto name = make<NameExpr>(token.line);
      name->name = name_id(token.text);
      return name;
    }
    return constant;
  }

  ExprPtr parse_primary() {
    const int line = current().line;
    if (current().type == TokenType::kName) return parse_name();
    if (current().type == TokenType::kString || current().type == TokenType::kNumber) {
      auto constant = make<ConstExpr>(line);
      std::string text;
      while (current().type == TokenType::kString) text += next().text;  // 'a' 'b' is 'ab'
      constant->value = current().type == TokenType::kNumber && text.empty() ? next().number
                                                                             : Value::literal(text);
      return constant;
    }
    if (skip_op("(")) {
      ExprPtr inner = parse_tuple({&Parser::parse_expression, "", true});
      expect_op(")");
      return inner;
    }
    const bool is_list = current().is_op("[");
    if (!is_list && !current().is_op("{")) fail_here("unexpected");
    next();
    ExprPtr node = is_list ? ExprPtr(make<SequenceExpr>(line)) : ExprPtr(make<DictExpr>(line));
    const std::string_view close = is_list ? "]" : "}";
    while (!current().is_op(close)) {
      adopt(*node, parse_expression());
      if (!is_list) {
        expect_op(":");
        adopt(*node, parse_expression());
      }
      if (!current().is_op(close)) expect_op(",");
    }
    expect_op(close);
    return node;
  }

  // Parses the attributes, subscripts and calls that follow an operand.
  ExprPtr parse_postfix(ExprPtr base) {
    while (true) {
      if (current().is_op(".")) {
        base = parse_attribute(std::move(base));
      } else if (current().is_op("[")) {
        base = parse_subscript(std::move(base));
      } else if (current().is_op("(")) {
        base = parse_call(std::move(base));
      } else {
        return base;
      }
    }
  }

  ExprPtr parse_filters_and_tests(ExprPtr base) {
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

  ExprPtr parse_attribute(ExprPtr base) {
    const int line = next().line;
    const Token attribute = next();
    if (attribute.type == TokenType::kName) {
      auto node = make<AttributeExpr>(line, std::move(base));
      node->name = attribute.text;
      return node;
    }
    if (attribute.type != TokenType::kNumber || !attribute.number.is_int()) {
      fail_at(attribute.line, "expected name or number");
    }
    auto key = make<ConstExpr>(attribute.line);
    key->value = attribute.number;
    return make<ItemExpr>(line, std::move(base), std::move(key));
  }

  // Parses [key], [key, key] or [start:stop:step].
  ExprPtr parse_subscript(ExprPtr base) {
    const int line = next().line;
    const auto part = [&]() -> ExprPtr {
      return current().is_op(":") || current().is_op("]") ? nullptr : parse_expression();
    };
    ExprPtr first = part();
    if (skip_op(":")) {
      ExprPtr stop = part();
      ExprPtr step = skip_op(":") ? part() : nullptr;
      expect_op("]");
      return make<SliceExpr>(line, std::move(base), std::move(first), std::move(stop),
                             std::move(step));
    }
    if (first == nullptr || current().is_op(",")) {
      auto keys = make<SequenceExpr>(line);
      keys->is_tuple = true;
      if (first != nullptr) adopt(*keys, std::move(first));
      while (skip_op(",")) adopt(*keys, parse_expression());
      first = std::move(keys);
    }
    expect_op("]");
    return make<ItemExpr>(line, std::move(base), std::move(first));
  }

  void check_count(size_t count) const {
    constexpr size_t kMaxArguments = 1000;
    if (count >= kMaxArguments) {
      fail_at(current().line,
              fmt::format("too many arguments; expected at most {}", kMaxArguments));
    }
  }

  void parse_call_args(Expr& node, ArgNames& names) {
    const int line = current().line;
    expect_op("(");
    while (!current().is_op(")")) {
      check_count(names.size());
      std::string name;
      if (skip_op("*")) {
        name = "*";
      } else if (skip_op("**")) {
        name = "**";
      } else if (current().type == TokenType::kName && peek().is_op("=")) {
        name = next().text;
        next();
      }
      // Positional arguments come first, then keywords and one spread list, then one spread dict.
      const auto given = [&](std::string_view other) {
        return std::find(names.begin(), names.end(), other) != names.end();
      };
      const bool after_keyword = !names.empty() && !names.back().empty();
      if (given("**") || (name == "*" && given("*")) || (name.empty() && after_keyword)) {
        fail_at(line, "invalid syntax for function call expression");
      }
      if (!name.empty() && given(name)) fail_at(line, "keyword argument repeated: " + name);
      names.push_back(name);
      adopt(node, parse_expression());
      if (!current().is_op(")")) expect_op(",");
    }
    expect_op(")");
  }

  ExprPtr parse_call(ExprPtr callee) {
    auto node = make<CallExpr>(current().line, std::move(callee));
    parse_call_args(*node, node->arg_names);
    return node;
  }

  void note_unknown(const FilterOrTestExpr& node) {
    if (node.builtin != nullptr || conditional_ || unknown_) return;
    unknown_ = Error{fmt::format("No {} named '{}'.", node.is_test ? "test" : "filter", node.name),
                     node.line};
  }

  ExprPtr parse_filter(ExprPtr input) {
    auto node = make<FilterOrTestExpr>(current().line, std::move(input));
    node->name = expect_name();
    node->builtin = find_filter(node->name);
    note_unknown(*node);
    if (current().is_op("(")) parse_call_args(*node, node->arg_names);
    return node;
  }

  ExprPtr parse_filter_chain(ExprPtr input) {
    while (skip_op("|")) input = parse_filter(std::move(input));
    return input;
  }

  ExprPtr parse_test(ExprPtr input) {
    auto node = make<FilterOrTestExpr>(next().line, std::move(input));
    const bool negated = skip_name("not");
    node->is_test = true;
    node->name = expect_name();
    node->builtin = find_test(node->name);
    note_unknown(*node);
    const Token& t = current();
    const bool has_argument = t.type == TokenType::kName || t.type == TokenType::kString ||
                              t.type == TokenType::kNumber || t.is_op("[") || t.is_op("{");
    if (t.is_op("(")) {
      parse_call_args(*node, node->arg_names);
    } else if (has_argument && !t.is_name("else") && !t.is_name("or") && !t.is_name("and")) {
      if (t.is_name("is")) fail_here("You cannot chain multiple tests with is");
      node->arg_names.emplace_back();
      adopt(*node, parse_postfix(parse_primary()));
    }
    if (!negated) return node;
    const int line = node->line;
    return make<UnaryExpr>(line, std::move(node));
  }

  int max_depth_;
  int nesting_ = 0;
  int loop_depth_ = 0;            // enclosing loops within this macro; break needs at least one
  int any_loop_depth_ = 0;        // all enclosing loops
  bool conditional_ = false;      // unknown filters fail only when evaluated
  std::optional<Error> unknown_;  // the first error of an unknown name outside conditions
  std::unordered_map<std::string, NameId> name_ids_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
};

}  // namespace

std::unique_ptr<Program> parse_template(std::string_view source, int max_depth) {
  return Parser(tokenize(source), max_depth).run();
}

}  // namespace quire::jinja
