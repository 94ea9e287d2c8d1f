// Tests promises of the engine itself: values from C++, line numbers in errors, and a bound on
// every resource.
#include "jinja/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/value_of.h"

namespace quire {
namespace {

using jinja::Value;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Value none() {
  return Value::dict({});
}

Result<std::string> render(std::string_view source, const Value& variables = none(),
                           const TemplateLimits& limits = {}) {
  QUIRE_ASSIGN_OR_RETURN(const ChatTemplate parsed, ChatTemplate::parse(source, limits));
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, parsed.render(variables, limits));
  return std::move(prompt.text);
}

std::string text(std::string_view source, const Value& variables = none()) {
  const Result<std::string> result = render(source, variables);
  return result.ok() ? *result : "error: " + result.status().message();
}

std::string error(std::string_view source, const Value& variables = none(),
                  const TemplateLimits& limits = {}) {
  const Result<std::string> result = render(source, variables, limits);
  if (result.ok()) return "no error";
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  return result.status().message();
}

std::string repeated(std::string_view part, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += part;
  return all;
}

TEST(ChatTemplate, TakesValuesBuiltInCpp) {
  const Value messages = Value::list({
      Value::dict({{"role", Value::string("user")}, {"content", Value::string("hé")}}),
      Value::dict({{"role", Value::string("tool")}, {"n", Value::integer(3)}}),
  });
  const Value variables = Value::dict({{"messages", messages},
                                       {"pair", Value::tuple({Value::real(0.5), Value::none()})},
                                       {"yes", Value::boolean(true)}});
  EXPECT_EQ(text("{% for m in messages %}{{ m.role }}{{ m.content|length }}{{ m.n }};{% endfor %}"
                 "{{ pair }}{{ yes }}",
                 variables),
            "user2;tool03;(0.5, None)True");
}

TEST(ChatTemplate, RepairsTextThatIsNotUtf8) {
  const Value variables = Value::dict({{"x", Value::string("a\xff\xfez")}});
  EXPECT_EQ(text("{{ x }}{{ x|length }}\xff", variables), "a\uFFFD\uFFFDz4\uFFFD");
}

TEST(ChatTemplate, KeepsTheOrderOfKeysAndTheLastOfTwo) {
  const Value variables =
      Value::dict({{"z", Value::integer(1)}, {"a", Value::integer(2)}, {"z", Value::integer(3)}});
  EXPECT_EQ(text("{{ v }}", Value::dict({{"v", variables}})), "{'z': 3, 'a': 2}");
}

TEST(ChatTemplate, VariablesMustBeADict) {
  const auto parsed = testing::value_of(ChatTemplate::parse("x"));
  EXPECT_EQ(parsed.render(Value::list({})).status().message(),
            "[template] the variables are not an object; got list");
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_THAT(error("a\nb\n{% if %}"), StartsWith("[template] line 3: "));
  EXPECT_THAT(error("a\n\n{{ x.y.z }}\n"), StartsWith("[template] line 3: 'x' is undefined"));
  EXPECT_THAT(error("{# c\n\n #}\n{{ raise_exception('No.') }}\n"),
              ::testing::StrEq("[template] line 4: No."));
  EXPECT_THAT(error("{% macro f() %}\n{{ 1/0 }}\n{% endmacro %}\n\n{{ f() }}"),
              StartsWith("[template] line 2: "));
  EXPECT_THAT(error("{% macro f() %}\n\n{% endmacro %}\n\n{{ f() + 1 }}"),
              StartsWith("[template] line 5: "));
}

TEST(ChatTemplate, TemplatesCannotChangeTheirVariables) {
  const Value variables = Value::dict({{"xs", Value::list({Value::integer(1)})}});
  EXPECT_THAT(error("{{ xs.append(2) }}", variables),
              HasSubstr("'append' of 'list' object is unsafe"));
  EXPECT_THAT(error("{{ {}.update(a=1) }}"), HasSubstr("'update' of 'dict' object is unsafe"));
}

// Python that no template needs is refused by name, so that no text is rendered differently than by
// Jinja2.
TEST(ChatTemplate, RefusesPythonBeyondJinja) {
  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"{{ '12'.isdigit() }}", "the method str.isdigit is not supported"},
      {"{{ ' '.isspace() }}", "the method str.isspace is not supported"},
      {"{{ 'a'.swapcase() }}", "the method str.swapcase is not supported"},
      {"{{ 'a'.center(7, '*') }}", "the method str.center is not supported"},
      {"{{ 'a'.rjust(5) }}", "the method str.rjust is not supported"},
      {"{{ '-42'.zfill(6) }}", "the method str.zfill is not supported"},
      {"{{ 'a-b'.partition('-') }}", "the method str.partition is not supported"},
      {"{{ 'abc'.find('c', 1) }}", "find() takes at most 1 argument(s) (2 given)"},
      {"{{ 'abc'.startswith('b', 1) }}", "startswith() takes at most 1 argument(s) (2 given)"},
      {"{{ ' a b'.rsplit(none, 1) }}", "rsplit with a limit needs a separator"},
      {"{{ 'a'.splitlines(true) }}", "splitlines() takes at most 0 argument(s) (1 given)"},
      {"{{ 1.0.is_integer() }}", "'float object' has no attribute 'is_integer'"},
      {"{{ '{:>5}'.format('a') }}", "the field '{:>5}' of str.format is not supported"},
      {"{{ '{!r}'.format('a') }}", "the field '{!r}' of str.format is not supported"},
      {"{{ '{a.b}'.format(a=1) }}", "the field '{a.b}' of str.format is not supported"},
      {"{{ '{a[0]}'.format(a=[1]) }}", "the field '{a[0]}' of str.format is not supported"},
      {"{{ '%05.1f' % 1.5 }}", "the format '%05.1f' is not supported"},
      {"{{ '%(a)x' % {'a': 1} }}", "the format '%(a)x' is not supported"},
      {"{{ '%d' % 1.5 }}", "%d formats an integer; got float"},
      {"{% print 1 %}", "the tag 'print' is not supported in a chat template"},
      {"{{ 0x1F }}", "numbers must be decimal without a leading 0; got '0x1F'"},
      {"{{ {(1, 2): 3} }}", "unhashable type: 'tuple'; keys are str, numbers or None"},
      {"{{ 0b1 }}", "numbers must be decimal without a leading 0; got '0b1'"},
      {"{{ '\\101' }}", "the escape '\\1' is not supported"},
      {"{{ '\\N{DASH}' }}", "the escape '\\N' is not supported"},
      {"{{ '\\é' }}", "the escape '\\…' is not supported"},
      {"{{ 1234|round(-2) }}", "round takes a precision of 0 to 330 digits; got -2"},
  };
  for (const auto& [source, message] : kRefused) {
    EXPECT_THAT(error(source), HasSubstr(std::string(message))) << source;
    EXPECT_THAT(error(source), StartsWith("[template] line 1: ")) << source;
  }
}

// The expected texts are those of jinja2 3.1.6 with markupsafe 3.0.3.
TEST(ChatTemplate, TextsBesideMarkupAreEscapedAsInJinja2) {
  const std::pair<std::string_view, std::string_view> kTable[] = {
      {"{{ ('<a>'|safe) + y }}", "<a>&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ y + ('<a>'|safe) }}", "&lt;q&gt;&amp;&#34;&#39;<a>"},
      {"{{ ('<a>'|safe) + ('<b>'|safe) }}", "<a><b>"},
      {"{{ ('<a>'|safe) ~ y }}", R"(<a><q>&"')"},
      {"{{ (y|e) + y }}", "&lt;q&gt;&amp;&#34;&#39;&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ ('<%s>'|safe) % y }}", "<&lt;q&gt;&amp;&#34;&#39;>"},
      {"{{ ('<%s %d>'|safe) % (y, 1) }}", "<&lt;q&gt;&amp;&#34;&#39; 1>"},
      {"{{ ('<%(k)s>'|safe) % {'k': y} }}", "<&lt;q&gt;&amp;&#34;&#39;>"},
      {"{{ ('<{}>'|safe).format(y) }}", "<&lt;q&gt;&amp;&#34;&#39;>"},
      {"{{ ('<%s>'|safe)|format(y) }}", "<&lt;q&gt;&amp;&#34;&#39;>"},
      {"{{ ('<'|safe).join([y, y|safe]) }}", R"(&lt;q&gt;&amp;&#34;&#39;<<q>&"')"},
      {"{{ [y, y]|join('<'|safe) }}", R"(<q>&"'<<q>&"')"},
      {"{{ ('<x>'|safe).replace('x', y) }}", "<&lt;q&gt;&amp;&#34;&#39;>"},
      {"{{ ('<x>'|safe)|replace('x', y) }}", R"(<<q>&"'>)"},
      {"{{ (('<a>'|safe) + y) + y }}", "<a>&lt;q&gt;&amp;&#34;&#39;&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ ('<a>'|safe)[0] + y }}", "<&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ ('<'|safe) * 2 + y }}", "<<&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ ('<a>'|safe).upper() + y }}", "<A>&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ ('<a>'|safe + y)|string + y }}", "<a>&lt;q&gt;&amp;&#34;&#39;&lt;q&gt;&amp;&#34;&#39;"},
      {"{{ (y ~ ('<a>'|safe)) + y }}", R"(<q>&"'<a><q>&"')"},
      {"{{ ''|safe + y }}", "&lt;q&gt;&amp;&#34;&#39;"},
      {"{% set ns = namespace(s='') %}{% set ns.s = ns.s + ('<a>'|safe) + y %}{{ ns.s }}",
       "<a>&lt;q&gt;&amp;&#34;&#39;"},
  };
  const Value variables = Value::dict({{"y", Value::string("<q>&\"'")}});
  for (const auto& [source, expected] : kTable)
    EXPECT_EQ(text(source, variables), expected) << source;
}

TEST(ChatTemplate, IntegersEndAt64Bits) {
  EXPECT_EQ(text("{{ 9223372036854775806 + 1 }}"), "9223372036854775807");
  for (const std::string_view source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 2 ** 64 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ 99999999999999999999 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}",
        "{{ '99999999999999999999'|int }}", "{{ 1e30|int }}",
        "{{ (-9223372036854775807 - 1)|abs }}"}) {
    EXPECT_THAT(error(source), HasSubstr("beyond 64 bits")) << source;
  }
  EXPECT_EQ(text("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
}

TEST(ChatTemplateBudget, Steps) {
  TemplateLimits limits;
  limits.max_steps = 10'000;
  EXPECT_THAT(error("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
                    none(), limits),
              HasSubstr("too many steps"));
  // Text is charged as well: each of these searches reads a megabyte.
  EXPECT_THAT(error("{% set s = 'a' * 1000000 %}{% for i in range(9999) %}"
                    "{% if 'b' in s %}{% endif %}{% endfor %}",
                    none(), limits),
              HasSubstr("too many steps"));
}

TEST(ChatTemplateBudget, SearchesAreLinear) {
  const std::string source =
      "{% set s = 'a' * 2000000 %}{% set t = 'a' * 1000000 + 'b' %}"
      "{{ t in s }}{{ s.rfind('b' + t) }}{{ s.count(t) }}{{ s.split(t)|length }}";
  EXPECT_EQ(text(source), "False-101");
}

TEST(ChatTemplateBudget, Output) {
  TemplateLimits limits;
  limits.max_output_bytes = 1000;
  EXPECT_THAT(error("{% for i in range(999) %}abc{% endfor %}", none(), limits),
              HasSubstr("the output is too large"));
  EXPECT_THAT(error("{{ 'a' * 1001 }}", none(), limits), HasSubstr("the output is too large"));
  EXPECT_TRUE(render("{{ 'a' * 1000 }}", none(), limits).ok());
}

TEST(ChatTemplateBudget, Memory) {
  for (const std::string_view source : {
           "{{ ('a' * 100000000)|length }}",
           "{{ ([0] * 100000000)|length }}",
           "{{ 'a'|center(1000000000) }}",
           "{{ 'a\nb'|indent(1000000000) }}",
           "{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
           "{% endfor %}",
           "{% set ns = namespace(s=[]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}"
           "{% endfor %}{{ ns.s|string|length }}",
           "{{ ('a' * 60000).replace('a', 'b' * 60000) }}",
           "{{ ('b' * 60000).join('a' * 60000) }}",
           "{% set ns = namespace(s=[]) %}{% for i in range(99999) %}"
           "{% set ns.s = [ns.s, 'a' * 10000] %}{% endfor %}",
           "{% set ns = namespace(s=[]) %}{% for i in range(99999) %}"
           "{% set ns.s = ns.s + [{}['k' * 1000]] %}{% endfor %}",
           "{% for i in range(99999) %}{% if (' ' * 100000).strip() %}{% endif %}{% endfor %}",
       }) {
    EXPECT_THAT(error(source),
                ::testing::AnyOf(HasSubstr("values take too much memory"),
                                 HasSubstr("nested too deeply"), HasSubstr("too many steps")))
        << source;
  }
  // Values that are dropped return their memory to the budget.
  TemplateLimits limits;
  limits.max_live_bytes = size_t{4} << 20;
  const auto result =
      render("{% for i in range(40) %}{% set s = 'a' * 1000000 %}{% endfor %}ok", none(), limits);
  EXPECT_TRUE(result.ok()) << result.status().message();
}

TEST(ChatTemplateBudget, Depth) {
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{
           {"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"-", ""}, {"not ", ""}, {"f(", ")"}}) {
    EXPECT_THAT(error("{{ " + repeated(open, 20'000) + "1" + repeated(close, 20'000) + " }}"),
                HasSubstr("nested too deeply"))
        << open;
  }
  EXPECT_THAT(error(repeated("{% if 1 %}", 20'000)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error("{{ 1" + repeated(" + 1", 50'000) + " }}"), HasSubstr("too long"));
  EXPECT_THAT(error("{{ x" + repeated(".x", 50'000) + " }}"), HasSubstr("too long"));
  EXPECT_THAT(error("{{ x" + repeated("|string", 50'000) + " }}"), HasSubstr("too long"));
  EXPECT_THAT(error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("too deeply"));
  EXPECT_THAT(error("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("too deeply"));
  EXPECT_EQ(text("{{ " + repeated("(", 90) + "1" + repeated(")", 90) + " }}"), "1");
  EXPECT_EQ(text("{{ 1" + repeated(" ~ 1", 50'000) + " }}").size(), 50'001U);
  EXPECT_EQ(text("{% if 0 %}" + repeated("{% elif 0 %}", 5'000) + "{% else %}x{% endif %}"), "x");
}

TEST(ChatTemplateBudget, Source) {
  EXPECT_THAT(error("{{ [" + repeated("1,", 150'000) + "] }}"), HasSubstr("at most 200000 tokens"));
  EXPECT_THAT(error("{{ f(" + repeated("1,", 2'000) + ") }}"), HasSubstr("too many arguments"));
  EXPECT_LT(error("{{ raise_exception('a' * 1000000) }}").size(), 20'000U);
  EXPECT_THAT(error(std::string((size_t{1} << 20) + 1, 'a')), HasSubstr("too large"));
}

TEST(ChatTemplate, CyclesAreHarmless) {
  EXPECT_THAT(error("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}"),
              HasSubstr("nested too deeply"));
  EXPECT_EQ(text("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns.a.a.a == ns }}"), "True");
  EXPECT_EQ(text("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}"
                 "{{ loop.changed(loop) }}{% endfor %}{{ ns.l.index }}"),
            "True1");
  EXPECT_EQ(text("{% set ns = namespace() %}{% macro f() %}{% set ns.f = f %}x{% endmacro %}"
                 "{{ f() }}{{ ns.f() }}"),
            "xx");
}

TEST(ChatTemplate, RendersFromManyThreads) {
  const auto parsed = testing::value_of(ChatTemplate::parse(
      "{% macro f(x) %}{{ x|upper }}{% endmacro %}{% for m in ms %}{{ f(m ~ 'é') }}{% endfor %}"));
  const Value variables =
      Value::dict({{"ms", Value::list({Value::string("a"), Value::string("b")})}});
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& out : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) out = parsed.render(variables).value().text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts, ::testing::Each("AÉBÉ"));
}

// Renders with brackets around the bytes that come from the variables.
std::string marked(std::string_view source, const Value& variables) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status().message();
  const Result<MarkedText> prompt = parsed->render(variables);
  if (!prompt.ok()) return prompt.status().message();
  std::string shown;
  size_t done = 0;
  for (size_t i = 0; i < prompt->untrusted.count(); ++i) {
    const auto [begin, end, owner] = prompt->untrusted[i];
    shown += prompt->text.substr(done, begin - done);
    shown += "[" + prompt->text.substr(begin, end - begin) + "]";
    done = end;
  }
  return shown + prompt->text.substr(done);
}

TEST(Marks, TellTheVariablesTextsFromTheTemplatesOwn) {
  const Value variables = Value::dict({
      {"x", Value::string(" a é b ")},
      {"y", Value::string("<q>")},
      {"own", Value::literal("own")},
      {"role", Value::string("user")},
      {"n", Value::integer(7)},
      {"list", Value::list({Value::string("a"), Value::literal("b"), Value::string("c")})},
      {"d", Value::dict({{"key", Value::string("value")}})},
  });
  const std::pair<const char*, const char*> cases[] = {
      {"-{{ x }}-{{ own }}", "-[ a é b ]-own"},
      {"{{ n }}{{ none }}{{ true }}", "7NoneTrue"},
      {"{{ '<|' + role + '|>' }}", "<|user|>"},
      // joined and repeated
      {"{{ '<' + y + '>' }}{{ y ~ n ~ own }}", "<[<q>]>[<q>]7own"},
      {"{{ y * 2 }}{{ ('-' + y) * 2 }}", "[<q><q>]-[<q>]-[<q>]"},
      {"{{ list | join('-') }}|{{ y.join(list) }}", "[a]-b-[c]|[a<q>]b[<q>c]"},
      {"{{ '%s:%d' % (y, n) }}{{ '%%-%s' % y }}{{ '%(k)s' % {'k': y} }}", "[<q>]:7%-[<q><q>]"},
      {"{{ '%s-%s' | format(y, own) }}", "[<q>]-own"},
      {"{{ 'a{}b{{'.format(y) }}{{ '{k}'.format(k=own) }}", "a[<q>]b{own"},
      {"{{ y % () }}", "[<q>]"},
      // cut
      {"{{ ('- ' + x) | trim }}.{{ ('-' + x).strip(' -') }}", "- [ a é b].[a é b]"},
      {"{{ ('ab' + y)[1:4] }}{{ ('é' + x)[:3] }}{{ ('ab' + y)[1] }}", "b[<q]é[ a]b"},
      {"{{ ('ab' + y)[::-1] }}{{ 'ab'[::-1] }}", "[>q<ba]ba"},
      {"{{ ('own,' + y + ',own').split(',') | join('+') }}", "own+[<q>]+own"},
      {"{{ ('own ' + y).rsplit(' ', 1) | join('+') }}{{ (y + '\n' + own).splitlines()[1] }}",
       "own+[<q>]own"},
      {"{{ (own + y).removeprefix('own') }}{{ (y + own).removesuffix('own') }}", "[<q><q>]"},
      {"{{ (own ~ ' ' ~ y ~ y ~ y) | truncate(8, true, '.', 0) }}", "own [<q>]."},
      {"{{ (own + y) | first }}{{ (own + y) | last }}{{ (own + y) | list | join('') }}",
       "o[>]own[<q>]"},
      {"{% for c in own + y %}{{ c }}{% endfor %}", "own[<q>]"},
      // replaced
      {"{{ (own + y).replace('w', y) }}{{ y.replace('q', own) }}", "o[<q>]n[<q><]own[>]"},
      {"{{ (own + y) | replace('<', '(') }}{{ ('a' ~ y) | replace('', '.') }}",
       "own([q>].a.[<].[q].[>]."},
      {"{{ (own + y) | escape }}{{ (own + y) | urlencode }}", "own[&lt;q&gt;]own[%3Cq%3E]"},
      {"{{ (own + '\n' + y) | indent(2) }}{{ own | center(7) }}{{ y | center(5) }}",
       "own\n  [<q>]  own   [<q>] "},
      {"{{ y | upper }}{{ own | upper }}{{ (own + y) | title }}", "[<Q>]OWN[Own<Q>]"},
      {"{{ y | safe }}{{ y | string }}{{ own | capitalize }}", "[<q><q>]Own"},
      // written
      {"{{ d | tojson }}", "{\"[key]\": \"[value]\"}"},
      {"{{ (own + x) | tojson(ensure_ascii=true) }}", "\"own[ a \\u00e9 b ]\""},
      {"{{ [own, y] | tojson(indent=y, separators=('.', y)) }}",
       "[\n[<q>]\"own\".\n[<q>]\"[<q>]\"\n]"},
      {"{{ d }}{{ [own, y] }}", "{'[key]': '[value]'}['own', '[<q>]']"},
      {"{{ strftime_now(y) }}{{ strftime_now('%%' ~ own) }}", "[<q>]%own"},
      // carried through variables, macros, captures and containers
      {"{% set s %}-{{ y }}-{% endset %}{{ s }}{{ s | length }}", "-[<q>]-5"},
      {"{% filter trim %} {{ y }} {% endfilter %}", "[<q>]"},
      {"{% macro m(a, b=own) %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}"
       "{{ m(y) }}{{ m(own, y) }}{% call m('') %}({{ y }}){% endcall %}",
       "[<q>]ownown[<q>]own([<q>])"},
      {"{% set ns = namespace(s='') %}{% for c in list %}{% set ns.s = ns.s + c %}{% endfor %}"
       "{{ ns.s }}",
       "[a]b[c]"},
      {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}{{ d.key }}", "[key]=[valuevalue]"},
      {"{% for k in dict(**d) %}{{ k }}{% endfor %}", "[key]"},
      {"{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**d) }}", "{'[key]': '[value]'}"},
      {"{% for c in list recursive %}{{ c }}{{ loop(['-']) if loop.first and c == 'a' }}"
       "{% endfor %}",
       "[a]-b[c]"},
      {"{{ list | sort | first }}{{ list | map('upper') | join }}{{ list | unique | list | last }}",
       "[aA]B[Cc]"},
      {"{{ missing | default(y) }}{{ missing | default(own) }}{{ y or own }}", "[<q>]own[<q>]"},
      {"{% set j = joiner(y) %}{{ j() }}{{ j() }}{{ cycler(y, own).next() }}", "[<q><q>]"},
  };
  for (const auto& [source, expected] : cases)
    EXPECT_EQ(marked(source, variables), expected) << source;
}

TEST(Marks, AreChargedToTheBudget) {
  TemplateLimits limits;
  limits.max_live_bytes = size_t{1} << 20;
  limits.max_steps = 100'000'000;
  const Value variables = Value::dict({{"x", Value::string("a")}});
  EXPECT_TRUE(render("{{ ('ab' * 90000) | length }}", variables, limits).ok());
  for (const char* source :
       {"{{ (('b' ~ x) * 90000) | length }}", "{% for i in range(90000) %}b{{ x }}{% endfor %}",
        "{% set s %}{% for i in range(90000) %}b{{ x }}{% endfor %}{% endset %}",
        "{{ ([x] * 90000) | join('b') | length }}"}) {
    EXPECT_THAT(error(source, variables, limits), HasSubstr("take too much memory")) << source;
  }
}

}  // namespace
}  // namespace quire
