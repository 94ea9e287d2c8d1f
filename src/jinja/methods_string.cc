// The methods of str.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;
constexpr size_t kAbsent = std::string_view::npos;

Value same_kind(Run run, const Value& self, std::string text) {
  return run.make_string(std::move(text), self.text()->markup);
}

template <std::string (*kMap)(std::string_view)>
Value mapped(Run run, const Value& self, const Bound&) {
  return same_kind(run, self, map_text(run.budget, kMap, self.as_string()));
}

template <bool kLeft, bool kRight>
Value strips(Run run, const Value& self, const Bound& args) {
  const auto chars = args.has(0) ? std::optional<std::string_view>(args.text(0)) : std::nullopt;
  return same_kind(run, self, std::string(strip(self.as_string(), chars, kLeft, kRight)));
}

// The part of the text between two optional positions.
struct Window {
  std::string_view text;
  size_t first_char = 0;
  bool valid = true;  // false: the start is past the end
};

Window window(const Value& self, const Bound& args, size_t start_idx) {
  const auto length = static_cast<int64_t>(self.text()->num_chars);
  const auto position = [&](size_t idx, int64_t otherwise) {
    int64_t at = args.has(idx) ? args.integer(idx) : otherwise;
    if (at < 0) at = std::max<int64_t>(at + length, 0);
    return at;
  };
  const int64_t start = position(start_idx, 0);
  const int64_t end = std::min(position(start_idx + 1, length), length);
  if (start > end) return {{}, 0, false};
  const std::string_view text = self.as_string();
  const size_t first = byte_of_char(text, static_cast<size_t>(start));
  const size_t last = byte_of_char(text, static_cast<size_t>(end));
  return {text.substr(first, last - first), static_cast<size_t>(start), true};
}

int64_t find_in(const Value& self, const Bound& args, bool backwards) {
  const Window w = window(self, args, 1);
  if (!w.valid) return -1;
  const size_t at = backwards ? rfind_text(w.text, args.text(0)) : find_text(w.text, args.text(0));
  if (at == kAbsent) return -1;
  return static_cast<int64_t>(w.first_char + count_chars(w.text.substr(0, at)));
}

template <bool kBackwards, bool kMustExist>
Value finds(Run, const Value& self, const Bound& args) {
  const int64_t at = find_in(self, args, kBackwards);
  if (kMustExist && at < 0) fail("substring not found");
  return Value::integer(at);
}

Value count(Run, const Value& self, const Bound& args) {
  const Window w = window(self, args, 1);
  const std::string& part = args.text(0);
  if (!w.valid) return Value::integer(0);
  if (part.empty()) return Value::integer(static_cast<int64_t>(count_chars(w.text)) + 1);
  int64_t found = 0;
  for (size_t at = find_text(w.text, part); at != kAbsent;
       at = find_text(w.text, part, at + part.size())) {
    ++found;
  }
  return Value::integer(found);
}

template <bool kAtStart>
Value affixed(Run run, const Value& self, const Bound& args) {
  const Window w = window(self, args, 1);
  const auto has = [&](const Value& affix) {
    if (!affix.is_string()) {
      if (affix.is_undefined()) fail("startswith or endswith needs a str, not Undefined");
      fail(fmt::format("startswith or endswith needs a str or a tuple of str, not {}",
                       affix.type_name()));
    }
    run.budget.step();
    run.budget.read(std::min(w.text.size(), affix.as_string().size()));
    return w.valid &&
           (kAtStart ? w.text.starts_with(affix.as_string()) : w.text.ends_with(affix.as_string()));
  };
  if (!args.value(0).is_tuple()) return Value::boolean(has(args.value(0)));
  const std::vector<Value>& affixes = args.value(0).items();
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), has));
}

template <bool kAtStart>
Value removes_affix(Run run, const Value& self, const Bound& args) {
  std::string_view text = self.as_string();
  const std::string& affix = args.text(0);
  if (kAtStart ? !text.starts_with(affix) : !text.ends_with(affix)) return self;
  if (kAtStart) {
    text.remove_prefix(affix.size());
  } else {
    text.remove_suffix(affix.size());
  }
  return same_kind(run, self, std::string(text));
}

Value replace(Run run, const Value& self, const Bound& args) {
  const std::string_view text = self.as_string();
  const std::string& old = args.text(0);
  const std::string& with = args.text(1);
  int64_t left = args[2] == nullptr ? -1 : args.integer(2);
  if (left < 0) left = INT64_MAX;
  TextBuilder out(run.budget);
  size_t done = 0;
  if (old.empty()) {  // inserts before every character and at the end
    while (left-- > 0) {
      out.append(with);
      if (done == text.size()) return same_kind(run, self, out.take());
      const auto size = static_cast<size_t>(decode_utf8(text.substr(done)).num_bytes);
      out.append(text.substr(done, size));
      done += size;
    }
  } else {
    for (size_t at = find_text(text, old); at != kAbsent && left-- > 0;
         at = find_text(text, old, done)) {
      out.append(text.substr(done, at - done));
      out.append(with);
      done = at + old.size();
    }
  }
  out.append(text.substr(done));
  return same_kind(run, self, out.take());
}

// ---- splitting

// Collects the parts of a split text. Each is made and charged separately.
class Parts {
 public:
  Parts(Run run, const Value& self) : run_(run), self_(self) {}
  void add(std::string_view part) { items_.push_back(same_kind(run_, self_, std::string(part))); }
  Value take(bool backwards) {
    if (backwards) std::reverse(items_.begin(), items_.end());
    return run_.make_list(std::move(items_));
  }

 private:
  Run run_;
  const Value& self_;
  std::vector<Value> items_;
};

std::string_view prefix_to_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(end));
    if (is_space(c.code_point)) break;
    end += static_cast<size_t>(c.num_bytes);
  }
  return text.substr(0, end);
}

std::string_view suffix_from_space(std::string_view text) {
  size_t start = text.size();
  while (start > 0) {
    size_t previous = start - 1;
    while (previous > 0 && (text[previous] & 0xc0) == 0x80) --previous;
    if (is_space(decode_utf8(text.substr(previous)).code_point)) break;
    start = previous;
  }
  return text.substr(start);
}

void split_spaces(std::string_view text, int64_t limit, bool backwards, Parts& parts) {
  text = strip(text, std::nullopt, !backwards, backwards);
  while (!text.empty()) {
    const std::string_view part = limit-- <= 0 ? text
                                  : backwards  ? suffix_from_space(text)
                                               : prefix_to_space(text);
    if (part.size() == text.size()) {  // the last part is stripped on its far side only
      return parts.add(limit < 0 ? text
                                 : strip(text, std::nullopt, backwards, !backwards && limit >= 0));
    }
    parts.add(part);
    backwards ? text.remove_suffix(part.size()) : text.remove_prefix(part.size());
    text = strip(text, std::nullopt, !backwards, backwards);
  }
}

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

template <bool kBackwards>
Value splits(Run run, const Value& self, const Bound& args) {
  const std::string_view text = self.as_string();
  int64_t limit = args[1] == nullptr ? -1 : args.integer(1);
  if (limit < 0) limit = INT64_MAX;
  run.budget.want(text.size() * 2);
  Parts parts(run, self);
  if (!args.has(0)) {
    split_spaces(text, limit, kBackwards, parts);
    return parts.take(kBackwards);
  }
  const std::string& separator = args.text(0);
  if (separator.empty()) fail("empty separator");
  const auto add = [&](std::string_view part) { parts.add(part); };
  if (kBackwards) {
    split_at_backwards(text, separator, limit, add);
  } else {
    split_at(text, separator, limit, add);
  }
  return parts.take(kBackwards);
}

template <bool kBackwards>
Value partitions(Run run, const Value& self, const Bound& args) {
  const std::string_view text = self.as_string();
  const std::string& separator = args.text(0);
  if (separator.empty()) fail("empty separator");
  const size_t at = kBackwards ? rfind_text(text, separator) : find_text(text, separator);
  const auto part = [&](std::string_view p) { return same_kind(run, self, std::string(p)); };
  if (at == kAbsent) {
    return kBackwards ? run.make_tuple({part(""), part(""), self})
                      : run.make_tuple({self, part(""), part("")});
  }
  return run.make_tuple(
      {part(text.substr(0, at)), part(separator), part(text.substr(at + separator.size()))});
}

Value splitlines(Run run, const Value& self, const Bound& args) {
  Parts parts(run, self);
  for (std::string_view rest = self.as_string(); !rest.empty();) {
    parts.add(take_line(rest, args.flag(0)));
  }
  return parts.take(false);
}

Value join(Run run, const Value& self, const Bound& args) {
  TextBuilder out(run.budget);
  const std::vector<Value> items = to_items(run, args.value(0));
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      fail(fmt::format("sequence item {}: expected str instance, {} found", i,
                       items[i].type_name()));
    }
    if (i > 0) out.append(self.as_string());
    out.append(items[i].as_string());
  }
  return same_kind(run, self, out.take());
}

// ---- padding

enum class Side { kLeft, kRight, kBoth };

template <Side kSide>
Value pads(Run run, const Value& self, const Bound& args) {
  const auto length = static_cast<int64_t>(self.text()->num_chars);
  const int64_t width = args.integer(0);
  const std::string fill = args[1] == nullptr ? " " : args.text(1);
  if (count_chars(fill) != 1) fail("The fill character must be exactly one character long");
  if (width <= length) return self;
  const int64_t missing = width - length;
  // An odd space goes to the same side as in CPython.
  const int64_t left = kSide == Side::kLeft    ? missing
                       : kSide == Side::kRight ? 0
                                               : missing / 2 + (missing & width & 1);
  TextBuilder out(run.budget);
  out.append_times(static_cast<size_t>(left), fill);
  out.append(self.as_string());
  out.append_times(static_cast<size_t>(missing - left), fill);
  return same_kind(run, self, out.take());
}

Value zfill(Run run, const Value& self, const Bound& args) {
  std::string_view text = self.as_string();
  const int64_t missing = args.integer(0) - static_cast<int64_t>(self.text()->num_chars);
  if (missing <= 0) return self;
  TextBuilder out(run.budget);
  if (text.starts_with('-') || text.starts_with('+')) {
    out.append(text.substr(0, 1));
    text.remove_prefix(1);
  }
  out.append_times(static_cast<size_t>(missing), "0");
  out.append(text);
  return same_kind(run, self, out.take());
}

Value format(Run run, const Value& self, const Bound& args) {
  return same_kind(run, self, format_braces(run, self.as_string(), *args.raw));
}

template <const char* kQuestion>
Value asks(Run run, const Value& self, const Bound&) {
  return Value::boolean(classify_text(run.budget, kQuestion, self.as_string()));
}

constexpr char kIsAlnum[] = "isalnum", kIsAlpha[] = "isalpha", kIsAscii[] = "isascii",
               kIsDecimal[] = "isdecimal", kIsDigit[] = "isdigit", kIsIdentifier[] = "isidentifier",
               kIsLower[] = "islower", kIsNumeric[] = "isnumeric", kIsPrintable[] = "isprintable",
               kIsSpace[] = "isspace", kIsTitle[] = "istitle", kIsUpper[] = "isupper";

constexpr Builtin kMethods[] = {
    {"capitalize", "", mapped<capitalize>},
    {"casefold", "", mapped<lower>},
    {"center", "width | fillchar", pads<Side::kBoth>},
    {"count", "sub | start end", count},
    {"endswith", "suffix | start end", affixed<false>},
    {"find", "sub | start end", finds<false, false>},
    {"format", "*", format},
    {"index", "sub | start end", finds<false, true>},
    {kIsAlnum, "", asks<kIsAlnum>},
    {kIsAlpha, "", asks<kIsAlpha>},
    {kIsAscii, "", asks<kIsAscii>},
    {kIsDecimal, "", asks<kIsDecimal>},
    {kIsDigit, "", asks<kIsDigit>},
    {kIsIdentifier, "", asks<kIsIdentifier>},
    {kIsLower, "", asks<kIsLower>},
    {kIsNumeric, "", asks<kIsNumeric>},
    {kIsPrintable, "", asks<kIsPrintable>},
    {kIsSpace, "", asks<kIsSpace>},
    {kIsTitle, "", asks<kIsTitle>},
    {kIsUpper, "", asks<kIsUpper>},
    {"join", "iterable", join},
    {"ljust", "width | fillchar", pads<Side::kRight>},
    {"lower", "", mapped<lower>},
    {"lstrip", "| chars", strips<true, false>},
    {"partition", "sep", partitions<false>},
    {"removeprefix", "prefix", removes_affix<true>},
    {"removesuffix", "suffix", removes_affix<false>},
    {"replace", "old new | count", replace},
    {"rfind", "sub | start end", finds<true, false>},
    {"rindex", "sub | start end", finds<true, true>},
    {"rjust", "width | fillchar", pads<Side::kLeft>},
    {"rpartition", "sep", partitions<true>},
    {"rsplit", "| sep maxsplit", splits<true>},
    {"rstrip", "| chars", strips<false, true>},
    {"split", "| sep maxsplit", splits<false>},
    {"splitlines", "| keepends", splitlines},
    {"startswith", "prefix | start end", affixed<true>},
    {"strip", "| chars", strips<true, true>},
    {"swapcase", "", mapped<swapcase>},
    {"title", "", mapped<title>},
    {"upper", "", mapped<upper>},
    {"zfill", "width", zfill},
};

}  // namespace

std::span<const Builtin> string_methods() {
  return kMethods;
}

}  // namespace quire::jinja
