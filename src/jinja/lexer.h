// Splits a template into tokens, with the white-space rules of Jinja's lexer under
// trim_blocks=True, lstrip_blocks=True and keep_trailing_newline=False.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace quire::jinja {

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

  bool is(TokenType t, std::string_view s) const { return type == t && text == s; }
  bool is_op(std::string_view op) const { return is(TokenType::kOperator, op); }
  bool is_name(std::string_view name) const { return is(TokenType::kName, name); }
};

// Throws Error. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source);

}  // namespace quire::jinja
