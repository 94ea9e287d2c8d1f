"""Sides from areas, corners and edges of several shapes, angles of clocks; the cheapest of several; medians of pairs."""

from __future__ import annotations

import random
from fractions import Fraction

from .arithmetic import Worked, apply, chain, power
from .expressions import enumerated
from .grammar import Patterns
from .numbers import Value, dollars, relation, require, show
from .percent_money import price
from .question import Short, computed, said, topic
from .things import person

_SIDE_OF_AREA = Patterns("""
    [A|The|My] square [1:field|garden|room|yard] [covers|has|measures] {n} square [2:meters|feet|yards]. How long is [one edge|an edge|one side|each side|a side][?|]
    [the|] [side|edge|side length] of a square with [an |]area [of |]{n}[?|]
    [How long|What] is [the|each|one] side of a square [whose area is|with an area of|that covers] {n}[ square [cm|meters|feet]|][?|]
    square[: |, ]area {n}[, |. |; ]side[?|]
    A square [table|tile|board|cloth|photo] has an area of {n}[ square cm|]. How [wide|long] is it[?|]
    {n} [square tiles|equal square tiles|small squares] make one big square. How many [along|on] [one|each] side[?|]
    {n} [soldiers|trees|chairs|plants|dots] stand in a square. How many [in a row|in each row|per row][?|]
    [Area|The area] of a square: {n}. [Its side|Side length|One side|How long is a side][?|]
    a square as big as {n} square [feet|meters] has what side[?|]
    [which|what] side gives a square of area {n}[?|]
""")
_AROUND_OF_AREA = Patterns("""
    [A|The] square has an area of {n}. [What is its perimeter|Its perimeter|Perimeter|How far is it around][?|]
    square[: |, ]area {n}[, |. |; ]perimeter[?|]
    How much fence goes around a square [field|garden|yard] of {n} square [meters|feet][?|]
    [The perimeter|What is the perimeter] of a square [whose|where the] area is {n}[?|]
""")


@topic(1.5)
def sides_of_areas(rng: random.Random) -> Short:
    n = rng.choice((rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 20), 10 * rng.randint(2, 10)))
    root = (f"{n} * {n} = {n * n}", f"sqrt({n * n}) = {n}")
    if rng.random() < 0.7:
        text = _SIDE_OF_AREA.expand(rng, n=n * n).strip()
        return computed(text[0].upper() + text[1:], Worked(root, n))
    end = apply("*", n, 4)
    text = _AROUND_OF_AREA.expand(rng, n=n * n)
    return computed(text[0].upper() + text[1:], Worked(root + end.lines, end.value))


_EDGE_OF_VOLUME = Patterns("""
    [A|The] cube's volume is {n}. [Edge|Its edge|How long is an edge|What is the edge][?|]
    [A|The] cube [has a volume of|holds] {n} cubic [cm|meters|feet]. How [long|wide|high] is [an edge|it|one side][?|]
    [which|what] edge has a cube of volume {n}[?|]
    {n} [little|small|unit] cubes make one big cube. How many along an edge[?|]
    cube, volume {n}[: |, |. ][edge|side][?|]
""")
_PYTHAGORAS = Patterns("""
    right triangle, legs {a} and {b}[: |, |. ][hypotenuse|the longest side|third side][?|]
    {a}-{b}-? right triangle[, hypotenuse|: hypotenuse|][?|]
    [the|] legs [of a right triangle |]are {a} and {b}[: |, |. ][how long is the hypotenuse|hypotenuse|what is the hypotenuse][?|]
    [what is|how long is|find] the diagonal of a rectangle {a} by {b}[?|]
    a [field|screen|door|park] is {a} by {b}. [How long is the diagonal|Its diagonal|Straight across, corner to corner][?|]
    {x} walks {a} [km|blocks|m] north and {b} east. How far is {x} from the start in a straight line[?|]
    a ladder's foot is {a} [m|feet] from the wall and its top {b} up. How long is the ladder[?|]
""")
_LEG = Patterns("""
    right triangle, hypotenuse {c}, one leg {a}[: |, |. ][the other leg|other leg|third side][?|]
    [a|the] hypotenuse is {c} and one leg {a}. [The other leg|How long is the other leg|What is the other leg][?|]
    a {c} [m|foot] ladder stands {a} [m|feet] from a wall. How high does it reach[?|]
    a rectangle has a diagonal of {c} and a side of {a}. [The other side|How long is the other side][?|]
""")
_TRIPLES = ((3, 4, 5), (6, 8, 10), (5, 12, 13), (8, 15, 17), (9, 12, 15), (12, 16, 20), (30, 40, 50), (15, 20, 25), (7, 24, 25), (10, 24, 26))


@topic(1.2)
def roots_in_shapes(rng: random.Random) -> Short:
    """Edges of cubes, hypotenuses and legs."""
    kind = rng.random()
    if kind < 0.3:
        n = rng.randint(2, 10)
        text = _EDGE_OF_VOLUME.expand(rng, n=n**3)
        return computed(text[0].upper() + text[1:], Worked((*power(n, 3).lines, f"cube root of {n**3} = {n}"), n))
    a, b, c = rng.choice(_TRIPLES)
    if rng.random() < 0.5:
        a, b = b, a
    if kind < 0.75:
        text = _PYTHAGORAS.expand(rng, a=a, b=b, x=person(rng)).strip()
        lines = (f"{a} * {a} = {a * a}", f"{b} * {b} = {b * b}", f"{a * a} + {b * b} = {c * c}", f"sqrt({c * c}) = {c}")
        return computed(text[0].upper() + text[1:], Worked(lines, c))
    text = _LEG.expand(rng, a=a, c=c)
    lines = (f"{c} * {c} = {c * c}", f"{a} * {a} = {a * a}", f"{c * c} - {a * a} = {b * b}", f"sqrt({b * b}) = {b}")
    return computed(text[0].upper() + text[1:], Worked(lines, b))


_IS_MEAN = Patterns("""
    Is {m} the [average|mean] of {l}[?|]
    [Is it true that|True or false:|Is it right that] {m} is the [average|mean] of {l}[?|]
    Is the [average|mean] of {l} equal to {m}[?|]
    the [average|mean] of {l} is {m}, [right|true|isn't it][?|]
    Is {m} [halfway|exactly halfway|in the middle] between {p} and {q}[?|]
""")


@topic(0.8)
def is_it_the_mean(rng: random.Random) -> Short:
    count = rng.choice((2, 2, 3, 3, 4))
    values: list[Value] = [rng.randint(1, 30) for _ in range(count)]
    values[-1] += -sum(values) % count
    total = chain(values[0], *(("+", v) for v in values[1:]))
    mean = apply("/", total.value, count)
    claim = mean.value if rng.random() < 0.5 else max(0, mean.value + rng.choice((-2, -1, 1, 2)))
    text = _IS_MEAN.expand(rng, m=show(claim), l=" and ".join(map(show, values)) if count == 2 else enumerated(rng, values), p=values[0], q=values[1])
    require(count == 2 or "between" not in text)
    right = claim == mean.value
    yes, no = ("True", "False") if "True or false" in text else ("Yes", "No")
    fact = relation(claim, mean.value)
    return said(text[0].upper() + text[1:], "\n".join((*total.lines, *mean.lines, fact, f"{yes if right else no}, {fact}.")), yes if right else no)


_CAN_PAY = Patterns("""
    [#I have|I got|got|{x} has] {l}. [#Can I|Can I|can I|Can {x}] pay {c}[ dollars|] with that[?|]
    [is|are] {l} enough [for|to pay] {c}[ dollars|][?|]
    {l}: [enough for|do they cover|can I buy something for] {c}[?| dollars?]
    [Do|Will] {l} [cover|be enough for|pay for] a [bill|ticket|bag] of {c}[?|]
""")


@topic(0.6)
def notes_enough(rng: random.Random) -> Short:
    (one, p), (other, q) = rng.sample(((5, "fives"), (10, "tens"), (20, "twenties"), (1, "ones")), 2)
    a, b = rng.randint(2, 6), rng.randint(2, 6)
    first, second = apply("*", a, one), apply("*", b, other)
    total = apply("+", first.value, second.value)
    c = max(1, int(total.value) + rng.choice((-5, -3, -1, 0, 1, 2, 5)))
    text = _CAN_PAY.expand(rng, l=f"{a} {p} and {b} {q}", c=c, x=person(rng))
    enough = total.value >= c
    fact = relation(total.value, c)
    reply = f"Yes, {total.value} is enough for {c}." if enough else f"No, {total.value} is less than {c}."
    text = " ".join(text.split())
    return said(text[0].upper() + text[1:], "\n".join((*first.lines, *second.lines, *total.lines, fact, reply)), "Yes" if enough else "No")


_POLYGONS = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6, "octagon": 8, "heptagon": 7}
_SOLIDS = {"cube": {"faces": 6, "edges": 12, "corners": 8}, "pyramid with a square base": {"faces": 5, "edges": 8, "corners": 5},
           "box": {"faces": 6, "edges": 12, "corners": 8}}
_PARTS_OF_TWO = Patterns("""
    [How many|how many] {p} do {a} {x} and {b} {y} have [altogether|together|in all|in total|][?|]
    {a} {x} and {b} {y}[: |, |. ][how many {p}|number of {p}|{p} in all|{p}][?|]
    [I draw|{n} draws|We cut out|There are] {a} {x} and {b} {y}. How many {p} [is that|are there|in all|do they have][?|]
    [Total|Count the|Add up the] {p} of {a} {x} and {b} {y}[.|?|]
""")
_PARTS_OF_SOME = Patterns("""
    [How many|how many] {p} [do {a} {x} have|have {a} {x}|are on {a} {x}][?|]
    {a} {x}[: |, ]how many {p}[?| in all?]
    {p} of {a} {x}[?|]
    [I draw|{n} draws|We cut out] {a} {x}. [How many {p} is that|How many {p}|Number of {p}][?|]
""")
_SHAPES_OF_PARTS = Patterns("""
    [How many {x}|What number of {x}] have {c} {p} [together|in all|altogether][?|]
    {c} {p}, all of {x}. How many {x}[?| are there?]
    Some {x} have {c} {p} [together|in all]. How many [{x} |][are there|are they][?|]
    {c} sticks make how many separate {x}[?|]
""")


@topic(1.5)
def parts_of_shapes(rng: random.Random) -> Short:
    first, second = rng.sample(list(_POLYGONS), 2)
    a, b, p = rng.randint(2, 9), rng.randint(2, 9), rng.choice(("corners", "sides", "corners", "sides", "angles"))
    kind = rng.randrange(5)
    if kind < 2:
        one, other = apply("*", a, _POLYGONS[first]), apply("*", b, _POLYGONS[second])
        end = apply("+", one.value, other.value)
        text = _PARTS_OF_TWO.expand(rng, a=a, b=b, x=f"{first}s", y=f"{second}s", p=p, n=person(rng))
        return computed(text, Worked(one.lines + other.lines + end.lines, end.value))
    if kind == 2:
        return computed(_PARTS_OF_SOME.expand(rng, a=a, x=f"{first}s", p=p, n=person(rng)), apply("*", a, _POLYGONS[first]))
    if kind == 3:
        solid = rng.choice(list(_SOLIDS))
        part = rng.choice(list(_SOLIDS[solid]))
        name = solid.replace("pyramid", "pyramids") if "pyramid" in solid else "boxes" if solid == "box" else f"{solid}s"
        text = _PARTS_OF_SOME.expand(rng, a=a, x=name, p=part, n=person(rng))
        return computed(text.replace("draw", "build").replace("cut out", "build"), apply("*", a, _SOLIDS[solid][part]))
    text = _SHAPES_OF_PARTS.expand(rng, c=a * _POLYGONS[first], x=f"{first}s", p="sides" if p == "angles" else p)
    return computed(text[0].upper() + text[1:], apply("/", a * _POLYGONS[first], _POLYGONS[first]))


_CLOCK_ANGLE = Patterns("""
    [What|Which] angle do the hands [of a clock |]make at {h} o'clock[?|]
    [how many degrees|what angle] is [it |]between the [clock |]hands at {h}[ o'clock|:00][?|]
    angle between the hands at {h} o'clock[?|]
""")
_HAND_TURN = Patterns("""
    [How many|By how many] degrees does the minute hand [turn|move] in {m} minutes[?|]
    the minute hand [goes|turns|moves] for {m} minutes. How many degrees[?| is that?]
    angle of the minute hand [in|after] {m} minutes[?|]
""")


@topic(0.5)
def clock_angles(rng: random.Random) -> Short:
    if rng.random() < 0.5:
        h = rng.randint(1, 6)
        one = apply("/", 360, 12)
        end = apply("*", one.value, h)
        text = _CLOCK_ANGLE.expand(rng, h=h)
        return computed(text[0].upper() + text[1:], Worked(one.lines + end.lines, end.value))
    m = rng.choice((5, 10, 15, 20, 25, 30, 40, 45, 50, rng.randint(1, 59)))
    one = apply("/", 360, 60)
    end = apply("*", one.value, m)
    text = _HAND_TURN.expand(rng, m=m)
    return computed(text[0].upper() + text[1:], Worked(one.lines + end.lines, end.value))


_CHEAPEST = Patterns("""
    [Which|What] is [the |]{w}[: |, |? ]{l}[?|]
    {l}[: |. |, ][which is|what's] [the |]{w}[?|]
    [Three|The] [prices|offers|shops say|bids][: |, ]{l}. [Which is|What's] [the |]{w}[?| one?]
    [I see it|It is offered|They sell it|{n} finds it] for {l}. [Which is|What's] the {w}[?| price?| offer?]
    the {w} of {l}[?|]
""")


@topic(0.8)
def cheapest_of_several(rng: random.Random) -> Short:
    values: list[Value] = [price(rng, rng.choice((10, 20, 100))) for _ in range(rng.choice((3, 3, 4)))]
    if rng.random() < 0.4:  # alike but for the order of their digits
        base = rng.randint(1, 20)
        values = [base + Fraction(c, 100) for c in rng.sample((5, 50, 15, 51, 10, 1, 55, 45, 54, 95, 59), 3)]
    require(len(set(values)) == len(values))
    cheap = rng.random() < 0.6
    word = rng.choice(("cheapest", "lowest price", "cheapest", "least expensive") if cheap else ("most expensive", "highest price", "dearest"))
    mark = rng.choice(("${}", "${}", "{}", "{} dollars", "€{}"))
    texts = [mark.format(dollars(v)) for v in values]
    listed = ", ".join(texts[:-1]) + rng.choice((" or ", " and ", ", ")) + texts[-1]
    text = _CHEAPEST.expand(rng, w=word, l=listed, n=person(rng)).replace("the lowest price price", "the lowest price").replace("price offer", "price")
    text = text.replace("the highest price price", "the highest price").replace("price one", "price")
    answer = min(values) if cheap else max(values)
    return Short(text[0].upper() + text[1:], f"The {'smallest' if cheap else 'largest'} is {show(answer)}", show(answer), answer)


_MIDDLE = Patterns("""
    [What is|Find|what's|] [the |]median of {l}[?|]
    {l}[: |. |, ][median|what is the median|the median][?|]
    [Which|What] number is in the middle [of|when you sort] {l}[?|]
    [The|My] [scores|times|results|marks] are {l}. [Median|What's the median|What is the median][?|]
""")
_SPREAD = Patterns("""
    {l}[: |. |, ][range|what is the range|difference of largest and smallest][?|]
    [The|My] [scores|times|results|marks] are {l}. [Range|What's the range|What is the range][?|]
    How far apart are the [highest|largest] and the [lowest|smallest] of {l}[?|]
""")


@topic(1)
def medians_of_pairs(rng: random.Random) -> Short:
    """Of an even number of values the mean of the middle two."""
    even = rng.random() < 0.55
    values: list[Value] = list(rng.sample(range(1, rng.choice((15, 40, 100))), 4 if even and rng.random() < 0.7 else 6 if even else rng.choice((3, 5))))
    listed = enumerated(rng, values)
    ordered = sorted(values)
    if rng.random() < 0.25:
        return computed(_SPREAD.expand(rng, l=listed), apply("-", ordered[-1], ordered[0]))
    first = ", ".join(map(str, ordered))
    text = _MIDDLE.expand(rng, l=listed).strip()
    text = text[0].upper() + text[1:]
    if not even:
        return said(text, f"{first}\nThe median is {ordered[len(ordered) // 2]}", ordered[len(ordered) // 2])
    require("in the middle" not in text)
    p, q = ordered[len(ordered) // 2 - 1], ordered[len(ordered) // 2]
    worked = chain(p, ("+", q), ("/", 2))
    return computed(text, Worked((first, *worked.lines), worked.value))


_BETTER = Patterns("""
    [Which|What] is [cheaper|the better buy|better value|cheaper per {u}]: {p} or {q}[?|]
    {p} or {q}[: |, |. ][which is cheaper per {u}|what's cheaper per {u}|where is the {u} cheaper][?|]
    [Shop|Store] A [sells|offers] {p}, [shop|store] B {q}. [Which is cheaper|Where is it cheaper|Better deal][?|]
    [I can buy|You get|They have] {p} or {q}. [Which is cheaper|Better buy|Which should I take to save money|What is the better deal][?|]
""")


@topic(1)
def cheaper_per_unit(rng: random.Random) -> Short:
    """`2 kg for $6 or 5 kg for $12.50`."""
    u, units, good = rng.choice((("kg", "kg", "rice"), ("kg", "kg", "apples"), ("liter", "liters", "juice"), ("pound", "pounds", "nuts"),
                                 ("kilo", "kilos", "flour"), ("meter", "meters", "rope"), ("roll", "rolls", "tape"), ("hour", "hours", "parking")))
    n, m = rng.sample((1, 2, 3, 4, 5, 6, 8, 10), 2)
    one, other = (rng.choice((rng.randint(1, 12), Fraction(rng.randint(2, 24), 2))) for _ in range(2))
    require(one != other)
    p, q = (f"{k} {units if k > 1 else u} of {good} for ${dollars(k * v)}" for k, v in ((n, one), (m, other)))
    if rng.random() < 0.5:
        p, q = (text.replace(f" of {good}", "") for text in (p, q))
    answer = p if one < other else q
    lines = (f"{show(n * one)} / {n} = {show(one)}", f"{show(m * other)} / {m} = {show(other)}")
    return said(_BETTER.expand(rng, p=p, q=q, u=u), "\n".join((*lines, relation(one, other), f"{answer} is cheaper.")), answer)
