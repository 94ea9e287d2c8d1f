#include "jinja/chat_template.h"

#include <fmt/format.h>

#include <new>

#include "base/text.h"
#include "jinja/ast.h"
#include "jinja/budget.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

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

}  // namespace quire
