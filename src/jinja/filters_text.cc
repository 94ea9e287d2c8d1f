// Filters that return text.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"
#include "jinja/write_escaped.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

std::string str(Run run, const Value& value) {
  return to_str(value, run.budget);
}
bool is_markup(const Value& value) {
  return value.is_string() && value.text()->markup;
}

// Applies kMap to str(self). Markup stays markup.
template <std::string (*kMap)(std::string_view)>
Value mapped(Run run, const Value& self, const Bound&) {
  return run.make_string(map_text(run.budget, kMap, str(run, self)), is_markup(self));
}

// Capitalizes words as the filter `title` splits them, which differs from str.title().
std::string title_words(std::string_view text) {
  const auto separates = [](char32_t c) {
    return c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool separator = separates(decode_utf8(text.substr(at)).code_point);
    size_t end = at;
    while (end < text.size()) {
      const Utf8Char c = decode_utf8(text.substr(end));
      if (separates(c.code_point) != separator) break;
      end += static_cast<size_t>(c.num_bytes);
    }
    const std::string_view word = text.substr(at, end - at);
    const auto first = static_cast<size_t>(decode_utf8(word).num_bytes);
    out += upper(word.substr(0, first)) + lower(word.substr(first));
    at = end;
  }
  return out;
}

Value trim(Run run, const Value& self, const Bound& args) {
  const std::string text = str(run, self);
  const auto chars = args.has(0) ? std::optional<std::string_view>(args.text(0)) : std::nullopt;
  return run.make_string(std::string(strip(text, chars, true, true)), is_markup(self));
}

Value string(Run run, const Value& self, const Bound&) {
  return self.is_string() ? self : run.make_string(to_str(self, run.budget));
}

Value replace(Run run, const Value& self, const Bound& args) {
  const Value text = run.make_string(str(run, self));
  Args call;
  call.positional = {run.make_string(str(run, args.value(0))),
                     run.make_string(str(run, args.value(1)))};
  call.positional.push_back(args.has(2) ? args.value(2) : Value::integer(-1));
  return call_method(run, *find_string_method("replace"), text, call);
}

Value join(Run run, const Value& self, const Bound& args) {
  const std::string separator = args[0] == nullptr ? "" : str(run, args.value(0));
  TextBuilder out(run.budget);
  bool first = true;
  for (const Value& item : to_items(run, self)) {
    if (!std::exchange(first, false)) out.append(separator);
    write_str(args.has(1) ? attribute_path(run, item, args.value(1)) : item, out);
  }
  return run.make_string(out.take());
}

Value center(Run run, const Value& self, const Bound& args) {
  Args call;
  call.positional = {Value::integer(args.integer(0, 80))};
  return call_method(run, *find_string_method("center"), run.make_string(str(run, self)), call);
}

Value indent(Run run, const Value& self, const Bound& args) {
  if (!self.is_string()) {
    if (self.is_undefined()) fail(self.undefined_reason());
    fail(fmt::format("unsupported operand type(s) for +=: '{}' and 'str'", self.type_name()));
  }
  std::string indention;
  if (args[0] != nullptr && args.value(0).is_string()) {
    indention = args.text(0);
  } else {
    const auto width = static_cast<size_t>(std::max<int64_t>(args.integer(0, 4), 0));
    run.budget.want(width);
    indention.assign(width, ' ');
  }
  const bool blank = args.flag(2);
  run.budget.want(self.as_string().size());
  run.budget.read(self.as_string().size());
  const std::string text = self.as_string() + "\n";
  TextBuilder out(run.budget);
  if (args.flag(1)) out.append(indention);
  bool first = true;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest, false);
    if (!first) out.append("\n");
    if (!first && (blank || !line.empty())) out.append(indention);
    first = false;
    out.append(line);
  }
  return run.make_string(out.take(), is_markup(self));
}

Value truncate(Run run, const Value& self, const Bound& args) {
  if (!self.is_string()) fail("truncate needs a str");
  run.budget.read(self.as_string().size());
  const int64_t length = args.integer(0, 255);
  const std::string end = args[2] == nullptr ? "..." : args.text(2);
  const int64_t leeway = args.has(3) ? args.integer(3) : 5;
  const auto end_chars = static_cast<int64_t>(count_chars(end));
  if (length < end_chars) fail(fmt::format("expected length >= {}, got {}", end_chars, length));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  const auto num_chars = static_cast<int64_t>(self.text()->num_chars);
  if (num_chars <= length || num_chars - length <= leeway) return self;
  const std::string& text = self.as_string();
  std::string kept = text.substr(0, byte_of_char(text, static_cast<size_t>(length - end_chars)));
  if (!args.flag(1)) {
    if (const size_t space = kept.rfind(' '); space != std::string::npos) kept.resize(space);
  }
  return run.make_string(kept + end);
}

Value wordcount(Run run, const Value& self, const Bound&) {
  int64_t count = 0;
  bool in_word = false;
  const std::string text = str(run, self);
  for (const auto& [c, bytes] : Chars(text)) {
    if (!is_word(c)) {
      in_word = false;
    } else if (!std::exchange(in_word, true)) {
      ++count;
    }
  }
  return Value::integer(count);
}

Value safe(Run run, const Value& self, const Bound&) {
  return run.make_string(str(run, self), true);
}
Value forceescape(Run run, const Value& self, const Bound&) {
  TextBuilder out(run.budget);
  write_html_escaped(str(run, self), out);
  return run.make_string(out.take(), true);
}
Value escape(Run run, const Value& self, const Bound& args) {
  return is_markup(self) ? self : forceescape(run, self, args);
}

void write_url_quoted(std::string_view text, bool for_query, TextBuilder& out) {
  write_escaped(text, out, [for_query](char32_t c, std::string_view bytes) -> std::string {
    constexpr std::string_view kUnreserved = "_.-~";
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alnum || (c == '/' && !for_query)) return {};
    if (c < 0x80 && kUnreserved.find(static_cast<char>(c)) != std::string_view::npos) return {};
    if (for_query && c == ' ') return "+";
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string escaped;
    for (const char byte : bytes) {
      const auto code = static_cast<unsigned char>(byte);
      escaped += {'%', kDigits[code >> 4], kDigits[code & 15]};
    }
    return escaped;
  });
}

Value urlencode(Run run, const Value& self, const Bound&) {
  TextBuilder out(run.budget);
  if (self.is_string() || !is_iterable(self)) {
    write_url_quoted(str(run, self), false, out);
    return run.make_string(out.take());
  }
  const std::vector<Value> pairs = self.is_dict()
                                       ? *DictView(self.dict(), DictView::Part::kItems).iterate(run)
                                       : to_items(run, self);
  for (const Value& pair : pairs) {
    const std::vector<Value> parts = to_items(run, pair);
    if (parts.size() != 2) fail("urlencode needs pairs of a key and a value");
    if (out.size() > 0) out.append("&");
    write_url_quoted(str(run, parts[0]), true, out);
    out.append("=");
    write_url_quoted(str(run, parts[1]), true, out);
  }
  return run.make_string(out.take());
}

Value format(Run run, const Value& self, const Bound& args) {
  if (!args.raw->keyword.empty()) {
    if (!args.raw->positional.empty()) {
      fail("can't handle positional and keyword arguments at the same time");
    }
    std::vector<Dict::Entry> named;
    for (const auto& [name, value] : args.raw->keyword) {
      named.emplace_back(run.make_string(name), value);
    }
    return run.make_string(format_percent(run, str(run, self), run.make_dict(std::move(named))));
  }
  return run.make_string(format_percent(run, str(run, self), run.make_tuple(args.raw->positional)));
}

Value tojson(Run run, const Value& self, const Bound& args) {
  JsonStyle style;
  style.ensure_ascii = args.flag(0);
  if (args.has(1)) {
    const Value& width = args.value(1);
    const size_t spaces =
        width.is_string() ? 0 : static_cast<size_t>(std::clamp<int64_t>(args.integer(1), 0, 4096));
    style.indent = width.is_string() ? args.text(1) : std::string(spaces, ' ');
    style.item_separator = ",";
  }
  if (args.has(2)) {
    const std::vector<Value> separators = to_items(run, args.value(2));
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      fail("separators must be two strings");
    }
    style.item_separator = str(run, separators[0]);
    style.key_separator = str(run, separators[1]);
  }
  style.sort_keys = args.flag(3);
  return run.make_string(dump_json(self, style, run.budget));
}

constexpr Builtin kFilters[] = {
    {"capitalize", "", mapped<capitalize>},
    {"center", "| width", center},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", forceescape},
    {"format", "*", format},
    {"indent", "| width first blank", indent},
    {"join", "| d attribute", join},
    {"lower", "", mapped<lower>},
    {"replace", "old new | count", replace},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", mapped<title_words>},
    {"tojson", "| ensure_ascii indent separators sort_keys", tojson},
    {"trim", "| chars", trim},
    {"truncate", "| length killwords end leeway", truncate},
    {"upper", "", mapped<upper>},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() {
  return kFilters;
}

}  // namespace quire::jinja
