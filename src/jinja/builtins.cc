// Binds arguments to parameters, and finds builtins by name; then the tests, the global functions
// and the methods of dicts and lists.
#include "jinja/builtins.h"

#include <fmt/format.h>
#include <time.h>

#include <unordered_map>

#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

int64_t BoundArgs::integer(size_t idx, int64_t otherwise) const {
  if ((*this)[idx] == nullptr) return otherwise;
  if (value(idx).is_undefined()) fail(value(idx).undefined_reason());
  if (!value(idx).is_integral()) {
    fail(fmt::format("'{}' object cannot be interpreted as an integer", value(idx).type_name()));
  }
  return value(idx).as_int();
}

const MarkedText& BoundArgs::marked(size_t idx) const {
  if (!value(idx).is_string()) {
    fail(fmt::format("an argument must be str, not {}", value(idx).type_name()));
  }
  budget.read(value(idx).as_string().size());
  return *value(idx).text();
}

Value call_builtin(Interpreter& interpreter, const Builtin& builtin, const Value& self,
                   const Args& args) {
  BoundArgs bound(interpreter.budget, args);
  const Signature& params = builtin.params;
  if (params.variadic) return builtin.run(interpreter, self, bound);
  if (args.positional.size() > params.count) {
    fail(fmt::format("{}() takes at most {} argument(s) ({} given)", builtin.name, params.count,
                     args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) bound.values[i] = &args.positional[i];
  for (const auto& [name, value] : args.keyword) {
    size_t idx = 0;
    while (idx < params.count && params.names[idx] != name) ++idx;
    if (idx == params.count) {
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", builtin.name, name));
    }
    if (bound.values[idx] != nullptr) {
      fail(fmt::format("{}() got multiple values for argument '{}'", builtin.name, name));
    }
    bound.values[idx] = &value;
  }
  for (size_t i = 0; i < params.num_required; ++i) {
    if (bound.values[i] == nullptr) {
      fail(fmt::format("{}() missing the argument '{}'", builtin.name, params.names[i]));
    }
  }
  return builtin.run(interpreter, self, bound);
}

// ---- tests

namespace {

template <bool (Value::*kIs)() const>
Value is(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean((self.*kIs)());
}

Value defined(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean(!self.is_undefined());
}
template <bool kFlag>
Value is_flag(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean(self.is_bool() && self.as_bool() == kFlag);
}

Value remainder_is(Interpreter& interpreter, const Value& self, const Value& divisor,
                   int64_t wanted) {
  const Value rest = apply_binary(interpreter, BinaryOp::kMod, self, divisor);
  return Value::boolean(equal(rest, Value::integer(wanted), &interpreter.budget));
}
template <int64_t kRemainder>
Value parity(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return remainder_is(interpreter, self, Value::integer(2), kRemainder);
}
Value divisibleby(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  return remainder_is(interpreter, self, args.value(0), 0);
}

template <CompareOp kOp>
Value compares(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  return Value::boolean(compare(interpreter, kOp, self, args.value(0)));
}

Value sameas(Interpreter&, const Value& self, const BoundArgs& args) {
  return Value::boolean(self.is_same(args.value(0)));
}
Value iterable(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean(is_iterable(self));
}
Value sequence(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean(self.is_undefined() || self.is_string() || self.is_sequence() ||
                        self.is_dict() || self.object_as<Range>() != nullptr);
}
Value callable(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean((self.is_object() && self.object()->callable()) || self.is_undefined());
}
Value escaped(Interpreter&, const Value& self, const BoundArgs&) {
  return Value::boolean(self.is_string() && self.text()->markup);
}
template <bool (*kIsCase)(std::string_view)>
Value has_case(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  const std::string text = to_str(self, interpreter.budget).text;
  interpreter.budget.read(text.size() * 2);
  return Value::boolean(kIsCase(text));
}
template <const Builtin* (*kFind)(std::string_view)>
Value exists(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  if (!self.is_string()) return Value::boolean(false);
  interpreter.budget.read(self.as_string().size());
  return Value::boolean(kFind(self.as_string()) != nullptr);
}

constexpr Builtin kTests[] = {
    {"boolean", "", is<&Value::is_bool>},
    {"callable", "", callable},
    {"defined", "", defined},
    {"divisibleby", "num", divisibleby},
    {"escaped", "", escaped},
    {"even", "", parity<0>},
    {"false", "", is_flag<false>},
    {"filter", "", exists<find_filter>},
    {"float", "", is<&Value::is_float>},
    {"in", "seq", compares<CompareOp::kIn>},
    {"integer", "", is<&Value::is_int>},
    {"iterable", "", iterable},
    {"lower", "", has_case<is_lower_case>},
    {"mapping", "", is<&Value::is_dict>},
    {"none", "", is<&Value::is_none>},
    {"number", "", is<&Value::is_number>},
    {"odd", "", parity<1>},
    {"sameas", "other", sameas},
    {"sequence", "", sequence},
    {"string", "", is<&Value::is_string>},
    {"test", "", exists<find_test>},
    {"true", "", is_flag<true>},
    {"undefined", "", is<&Value::is_undefined>},
    {"upper", "", has_case<is_upper_case>},
    {"==", "other", compares<CompareOp::kEq>},
    {"eq", "other", compares<CompareOp::kEq>},
    {"equalto", "other", compares<CompareOp::kEq>},
    {"!=", "other", compares<CompareOp::kNe>},
    {"ne", "other", compares<CompareOp::kNe>},
    {">", "other", compares<CompareOp::kGt>},
    {"gt", "other", compares<CompareOp::kGt>},
    {"greaterthan", "other", compares<CompareOp::kGt>},
    {">=", "other", compares<CompareOp::kGe>},
    {"ge", "other", compares<CompareOp::kGe>},
    {"<", "other", compares<CompareOp::kLt>},
    {"lt", "other", compares<CompareOp::kLt>},
    {"lessthan", "other", compares<CompareOp::kLt>},
    {"<=", "other", compares<CompareOp::kLe>},
    {"le", "other", compares<CompareOp::kLe>},
};

// ---- global functions

Value range(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  const bool one = args[1] == nullptr;
  return interpreter.make_object(std::make_shared<Range>(
      one ? 0 : args.integer(0), one ? args.integer(0) : args.integer(1), args.integer(2, 1)));
}

// Python's dict(): entries from a mapping or pairs, then from the keyword arguments.
std::vector<Dict::Entry> dict_entries(Interpreter& interpreter, const Args& args) {
  std::vector<Dict::Entry> entries;
  if (args.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is_dict()) {
      interpreter.budget.visit(from.dict()->entries().size());
      interpreter.budget.require_free(from.dict()->entries().size() * sizeof(Dict::Entry));
      entries = from.dict()->entries();
    } else {
      for (const Value& pair : to_items(interpreter, from)) {
        const std::vector<Value> parts = to_items(interpreter, pair);
        if (parts.size() != 2) fail("a dict is made of pairs of a key and a value");
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : args.keyword) {
    entries.emplace_back(interpreter.make_keyword(name), value);
  }
  return entries;
}

Value dict(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  return interpreter.make_dict(dict_entries(interpreter, *args.raw));
}

Value make_namespace(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  auto space = std::make_shared<Namespace>();
  Value made = interpreter.make_mutable(space);
  for (const auto& [key, value] : dict_entries(interpreter, *args.raw)) {
    if (!key.is_string()) fail("a namespace's attributes have names");
    space->set(key.as_string(), value, interpreter.budget);
  }
  return made;
}

struct Cycler : Object, std::enable_shared_from_this<Cycler> {
  explicit Cycler(std::vector<Value> the_items) : items(std::move(the_items)) {
    if (items.empty()) fail("at least one item has to be provided");
    for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
  }
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;

  std::vector<Value> items;
  size_t position = 0;
};

void expect_no_args(const Args& args) {
  if (!args.positional.empty() || !args.keyword.empty()) fail("the call takes no arguments");
}

std::optional<Value> Cycler::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "current") return items[position];
  if (name != "next" && name != "reset") return std::nullopt;
  return interpreter.make_function(depth + 1, [self = shared_from_this(), resets = name == "reset"](
                                                  Interpreter&, const Args& args) {
    expect_no_args(args);
    const size_t now = self->position;
    self->position = resets ? 0 : (now + 1) % self->items.size();
    return resets ? Value() : self->items[now];
  });
}

Value cycler(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  const size_t num_items = args.raw->positional.size();
  interpreter.budget.visit(num_items);
  return interpreter.make_object(std::make_shared<Cycler>(args.raw->positional),
                                 num_items * sizeof(Value));
}

Value joiner(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  const Value separator = args[0] == nullptr ? interpreter.make_literal(", ") : args.value(0);
  return interpreter.make_function(
      separator.depth() + 1, [separator, used = false](Interpreter&, const Args& given) mutable {
        expect_no_args(given);
        return std::exchange(used, true) ? separator : Value::literal("");
      });
}

Value raise_exception(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  fail(to_str(args.value(0), interpreter.budget).text);
}

// Formats each directive separately, because a whole format could make libc write gigabytes of
// padding.
Value strftime_now(Interpreter& interpreter, const Value&, const BoundArgs& args) {
  constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyY%";
  const time_t seconds = interpreter.limits.now_unix_s.value_or(::time(nullptr));
  ::tm time{};
  interpreter.limits.now_unix_s ? gmtime_r(&seconds, &time) : localtime_r(&seconds, &time);
  const MarkedText& source = args.marked(0);
  const std::string_view format = source.text;
  TextBuilder out(interpreter.budget);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.append(source, format.substr(i, 1));
      continue;
    }
    interpreter.budget.step();
    const size_t begin = i;
    std::string directive = "%";
    if (std::string_view("-_0^#").find(format[i + 1]) != std::string_view::npos) {
      directive += format[++i];
    }
    const char letter = ++i < format.size() ? format[i] : '\0';
    if (letter == 'f') {
      out.append_replacement(source, format.substr(begin, i + 1 - begin), "000000");
    } else if (letter != '\0' && kDirectives.find(letter) != std::string_view::npos) {
      directive += letter;
      char text[128];
      const size_t size = strftime(text, sizeof(text), directive.c_str(), &time);
      out.append_replacement(source, format.substr(begin, i + 1 - begin), {text, size});
    } else if (letter != 'z' && letter != 'Z') {  // %z and %Z are empty: the time has no zone
      fail(fmt::format("strftime_now does not support the directive '{}{}'", directive,
                       letter == '\0' ? ' ' : letter));
    }
  }
  return interpreter.make_string(out.take());
}

constexpr Builtin kGlobals[] = {
    {"cycler", "*", cycler},
    {"dict", "*", dict},
    {"joiner", "| sep", joiner},
    {"namespace", "*", make_namespace},
    {"raise_exception", "message", raise_exception},
    {"range", "start | stop step", range},
    {"strftime_now", "format", strftime_now},
};

// ---- methods of dicts and lists

template <DictView::Part kPart>
Value view(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return interpreter.make_object(std::make_shared<DictView>(self.dict(), kPart));
}

Value get(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (const Value* value = self.dict()->find(args.value(0), &interpreter.budget)) return *value;
  return args[1] == nullptr ? Value() : args.value(1);
}

// Values are immutable, so a copy is the value itself.
Value copy(Interpreter&, const Value& self, const BoundArgs&) {
  return self;
}

Value count_items(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  int64_t found = 0;
  for (const Value& item : self.items()) found += equal(item, args.value(0), &interpreter.budget);
  return Value::integer(found);
}

Value index(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  for (size_t i = 0; i < self.items().size(); ++i) {
    if (equal(self.items()[i], args.value(0), &interpreter.budget)) {
      return Value::integer(static_cast<int64_t>(i));
    }
  }
  fail(
      fmt::format("{} is not in list", shortened(to_repr(args.value(0), interpreter.budget).text)));
}

constexpr Builtin kDictMethods[] = {
    {"copy", "", copy},
    {"get", "key | default", get},
    {"items", "", view<DictView::Part::kItems>},
    {"keys", "", view<DictView::Part::kKeys>},
    {"values", "", view<DictView::Part::kValues>},
};
constexpr Builtin kListMethods[] = {
    {"copy", "", copy},
    {"count", "value", count_items},
    {"index", "value", index},
};

}  // namespace

std::span<const Builtin> tests() {
  return kTests;
}
std::span<const Builtin> globals() {
  return kGlobals;
}
std::span<const Builtin> dict_methods() {
  return kDictMethods;
}
std::span<const Builtin> list_methods() {
  return kListMethods;
}

// ---- finding builtins

namespace {

class BuiltinTable {
 public:
  BuiltinTable(std::initializer_list<std::span<const Builtin>> parts) {
    for (const std::span<const Builtin> part : parts) {
      for (const Builtin& builtin : part) builtins_.emplace(builtin.name, &builtin);
    }
  }
  const Builtin* find(std::string_view name) const {
    const auto at = builtins_.find(name);
    return at == builtins_.end() ? nullptr : at->second;
  }

 private:
  std::unordered_map<std::string_view, const Builtin*> builtins_;
};

// Fails for a method of Python's str that Quire's templates do not support.
void refuse_string_method(std::string_view name) {
  constexpr std::string_view kRefused =
      " casefold center encode expandtabs format_map isalnum isalpha isascii isdecimal isdigit "
      "isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans "
      "partition rindex rjust rpartition swapcase translate zfill ";
  constexpr size_t kLongest = 12;
  if (name.size() > kLongest) return;
  if (kRefused.find(fmt::format(" {} ", name)) == std::string_view::npos) return;
  std::string supported;
  for (const Builtin& method : string_methods()) supported += fmt::format(" {}", method.name);
  fail(fmt::format("the method str.{} is not supported in chat templates; expected one of{}", name,
                   supported));
}

}  // namespace

const Builtin* find_filter(std::string_view name) {
  static const BuiltinTable table = {text_filters(), sequence_filters()};
  return table.find(name);
}
const Builtin* find_test(std::string_view name) {
  static const BuiltinTable table = {tests()};
  return table.find(name);
}
const Builtin* find_global(std::string_view name) {
  static const BuiltinTable table = {globals()};
  return table.find(name);
}
const Builtin* find_method(const Value& self, std::string_view name) {
  static const BuiltinTable of_strings = {string_methods()};
  static const BuiltinTable of_dicts = {dict_methods()};
  static const BuiltinTable of_lists = {list_methods()};
  if (self.is_string()) {
    const Builtin* method = of_strings.find(name);
    if (method == nullptr) refuse_string_method(name);
    return method;
  }
  if (self.is_dict()) return of_dicts.find(name);
  return self.is_sequence() ? of_lists.find(name) : nullptr;
}

}  // namespace quire::jinja
