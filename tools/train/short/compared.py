"""Things compared by a property, numbers of several forms compared, and rates, in free phrasing."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from .arithmetic import Worked, apply, chain, power
from .composing import compose, some_people, who
from .grammar import Patterns
from .numbers import Hand, Value, decimal, relation, require, show
from .question import Short, computed, said, topic
from .things import plural


@dataclass(frozen=True)
class _Property:
    """`more` is the side with the greater number; units are a large and a small one."""

    fact: Patterns
    more: tuple[str, ...]
    less: tuple[str, ...]
    most: tuple[str, ...]
    least: tuple[str, ...]
    things: str
    units: tuple[tuple[str, int, str], ...] = ()
    unit: str = ""
    low: int = 1
    high: int = 99


_GOODS = ("lamp chair shirt phone book hat table bag watch jacket pen camera desk sofa bike ticket pizza cake melon "
          "radio guitar tent rug clock vase mug coat tablet scarf printer toaster fridge pan knife ring belt doll drone "
          "ball game meal soup salad coffee tea juice hotel flight taxi mattress carpet heater ladder saw drill")
_OBJECTS = ("box stone suitcase melon parcel bag book brick dog cat crate pumpkin bottle ball basket laptop sack barrel log "
            "iron sugar letter truck elephant piano hammer rock potato fish cow baby bike table tire anvil goose pear")
_LONG = ("rope road stick river bridge table cable pencil snake ribbon wall belt trail plank hose train fence tunnel worm "
         "string pipe street path boat truck bed board scarf ladder pole wire chain beam")
_PLACES = ("Paris Oslo Rome Cairo Lima Delhi Tokyo Boston Madrid Kyiv Dublin Vienna Quito Zurich Prague Helsinki Berlin London "
           "Athens Sydney Moscow Toronto Chicago Denver Miami Dallas Seoul Bangkok Nairobi Lagos Warsaw Munich Hamburg Geneva "
           "Lisbon Porto Milan Naples Lyon Bergen Austin Phoenix Seattle Boise Osaka Kyoto Hanoi Manila Havana Bogota")
_PEOPLE = "people"
_FAST = ("car train bike bus horse boat plane truck scooter van cheetah rabbit tram falcon cyclist dog cat lion taxi ship "
         "jet swimmer runner turtle snail")
_PROPERTIES = (
    _Property(Patterns("[{x} costs ${a}|the price of {x} is ${a}|{x} is ${a}|{x} goes for ${a}|{x} sells for ${a}]"),
              ("more expensive", "pricier", "dearer"), ("cheaper", "less expensive"), ("most expensive", "dearest"),
              ("cheapest", "least expensive"), _GOODS, high=200),
    _Property(Patterns("[{x} weighs {a} {u}|{x} has a weight of {a} {u}|{x} is {a} {u}|the weight of {x} is {a} {u}]"),
              ("heavier",), ("lighter",), ("heaviest",), ("lightest",), _OBJECTS, (("kg", 1000, "g"),), "kg", high=60),
    _Property(Patterns("[{x} is {a} {u} long|{x} measures {a} {u}|{x} has a length of {a} {u}|the length of {x} is {a} {u}]"),
              ("longer",), ("shorter",), ("longest",), ("shortest",), _LONG,
              (("m", 100, "cm"), ("km", 1000, "m"), ("cm", 10, "mm")), "m", high=90),
    _Property(Patterns("[{x} is {a} {u} tall|{x} is {a} {u}|{x} measures {a} {u}|{x} has a height of {a} {u}|{x}'s height is {a} {u}]"),
              ("taller",), ("shorter", "smaller"), ("tallest",), ("shortest", "smallest"), _PEOPLE, (("m", 100, "cm"),), "cm", low=90, high=210),
    _Property(Patterns("[{x} is {a} {u} tall|{x} is {a} {u} high|{x} has a height of {a} {u}|the height of {x} is {a} {u}]"),
              ("taller", "higher"), ("shorter", "lower"), ("tallest", "highest"), ("shortest", "lowest"),
              "tree tower house mast statue lamp hill pole giraffe building wall ladder", (("m", 100, "cm"),), "m", high=90),
    _Property(Patterns("[it is {a}°C in {x}|in {x} it is {a} degrees|{x} has {a} degrees|{x} is at {a}°C|{x} has {a}°C|the temperature in {x} is {a} degrees]"),
              ("warmer", "hotter"), ("colder", "cooler"), ("warmest", "hottest"), ("coldest",), _PLACES, low=-25, high=35),
    _Property(Patterns("[{x} goes {a} km/h|{x} runs at {a} km/h|{x} has a speed of {a} km/h|{x} moves at {a} km per hour|{x} does {a} km/h]"),
              ("faster", "quicker"), ("slower",), ("fastest",), ("slowest",), _FAST, high=150),
    _Property(Patterns("[{x} needs {a} {u}|{x} takes {a} {u}|{x} finished in {a} {u}|{x} has a time of {a} {u}|{x} ran it in {a} {u}]"),
              ("slower",), ("faster", "quicker"), ("slowest",), ("fastest", "quickest"), _PEOPLE,
              (("minutes", 60, "seconds"),), "seconds", high=99),
    _Property(Patterns("[{x} is {a}|{x} is {a} years old|{x} is aged {a}|{x} turned {a}]"),
              ("older",), ("younger",), ("oldest",), ("youngest",), _PEOPLE, high=90),
    _Property(Patterns("[{x} is {a} {u} away|{x} lies {a} {u} from here|the distance to {x} is {a} {u}|it is {a} {u} to {x}]"),
              ("farther", "further away"), ("nearer", "closer"), ("farthest",), ("nearest", "closest"), _PLACES,
              (("km", 1000, "m"),), "km", high=900),
    _Property(Patterns("[{x} holds {a} {u}|{x} contains {a} {u}|{x} can take {a} {u}|there are {a} {u} in {x}|{x} has room for {a} {u}]"),
              ("bigger", "larger"), ("smaller",), ("biggest", "largest"), ("smallest",),
              "bucket jug bottle tank barrel pot can jar kettle sink", (("liters", 1000, "ml"),), "liters", high=60),
    _Property(Patterns("[{x} lasts {a} {u}|{x} takes {a} {u}|{x} goes on for {a} {u}|{x} is {a} {u} long]"),
              ("longer",), ("shorter",), ("longest",), ("shortest",),
              "film lesson trip game song flight meeting concert show", (("hours", 60, "minutes"),), "minutes", high=90),
    _Property(Patterns("[{x} scored {a} points|{x} has {a} points|{x} got {a} points|{x} reached {a} points]"),
              ("better", "higher"), ("worse", "lower"), ("best", "highest"), ("worst", "lowest"), _PEOPLE, high=120),
)
_WHICH = Patterns("[which [one|of the two|of them|] is {w}|what is {w}|which is the {w} [one|of the two|]|which of these is {w}|who or what is {w}|which one is the {w}|is {x} or {y} {w}|which is {w}, {x} or {y}|name the {w} one|tell me the {w} one]")
_WHO = Patterns("[who is {w}|who of them is {w}|who of the two is {w}|who is the {w} one|which of them is {w}|is {x} or {y} {w}|who is {w}, {x} or {y}]")
_WHICH_MOST = Patterns("[which [one|of them|of these|of the three|] is the {w}|what is the {w}|which is {w}|name the {w}|which one is the {w} of all|tell me the {w}]")
_WHO_MOST = Patterns("[who is the {w}|who of them is the {w}|who is {w}|which of them is the {w}|who is the {w} of all]")
_IS_IT = Patterns("[is {x} {w} than {y}|is {x} the {w} one|is {x} really {w} than {y}|is it true that {x} is {w} than {y}]")
_INSIDE = Patterns("""
    {Who} is {w}, {x} [at|with] {a} or {y} [at|with] {b}[?|]
    {Who} is {w}: {x} ({a}) or {y} ({b})[?|]
    {x} [at|with] {a} or {y} [at|with] {b}[: |, |; |. ]{who} is {w}[?|]
    {x} {a}, {y} {b}[: |, |; |. |. So ]{who} is [{w}|the {w} one][?|]
    {x}: {a}. {y}: {b}. {Who} is {w}[?|]
""")
_BY_HOW = Patterns("[how much {w} is {x} than {y}|by how much is {x} {w}|how much {w} is {x}|what is the difference|by how much is {x} {w} than {y}]")


def _amount(rng: random.Random, p: _Property) -> Value:
    kind = rng.random()
    if p.units and kind < 0.3:
        return decimal(rng, min(p.high, 20), rng.choice((1, 1, 2)))
    return rng.randint(p.low, rng.choice((p.high, max(p.low + 9, min(p.high, 20)))))


def _names(rng: random.Random, p: _Property, count: int) -> tuple[list[str], list[str]]:
    """In facts, and in the reply."""
    if p.things == _PEOPLE:
        people = some_people(rng, count)
        return [str(one) for one in people], [str(one).replace("a ", "the ", 1) if str(one).startswith("a ") else str(one) for one in people]
    if p.things[0].isupper():
        names = rng.sample(p.things.split(), count)
        return names, names
    if rng.random() < 0.12:
        kind = rng.choice(p.things.split())
        letters = rng.sample("ABCXYZ", count)
        return [f"{kind} {x}" for x in letters], [f"{kind} {x}" for x in letters]
    chosen = rng.sample(p.things.split(), count)
    article = rng.choice(("the", "the", "a", "my", "the"))
    return [("an " if article == "a" and n[0] in "aeiou" else article + " ") + n for n in chosen], [f"the {n}" for n in chosen]


_SIGNED = {"more expensive": "${}", "warmer": "{} degrees", "faster": "{} km/h", "better": "{} points"}


@topic(7)
def compared_things(rng: random.Random) -> Short:
    p = rng.choice(_PROPERTIES)
    count = 2 if rng.random() < 0.65 else rng.choice((3, 3, 4))
    names, shown = _names(rng, p, count)
    if p.things == _PEOPLE and p.most[0] == "tallest":
        values, units, lines, sizes = _heights(rng, count)
    else:
        values = [_amount(rng, p) for _ in range(count)]
        units, lines, sizes = _units(rng, p, values)
    require(len(set(sizes)) == count)
    facts = [p.fact.expand(rng, x=n, a=show(v), u=u) for n, v, u in zip(names, values, units, strict=True)]
    said_amounts = [_SIGNED.get(p.more[0], "{} {}").format(show(v), u).strip() for v, u in zip(values, units, strict=True)]
    is_people = p.things == _PEOPLE
    by_size = sorted(range(count), key=lambda i: sizes[i])
    more = rng.random() < 0.5
    winner = by_size[-1 if more else 0]
    kind = rng.random()
    if count > 2:
        if kind < 0.25:
            signed = " > ".join(show(sizes[i]) for i in reversed(by_size)) if more else " < ".join(show(sizes[i]) for i in by_size)
            return _ordered(rng, p, facts, [*lines, signed], [shown[i] for i in by_size], more)
        word = rng.choice(p.most if more else p.least)
        lines = [*lines, f"The {'largest' if more else 'smallest'} is {show(sizes[winner])}"]
        ask = (_WHO_MOST if is_people else _WHICH_MOST).expand(rng, w=word)
        return _winner(compose(rng, facts, ask, f"the {word}", free=not lines), lines, shown[winner], f"the {word}")
    word = rng.choice(p.more if more else p.less)
    x, y = shown[winner], shown[1 - winner]
    reason = relation(sizes[winner], sizes[1 - winner])
    if kind < 0.18 and len(set(units)) == 1:
        high, low = max(sizes), min(sizes)
        ask = _BY_HOW.expand(rng, w=word, x=x, y=y)
        return computed(compose(rng, facts, ask, rng.choice(("the difference", "how much " + word)), free=True), apply("-", high, low))
    if kind < 0.4:
        first, second = (x, y) if rng.random() < 0.5 else (y, x)
        verdict = "Yes" if first == x else "No"
        question = compose(rng, facts, _IS_IT.expand(rng, w=word, x=first, y=second), f"{first} {word} than {second}")
        return said(question, "\n".join((*lines, reason, f"{verdict}, {x} is {word} than {y}.")), verdict)
    lines = [*lines, reason]
    ask = (_WHO if is_people else _WHICH).expand(rng, w=word, x=shown[0], y=shown[1])
    if rng.random() < 0.25:
        question = _INSIDE.expand(rng, w=word, x=shown[0], y=shown[1], a=said_amounts[0], b=said_amounts[1], who="who" if is_people else "which",
                                  Who="Who" if is_people else "Which")
        return _winner(question, lines, x, word)
    return _winner(compose(rng, facts, ask, f"the {word} one"), lines, x, word)


def _units(rng: random.Random, p: _Property, values: list[Value]) -> tuple[list[str], list[str], list[Value]]:
    """The unit of each value, the conversions, and the values in one unit. Changes the values to fit."""
    if not p.units:
        return [""] * len(values), [], list(values)
    large, factor, small = rng.choice(p.units)
    if rng.random() < 0.6:
        return [rng.choice((large, small))] * len(values), [], list(values)
    units, lines, sizes = [], [], []
    for i, value in enumerate(values):
        in_small = i % 2 == 0 if rng.random() < 0.8 else rng.random() < 0.5
        base = int(value * factor) + rng.choice((0, 0, 50, -50, 10)) * (factor >= 100)
        if in_small:
            require(base > 0)
            values[i] = base
            sizes.append(base)
        else:
            require((value * factor) == int(value * factor))
            sizes.append(int(value * factor))
            lines.append(f"{show(value)} {large} = {sizes[-1]} {small}")
        units.append(small if in_small else large)
    return units, lines if len(set(units)) > 1 else [], sizes


def _heights(rng: random.Random, count: int) -> tuple[list[Value], list[str], list[str], list[Value]]:
    """Of people: in cm, in m, or in both. As `_units`, after the values."""
    sizes = [rng.randint(90, 205) for _ in range(count)]
    in_meters = [Fraction(size, 100) for size in sizes]
    style = rng.random()
    if style < 0.45:
        return list(sizes), ["cm"] * count, [], list(sizes)
    if style < 0.65:
        return list(in_meters), ["m"] * count, [], list(in_meters)
    units = [("m", "cm")[(i + (style < 0.82)) % 2] for i in range(count)]
    values = [m if unit == "m" else size for m, unit, size in zip(in_meters, units, sizes, strict=True)]
    lines = [f"{show(m)} m = {size} cm" for m, unit, size in zip(in_meters, units, sizes, strict=True) if unit == "m"]
    return values, units, lines, list(sizes)


def _winner(question: str, lines: list[str], name: str, word: str) -> Short:
    shown = name[0].upper() + name[1:]
    return said(question, "\n".join((*lines, f"{shown} is {word}.")), shown.removeprefix("The "))


def _ordered(rng: random.Random, p: _Property, facts: list[str], lines: list[str], names: list[str], down: bool) -> Short:
    first, last = rng.choice(p.most if down else p.least), rng.choice(p.least if down else p.most)
    answer = ", ".join(reversed(names) if down else names)
    ask = Patterns("[what is the order from {a} to {b}|how do they rank from {a} to {b}|in which order do they come from {a} to {b}|which order is it, {a} first|can you sort them from {a} to {b}]")
    return said(compose(rng, facts, ask.expand(rng, a=first, b=last), f"the order from {first} to {last}"),
                "\n".join((*lines, answer)), answer)


# Numbers ---------------------------------------------------------------------------------------

_CLOSEST = Patterns("""
    [Which|Which number|What number|which one] is [closer|closest|nearer|nearest] to {t}[:|,|?] {a} or {b}[?|]
    [Is|is] {a} or {b} [closer|nearer] to {t}[?|]
    {a} or {b}: [which is|what is] [closer|nearer] to {t}[?|]
    [Of|Out of] {a} and {b}[,|] [which|what] is [nearer|closer|nearest|closest] to {t}[?|]
    [closer|nearest|closest] to {t}: {a} or {b}[?|]
    [The|A] [guess|target|number|price] is {t}. {x} [says|guessed|bets] {a}, {y} [says|guessed|bets] {b}. [Which guess is closer|Which is closer|closer guess][?|]
""")
_BETWEEN = Patterns("""
    [Is|is] {n} between {a} and {b}[?|]
    [Does|does] {n} lie between {a} and {b}[?|]
    {n}[: is it|, is that|, is it] between {a} and {b}[?|]
    [Is|is] the number {n} [in the range|within] {a} to {b}[?|]
""")
_WHICH_SIGN = Patterns("""
    {a} [_|__|?|...|[ ]|O] {b}[, | - |: ][<, > or =|less than, greater than or equal|which sign: <, >, =|> or < or =][?|]
    [Put|Write|Fill in|Choose|Use] [<, > or =|the right sign|the correct sign <, > or =|the sign] [between|for]: {a} [_|__|?] {b}[.|?|]
    [Which sign goes|What sign belongs|Which symbol goes] between {a} and {b}[: <, > or =|][?|]
    [Compare|compare] {a} [and|with|to] {b} [using|with] <, > or =[.|]
""")
_TWO_SUMS = Patterns("""
    [Which|What|which one] is [{w}|the {w} one], {a} or {b}[?|]
    {a} or {b}[: which is {w}?|, what is {w}?|, which one is {w}?]
    [Is|is] {a} {w} than {b}, or [the other way round|vice versa][?|]
    [What|Which] [is {w}|gives {w}|result is {w}]: {a} [or|vs] {b}[?|]
    {w}: {a} or {b}[?|]
    [Compare|compare] {a} and {b}[. Which is {w}?|: which is {w}?|, which one is {w}?]
""")


def _form(rng: random.Random) -> tuple[Fraction, str]:
    """A decimal, a fraction or a percentage."""
    bottom = rng.choice((2, 4, 5, 10, 20, 100))
    value = Fraction(rng.randint(1, bottom - 1), bottom)
    return value, rng.choice((show(value), str(value), f"{show(value * 100)}%"))


def _as_decimal(value: Fraction, text: str) -> list[str]:
    return [] if text == show(value) else [f"{text} = {show(value)}"]


@topic(4)
def numbers_compared(rng: random.Random) -> Short:
    kind = rng.randrange(5)
    if kind == 0:
        t = rng.choice((rng.randint(5, 100), 10 * rng.randint(1, 50), 100 * rng.randint(1, 9), 0))
        reach = rng.choice((5, 12, 40))
        a, b = t - rng.randint(1, reach), t + rng.randint(1, reach)
        if rng.random() < 0.3:
            a = t + rng.randint(1, reach)
        require(abs(a - t) != abs(b - t) and min(a, b) >= 0)
        if rng.random() < 0.5:
            a, b = b, a
        x, y = some_people(rng, 2)
        lines = [apply("-", max(v, t), min(v, t)).lines[-1] for v in (a, b)]
        answer = min((a, b), key=lambda v: abs(v - t))
        return said(_CLOSEST.expand(rng, t=t, a=a, b=b, x=x, y=y), "\n".join((*lines, f"{answer} is closer.")), answer)
    if kind == 1:
        low = rng.choice((rng.randint(-20, 50), rng.randint(0, 500)))
        high = low + rng.randint(3, 60)
        n = rng.randint(low - 15, high + 15)
        require(n not in (low, high))
        inside = low < n < high
        reason = f"{low} < {n} < {high}" if inside else f"{n} < {low}" if n < low else f"{n} > {high}"
        verdict = "Yes" if inside else "No"
        return said(_BETWEEN.expand(rng, n=n, a=low, b=high), f"{reason}\n{verdict}, {reason}.", verdict)
    if kind == 2:
        (a, p), (b, q) = _form(rng), _form(rng)
        if rng.random() < 0.3:
            (a, p), (b, q) = ((v := rng.randint(-30, 30), str(v)) for _ in range(2))
        lines = [*_as_decimal(Fraction(a), p), *_as_decimal(Fraction(b), q)]
        if lines:
            lines.append(relation(a, b))
        sign = "<" if a < b else ">" if a > b else "="
        return said(_WHICH_SIGN.expand(rng, a=p, b=q), "\n".join((*lines, f"{p} {sign} {q}")), f"{sign} {q}")
    more = rng.random() < 0.6
    word = rng.choice(("greater", "bigger", "more", "larger", "higher") if more else ("less", "smaller", "lower"))
    if kind == 3:
        (a, p), (b, q) = _form(rng), _form(rng)
        require(a != b)
        answer = p if (a > b) == more else q
        lines = [*_as_decimal(a, p), *_as_decimal(b, q), relation(a, b)]
        return said(_TWO_SUMS.expand(rng, a=p, b=q, w=word),
                    "\n".join((*lines, f"{answer} is {'greater' if more else 'less'}.")), answer)
    sums = []
    for _ in range(2):
        operator = rng.choice("+-**/^")
        if operator == "^":
            m, n = rng.randint(2, 10), rng.choice((2, 2, 2, 3, 3, 4, 5))
            require(m**n <= 1000)
            sums.append((f"{m}^{n}", power(m, n)))
            continue
        m, n = (rng.randint(2, 12) for _ in range(2)) if operator in "*/" else (rng.randint(10, 60), rng.randint(1, 10))
        m = m * n if operator == "/" else m
        sums.append((f"{m} {operator} {n}", apply(operator, m, n)))
    require(sums[0][1].value != sums[1][1].value)
    best = max(sums, key=lambda s: s[1].value) if more else min(sums, key=lambda s: s[1].value)
    tight = rng.random() < 0.4
    texts = [s[0].replace(" ", "") if tight else s[0] for s in sums]
    lines = (*sums[0][1].lines, *sums[1][1].lines, relation(sums[0][1].value, sums[1][1].value), f"{best[0]} is {'greater' if more else 'less'}.")
    return said(_TWO_SUMS.expand(rng, a=texts[0], b=texts[1], w=word), "\n".join(lines), f"{best[0]} is")


_DEALS = Patterns("""
    [What|Which] is [cheaper|the better deal|the better buy|the better price|the better value] [per piece|each|per item|]: {p} or {q}[?|]
    [Shop|Store] A sells {p}, [shop|store] B {q}. [Which is cheaper [per piece|each|]|Where are they cheaper|Which is the better deal][?|]
    {p} or {q}[: better deal?|, which is cheaper?|, what is the better buy?|: what's cheaper per piece?|. Which is better?]
    [cheaper|better deal|better buy|best price]: {p} or {q}[?|]
    [I can get|You can buy|They offer] {p} or {q}. [Which is cheaper|Which is the better deal|What is the better offer][?|]
""")


@topic(1)
def better_deal(rng: random.Random) -> Short:
    n, m = rng.sample(range(2, 13), 2)
    a, b = n * rng.randint(1, 12), m * rng.randint(1, 12)
    if rng.random() < 0.5:
        a, b = rng.randint(1, 40), rng.randint(1, 40)
    one, two = Fraction(a, n), Fraction(b, m)
    require(one != two and 100 % one.denominator == 0 and 100 % two.denominator == 0)
    noun = plural(rng)
    p, q = f"{n} {noun} for ${a}", f"{m} {noun} for ${b}"
    answer = p if one < two else q
    return said(_DEALS.expand(rng, p=p, q=q), f"{a} / {n} = {show(one)}\n{b} / {m} = {show(two)}\n{relation(one, two)}\n{answer} is cheaper.", answer)


# Rates -----------------------------------------------------------------------------------------

# (subject, verb, things, the times that fit)
_DOING = tuple((s.strip(), v.strip(), o.strip(), t.split()) for s, v, o, t in (line.split("|") for line in """
a tap|drips|drops|minute hour
a leaky faucet|loses|drops|minute hour
a heart|beats|times|minute
my heart|beats|times|minute
a printer|prints|pages|minute hour
a machine|makes|bottles|minute hour day
a factory|produces|cars|hour day week
a pump|moves|liters|minute hour
a hose|fills|liters|minute
a baker|bakes|loaves|hour day
a typist|types|words|minute hour
a server|handles|requests|second minute
a computer|downloads|MB|second minute
a phone|downloads|megabytes|second minute
a robot|packs|boxes|minute hour
a hen|lays|eggs|week month
a cow|gives|liters of milk|day week
a car|uses|liters of fuel|hour day
a painter|paints|walls|hour day
a gardener|plants|trees|hour day
a cashier|serves|customers|hour day
a bird|flaps its wings|times|second minute
a bee|visits|flowers|minute hour
a wheel|turns|times|second minute
a fan|spins|times|second minute
a reader|reads|pages|hour day
a worker|assembles|chairs|hour day week
a lamp|uses|watts|hour
a plant|grows|cm|week month
a snail|crawls|cm|minute hour
a child|loses|teeth|year
a tree|grows|cm|year month
a shop|sells|shirts|day week
a website|gets|visitors|minute hour day
an elevator|rises|floors|minute
a drummer|hits the drum|times|second minute
a student|solves|problems|hour day
a model|writes|tokens|second minute
a runner|runs|meters|second minute
a swimmer|swims|laps|hour day
a cook|peels|potatoes|minute hour
a camera|takes|photos|second minute
a truck|carries|crates|trip day
a well|yields|buckets|hour day
a company|hires|people|month year
a bus|carries|passengers|trip hour
a person|drinks|cups|day week
a cat|sleeps|hours|day
a dog|eats|cans|day week
a family|uses|eggs|day week
""".strip().split("\n")))
_PER_FACT = Patterns("[{s} {v} {a} {o} [per|a|each|every|in one|in a] {t}|{s} {v} {a} {o} [per|each|every] {t}|every {t} {s} {v} {a} {o}|per {t} {s} {v} {a} {o}|in one {t} {s} {v} {a} {o}|in each {t} {a} {o} is what {s} {v}]")
_IN_FACT = Patterns("[{s} {v} {b} {o} in {n} {t}s|in {n} {t}s {s} {v} {b} {o}|{s} {v} {b} {o} [within|during|over] {n} {t}s|it takes {n} {t}s until {s} {v} {b} {o}]")
_HOW_MANY = Patterns("[how many {o} [is that|are that|] in {n} {t}s|how many {o} in {n} {t}s|how many {o} after {n} {t}s|what number of {o} in {n} {t}s|how many {o} within {n} {t}s|in {n} {t}s how many {o}|how many {o} does it come to over {n} {t}s]")
_PER_WHAT = Patterns("[how many {o} [is that|are that|] per {t}|how many {o} [per|a|each|every|in one|in a] {t}|what is the rate per {t}|how many {o} in one {t}|how many per {t}]")
_HOW_LONG = Patterns("[how long [does it take|is needed|is it] for {b} {o}|how many {t}s for {b} {o}|after how many {t}s is it {b} {o}|in how many {t}s is it {b} {o}|how many {t}s does it take for {b} {o}|how many {t}s until {b} {o}]")


@topic(4)
def rate_stories(rng: random.Random) -> Short:
    s, v, o, times = rng.choice(_DOING)
    s = s if rng.random() < 0.6 else "the" + s[s.index(" "):]
    t = rng.choice(times)
    a, n = rng.choice((rng.randint(2, 12), rng.randint(2, 60), 5 * rng.randint(1, 30), 10 * rng.randint(1, 20))), rng.randint(2, 12)
    if rng.random() < 0.2:
        n = rng.choice((15, 20, 24, 25, 30, 45, 50, 60, 100))
    hand = Hand(rng)
    slots = {"s": s, "v": v, "o": o, "t": t, "a": hand.write(a), "b": hand.write(a * n), "n": hand.write(n)}
    kind = rng.randrange(5)
    if kind < 2:
        question = compose(rng, [_PER_FACT.expand(rng, **slots)], _HOW_MANY.expand(rng, **slots), f"{o} in {slots['n']} {t}s")
        return computed(question, apply("*", a, n))
    if kind == 2:
        question = compose(rng, [_IN_FACT.expand(rng, **slots)], _PER_WHAT.expand(rng, **slots), f"{o} per {t}")
        return computed(question, apply("/", a * n, n))
    if kind == 3:
        question = compose(rng, [_PER_FACT.expand(rng, **slots)], _HOW_LONG.expand(rng, **slots), f"the {t}s for {slots['b']} {o}")
        return computed(question, apply("/", a * n, a))
    m = rng.choice([k for k in range(2, 16) if k != n])
    require(n <= 12)
    one, end = apply("/", a * n, n), apply("*", a, m)
    question = compose(rng, [_IN_FACT.expand(rng, **slots)], _HOW_MANY.expand(rng, **(slots | {"n": m})), f"{o} in {m} {t}s")
    return computed(question, Worked(one.lines + end.lines, end.value))


_LONGER_UNIT = {"second": ("minute", 60), "minute": ("hour", 60), "hour": ("day", 24), "day": ("week", 7),
                "month": ("year", 12), "week": ("year", 52)}


@topic(1.5)
def rates_in_other_units(rng: random.Random) -> Short:
    """20 drops per minute: how many per hour?"""
    s, v, o, times = rng.choice(_DOING)
    t = rng.choice([t for t in times if t in _LONGER_UNIT] or ["minute"])
    longer, factor = _LONGER_UNIT[t]
    a = rng.choice((rng.randint(2, 12), 5 * rng.randint(1, 20), rng.randint(2, 90)))
    back = rng.random() < 0.3
    if back:
        fact = _PER_FACT.expand(rng, s=s, v=v, o=o, t=longer, a=a * factor)
        return computed(compose(rng, [fact], _PER_WHAT.expand(rng, o=o, t=t), f"{o} per {t}"), apply("/", a * factor, factor))
    n = rng.choice((1, 1, 1, rng.randint(2, 5)))
    fact = _PER_FACT.expand(rng, s=s, v=v, o=o, t=t, a=a)
    if n == 1:
        return computed(compose(rng, [fact], _PER_WHAT.expand(rng, o=o, t=longer), f"{o} per {longer}"), apply("*", a, factor))
    return computed(compose(rng, [fact], _HOW_MANY.expand(rng, o=o, n=n, t=longer), f"{o} in {n} {longer}s"),
                    chain(a, ("*", factor), ("*", n)))


_MOVERS = "car train bus bike horse boat plane truck ship runner cyclist snail drone tram hiker skater rocket".split()
_MOVE = Patterns("[{x} [travel{s}|go{es}|move{s}|drive{s}|ride{s}|cover{s}|run{s}]]")
_AT = Patterns("[at {v} {u}{p}|with {v} {u}{p}|at a speed of {v} {u}{p}|{v} {u} [every|each|in an|per] {h}]")


@topic(2.5)
def travel(rng: random.Random) -> Short:
    """Speed, distance and time; one is asked for."""
    unit, per, hour = rng.choice((("km", "/h", "hour"), ("km", " per hour", "hour"), ("miles", " per hour", "hour"),
                                  ("m", "/s", "second"), ("meters", " per second", "second"), ("meters", " per minute", "minute"),
                                  ("miles", " an hour", "hour"), ("km", " an hour", "hour")))
    speed, n = rng.choice((rng.randint(2, 20), 5 * rng.randint(2, 25), 10 * rng.randint(2, 12))), rng.randint(2, 12)
    time: Value = Fraction(2 * n + 1, 2) if rng.random() < 0.2 and speed % 2 == 0 else n
    if rng.random() < 0.5:
        x = who(rng)
        move = _MOVE.expand(rng, x=x, s=x.s, es=x.es)
        name, do = str(x), x.do
    else:
        name, do = f"{rng.choice(('the', 'a', 'a'))} {rng.choice(_MOVERS)}", "does"
        move = _MOVE.expand(rng, x=name, s="s", es="es")
    distance = speed * time
    require(Fraction(distance).denominator == 1)
    d = f"{show(distance)} {unit}"
    t = f"{show(time)} {hour}s"
    slots = {"v": speed, "u": unit, "p": per, "h": hour}
    kind = rng.randrange(3)
    if kind == 0:
        fact = f"{move} {rng.choice((f'{_AT.expand(rng, **slots)} for {t}', f'for {t} {_AT.expand(rng, **slots)}'))}"
        ask = rng.choice((f"how far {do} {name} get", f"how many {unit} is that", "what distance is that", f"how far {do} {name} go",
                          f"how many {unit} {do} {name} go", "how far is it", "what distance is covered"))
        return computed(compose(rng, [fact], ask, rng.choice(("the distance", f"the {unit}", "distance"))), apply("*", speed, time))
    if kind == 1:
        fact = rng.choice((f"{move} {d} in {t}", f"in {t} {move} {d}", f"{name} need{'' if do == 'do' else 's'} {t} for {d}"))
        ask = rng.choice(("what is the speed", f"how fast is it in {unit} per {hour}", f"how many {unit} per {hour}",
                          f"how many {unit} is that per {hour}", f"how fast {do} {name} go", "what is the average speed"))
        return computed(compose(rng, [fact], ask, rng.choice(("the speed", "the average speed", f"{unit} per {hour}"))),
                        apply("/", distance, time))
    fact = f"{move} {_AT.expand(rng, **slots)}"
    ask = rng.choice((f"how long does it take to go {d}", f"how many {hour}s for {d}", f"how long {do} {name} need for {d}",
                      f"how many {hour}s does {d} take", f"how long is a trip of {d}", f"after how many {hour}s is {d} reached"))
    return computed(compose(rng, [fact], ask, rng.choice((f"the time for {d}", f"the {hour}s for {d}"))),
                    apply("/", distance, speed))


_COST_PER = Patterns("[{n} {u} [of {g} |]cost ${b}|[a|one] bag of {n} {u} of {g} is ${b}|{n} {u} of {g} [are|come to|go for] ${b}|{x} pay{x.s} ${b} for {n} {u} of {g}]")
_PER_COST = Patterns("[{g} cost ${a} per {one}|one {one} of {g} costs ${a}|{g} [are|is] ${a} [a|per] {one}|{x} pay{x.s} ${a} per {one} of {g}]")


@topic(1.5)
def cost_rates(rng: random.Random) -> Short:
    unit, one = rng.choice((("kg", "kg"), ("kilos", "kilo"), ("liters", "liter"), ("pounds", "pound"), ("meters", "meter"),
                            ("bags", "bag"), ("boxes", "box"), ("hours", "hour"), ("cans", "can"), ("packs", "pack"), ("pieces", "piece")))
    g = rng.choice("apples rice flour cheese nuts potatoes cloth paint juice sugar tea beans milk rope tiles sand wool".split())
    a: Value = rng.choice((rng.randint(1, 20), Fraction(rng.randint(1, 19), 2)))
    n, m = rng.randint(2, 12), rng.randint(2, 15)
    require(Fraction(a * n).denominator == 1)
    slots = {"n": n, "u": unit, "one": one, "g": g, "b": show(a * n), "a": show(a), "x": who(rng)}
    kind = rng.randrange(3)
    if kind == 0:
        ask = rng.choice((f"what does one {one} cost", f"how much is one {one}", f"what is the price per {one}", f"how much per {one}"))
        return computed(compose(rng, [_COST_PER.expand(rng, **slots)], ask, f"the price per {one}"), apply("/", a * n, n))
    ask = rng.choice((f"what do {m} {unit} cost", f"how much are {m} {unit}", f"how much is it for {m} {unit}",
                      f"how many dollars for {m} {unit}", f"what is the price of {m} {unit}"))
    if kind == 1:
        return computed(compose(rng, [_PER_COST.expand(rng, **slots)], ask, f"the price of {m} {unit}"), apply("*", m, a))
    one_step, end = apply("/", a * n, n), apply("*", m, a)
    require(n != m)
    return computed(compose(rng, [_COST_PER.expand(rng, **slots)], ask, f"the price of {m} {unit}"),
                    Worked(one_step.lines + end.lines, end.value))


_WORK = Patterns("[{n} {w} [need|take|require] {d} {t} for {j}|{n} {w} [do|finish|build|complete] {j} in {d} {t}|{j} takes {n} {w} {d} {t}|it takes {n} {w} {d} {t} to do {j}]")
_WORK_ASK = Patterns("[how long do {m} {w} need|how many {t} do {m} {w} need|how many {t} for {m} {w}|how long does it take {m} {w}|in how many {t} are {m} {w} done]")


@topic(0.8)
def shared_work(rng: random.Random) -> Short:
    n, d = rng.randint(2, 10), rng.randint(2, 12)
    m = rng.choice([k for k in range(1, 25) if n * d % k == 0 and k != n])
    w = rng.choice("workers painters machines people pumps robots cooks gardeners printers".split())
    j = rng.choice(("a wall", "a job", "the work", "a house", "a fence", "an order", "the task"))
    t = rng.choice(("hours", "days", "minutes"))
    total = apply("*", n, d)
    end = apply("/", total.value, m)
    slots = {"n": n, "d": d, "m": m, "w": w, "j": j, "t": t}
    if m == 1:
        slots["m"], end = "one of the", Worked((), total.value)
    question = compose(rng, [_WORK.expand(rng, **slots)], _WORK_ASK.expand(rng, **slots), f"the {t} for {slots['m']} {w}")
    return computed(question, Worked(total.lines + end.lines, end.value))


# Amounts and counts ----------------------------------------------------------------------------

# large unit, how many small ones, small unit, more, less, of which things
_AMOUNTS = (
    ("kg", 1000, "g", ("heavier", "more"), ("lighter", "less"), "iron feathers sugar flour rice wool sand cotton lead paper wood gold"),
    ("km", 1000, "m", ("longer", "farther", "more"), ("shorter", "less"), ""), ("m", 100, "cm", ("longer", "more"), ("shorter", "less"), "rope wire ribbon"),
    ("liters", 1000, "ml", ("more",), ("less",), "water milk juice oil tea"), ("hours", 60, "minutes", ("longer", "more"), ("shorter", "less"), ""),
    ("minutes", 60, "seconds", ("longer", "more"), ("shorter", "less"), ""), ("days", 24, "hours", ("longer", "more"), ("shorter", "less"), ""),
    ("weeks", 7, "days", ("longer", "more"), ("shorter", "less"), ""), ("years", 12, "months", ("longer", "more"), ("shorter", "less"), ""),
    ("feet", 12, "inches", ("longer", "taller", "more"), ("shorter", "less"), ""), ("dollars", 100, "cents", ("more",), ("less",), ""),
    ("cm", 10, "mm", ("longer", "more"), ("shorter", "less"), ""), ("pounds", 16, "ounces", ("heavier", "more"), ("lighter", "less"), "nuts cheese meat"))
_WHICH_AMOUNT = Patterns("""
    [What|Which|which] is {w}[,|:] {p} or {q}[?|]
    [What's|whats|What is|Which is] [{w}|the {w} one][,|:] {p} or {q}[?|]
    {p} or {q}[: |, |; which is |, what's |, which is ]{w}[?|]
    [Compare|compare] {p} [and|with|to] {q}[. |: |, ][which|what] is {w}[?|]
    [I can choose|There are|Here are] {p} and {q}. Which is {w}[?|]
""")
_IS_AMOUNT = Patterns("""
    [Is|Are] {p} {w} than {q}[?|]
    [Is it true that|True or false:|Is it right that] {p} [is|are] {w} than {q}[?|]
    {p} {w} than {q}[?|, yes or no?|, right?|: true?]
""")


@topic(2)
def amounts_compared(rng: random.Random) -> Short:
    """2 kg of iron or 1500 g of feathers."""
    large, factor, small, more_words, less_words, stuff = rng.choice(_AMOUNTS)
    a: Value = rng.randint(1, 12) if rng.random() < 0.75 else decimal(rng, 9, 1)
    base = a * factor
    require(Fraction(base).denominator == 1)
    other = int(base) + rng.choice((1, -1)) * rng.choice((rng.randint(1, max(1, factor // 2)), rng.randint(1, factor), factor // 10 or 1))
    require(other > 0)
    more = rng.random() < 0.6
    word = rng.choice(more_words if more else less_words)
    unit = (large if large in ("km", "m", "kg", "cm") else "foot" if large == "feet" else large[:-1]) if a == 1 else large
    p = f"{rng.choice(('a', 'one', '1')) if a == 1 and len(unit) > 2 and unit != 'hour' else show(a)} {unit}"
    q = f"{other} {small}"
    if stuff and rng.random() < 0.6:
        x, y = rng.sample(stuff.split(), 2)
        p, q = f"{p} of {x}", f"{q} of {y}"
    lines = [f"{show(a)} {unit} = {show(base)} {small}"]
    wins = (base > other) == more
    sign = ">" if base > other else "<"
    if rng.random() < 0.4:
        lines.append(f"{show(base)} {sign} {other}")
        flip = rng.random() < 0.4
        first, second, verdict = (q, p, not wins) if flip else (p, q, wins)
        return said(_IS_AMOUNT.expand(rng, p=first, q=second, w=word), "\n".join((*lines, "Yes" if verdict else "No")), "Yes" if verdict else "No")
    best, first, second = (p if wins else q), *((p, q) if rng.random() < 0.5 else (q, p))
    lines.append(f"{show(base)} {sign} {other}")
    shown = best[0].upper() + best[1:]
    return said(_WHICH_AMOUNT.expand(rng, p=first, q=second, w=word), "\n".join((*lines, f"{shown} is {word}.")), shown)


_WHO_COUNTS = Patterns("""
    {x} [has|got|owns|holds|keeps|won|found|picked|sold|read|ate|made|scored|counted] {a} {t}[, |; |. | and | while | but ]{y} [has |]{b}[ {t}|]. [Who [has|got] {w}|Who has {w} {t}|Who has {w} of them|Which of them has {w}][?|]
    [Who has|Who's got|Who owns] {w}[ {t}|]: {x} with {a} or {y} with {b}[?|]
    [Who has|Who's got|Who owns] {w} {t}, {x} ({a}) or {y} ({b})[?|]
    [If|When] {x} has {a} {t} and {y} has {b}, who has {w}[?|]
    {x}: {a} {t}, {y}: {b}[. |, |; ][Who has {w}|who has {w}|{w}][?|]
    [Does|Has] {x} [have |]{w} {t} than {y}[, if| if| when] {x} has {a} and {y} [has |]{b}[?|]
    {x} has {a} {t} and {y} has {b}. Does {x} have {w}[?| than {y}?]
    {y} [had|brought|took] {b} {t}. {x} [had|brought|took] {a}. Who [had|brought|took] {w}[?|]
    the [bag|box|shop|team] of {x} has {a} {t}, that of {y} {b}. [Whose has {w}|Who has {w}][?|]
""")


@topic(3.5)
def who_has_more(rng: random.Random) -> Short:
    a, b = rng.randint(1, rng.choice((20, 100, 999))), rng.randint(1, rng.choice((20, 100, 999)))
    require(a != b)
    x, y = some_people(rng, 2)
    more = rng.random() < 0.6
    question = _WHO_COUNTS.expand(rng, x=x, y=y, a=a, b=b, t=plural(rng), w="more" if more else rng.choice(("fewer", "less")))
    first = (a > b) == more
    reason = f"{a if first else b} {'>' if more else '<'} {b if first else a}"
    question = question[0].upper() + question[1:]
    word = "more" if more else "fewer"
    name = str(x if first else y)
    name = name[0].upper() + name[1:]
    if question.startswith(("Does ", "Has ")) or " Does " in question:
        verdict = "Yes" if first else "No"
        return said(question, f"{a} {'>' if a > b else '<'} {b}\n{verdict}", verdict)
    return said(question, f"{reason}\n{name} has {word}.", name)


_SAME = Patterns("""
    [Does|does] {p} equal {q}[?|]
    [Is|is] {p} [equal to|the same as|identical to|as much as|just] {q}[?|]
    [Are|are] {p} and {q} [equal|the same|equivalent|the same number|identical][?|]
    {p} = {q}[? true or false|, true or false?|, is that right?|: true?]
    [Is it true that|True or false:] {p} [equals|is|=] {q}[?|]
""")


@topic(1)
def same_number(rng: random.Random) -> Short:
    bottom = rng.choice((2, 3, 4, 5, 6, 8, 10))
    value = Fraction(rng.randint(1, bottom - 1), bottom)
    k = rng.randint(2, 6)
    p = f"{value.numerator * k}/{value.denominator * k}"
    if rng.random() < 0.4:
        other = Fraction(rng.randint(1, 9), rng.randint(2, 10))
        require(other < 1)
    else:
        other = value
    q = str(other)
    lines = [f"{p} = {value}"]
    if bottom in (2, 4, 5, 10) and other.denominator in (2, 4, 5, 10) and rng.random() < 0.4:
        q = show(other)
        lines = [f"{p} = {value} = {show(value)}"]
    verdict = "Yes" if value == other else "No"
    first, second = (p, q) if rng.random() < 0.6 else (q, p)
    return said(_SAME.expand(rng, p=first, q=second), "\n".join((*lines, verdict)), verdict)
