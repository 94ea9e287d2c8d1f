// Filters that return text, the methods of str, and the formats of both.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

constexpr size_t kAbsent = std::string_view::npos;

// ---- formats

void write_html_escaped(const MarkedText& text, TextBuilder& out) {
  write_escaped(text, out, [](char32_t c, std::string_view) -> std::string {
    constexpr std::string_view kFrom = "&<>\"'";
    constexpr const char* kTo[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    const size_t idx = c < 0x80 ? kFrom.find(static_cast<char>(c)) : kAbsent;
    return idx == kAbsent ? "" : kTo[idx];
  });
}

namespace {

bool is_markup(const Value& value) {
  return value.is_string() && value.text()->markup;
}
// Writes the text of a value into another text; `escapes`: the other text is markup.
void write_part(const Value& value, bool escapes, TextBuilder& out) {
  if (!escapes || is_markup(value)) return write_str(value, out);
  write_html_escaped(to_str(value, out.budget()), out);
}

// Fails for a directive such as "%05.1f", whose flags or type begin at `from`.
[[noreturn]] void refuse_format(std::string_view directive, size_t from) {
  const size_t end = directive.find_first_of("abcdefghijklmnopqrstuvwxyzEFGX%", from);
  fail(fmt::format("the format '{}' is not supported; expected %s, %d, %(name)s or %%",
                   shortened(directive.substr(0, end == kAbsent ? end : end + 1))));
}

}  // namespace

// "%s is %d" % args
MarkedText format_percent(Interpreter& interpreter, const MarkedText& format, const Value& args,
                          bool escapes) {
  Budget& budget = interpreter.budget;
  TextBuilder out(budget);
  budget.read(format.text.size());
  size_t num_used = 0;
  const auto next_arg = [&] {
    if (num_used >= (args.is_tuple() ? args.items().size() : 1)) {
      fail("not enough arguments for format string");
    }
    ++num_used;
    return args.is_tuple() ? args.items()[num_used - 1] : args;
  };
  const auto named_arg = [&](std::string_view name) {
    if (!args.is_dict()) fail("format requires a mapping");
    const Value* value = args.dict()->find(name, budget);
    if (value == nullptr) fail(fmt::format("'{}'", shortened(name)));
    return *value;
  };
  for (std::string_view rest = format.text; !rest.empty();) {
    const size_t percent = std::min(rest.find('%'), rest.size());
    out.append(format, rest.substr(0, percent));
    rest.remove_prefix(percent);
    if (rest.empty()) break;
    budget.step();
    const std::string_view directive = rest;
    const size_t name_end = rest.starts_with("%(") ? rest.find(')') : kAbsent;
    const bool is_named = name_end != kAbsent;
    rest.remove_prefix(is_named ? name_end + 1 : 1);
    const char type = rest.empty() ? '\0' : rest[0];
    if (type != 's' && type != 'd' && (type != '%' || is_named)) {
      refuse_format(directive, directive.size() - rest.size());
    }
    rest.remove_prefix(1);
    if (type == '%') {
      out.append(format, directive.substr(0, 1));
      continue;
    }
    const Value value = is_named ? named_arg(directive.substr(2, name_end - 2)) : next_arg();
    if (type == 'd' && !value.is_integral()) {
      fail(value.is_undefined() ? value.undefined_reason()
                                : fmt::format("%d formats an integer; got {}", value.type_name()));
    }
    type == 'd' ? out.append_literal(fmt::format("{}", value.as_int()))
                : write_part(value, escapes, out);
  }
  const bool all_used = args.is_tuple() ? num_used == args.items().size()
                                        : num_used == 1 || args.is_dict() || args.is_list();
  if (!all_used) fail("not all arguments converted during string formatting");
  return out.take();
}

MarkedText map_text(Budget& budget, std::string (*map)(std::string_view), const MarkedText& text) {
  budget.require_free(text.text.size() * 8);  // twice the text as code points
  budget.read(text.text.size() * 2);
  return derived(text, map(text.text));
}

namespace {

MarkedText str(Interpreter& interpreter, const Value& value) {
  return to_str(value, interpreter.budget);
}
// A text made from `self`, which is markup if `self` is.
Value same_kind(Interpreter& interpreter, const Value& self, MarkedText text) {
  return interpreter.make_string(std::move(text), is_markup(self));
}

template <std::string (*kMap)(std::string_view)>
Value mapped(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return same_kind(interpreter, self, map_text(interpreter.budget, kMap, str(interpreter, self)));
}

template <bool kLeft, bool kRight>
Value strips(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const MarkedText text = str(interpreter, self);
  const auto chars = args.has(0) ? std::optional<std::string_view>(args.text(0)) : std::nullopt;
  return same_kind(interpreter, self, copy_part(text, strip(text.text, chars, kLeft, kRight)));
}

Value replaced(Interpreter& interpreter, const MarkedText& source, std::string_view old,
               const MarkedText& with, int64_t left, bool markup) {
  const std::string_view text = source.text;
  if (left < 0) left = INT64_MAX;
  TextBuilder out(interpreter.budget);
  size_t done = 0;
  if (old.empty()) {  // inserts before every character and at the end
    while (left-- > 0) {
      out.append(with);
      if (done == text.size()) return interpreter.make_string(out.take(), markup);
      const auto size = static_cast<size_t>(decode_utf8(text.substr(done)).num_bytes);
      out.append(source, text.substr(done, size));
      done += size;
    }
  } else {
    for (size_t at = find_text(text, old); at != kAbsent && left-- > 0;
         at = find_text(text, old, done)) {
      out.append(source, text.substr(done, at - done));
      out.append(with);
      done = at + old.size();
    }
  }
  out.append(source, text.substr(done));
  return interpreter.make_string(out.take(), markup);
}

// ---- filters

Value string(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return self.is_string() ? self : interpreter.make_string(to_str(self, interpreter.budget));
}

Value replace_filter(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const MarkedText text = str(interpreter, self);
  interpreter.budget.read(text.text.size());
  const int64_t count = args.has(2) ? args.integer(2) : -1;
  return replaced(interpreter, text, str(interpreter, args.value(0)).text,
                  str(interpreter, args.value(1)), count, false);
}

Value join_filter(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const MarkedText separator = args[0] == nullptr ? MarkedText() : str(interpreter, args.value(0));
  TextBuilder out(interpreter.budget);
  bool first = true;
  for (const Value& item : to_items(interpreter, self)) {
    if (!std::exchange(first, false)) out.append(separator);
    write_str(args.has(1) ? attribute_path(interpreter, item, args.value(1)) : item, out);
  }
  return interpreter.make_string(out.take());
}

Value center(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const MarkedText text = str(interpreter, self);
  const MarkedText space = {" ", {}};
  const int64_t width = args.integer(0, 80);
  const auto num_chars = static_cast<int64_t>(count_chars(text.text));
  const int64_t missing = std::max<int64_t>(width - num_chars, 0);
  const int64_t left = missing / 2 + (missing & width & 1);  // an odd space is placed as in CPython
  TextBuilder out(interpreter.budget);
  out.append_times(static_cast<size_t>(left), space);
  out.append(text);
  out.append_times(static_cast<size_t>(missing - left), space);
  return interpreter.make_string(out.take());
}

Value indent(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (!self.is_string()) {
    if (self.is_undefined()) fail(self.undefined_reason());
    fail(fmt::format("unsupported operand type(s) for +=: '{}' and 'str'", self.type_name()));
  }
  MarkedText indention;
  if (args[0] != nullptr && args.value(0).is_string()) {
    indention = args.marked(0);
  } else {
    const auto width = static_cast<size_t>(std::max<int64_t>(args.integer(0, 4), 0));
    interpreter.budget.require_free(width);
    indention.text.assign(width, ' ');
  }
  const bool blank = args.flag(2);
  interpreter.budget.require_free(self.as_string().size());
  interpreter.budget.read(self.as_string().size());
  MarkedText text = *self.text();
  text.text += '\n';
  TextBuilder out(interpreter.budget);
  if (args.flag(1)) out.append(indention);
  bool first = true;
  for (std::string_view rest = text.text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (!first) out.append_literal("\n");
    if (!first && (blank || !line.empty())) out.append(indention);
    first = false;
    out.append(text, line);
  }
  return interpreter.make_string(out.take(), is_markup(self));
}

Value truncate(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (!self.is_string()) fail("truncate needs a str");
  interpreter.budget.read(self.as_string().size());
  const int64_t length = args.integer(0, 255);
  const MarkedText end = args[2] == nullptr ? MarkedText{"...", {}} : args.marked(2);
  const int64_t leeway = args.has(3) ? args.integer(3) : 5;
  const auto end_chars = static_cast<int64_t>(count_chars(end.text));
  if (length < end_chars) fail(fmt::format("expected length >= {}, got {}", end_chars, length));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  const auto num_chars = static_cast<int64_t>(self.text()->num_chars);
  if (num_chars <= length || num_chars - length <= leeway) return self;
  std::string_view kept = self.as_string();
  kept = kept.substr(0, byte_of_char(kept, static_cast<size_t>(length - end_chars)));
  if (!args.flag(1)) kept = kept.substr(0, kept.rfind(' '));
  MarkedText shown = copy_part(*self.text(), kept);
  shown.append(end);
  return interpreter.make_string(std::move(shown));
}

Value wordcount(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  int64_t count = 0;
  bool in_word = false;
  const MarkedText text = str(interpreter, self);
  for (const auto& [c, bytes] : Chars(text.text)) {
    if (!is_word(c)) {
      in_word = false;
    } else if (!std::exchange(in_word, true)) {
      ++count;
    }
  }
  return Value::integer(count);
}

Value safe(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return interpreter.make_string(str(interpreter, self), true);
}
Value forceescape(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  TextBuilder out(interpreter.budget);
  write_html_escaped(str(interpreter, self), out);
  return interpreter.make_string(out.take(), true);
}
Value escape(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  return is_markup(self) ? self : forceescape(interpreter, self, args);
}

void write_url_quoted(const MarkedText& text, bool for_query, TextBuilder& out) {
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

Value urlencode(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  TextBuilder out(interpreter.budget);
  if (self.is_string() || !is_iterable(self)) {
    write_url_quoted(str(interpreter, self), false, out);
    return interpreter.make_string(out.take());
  }
  const std::vector<Value> pairs =
      self.is_dict() ? *DictView(self.dict(), DictView::Part::kItems).iterate(interpreter)
                     : to_items(interpreter, self);
  for (const Value& pair : pairs) {
    const std::vector<Value> parts = to_items(interpreter, pair);
    if (parts.size() != 2) fail("urlencode needs pairs of a key and a value");
    if (out.size() > 0) out.append_literal("&");
    write_url_quoted(str(interpreter, parts[0]), true, out);
    out.append_literal("=");
    write_url_quoted(str(interpreter, parts[1]), true, out);
  }
  return interpreter.make_string(out.take());
}

Value format_filter(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (args.raw->keyword.empty()) {
    return same_kind(interpreter, self,
                     format_percent(interpreter, str(interpreter, self),
                                    interpreter.make_tuple(args.raw->positional), is_markup(self)));
  }
  if (!args.raw->positional.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  std::vector<Dict::Entry> named;
  for (const auto& [name, value] : args.raw->keyword) {
    named.emplace_back(interpreter.make_keyword(name), value);
  }
  return same_kind(interpreter, self,
                   format_percent(interpreter, str(interpreter, self),
                                  interpreter.make_dict(std::move(named)), is_markup(self)));
}

Value tojson(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  JsonStyle style;
  style.ensure_ascii = args.flag(0);
  if (args.has(1)) {
    const Value& width = args.value(1);
    const size_t spaces =
        width.is_string() ? 0 : static_cast<size_t>(std::clamp<int64_t>(args.integer(1), 0, 4096));
    style.indent = width.is_string() ? args.marked(1) : MarkedText{std::string(spaces, ' '), {}};
    style.item_separator = {",", {}};
  }
  if (args.has(2)) {
    const std::vector<Value> separators = to_items(interpreter, args.value(2));
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      fail("separators must be two strings");
    }
    style.item_separator = str(interpreter, separators[0]);
    style.key_separator = str(interpreter, separators[1]);
  }
  style.sort_keys = args.flag(3);
  return interpreter.make_string(dump_json(self, style, interpreter.budget));
}

constexpr Builtin kStringFilters[] = {
    {"capitalize", "", mapped<capitalize>},
    {"center", "| width", center},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", forceescape},
    {"format", "*", format_filter},
    {"indent", "| width first blank", indent},
    {"join", "| d attribute", join_filter},
    {"lower", "", mapped<lower>},
    {"replace", "old new | count", replace_filter},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", mapped<title_filter>},
    {"tojson", "| ensure_ascii indent separators sort_keys", tojson},
    {"trim", "| chars", strips<true, true>},
    {"truncate", "| length killwords end leeway", truncate},
    {"upper", "", mapped<upper>},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
};

// ---- methods. Interpreter::make_method charges for reading `self` before they run.

template <bool kBackwards, bool kMustExist>
Value finds(Interpreter&, const Value& self, const BoundArgs& args) {
  const std::string_view text = self.as_string();
  const size_t at = kBackwards ? rfind_text(text, args.text(0)) : find_text(text, args.text(0));
  if (at != kAbsent) return Value::integer(static_cast<int64_t>(count_chars(text.substr(0, at))));
  if (kMustExist) fail("substring not found");
  return Value::integer(-1);
}

Value count_text(Interpreter&, const Value& self, const BoundArgs& args) {
  const std::string& text = self.as_string();
  const std::string& part = args.text(0);
  if (part.empty()) return Value::integer(static_cast<int64_t>(self.text()->num_chars) + 1);
  int64_t found = 0;
  for (size_t at = find_text(text, part); at != kAbsent;
       at = find_text(text, part, at + part.size())) {
    ++found;
  }
  return Value::integer(found);
}

template <bool kAtStart>
Value affixed(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const std::string& text = self.as_string();
  const auto has = [&](const Value& affix) {
    if (!affix.is_string()) {
      fail(fmt::format("startswith or endswith needs a str or a tuple of str, not {}",
                       affix.type_name()));
    }
    interpreter.budget.step();
    interpreter.budget.read(std::min(text.size(), affix.as_string().size()));
    return kAtStart ? text.starts_with(affix.as_string()) : text.ends_with(affix.as_string());
  };
  if (!args.value(0).is_tuple()) return Value::boolean(has(args.value(0)));
  const std::vector<Value>& affixes = args.value(0).items();
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), has));
}

template <bool kAtStart>
Value removes_affix(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  std::string_view text = self.as_string();
  const std::string& affix = args.text(0);
  if (kAtStart ? !text.starts_with(affix) : !text.ends_with(affix)) return self;
  if (kAtStart) {
    text.remove_prefix(affix.size());
  } else {
    text.remove_suffix(affix.size());
  }
  return same_kind(interpreter, self, copy_part(*self.text(), text));
}

Value replace(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  TextBuilder with(interpreter.budget);
  (void)args.marked(1);  // must be a text
  write_part(args.value(1), is_markup(self), with);
  return replaced(interpreter, *self.text(), args.text(0), with.take(), args.integer(2, -1),
                  is_markup(self));
}

// Collects the parts of a split text. Each is made and charged separately.
class Parts {
 public:
  Parts(Interpreter& interpreter, const Value& self) : interpreter_(interpreter), self_(self) {}
  void add(std::string_view part) {
    items_.push_back(same_kind(interpreter_, self_, copy_part(*self_.text(), part)));
  }
  Value take() { return interpreter_.make_list(std::move(items_)); }
  Value take_reversed() {
    std::reverse(items_.begin(), items_.end());
    return take();
  }

 private:
  Interpreter& interpreter_;
  const Value& self_;
  std::vector<Value> items_;
};

template <typename Add>
void split_at(std::string_view text, std::string_view separator, int64_t limit, Add add) {
  size_t start = 0;
  for (size_t at = find_text(text, separator); at != kAbsent && limit-- > 0;
       at = find_text(text, separator, start)) {
    add(text.substr(start, at - start));
    start = at + separator.size();
  }
  add(text.substr(start));
}

// Splits from the end, by splitting the reversed text.
template <typename Add>
void split_at_backwards(std::string_view text, std::string_view separator, int64_t limit, Add add) {
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string mirrored_separator(separator.rbegin(), separator.rend());
  size_t end = text.size();
  split_at(mirrored, mirrored_separator, limit, [&](std::string_view part) {
    add(text.substr(end - part.size(), part.size()));
    end -= std::min(end, part.size() + separator.size());
  });
}

// Splits at white space.
void split_words(std::string_view text, int64_t limit, Parts& parts) {
  text = strip(text, std::nullopt, true, false);
  while (!text.empty() && limit-- > 0) {
    size_t end = 0;
    for (const auto& [c, bytes] : Chars(text)) {
      if (is_space(c)) break;
      end += bytes.size();
    }
    parts.add(text.substr(0, end));
    text = strip(text.substr(end), std::nullopt, true, false);
  }
  if (!text.empty()) parts.add(text);
}

template <bool kBackwards>
Value splits(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const std::string_view text = self.as_string();
  int64_t limit = args.integer(1, -1);
  if (limit < 0) limit = INT64_MAX;
  interpreter.budget.require_free(text.size() * 2);
  Parts parts(interpreter, self);
  if (!args.has(0)) {
    if (kBackwards && limit != INT64_MAX) {
      fail("rsplit with a limit needs a separator, such as rsplit(' ', 1)");
    }
    split_words(text, limit, parts);
    return parts.take();
  }
  const std::string& separator = args.text(0);
  if (separator.empty()) fail("empty separator");
  const auto add = [&](std::string_view part) { parts.add(part); };
  if (kBackwards) {
    split_at_backwards(text, separator, limit, add);
    return parts.take_reversed();
  }
  split_at(text, separator, limit, add);
  return parts.take();
}

Value splitlines(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  Parts parts(interpreter, self);
  for (std::string_view rest = self.as_string(); !rest.empty();) parts.add(take_line(rest));
  return parts.take();
}

Value join(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  TextBuilder out(interpreter.budget);
  const std::vector<Value> items = to_items(interpreter, args.value(0));
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      fail(fmt::format("sequence item {}: expected str instance, {} found", i,
                       items[i].type_name()));
    }
    if (i > 0) out.append(*self.text());
    write_part(items[i], is_markup(self), out);
  }
  return same_kind(interpreter, self, out.take());
}

// "{} {0} {name}".format(…)
Value format(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const Args& given = *args.raw;
  TextBuilder out(interpreter.budget);
  int64_t next = 0;
  const auto argument = [&](std::string_view name) {
    if (name.find_first_not_of("0123456789") != kAbsent) {
      const std::optional<size_t> idx = find_named(given.keyword, name, interpreter.budget);
      if (!idx) fail(fmt::format("str.format has no argument '{}'", shortened(name)));
      return given.keyword[*idx].second;
    }
    if (name.empty() ? next < 0 : next > 0) {
      fail("cannot switch between manual field specification and automatic field numbering");
    }
    const int64_t idx = name.empty() ? next++ : digits_to_int(name, false, 10).value_or(INT64_MAX);
    if (!name.empty()) next = -1;
    if (idx >= static_cast<int64_t>(given.positional.size())) {
      fail(fmt::format("Replacement index {} out of range for positional args tuple", idx));
    }
    return given.positional[static_cast<size_t>(idx)];
  };
  for (std::string_view rest = self.as_string(); !rest.empty();) {
    const size_t brace = std::min(rest.find_first_of("{}"), rest.size());
    out.append(*self.text(), rest.substr(0, brace));
    rest.remove_prefix(brace);
    if (rest.empty()) break;
    interpreter.budget.step();
    if (rest.size() > 1 && rest[1] == rest[0]) {  // {{ or }}
      out.append(*self.text(), rest.substr(0, 1));
      rest.remove_prefix(2);
      continue;
    }
    const size_t end = rest.find('}');
    if (end == 0 || end == kAbsent) fail("a '{' or '}' of str.format has no counterpart");
    const std::string_view name = rest.substr(1, end - 1);
    if (name.find_first_of(":!.[{") != kAbsent) {
      fail(
          fmt::format("the field '{{{}}}' of str.format is not supported; expected {{}}, {{0}} or "
                      "{{name}}",
                      shortened(name)));
    }
    write_part(argument(name), is_markup(self), out);
    rest.remove_prefix(end + 1);
  }
  return same_kind(interpreter, self, out.take());
}

constexpr Builtin kMethods[] = {
    {"capitalize", "", mapped<capitalize>},
    {"count", "sub", count_text},
    {"endswith", "suffix", affixed<false>},
    {"find", "sub", finds<false, false>},
    {"format", "*", format},
    {"index", "sub", finds<false, true>},
    {"join", "iterable", join},
    {"lower", "", mapped<lower>},
    {"lstrip", "| chars", strips<true, false>},
    {"removeprefix", "prefix", removes_affix<true>},
    {"removesuffix", "suffix", removes_affix<false>},
    {"replace", "old new | count", replace},
    {"rfind", "sub", finds<true, false>},
    {"rsplit", "| sep maxsplit", splits<true>},
    {"rstrip", "| chars", strips<false, true>},
    {"split", "| sep maxsplit", splits<false>},
    {"splitlines", "", splitlines},
    {"startswith", "prefix", affixed<true>},
    {"strip", "| chars", strips<true, true>},
    {"title", "", mapped<title>},
    {"upper", "", mapped<upper>},
};

}  // namespace

std::span<const Builtin> text_filters() {
  return kStringFilters;
}
std::span<const Builtin> string_methods() {
  return kMethods;
}

}  // namespace quire::jinja
