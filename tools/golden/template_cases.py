"""The conversations and small templates whose Jinja2 renderings are golden."""

from typing import Any

Variables = dict[str, Any]

WEATHER: Variables = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Says the weather <now> & "here".',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "  The city, like Zürich or 東京.  "},
                "unit": {"type": "string", "enum": ["c", "f"], "description": "Unit", "default": "c"},
                "days": {"type": "integer", "description": "How many", "default": 3},
                "where": {
                    "type": "object",
                    "description": "Position",
                    "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                    "required": ["lat"],
                },
            },
            "required": ["city"],
        },
        "return": {"type": "string", "description": "A sentence."},
    },
}
LISTS: Variables = {
    "type": "function",
    "function": {
        "name": "sort",
        "description": "Sorts.",
        "parameters": {
            "type": "object",
            "properties": {
                "tags": {"type": "array", "description": "Tags", "items": {"type": "string"}},
                "rows": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                "by": {"oneOf": [{"type": "string", "default": "x"}, {"type": "integer"}]},
                "any": {"type": "array", "nullable": True},
                "when": {"type": ["string", "null"], "description": "When"},
            },
            "required": ["tags"],
        },
    },
}
EMPTY_TOOL: Variables = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "The time.",
        "parameters": {"type": "object", "properties": {}},
    },
}
ARGUMENTS: Variables = {
    "city": 'Zürich "old" <town>',
    "days": 3,
    "where": {"lat": 47.0, "lon": 8.5e-07, "alt": 1e22, "deep": [1, [2, {"x": None}], True]},
}


def user(content: Any) -> Variables:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Variables:
    return {"role": "assistant", "content": content, **more}


def call(name: str, arguments: Any, id: str = "a1B2c3D4e") -> Variables:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: Any, id: str = "a1B2c3D4e") -> Variables:
    return {"role": "tool", "name": "get_weather", "tool_call_id": id, "content": content}


SYSTEM = {"role": "system", "content": "You are terse.\n\nAlways say 'ok'."}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def chat(*messages: Variables, prompt: bool = True, **more: Any) -> Variables:
    # transformers always passes tools and documents, as None where there are none.
    variables = {"tools": None, "documents": None, "add_generation_prompt": prompt}
    return {"messages": list(messages), **variables, **TOKENS, **more}


CONVERSATIONS: dict[str, Variables] = {
    "one question": chat(user("Hello!")),
    "bare variables": {"messages": [SYSTEM, user("Hello!")], **TOKENS},
    "no generation prompt": chat(user("Hello!"), assistant("Hi."), prompt=False),
    "system": chat(SYSTEM, user("Who are you?")),
    "many turns": chat(
        SYSTEM, user("1+1?"), assistant("2"), user("And 2+2?"), assistant("4\n"), user(" thanks ")
    ),
    "many turns without system": chat(
        user("a"), assistant("b"), user("c"), assistant("d"), prompt=False
    ),
    "unicode": chat(
        user("Grüße 👩‍👩‍👧 東京 \u202e عربى \u00a0 \"quoted\" 'single' <b>&amp;</b> \\n \t end\n\n"),
        assistant("  ≤ 😀 {{ not a tag }} {% nor this %}\r\n"),
        user("\u2028 e\u0301"),
    ),
    "tools offered": chat(user("Weather?"), tools=[WEATHER, EMPTY_TOOL]),
    "lists among the parameters": chat(user("Sort."), tools=[LISTS, WEATHER]),
    "tools offered with system": chat(SYSTEM, user("Weather?"), tools=[WEATHER]),
    "tool call and result": chat(
        SYSTEM,
        user("Weather?"),
        assistant("", tool_calls=[call("get_weather", ARGUMENTS)]),
        result('{"t": 21.5, "sky": "cläar"}'),
        tools=[WEATHER],
    ),
    "tool call answered": chat(
        user("Weather?"),
        assistant("", tool_calls=[call("get_weather", {"city": "Rome"})]),
        result("sunny"),
        assistant("It is sunny."),
        user("And tomorrow?"),
        tools=[WEATHER, EMPTY_TOOL],
    ),
    "tool call with null content": chat(
        user("Weather?"),
        assistant(None, tool_calls=[call("get_weather", {"city": "Rome"})]),
        result("sunny"),
        tools=[WEATHER],
    ),
    "arguments as text": chat(
        user("Weather?"),
        assistant("", tool_calls=[call("get_weather", '{"city": "Rome"}')]),
        result("sunny"),
        tools=[WEATHER],
    ),
    "two calls at once": chat(
        user("Weather?"),
        assistant(
            "Let me see.",
            tool_calls=[call("get_weather", {"city": "A"}), call("now", {}, "123456789")],
        ),
        result("one"),
        result("two", "123456789"),
        assistant("Done."),
        user("Thanks"),
        tools=[WEATHER, EMPTY_TOOL],
    ),
    "tool result as object": chat(
        user("Weather?"),
        assistant("", tool_calls=[call("get_weather", {"city": "A"})]),
        result({"t": 1.0, "ok": True, "none": None, "content": [1, "x'y"]}),
        tools=[WEATHER],
    ),
    "thinking in content": chat(
        user("Think."), assistant("<think>\nhm, 1 < 2\n</think>\n\nYes."), user("More.")
    ),
    "thinking apart": chat(
        user("Think."),
        assistant("Yes.", reasoning_content="\nhm\n", thinking="\nhm\n"),
        user("More."),
        enable_thinking=False,
    ),
    "thinking while calling": chat(
        user("Think."),
        assistant(
            "", thinking="I need it", reasoning_content="I need it", tool_calls=[call("now", {})]
        ),
        result("12:00"),
        tools=[EMPTY_TOOL],
        enable_thinking=True,
        reasoning_effort="high",
    ),
    "documents": chat(
        user("Read."),
        documents=[
            {"doc_id": 1, "title": "T", "text": "First <text>.", "url": "u", "snippet": "s"},
            {"doc_id": "x", "title": "U", "text": "Second.", "url": "v", "snippet": "ß"},
        ],
        controls={"citations": True, "hallucinations": True, "length": "short"},
        enable_citations=True,
        thinking=True,
    ),
    "builtin tools": chat(
        user("Search."),
        builtin_tools=["browser", "python", "code_interpreter"],
        model_identity="You are Q.",
        date_string="01 Jan 2025",
        tools_in_user_message=False,
        tools=[WEATHER],
    ),
    "roles do not alternate": chat(user("a"), user("b")),
    "starts with the assistant": chat(assistant("a"), user("b")),
    "unknown role": chat({"role": "critic", "content": "bad"}, user("x")),
    "short tool call id": chat(
        user("w"),
        assistant("", tool_calls=[call("now", {}, "1")]),
        result("x", "1"),
        tools=[EMPTY_TOOL],
    ),
    "channel tags in content": chat(
        user("w"), assistant("<|channel|>analysis<|message|>x"), user("y")
    ),
    "no messages": chat(),
    "content in parts": chat(
        user([{"type": "text", "text": "part one"}, {"type": "text", "text": " two"}])
    ),
}

MESSAGES: Variables = {
    "messages": [
        {"role": "system", "content": "Be."},
        {"role": "user", "content": "Hi <b>", "n": 3, "tags": ["x", "Y"]},
        {"role": "assistant", "content": "Yo", "n": 1, "tags": []},
        {"role": "user", "content": "Bye", "n": 2, "tags": ["z"]},
    ]
}
NUMBERS: Variables = {"xs": [3, 1, 2], "big": 9007199254740993, "f": 0.1, "s": "Straße €5 😀"}
NESTED: Variables = {"d": {"b": 1, "a": {"x": [1, 2.0, None, True, 'q"q', "it's"]}, "items": 7}}


def prints(expressions: str, variables: Variables | None = None) -> list[tuple[str, Variables]]:
    """One case an expression a line."""
    return [
        ("{{ " + line.strip() + " }}", variables or {})
        for line in expressions.strip().splitlines()
        if line.strip()
    ]


CASES: list[tuple[str, Variables]] = []

# ---- literals and arithmetic
CASES += prints(r"""
1
1_000
00
1.5
1e3
2.5e-7
1e16
1e22
123456789012345680.0
1.0
-0.0
1e-5
0.0001
'a' "b"
'it\'s'
"tab\there\nnew \x41 \u00e9 \U0001F600 \q \\"
true
False
none
None
[1, 'a', 2.0, None, true]
(1,)
(1, 2)
()
{'a': 1, "b": [1, 2], 3: {}}
{}
[]
['it\'s', "say \"hi\"", 'both \' and "', 'tab\t', 'é', '\x00', '\u200b']
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
-7 // -2
7 / 2
6 / 2
7.5 // 2
-7.5 // 2
7.5 % 2
-7.5 % 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2.0 ** 0.5
1 + 2 * 3 - 4
(1 + 2) * 3
1 - 2 - 3
+5
-(-5)
true + true
1 / 0
1 // 0
1 % 0
1.0 / 0
'a' + 'b'
'a' * 3
3 * 'ab'
[1] * 2
[1] + [2]
(1,) + (2,)
'a' + 1
1 + 'a'
[1] + (2,)
none + 1
1 ~ 'a' ~ 2.0 ~ none ~ true
1 ~ 2 + 3
'a' ~ missing ~ 'b'
missing + 'a'
'a' + missing
missing
missing.x
missing['x']
missing()
missing.x.y
9223372036854775807
0.1 + 0.2
1e308 * 10
3 == 3.0
1 == true
'1' == 1
[1, 2] == [1, 2.0]
[1] == (1,)
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
none == missing
missing == missing2
missing is none
1 < 2
1 < 2 < 3
3 > 2 > 2
1 < 2 == true
'a' < 'b'
'a' < 'B'
'abc' <= 'abd'
[1, 2] < [1, 3]
[1] < [1, 2]
(1, 'a') < (1, 'b')
1 < 'a'
none < 1
missing < 1
1 != 2
1 >= 1.0
9007199254740993 == 9007199254740992.0
9007199254740993 > 9007199254740992.0
'a' in 'abc'
'' in 'abc'
1 in [1, 2]
1 in 'abc'
'a' in {'a': 1}
'a' not in {'a': 1}
1 in (1, 2)
[1] in {'a': 1}
1 in missing
1 in 5
true and 'x'
0 or 'y'
'' and 'z'
not ''
not not 1
not 1 == 2
1 and 0 or 3
'x' if true
'x' if false
'x' if false else 'y'
'x' if 1 else 'y' if 0 else 'z'
('x' if false) is defined
1 if 0 else 2 if 0 else 3
1,2
1, 'a'
1 if true else missing.x
[1, 2, 3][0]
[1, 2, 3][-1]
[1, 2, 3][5]
[1, 2, 3][5].x
[1, 2, 3].1
[1, 2, 3][true]
'héllo'[1]
'héllo'[-1]
'abc'[10]
'héllo'[1:3]
'héllo'[::-1]
'héllo'[::2]
'héllo'[-3:]
'héllo'[:-1]
'héllo'[10:]
[1, 2, 3, 4, 5][1:-1]
[1, 2, 3, 4, 5][::2]
[1, 2, 3, 4, 5][::-1]
[1, 2, 3, 4, 5][-2::-1]
[1, 2, 3, 4, 5][4:1:-2]
[1, 2, 3][::0]
(1, 2, 3)[1:]
missing[1:]
5[0]
'abc'[none:2]
range(5)
range(5)|list
range(1, 10, 3)|list
range(5, 0, -2)|list
range(5)[1]
range(10)[2:5]
range(3)|length
3 in range(5)
range(1000000)
range(0, 10, 0)
range('a')
""")

# ---- access
CASES += prints(r"""
d
d.b
d['b']
d.a.x
d.a.x[3]
d.a['x'].0
d['items']
d.items()
d.keys()
d.values()
d.keys()|list
d.get('b')
d.get('zz')
d.get('zz', 5)
d.get()
d.zz
d.zz.y
d.zz is defined
d.a.zz is undefined
d.a.x.append
d.a.x['a':]
d[1:]
d.a.x[3][1:]
d.a.x[2][1:]
d.a.x.append(1)
d.update({'b': 2})
d.pop('b')
d.clear
d.__class__
d.__class__.x
''.__class__
''.__class__.__mro__
d|length
d.items()|length
d|list
d.items()|list
d.values()|list|string
'b' in d
'b' in d.keys()
1 in d.values()
('b', 1) in d.items()
d.items()[0]
d.copy()
none.x
none.x.y
(1).x
'abc'.nope
'abc'.nope()
5()
'a'()
d|items|list
missing|items|list
5|items|list
{1: 'a', 1.0: 'b', true: 'c'}
{'a': 1, 'a': 2}
{[1]: 2}
d[missing]
d[none]
d[['x']]
[1, 2, 3].index(2)
[1, 2, 3].index(9)
[1, 2, 1].count(1)
[1, 2].copy()
(1, 2).index(2)
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1)])
dict('ab')
namespace(a=1).a
namespace(a=1).b
namespace({'a': 1})['a']
namespace(_a=1)
namespace(a=1) == namespace(a=1)
""", NESTED)

# ---- string methods
CASES += prints(r"""
s.upper()
s.lower()
s.title()
s.capitalize()
s|upper
s|lower
s|title
s|capitalize
"they're bill's (friends) [from] the-UK".title()
"they're bill's (friends) [from] the-UK"|title
"ǆ ŉ ﬁ ΣΑΣ İ"|lower
"ǆ ﬁ ß"|upper
'ΑΣ ΑΣΑ'.lower()
s|length
s[6]
s.find('€')
s.rfind('e')
s.find('zz')
s.index('zz')
s.count('s')
'aaaa'.count('aa')
'abc'.count('')
'  x '.strip()
'  x '.lstrip()
'  x '.rstrip()
'\u00a0\u2003x\u3000\n\x1f'.strip()
'xxaxx'.strip('x')
'xyaxy'.lstrip('yx')
'éaé'.rstrip('é')
'  x  '|trim
'xxaxx'|trim('x')
5|trim
'a b  c'.split()
'  a b  c '.split()
' a b  c '.split(none, 1)
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'a,b,,c'.rsplit(',', 1)
'aXXbXXXc'.rsplit('XX')
'a,b,,c'.rsplit(',', 2)
'a,b'.split('')
''.split()
''.split(',')
'abc'.split(',')
'a b'.split(maxsplit=0)
'a\nb\r\nc\x0bd\u2028e\n'.splitlines()
''.splitlines()
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.startswith(1)
'abc'.removeprefix('a')
'abc'.removesuffix('bc')
'aaa'.replace('a', 'bb')
'aaa'.replace('a', 'b', 2)
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
'aé'.replace('', '.')
'aaa'|replace('a', 'b', 1)
5|replace(5, 6)
'-'.join(['a', 'b'])
'-'.join(['a', 1])
'-'.join('abc')
'{} {}'.format(1, 'a')
'{1} {0}'.format(1, 'a')
'{a} {b} {c}'.format(a=1, b=[2], c={'x': 3})
'{{}} {0}'.format('x')
'{} {0}'.format('x')
'}'.format()
'{}'.format()
'{'.format()
'{a}'.format(b=1)
'%s and %s' % ('a', 1)
'%s' % 'x'
'%d%%' % 5
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%s' % missing
'%s %s' % 'x'
'%s' % (1, 2)
'%d' % 'x'
'%s %s'|format('a', 'b')
'%(x)s'|format(x=1)
'%s' % [1, 2]
""", NUMBERS)

# ---- filters
CASES += prints(r"""
xs|sort
xs|sort(reverse=true)
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(case_sensitive=true)
[1, 'a']|sort
xs|first
xs|last
[]|first
[]|last
'abc'|first
'abc'|last
xs|sum
[]|sum
['a']|sum
[1.5, 2]|sum(start=10)
xs|min
xs|max
[]|max
['b', 'A']|min
['b', 'A']|min(case_sensitive=true)
xs|reverse|list
'abc'|reverse
xs|join
xs|join(', ')
'abc'|join('-')
[1, none, true]|join('|')
missing|join
5|join
xs|length
xs|count
5|length
missing|length
xs|map('string')|list
xs|map('string')|join('-')
xs|map('nope')|list
xs|map()|list
xs|select('odd')|list
xs|select('>', 1)|list
xs|reject('odd')|list
xs|select|list
[0, 1, '', 'a']|select|list
[0, 1, '', 'a']|reject|list
xs|select('odd')|length
xs|select('odd')|first
xs|select('odd')|last
xs|select('gt', 9)|first
'yes' if xs|select('gt', 9) else 'no'
'yes' if []|select('gt', 9) else 'no'
(xs|select('odd'))[0]
xs|map('abs')|sum
['a', 'b']|map('upper')|list
['a', 'b']|map('replace', 'a', 'x')|list
['a b', 'c']|map('title')|join(',')
[1, 1, 2, 'a', 'A']|unique|list
['a', 'A']|unique(case_sensitive=true)|list
[[1]]|unique|list
[1, 2, 3, 4, 5]|batch(2)|list
[1, 2, 3, 4, 5]|batch(2, 'x')|list
[1, 2, 3, 4, 5]|slice(2)|list
[1, 2, 3, 4, 5]|slice(3, 'x')|list
{'b': 1, 'A': 2, 'c': 0}|dictsort
{'b': 1, 'A': 2}|dictsort(true)
{'b': 1, 'A': 2}|dictsort(by='value')
{'b': 1, 'A': 2}|dictsort(reverse=true)
{'b': 1}|dictsort(by='x')
missing|default('x')
missing|d('x')
missing|default
''|default('x')
''|default('x', true)
none|default('x')
none|d('x', boolean=true)
'42'|int
' 42 '|int
'4_2'|int
'3.7'|int
'x'|int
'x'|int(7)
'ff'|int(base=16)
'0xff'|int(0, 16)
'0b11'|int(base=0)
3.9|int
-3.9|int
none|int
true|int
missing|int
'1e3'|int
'1.5'|float
'x'|float
'x'|float(2.5)
3|float
'inf'|float
none|float
'1_0.5'|float
3.14159|round
3.14159|round(2)
2.675|round(2)
2.5|round
3.5|round
-2.5|round
42|round
2.1|round(method='ceil')
2.15|round(1, 'floor')
2.1|round(method='x')
'a'|round
-5|abs
-5.5|abs
'a'|abs
5|string
none|string
xs|string
1.0|string
'a b  c-d'|wordcount
'a\nb\n\nc'|indent
'a\nb\n\nc'|indent(2)
'a\nb\n\nc'|indent(2, true)
'a\nb\n\nc'|indent(2, true, true)
'a\nb'|indent('> ')
'a\nb'|indent(width=1, first=true)
''|indent
5|indent
'ab'|center(6)
'<a href="x">\'&</a>'|e
'<a>'|escape|upper
'<a>'|safe
('<a>'|safe) ~ '<b>'
('<a>'|e)|e
[('<a>'|safe)]
'a b/c?é=1&d'|urlencode
{'a b': 'c/d', 'é': 1}|urlencode
[('a', 1), ('b', 2)]|urlencode
5|urlencode
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
xs|nope
xs|attr('append')
{'a': 1}|attr('a')
xs|list|length
'abc'|list
none|list
{'a': 1}|list
xs|first|string|length
xs|join(',', attribute='x')
xs|sum(attribute='x')
'a'|upper|lower|title
-1|abs
-1.5|int|abs
(-1)|abs
xs|tojson
""", NUMBERS)

CASES += prints(r"""
messages|map(attribute='role')|join(',')
messages|map(attribute='n', default=0)|list
messages|map(attribute='tags.0')|list
messages|map(attribute='tags.0', default='-')|join(' ')
messages|map(attribute='role', x=1)|list
messages|selectattr('role', 'equalto', 'user')|list|length
messages|selectattr('role', '==', 'user')|map(attribute='content')|list
messages|rejectattr('role', 'eq', 'user')|map(attribute='role')|list
messages|selectattr('n')|map(attribute='n')|list
messages|selectattr('n', 'defined')|sort(attribute='n')|map(attribute='n')|list
messages|rejectattr('n')|map(attribute='role')|list
messages|selectattr('role', 'in', ['system', 'user'])|map(attribute='role')|join(',')
messages|selectattr()|list
messages|selectattr('role', 'nope')|list
messages|groupby('role')|map('first')|list
messages|groupby('n', default=9)|map(attribute='grouper')|list
(messages|groupby('role'))[0].list|length
messages|groupby('role')|length
messages|sort(attribute='role,content')|map(attribute='content')|join(',')
messages|sort(attribute='n')|list
messages|map(attribute='n')|select('defined')|sum
messages|selectattr('n', 'defined')|sum(attribute='n')
messages|selectattr('n', 'defined')|max(attribute='n')
messages|selectattr('n', 'defined')|min(attribute='n')
messages|unique(attribute='role')|map(attribute='role')|join(',')
messages|join('|', attribute='role')
messages|last
messages[-1].content
messages[1:]|length
messages|length
messages|first|tojson
messages == messages[:]
messages[0] == {'content': 'Be.', 'role': 'system'}
messages[1] in messages[2:]
messages|reverse|map(attribute='role')|join(',')
messages|tojson(indent=2)
""", MESSAGES)

# ---- tojson
CASES += prints(r"""
d|tojson
d|tojson(indent=2)
d|tojson(indent=0)
d|tojson(indent='\t')
d|tojson(separators=(',', ':'))
d|tojson(indent=1, separators=(', ', ' : '))
d|tojson(sort_keys=true)
d|tojson(ensure_ascii=true)
d|tojson(true, 2)
'é😀<>&\'"\\/\x7f\x01\n\u2028'|tojson
'é😀<>&\'"\\/\x7f\x01\n\u2028'|tojson(ensure_ascii=true)
[]|tojson
{}|tojson
{}|tojson(indent=2)
[[], {}, [1]]|tojson(indent=2)
(1, 2)|tojson
none|tojson
true|tojson
1.0|tojson
1e22|tojson
1e-7|tojson
('inf'|float)|tojson
('nan'|float)|tojson
{1: 2, 1.5: 3, none: 4, true: 5}|tojson
{(1, 2): 3}|tojson
{1: 'a', 'b': 2}|tojson(sort_keys=true)
missing|tojson
[missing]|tojson
d.items()|tojson
range(3)|tojson
namespace()|tojson
d|tojson(nope=1)
d|tojson|length
""", NESTED)

# ---- tests
CASES += prints(r"""
1 is number
true is number
1.0 is float
1 is float
1 is integer
true is integer
true is boolean
1 is boolean
'a' is string
'a' is iterable
5 is iterable
missing is iterable
[] is sequence
'a' is sequence
{} is sequence
5 is sequence
missing is sequence
(xs|map('abs')) is sequence
(xs|map('abs')) is iterable
xs.index is callable
missing is callable
range is callable
5 is callable
{} is mapping
[] is mapping
none is none
missing is none
0 is none
true is true
1 is true
false is false
0 is false
3 is odd
-3 is odd
4 is even
2.0 is even
'a' is odd
9 is divisibleby 3
9 is divisibleby(4)
9 is divisibleby 0
1 is eq 1
1 is equalto 2
1 is == 1
1 is sameas 1
none is sameas none
[] is sameas []
true is sameas 1
2 is gt 1
2 is lessthan 1
2 is ge 2
2 is in [1, 2]
'a' is in 'abc'
2 is not in [1, 2]
'abc' is lower
'ABC' is upper
'Abc' is lower
5 is lower
'upper' is filter
'nope' is filter
'odd' is test
'<a>'|e is escaped
'<a>' is escaped
1 is not none and 2 is defined
1 is nope
1 is defined is true
xs is defined and xs is not string
not xs is defined
missing is not defined or 1/0
1 is number if true else 2
xs|length is gt 2
""", NUMBERS)

# ---- statements
T = MESSAGES
CASES += [
    ("{% for m in messages %}{{ loop.index }}/{{ loop.length }}:{{ m.role }};{% endfor %}", T),
    ("{% for m in messages %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }} {% endfor %}", T),
    ("{% for m in messages %}{{ loop.previtem.role if loop.previtem }}>{{ m.role }}>{{ loop.nextitem.role if loop.nextitem is defined }} {% endfor %}", T),
    ("{% for m in messages %}{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}", T),
    ("{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ m.content }} {% endfor %}", T),
    ("{% for m in messages if m.role == 'x' %}a{% else %}none{% endfor %}", T),
    ("{% for m in [] %}a{% else %}empty{% endfor %}", {}),
    ("{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}", {}),
    ("{% for x in [1,2] %}{% break %}{% else %}ran{% endfor %}", {}),
    ("{% for x in [1,2] %}{% continue %}{% else %}ran{% endfor %}", {}),
    ("{% for x in [1,2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}ran{% endfor %}", {}),
    ("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", NESTED),
    ("{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", NESTED),
    ("{% for k in d %}{{ k }}{% endfor %}", NESTED),
    ("{% for c in 'hé😀' %}[{{ c }}]{% endfor %}", {}),
    ("{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}", {}),
    ("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", {}),
    ("{% for a, b in [(1, 2, 3)] %}{% endfor %}", {}),
    ("{% for a, b in [(1,)] %}{% endfor %}", {}),
    ("{% for x in 5 %}{% endfor %}", {}),
    ("{% for x in none %}{% endfor %}", {}),
    ("{% for x in missing %}a{% else %}b{% endfor %}", {}),
    ("{% for x in range(3) %}{{ x }}{% endfor %}{{ x }}", {}),
    ("{% for x in 1, 2 %}{{ x }}{% endfor %}", {}),
    ("{% for x in [1] %}{{ loop }}{% endfor %}", {}),
    ("{% for x in [1,2] %}{% for y in [3,4] %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }};{% endfor %}", {}),
    ("{% for x in xs recursive %}{{ x.n }}{% if x.c %}({{ loop(x.c) }}){% endif %}{{ loop.depth }}{% endfor %}", {"xs": [{"n": 1, "c": [{"n": 2}, {"n": 3, "c": [{"n": 4}]}]}, {"n": 5}]}),
    ("{% for x in [1] %}{{ loop([2]) }}{% endfor %}", {}),
    ("{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", {}),
    ("{% for loop in [1] %}{% endfor %}", {}),
    ("{% for x in [1] %}{% set loop = 1 %}{% endfor %}", {}),
    ("{% for x in [1,2,3] if not ns.stop %}{{ x }}{% set ns.stop = x == 2 %}{% endfor %}", {}),
    ("{% set ns = namespace(stop=false) %}{% for x in [1,2,3] if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}", {}),
    ("{% set ns = namespace(stop=false) %}{% for x in [1,2,3] if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}", {}),
    ("{% set x = 1 %}{% for y in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }} {% endfor %}{{ x }}", {}),
    ("{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", {}),
    ("{% for y in [1, 2] %}{% if y == 1 %}{% set x = 'set' %}{% endif %}{{ x }};{% endfor %}", {}),
    ("{% for y in [1, 2] %}{% if y == 1 %}{% set x = 'set' %}{% endif %}{{ x }};{% endfor %}", {"x": "outer"}),
    ("{% set ns = namespace(n=0) %}{% for y in [1, 2] %}{% set ns.n = ns.n + y %}{% endfor %}{{ ns.n }}", {}),
    ("{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}{{ ns['a'] }}", {}),
    ("{% set ns = namespace(a=1) %}{% set ns._b = 1 %}", {}),
    ("{% set d = {} %}{% set d.a = 1 %}", {}),
    ("{% set missing.a = 1 %}", {}),
    ("{% set a, b = 1, 2 %}{{ a }}{{ b }}", {}),
    ("{% set (a, b) = [1, 2] %}{{ b }}{{ a }}", {}),
    ("{% set a, b = 1 %}", {}),
    ("{% set ns = namespace() %}{% set ns.a, x = 1, 2 %}{{ ns.a }}{{ x }}", {}),
    ("{% set x = 1, %}{{ x }}", {}),
    ("{% set x %}a{{ 1 + 1 }}b{% endset %}[{{ x }}]", {}),
    ("{% set x | upper %}abc{% endset %}[{{ x }}]", {}),
    ("{% set x | replace('a', 'b') | upper %}abc{% endset %}[{{ x }}]", {}),
    ("{% set x %}{% set y = 1 %}{% endset %}[{{ y }}]", {}),
    ("{% for i in [1,2] %}{% set x %}{% if i == 2 %}{% break %}{% endif %}a{% endset %}{{ x }}{% endfor %}", {}),
    ("{% filter upper %}abc {{ 'x' }}{% endfilter %}", {}),
    ("{% filter replace('a', 'b')|upper %}abc{% endfilter %}", {}),
    ("{% filter indent(2) %}a\nb{% endfilter %}", {}),
    ("{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", {}),
    ("{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}", {}),
    ("{% if x %}a{% elif y %}b{% else %}c{% endif %}", {"y": 1}),
    ("{% if x is defined and x %}a{% endif %}", {"x": [0]}),
    ("{% if not x %}a{% elif y %}b{% endif %}", {"x": 0}),
    ("{% if 0.0 %}a{% elif '' %}b{% elif {} %}c{% elif [] %}d{% elif none %}e{% else %}f{% endif %}", {}),
    ("{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=5, a=4) }}", {}),
    ("{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}", {}),
    ("{% macro f(a) %}[{{ a }}]{{ a is defined }}{% endmacro %}{{ f() }}", {}),
    ("{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", {}),
    ("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", {}),
    ("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", {}),
    ("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", {}),
    ("{% macro f(a) %}{{ varargs|length }}{{ kwargs.x }}{% endmacro %}{{ f(1, 2, 3, x=3) }}", {}),
    ("{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}", {}),
    ("{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", {}),
    ("{% macro f() %}{% set y = 1 %}{% endmacro %}{{ f() }}[{{ y }}]", {}),
    ("{% macro f() -%} a {%- endmacro %}[{{ f() }}]{{ f.name }}", {}),
    ("{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in{% endcall %}", {}),
    ("{% macro f() %}{% for i in [1,2] %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) f() %}[{{ x }}]{% endcall %}", {}),
    ("{% macro f() %}{{ caller is defined }}{{ caller() }}{% endmacro %}{{ f() }}", {}),
    ("{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}", {}),
    ("{% macro f(a, a2) %}{{ a }}{{ a2 }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'a2': 4}) }}{{ f(1, *[5]) }}", {}),
    ("{% macro f(a=1, b) %}{% endmacro %}", {}),
    ("{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}", {}),
    ("{% set ns = namespace() %}{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{% set ns.f = f %}{% endfor %}{{ ns.f is callable }}", {}),
    ("{% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}", {}),
    ("{% macro f() %}a{% endmacro %}{{ f() + 'b' }}{{ f()|upper }}{{ f()|length }}", {}),
    ("{% macro f(x) %}{{ x }}{% endmacro %}{{ f(f(1) ~ 2) }}", {}),
    ("{% generation %}a{{ 1 }}{% endgeneration %}b", {}),
    ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", {}),
    ("{% for i in [1] %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", {}),
    ("{%- for m in messages %}\n  {%- if m.role == 'user' %}\n    {%- generation %}{{ m.content }}{% endgeneration %}\n  {%- endif %}\n{%- endfor %}", T),
    ("{{ raise_exception('No: é \"x\"') }}", {}),
    ("{% if true %}{{ raise_exception('Deep ' + messages[0].role) }}{% endif %}", T),
    ("a\n{{ raise_exception('x') }}", {}),
    ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{% set _ = c.reset() %}{{ c.next() }}", {}),
    ("{{ cycler() }}", {}),
    ("{% set j = joiner(' | ') %}{{ j() }}a{{ j() }}b{{ j() }}c", {}),
    ("{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S') }}|{{ strftime_now('%A, %B %-d %j %y %I %p %%') }}", {}),
    ("{{ strftime_now('é %d') }}", {}),
    ("{% set g = [1, 2]|map('string') %}{{ g|list }}{{ g|list }}", {}),
    ("{% set g = [1, 2]|map('string') %}{% for x in g %}{{ x }}{{ loop.length }}{% endfor %}", {}),
    ("{% set g = [1, 2, 3]|select('odd') %}{{ g|first }}{{ g|first }}", {}),
    ("{% set x = {'a': {'b': [1, {'c': 'deep'}]}} %}{{ x.a.b[1].c }}{{ x['a']['b'].1['c'] }}", {}),
    ("{% set a = [1] %}{% set a = a + [2] %}{{ a }}", {}),
    ("{% set items = ['x'] %}{% for items in items %}{{ items }}{% endfor %}", {}),
    ("{{ namespace(a=1) }}", {}),
    ("{{ messages[0]['role'] }}{{ messages[0].get('content') }}{{ messages[-1]['nope'] }}", T),
    ("{{ messages[0].content.split('.')[0].lower() }}", T),
    ("{{ (messages|map(attribute='content')|list)[-1] }}", T),
    ("{{ x|default({'a': 1})['a'] }}", {}),
    ("{% for m in messages[::-1] %}{{ messages|length - loop.index0 }}{{ m.role[0] }}{% endfor %}", T),
    ("{% if (messages[0].role == 'user') != (loop_index % 2 == 0) %}a{% else %}b{% endif %}", {**T, "loop_index": 3}),
    # unknown names of filters and tests: at once, or only where they are reached
    ("{{ 1|nope }}", {}),
    ("{% if false %}{{ 1|nope }}{% endif %}ok", {}),
    ("{% if true %}{{ 1|nope }}{% endif %}ok", {}),
    ("{{ 1|nope if false else 'ok' }}", {}),
    ("{{ 1|nope if true else 'ok' }}", {}),
    ("{{ 'ok' if 1 else 1 is nope }}", {}),
    ("{{ [1|nope] if 0 else [2|nope2 if 0] }}", {}),
    ("{{ 1|nope }}{{ 2|nope if 0 }}", {}),
    ("{% if false %}{% for x in [1] %}{{ x|nope }}{% endfor %}{% endif %}", {}),
    ("{% if false %}{{ 1 is nope }}{% endif %}ok", {}),
    # syntax errors
    ("{% if %}a{% endif %}", {}),
    ("{% if x %}a", {}),
    ("{% endif %}", {}),
    ("{% nope %}", {}),
    ("{% for x in %}{% endfor %}", {}),
    ("{% for x %}{% endfor %}", {}),
    ("{{ 1 + }}", {}),
    ("{{ (1 }}", {}),
    ("{{ [1, 2 }}", {}),
    ("{{ {'a' 1} }}", {}),
    ("{{ }}", {}),
    ("{{ 'abc }}", {}),
    ("{{ 1 2 }}", {}),
    ("{{ a b }}", {}),
    ("{{ a.b. }}", {}),
    ("{{ a. }}", {}),
    ("{{ f(a=1, 2) }}", {}),
    ("{{ f(a=1, a=2) }}", {}),
    ("{{ x[1:2, 3] }}", {}),
    ("{{ x[] }}", {}),
    ("{{ @ }}", {}),
    ("{{ 1 $ 2 }}", {}),
    ("{{ 1; }}", {}),
    ("{{ ] }}", {}),
    ("{{ 012 }}", {}),
    ("{{ 1abc }}", {}),
    ("{{ 1.e }}", {}),
    ("{% set 1 = 2 %}", {}),
    ("{% set true = 2 %}", {}),
    ("{% set x.y.z = 2 %}", {}),
    ("{% set x['a'] = 2 %}", {}),
    ("{% set [a] = [1] %}", {}),
    ("{% break %}", {}),
    ("{% for x in [1] %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}", {}),
    ("{% macro f %}{% endmacro %}", {}),
    ("{% call 1 %}{% endcall %}", {}),
    ("{% raw %}a", {}),
    ("a {# b", {}),
    ("{{ 'a' is }}", {}),
    ("{{ '\\ud800' }}", {}),
    ("{{ '\\u12' }}", {}),
    ("{% else %}", {}),
    ("{% for x in [1] %}{% else %}{% else %}{% endfor %}", {}),
    ("{% include 'x' %}", {}),
]

# ---- white space, comments, raw
CASES += [
    ("a\n", {}),
    ("a\n\n", {}),
    ("a\r\nb\rc\n", {}),
    ("  {% if true %}\n  a\n  {% endif %}\n  b", {}),
    ("x {% if true %}\n  a\n  {% endif %} y\n  b", {}),
    ("  {%+ if true %}\n  a\n  {%+ endif +%}\n  b", {}),
    ("a  \n  {%- if true -%}  \n  b  \n  {%- endif -%}  \n  c", {}),
    ("a {{- 1 -}} b", {}),
    ("a \n\n {{- 1 -}} \n\n b", {}),
    ("{{ 1 }}\n{{ 2 }}\n", {}),
    ("{{+ 1 }}", {}),
    ("{{ -1 -}} x", {}),
    ("{{- -1 }}", {}),
    ("a\n  {# comment #}\nb", {}),
    ("a\n  {#- comment -#}\n  b", {}),
    ("a {# x #} b", {}),
    ("a {#+ x +#}\nb", {}),
    ("{# a {{ b }} {% c %} #}d", {}),
    ("{#-#}x{#--#}y", {}),
    ("{#", {}),
    ("{##}x", {}),
    ("a\u00a0\u2003{%- if true %}b{% endif -%}\u3000c", {}),
    ("\u00a0{% if true %}b{% endif %}", {}),
    ("{% raw %}{{ a }}{% b %}{# c #}{% endraw %}", {}),
    ("a\n  {% raw %}\n  x\n  {% endraw %}\nb", {}),
    ("a  {%- raw -%}  x  {%- endraw -%}  b", {}),
    ("{% raw %} {% endraw x %} {%endraw%}", {}),
    ("{% raw -%}\n a {%+ endraw +%}\nb", {}),
    ("{%raw%}{%endraw%}{%if 1%}a{%endif%}", {}),
    ("{% if true %}\n\n\na{% endif %}", {}),
    ("\n\n{% if true %}a{% endif %}", {}),
    ("{% set x = 1 %}\n{{ x }}\n\n", {}),
    ("{%- set x = 1 -%}\n\n {{ x }}", {}),
    ("a{% if true -%}\n b {%- endif %}c\n{%- if true %} d {% endif %}", {}),
    ("{{ '%}' }}{{ '}}' }}{{ \"{{ x }}\" }}", {}),
    ("{{ {'a': {'b': 1}}['a']['b'] }}", {}),
    ("{{ {'a': {}}}}", {}),
    ("{% if {'a':1}.a %}x{% endif %}", {}),
    ("{", {}),
    ("{ { % }", {}),
    ("}} %} #}", {}),
    ("{{ 'a\nb' }}", {}),
    ("{{ 'a\r\nb'|length }}", {}),
    ("{{ 'a\\\nb' }}", {}),
    ("{%if true%}a{%else%}b{%endif%}", {}),
    ("{% if true: %}a{% endif %}", {}),
    ("{{x}}{{\tx\n}}", {"x": "v"}),
    ("\ufeffa", {}),
    ("é{{ 'é' }}{{ é }}", {"é": "1"}),
    ("{{ x.é }}", {"x": {"é": 2}}),
    ("{{ s }}", {"s": "a\u0000b\u001f\u007f"}),
    ("{{ [s] }}", {"s": "a\u0000b\u001f\u007f\u0085\u00ad\u2028\ufeff\U000e0001"}),
    ("{{ x }}|{{ x|tojson }}", {"x": {"i": -9223372036854775808, "f": 1.7976931348623157e308, "g": 5e-324, "n": None}}),
    ("", {}),
    ("   ", {}),
    ("\n", {}),
    ("   {% if true %}x{% endif %}   \n", {}),
    ("{% for x in [1,2] %}\n  {{ x }}\n{% endfor %}\nend", {}),
    ("{% for x in [1,2] -%}\n  {{ x }}\n{%- endfor %}\nend", {}),
    ("\t{% if true %}\tx\t{% endif %}\t", {}),
]
