"""Rows of numbers whose rule is told, their sums, how many numbers they have, and which rule they follow."""

from __future__ import annotations

import random

from .about_numbers import rule
from .arithmetic import Worked, apply, chain
from .grammar import Patterns
from .numbers import Value, in_words, ordinal, require
from .question import Short, computed, said, topic
from .things import person

_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()


def _nth(rng: random.Random, n: int) -> str:
    return _ORDINALS[n] if n <= 12 and rng.random() < 0.5 else ordinal(n)


_TOLD = Patterns("""
    [Each|Every] [number|term|value|one] is {r}. The first [number |term |one |]is {a}. [What is the {n}|The {n} one|What's the {n} number|Which is the {n}|{n}][?|]
    [The first|The first number|First term|First number] is {a}[, | and ][each|every] [next|following|later] [one|number|term] is {r}. [What is the {n}|What's the {n} number|The {n}|Find the {n}][?|.|]
    [Start|Begin] [with|at|from] {a} and {v} [each|every] time. [What is the {n} number|The {n} number|Which number comes {n}|What's the {n}][?|]
    [Start|Begin] [with|at] {a} and keep {g}. [What is the {n} number|The {n} number|Which number comes {n}|What's the {n}][?|]
    [A|The] [row|list|sequence|pattern] [starts|begins] [with|at] {a}; [the rule is to|rule:|the rule:|you always] {v}. [What is the {n} number|Find the {n} number|The {n} term][?|.|]
    [What is|Find|What's] the {n} [number|term] [of|in] [a|the] [row|list|sequence|pattern] that starts with {a} [where|in which] [each|every] [number|term] is {r}[?|]
    [rule|Rule|pattern|Pattern]: {v}. [start|first number|first|starting number]: {a}. {n} [number|term|one][?|]
    [If|When] the first [number|term] is {a} and you {v} to get the next, what is the {n}[?| number?]
""")


@topic(2.5)
def rows_by_rule(rng: random.Random) -> Short:
    """The rule in words: products one by one, sums by the number of steps."""
    kind = rng.randrange(6)
    n = rng.randint(3, 6 if kind < 3 else 12)
    d = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20, 25))
    if kind < 2:
        a, operator, b = rng.randint(1, 12), "*", rng.choice((2, 2, 2, 3, 3, 4, 5, 10))
        require(a * b ** (n - 1) <= 5000)
        name = {2: ("double", "twice", "doubling"), 3: ("triple", "three times", "tripling")}.get(b, (None, f"{b} times", f"multiplying by {b}"))
        r = rng.choice((f"{name[1]} the one before", f"{name[1]} the last one", f"{name[0] or name[1]} the one before", f"{name[1]} as big as the one before"))
        r = r.replace("double as big", "twice as big").replace("triple as big", "three times as big")
        v = rng.choice((f"multiply by {b}", f"{name[0]} it" if name[0] else f"multiply it by {b}"))
        g = name[2]
    elif kind == 2:
        b, operator = rng.choice((2, 2, 2, 3, 10)), "/"
        a = rng.randint(1, 10) * b ** (n - 1)
        r = {2: "half the one before", 3: "a third of the one before", 10: "a tenth of the one before"}[b]
        v, g = (rng.choice(("halve it", "divide by 2")), "halving") if b == 2 else (f"divide by {b}", f"dividing by {b}")
    elif kind < 5:
        a, operator, b = rng.randint(1, 50), "+", d
        r = rng.choice((f"{d} more than the one before", f"{d} more than the last", f"{d} larger than the one before it", f"{d} bigger than the previous one"))
        v, g = rng.choice((f"add {d}", f"add {d} to the last one")), f"adding {d}"
    else:
        operator, b = "-", d
        a = d * n + rng.randint(0, 40)
        r = rng.choice((f"{d} less than the one before", f"{d} smaller than the one before it", f"{d} less than the last"))
        v, g = rng.choice((f"subtract {d}", f"take away {d}")), f"subtracting {d}"
    text = _TOLD.expand(rng, a=a, n=_nth(rng, n), r=r, v=v, g=g)
    text = text[0].upper() + text[1:]
    if operator in "*/":
        return computed(text, chain(a, *((operator, b),) * (n - 1)))
    steps = chain(n, ("-", 1), ("*", d))
    end = apply(operator, a, steps.value)
    return computed(text, Worked(steps.lines + end.lines, end.value))


_FALLING = Patterns("""
    {l}[, ...|...|, and so on|] [what|which] is the {n} [number|term][?|]
    {l}[, ...|...|, and so on]: [the |]{n} [number|term|one][?|]
    [What is|Find|What's|Which is|Tell me] the {n} [number|term] [of|in] {l}[, ...|...|, and so on][?|]
    [The|A] [row|list|sequence|pattern] [goes|is|starts] {l}[, ...|...]. [What is the {n} number|The {n} term|Find the {n} one][?|]
    [Counting|I am counting|We count] {l}[, ...|...][ what is|. What is|; what is] the {n} number [I say|you say|we say|][?|]
""")
_BACKWARDS = Patterns("""
    [I|We|{x} and I] count [backwards|down|back] from {a} [by|in] {k}: {l}[...|, ...][ what's next| what comes next| next][?|]
    [Count|Counting|Go] [backwards|down|back] [by|in] {k}: {l}, [what's next|what comes next|next|then][?|]
    [Count|Counting] [down|back] from {a} [by|in steps of] {d}: {l}, [what's next|what comes next|next][?|]
    {l}, [what comes next when I count down by {d}|next, going down by {k}|what is next, counting back in {k}][?|]
""")
_FORWARDS = Patterns("""
    [I|We|{x} and I] count [up|] [by|in] {k}: {l}[...|, ...][ what's next| what comes next| next][?|]
    [Count|Counting|Skip counting] [by|in] {k}: {l}, [what's next|what comes next|next|then][?|]
    [Count|Counting] [up|] from {a} [by|in steps of] {d}: {l}, [what's next|what comes next|next][?|]
    {l}, [what comes next when I count by {d}|next, going up by {k}|what is next, counting in {k}][?|]
""")


@topic(2.5)
def rows_counted(rng: random.Random) -> Short:
    """Rows that fall, to their nth number; and rows of which it is said how they are counted."""
    d = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 15, 20, 25, 50, 100))
    up, count = rng.random() < 0.4, rng.choice((3, 3, 4))
    if rng.random() < 0.5:
        n = rng.randint(count + 1, 12)
        a = rng.randint(1, 40) if up else d * n + rng.choice((0, 0, rng.randint(0, 50)))
        values: list[Value] = [a + d * i if up else a - d * i for i in range(count)]
        steps = chain(n, ("-", 1), ("*", d))
        end = apply("+" if up else "-", a, steps.value)
        lines = (f"{max(values[:2])} - {min(values[:2])} = {d}", *steps.lines, *end.lines)
        return computed(_FALLING.expand(rng, l=", ".join(map(str, values)), n=_nth(rng, n)), Worked(lines, end.value))
    a = rng.choice((0, d, rng.randint(1, 30))) if up else d * rng.randint(4, 9) + rng.randint(0, 30)
    values = [a + d * i if up else a - d * i for i in range(count)]
    k = rng.choice((f"{d}s", f"{d}s", f"{d}'s", _by(d)))
    patterns = _FORWARDS if up else _BACKWARDS
    text = patterns.expand(rng, l=", ".join(map(str, values)), a=a, d=d, k=k, x=person(rng))
    return computed(" ".join(text.split()), rule(values))


def _by(d: int) -> str:
    word = in_words(d)
    return word[:-1] + "ies" if word.endswith("y") else word + ("es" if word.endswith("x") else "s")


_SUM_FROM = Patterns("""
    [What is|Find|what's|Calculate] the sum of [all |][numbers|the numbers|whole numbers|the whole numbers|integers] from {a} to {b}[?|.|]
    [Add|Sum|Total] [up |][all |][numbers|the numbers|the integers] from {a} to {b}[.|]
    {a} + {c} + ... + {b}[?|=| =|]
    {a}+{c}+...+{b}[?|=|]
    [How much|What] [do|are] [all |]the numbers {a} to {b} [add up to|make together|together][?|]
""")
_AVERAGE_FROM = Patterns("""
    [What is|Find|what's|Calculate|] [the |]average of [all |][numbers|the numbers|whole numbers|the whole numbers|integers] from {a} to {b}[?|]
    [What is|Find|what's|] [the |]mean of [the |all |][integers|numbers|whole numbers] {a} to {b}[?|]
    [average|mean] of {a}, {c}, ..., {b}[?|]
""")
_SUM_OF = Patterns("""
    [What is|Find|what's|Calculate|] [the |]sum of the first {n} [terms|numbers] of {l}, ...[?|]
    {l}, ...[: |. |, ][sum of the first {n}|add up the first {n}|the first {n} together|total of the first {n} terms][?|]
    [Add|Sum] [up |]the first {n} [terms|numbers] of {l}, ...[.|]
""")
_SUM_TO = Patterns("""
    [What is|Find|what's|Calculate|] [the |]sum of the first {n} [numbers|natural numbers|positive integers|whole numbers|counting numbers][?|]
    [add|Add|sum|total] [up |][all |][numbers|the numbers|the whole numbers] [from 1 to {n}|up to {n}|1 to {n}][.|?|]
    [1 + 2 + 3 + ... + {n}|1+2+3+...+{n}|1 + 2 + 3 and so on up to {n}][?|=| =|]
    [1 to {n}|one to {n}] [added up|summed|all added][?|]
    [How many|What number of] [cans|logs|dots|bricks] are in a [triangle|stack|pile|pyramid] with rows of 1, 2, 3, ... up to {n}[?|]
    {x} puts 1 [coin|cent|bead] in a jar on day one, 2 on day two, 3 on day three and so on. How many after {n} days[?|]
""")


@topic(2.5)
def sums_of_rows(rng: random.Random) -> Short:
    kind = rng.randrange(6)
    if kind < 2:
        n = rng.choice((4, 5, 6, 7, 8, 9, 10, 10, 12, 15, 20, 20, 25, 30, 40, 50, 100))
        text = _SUM_TO.expand(rng, n=n, x=person(rng))
        return computed(text[0].upper() + text[1:], chain(n, ("*", n + 1), ("/", 2)))
    a, count = rng.randint(2, 30), rng.randint(3, 12)
    b = a + count - 1
    if kind == 2:
        ends = apply("+", a, b)
        end = apply("/", ends.value, 2)
        if rng.random() < 0.4:
            a, b = 1, rng.choice((5, 7, 9, 10, 11, 15, 20, 99, 100))
            ends = apply("+", a, b)
            end = apply("/", ends.value, 2)
        text = _AVERAGE_FROM.expand(rng, a=a, b=b, c=a + 1).strip()
        return computed(text[0].upper() + text[1:], Worked(ends.lines + end.lines, end.value))
    if kind == 3:
        number = chain(b, ("-", a), ("+", 1))
        ends = apply("+", a, b)
        end = chain(ends.value, ("*", count), ("/", 2))
        text = _SUM_FROM.expand(rng, a=a, b=b, c=a + 1)
        return computed(text, Worked(number.lines + ends.lines + end.lines, end.value))
    n, d, first = rng.randint(4, 8), rng.randint(1, 10), rng.randint(1, 12)
    values = [first + d * i for i in range(n)]
    if rng.random() < 0.25:
        values = [first * 2**i for i in range(n)]
        require(n <= 6)
    listed = ", ".join(map(str, values[:3]))
    worked = chain(values[0], *(("+", v) for v in values[1:]))
    text = _SUM_OF.expand(rng, n=n, l=listed).strip()
    return computed(text[0].upper() + text[1:], Worked((", ".join(map(str, values)), *worked.lines), worked.value))


_HOW_MANY = Patterns("""
    [How many|How many of the] [numbers|terms] are [there |]in {l}, ..., {z}[?|]
    {l}, ..., {z}[: |. |, ]how many [numbers|terms][?| is that?| are there?]
    [Count the|Number of] [terms|numbers] in {l}, ..., {z}[.|]
    [How many|What number of] terms [does|has] {l} ... {z}[ have|][?|]
    from {a} to {z} in steps of {d}[: |, ]how many numbers[?| is that?]
""")
_WHICH_PLACE = Patterns("""
    {l}, ...[: |. |, ][at which place is|which term is|on which position stands] {z}[?|]
    [Which term|Which place|What position] [of|in] {l}, ... is {z}[?|]
""")


@topic(0.8)
def lengths_of_rows(rng: random.Random) -> Short:
    a, d, n = rng.randint(1, 20), rng.choice((2, 3, 4, 5, 6, 7, 10, 10)), rng.randint(5, 15)
    if rng.random() < 0.4:
        a = d
    z = a + d * (n - 1)
    patterns = _HOW_MANY if rng.random() < 0.65 else _WHICH_PLACE
    text = patterns.expand(rng, l=f"{a}, {a + d}, {a + 2 * d}", z=z, a=a, d=d)
    worked = chain(z, ("-", a), ("/", d), ("+", 1))
    first = () if "steps of" in text else (f"{a + d} - {a} = {d}",)
    return computed(text[0].upper() + text[1:], Worked(first + worked.lines, worked.value))


_WHAT_RULE = Patterns("""
    [What is|What's|Find|Tell me|Which is] the [rule|pattern] [in|of|behind|for] {l}[?|.|, ...?|]
    {l}[: |. |, ][what is the rule|what's the rule|which rule|what is the pattern|rule][?|]
    [How|In which way|By what rule] is {l} [made|built|formed][?|]
    [What|Which] rule does {l} follow[?|]
    [What happens|What is done] at [each|every] step [in|of] {l}[?|]
""")
_STEP_SIZE = Patterns("""
    [What is|What's|Find|Tell me] the [common difference|step|difference between the terms|gap between the numbers] [in|of] {l}[?|.|, ...?|]
    {l}[: |. ][by how much does it go {w}|how big is each step|what is the step|common difference][?|]
    [By how much|How much] does {l} go {w} each time[?|]
""")


@topic(1)
def rules_of_rows(rng: random.Random) -> Short:
    kind, count = rng.randrange(5), rng.choice((3, 4, 4))
    if kind < 3:
        d, up = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 25)), rng.random() < 0.65
        a = rng.randint(1, 30) if up else d * count + rng.randint(0, 40)
        values = [a + d * i if up else a - d * i for i in range(count)]
        lines = [f"{max(p, q)} - {min(p, q)} = {d}" for p, q in zip(values[:2], values[1:3], strict=True)]
        listed = ", ".join(map(str, values))
        if rng.random() < 0.4:
            return said(_STEP_SIZE.expand(rng, l=listed, w="up" if up else "down"), lines[0], d)
        return said(_WHAT_RULE.expand(rng, l=listed), "\n".join([*lines, f"{'Add' if up else 'Subtract'} {d}"]), d)
    ratio, a = rng.choice((2, 2, 3, 4, 5, 10)), rng.randint(1, 9)
    up = kind == 3
    values = [a * ratio**i for i in range(count)]
    if not up:
        values.reverse()
    lines = [f"{max(p, q)} / {min(p, q)} = {ratio}" for p, q in zip(values[:2], values[1:3], strict=True)]
    return said(_WHAT_RULE.expand(rng, l=", ".join(map(str, values))),
                "\n".join([*lines, f"{'Multiply' if up else 'Divide'} by {ratio}"]), ratio)


_GROWING = Patterns("""
    [A|The] [theater|hall|stadium|cinema] has {a} seats in [the first row|row one|row 1] and {d} more in [each|every] [row behind it|next row|following row]. How many [seats |][are |]in [the {n} row|row {k}][?|]
    {x} does {a} [push-ups|sit-ups|squats|laps] on [the first day|day one|day 1] and {d} more [each|every] [next day|day after that|day]. How many on [the {n} day|day {k}][?|]
    {x} saves ${a} in [week one|the first week] and ${d} more [each|every] [week than before|following week]. How much in [the {n} week|week {k}][?|]
    [The first|Floor one, the first] [shelf|step|box] holds {a} [books|stones|jars], [each|every] [next one|further one] {d} more. How many [are |]in the {n}[?|]
    [pattern|figure|picture|shape] 1 has {a} [dots|squares|sticks|matches], [each|every] [next|new] one {d} more. How many [dots|squares|sticks|matches|are there] in [pattern|figure|picture|shape] {k}[?|]
    On the {n} [day|step], how many, if [it|the row|the game] starts with {a} and grows by {d} [each time|every time][?|]
    the first [house|locker|door] [is|has] number {a}, [each|every] next number is {d} [higher|more]. [Number of the {n}|What number has the {n}|The {n} one][?|]
""")


@topic(1)
def rows_in_stories(rng: random.Random) -> Short:
    a, d, n = rng.randint(2, 30), rng.randint(2, 10), rng.randint(3, 12)
    text = _GROWING.expand(rng, a=a, d=d, n=_nth(rng, n), k=n, x=person(rng))
    for same in (("pattern", "figure", "picture", "shape"), ("dots", "squares", "sticks", "matches")):
        words = [word for word in same if word in text.lower()]
        if len(words) == 2:  # one noun in both places
            text = text.replace(words[1], words[0])
    steps = chain(n, ("-", 1), ("*", d))
    end = apply("+", a, steps.value)
    return computed(text[0].upper() + text[1:], Worked(steps.lines + end.lines, end.value))


_BOTH_BEFORE = Patterns("""
    [Each|Every] number is the sum of the two before it. [The first two are|It starts with|It begins|First two:] {a} and {b}. [What is the {n}|What's the {n} number|The {n}|Find the {n} one][?|.|]
    {a}, {b}, then always [the sum of|add] the last two[. |: |; ][What is the {n} number|The {n} number|Which is the {n}][?|]
    [Start|Begin] with {a} and {b}; each [next|new] number is the sum of the [last|previous] two. [What is the {n}|The {n} number][?|]
    [What is|Find] the {n} number [if|when] the first two are {a} and {b} and each [next|later] one [adds up|is the sum of] the two before[?|]
    [A|The] [Fibonacci-like|Fibonacci] row [that |]starts [with |]{a}, {b}[. What is|: what is|,] [the |]{n} number[?|]
""")


@topic(0.8)
def rows_of_sums(rng: random.Random) -> Short:
    a, b, n = rng.randint(1, 6), rng.randint(1, 6), rng.randint(4, 8)
    lines: tuple[str, ...] = ()
    p, q = a, b
    for _ in range(n - 2):
        step = apply("+", p, q)
        lines, p, q = lines + step.lines, q, p + q
    text = _BOTH_BEFORE.expand(rng, a=a, b=b, n=_nth(rng, n))
    require("Fibonacci" not in text or "Fibonacci-like" in text or (a, b) in ((1, 1), (1, 2), (2, 3)))
    return Short(text, "\n".join(lines), str(q), q)


_GAP_ASK = Patterns("""
    {l}
    {l}[: | - |. ][what is missing|which number is missing|missing number|fill in|what goes in the gap][?|]
    [Fill the gap|Fill in|Find the missing number|What is missing|Complete][:|?] {l}
    [Which|What] number [is missing in|fits in|belongs in] {l}[?|]
    [what|which] number should replace the [question mark|blank|gap] [in|here:] {l}[?|]
    {l}[. |; ]the missing one is[?| what?]
""")


@topic(1)
def gaps_in_products(rng: random.Random) -> Short:
    """`3, 6, __, 24`."""
    ratio, count, a = rng.choice((2, 2, 2, 3, 3, 4, 5, 10)), rng.choice((4, 4, 5)), rng.randint(1, 9)
    values = [a * ratio**i for i in range(count)]
    up = rng.random() < 0.7
    if not up:
        values.reverse()
    require(max(values) <= 20_000)
    at = rng.randrange(1, count - 1)
    pair = values[:2] if at > 1 else values[at + 1:at + 3]
    require(len(pair) == 2)
    shown = [rng.choice(("_", "__", "?", "___", "?")) if i == at else str(v) for i, v in enumerate(values)]
    end = apply("*" if up else "/", values[at - 1], ratio)
    lines = (*apply("/", max(pair), min(pair)).lines[-1:], *end.lines)
    return computed(_GAP_ASK.expand(rng, l=", ".join(shown)), Worked(lines, end.value))
