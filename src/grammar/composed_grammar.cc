// Composes a grammar from EBNF and from the grammars of values. XGrammar prints the grammar of each
// value, and its rules get unique names.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/compile_spec.h"

namespace quire::grammar {
namespace {

bool is_name_byte(char c) {
  return is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
}

// A piece of a printed grammar.
struct Piece {
  enum class Kind { kName, kRule, kString, kClass, kOther };
  Kind kind = Kind::kOther;  // kRule: the name that a rule defines
  std::string_view text;
};

// The end of a string or a class that begins at `from`; a backslash escapes the next byte.
size_t end_of(std::string_view text, size_t from, char close) {
  size_t at = from + 1;
  while (at < text.size() && text[at] != close) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// Divides the text. XGrammar prints a rule at the start of a line, and a rule's attributes directly
// after its name.
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    Piece::Kind kind = Piece::Kind::kOther;
    if (text[at] == '"') {
      kind = Piece::Kind::kString;
      at = end_of(text, at, '"');
    } else if (text[at] == '[') {
      const bool is_attribute = !pieces.empty() && pieces.back().kind == Piece::Kind::kRule;
      if (!is_attribute) kind = Piece::Kind::kClass;
      at = end_of(text, at, ']');
    } else if (is_alphanumeric(text[at]) || text[at] == '_') {
      kind = at == 0 || text[at - 1] == '\n' ? Piece::Kind::kRule : Piece::Kind::kName;
      while (at < text.size() && is_name_byte(text[at])) ++at;
    } else {
      ++at;
    }
    pieces.push_back({kind, text.substr(begin, at - begin)});
  }
  return pieces;
}

// Reads a character of a class, which may be escaped.
int64_t class_item(std::string_view text, size_t& at) {
  if (text[at] != '\\' || at + 1 == text.size()) {
    const Utf8Char decoded = decode_utf8(text.substr(at));
    at += static_cast<size_t>(decoded.num_bytes);
    return static_cast<int64_t>(decoded.code_point);
  }
  const char kind = text[at + 1];
  at += 2;
  const size_t num_digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (num_digits == 0) {
    constexpr std::string_view kLetters = "tnrabfve0";
    constexpr std::string_view kCharacters("\t\n\r\a\b\f\v\x1b\0", 9);
    const size_t letter = kLetters.find(kind);
    return letter == std::string_view::npos ? static_cast<unsigned char>(kind)
                                            : static_cast<unsigned char>(kCharacters[letter]);
  }
  int64_t character = 0;
  for (size_t n = 0; n < num_digits && at < text.size() && hex_digit(text[at]) >= 0; ++n) {
    character = character * 16 + hex_digit(text[at++]);
  }
  return character;
}

std::string range_text(int64_t low, int64_t high) {
  std::string text = fmt::format("\\U{:08x}", low);
  if (high > low) text += fmt::format("-\\U{:08x}", high);
  return text;
}

// Removes ASCII characters from a class; "" if nothing is left.
std::string class_without(std::string_view text, const std::set<char>& barred) {
  const bool is_negated = text.starts_with("[^");
  if (is_negated) {
    std::string out(text.substr(0, text.size() - 1));
    for (const char c : barred) out += range_text(c, c);
    return out + "]";
  }
  std::string out = "[";
  for (size_t at = 1; at + 1 < text.size();) {
    int64_t low = class_item(text, at);
    int64_t high = low;
    if (text[at] == '-' && at + 2 < text.size()) high = class_item(text, ++at);
    for (const char c : barred) {
      if (c < low || c > high) continue;
      if (c > low) out += range_text(low, c - 1);
      low = c + 1;
    }
    if (low <= high) out += range_text(low, high);
  }
  return out.size() == 1 ? std::string() : out + "]";
}

// Returns whether a printed regex may match one of the characters. `.`, negated classes and \S, \W,
// \D count as if they did. The regexes of formats only list the characters that they allow.
bool may_match(std::string_view regex, const std::set<char>& barred) {
  for (size_t at = 0; at < regex.size(); ++at) {
    if (regex[at] == '\\') {
      while (at + 1 < regex.size() && regex[at] == '\\') ++at;
      constexpr std::string_view kComplements = "SWD";
      if (kComplements.find(regex[at]) != std::string_view::npos) return true;
    } else if (regex[at] == '.' || barred.contains(regex[at]) ||
               regex.substr(at).starts_with("[^")) {
      return true;
    }
  }
  return false;
}

class Composer {
 public:
  explicit Composer(const GrammarLimits& limits) : limits_(limits) {}

  Status add(const GrammarValue& value) {
    switch (value.kind) {
      case GrammarValue::Kind::kChecked:
        return plain_schema(value.text, limits_, value.tools).status();
      case GrammarValue::Kind::kRegex: {
        QUIRE_ASSIGN_OR_RETURN(const RegexText regex,
                               plain_regex("a pattern of the JSON schema", value.text, limits_));
        return append(value, xgrammar::Grammar::FromRegex(regex.text).ToString());
      }
      default: {
        QUIRE_ASSIGN_OR_RETURN(const std::string schema,
                               plain_schema(value.text, limits_, value.tools));
        return append(value, schema_grammar(schema).ToString());
      }
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string_view name_of_tool(const GrammarValue& value) {
    return value.tools.empty() ? std::string_view() : value.tools.front().tool;
  }

  // Returns the error for a value that may contain the text that ends it.
  Status refuse(const GrammarValue& value, std::string_view what) const {
    return invalid_argument(fmt::format(
        "[grammar] tool \"{}\": {} of the JSON schema may match {}, which ends an argument in the "
        "model's format of tool calls; expected one without it",
        clipped(name_of_tool(value)), what, clipped(value.barred.front())));
  }

  Status append(const GrammarValue& value, const std::string& printed) {
    std::set<char> barred;
    for (const std::string& text : value.barred) barred.insert(text.front());
    const std::vector<Piece> pieces = pieces_of(printed);
    std::set<std::string_view> names;
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::kRule) names.insert(piece.text);
    }
    std::string_view macro;  // the last name that no rule defines
    std::string rule;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      const bool is_name = piece.kind == Piece::Kind::kName && names.contains(piece.text);
      if (piece.kind == Piece::Kind::kRule) rule = piece.text;
      if (piece.kind == Piece::Kind::kRule && value.kind == GrammarValue::Kind::kPython &&
          rule == "basic_string") {
        append_single_quotes(value.rule);
        continue;
      }
      if (piece.kind == Piece::Kind::kRule || is_name) {
        out_ += piece.text == "root" ? value.rule : fmt::format("{}_{}", value.rule, piece.text);
        continue;
      }
      if (piece.kind == Piece::Kind::kName) macro = piece.text;
      if (piece.kind == Piece::Kind::kClass && !barred.empty()) {
        const std::string rest = class_without(piece.text, barred);
        if (rest.empty()) return refuse(value, "a pattern");
        out_ += rest;
        continue;
      }
      if (piece.kind == Piece::Kind::kString) {
        QUIRE_RETURN_IF_ERROR(append_string(value, barred, macro == "Regex", rule, piece.text));
        macro = {};
        continue;
      }
      out_ += piece.text;
    }
    return {};
  }

  // Adds rules for Python's strings between single quotes.
  void append_single_quotes(const std::string& prefix) {
    out_ += fmt::format(
        "{0}_single ::= \"'\" | [^'\\\\\\u0000-\\u001f] {0}_single | "
        "\"\\\\\" ['\\\\/bfnrt\\u0022] {0}_single\n"
        "{0}_basic_string ::= \"'\" {0}_single | {0}_double\n"
        "{0}_double",
        prefix);
  }

  Status append_string(const GrammarValue& value, const std::set<char>& barred, bool is_regex,
                       std::string_view rule, std::string_view text) {
    if (is_regex && !barred.empty() && may_match(text, barred)) return refuse(value, "a format");
    if (value.kind == GrammarValue::Kind::kRegex &&
        std::ranges::any_of(text, [&](char c) { return barred.contains(c); })) {
      return refuse(value, "a pattern");
    }
    for (const std::string& other : value.barred) {
      if (text.find(other) != std::string_view::npos) return refuse(value, "a text");
    }
    if (value.kind == GrammarValue::Kind::kPython) {
      if (rule == "basic_boolean") text = text == "\"true\"" ? "\"True\"" : "\"False\"";
      if (rule == "basic_null") text = "\"None\"";
    }
    // A kText value has no quotes around it.
    const bool is_quote =
        value.kind == GrammarValue::Kind::kText && rule == "root" && text == "\"\\\"\"";
    out_ += is_quote ? "\"\"" : text;
    return {};
  }

  const GrammarLimits& limits_;
  std::string out_;
};

}  // namespace

Result<std::string> compose_grammar(const GrammarSpec& spec, const GrammarLimits& limits) {
  Composer composer(limits);
  for (const GrammarValue& value : spec.values) QUIRE_RETURN_IF_ERROR(composer.add(value));
  return spec.text + composer.take();
}

}  // namespace quire::grammar
