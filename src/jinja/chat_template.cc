// The public functions, and JSON: from the request to values, and from values to text (tojson).
#include "jinja/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "base/text.h"
#include "jinja/interpreter.h"
#include "jinja/python_text.h"
#include "jinja/syntax.h"

namespace quire {

namespace {

Status template_error(int line, std::string_view message) {
  constexpr size_t kMaxMessageBytes = 16'384;
  message = message.substr(0, complete_utf8_prefix(message.substr(0, kMaxMessageBytes)));
  return invalid_argument(fmt::format("[template] line {}: {}", line, message));
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const jinja::Program> program)
    : program_(std::move(program)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const TemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return template_error(1, fmt::format("the template is too large; got {} bytes, expected at "
                                         "most {}",
                                         source.size(), limits.max_source_bytes));
  }
  try {
    return ChatTemplate(jinja::parse_template(replace_invalid_utf8(source), limits.max_depth));
  } catch (const jinja::Error& error) {
    return template_error(error.line, error.message);
  } catch (const std::bad_alloc&) {
    return template_error(1, "out of memory");
  }
}

Result<std::string> ChatTemplate::render(const jinja::Value& variables,
                                         const TemplateLimits& limits, int64_t* num_steps) const {
  if (num_steps != nullptr) *num_steps = 0;
  if (!variables.is_dict()) {
    return invalid_argument(
        fmt::format("[template] the variables are not an object; got {}", variables.type_name()));
  }
  jinja::Interpreter interpreter(*program_, variables, limits);
  const struct Report {
    ~Report() {
      if (num_steps != nullptr) *num_steps = interpreter.budget.num_steps();
    }
    const jinja::Interpreter& interpreter;
    int64_t* num_steps;
  } report{interpreter, num_steps};
  try {
    return interpreter.run();
  } catch (const jinja::Error& error) {
    return template_error(error.line > 0 ? error.line : interpreter.line, error.message);
  } catch (const std::bad_alloc&) {
    return template_error(interpreter.line, "out of memory");
  }
}

jinja::Value value_from_json(simdjson::dom::element element) {
  using jinja::Value;
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY: {
      std::vector<Value> items;
      for (const simdjson::dom::element item : simdjson::dom::array(element)) {
        items.push_back(value_from_json(item));
      }
      return Value::list(std::move(items));
    }
    case simdjson::dom::element_type::OBJECT: {
      std::vector<jinja::Dict::Entry> entries;
      for (const auto& [key, value] : simdjson::dom::object(element)) {
        entries.emplace_back(Value::string(key), value_from_json(value));
      }
      return Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries))));
    }
    case simdjson::dom::element_type::INT64:
      return Value::integer(int64_t(element));
    case simdjson::dom::element_type::UINT64:
      return Value::real(static_cast<double>(uint64_t(element)));
    case simdjson::dom::element_type::DOUBLE:
      return Value::real(double(element));
    case simdjson::dom::element_type::STRING:
      return Value::string(std::string_view(element));
    case simdjson::dom::element_type::BOOL:
      return Value::boolean(bool(element));
    case simdjson::dom::element_type::NULL_VALUE:
      break;
  }
  return Value::none();
}

namespace jinja {

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

}  // namespace jinja

}  // namespace quire
