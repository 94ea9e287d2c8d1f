#include "server/openai/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/ascii.h"
#include "base/text.h"
#include "server/tools/json_scanner.h"

namespace quire::server {
namespace {

std::string described(Element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return fmt::format("a list of {}", simdjson::dom::array(value).size());
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::STRING:
      return fmt::format("'{}'", clipped(std::string_view(value)));
    default:
      return simdjson::to_string(value);
  }
}

struct Position {
  size_t byte = 0;
  std::string what;
  std::string_view expected = "a JSON object";
};

size_t first_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(i));
    if (!c.valid) return i;
    i += static_cast<size_t>(c.num_bytes);
  }
  return text.size();
}

// Returns the UTF-16 unit of the escape \uXXXX at the start of the text; 0 if there is no escape.
uint32_t escaped_unit(std::string_view text) {
  constexpr size_t kEscapeBytes = 6;
  uint32_t unit = 0;
  if (text.size() < kEscapeBytes || !text.starts_with("\\u")) return 0;
  const char* end = text.data() + kEscapeBytes;
  const auto parsed = std::from_chars(text.data() + 2, end, unit, 16);
  return parsed.ptr == end ? unit : 0;
}

// Returns the position of the first escape that is half of a surrogate pair without the other half.
// Half a pair is not a character, so JSON text cannot contain it.
size_t first_half_pair(std::string_view text) {
  constexpr uint32_t kKindMask = 0xfc00;
  constexpr uint32_t kHigh = 0xd800;
  constexpr uint32_t kLow = 0xdc00;
  constexpr size_t kPairBytes = 12;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const uint32_t kind = escaped_unit(rest) & kKindMask;
    if (kind == kHigh && (escaped_unit(rest.substr(kPairBytes / 2)) & kKindMask) == kLow) {
      i += kPairBytes;
    } else if (kind == kHigh || kind == kLow) {
      return i;
    } else {
      i += rest.front() == '\\' ? 2 : 1;
    }
  }
  return text.size();
}

// Finds a number beyond the largest double in valid JSON.
std::optional<Position> find_huge_number(std::string_view body) {
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    if (in_string && body[i] == '\\') {
      ++i;
    } else if (body[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (is_digit(body[i]) || body[i] == '-')) {
      const size_t end = std::min(body.find_first_not_of("0123456789.eE+-", i), body.size());
      const std::string number(body.substr(i, end - i));
      if (std::isinf(std::strtod(number.c_str(), nullptr))) {
        return Position{i, fmt::format("the number {} is out of range", clipped(number)),
                        "numbers of magnitude 1.79e308 at most"};
      }
      i = end - 1;
    }
  }
  return {};
}

// Finds the position of an error in the JSON, which simdjson does not report.
std::optional<Position> find_error(std::string_view body) {
  const size_t bad_utf8 = first_invalid_utf8(body);
  const size_t half_pair = first_half_pair(body);
  JsonScanner scanner;
  for (size_t i = 0; i < body.size(); ++i) {
    if (i == bad_utf8) return Position{i, "invalid UTF-8"};
    if (i == half_pair) return Position{i, "half of a surrogate pair"};
    if (scanner.done() && is_json_space(body[i])) continue;
    if (scanner.done()) return Position{i, "text after the object"};
    if (!scanner.push(body[i])) return Position{i, "not valid JSON, or more than 64 levels deep"};
  }
  if (!scanner.done()) return Position{body.size(), "the object does not end"};
  return find_huge_number(body);
}

std::string invalid_body(std::string_view body, const Status& status) {
  if (std::ranges::all_of(body, is_json_space)) {
    return "[request] the body is empty; expected a JSON object";
  }
  const auto found = find_error(body);
  if (!found) return status.message();
  const std::string_view before = body.substr(0, found->byte);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("[request] body; {} at line {}, column {} (byte {}), expected {}", found->what,
                     line, found->byte - line_start + 1, found->byte, found->expected);
}

// `param` is the top-level field only, because it is logged and deeper keys may contain user text.
FieldError refuse_repeated_keys(simdjson::dom::object body) {
  const auto refuse = [](std::string_view name, std::string_view place) {
    std::string field = clipped(name);
    std::string message =
        fmt::format("[request] {}{}; got it twice, expected it once", field, place);
    return make_api_error(400, std::move(message), std::move(field));
  };
  if (const auto key = find_repeated_key(body)) return refuse(*key, "");
  for (const auto& [name, value] : body) {
    if (const auto place = find_nested_repeated_key(value)) return refuse(name, *place);
  }
  return {};
}

}  // namespace

std::string Path::text() const {
  std::string text = parent != nullptr ? parent->text() : "";
  if (name.empty()) return text + fmt::format("[{}]", idx);
  if (parent != nullptr) text += '.';
  return text + clipped(name);
}

FieldError field_error(const Path& path, std::string_view what) {
  std::string field = path.text();
  std::string message = fmt::format("[request] {}; {}", field, what);
  return make_api_error(400, std::move(message), std::move(field));
}

bool is_absent(Element value) {
  simdjson::dom::array items;
  return value.is_null() || (!value.get_array().get(items) && items.size() == 0);
}

FieldError unexpected(const Path& path, Element got, std::string_view expected) {
  return field_error(path, fmt::format("got {}, expected {}", described(got), expected));
}

FieldError missing(const Path& path, std::string_view expected) {
  return field_error(path, fmt::format("got none, expected {}", expected));
}

FieldError read_text(const Path& path, Element value, std::string& out) {
  std::string_view text;
  if (value.get_string().get(text)) return unexpected(path, value, "a string");
  out = text;
  return {};
}

FieldError read_bool(const Path& path, Element value, bool& out) {
  if (value.get_bool().get(out)) return unexpected(path, value, "true or false");
  return {};
}

FieldError read_int(const Path& path, Element value, int least, int most, int& out) {
  double number = 0;  // exact for all 32-bit integers; also accepts 5.0
  if (value.get_double().get(number) || number != std::trunc(number) || number < least ||
      number > most) {
    return unexpected(path, value, fmt::format("an integer in [{}, {}]", least, most));
  }
  out = static_cast<int>(number);
  return {};
}

FieldError read_list(const Path& path, Element value, size_t max_items, simdjson::dom::array& out) {
  if (value.get_array().get(out)) return unexpected(path, value, "a list");
  // simdjson counts up to 2^24 - 1 items.
  if (out.size() <= max_items) return {};
  return unexpected(path, value, fmt::format("a list of at most {}", max_items));
}

FieldError read_object(const Path& path, Element value, simdjson::dom::object& out) {
  if (value.get_object().get(out)) return unexpected(path, value, "an object");
  return {};
}

FieldError read_required(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, std::string& out) {
  Element value;
  if (fields[name].get(value)) return missing(Path(path, name), "a string");
  return read_text(Path(path, name), value, out);
}

FieldError read_required(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, simdjson::dom::object& out) {
  Element value;
  if (fields[name].get(value)) return missing(Path(path, name), "an object");
  return read_object(Path(path, name), value, out);
}

FieldError read_optional(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, std::string& out) {
  Element value;
  if (fields[name].get(value) || value.is_null()) return {};
  return read_text(Path(path, name), value, out);
}

FieldError read_ids(const Path& path, Element value, std::vector<int32_t>& out) {
  simdjson::dom::array items;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, SIZE_MAX, items));
  if (items.size() == 0) return unexpected(path, value, "at least one token id");
  out.clear();
  out.reserve(items.size());
  for (const Element item : items) {
    int id = 0;
    QUIRE_RETURN_IF_FIELD_ERROR(read_int(Path(path, out.size()), item, 0, INT_MAX, id));
    out.push_back(id);
  }
  return {};
}

FieldError read_texts(const Path& path, Element value, size_t max_texts,
                      std::vector<std::string>& out) {
  simdjson::dom::array items;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, max_texts, items));
  out.clear();
  for (const Element item : items) {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(path, out.size()), item, text));
    out.push_back(std::move(text));
  }
  return {};
}

FieldError parse_body(std::string_view body, size_t max_depth, std::optional<JsonDocument>& out) {
  auto document = JsonDocument::parse(body, "the body", {.max_depth = max_depth});
  if (!document.ok()) {
    const Status status = document.status();
    if (status.code() != StatusCode::kInvalidArgument) return api_error(status);
    return make_api_error(400, invalid_body(body, status));
  }
  if (!document->root().is_object()) {
    return make_api_error(400, fmt::format("[request] body; got {}, expected a JSON object",
                                           described(document->root())));
  }
  QUIRE_RETURN_IF_FIELD_ERROR(refuse_repeated_keys(document->root()));
  out = std::move(*document);
  return {};
}

}  // namespace quire::server
