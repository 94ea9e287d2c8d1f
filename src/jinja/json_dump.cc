// Python's json.dumps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/interpreter.h"
#include "jinja/write_escaped.h"

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
  out_.append_times(static_cast<size_t>(depth), *style_.indent);
}

void JsonDumper::write_text(std::string_view text) {
  const auto escape = [this](char32_t c, std::string_view) -> std::string {
    constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
    constexpr std::string_view kTo = "\"\\bfnrt";
    const size_t simple = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
    if (simple != std::string_view::npos) return {'\\', kTo[simple]};
    const auto code = static_cast<uint32_t>(c);
    if (code >= 0x20 && (code < 0x7f || !style_.ensure_ascii)) return {};
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                       0xdc00 + ((code - 0x10000) & 0x3ff));
  };
  out_.append("\"");
  write_escaped(text, out_, escape);
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
  out_.budget().visit(dict.entries().size());
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
