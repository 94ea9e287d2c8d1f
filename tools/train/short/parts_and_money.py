"""Money, fractions, decimals, powers and roots in free phrasing."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain, fraction_apply, power
from .composing import compose, some_people, who
from .expressions import _fraction_words, _proper
from .grammar import Patterns
from .numbers import Value, dollars, require, show
from .percent_money import paid, price
from .question import Short, computed, topic
from .things import plural

_COSTS = Patterns("[{t} costs {a}|{t} is {a}|the price of {t} is {a}|{x} pay{x.s} {a} for {t}|{x} buy{x.s} {t} for {a}|{t} goes for {a}|{a} is what {t} costs]")
_BILL = Patterns("[{x} pay{x.s} with {b}|{x} hand{x.s} over {b}|{x} give{x.s} the clerk {b}|{x} {x.has} {b}|there is {b} in the wallet|the bill handed over is {b}|{x} put{x.s} {b} on the counter]")
_CHANGE = Patterns("[how much change {x.do} {x} get|what is the change|how much comes back|how much money is left|how much {x.do} {x} get back|what is left over|how much remains]")
_TOTAL = Patterns("[how much is it in all|what is the total|how much is that together|how much is the bill|what does it all cost|how much {x.do} {x} pay|what {x.do} {x} pay altogether]")
_GOODS = ("a lamp|a shirt|a phone case|a book|a hat|a bag|a watch|a pen|a ticket|a pizza|a cake|a toy|lunch|a taxi ride|a haircut|"
          "the bus fare|a sandwich|a coffee|a notebook|a plant|a game|dinner|a magazine|an umbrella|a mug|a ball").split("|")


@topic(3.5)
def money_stories(rng: random.Random) -> Short:
    x, kind = who(rng), rng.randrange(8)
    currency = rng.choice(("${}", "${}", "${}", "${}", "{} dollars", "€{}", "{} euros", "£{}"))

    def money(value: Value) -> str:
        return currency.format(dollars(value))

    limit = rng.choice((5, 10, 20, 50))
    a, b, c = (price(rng, limit) for _ in range(3))
    t, u, w = rng.sample(_GOODS, 3)
    facts = [_COSTS.expand(rng, x=x, t=t, a=money(a))]
    if kind == 0:
        bill = next(v for v in (1, 5, 10, 20, 50, 100) if v > a)
        return paid(compose(rng, [*facts, _BILL.expand(rng, x=x, b=money(bill))], _CHANGE.expand(rng, x=x),
                            rng.choice(("the change", "change", "the money left", "the rest"))), apply("-", bill, a))
    facts.append(_COSTS.expand(rng, x=x, t=u, a=money(b)))
    total = apply("+", a, b)
    nouns = ("the total", "the total cost", "total", "the sum", "the bill")
    if kind < 3:
        return paid(compose(rng, facts, _TOTAL.expand(rng, x=x), rng.choice(nouns)), total)
    if kind == 3:
        total = chain(a, ("+", b), ("+", c))
        facts.append(_COSTS.expand(rng, x=x, t=w, a=money(c)))
        return paid(compose(rng, facts, _TOTAL.expand(rng, x=x), rng.choice(nouns)), total)
    if kind == 4:
        bill = next(v for v in (5, 10, 20, 50, 100, 200) if v > a + b)
        end = apply("-", bill, total.value)
        facts.append(_BILL.expand(rng, x=x, b=money(bill)))
        return paid(compose(rng, facts, _CHANGE.expand(rng, x=x), rng.choice(("the change", "the money left"))),
                    Worked(total.lines + end.lines, end.value))
    if kind == 5:
        require(a != b)
        high, low = (t, u) if a > b else (u, t)
        ask = rng.choice((f"how much more does {high} cost than {low}", "what is the difference in price", f"how much cheaper is {low}",
                          f"by how much is {high} more expensive"))
        return paid(compose(rng, facts, ask, "the price difference", free=True), apply("-", max(a, b), min(a, b)))
    n = rng.randint(2, 12)
    if kind == 6:
        things = plural(rng)
        fact = rng.choice((f"{x} buy{x.s} {n} {things} at {money(a)} each", f"each of {n} {things} costs {money(a)}",
                           f"{n} {things} cost {money(a)} apiece", f"{x} take{x.s} {n} {things}, each for {money(a)}"))
        return paid(compose(rng, [fact], _TOTAL.expand(rng, x=x), rng.choice(nouns)), apply("*", n, a))
    y, z = some_people(rng, 2)
    fact = rng.choice((f"{n} friends share a bill of {money(a * n)} equally", f"a prize of {money(a * n)} is split among {n} people",
                       f"{n} people rent a boat for {money(a * n)} and each pays the same"))
    ask = rng.choice(("how much is it for each", "what does each pay or get", "how much is one share", "what is it per person"))
    return paid(compose(rng, [fact], ask, rng.choice(("one share", "the amount per person"))), apply("/", a * n, n))


_SAVES = Patterns("[{x} put{x.s} aside ${a} [a|per|each|every] {t}|{x} save{x.s} ${a} [a|per|each|every] {t}|{x} earn{x.s} ${a} [a|per|each|every] {t}|every {t} {x} get{x.s} ${a}|{x} make{x.s} ${a} per {t}|{x} spend{x.s} ${a} [a|per|each|every] {t}|the rent is ${a} per {t}|a {t} costs ${a}]")


@topic(1.5)
def money_over_time(rng: random.Random) -> Short:
    x, t = who(rng), rng.choice(("hour", "day", "week", "month", "year"))
    a, n = rng.choice((rng.randint(2, 30), 5 * rng.randint(1, 30), 10 * rng.randint(1, 60))), rng.randint(2, 12)
    fact = _SAVES.expand(rng, x=x, a=a, t=t)
    if rng.random() < 0.6:
        ask = rng.choice((f"how much is that in {n} {t}s", f"how much after {n} {t}s", f"how many dollars in {n} {t}s", f"what does it come to in {n} {t}s"))
        return computed(compose(rng, [fact], ask, f"the amount after {n} {t}s"), apply("*", a, n))
    ask = rng.choice((f"after how many {t}s is it ${a * n}", f"how many {t}s until ${a * n}", f"how long does it take to reach ${a * n}", f"in how many {t}s is it ${a * n}"))
    return computed(compose(rng, [fact], ask, f"the {t}s for ${a * n}"), apply("/", a * n, a))


# Fractions ---------------------------------------------------------------------------------------

_WHOLES = ("pizza", "cake", "pie", "tank", "cup of flour", "ribbon", "book", "garden", "chocolate bar", "jug", "rope", "field", "salary", "bottle")


def _ratio(rng: random.Random, top: int, bottom: int) -> str:
    return f"{top}/{bottom}" if rng.random() < 0.65 else _fraction_words(top, bottom)


@topic(2.5)
def fraction_stories(rng: random.Random) -> Short:
    (a, b), (c, d) = _proper(rng), _proper(rng)
    x, y = some_people(rng, 2)
    p, q, thing = _ratio(rng, a, b), _ratio(rng, c, d), rng.choice(_WHOLES)
    first, second = Fraction(a, b), Fraction(c, d)
    kind = rng.randrange(5)
    if kind == 0:
        require(first + second <= 1)
        facts = [f"{x} eat{x.s} {p} of a {thing}", f"{y} eat{y.s} {q} of it"] if "c" in thing else \
            [f"{x} use{x.s} {p} of the {thing}", f"{y} use{y.s} {q}"]
        worked = fraction_apply("+", (a, b), (c, d))
        ask, noun = rng.choice(("what part is gone", "how much is that together", "what fraction is used in all")), "the part in all"
    elif kind == 1:
        require(first > second)
        facts = [rng.choice((f"there is {p} of a {thing} left", f"{x} {x.has} {p} of a {thing}", f"a {thing} is {p} full")),
                 rng.choice((f"{q} of a whole one is taken away", f"{x} give{x.s} away {q} of a {thing}"))]
        worked = fraction_apply("-", (a, b), (c, d))
        ask, noun = rng.choice(("what part is left", "how much remains", "what fraction remains")), "the rest"
    elif kind == 2:
        facts = [rng.choice((f"{x} eat{x.s} {p} of the {thing}", f"{p} of the {thing} is gone", f"{p} of a {thing} has been used"))]
        worked = fraction_apply("-", (b, b), (a, b))
        ask, noun = rng.choice(("what fraction is left", "how much is left", "what part remains", "what part is still there")), "the part that is left"
    elif kind == 3:
        facts = [rng.choice((f"{x} {x.has} {p} of a {thing}", f"a garden takes {p} of a plot")), f"{q} of that is {rng.choice(('given away', 'red', 'sold', 'wet'))}"]
        worked = fraction_apply("*", (c, d), (a, b))
        ask, noun = rng.choice(("what part of the whole is that", "what fraction is that")), "that part of the whole"
    else:
        n = b * rng.randint(1, 20)
        things = plural(rng)
        facts = [f"{x} {x.has} {n} {things}", rng.choice((f"{p} of them are {rng.choice(('red', 'old', 'broken', 'new', 'blue'))}", f"{x} sell{x.s} {p} of them", f"{p} are gone"))]
        part = apply("/", n, b) if a == 1 else chain(n, ("/", b), ("*", a))
        if rng.random() < 0.5:
            return computed(compose(rng, facts, rng.choice(("how many is that", "how many are those", "what number is that")), "that part"), part)
        rest = apply("-", n, part.value)
        return computed(compose(rng, facts, rng.choice(("how many are the rest", "how many other ones are there", "how many does that leave")), "the number of the rest"),
                        Worked(part.lines + rest.lines, rest.value))
    return Short(compose(rng, facts, ask, noun), "\n".join(worked.lines), str(worked.value))


# Decimals, powers and roots ---------------------------------------------------------------------

_AMOUNTS = (("weighs", "kg", ("a bag", "a melon", "a parcel", "a fish", "a stone")), ("is long", "m", ("a rope", "a board", "a ribbon", "a pipe")),
            ("holds", "liters", ("a jug", "a can", "a bottle", "a bucket")), ("takes", "seconds", ("a lap", "a jump", "a sprint")),
            ("covers", "km", ("a walk", "a ride", "a run", "a stage")))


@topic(1.8)
def decimal_stories(rng: random.Random) -> Short:
    verb, unit, things = rng.choice(_AMOUNTS)
    one, other = rng.sample(things, 2)
    places = rng.choice((10, 10, 100))
    a, b = (Fraction(rng.randint(1, 20 * places), places) for _ in range(2))
    n, kind = rng.randint(2, 10), rng.randrange(4)

    def fact(name: str, value: Value) -> str:
        if verb == "is long":
            return f"{name} is {show(value)} {unit} long"
        return rng.choice((f"{name} {verb} {show(value)} {unit}", f"{name} has {show(value)} {unit}"))

    if kind < 2:
        plus = kind == 0
        require(plus or a != b)
        ask = rng.choice(("how much is that together", "what is the total", f"how many {unit} in all") if plus
                         else ("what is the difference", "how much more is the larger one", f"by how many {unit} do they differ"))
        worked = apply("+", a, b) if plus else apply("-", max(a, b), min(a, b))
        return computed(compose(rng, [fact(one, a), fact(other, b)], ask, "the total" if plus else "the difference"), worked)
    if kind == 2:
        ask = rng.choice((f"how many {unit} are {n} of them", f"how much is that for {n} of them", f"how many {unit} do {n} make"))
        return computed(compose(rng, [fact(one, a)], ask, f"the {unit} for {n}"), apply("*", n, a))
    a = Fraction(rng.randint(1, 99), 10)
    part = rng.choice((f"{show(a * n)} {unit} are split into {n} equal parts", f"{n} equal pieces make {show(a * n)} {unit}"))
    return computed(compose(rng, [part], rng.choice(("how big is one part", f"how many {unit} is each", "what is one piece")), "one part"), apply("/", a * n, n))


_POWER_ASK = Patterns("""
    [A|The] number is [multiplied by itself|squared]. It is {n}. [What do you get|Result|What comes out][?|]
    {n} [times itself|multiplied by itself|by itself][?| is?| equals?|, what is it?]
    [Multiply|Take] {n} [by itself|times itself][.|!|. Result?]
    [How many [dots|tiles|seats|cells]|What number of cells] are in a [square grid|square] with {n} in each row[?|]
    {n} [rows|boxes|shelves] [with|of] {n} [each|in each][: how many in all?|, total?|. How many?]
    [What|Which number] is {n} raised to [two|2|the second power|the power two][?|]
    [n|x|a] = {n}. [What is|Find] [its square|the square of it][?|]
""")
_ROOT_ASK = Patterns("""
    [What|Which] [whole |positive |]number [times itself|multiplied by itself|by itself|squared] [gives|is|makes|equals|yields] {n}[?|]
    [A|Some] [positive |]number squared [is|gives|equals] {n}. [What is it|Which number|What is the number][?|]
    [x^2|x²|x squared|x * x] = {n}[, x > 0|]. [What is x|Find x|x][?|]
    {n} [dots|tiles|chairs|trees] [form|make|stand in] a [square|square grid]. [How many [are in|per] [each|one] row|How many rows][?|]
    {n} is the square of [which|what] [positive |whole |]number[?|]
    [of which number is|whose square is] {n} [the square|][?|]
    [The|] root [out |]of {n}[?| please| is?]
    [Take|Extract|Draw] the [square |]root of {n}[.|!|]
""")
_CUBED = Patterns("""
    {n} times {n} times {n}[?|]
    [Multiply|Take] {n} by itself three times, as in {n} * {n} * {n}[.|]
    [What|Which number] is {n} [cubed|raised to three|raised to the third power|to the power three][?|]
    {n} [boxes|bags] with {n} [packs|cans] each, and {n} [pens|nuts] in each of [them|these]: how many [pens|nuts|] in all[?|]
""")


@topic(1.5)
def powers_in_words(rng: random.Random) -> Short:
    kind, n = rng.random(), rng.choice((rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 30), 20, 50, 100))
    if kind < 0.4:
        return computed(_POWER_ASK.expand(rng, n=n), apply("*", n, n))
    if kind < 0.8:
        return computed(_ROOT_ASK.expand(rng, n=n * n), Worked((f"{n} * {n} = {n * n}", f"sqrt({n * n}) = {n}"), n))
    n = rng.randint(2, 10)
    return computed(_CUBED.expand(rng, n=n), power(n, 3))
