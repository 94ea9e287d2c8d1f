// Python's json.dumps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/template/interpreter.h"
#include "tokenizer/template/unicode.h"

namespace quire::jinja {

namespace {

class JsonDumper {
 public:
  JsonDumper(const JsonStyle& style, Budget& budget) : style_(style), out_(budget) {}

  std::string dump(const Value& value) {
    write(value, 0);
    return out_.take();
  }

 private:
  void write(const Value& value, int depth);
  void write_text(std::string_view text);
  void write_dict(const Dict& dict, int depth);
  void write_sequence(const Sequence& sequence, int depth);
  void write_key(const Value& key);
  void new_line(int depth);
  std::string number(const Value& value) const;

  const JsonStyle& style_;
  TextBuilder out_;
};

std::string JsonDumper::number(const Value& value) const {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return fmt::format("{}", value.as_int());
  const double real = value.as_float();
  if (std::isnan(real)) return "NaN";
  if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
  return float_repr(real);
}

void JsonDumper::new_line(int depth) {
  if (!style_.indent) return;
  out_.append("\n");
  for (int i = 0; i < depth; ++i) out_.append(*style_.indent);
}

void JsonDumper::write_text(std::string_view text) {
  std::string escaped = "\"";
  const auto escape_unit = [&](uint32_t unit) { escaped += fmt::format("\\u{:04x}", unit); };
  constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
  constexpr std::string_view kTo = "\"\\bfnrt";
  if (style_.ensure_ascii) {
    for (const char32_t c : to_code_points(text)) {
      const size_t simple = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
      if (simple != std::string_view::npos) {
        escaped += '\\';
        escaped += kTo[simple];
      } else if (c >= 0x20 && c < 0x7f) {
        escaped += static_cast<char>(c);
      } else if (c < 0x10000) {
        escape_unit(c);
      } else {
        escape_unit(0xd800 + ((static_cast<uint32_t>(c) - 0x10000) >> 10));
        escape_unit(0xdc00 + ((static_cast<uint32_t>(c) - 0x10000) & 0x3ff));
      }
    }
  } else {
    for (const char c : text) {
      if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
        escaped += '\\';
        escaped += kTo[simple];
      } else if (c >= 0 && c < 0x20) {
        escape_unit(static_cast<uint32_t>(c));
      } else {
        escaped += c;
      }
    }
  }
  out_.append(escaped);
  out_.append("\"");
}

void JsonDumper::write_key(const Value& key) {
  if (key.is_string()) return write_text(key.as_string());
  if (key.is_number()) return write_text(number(key));
  if (key.is_none()) return write_text("null");
  fail(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
}

void JsonDumper::write_dict(const Dict& dict, int depth) {
  if (dict.entries().empty()) return out_.append("{}");
  std::vector<const Dict::Entry*> entries;
  for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
  if (style_.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const Dict::Entry* a, const Dict::Entry* b) {
                       return less(a->first, b->first, out_.budget());
                     });
  }
  out_.append("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out_.append(style_.item_separator);
    new_line(depth + 1);
    write_key(entries[i]->first);
    out_.append(style_.key_separator);
    write(entries[i]->second, depth + 1);
  }
  new_line(depth);
  out_.append("}");
}

void JsonDumper::write_sequence(const Sequence& sequence, int depth) {
  if (sequence.items.empty()) return out_.append("[]");
  out_.append("[");
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out_.append(style_.item_separator);
    new_line(depth + 1);
    write(sequence.items[i], depth + 1);
  }
  new_line(depth);
  out_.append("]");
}

void JsonDumper::write(const Value& value, int depth) {
  out_.budget().step();
  switch (value.kind()) {
    case Value::Kind::kNone:
      return out_.append("null");
    case Value::Kind::kBool:
    case Value::Kind::kInt:
    case Value::Kind::kFloat:
      return out_.append(number(value));
    case Value::Kind::kString:
      return write_text(value.as_string());
    case Value::Kind::kSequence:
      return write_sequence(*value.sequence(), depth);
    case Value::Kind::kDict:
      return write_dict(*value.dict(), depth);
    case Value::Kind::kUndefined:
    case Value::Kind::kObject:
      break;
  }
  fail(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
}

}  // namespace

std::string dump_json(const Value& value, const JsonStyle& style, Budget& budget) {
  return JsonDumper(style, budget).dump(value);
}

}  // namespace quire::jinja
