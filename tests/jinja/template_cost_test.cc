// The CPU time of a render is bounded by the steps that it is charged, for any template.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "jinja/builtins.h"
#include "jinja/chat_template.h"
#include "support/value_of.h"

namespace quire {
namespace {

using jinja::Value;

struct Cost {
  int64_t cpu_ns = 0;
  int64_t num_steps = 0;
  std::string error;
};

Cost measure(const ChatTemplate& parsed, const Value& variables, const TemplateLimits& limits) {
  Cost cost;
  const int64_t start = thread_cpu_ns();
  const Result<MarkedText> text = parsed.render(variables, limits, &cost.num_steps);
  cost.cpu_ns = thread_cpu_ns() - start;
  if (!text.ok()) cost.error = text.status().message();
  return cost;
}

// Returns the time of one step of a plain loop on this machine and in this build (about 0.016 us in
// a release build).
double plain_step_ns() {
  static const double measured = [] {
    const ChatTemplate loop =
        ChatTemplate::parse("{% for i in range(50000) %}{{ i }}{% endfor %}").value();
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const Cost cost = measure(loop, Value::dict({}), {});
      best = std::min(best, static_cast<double>(cost.cpu_ns) / static_cast<double>(cost.num_steps));
    }
    return best;
  }();
  return measured;
}

// The slowest legitimate steps (64 bytes of the filter `title`) take as long as about 100 plain
// steps.
constexpr double kMaxPlainSteps = 200;
constexpr double kFreeNs = 2e6;

double excess(const Cost& cost) {
  return static_cast<double>(cost.cpu_ns) /
         (kFreeNs + kMaxPlainSteps * plain_step_ns() * static_cast<double>(cost.num_steps));
}

// Uses the best of a few runs, because other work on the machine slows the caches.
void expect_charged(std::string_view source, const Value& variables, const TemplateLimits& limits) {
  const auto parsed = testing::value_of(ChatTemplate::parse(source));
  Cost cost = measure(parsed, variables, limits);
  for (int i = 0; i < 2 && excess(cost) > 1; ++i) cost = measure(parsed, variables, limits);
  EXPECT_LE(excess(cost), 1) << source << "\n"
                             << cost.cpu_ns / 1000 << " us for " << cost.num_steps << " steps "
                             << cost.error;
  if (std::getenv("QUIRE_PRINT_COSTS") != nullptr) {
    fmt::print("{:.4f} {} us {} steps {}\n", excess(cost), cost.cpu_ns / 1000, cost.num_steps,
               source);
  }
}

TEST(TemplateCost, AttacksOnUnchargedWork) {
  const std::string_view sources[] = {
      "{{ ('a' * 300000).strip('b' * 300000 ~ 'a')|length }}",
      "{{ ('a' * 300000)|trim('b' * 300000 ~ 'a') }}",
      "{% set s = 'a' * 1000000 %}{% set t = (s ~ 'b',) * 100000 %}"
      "{% for i in range(8) %}{{ s.startswith(t) }}{{ (s ~ s).startswith(t) }}{% endfor %}",
      "{% set s = 'a' * 1000000 %}{% set t = ('b' ~ s,) * 100000 %}"
      "{% for i in range(8) %}{{ ('c' ~ s).endswith(t) }}{% endfor %}",
      "{% set d = {(1,) * 1000000: 1} %}{% for i in range(1000) %}{{ () in d }}{% endfor %}",
      "{% set s = 'a' * 4000000 %}{% for i in range(1000) %}{{ s.replace('a', '') }}{% endfor %}",
      "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{{ s.removeprefix(s) }}{% endfor %}",
      "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{{ 'abc'[s] }}{% endfor %}",
      "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{{ s is filter }}{% endfor %}",
      "{% set s = ' ' ~ 'a' * 4000000 %}"
      "{% for i in range(9999) %}{{ s|truncate(3000000) }}{% endfor %}",
      "{% set s = '%%' * 500000 %}{% for i in range(99) %}{{ strftime_now(s) }}{% endfor %}",
  };
  for (const std::string_view source : sources) expect_charged(source, Value::dict({}), {});
}

// Names in the template's source are read as well, and compared with keys that have the same
// beginning.
TEST(TemplateCost, LongNames) {
  const std::string name(200'000, 'a');
  for (const std::string_view use : {"{{ X }}", "{{ d.X }}", "{{ dict(X=1) }}", "{{ ns.X }}"}) {
    std::string body;
    for (const char c : use) body += c == 'X' ? name : std::string(1, c);
    expect_charged(
        "{% set key = '" + name + "' %}{% set d = {key ~ 0: 1, key ~ 1: 1, key ~ 2: 1} %}" +
            "{% set ns = namespace(**d) %}{% for i in range(9999) %}" + body + "{% endfor %}",
        Value::dict({}), {});
  }
}

// Every value that a template keeps is charged, whichever builtin makes it.
TEST(TemplateCost, MemoryIsCharged) {
  const std::string keep =
      "{% set ns = namespace(all=[], s='a' * 1000000) %}{% for i in range(200) %}"
      "{% set ns.all = ns.all + [KEPT] %}{% endfor %}";
  for (const std::string_view kept : {
           "{}|attr(ns.s)",
           "cycler(*([0] * 100000))",
           "namespace(**{ns.s ~ i: 1})",
           "loop.changed",
       }) {
    std::string source = keep;
    source.replace(source.find("KEPT"), 4, kept);
    const auto parsed = testing::value_of(ChatTemplate::parse(source));
    TemplateLimits limits;
    limits.max_steps = 100'000'000;
    limits.max_live_bytes = size_t{8} << 20;
    const Cost cost = measure(parsed, Value::dict({}), limits);
    if (kept == "loop.changed" || kept == "{}|attr(ns.s)") {
      EXPECT_EQ(cost.error, "") << source;  // these two keep little
    } else {
      EXPECT_THAT(cost.error, ::testing::HasSubstr("values take too much memory")) << source;
    }
  }
}

// ---- every builtin and operator, on large values

std::string repeated(std::string_view part, size_t num_bytes) {
  std::string all;
  while (all.size() < num_bytes) all += part;
  return all;
}

Value numbers(size_t count, bool tuple) {
  std::vector<Value> items(count);
  for (size_t i = 0; i < count; ++i) items[i] = Value::integer(static_cast<int64_t>(i));
  return tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

// Variables that give a template large values without steps to make them.
Value large_values() {
  const Value text = Value::string(std::string(1'000'000, 'a'));
  std::vector<Value> texts;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(Value::string(std::string(20'000, 'a') + std::to_string(i)));
  }
  std::vector<std::pair<std::string, Value>> entries;
  for (const Value& key : texts) entries.emplace_back(key.as_string(), key);
  for (int i = 0; i < 5000; ++i) entries.emplace_back(std::to_string(i), Value::integer(i));
  std::vector<Value> rows;
  for (int i = 0; i < 2000; ++i) {
    rows.push_back(Value::dict({{"a", Value::string(repeated("Ab", 40) + std::to_string(i % 7))}}));
  }
  return Value::dict({
      {"text", text},
      {"short_text", Value::string(std::string(60'000, 'a'))},
      {"wide_text", Value::string(repeated("é€😀", 60'000))},
      {"words", Value::string(repeated("a B\n", 60'000))},
      {"marks", Value::string(repeated("<&%{", 60'000))},
      {"numbers", numbers(20'000, false)},
      {"texts", Value::list(texts)},
      {"affixes", Value::tuple(std::vector<Value>(20'000, text))},
      {"tuple", numbers(20'000, true)},
      {"dict", Value::dict(entries)},
      {"rows", Value::list(std::move(rows))},
      {"one", Value::integer(1)},
      {"big", Value::integer(100'000)},
      {"a", Value::string("a")},
  });
}

std::vector<std::string> names_of(const Value& variables) {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables.dict()->entries()) names.push_back(name.as_string());
  return names;
}

// Runs an expression until a small budget is spent, so that uncharged work adds up.
void expect_expression_charged(const std::string& expression, const Value& variables) {
  TemplateLimits limits;
  limits.max_steps = 3'000;
  expect_charged("{% for i in range(100) %}{% set x = " + expression + " %}{% endfor %}", variables,
                 limits);
}

// "f", "f(y)" and "f(y, y)" for every y.
std::vector<std::string> calls_of(std::string_view name, const std::vector<std::string>& values) {
  std::vector<std::string> calls = {fmt::format("{}()", name)};
  for (const std::string& value : values) {
    calls.push_back(fmt::format("{}({})", name, value));
    calls.push_back(fmt::format("{}({}, {})", name, value, value));
  }
  return calls;
}

TEST(TemplateCost, EveryFilter) {
  const Value variables = large_values();
  const std::vector<std::string> values = names_of(variables);
  for (const auto filters : {jinja::text_filters(), jinja::sequence_filters()}) {
    for (const jinja::Builtin& filter : filters) {
      for (const std::string& self : values) {
        std::vector<std::string> calls = calls_of(filter.name, values);
        calls.push_back(fmt::format("{}(attribute='a')", filter.name));
        calls.push_back(fmt::format("{}('a')", filter.name));
        for (const std::string& call : calls) {
          expect_expression_charged(fmt::format("{}|{}", self, call), variables);
        }
      }
    }
  }
}

TEST(TemplateCost, EveryMethod) {
  const Value variables = large_values();
  const std::vector<std::string> values = names_of(variables);
  for (const jinja::Builtin& method : jinja::string_methods()) {
    for (const std::string_view self : {"text", "short_text", "wide_text", "words", "marks", "a"}) {
      for (const std::string& call : calls_of(method.name, values)) {
        expect_expression_charged(fmt::format("{}.{}", self, call), variables);
      }
    }
  }
  for (const auto methods : {jinja::dict_methods(), jinja::list_methods()}) {
    for (const jinja::Builtin& method : methods) {
      for (const std::string_view self : {"numbers", "texts", "tuple", "dict", "rows"}) {
        for (const std::string& call : calls_of(method.name, values)) {
          expect_expression_charged(fmt::format("{}.{}", self, call), variables);
        }
      }
    }
  }
}

TEST(TemplateCost, EveryTestAndFunction) {
  const Value variables = large_values();
  const std::vector<std::string> values = names_of(variables);
  for (const jinja::Builtin& test : jinja::tests()) {
    if (test.name.find_first_of("!<=>") != std::string_view::npos) continue;  // also named
    for (const std::string& self : values) {
      for (const std::string& call : calls_of(test.name, values)) {
        expect_expression_charged(fmt::format("({} is {})", self, call), variables);
      }
    }
  }
  for (const jinja::Builtin& function : jinja::globals()) {
    for (const std::string& call : calls_of(function.name, values)) {
      expect_expression_charged(call, variables);
    }
    expect_expression_charged(fmt::format("{}(*numbers)", function.name), variables);
    expect_expression_charged(fmt::format("{}(**dict)", function.name), variables);
  }
}

TEST(TemplateCost, EveryOperator) {
  const Value variables = large_values();
  const std::vector<std::string> values = names_of(variables);
  for (const std::string& x : values) {
    for (const std::string_view unary :
         {"X[::-1]",        "X[1:]",     "X[::7]",   "X[-1]",          "X.nope",
          "X|string",       "-X",        "[X]",      "(X,)",           "{X: 1}",
          "{(X,): 1}",      "X.list",    "'%s' % X", "'{}'.format(X)", "loop.changed(X)",
          "loop.cycle(*X)", "dict(**X)", "X and 1",  "[X] == [X]",     "((X,)) in {(1, 2): 3}"}) {
      std::string expression;
      for (const char c : unary) expression += c == 'X' ? x : std::string(1, c);
      expect_expression_charged(expression, variables);
    }
    for (const std::string& y : values) {
      for (const std::string_view op : {"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<",
                                        "<=", ">", ">=", "in", "not in", "and", "or"}) {
        expect_expression_charged(fmt::format("({} {} {})", x, op, y), variables);
      }
      expect_expression_charged(fmt::format("{}[{}]", x, y), variables);
      expect_expression_charged(fmt::format("{}[:{}]", x, y), variables);
      expect_expression_charged(fmt::format("{}|attr({})", x, y), variables);
      expect_expression_charged(fmt::format("({} if {} else {})", x, y, x), variables);
    }
  }
}

}  // namespace
}  // namespace quire
