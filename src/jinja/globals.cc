// The global functions of templates.
#include <fmt/format.h>
#include <time.h>

#include <chrono>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

Value range(Run run, const Value&, const Bound& args) {
  const bool one = args[1] == nullptr;
  return run.make_object(std::make_shared<Range>(
      one ? 0 : args.integer(0), one ? args.integer(0) : args.integer(1), args.integer(2, 1)));
}

// Python's dict(): entries from a mapping or pairs, then from the keyword arguments.
std::vector<Dict::Entry> dict_entries(Run run, const Args& args) {
  std::vector<Dict::Entry> entries;
  if (args.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is_dict()) {
      run.budget.visit(from.dict()->entries().size());
      run.budget.want(from.dict()->entries().size() * sizeof(Dict::Entry));
      entries = from.dict()->entries();
    } else {
      for (const Value& pair : to_items(run, from)) {
        const std::vector<Value> parts = to_items(run, pair);
        if (parts.size() != 2) fail("a dict is made of pairs of a key and a value");
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : args.keyword) entries.emplace_back(run.make_string(name), value);
  return entries;
}

Value dict(Run run, const Value&, const Bound& args) {
  return run.make_dict(dict_entries(run, *args.raw));
}

Value make_namespace(Run run, const Value&, const Bound& args) {
  auto space = std::make_shared<Namespace>();
  Value made = run.make_mutable(space);
  for (const auto& [key, value] : dict_entries(run, *args.raw)) {
    if (!key.is_string()) fail("a namespace's attributes have names");
    space->set(key.as_string(), value, run.budget);
  }
  return made;
}

Value cycler(Run run, const Value&, const Bound& args) {
  const size_t num_items = args.raw->positional.size();
  run.budget.visit(num_items);
  return run.make_object(std::make_shared<Cycler>(args.raw->positional), num_items * sizeof(Value));
}

Value joiner(Run run, const Value&, const Bound& args) {
  return run.make_object(
      std::make_shared<Joiner>(args[0] == nullptr ? run.make_string(", ") : args.value(0)));
}

Value raise_exception(Run run, const Value&, const Bound& args) {
  fail(to_str(args.value(0), run.budget));
}

std::tm broken_down(const TemplateLimits& limits) {
  std::tm time{};
  if (limits.now_unix_s) {
    const time_t seconds = *limits.now_unix_s;
    gmtime_r(&seconds, &time);
  } else {
    const time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    localtime_r(&seconds, &time);
  }
  return time;
}

// Formats each directive separately, because a format can ask libc for a width of gigabytes.
Value strftime_now(Run run, const Value&, const Bound& args) {
  constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyY%";
  const std::tm time = broken_down(run.limits);
  const std::string& format = args.text(0);
  TextBuilder out(run.budget);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.append(std::string_view(format).substr(i, 1));
      continue;
    }
    run.budget.step();
    std::string directive = "%";
    if (std::string_view("-_0^#").find(format[i + 1]) != std::string_view::npos) {
      directive += format[++i];
    }
    const char letter = ++i < format.size() ? format[i] : '\0';
    if (letter == 'f') {
      out.append("000000");
    } else if (letter != '\0' && kDirectives.find(letter) != std::string_view::npos) {
      directive += letter;
      char text[128];
      out.append(std::string_view(text, strftime(text, sizeof(text), directive.c_str(), &time)));
    } else if (letter != 'z' && letter != 'Z') {  // %z and %Z are empty: the time has no zone
      fail(fmt::format("strftime_now does not know the directive '{}{}'", directive,
                       letter == '\0' ? ' ' : letter));
    }
  }
  return run.make_string(out.take());
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

}  // namespace

std::span<const Builtin> globals() {
  return kGlobals;
}

}  // namespace quire::jinja
