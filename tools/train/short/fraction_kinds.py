"""Fractions of other kinds: mixed numbers, the fraction left, parts as fractions, equal fractions, ratios."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, fraction_apply
from .expressions import _fraction_words, _proper
from .grammar import Patterns
from .numbers import require
from .question import Short, said, topic
from .things import person, plural, two_people

_CALCULATE = Patterns("""
    {e}
    {e}
    {e}[=|?| =| = ?| is what?| equals| as a mixed number|: simplify]
    [What is|what's|How much is|Calculate|Compute|Work out|Find|Simplify|Solve|whats] {e}[?|.|]
    [Add up|Work out|The answer to|Result of|I need] {e}[.|?|]
    [What do you get for|Do you know|Can you do|help me with] {e}[?|]
""")
_MIXED_STORY = {
    "+": Patterns("""
        [A recipe|The dough|My cake] [takes|needs|uses] {p} cups of [flour|milk|oats] and {q} cups of [sugar|water|nuts]. [How many cups in all|Cups in all|How many cups is that|Total][?|]
        {x} [walked|ran|rode|hiked] {p} [miles|km|hours] on {day} and {q} [miles|km|hours] [the next day|after lunch|later]. [How many in all|In all|Total|Altogether][?|]
        One [board|rope|ribbon|pipe] is {p} [feet|m|yards] long, another {q}. [How long are they together|Total length|Together][?|]
        {p} pizzas and {q} more pizzas [are|make] how many[?|]
    """),
    "-": Patterns("""
        {x} had {p} [meters|yards|feet] of [rope|cloth|ribbon] and used {q}. [How much is left|What's left|How many are left|Left][?|]
        There were {p} [pizzas|pies|cakes]; {q} [were|got] eaten. [What's left|How many are left|How much is left][?|]
        From a [jug|can|bottle] with {p} [liters|cups|pints] {q} [were|are] poured out. [What remains|How much is still in it|Left][?|]
        {x} [studied|worked|slept|ran] {p} hours and {y} {q}. How many more hours did {x} [study|work|sleep|run][?|]
    """),
}


def _mixed_text(rng: random.Random, whole: int, top: int, bottom: int) -> str:
    if (top, bottom) == (1, 2) and rng.random() < 0.12:
        return f"{whole} and a half"
    return f"{whole} {top}/{bottom}"


def _as_mixed(value: Fraction) -> str:
    """`15/4 = 3 3/4`; nothing to add to a whole number or a proper fraction."""
    whole, top = divmod(value.numerator, value.denominator)
    return f"{value} = {whole} {top}/{value.denominator}" if whole and top else ""


@topic(3)
def mixed_numbers(rng: random.Random) -> Short:
    """`1 1/2 + 2 1/4`: as improper fractions, and back."""
    (a, b), (c, d) = _proper(rng), _proper(rng)
    if rng.random() < 0.5:
        d = b
        c = rng.randint(1, d - 1)
    require(Fraction(a, b).denominator == b and Fraction(c, d).denominator == d and b * d <= 60)
    m, n = rng.randint(1, rng.choice((3, 9))), rng.randint(0, rng.choice((2, 3, 6)))
    operator = rng.choice("+++--*/") if n else rng.choice("+-*")
    left, right = Fraction(m * b + a, b), Fraction(n * d + c, d)
    require(operator != "-" or left > right)
    require(operator in "+-" or b * d <= 20 and m <= 4 and n <= 3)
    first = (m * b + a, b)
    second = (n * d + c, d)
    p, q = _mixed_text(rng, m, a, b), _mixed_text(rng, n, c, d) if n else f"{c}/{d}"
    worked = fraction_apply(operator, first, second)
    lines = [f"{m} {a}/{b} = {first[0]}/{b}"] + ([f"{n} {c}/{d} = {second[0]}/{d}"] if n else []) + list(worked.lines)
    back = _as_mixed(worked.value)
    answer = back.split(" ")[-1] if back else str(worked.value)
    if operator in "+-" and n and rng.random() < 0.35:
        x, y = person(rng), person(rng)
        text = _MIXED_STORY[operator].expand(rng, p=p, q=q, x=x, y=y, day=rng.choice(("Monday", "Friday", "Sunday", "day one")))
    else:
        sign = {"+": rng.choice((" + ", " + ", "+", " plus ", " and ")), "-": rng.choice((" - ", " - ", " minus ")),
                "*": rng.choice((" * ", " x ", " times ")), "/": rng.choice((" / ", " divided by ", " ÷ "))}[operator]
        require(sign != " and " or "and" not in p + q)
        text = _CALCULATE.expand(rng, e=f"{p}{sign}{q}")
    return Short(text, "\n".join([*lines, back] if back else lines), answer)


_IMPROPER = Patterns("""
    [Write|Express|Give|Turn|Convert|Change] {p} [as|to|into] an improper fraction[.|]
    {p} [as|in the form of|to] [an improper fraction|a single fraction|a fraction][?|]
    [What is|what's] {p} as [an improper|a top-heavy|a single] fraction[?|]
    [How many {k} are|How many {k} are there] in {p}[?|]
""")


@topic(0.7)
def improper_fractions(rng: random.Random) -> Short:
    whole, (a, b) = rng.randint(1, 9), _proper(rng)
    require(Fraction(a, b).denominator == b)
    text = _IMPROPER.expand(rng, p=f"{whole} {a}/{b}", k=_fraction_words(2, b).removeprefix("two "))
    top = whole * b + a
    lines = [f"{whole} * {b} = {whole * b}", f"{whole * b} + {a} = {top}"]
    if text.startswith("How many"):
        return said(text, "\n".join(lines), top)
    return said(text, "\n".join([*lines, f"{whole} {a}/{b} = {top}/{b}"]), f"{top}/{b}")


_LEFT = Patterns("""
    [I|{x}|We] [ate|used|took|gave away] {a} of [the|] {b} [slices|pieces|parts] of [a|the] [pizza|cake|pie|chocolate bar]. [What|Which] [fraction|part] is [left|still there|not gone][?|]
    [A|The] [pizza|cake|pie|bar] [has|is cut into|had] {b} [equal |][slices|pieces|parts][, | and ]{a} [are|were] [eaten|gone|taken]. [What|Which] [fraction|part] [of it |][is left|remains][?|]
    {b} slices, {a} eaten[: |. |, ][what fraction is left|which fraction remains|fraction left|what part is still there][?|]
    [What|Which] [fraction|part] of a [pizza|cake|pie] is left if {a} of [the |its |]{b} [slices|pieces] [are|were] eaten[?|]
    {a} out of {b} [lamps|windows|seats|eggs] are [broken|bad|taken|dirty]. [What|Which] fraction is [fine|not|good|ok][?|]
    [In a|A] [class|group|team] of {b}[,| there are] {a} [are|] [boys|girls|beginners|left-handed kids]. [What|Which] fraction [is|are] not[?|]
    {x} [has read|read|did|finished] {a} of {b} [pages|chapters|tasks|lessons]. What fraction [is left to do|is still to do|remains|is missing|does {x} still have to do][?|]
    {a} of my {b} [{t}|friends|plants] are gone, so what fraction [is left|do I still have][?|]
    {x} spent ${a} of ${b}. What fraction of the money [is left|remains|does {x} still have|was not spent][?|]
""")
_DONE = Patterns("""
    [I|{x}|We] [ate|used|took|gave away] {a} of [the|] {b} [slices|pieces|parts] of [a|the] [pizza|cake|pie|chocolate bar]. [What|Which] [fraction|part] is [gone|that][?|]
    {a} out of {b} [lamps|windows|seats|eggs|kids] are [broken|new|taken|small]. [What|Which] fraction [is that|are they|of them is that][?|]
    [In a|A] [class|group|team] of {b}[,| has] {a} [boys|girls|beginners|left-handed kids]. [What|Which] fraction is that[?|]
    {x} [has read|read|did|finished] {a} of {b} [pages|chapters|tasks|lessons]. What fraction [is done|is that|has been done|of it is that][?|]
    {x} spent ${a} of ${b}. What fraction of the money [is gone|was spent|is that|did {x} spend][?|]
    {b} balls in a bag, {a} of them [red|blue|green]. [What fraction|What part] is [red|blue|green|that colour|that][?|]
    {a} slices of a pizza with {b} slices [is|are|as a fraction, that is] [what fraction|what part][?|]
    [{a} days rained|It rained on {a} days] out of {b}. [Fraction of rainy days|As a fraction|What fraction of the days is that][?|]
""")
_OF_BOTH = Patterns("""
    {a} {p} and {b} {q}. [What|Which] [fraction|part] [of them|of all] are {w}[?|]
    [There are|We have|In a box there are|I see|They have] {a} {p} and {b} {q}. [What|Which] fraction [are|of them are|of the total are] {w}[?|]
    {a} {p}, {b} {q}[: |; |. ]fraction of {w}[?|]
    [What|Which] fraction are {w} if there are {a} {p} and {b} {q}[?|]
""")
_PAIRS = ("boys|girls", "red balls|blue balls", "apples|pears", "cats|dogs", "men|women", "black socks|white socks", "adults|children",
          "old cards|new cards", "big boxes|small boxes", "wins|losses", "sheep|goats", "cars|trucks", "sunny days|rainy days", "roses|tulips")


@topic(3.5)
def fractions_left(rng: random.Random) -> Short:
    """What fraction is left, is done, or is one of two kinds."""
    b = rng.choice((4, 5, 6, 8, 8, 8, 10, 12, 12, 15, 16, 20, 24, 25, 30, 40, 50, 60, 100))
    a, kind, x = rng.randint(2, b - 2), rng.randrange(10), person(rng)
    if kind < 5:
        text = _LEFT.expand(rng, a=a, b=b, x=x, t=plural(rng))
        first, top = apply("-", b, a), b - a
        lines = first.lines
    elif kind < 8:
        text, lines, top = _DONE.expand(rng, a=a, b=b, x=x), (), a
    else:
        c = b - a
        first_asked = rng.random() < 0.5
        p, q = rng.choice(_PAIRS).split("|")
        text = _OF_BOTH.expand(rng, a=a, b=c, p=p, q=q, w=p if first_asked else q)
        lines, top = apply("+", a, c).lines, a if first_asked else c
    value = Fraction(top, b)
    raw = f"{top}/{b}"
    end = raw if str(value) == raw else f"{raw} = {value}"
    text = " ".join(text.split())
    return said(text[0].upper() + text[1:], "\n".join([*lines, end]), str(value))


_CHANCE = Patterns("""
    [A|My] bag [has|holds] {a} {p} and {b} {q}. [What is|What's] the [probability|chance] of [drawing|picking] one of the {w}[?|]
    {a} {p}, {b} {q}, one is [drawn|picked|taken] [blindly|at random]. [Chance|Probability] that it is one of the {w}[?| is?]
    [probability|chance] of [drawing|getting] one of the {w} from {a} {p} and {b} {q}[?|]
""")
_DICE = Patterns("""
    [What is|What's|Give] the [probability|chance] of [rolling|throwing|getting] {e} with [a|one|a fair] die[?|.|]
    [probability|chance] of {e} on a die[?|, as a fraction?]
    I roll a die. [Chance|Probability] of {e}[?| is?]
""")
_DRAWN_PAIRS = ("red balls|blue balls", "black socks|white socks", "old coins|new coins", "green marbles|yellow marbles", "big beads|small beads")
_THROWS = (("a six", 1), ("a 1", 1), ("a five", 1), ("an even number", 3), ("an odd number", 3), ("more than 4", 2), ("less than 3", 2),
           ("at least 3", 4), ("at most 5", 5), ("a 1 or a 2", 2), ("anything but a six", 5))


@topic(1)
def chances(rng: random.Random) -> Short:
    if rng.random() < 0.35:
        event, top = rng.choice(_THROWS)
        text = _DICE.expand(rng, e=event)
        value = Fraction(top, 6)
        return said(text[0].upper() + text[1:], f"{top}/6" + ("" if str(value) == f"{top}/6" else f" = {value}"), str(value))
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    p, q = rng.choice(_DRAWN_PAIRS).split("|")
    first = rng.random() < 0.5
    total = apply("+", a, b)
    top, value = (a, Fraction(a, a + b)) if first else (b, Fraction(b, a + b))
    text = _CHANCE.expand(rng, a=a, b=b, p=p, q=q, w=p if first else q)
    raw = f"{top}/{a + b}"
    return said(text[0].upper() + text[1:], "\n".join((*total.lines, raw if str(value) == raw else f"{raw} = {value}")), str(value))


_REST = Patterns("""
    {p} of {w} {v}. [What|Which] [fraction|part] {n}[?|]
    {p} of {w} {v}, so [what|which] [fraction|part] {n}[?|]
    [If|When] {p} of {w} {v}, [what|which] [fraction|part] {n}[?|]
    [What|Which] [fraction|part] {n} [if|when] {p} of {w} {v}[?|]
    {p} done, what fraction [is|remains] to do[?|]
    {x} [spends|saves|uses|gives away] {p} of {his} money. [What|Which] fraction is [left|the rest][?|]
    one minus {p}[?|]
    [what|how much] is missing from {p} to [one|a whole|1][?|]
    {p} and [what|how much|which fraction] make [one|a whole|1][?|]
    [what|which fraction] must be added to {p} to get [one|a whole|1][?|]
""")
_SPLIT = ("the kids|are girls|are boys", "the class|are boys|are girls", "the road|is finished|is not finished", "the eggs|are brown|are not brown",
          "the land|is forest|is not forest", "a flag|is red|is not red", "the cars|are black|are not black", "the tank|is full|is empty",
          "my book|is read|is still to read", "the votes|are counted|are not counted", "a wall|is painted|is not painted",
          "the seats|are taken|are free", "the pizza|is gone|is left", "our garden|is lawn|is not lawn")


@topic(1.2)
def rests_of_one(rng: random.Random) -> Short:
    a, b = _proper(rng)
    p = f"{a}/{b}" if rng.random() < 0.6 else _fraction_words(a, b)
    w, v, n = rng.choice(_SPLIT).split("|")
    text = _REST.expand(rng, p=p, w=w, v=v, n=n, x=person(rng), his=rng.choice(("his", "her", "the")))
    worked = fraction_apply("-", (b, b), (a, b))
    return Short(text[0].upper() + text[1:], "\n".join(worked.lines), str(worked.value))


_TWO_GONE = Patterns("""
    [If|When] {p} of [a|the] {w} is [eaten|used|gone|sold] and then {q} [more|of the whole too], what [part|fraction] is left[?|]
    {x} [ate|used|took] {p} of [a|the] {w}, {y} {q}. [What|Which] [part|fraction] is left[?|]
    {p} [gone|eaten|done] [today|first], {q} [tomorrow|later|after that][: |. |; ][what fraction is left|what part remains][?|]
    {p} of the [money|time|land] goes to {x}, {q} to {y}. [What|Which] [part|fraction] is [left|for me|the rest][?|]
    one minus {p} minus {q}[?|]
    1 - {f} - {g}[?|=| =|]
    [What|Which] fraction is missing to make {p} and {q} a whole[?|]
""")


@topic(1.2)
def rests_of_two(rng: random.Random) -> Short:
    """What is left of a whole after two parts: their sum first."""
    (a, b), (c, d) = _proper(rng), _proper(rng)
    if rng.random() < 0.6:
        d = b
        c = rng.randint(1, max(1, b - a))
    require(Fraction(a, b) + Fraction(c, d) < 1)
    p, q = (f"{m}/{n}" if rng.random() < 0.6 else _fraction_words(m, n) for m, n in ((a, b), (c, d)))
    x, y = two_people(rng)
    text = _TWO_GONE.expand(rng, p=p, q=q, f=f"{a}/{b}", g=f"{c}/{d}", x=x, y=y, w=rng.choice(("cake", "pizza", "pie", "tank", "field", "bar")))
    if text.startswith("1 -"):  # from the left
        first = fraction_apply("-", (b, b), (a, b))
        end = fraction_apply("-", (first.value.numerator, first.value.denominator), (c, d))
    else:
        first = fraction_apply("+", (a, b), (c, d))
        n = first.value.denominator
        end = fraction_apply("-", (n, n), (first.value.numerator, n))
    return Short(text[0].upper() + text[1:], "\n".join(first.lines + end.lines), str(end.value))


_EQUAL = Patterns("""
    {f} = {g}
    {f}={g}[?|]
    [Fill in|Complete|Find the missing number|What is missing|Missing number][:|?] {f} = {g}
    {f} [is|equals|makes] how many {k}[?|]
    [How many {k}] [make|equal|are the same as|are as much as|are] {f}[?|]
""")


_IN_PARTS = Patterns("""
    [Write|Express|Give] {f} [in|as] {k}[.|]
    {f} [in|as] {k}[?|]
    [Turn|Change|Convert] {f} into {k}[.|]
    [What is|what's] {f} in {k}[?|]
""")
_PART_NAMES = {4: "quarters", 6: "sixths", 8: "eighths", 9: "ninths", 10: "tenths", 12: "twelfths", 15: "fifteenths", 16: "sixteenths",
               18: "eighteenths", 20: "twentieths", 24: "twenty-fourths", 100: "hundredths"}


@topic(1)
def equal_fractions(rng: random.Random) -> Short:
    """`3/4 = ?/12`."""
    (a, b), k = _proper(rng), rng.randint(2, 6)
    require(Fraction(a, b).denominator == b and b * k in (4, 6, 8, 9, 10, 12) or rng.random() < 0.6)
    names = _PART_NAMES.get(b * k, f"{b * k}ths")
    lines = [f"{b * k} / {b} = {k}", f"{a} * {k} = {a * k}"]
    if rng.random() < 0.35:
        text = _IN_PARTS.expand(rng, f=f"{a}/{b}", k=names)
        return said(text, "\n".join([*lines, f"{a}/{b} = {a * k}/{b * k}"]), f"{a * k}/{b * k}")
    blank = rng.choice(("?", "?", "_", "x"))
    return said(_EQUAL.expand(rng, f=f"{a}/{b}", g=f"{blank}/{b * k}", k=names), "\n".join(lines), a * k)


_PART_OF_PART = Patterns("""
    {p} of {q}[?|=| is| as a fraction?|, what fraction is that?]
    [What is|How much is|what's|Find|Work out] {p} of {q}[?|]
    [{w} of {q}|{w} {q}][?|=|]
    [take|Take|find|work out] {p} of {q}[.|]
    I have {q} of a [pizza|cake|pie] and eat {p} of that. [What|Which] [fraction|part] of the whole [is that|do I eat][?|]
    [What|Which] [fraction|part] [do you get|is it] if you take {p} of {q}[?|]
    a recipe [needs|uses|takes] {q} of a cup; I make only {p} of it. [How much of a cup|What fraction of a cup|Which part of a cup] [is that|do I need][?|]
""")
_TIMES = Patterns("""
    [{w}|{n} times] {q}[?|=| is| as a fraction?]
    [What is|How much is|what's] [{w}|{n} times] {q}[?|]
    each [cake|batch|glass|dose] [takes|needs|uses] {q} of a [cup|liter|bag]. [How much|What] for {n}[?| of them?]
    {n} [people|kids|guests] get {q} of a pizza each. How [many pizzas is that|much pizza is that|many pizzas in all][?|]
    {q} [+|plus] {q}{r}[?|=|]
""")


@topic(2)
def parts_of_parts(rng: random.Random) -> Short:
    """Half of three quarters, three times two fifths."""
    (a, b), (c, d) = _proper(rng), _proper(rng)
    if rng.random() < 0.65:
        if rng.random() < 0.6:
            a, b = 1, rng.choice((2, 2, 3, 4))
        first = "half" if (a, b) == (1, 2) else f"{a}/{b}" if rng.random() < 0.5 else _fraction_words(a, b)
        if first.startswith("one "):
            first = "a " + first.removeprefix("one ") if b != 8 else first
        second = f"{c}/{d}" if rng.random() < 0.6 else _fraction_words(c, d)
        text = _PART_OF_PART.expand(rng, p=first, q=second, w=first)
        text = text.replace(f"{first} {second}", f"{first} of {second}")
        worked = fraction_apply("*", (a, b), (c, d))
        return Short(text[0].upper() + text[1:], "\n".join(worked.lines), str(worked.value))
    n = rng.randint(2, 6)
    second = f"{c}/{d}"
    text = _TIMES.expand(rng, w={2: "twice", 3: "three times"}.get(n, f"{n} times"), n=n, q=second, r="".join(f" + {second}" for _ in range(n - 2)))
    value = Fraction(n * c, d)
    if f"{second} +" in text or "plus" in text:
        text = f"{' + '.join([second] * n)}{'' if text[-1] not in '?=' else text[-1]}"
    line = f"{n} * {c}/{d} = {n * c}/{d}" + ("" if str(value) == f"{n * c}/{d}" else f" = {value}")
    return Short(text[0].upper() + text[1:], line, str(value))


_RECIPROCAL = Patterns("""
    [What is|what's|Find|Give|Write|] the [reciprocal|inverse|multiplicative inverse] of {f}[?|]
    reciprocal of {f}[?|]
    {f} [flipped|turned over|upside down][?| is?]
    [what|which number] times {f} [is|gives|makes] 1[?|]
    1 divided by {f}[?|]
""")


@topic(0.4)
def reciprocals(rng: random.Random) -> Short:
    a, b = _proper(rng)
    require(Fraction(a, b).denominator == b)
    line = f"{b}/{a}" + ("" if a > 1 else f" = {b}")
    return said(_RECIPROCAL.expand(rng, f=f"{a}/{b}"), line, str(Fraction(b, a)))


_SHARE_RATIO = Patterns("""
    [Share|Split|Divide] [${n}|{n} {t}|{n} dollars|{n}] in the ratio {a}:{b}. [How big is|How much is|What is] the [{w}] share[?|]
    {x} and {y} [share|split] [${n}|{n} dollars] in the ratio {a}:{b}[. |; |, so ]how much does {z} get[?|]
    {n} [in the ratio|split] {a}:{b}[, the {w} part|: {w} share|; the {w} part is][?|]
    The ratio of {p} to {q} is {a}:{b} and there are {n} [in all|altogether|in total]. How many {v} [are there|][?|]
    [For|To] every {a} {p} there are {b} {q}, {n} in all. How many {v}[?| are there?]
    {n} in all, {p} to {q} as {a} to {b}[. |: ]How many {v}[?|]
    {x} gets {a} parts and {y} {b} parts of [${n}|{n} dollars]. How much is that for {z}[?|]
""")


@topic(1.5)
def shares_in_a_ratio(rng: random.Random) -> Short:
    a, b, k = rng.randint(1, 7), rng.randint(1, 7), rng.randint(2, 12)
    require(a != b and Fraction(a, b).denominator == b)
    x, y = two_people(rng)
    p, q = rng.choice(_PAIRS).split("|")
    first = rng.random() < 0.5
    text = _SHARE_RATIO.expand(rng, n=(a + b) * k, a=a, b=b, x=x, y=y, z=x if first else y, t=plural(rng), p=p, q=q,
                               v=p if first else q, w="larger" if (a > b) == first else "smaller")
    require("every 1 " not in text and " 1 parts" not in text)
    top = a if first else b
    lines = (f"{a} + {b} = {a + b}", *apply("/", (a + b) * k, a + b).lines, *apply("*", k, top).lines)
    return Short(text, "\n".join(lines), str(k * top), k * top)


_WHOLE_RATIO = Patterns("""
    [Simplify|Reduce] the ratio {a}:{b}[.|]
    [What is|Write|Give] [the ratio |]{a}:{b} in [its |]simplest [form|terms][?|.|]
    {a} {p} and {b} {q}: [what is the ratio|simplest ratio|the ratio in lowest terms|the ratio][?|]
    [What is the|Find the|The|] ratio of {p} to {q} [if there are|with|for] {a} {p} and {b} {q}[?|]
    [ratio|the ratio] of {a} to {b}[, simplified|, in lowest terms|][?|]
    {a} to {b} [as a simple ratio|as a ratio, simplified][?|]
""")
_SCALED_RATIO = Patterns("""
    The ratio of {p} to {q} is {a}:{b}. [If there are|With|For] {m} {p}, how many {q} [are there|][?|]
    [Mix|I mix] [juice and water|cement and sand|oil and vinegar] {a}:{b}. [How much|How many parts] of the second [goes with|for|do I need for] {m} of the first[?|]
    {a}:{b} = {m}:?
    {a} is to {b} as {m} is to [what|?|which number][?|]
    For {a} [eggs|cups of rice|spoons of coffee] I [take|need|use] {b} [cups of water|spoons of sugar|grams of butter]. How many for {m}[?| of them?]
    {a}:{b} as {m}:x[. What is x?|, x?|; find x]
    there are {b} {q} for every {a} {p}. {m} {p} means how many {q}[?|]
""")


@topic(1.2)
def ratios(rng: random.Random) -> Short:
    a, b, k = rng.randint(1, 9), rng.randint(1, 9), rng.randint(2, 9)
    require(a != b and Fraction(a, b).denominator == b)
    p, q = rng.choice(_PAIRS).split("|")
    if rng.random() < 0.4:
        text = _WHOLE_RATIO.expand(rng, a=a * k, b=b * k, p=p, q=q)
        return said(text[0].upper() + text[1:], f"{a * k} / {k} = {a}\n{b * k} / {k} = {b}\n{a * k}:{b * k} = {a}:{b}", f"{a}:{b}")
    require(a > 1)
    lines = (*apply("/", a * k, a).lines, *apply("*", b, k).lines)
    text = _SCALED_RATIO.expand(rng, a=a, b=b, m=a * k, p=p, q=q)
    return Short(text[0].upper() + text[1:], "\n".join(lines), str(b * k), b * k)
