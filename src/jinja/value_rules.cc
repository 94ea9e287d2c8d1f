// Python's truth, equality, order and text of values.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "jinja/budget.h"
#include "jinja/object.h"
#include "jinja/unicode.h"
#include "jinja/value.h"
#include "jinja/write_escaped.h"

namespace quire::jinja {

namespace {

constexpr int kMaxReprDepth = 600;

// Compares exactly: -1, 0 or 1; 2 if one of them is NaN.
int compare_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int();
  }
  // A long double's mantissa of at least 64 bits holds every int64 and double.
  const auto wide = [](const Value& v) {
    return v.is_float() ? static_cast<long double>(v.as_float())
                        : static_cast<long double>(v.as_int());
  };
  const long double a = wide(left);
  const long double b = wide(right);
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b;
}

void count_step(Budget* budget) {
  if (budget != nullptr) budget->step();
}
void count_bytes(Budget* budget, size_t num_bytes) {
  if (budget != nullptr) budget->read(num_bytes);
}

bool equal_dicts(const Dict& left, const Dict& right, Budget* budget) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key, budget);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

bool equal_sequences(const Sequence& left, const Sequence& right, Budget* budget) {
  const bool lists = left.type == Sequence::Type::kList;
  if (lists != (right.type == Sequence::Type::kList)) return false;
  if (left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(left.items[i], right.items[i], budget)) return false;
  }
  return true;
}

int key_rank(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
    case Value::Kind::kInt:
    case Value::Kind::kFloat:
      return 0;
    case Value::Kind::kString:
      return 1;
    case Value::Kind::kNone:
      return 2;
    case Value::Kind::kUndefined:
      return 3;
    case Value::Kind::kObject:
      return 5;
    case Value::Kind::kSequence:
    case Value::Kind::kDict:
      break;
  }
  return 4;  // a tuple; lists and dicts are rejected before
}

// Fails with the name of the unhashable value, which may be nested deep in a tuple.
[[noreturn]] void fail_unhashable(const Value& value) {
  if (value.is_tuple()) {
    for (const Value& item : value.items()) {
      if (!is_hashable(item)) fail_unhashable(item);
    }
  }
  fail(fmt::format("unhashable type: '{}'", value.type_name()));
}

int compare_tuples(const Sequence& left, const Sequence& right, Budget* budget) {
  const size_t common = std::min(left.items.size(), right.items.size());
  for (size_t i = 0; i < common; ++i) {
    const int order = compare_keys(left.items[i], right.items[i], budget);
    if (order != 0) return order;
  }
  return left.items.size() < right.items.size() ? -1 : left.items.size() > right.items.size();
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return false;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return value.as_int() != 0;
    case Value::Kind::kFloat:
      return value.as_float() != 0;
    case Value::Kind::kString:
      return !value.as_string().empty();
    case Value::Kind::kSequence:
      return !value.items().empty();
    case Value::Kind::kDict:
      return !value.dict()->entries().empty();
    case Value::Kind::kObject:
      break;
  }
  return value.object()->truthy();
}

bool identical(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kString:
      return left.text() == right.text();
    case Value::Kind::kSequence:
      return left.sequence() == right.sequence();
    case Value::Kind::kDict:
      return left.dict() == right.dict();
    case Value::Kind::kObject:
      return left.object() == right.object();
    case Value::Kind::kUndefined:
      return &left.undefined_reason() == &right.undefined_reason();
    default:
      return equal(left, right, nullptr);
  }
}

bool equal(const Value& left, const Value& right, Budget* budget) {
  count_step(budget);
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kString:
      if (left.as_string().size() != right.as_string().size()) return false;
      count_bytes(budget, left.as_string().size());
      return left.as_string() == right.as_string();
    case Value::Kind::kSequence:
      return equal_sequences(*left.sequence(), *right.sequence(), budget);
    case Value::Kind::kDict:
      return equal_dicts(*left.dict(), *right.dict(), budget);
    case Value::Kind::kObject:
      return left.object() == right.object() || left.object()->equals(*right.object(), budget);
    default:
      return true;  // both are None or both undefined
  }
}

bool less(const Value& left, const Value& right, Budget& budget, std::string_view op) {
  budget.step();
  if (left.is_undefined()) fail(left.undefined_reason());
  if (right.is_undefined()) fail(right.undefined_reason());
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == -1;
  if (left.is_string() && right.is_string()) {
    budget.read(std::min(left.as_string().size(), right.as_string().size()));
    return left.as_string() < right.as_string();  // UTF-8 bytes order as code points
  }
  if (left.is_sequence() && right.is_sequence() && left.is_list() == right.is_list()) {
    const size_t common = std::min(left.items().size(), right.items().size());
    for (size_t i = 0; i < common; ++i) {
      if (!equal(left.items()[i], right.items()[i], &budget)) {
        return less(left.items()[i], right.items()[i], budget, op);
      }
    }
    return left.items().size() < right.items().size();
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, left.type_name(),
                   right.type_name()));
}

bool is_hashable(const Value& value) {
  return value.is_sequence() ? value.sequence()->hashable : !value.is_dict();
}

void require_hashable(const Value& value) {
  if (!is_hashable(value)) fail_unhashable(value);
}

int compare_keys(const Value& left, const Value& right, Budget* budget) {
  count_step(budget);
  const int left_rank = key_rank(left);
  const int right_rank = key_rank(right);
  if (left_rank != right_rank) return left_rank < right_rank ? -1 : 1;
  switch (left_rank) {
    case 0: {
      const int order = compare_numbers(left, right);
      if (order != 2) return order;
      // In Python, NaN equals nothing. Here all NaNs are one key, after all other numbers.
      const int left_nan = left.is_float() && std::isnan(left.as_float());
      const int right_nan = right.is_float() && std::isnan(right.as_float());
      return left_nan - right_nan;
    }
    case 1:
      count_bytes(budget, std::min(left.as_string().size(), right.as_string().size()));
      return left.as_string().compare(right.as_string());
    case 4:
      return compare_tuples(*left.sequence(), *right.sequence(), budget);
    case 5:
      return std::less<>()(left.object().get(), right.object().get())
                 ? -1
                 : static_cast<int>(left.object() != right.object());
    default:
      return 0;
  }
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  const std::string scientific(buffer, end.ptr);
  const size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  char fixed[64];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof(fixed), number, std::chars_format::fixed);
  std::string text(fixed, fixed_end.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

namespace {

// As Python, uses double quotes if that avoids escapes, otherwise single quotes.
void write_quoted(std::string_view text, TextBuilder& out) {
  out.budget().read(text.size());
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  const auto escape = [quote](char32_t c, std::string_view) -> std::string {
    if (c == static_cast<char32_t>(quote) || c == '\\') return {'\\', static_cast<char>(c)};
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (is_printable(c)) return {};
    if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    return fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  };
  out.append({&quote, 1});
  write_escaped(text, out, escape);
  out.append({&quote, 1});
}

void write_sequence(const Sequence& sequence, TextBuilder& out, int depth) {
  const bool is_list = sequence.type == Sequence::Type::kList;
  out.append(is_list ? "[" : "(");
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out.append(", ");
    write_repr(sequence.items[i], out, depth + 1);
  }
  if (!is_list && sequence.items.size() == 1) out.append(",");
  out.append(is_list ? "]" : ")");
}

void write_dict(const Dict& dict, TextBuilder& out, int depth) {
  out.append("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.append(", ");
    first = false;
    write_repr(key, out, depth + 1);
    out.append(": ");
    write_repr(value, out, depth + 1);
  }
  out.append("}");
}

}  // namespace

void write_repr(const Value& value, TextBuilder& out, int depth) {
  if (depth > kMaxReprDepth) fail("values are nested too deeply to be printed");
  out.budget().step();
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return out.append("Undefined");
    case Value::Kind::kNone:
      return out.append("None");
    case Value::Kind::kBool:
      return out.append(value.as_bool() ? "True" : "False");
    case Value::Kind::kInt:
      return out.append(fmt::format("{}", value.as_int()));
    case Value::Kind::kFloat:
      return out.append(float_repr(value.as_float()));
    case Value::Kind::kString:
      if (!value.text()->markup) return write_quoted(value.as_string(), out);
      out.append("Markup(");
      write_quoted(value.as_string(), out);
      return out.append(")");
    case Value::Kind::kSequence:
      return write_sequence(*value.sequence(), out, depth);
    case Value::Kind::kDict:
      return write_dict(*value.dict(), out, depth);
    case Value::Kind::kObject:
      return value.object()->write_repr(out, depth);
  }
}

std::string to_repr(const Value& value, Budget& budget) {
  TextBuilder out(budget);
  write_repr(value, out);
  return out.take();
}

void write_str(const Value& value, TextBuilder& out) {
  if (value.is_string()) return out.append(value.as_string());
  if (!value.is_undefined()) write_repr(value, out);
}

std::string to_str(const Value& value, Budget& budget) {
  TextBuilder out(budget);
  write_str(value, out);
  return out.take();
}

}  // namespace quire::jinja
