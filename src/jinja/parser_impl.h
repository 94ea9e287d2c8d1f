// A recursive-descent parser of Jinja's grammar (parser_expr.cc, parser_stmt.cc,
// parser_postfix.cc).
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/ast.h"
#include "jinja/budget.h"
#include "jinja/lexer.h"

namespace quire::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, int max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  std::unique_ptr<Program> run();

 private:
  using Names = std::initializer_list<std::string_view>;

  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  // ---- tokens
  const Token& current() const { return tokens_[pos_]; }
  const Token& look() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  Token next() { return pos_ + 1 < tokens_.size() ? tokens_[pos_++] : tokens_[pos_]; }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(TokenType type);
  [[noreturn]] void fail_here(std::string message) const;
  NameId name_id(const std::string& name);

  // ---- statements
  void parse_body(Names ends, Body& body);  // stops at the name of the end tag
  std::string parse_block(Names ends, Body& body);
  std::unique_ptr<Stmt> parse_statement();
  std::unique_ptr<Stmt> parse_for();
  std::unique_ptr<Stmt> parse_if();
  std::unique_ptr<Stmt> parse_set();
  std::unique_ptr<Stmt> parse_macro();
  std::unique_ptr<Stmt> parse_call_block();
  std::unique_ptr<Stmt> parse_filter_block();
  std::unique_ptr<Stmt> parse_with();
  std::unique_ptr<Stmt> parse_generation();
  std::unique_ptr<Stmt> parse_print();
  std::unique_ptr<Stmt> parse_flow();
  void parse_signature(MacroDef& def);
  void parse_macro_body(MacroDef& def, std::string_view end);
  Target parse_target(bool with_namespace, bool ends_at_in = false);
  Target parse_target_part(bool with_namespace);
  Target to_target(const Expr& expr);
  Target name_target(const std::string& name, int line);

  // ---- expressions
  struct TupleRules {
    bool with_cond = true;
    bool parenthesized = false;
    std::string_view end_name = {};  // a name that ends the tuple, such as `in`
  };
  ExprPtr parse_expression() { return parse_cond(); }
  ExprPtr parse_tuple(TupleRules rules);
  ExprPtr parse_tuple() { return parse_tuple(TupleRules{}); }
  bool at_tuple_end(std::string_view end_name) const;
  ExprPtr parse_cond();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter = true);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr base);
  ExprPtr parse_filters_and_tests(ExprPtr base);
  ExprPtr parse_subscript(ExprPtr base);
  ExprPtr parse_slice(ExprPtr base, ExprPtr start, int line);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr input);
  ExprPtr parse_filter_chain(ExprPtr input);
  ExprPtr parse_test(ExprPtr input);
  CallArgs parse_call_args();
  std::string parse_dotted_name();
  void check_count(size_t count) const;  // of arguments or parameters
  void note_unknown(int line, std::string_view kind, const std::string& name);
  int depth_of(const CallArgs& args) const;
  template <typename T>
  std::unique_ptr<T> make(int line);
  // Sets the depth of a complete expression and checks it. Called for every expression.
  ExprPtr done(std::unique_ptr<Expr> expr, std::initializer_list<const Expr*> children,
               int children_depth = 0);

  struct MacroUse {
    bool caller = false, varargs = false, kwargs = false;
  };

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int max_depth_;
  int nesting_ = 0;
  int loop_depth_ = 0;            // enclosing loops within this macro; break needs at least one
  int any_loop_depth_ = 0;        // all enclosing loops
  bool conditional_ = false;      // unknown filters fail only when evaluated
  std::optional<Error> unknown_;  // the first error of an unknown name outside conditions
  std::vector<MacroUse> macros_;
  std::unordered_map<std::string, NameId> name_ids_;
  std::unique_ptr<Program> program_;
};

template <typename T>
std::unique_ptr<T> Parser::make(int line) {
  auto node = std::make_unique<T>();
  node->line = line;
  return node;
}

}  // namespace quire::jinja
