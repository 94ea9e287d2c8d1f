"""Who has more and by how many, unit prices and speeds, amounts in two units, and lists."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import apply
from .composing import some_people
from .grammar import Patterns
from .numbers import Value, relation, require, show
from .question import Short, computed, said, topic
from .story_words import thing


def _tidy(question: str) -> str:
    text = " ".join(question.split())
    return text[0].upper() + text[1:]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


# Two people and the difference --------------------------------------------------------------------

_WHO_BY = Patterns("""
    {x} has {a} {t}, {y} has {b}. [Who has more and by how many|Who has more, and how many more|Who's ahead and by how many][?|]
    {x} {a}, {y} {b}. [Who leads|Who wins|Who is ahead|Who's winning] and by how [many|much][?|]
    [Who has more|Who wins|Who is ahead|Who's in front] and by how many: {x} with {a} or {y} with {b}[?|]
    {x} [collected|sold|picked|counted|scored] {a}, {y} {b}. [Who [did|got] more|Who's better], and by how [many|much][?|]
    [Compare|compare] {x} ({a}) and {y} ({b}): who has more, and by how many[?|]
    {x} got {a} votes and {y} got {b}. Who won and [by how many|with what lead][?|]
    if {x} has {a} and {y} {b}, who has more and how many more[?|]
    [The winner|Who wins]: {x} {a} points, {y} {b} points, and by how many points[?|]
    {x} read {a} pages and {y} {b}. Who read more and how many more[?|]
""")


@topic(1.2)
def ahead_by(rng: random.Random) -> Short:
    a, b = (rng.randint(1, rng.choice((20, 60, 200))) for _ in range(2))
    require(a != b)
    x, y = some_people(rng, 2)
    question = _WHO_BY.expand(rng, x=x, y=y, a=a, b=b, t=thing(rng).noun)
    worked = apply("-", max(a, b), min(a, b))
    winner = _capital(str(x if a > b else y))
    return said(_tidy(question), "\n".join((*worked.lines, f"{winner}, by {worked.value}")), worked.value)


# Prices and speeds for one unit ---------------------------------------------------------------------

_CHEAPER = Patterns("""
    [what's|What is|which is] cheaper per {o}: {p} or {q}[?|]
    {p} or {q}[: |, |. ][which is cheaper per {o}|cheaper per {o}|what's the better price per {o}|lower price per {o}][?|]
    [The small|One|The first] pack is {p}, the [big|other|second] [one |]{q}. [Which is cheaper per {o}|Which is the better buy|Which pack is the better value][?|]
    [At the market it's|Shop A wants|One stall has] {p}, [at the store|shop B|another] {q}. [Which is the better deal|Which offer is cheaper per {o}][?|]
    [Is it better to buy|Should I buy|Do I take] {p} or {q}[, if the price per {o} counts|, going by the price per {o}][?|]
    [better deal|best buy|better value|cheaper][: |, ]{p} or {q}[?|]
    {p} vs {q}[: | - |, ][better deal|better value per {o}|which is cheaper][?|]
    [Compare|compare] the price per {o}: {p} and {q}. [Which is lower|Which is cheaper][?|]
    {p} or {q}? [Which is cheaper per {o}|Which has the lower price per {o}][?|]
""")
_DEARER = Patterns("""
    [what's|What is|which is] more expensive per {o}: {p} or {q}[?|]
    {p} or {q}[: |, ][which is dearer per {o}|which costs more per {o}|which is more expensive per {o}][?|]
""")
_MEASURES = tuple(
    pair.split("/")
    for pair in "kg/kg kg/kilo liters/liter l/liter meters/meter pounds/pound eggs/egg pens/pen cans/can "
    "rolls/roll bottles/bottle tickets/ticket apples/apple hours/hour lessons/lesson GB/GB sheets/sheet "
    "days/day".split()
)


@topic(1.5)
def priced_by_unit(rng: random.Random) -> Short:
    many, one = rng.choice(_MEASURES)
    n, m = rng.sample((2, 3, 4, 5, 6, 8, 10, 12, 20), 2)
    a, b = (
        (n * rng.randint(1, 12), m * rng.randint(1, 12))
        if rng.random() < 0.6
        else (rng.randint(1, 40), rng.randint(1, 40))
    )
    first, second = Fraction(a, n), Fraction(b, m)
    require(first != second and 100 % first.denominator == 0 and 100 % second.denominator == 0)
    money = rng.choice(("${}", "${}", "{} euros", "€{}", "{} dollars"))
    p, q = (f"{count} {many} for {money.format(price)}" for count, price in ((n, a), (m, b)))
    dearer = rng.random() < 0.15
    answer = p if (first < second) != dearer else q
    lines = (*apply("/", a, n).lines, *apply("/", b, m).lines, relation(first, second))
    question = (_DEARER if dearer else _CHEAPER).expand(rng, p=p, q=q, o=one)
    return said(_tidy(question), "\n".join((*lines, f"{answer} is {'dearer' if dearer else 'cheaper'}.")), answer)


_FASTER = Patterns("""
    {x} [ran|rode|swam|walked|drove] {a} km in {m} [min|minutes], {y} [did |]{b} km in {n} [min|minutes]. Who [was|is] faster[?|]
    [Who is faster|Who was quicker|Who has the higher speed|Who's faster]: {x} with {a} km in {m} minutes or {y} with {b} km in {n} minutes[?|]
    {x}: {a} km, {m} min. {y}: {b} km, {n} min. [Who is faster|The faster one|Who was quicker][?|]
    [In {m} minutes {x} covers|It takes {x} {m} minutes for] {a} km; {y} needs {n} minutes for {b} km. Who is faster[?|]
    {x} needs {m} minutes for {a} km and {y} {n} for {b} km. [Who goes faster|Who's the quicker one|Who is faster][?|]
""")
_WORKS = tuple(
    pair.split()
    for pair in "types words|reads lines|picks apples|peels potatoes|packs boxes|writes cards|folds shirts|plants bulbs|washes plates".split(
        "|"
    )
)
_WORKS_FASTER = Patterns("""
    {x} {v} {a} {t} in {m} minutes, {y} {b} in {n} minutes. Who [is|works] faster[?|]
    [Who is faster|Who's quicker]: {x} with {a} {t} in {m} minutes or {y} with {b} in {n}[?|]
    {x}: {a} {t} in {m} min, {y}: {b} in {n} min. [Faster|Who's faster|Who does more per minute][?|]
""")


@topic(1)
def faster_of_two(rng: random.Random) -> Short:
    x, y = some_people(rng, 2)
    a, b = rng.sample(range(2, 13), 2)
    if rng.random() < 0.6:
        p, q = rng.sample(range(2, 16), 2)
        m, n = a * p, b * q
        question = _FASTER.expand(rng, x=x, y=y, a=a, b=b, m=m, n=n)
        lines, x_wins = (*apply("/", m, a).lines, *apply("/", n, b).lines, relation(p, q)), p < q
    else:
        p, q = rng.sample(range(2, 20), 2)
        verb, things = rng.choice(_WORKS)
        question = _WORKS_FASTER.expand(rng, x=x, y=y, a=a * p, b=b * q, m=a, n=b, t=things, v=verb)
        lines, x_wins = (*apply("/", a * p, a).lines, *apply("/", b * q, b).lines, relation(p, q)), p > q
    winner = _capital(str(x if x_wins else y))
    return said(_tidy(question), "\n".join((*lines, f"{winner} is faster.")), winner)


# Amounts in two units -------------------------------------------------------------------------------

# large unit, how many small ones, small unit, from, to, step, more, less, what is measured
_TWO_UNITS = tuple(line.split() for line in """
m 100 cm 110 205 1 taller shorter people
kg 1000 g 200 9000 100 heavier lighter things
hours 60 minutes 30 400 15 longer shorter things
km 1000 m 200 9000 100 longer shorter things
liters 1000 ml 200 5000 100 more less things
m 100 cm 20 900 10 longer shorter things
cm 10 mm 5 300 1 longer shorter things
minutes 60 seconds 30 600 15 longer shorter things
dollars 100 cents 20 900 10 more less things
feet 12 inches 12 120 6 longer shorter things
days 24 hours 24 240 12 longer shorter things
weeks 7 days 7 70 7 longer shorter things
tonnes 1000 kg 300 9000 100 heavier lighter things
years 12 months 12 120 6 longer shorter things
dozen 12 eggs 12 96 6 more less things
""".strip().splitlines())
_WHO_IS = Patterns("""
    [who|Who] is {w}: {x} with {p} or {y} with {q}[?|]
    [who|Who] is {w}, {x} ({p}) or {y} ({q})[?|]
    {x} [is|measures] {p}[ tall|], {y} [is |]{q}. [Who is {w}|Who's the {w} one|The {w} one][?|]
    {x}: {p}, {y}: {q}. [Who is {w}|{w}][?|]
    {x} has grown to {p} and {y} to {q}. [Who is {w}|Which of the two is {w}][?|]
""")
_IS_MORE = Patterns("""
    [is|Is|Are] {p} {w} than {q}[?|, yes or no?|]
    [True or false:|Is it true that] {p} [is|are] {w} than {q}[?|]
    [would you say|do you think|can one say] {p} is {w} than {q}[?|]
    {p} {w} than {q}[?| - yes or no?|: true?]
    {p} or {q}: is the first {w}[?|]
""")
_WHICH_MORE = Patterns("""
    [what's|What is|which is|Which is] {w}, {p} or {q}[?|]
    {w}: {p} or {q}[?|]
    {p} [vs|or|against] {q}[: |, | - ][what's {w}|which is {w}|{w} one][?|]
    [One is|This one is] {p}, [the other|the next one] {q}[. |, ][which is {w}|what's {w}][?|]
    [of|Of|Between] {p} and {q}, which is {w}[?|]
    [I need|I want] the {w} one: {p} or {q}[?|]
""")
_MORE_OF = Patterns("""
    [what's|What is|which is|Which is] {w}, {p} or {q}[?|]
    {w}: {p} or {q}[?|]
    {p} [vs|or|against] {q}[: |, | - ][what's {w}|which is {w}][?|]
    [of|Of|Between] {p} and {q}, which is {w}[?|]
""")
_HOW_MANY_TIMES = Patterns("""
    [how many times|How many times] [longer|bigger] is {p} than {q}[?|]
    [how many times|How many times] as much is {p} as {q}[?|]
    by what factor is {p} more than {q}[?|]
    [how many times|How many times] does {q} [go into|fit into|fit in] {p}[?|]
    {p} is how many times {q}[?|]
    [how often|How often] [is|are] {q} contained in {p}[?|]
""")


def _both(rng: random.Random, large: str, factor: int, small: str, amount: int, in_large: bool) -> str:
    if not in_large:
        return f"{amount} {small}"
    value: Value = Fraction(amount, factor)
    whole, rest = divmod(amount, factor)
    if whole and rest and large != "dozen" and rng.random() < 0.3:
        return f"{whole} {_one(large, whole)} {rng.choice(('', 'and '))}{rest} {_one(small, rest)}"
    return f"{show(value)} {_one(large, value)}"


def _one(unit: str, count: Value) -> str:
    if count != 1 or unit in ("m", "kg", "km", "cm", "g", "ml", "mm", "dozen"):
        return unit
    return {"feet": "foot", "inches": "inch"}.get(unit, unit[:-1])


@topic(2.5)
def in_two_units(rng: random.Random) -> Short:
    large, factor_text, small, *limits, more, less, measured = rng.choice(_TWO_UNITS)
    factor, (low, high, step), people = int(factor_text), map(int, limits), measured == "people"
    a = step * rng.randint(-(-low // step), high // step)
    kind = rng.random()
    b = (
        a
        if kind < 0.12 and not people
        else max(step, a + step * rng.choice((-1, 1)) * rng.randint(1, rng.choice((2, 8, 20))))
    )
    require((1000 * a) % factor == 0 and b <= high and b >= low)
    first_large = rng.random() < 0.5
    p, q = _both(rng, large, factor, small, a, first_large), _both(rng, large, factor, small, b, not first_large)
    value: Value = Fraction(a if first_large else b, factor)
    require((1000 * (a if first_large else b)) % factor == 0)
    convert = f"{p if first_large else q} = {a if first_large else b} {small}"
    require(value != 0)
    asks_more = rng.random() < 0.6
    w = more if asks_more else less
    require(kind >= 0.12 or b == a)
    if people:
        x, y = some_people(rng, 2)
        winner = _capital(str(x if (a > b) == asks_more else y))
        return said(
            _tidy(_WHO_IS.expand(rng, x=x, y=y, p=p, q=q, w=w)),
            f"{convert}\n{relation(a, b)}\n{winner} is {w}.",
            winner,
        )
    if kind < 0.12 or kind > 0.6:
        question = _tidy(_IS_MORE.expand(rng, p=p, q=q, w=w))
        is_true = a > b if asks_more else a < b
        word = ("True" if is_true else "False") if "True or false" in question else "Yes" if is_true else "No"
        return said(question, f"{convert}\n{relation(a, b)}\n{word}{', they are the same' if a == b else ''}", word)
    answer = p if (a > b) == asks_more else q
    if w in ("more", "less"):
        return said(
            _tidy(_MORE_OF.expand(rng, p=p, q=q, w=w)), f"{convert}\n{relation(a, b)}\n{answer} is {w}.", answer
        )
    return said(_tidy(_WHICH_MORE.expand(rng, p=p, q=q, w=w)), f"{convert}\n{relation(a, b)}\n{answer} is {w}.", answer)


@topic(0.8)
def times_in_two_units(rng: random.Random) -> Short:
    large, factor, small = rng.choice(
        (
            ("hours", 60, "minutes"),
            ("minutes", 60, "seconds"),
            ("kg", 1000, "g"),
            ("m", 100, "cm"),
            ("km", 1000, "m"),
            ("liters", 1000, "ml"),
            ("days", 24, "hours"),
            ("weeks", 7, "days"),
            ("years", 12, "months"),
            ("dollars", 100, "cents"),
        )
    )
    count = rng.randint(2, 6)
    b = rng.choice(
        [k for k in range(2, count * factor // 2 + 1) if count * factor % k == 0 and (k % 5 == 0 or factor < 60)]
    )
    whole, result = apply("*", count, factor), apply("/", count * factor, b)
    require(result.value <= 40)
    question = _HOW_MANY_TIMES.expand(rng, p=f"{count} {large}", q=f"{b} {small}")
    return computed(_tidy(question), type(whole)(whole.lines + result.lines, result.value))


# Groups ------------------------------------------------------------------------------------------

_GROUPS = Patterns("""
    [which|Which|what] is more: {n} {c} of {a} or {m} {c} of {b}[?|]
    {n} {c} of {a} or {m} {c} of {b}[: |, ][which is more|what's more|which has more in all][?|]
    [Is|is] it more to [buy|carry|have] {n} {c} of {a} or {m} {c} of {b}[?|]
    [do I get|Do you get|Does one get] more with {n} {c} of {a} or with {m} {c} of {b}[?|]
    [more|most in all]: {n} {c} of {a} or {m} {c} of {b}[?|]
""")
_ENOUGH = Patterns("""
    [Are|are] {n} {c} of {a} enough for {b} [people|guests|children][?|]
    [is|Is] it enough for {b} [people|guests|children] if I [have|bring|buy] {n} {c} of {a}[?|]
    I [need|want] {b} {t} and [buy|have|get] {n} {c} of {a}. [Is that enough|Do I have enough|Enough][?|]
    {n} {c} with {a} {t} each: [is that at least|do I get] {b}[?|]
    [Do|do|Will] {b} {t} fit into {n} {c} of {a}[?|]
    [There are|We have] {n} {c} for {a} each. Do {b} {t} fit[?|]
    {b} {t}, {n} {c} for {a} each. [Do they all fit|Is there room for all|Enough room][?|]
""")
_FITS = Patterns("""
    [does|Does] {a} [fit|go] {n} times into {b}[?|]
    [can|Can] you take {a} from {b} {n} times[?|]
    [is|Is] {n} times {a} [still within|at most|no more than] {b}[?|]
    [do|Do] {n} [pieces|parts|shares] of {a} fit into {b}[?|]
""")
_MONEY_ENOUGH = Patterns("""
    [Is|is] ${b} enough for {n} {t} at ${a} each[?|]
    [Can|can] I buy {n} {t} at ${a} [each|apiece] with ${b}[?|]
    I have ${b}. {n} {t} cost ${a} each. [Can I afford them|Is that enough|Do I have enough][?|]
    {n} {t}, ${a} each, and ${b} in my [pocket|purse|wallet][: |. |, ][enough|is it enough|will it do][?|]
    {x} wants {n} {t} at ${a} and has ${b}. [Is it enough|Does {x} have enough|Enough money][?|]
""")


@topic(1.8)
def groups_compared(rng: random.Random) -> Short:
    n, m, a, b = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 20), rng.randint(2, 20)
    things = thing(rng)
    box = rng.choice(things.containers)
    first = apply("*", n, a)
    kind = rng.randrange(4)
    if kind == 0:
        second = apply("*", m, b)
        require(first.value != second.value)
        p, q = f"{n} {box} of {a}", f"{m} {box} of {b}"
        answer = p if first.value > second.value else q
        question = _GROUPS.expand(rng, n=n, m=m, a=a, b=b, c=box)
        return said(
            _tidy(question),
            "\n".join((*first.lines, *second.lines, relation(first.value, second.value), f"{answer} is more.")),
            answer,
        )
    total = int(first.value)
    limit = total + rng.choice((-1, 1, 1, -1, 0)) * rng.randint(1, max(2, total // 4))
    patterns = (_ENOUGH, _FITS, _MONEY_ENOUGH)[kind - 1]
    question = _tidy(patterns.expand(rng, n=n, a=a, b=limit, c=box, t=things.noun, x=some_people(rng, 1)[0]))
    word = "Yes" if (total >= limit if kind == 1 else total <= limit) else "No"
    return said(question, "\n".join((*first.lines, f"{word}, {relation(total, limit)}.")), word)


# Lists ---------------------------------------------------------------------------------------------

_LISTED = Patterns("""
    {l}. [Who has the {w}|Who has {w} of all|Who comes out with the {w}][?|]
    [Who|who] [has|got] the {w}: {l}[?|]
    [In the table|The list says|Results]: {l}. [Who has the {w}|The {w}|Name with the {w}][?|]
    {l}; [the {w}|who has the {w}|{w}][?|]
""")
_SECOND = Patterns("""
    {l}. [Who comes second|Who is second|Second place|Who has the second most][?|]
    [Who is second|Second place|Who has the second most]: {l}[?|]
    [Results|Points|Final table]: {l}. [Who is in second place|Runner-up|Number two][?|]
""")
_DAY_LIST = Patterns("""
    [visitors|Visitors|Sales|Calls|Rain in mm|Eggs|Steps|Temperatures]: {l}. [Which day had the {w}|The day with the {w}][?|]
    {l}[. |: |; ][which day has the {w}|day with the {w}][?|]
    [Which day had the {w}|Day with the {w}]: {l}[?|]
""")


@topic(1.2)
def lists_compared(rng: random.Random) -> Short:
    count, kind = rng.choice((3, 3, 4, 5)), rng.randrange(3)
    values = rng.sample(range(1, rng.choice((20, 60, 200))), count)
    if kind == 1:
        first = rng.randrange(7 - count + 1)
        days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()[first : first + count]
        names, typed = days, [d[:3] for d in days] if rng.random() < 0.4 else days
    else:
        names = [str(x) for x in some_people(rng, count)]
        typed = names
    form = rng.choice(("{} {}", "{}: {}", "{} ({})", "{} = {}", "{} has {}" if kind != 1 else "{} {}"))
    listed = rng.choice((", ", ", ", "; ")).join(form.format(n, v) for n, v in zip(typed, values, strict=True))
    most = rng.random() < 0.6
    word = rng.choice(("most", "highest number") if most else ("fewest", "least", "lowest number"))
    ranked = sorted(range(count), key=lambda i: -values[i])
    if kind == 2:
        question = _SECOND.expand(rng, l=listed)
        winner = ranked[1]
        line = " > ".join(str(values[i]) for i in ranked)
        return said(_tidy(question), f"{line}\nIt is {names[winner]}.", names[winner])
    winner = ranked[0 if most else -1]
    question = (_DAY_LIST if kind == 1 else _LISTED).expand(rng, l=listed, w=word)
    return said(
        _tidy(question),
        f"The {'largest' if most else 'smallest'} is {values[winner]}\nIt is {names[winner]}.",
        names[winner],
    )


# Orders told in words -------------------------------------------------------------------------------

# more, less, most, least
_ORDERS = tuple(line.split() for line in """
taller shorter tallest shortest
older younger oldest youngest
faster slower fastest slowest
heavier lighter heaviest lightest
richer poorer richest poorest
stronger weaker strongest weakest
bigger smaller biggest smallest
louder quieter loudest quietest
happier sadder happiest saddest
""".strip().splitlines())
_TOLD = Patterns("""
    {I}. {J}. [Who is|Who's] the {w}[ of the three| of them| of all|][?|]
    [Who is|Who's] the {w} if {i} and {j}[?|]
    {I}. {J}. [The {w}|Name the {w}|So the {w} is][?|]
    [Given:|It is known that|We know:] {i} and {j}. Who is the {w}[?|]
    {I}, and {j}. [Which of them is|So who is] the {w}[?|]
    [Who is|Who's] the {w}? {I}. {J}.
""")
_TOLD_AT_ONCE = Patterns("""
    {b} is {m} than {a} but {l} than {c}. [Who is the {w}|The {w}|Who's the {w} of the three][?|]
    {b} is {l} than {c} [but|and] {m} than {a}. [Who is the {w}|The {w}|Who's the {w} of the three][?|]
    {b} is {m} than {a}, {c} is {m} than {b}. [Who is the {w}|{w}][?|]
    both {a} and {b} are {l} than {c}, and {a} is {l} than {b}. [Who is the {w}|The {w}][?|]
""")
_WHO_OF_TWO = Patterns("""
    {I} and {j}. Who is {m}, {x} or {y}[?|]
    [Who is|Who's] {m}, {x} or {y}, if {i} and {j}[?|]
""")
_IS_TOLD = Patterns("""
    {I}. {J}. [Is|So is] {x} {m} than {y}[?|]
    [If|When] {i} and {j}, is {x} {m} than {y}[?|]
    {I} and {j}. Does it follow that {x} is {m} than {y}[?|]
""")


@topic(2)
def orders_told(rng: random.Random) -> Short:
    """Two relations of three people, from which the whole order follows."""
    more, less, most, least = rng.choice(_ORDERS)
    names = [str(x) for x in some_people(rng, 3)]
    a, b, c = names  # from the least to the most
    facts = [(b, more, a) if rng.random() < 0.6 else (a, less, b), (c, more, b) if rng.random() < 0.6 else (b, less, c)]
    rng.shuffle(facts)
    i, j = (f"{x} is {word} than {y}" for x, word, y in facts)
    slots = {"i": i, "j": j, "I": _capital(i), "J": _capital(j), "m": more, "l": less, "a": a, "b": b, "c": c}
    order = f"{_capital(c)} > {b} > {a}"
    kind = rng.randrange(5)
    if kind == 0:
        x, y = (c, a) if rng.random() < 0.5 else (a, c)
        if rng.random() < 0.4:
            return said(
                _tidy(_WHO_OF_TWO.expand(rng, x=x, y=y, **slots)), f"{order}\n{_capital(c)} is {more}.", _capital(c)
            )
        word = "Yes" if x == c else "No"
        return said(_tidy(_IS_TOLD.expand(rng, x=x, y=y, **slots)), f"{order}\n{word}", word)
    top = rng.random() < 0.5
    winner = _capital(c if top else a)
    patterns = _TOLD_AT_ONCE if kind == 1 else _TOLD
    question = _tidy(patterns.expand(rng, w=most if top else least, **slots))
    return said(question, f"{order}\n{winner} is the {most if top else least}.", winner)


_FEET_BY = Patterns("""
    {x} is {p}, {y} is {q}. [How many inches taller is {x}|By how many inches is {x} taller|How many inches between them][?|]
    {x} measures {p} and {y} {q}. [How many inches taller is {x}|Difference in inches][?|]
    How many inches taller is {x} ({p}) than {y} ({q})[?|]
    [By how many inches|How many inches] is {x} ({p}) taller than {y} ({q})[?|]
    {x} {p}, {y} {q}[: |, |. ][how many inches taller is {x}|difference in inches|inches between them][?|]
""")


@topic(0.6)
def heights_in_feet(rng: random.Random) -> Short:
    low = rng.randint(48, 74)
    high = low + rng.randint(1, 14)
    style = rng.choice(("{}'{}\"", "{} ft {} in", "{} feet {}", "{} foot {}", "{} feet {} inches"))
    x, y = some_people(rng, 2)
    texts, lines = [], []
    for inches in (high, low):
        feet, rest = divmod(inches, 12)
        require(rest > 0)
        texts.append(style.format(feet, rest))
        lines += [*apply("*", feet, 12).lines, *apply("+", feet * 12, rest).lines]
    worked = apply("-", high, low)
    question = _FEET_BY.expand(rng, x=x, y=y, p=texts[0], q=texts[1])
    return said(_tidy(question), "\n".join((*lines, *worked.lines)), worked.value)


_OFFERS = Patterns("""
    [plan|Plan|Offer|Shop|Pack] {x}: {p}. [Plan|Offer|Shop|Pack] {y}: {q}. [Which is cheaper per {o}|Which is the better deal|Which is the better value][?|]
    [Which is cheaper per {o}|Which is the better deal]: {x} ({p}) or {y} ({q})[?|]
    {x} = {p}, {y} = {q}. [cheaper per {o}|better deal][: {x} or {y}|][?|]
    {x}: {p}, {y}: {q}. [Which costs less per {o}|Which one has the lower price per {o}|Take {x} or {y}][?|]
""")


@topic(0.7)
def offers_named(rng: random.Random) -> Short:
    many, one = rng.choice(_MEASURES)
    n, m = rng.sample((2, 3, 4, 5, 6, 8, 10, 12, 20), 2)
    a, b = n * rng.randint(1, 12), m * rng.randint(1, 12)
    require(a * m != b * n)
    x, y = rng.choice((("A", "B"), ("A", "B"), ("X", "Y"), ("P", "Q")))
    first, second = a // n, b // m
    order = rng.random() < 0.5
    p, q = (
        (f"{n} {many} for ${a}", f"{m} {many} for ${b}") if order else (f"${a} for {n} {many}", f"${b} for {m} {many}")
    )
    lines = (*apply("/", a, n).lines, *apply("/", b, m).lines, relation(first, second))
    winner = x if first < second else y
    return said(
        _tidy(_OFFERS.expand(rng, x=x, y=y, p=p, q=q, o=one)), "\n".join((*lines, f"{winner} is cheaper.")), winner
    )


_COLDER = Patterns("""
    [which|Which|what] is {w}[: |, ]{a} or {b}[?|]
    {a} or {b}[: |, |? ][which is {w}|what's {w}|{w}][?|]
    [Is|is] {a} {w} than {b}[?|, yes or no?|]
    [Yesterday|At night] it was {a}, [today|by day] {b}. Which is {w}[?|]
""")


@topic(0.7)
def degrees_compared(rng: random.Random) -> Short:
    a, b = rng.sample(range(-30, 20), 2)
    unit = rng.choice(("°C", " degrees", "°", " °C"))
    warmer = rng.random() < 0.4
    word = rng.choice(("warmer", "hotter")) if warmer else rng.choice(("colder", "cooler"))
    question = _tidy(_COLDER.expand(rng, a=f"{a}{unit}", b=f"{b}{unit}", w=word))
    order = f"{a} {'<' if a < b else '>'} {b}"
    if question.startswith(("Is ", "is ")):
        verdict = "Yes" if (a > b) == warmer else "No"
        return said(question, f"{order}\n{verdict}", verdict)
    winner = a if (a > b) == warmer else b
    return said(question, f"{order}\n{winner}{unit} is {word}.", f"{winner}{unit}")


_SAME_WEIGHT = Patterns("""
    [What|Which] is {w}[: |, ]{p} of {x} or {q} of {y}[?|]
    [Is|is] {p} of {x} {w} than {q} of {y}[?|]
    {p} of {x} or {q} of {y}[: |, ]which weighs {m}[?|]
    [riddle|Riddle|Trick question]: [what|which] weighs {m}, {p} of {x} or {q} of {y}[?|]
""")
_STUFF = (
    "feathers iron gold lead cotton wool steel sand wood paper stones hay bricks potatoes air snow coal cheese".split()
)


@topic(0.4)
def same_weights(rng: random.Random) -> Short:
    """The riddle of the feathers."""
    x, y = rng.sample(_STUFF, 2)
    n, unit = rng.choice((1, 1, 1, 2, 5, 10)), rng.choice(("kg", "kilo", "pound", "ton"))
    amount = f"{rng.choice(('a', '1', 'one'))} {unit}" if n == 1 else f"{n} {unit if unit == 'kg' else unit + 's'}"
    heavy = rng.random() < 0.7
    question = _SAME_WEIGHT.expand(
        rng, p=amount, q=amount, x=x, y=y, w="heavier" if heavy else "lighter", m="more" if heavy else "less"
    )
    return said(
        _tidy(question),
        f"{amount} = {amount}\n{'No, they' if question[:2] in ('Is', 'is') else 'They'} weigh the same.",
        "the same",
    )
