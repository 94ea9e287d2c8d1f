"""Sums of amounts in two units, and parts of a unit."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply
from .composing import some_people
from .grammar import Patterns
from .numbers import in_words, require, show
from .question import Short, said, topic, with_unit

# large unit, how many small ones, small unit, step of the small amounts, of what
_PAIRS = tuple(line.split("|") for line in """
m|100|cm|5|rope ribbon board wire hose cloth
km|1000|m|50|road path track river
kg|1000|g|50|flour rice sugar cheese nuts fruit
liters|1000|ml|50|milk juice water oil soup paint
cm|10|mm|1|line paper tape
hours|60|minutes|5|
minutes|60|seconds|5|
feet|12|inches|1|board pipe cable
pounds|16|ounces|1|meat flour cheese
dollars|100|cents|5|
weeks|7|days|1|
days|24|hours|1|
years|12|months|1|
tonnes|1000|kg|50|sand coal gravel
""".strip().splitlines())
_ADDED = Patterns("""
    {a} {u} [+|plus|and] {b} {v}[ in {v}?| = ? {v}|: how many {v}?| are how many {v}?]
    [How many|how many] {v} [are|is|make] {a} {u} and {b} {v} [together|in all|added up][?|]
    [add|Add] {b} {v} to {a} {u}. [How many {v}|Result in {v}|In {v}][?|]
    [First|The first part is|One piece is|At first it's] {a} {u}, then [come |]{b} {v} more. [How many {v} in all|Total in {v}|In {v}, how much is it][?|]
    [What is|What's|Find] {a} {u} plus {b} {v} in {v}[?|]
    {x} has {a} {u} and gets {b} {v} more. [How many {v} [is that|now]|In {v}][?|]
    total in {v}: {a} {u}, {b} {v}[?|]
""")
_TAKEN = Patterns("""
    {a} {u} [-|minus|less] {b} {v}[ in {v}?| = ? {v}|: how many {v}?| are how many {v}?]
    [How many|how many] {v} [are left|remain] [of|from] {a} {u} [after|when] {b} {v} [are gone|are taken away|are used][?|]
    [take|Take|Subtract] {b} {v} [from|off] {a} {u}. [How many {v} are left|Result in {v}|In {v}][?|]
    [What is|What's|Find] {a} {u} minus {b} {v} in {v}[?|]
    {x} has {a} {u} and [uses|loses|gives away] {b} {v}. [How many {v} remain|What's left in {v}|Left in {v}][?|]
    [How many|how many] {v} [more|are missing] from {b} {v} to {a} {u}[?|]
    [How much|By how many {v}] is {a} {u} more than {b} {v}[, in {v}|][?|]
    {b} {v} of {a} {u} are [used|done|gone]. [How many {v} to go|The rest in {v}|Left, in {v}][?|]
""")
_TAKEN_OF = Patterns("""
    [A|The] [piece|lot|stock] of {a} {u} of {s}: {b} {v} are [used|cut off|sold|taken]. [How many {v} are left|The rest in {v}|Left in {v}][?|]
    [I have|We have|We bought] {a} {u} of {s} and [use|need|sell] {b} {v}. [How many {v} are left|What remains in {v}|Rest in {v}][?|]
    from {a} {u} of {s} {b} {v} are [gone|taken]. [how many {v} are left|rest in {v}][?|]
""")


@topic(2)
def amounts_of_two_units(rng: random.Random) -> Short:
    large, factor, small, step, stuff = rng.choice(_PAIRS)
    n = int(factor)
    a, b = rng.randint(2, 9), int(step) * rng.randint(1, n // int(step))
    kind = rng.randrange(3)
    slots = {"a": a, "b": b, "u": large, "v": small, "x": some_people(rng, 1)[0]}
    whole = apply("*", a, n)
    end = apply("+" if kind == 0 else "-", whole.value, b)
    require(b > 1 and end.value > 0)
    if kind == 2 and stuff:
        question = _TAKEN_OF.expand(rng, s=rng.choice(stuff.split()), **slots)
    else:
        question = (_ADDED if kind == 0 else _TAKEN).expand(rng, **slots)
    text = " ".join(question.split())
    lines = (*whole.lines, *end.lines[:-1], f"{end.lines[-1]} {small}")
    return Short(text[0].upper() + text[1:], "\n".join(lines), show(end.value), end.value)


_PARTS = (
    (1, 2),
    (1, 3),
    (2, 3),
    (1, 4),
    (3, 4),
    (1, 5),
    (2, 5),
    (3, 5),
    (4, 5),
    (1, 6),
    (5, 6),
    (1, 8),
    (3, 8),
    (1, 10),
    (3, 10),
    (7, 10),
    (1, 12),
)
_PART_NAMES = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 8: "eighth", 10: "tenth", 12: "twelfth"}
_WHOLES = tuple((article, int(n), small) for article, n, small in (line.split("|") for line in """
an hour|60|minutes
a minute|60|seconds
a day|24|hours
a kilo|1000|grams
a kg|1000|g
a liter|1000|ml
a meter|100|cm
a km|1000|m
a kilometer|1000|meters
a year|12|months
a century|100|years
a dollar|100|cents
a foot|12|inches
a pound|16|ounces
a dozen eggs|12|eggs
a tonne|1000|kg
a right angle|90|degrees
a full turn|360|degrees
""".strip().splitlines()))
_PART_OF = Patterns("""
    {p} of {w} in {v}[?|]
    [How many|how many] {v} [is|are|are in|in|make] {p} of {w}[?|]
    {p} of {w} [is|=|are] how many {v}[?|]
    {v} in {p} of {w}[?|]
    [What is|What's] {p} of {w} in {v}[?|]
    [It|The wait|The rest|Something] [takes|is|makes] {p} of {w}. [How many {v}|In {v}|How many {v} is that][?|]
    [I need|We used|There is] {p} of {w}. [How many {v}|In {v}|That's how many {v}][?|]
    [convert|Convert] {p} of {w} [to|into] {v}[.|]
""")
_WHICH_PART = Patterns("""
    [What|what|Which] [fraction|part] of {w} [is|are] {a} {v}[?|]
    {a} {v} [is|are] [what|which] [fraction|part] of {w}[?|]
    [write|Write|Express] {a} {v} as a fraction of {w}[.|]
    {a} {v} as a fraction of {w}[?|]
    [how|How] much of {w} [is|are] {a} {v}, as a fraction[?|]
""")
_WHICH_PERCENT = Patterns("""
    [What|what] [percent|percentage] of {w} [is|are] {a} {v}[?|]
    {a} {v} [is|are] what percent of {w}[?|]
    [how|How] many percent of {w} [is|are] {a} {v}[?|]
""")


@topic(2)
def parts_of_units(rng: random.Random) -> Short:
    whole, n, small = rng.choice(_WHOLES)
    top, bottom = rng.choice(_PARTS)
    require(n % bottom == 0)
    kind, part = rng.random(), n * top // bottom
    if kind < 0.65:
        name = _PART_NAMES[bottom]
        plain = "half" if bottom == 2 else f"a {name}" if top == 1 else f"{in_words(top)} {name}s"
        written = rng.choice((plain, plain, f"{top}/{bottom}", "one half" if bottom == 2 else plain))
        text = _PART_OF.expand(rng, p=written, w=whole, v=small)
        if bottom == 2:
            text = text.replace("half of a", "half a")
        one = apply("/", n, bottom)
        lines = one.lines if top == 1 else (*one.lines, *apply("*", one.value, top).lines)
        return Short(text[0].upper() + text[1:], "\n".join((*lines[:-1], f"{lines[-1]} {small}")), str(part), part)
    if kind < 0.9 or (100 * top) % bottom:
        text = _WHICH_PART.expand(rng, w=whole, a=part, v=small)
        answer = str(Fraction(top, bottom))
        return said(text[0].upper() + text[1:], f"{part}/{n} = {answer}", answer)
    text = _WHICH_PERCENT.expand(rng, w=whole, a=part, v=small)
    share = apply("/", part, n)
    percent = apply("*", share.value, 100)
    return with_unit(
        text[0].upper() + text[1:], Worked(share.lines + percent.lines[:-1], percent.value), percent.lines[-1]
    )
