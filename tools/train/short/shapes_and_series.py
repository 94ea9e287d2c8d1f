"""Shapes, series of numbers, averages, and changes above and below zero, in free phrasing."""

from __future__ import annotations

import random
from fractions import Fraction

from .about_numbers import rule, sum_rule
from .arithmetic import Worked, apply, chain
from .composing import compose, some_people, who
from .expressions import enumerated
from .grammar import Patterns
from .numbers import Value, ordinal, require, show
from .question import Short, computed, topic

_UNITS = ("m", "cm", "meters", "feet", "inches", "ft", "km", "mm", "yards", "units", "")
_FLAT = ("rectangle", "garden", "room", "field", "yard", "table", "carpet", "poster", "wall", "floor", "lawn", "pool", "photo",
         "screen", "park", "door", "window", "flag", "board", "court", "sheet of paper", "patio", "rug", "playground",
         "parking lot", "tile", "card", "blanket", "plot", "farm")
_SQUARES = ("square", "square room", "square garden", "square tile", "square field", "square table", "chessboard", "square park")
_SIDES = Patterns("[{x} is {a} {u} long and {b} {u} wide|{x} is {a} {u} by {b} {u}|{x} measures {a} by {b} {u}|{x} has a length of {a} {u} and a width of {b} {u}|{x} has sides of {a} {u} and {b} {u}|the sides of {x} are {a} and {b} {u}|{x} is {b} {u} wide and {a} {u} long|length {a} {u}, width {b} {u}|the length of {x} is {a} {u} and the width is {b} {u}|{x} is {a} x {b} {u}]")
_AREA = Patterns("[what is {x}'s area|what is its area|how big is its area|how many square {n} is it|how large is the area|how much [area|space] does it cover|what area does it have|what is the area of {x}|what surface does it have]")
_PERIMETER = Patterns("[what is its perimeter|how long is its border|what is the perimeter of {x}|how long is the way around it|how far is it [all the way |]around|how much fence goes around it|how many {n} of fence does it need|what distance is one lap around it|how much ribbon goes around its edge|how long are all its sides together]")


def _unit(rng: random.Random) -> tuple[str, str]:
    unit = rng.choice(_UNITS)
    return unit, {"m": "meters", "cm": "centimeters", "ft": "feet", "mm": "millimeters", "": "units", "km": "kilometers"}.get(unit, unit)


def _tidy(text: str) -> str:
    return " ".join(text.split()).replace(" ,", ",").replace(" .", ".").replace(" ?", "?").replace(" ;", ";")


@topic(3.5)
def flat_shapes(rng: random.Random) -> Short:
    unit, name = _unit(rng)
    a, b = (rng.randint(1, rng.choice((12, 25, 60))) for _ in range(2))
    a, b = max(a, b), min(a, b)
    if rng.random() < 0.12:
        a, b = a, Fraction(2 * b + 1, 2)
    kind = rng.randrange(8)
    article = rng.choice(("a", "the", "my", "our", "a"))
    is_square = kind in (2, 3, 6)
    x = f"{article} {rng.choice(_SQUARES if is_square else _FLAT)}"
    slots = {"x": x, "a": a, "b": show(b), "u": unit, "n": name}
    the = "the " + x.split(" ", 1)[1]
    by_area = rng.random() < 0.55
    ask = (_AREA if by_area else _PERIMETER).expand(rng, x=the, n=name)
    noun = rng.choice(("the area", "its area", "area")) if by_area else rng.choice(("the perimeter", "its perimeter", "perimeter"))
    if is_square:
        return _square(rng, slots, ask, noun, by_area, kind)
    sides = _SIDES.expand(rng, **slots)
    if kind < 4:
        worked = apply("*", a, b) if by_area else chain(a, ("+", b), ("*", 2))
        return computed(_tidy(compose(rng, [sides], ask, noun)), worked)
    require(isinstance(b, int))
    known, missing = (a, "width") if rng.random() < 0.5 else (b, "length")
    other = {"width": "length", "length": "width"}[missing]
    side = rng.choice((f"its {other} is {known} {unit}", f"the {other} is {known} {unit}", f"one side is {known} {unit}", f"it is {known} {unit} {'long' if other == 'length' else 'wide'}"))
    ask = rng.choice((f"what is the {missing}", f"how {'wide' if missing == 'width' else 'long'} is it", "how long is the other side",
                      "what is the other side", f"find its {missing}"))
    noun = rng.choice((f"the {missing}", f"its {missing}", "the other side", "the missing side"))
    if kind == 4 or kind == 7:
        area = rng.choice((f"the area of {x} is {a * b}", f"{x} has an area of {a * b} square {name}", f"{x} covers {a * b} square {name}"))
        return computed(_tidy(compose(rng, [area, side], ask, noun)), apply("/", a * b, known))
    total = 2 * (a + b)
    around = rng.choice((f"the perimeter of {x} is {total} {unit}", f"{x} has a perimeter of {total} {unit}", f"it is {total} {unit} around {x}"))
    half = apply("/", total, 2)
    end = apply("-", half.value, known)
    return computed(_tidy(compose(rng, [around, side], ask, noun)), Worked(half.lines + end.lines, end.value))


def _square(rng: random.Random, slots: dict[str, object], ask: str, noun: str, by_area: bool, kind: int) -> Short:
    a, x, unit = int(slots["a"]), slots["x"], slots["u"]
    if kind < 6:
        side = rng.choice((f"{x} has a side of {a} {unit}", f"the side of {x} is {a} {unit}", f"{x} has sides of {a} {unit}",
                           f"each side of {x} is {a} {unit}", f"one side of {x} measures {a} {unit}"))
        return computed(_tidy(compose(rng, [side], ask, noun)), apply("*", a, a) if by_area else apply("*", a, 4))
    ask = rng.choice(("how long is one side", "what is its side", "what is the side length", "how long is each side", "what is the length of a side"))
    noun = rng.choice(("the side", "one side", "the side length"))
    if by_area:
        a = min(a, 30)
        fact = rng.choice((f"{x} has an area of {a * a}", f"the area of {x} is {a * a} square {slots['n']}"))
        worked = Worked((f"{a} * {a} = {a * a}", f"sqrt({a * a}) = {a}"), a)
        return computed(_tidy(compose(rng, [fact], ask, noun)), worked)
    fact = rng.choice((f"{x} has a perimeter of {4 * a} {unit}", f"the perimeter of {x} is {4 * a} {unit}", f"it is {4 * a} {unit} around {x}"))
    return computed(_tidy(compose(rng, [fact], ask, noun)), apply("/", 4 * a, 4))


_BOXES = "box crate tank room pool aquarium cuboid container suitcase freezer cupboard pit brick shed".split()
_SHAPE_SIDES = {"equilateral triangle": 3, "rhombus": 4, "regular pentagon": 5, "regular hexagon": 6, "regular octagon": 8,
                "stop sign with 8 equal sides": 8, "regular decagon": 10}


@topic(2.5)
def other_shapes(rng: random.Random) -> Short:
    unit, name = _unit(rng)
    a, b, c = (rng.randint(2, rng.choice((10, 10, 20))) for _ in range(3))
    kind = rng.randrange(11)
    article = rng.choice(("a", "the", "a"))
    if kind == 0:
        x = f"{article} {rng.choice(_BOXES)}"
        fact = Patterns("[{x} is {a} {u} long, {b} {u} wide and {c} {u} high|{x} measures {a} by {b} by {c} {u}|{x} has the sides {a}, {b} and {c} {u}|{x} is {a} x {b} x {c} {u}|{x} has a base of {a} by {b} {u} and a height of {c} {u}]").expand(rng, x=x, a=a, b=b, c=c, u=unit)
        ask = Patterns("[what is its volume|how much [fits into it|does it hold]|how many cubic {n} is it|how big is its volume|what volume does it have|what is the volume]").expand(rng, n=name)
        return _shape(rng, fact, ask, ("the volume", "its volume", "volume"), chain(a, ("*", b), ("*", c)))
    if kind == 1:
        fact = rng.choice((f"{article} cube has an edge of {a} {unit}", f"each edge of {article} cube is {a} {unit}", f"{article} cube has a side of {a} {unit}", f"{article} dice is {a} {unit} long, wide and high"))
        if rng.random() < 0.6:
            return _shape(rng, fact, rng.choice(("what is its volume", "what volume does it have", "how much space does it fill")), ("the volume", "its volume"), chain(a, ("*", a), ("*", a)))
        return _shape(rng, fact, rng.choice(("what is its surface area", "how big is the surface", "what is the area of all its faces")), ("the surface area", "its surface"), chain(a, ("*", a), ("*", 6)))
    if kind == 2:
        fact = Patterns("[{t} triangle has a base of {a} {u} and a height of {b} {u}|the base of {t} triangle is {a} {u} and its height {b} {u}|{t} triangle with base {a} {u} is {b} {u} high|{t} sail has a base of {a} {u} and a height of {b} {u}|{t} right triangle has legs of {a} {u} and {b} {u}]").expand(rng, t=article, a=a, b=b, u=unit)
        return _shape(rng, fact, rng.choice(("what is its area", "how big is the area", "what area does it have", f"how many square {name} is it")), ("the area", "its area"), chain(a, ("*", b), ("/", 2)))
    if kind == 3:
        require(a + b > c and a + c > b and b + c > a)
        fact = rng.choice((f"{article} triangle has sides of {a}, {b} and {c} {unit}", f"the sides of {article} triangle are {a}, {b} and {c} {unit}", f"{article} triangle has the sides {a} {unit}, {b} {unit}, {c} {unit}"))
        return _shape(rng, fact, rng.choice(("what is its perimeter", "how long is it around", "how long are the sides together")), ("the perimeter", "its perimeter"), chain(a, ("+", b), ("+", c)))
    if kind == 4:
        shape, sides = rng.choice(list(_SHAPE_SIDES.items()))
        an = "an" if shape[0] in "aeiou" else "a"
        fact = rng.choice((f"{an} {shape} has sides of {a} {unit}", f"each side of {an} {shape} is {a} {unit}", f"one side of the {shape} is {a} {unit}"))
        return _shape(rng, fact, rng.choice(("what is its perimeter", "how long is it around", "what is the perimeter")), ("the perimeter", "its perimeter"), apply("*", sides, a))
    if kind == 5:
        p = rng.randint(20, 90)
        q = rng.randint(20, 150 - p)
        fact = rng.choice((f"two angles of a triangle are {p} and {q} degrees", f"a triangle has angles of {p}° and {q}°", f"in a triangle one angle is {p} degrees and another is {q} degrees"))
        total = apply("+", p, q)
        end = apply("-", 180, total.value)
        return _shape(rng, fact, rng.choice(("what is the third angle", "how big is the third angle", "how many degrees has the third angle")), ("the third angle", "the missing angle"), Worked(total.lines + end.lines, end.value))
    if kind == 6:
        full, word = rng.choice(((180, "a straight line"), (90, "a right angle"), (360, "a full circle")))
        p = rng.randint(10, full - 10)
        fact = rng.choice((f"two angles make {word} and one is {p} degrees", f"two angles together form {word}, one of them is {p}°"))
        return _shape(rng, fact, rng.choice(("what is the other", "how big is the other angle", "how many degrees is the other")), ("the other angle", "the second angle"), apply("-", full, p))
    if kind == 7:
        pi: Value = rng.choice((3, Fraction(314, 100), Fraction(314, 100)))
        r = rng.choice((10, 2, 3, 4, 5, 20, 100, rng.randint(1, 12)))
        given = rng.choice((f"pi is {show(pi)}", f"pi = {show(pi)}", f"we take {show(pi)} for pi", f"we use pi = {show(pi)}"))
        thing = rng.choice(("circle", "round table", "wheel", "pond", "plate", "coin", "pizza", "ring"))
        if rng.random() < 0.5:
            fact = rng.choice((f"a {thing} has a radius of {r} {unit}", f"the radius of a {thing} is {r} {unit}"))
            if rng.random() < 0.5:
                return _shape(rng, [fact, given], rng.choice(("what is its area", "how big is its area")), ("the area", "its area"), chain(r, ("*", r), ("*", pi)))
            return _shape(rng, [fact, given], rng.choice(("what is its circumference", "how long is it around")), ("the circumference", "its circumference"), chain(2, ("*", r), ("*", pi)))
        fact = rng.choice((f"a {thing} has a diameter of {r} {unit}", f"the diameter of a {thing} is {r} {unit}"))
        return _shape(rng, [fact, given], rng.choice(("what is its circumference", "how long is it around", "how far does it roll in one turn")), ("the circumference", "its circumference"), apply("*", r, pi))
    if kind == 8:
        thing = rng.choice(("circle", "wheel", "plate", "pond", "coin", "ball"))
        if rng.random() < 0.5:
            return _shape(rng, f"the radius of a {thing} is {a} {unit}", rng.choice(("what is its diameter", "how long is the diameter")), ("the diameter", "its diameter"), apply("*", 2, a))
        return _shape(rng, f"a {thing} has a diameter of {2 * a} {unit}", rng.choice(("what is its radius", "how long is the radius")), ("the radius", "its radius"), apply("/", 2 * a, 2))
    if kind == 9:
        p, q, r = rng.choice(((3, 4, 5), (6, 8, 10), (5, 12, 13), (8, 15, 17), (9, 12, 15), (12, 16, 20), (30, 40, 50), (15, 20, 25), (7, 24, 25)))
        fact = rng.choice((f"a rectangle is {p} by {q} {unit}", f"a right triangle has legs of {p} and {q} {unit}", f"a ladder stands {p} {unit} from a wall and reaches {q} {unit} high"))
        thing = "diagonal" if "rectangle" in fact else "hypotenuse" if "legs" in fact else "ladder"
        squares = (f"{p} * {p} = {p * p}", f"{q} * {q} = {q * q}", f"{p * p} + {q * q} = {r * r}", f"sqrt({r * r}) = {r}")
        return _shape(rng, fact, rng.choice((f"how long is the {thing}", f"what is the length of the {thing}")), (f"the {thing}", f"the length of the {thing}"), Worked(squares, r))
    return _tiles(rng, a, b, article, unit)


def _shape(rng: random.Random, facts: str | list[str], ask: str, nouns: tuple[str, ...], worked: Worked) -> Short:
    return computed(_tidy(compose(rng, [facts] if isinstance(facts, str) else facts, ask, rng.choice(nouns))), worked)


def _tiles(rng: random.Random, a: int, b: int, article: str, unit: str) -> Short:
    """Tiles on a floor, posts of a fence, costs of both."""
    kind, k = rng.randrange(4), rng.randint(2, 5)
    unit = unit or "m"
    if kind == 0:
        floor = rng.choice((f"{article} floor is {a * k} by {b * k} {unit}", f"{article} wall is {a * k} {unit} long and {b * k} {unit} high"))
        tile = rng.choice((f"a tile is {k} by {k} {unit}", f"the tiles are squares with a side of {k} {unit}", f"each square tile is {k} {unit} long"))
        lines = [apply("/", a * k, k), apply("/", b * k, k), apply("*", a, b)]
        return _shape(rng, [floor, tile], rng.choice(("how many tiles are needed", "how many tiles cover it", "how many tiles fit")),
                      ("the number of tiles", "tiles needed"), Worked(sum((w.lines for w in lines), ()), a * b))
    if kind == 1:
        floor = rng.choice((f"{article} room is {a} by {b} {unit}", f"{article} field is {a} {unit} long and {b} {unit} wide"))
        price = rng.choice((f"each square {unit} costs ${k}", f"one square {unit} of grass costs ${k}", f"paint costs ${k} per square {unit}"))
        return _shape(rng, [floor, price], rng.choice(("what does it cost to cover it", "how much is it in all", "what is the cost")),
                      ("the cost", "the total cost", "the price"), chain(a, ("*", b), ("*", k)))
    if kind == 2:
        floor = rng.choice((f"{article} garden is {a} by {b} {unit}", f"{article} yard is {a} {unit} long and {b} {unit} wide"))
        price = rng.choice((f"fence costs ${k} per {unit}", f"one {unit} of fence is ${k}", f"each {unit} of the fence costs ${k}"))
        return _shape(rng, [floor, price], rng.choice(("what does the fence cost", "how much is the fence around it", "what is the cost of the fence")),
                      ("the cost of the fence", "the price of the fence"), chain(a, ("+", b), ("*", 2), ("*", k)))
    fact = rng.choice((f"a road is {a * k} {unit} long", f"a fence is {a * k} {unit} long", f"a straight path has {a * k} {unit}"))
    thing = rng.choice(("post", "tree", "lamp", "flag"))
    end = rng.choice((f"there is a {thing} every {k} {unit}, also at both ends", f"a {thing} stands every {k} {unit} with one at each end"))
    return _shape(rng, [fact, end], f"how many {thing}s are there", (f"the number of {thing}s",), chain(a * k, ("/", k), ("+", 1)))


# Series ----------------------------------------------------------------------------------------

_NTH = Patterns("""
    [What is|what's|Find|Which is|Give me|Tell me|] the {n} {k}[ number|][?|]
    [Which|What] number is the {n} {k}[ number| one|][?|]
    [the |]{n} {k}[?|: ?| = ?| is?]
    [If you list|Listing|When I count] the {k}s[ in order|], [which|what] is the {n}[?|]
""")
_TERM = Patterns("""
    [A|The|This] [sequence|series|pattern|list|row of numbers] [starts|begins] [with|at] {a} and [each|every] [next |following |]{w} {d}{z}. [What is the {n} [number|term]|Which number is the {n}|{n} term][?|]
    [What is|Find] the {n} [number|term] [if|when] [we|you] start [with|at] {a} and [always|each time] {v} {d}[?|]
    [First term|first number|start] {a}, [each time|then always|every step] {v} {d}[: | -> |, ][what is the {n} term|{n} term|the {n} number][?|]
    [Start|Begin] [with|at] {a} and [keep|go on] {g} {d}. [What is the {n} number|Which is the {n} number][?|]
    [What|Which] is the {n} [term|number] of {l}, ...[?|]
    {l}, ...[: | | - ][the |]{n} [term|number][?|]
""")
_MISSING = Patterns("""
    [What number is missing|Which number is missing|What is missing|Fill the gap|Find the missing number|What goes in the blank|Missing number|Complete|What belongs in the gap][:|?] {l}
    {l}[: which number is missing?|. What is missing?|, missing number?|: fill in|, what goes in the blank?| - the missing one?]
    [Which|What] number [is missing in|completes|fills the gap in|belongs in] {l}[?|]
""")
_NEXT = Patterns("""
    {l}[, |: |... | - |; ][what is next|what comes then|how does it go on|next please|the next one|which number follows|and then|what number would be next|go on|continue][?|]
    [How does|How would] [the row|the series|this list|this] [go on|continue][:|?] {l}[?|]
    [I write|I count|{x} count{x.s}|{x} write{x.s}|The numbers are|We see|The house numbers are|The list is] {l}. [What comes next|Which number is next|What is the next number|Next|What follows|and next][?|]
    [Which number [should|would|must|does] [come|stand|follow] after|What is the number after] {l}[?| in this pattern?| in the row?]
    [Guess|Tell me|Name|Say] the next [number|one|value] [of|in|after|for] {l}[.|?|]
    [If the numbers are|With|Given] {l}, [what is the next|which one is next|what comes next][?|]
""")


@topic(3.5)
def series(rng: random.Random) -> Short:
    kind = rng.randrange(10)
    if kind < 2:
        return _nth(rng)
    up = rng.random() < 0.65
    d = rng.choice((rng.randint(1, 12), rng.randint(2, 5), 10, 25, 50, 100, 7, 11, 15))
    start = rng.randint(1, 40) if up else d * rng.randint(6, 12) + rng.randint(0, 20)
    values = [start + (d if up else -d) * i for i in range(rng.randint(4, 6))]
    sign = "+" if up else "-"
    if kind < 4:
        n = rng.randint(4, 12)
        worked = chain(n, ("-", 1), ("*", d))
        end = apply(sign, start, worked.value)
        require(end.value >= -50)
        text = _TERM.expand(rng, a=start, d=d, n=ordinal(n), l=", ".join(map(str, values[:4])), z="" if up else " less",
                            w="number is larger by" if up else "number is smaller by", v="add" if up else "subtract", g="adding" if up else "subtracting")
        first = (f"{max(values[:2])} - {min(values[:2])} = {d}",) if "..." in text else ()  # The step is read off the list.
        return computed(text.replace(" less.", "."), Worked(first + worked.lines + end.lines, end.value))
    separator = rng.choice((", ", ", ", ", ", " ", ",", "; ", " - ", " and then ", " then "))
    x = some_people(rng, 1, first_person=True)[0]
    if kind < 6:
        gap = rng.randint(1, len(values) - 2)
        shown = [str(v) for v in values]
        shown[gap] = rng.choice(("_", "?", "__", "...", "___", "x", "[ ]"))
        step = apply(sign, values[gap - 1], d)
        found = next((i for i in range(len(values) - 1) if gap not in (i, i + 1)), None)
        require(found is not None)
        p, q = values[found], values[found + 1]
        lines = (f"{max(p, q)} - {min(p, q)} = {d}",)
        return computed(_MISSING.expand(rng, l=", ".join(shown)), Worked(lines + step.lines, step.value))
    if kind < 8:
        return computed(_NEXT.expand(rng, l=separator.join(map(str, values)), x=x), rule(values))
    ratio = rng.choice((2, 2, 3, 4, 5, 10))
    count = rng.randint(3, 5)
    first = rng.randint(1, 9)
    if rng.random() < 0.5:
        values = [first * ratio**i for i in range(count)]
        quotient = apply("/", values[-1], values[-2])
        worked = Worked(quotient.lines + apply("*", values[-1], ratio).lines, values[-1] * ratio)
    else:
        values = [first * ratio ** (count - i) for i in range(count)]
        quotient = apply("/", values[-2], values[-1])
        worked = Worked(quotient.lines + apply("/", values[-1], ratio).lines, values[-1] // ratio)
    kind = rng.random()
    if kind < 0.2:
        i = rng.randint(1, 7)
        values = [j * j for j in range(i, i + count + 1)]
        worked = rule(values)
    elif kind < 0.35:  # the steps grow by one
        step, values = rng.randint(1, 4), [rng.randint(1, 9)]
        for j in range(count):
            values.append(values[-1] + step + j)
        worked = rule(values)
    elif kind < 0.45:  # two numbers by turns
        p, q = rng.sample(range(1, 20), 2)
        values = [(p, q)[j % 2] for j in range(count + 2)]
        worked = Worked((f"It is {(p, q)[len(values) % 2]}",), (p, q)[len(values) % 2])
    elif kind < 0.58:
        p, q = rng.randint(1, 6), rng.randint(1, 6)
        values = [p, q]
        for _ in range(count):
            values.append(values[-1] + values[-2])
        worked = sum_rule(values)
    return computed(_NEXT.expand(rng, l=separator.join(map(str, values)), x=x), worked)


def _nth(rng: random.Random) -> Short:
    names = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
    n = rng.choice((rng.randint(1, 12), rng.randint(1, 30), 20, 50, 100))
    nth = names[n - 1] if n <= 12 and rng.random() < 0.5 else ordinal(n)
    k = rng.randint(2, 12)
    word, worked = rng.choice((
        ("even", apply("*", 2, n)), ("odd", chain(2, ("*", n), ("-", 1))), (f"multiple of {k}", apply("*", k, n)),
        ("square", apply("*", n, n)), ("positive even", apply("*", 2, n)), (f"number in the {k} times table", apply("*", k, n)),
        (f"multiple of {k}", apply("*", k, n)), ("triangular", chain(n, ("*", n + 1), ("/", 2)))))
    text = _NTH.expand(rng, n=nth, k=word)
    return computed(" ".join(text.replace(f"of {k} number", f"of {k}").replace("table number", "table").split()), worked)


_REPEATED = Patterns("""
    [Start|Begin] with {a} and {v} [it |]{n} times. [What is left|What do you get|What is the result|Where do you end][?|]
    {a} [is|gets] {d} {n} times[. What is it then?|: result?|, what remains?|. How much is it now?]
    [A|The] [number|population|colony|price|pile] of {a} is {d} {n} times. [How much is it now|What is it then|How many now][?|]
    [Every|Each] [day|hour|week|minute] [an amount|a colony|a heap|a stock] of {a} is {d}. How many after {n} [of them|times|steps][?|]
""")


@topic(0.8)
def repeated(rng: random.Random) -> Short:
    n, (verb, done, operator, b) = rng.randint(2, 5), rng.choice((
        ("double", "doubled", "*", 2), ("halve", "halved", "/", 2), ("triple", "tripled", "*", 3),
        ("cut in half", "cut in half", "/", 2)))
    a = rng.randint(1, 20) * (b**n if operator == "/" else 1)
    return computed(_REPEATED.expand(rng, a=a, v=verb, d=done, n=n), chain(a, *((operator, b),) * n))


# Averages --------------------------------------------------------------------------------------

_MEASURED = ("points in the games", "pages per evening", "goals per match", "degrees", "steps", "minutes for the laps", "kg",
             "cm of rain", "eggs a day", "visitors", "dollars", "hours of sleep", "calls", "years of age", "marks", "km", "cups")
_ADVERB = Patterns("[on average|in the mean|on the average]")


@topic(2.5)
def average_stories(rng: random.Random) -> Short:
    x, count = who(rng), rng.choice((2, 3, 3, 4, 5))
    unit = rng.choice(_MEASURED)
    kind = rng.randrange(5)
    mean = rng.randint(2, rng.choice((12, 30, 90)))
    values: list[Value] = [rng.randint(1, 2 * mean) for _ in range(count)]
    if rng.random() < 0.75:
        values[-1] += -sum(values) % count
    listed = enumerated(rng, values)
    total = chain(values[0], *(("+", v) for v in values[1:]))
    end = apply("/", total.value, count)
    worked = Worked(total.lines + end.lines, end.value)
    if kind < 2:
        fact = rng.choice((f"{x} {x.has} {listed} {unit}", f"{x.of} results are {listed}", f"{x} measure{x.s} {listed} {unit}",
                           f"there were {listed} {unit}", f"the numbers are {listed}", f"{x} count{x.s} {listed} {unit}",
                           f"in {count} days {x} got {listed}", f"the values {listed} were noted", f"{x.of} scores were {listed}"))
        ask = rng.choice(("what is the average", "what is the mean", f"how much is that {_ADVERB.expand(rng)}", "what is it on average",
                          "what is the average value", f"what is {x.of} average", "how many on average", "what is the arithmetic mean"))
        return computed(compose(rng, [fact], ask, rng.choice(("the average", "the mean", f"{x.of} average"))), worked)
    if kind == 2:
        whole_sum = mean * count
        fact = rng.choice((f"{count} numbers add up to {whole_sum}", f"the sum of {count} numbers is {whole_sum}", f"{x} got {whole_sum} {unit} in {count} days",
                           f"in {count} games {x} scored {whole_sum} points", f"{count} children have {whole_sum} marbles together",
                           f"{count} boxes weigh {whole_sum} kg in total"))
        ask = rng.choice(("what is the average", "what is their mean", "how many is that on average", "what is the average for each"))
        return computed(compose(rng, [fact], ask, rng.choice(("the average", "the mean"))), apply("/", whole_sum, count))
    if kind == 3:
        fact = rng.choice((f"the average of {count} numbers is {mean}", f"{count} numbers have a mean of {mean}", f"{x} got {mean} {unit} on average over {count} days",
                           f"in {count} games {x} scored an average of {mean} points", f"{count} bags weigh {mean} kg on average"))
        ask = rng.choice(("what is the sum", "what do they add up to", "what is the total", "how much is it in all"))
        return computed(compose(rng, [fact], ask, rng.choice(("the sum", "the total"))), apply("*", count, mean))
    known, whole_sum = values[:-1], mean * count
    missing = whole_sum - sum(known)
    require(missing > 0)
    fact = rng.choice((f"the average of {count} numbers is {mean}", f"{count} tests have an average of {mean}"))
    other = f"{'one is' if count == 2 else f'{count - 1} of them are'} {enumerated(rng, known) if count > 2 else known[0]}"
    first = apply("*", count, mean)
    rest = chain(first.value, *(("-", v) for v in known))
    return computed(compose(rng, [fact, other], rng.choice(("what is the last one", "what is the missing number", "what is the other one")),
                            rng.choice(("the missing number", "the other number"))), Worked(first.lines + rest.lines, missing))


# Above and below zero ---------------------------------------------------------------------------

_BELOW = Patterns("[-{a}|minus {a}|-{a}|negative {a}]")
_SCENES = (
    ("the temperature is {v} degrees|it is {v}°C outside|the thermometer shows {v}°|at dawn it was {v} degrees|in the freezer it is {v} °C|the day starts at {v} degrees",
     "it rises by {b} degrees|it gets {b} degrees warmer|it warms up by {b} degrees|it goes up {b} degrees|it climbs {b} degrees",
     "it falls by {b} degrees|it gets {b} degrees colder|it cools by {b} degrees|it drops {b} degrees|it sinks by {b}",
     "what is the temperature now|how many degrees is it then|how cold or warm is it now|what does the thermometer show then", "the new temperature|the temperature"),
    ("{x} {x.be} on floor {v}|the elevator is on floor {v}|the lift stands at level {v}|a parking deck is at level {v}",
     "it goes up {b} floors|the lift rises {b} floors|{x} ride{x.s} up {b} floors", "it goes down {b} floors|the lift sinks {b} floors|{x} ride{x.s} {b} floors down",
     "which floor is it now|on what floor does it stop|at which level is it then", "the new floor|the floor"),
    ("the account is at {v} dollars|{x.of} balance is {v} dollars|the bank account shows {v} dollars|{x} start{x.s} with {v} dollars in the account",
     "{b} dollars are paid in|{x} deposit{x.s} {b} dollars|{b} dollars come in", "{b} dollars are paid out|{x} withdraw{x.s} {b} dollars|a bill of {b} dollars is paid|{x} spend{x.s} {b} dollars",
     "what is the balance now|how much is in the account|what does the account show", "the balance|the new balance"),
    ("a diver is at {v} meters|a submarine is at {v} m|a fish swims at {v} meters|the drone is at {v} m",
     "it rises {b} meters|it goes up {b} m|it climbs by {b} meters", "it sinks {b} meters|it dives {b} m deeper|it goes down {b} meters",
     "at what height is it now|where is it then|what is its position now", "the new height|the position"),
    ("{x} {x.has} {v} points|the score is {v}|the game stands at {v} points for {x}", "{x} win{x.s} {b} points|{b} points are added|{x} gain{x.s} {b}",
     "{x} lose{x.s} {b} points|{b} points are taken away|there is a penalty of {b}", "what is the score now|how many points is that|what is the new score", "the score|the new score"),
)


@topic(2.5)
def above_and_below(rng: random.Random) -> Short:
    starts, ups, downs, asks, nouns = rng.choice(_SCENES)
    x = some_people(rng, 1, first_person=True)[0]
    value = rng.randint(-30, 20)
    typed = str(value) if value >= 0 else _BELOW.expand(rng, a=-value)
    facts, steps = [rng.choice(starts.split("|")).format(x=x, v=typed)], []
    for _ in range(rng.choice((1, 1, 1, 2))):
        up, b = rng.random() < 0.5, rng.randint(1, 40)
        facts.append(rng.choice((ups if up else downs).split("|")).format(x=x, b=b))
        steps.append(("+" if up else "-", b))
    text = compose(rng, facts, rng.choice(asks.split("|")), rng.choice(nouns.split("|")))
    return computed(text, chain(value, *steps))


@topic(1)
def apart_across_zero(rng: random.Random) -> Short:
    a, b = rng.sample(range(-30, 36), 2)
    require(min(a, b) < 0)
    typed = [str(v) if v >= 0 else _BELOW.expand(rng, a=-v) for v in (a, b)]
    p, q = rng.sample("Oslo Rome Cairo Lima Delhi Boston Kyiv Quito Vienna Prague Dublin Seoul".split(), 2)
    kind = rng.random()
    if kind < 0.5:
        facts = [f"{rng.choice((f'it is {typed[0]} degrees in {p}', f'{p} has {typed[0]}°C'))}", f"{rng.choice((f'it is {typed[1]} degrees in {q}', f'{q} has {typed[1]}°C'))}"]
        warm, cold = (p, q) if a > b else (q, p)
        ask = rng.choice((f"how much warmer is it in {warm} than in {cold}", f"by how many degrees is {warm} warmer", "what is the difference",
                          f"how much colder is {cold}", "how many degrees are between them"))
    elif kind < 0.75:
        a, b = min(a, b), max(a, b)
        typed = [str(v) if v >= 0 else _BELOW.expand(rng, a=-v) for v in (a, b)]
        facts = [f"the night was at {typed[0]} degrees", f"the day reached {typed[1]} degrees"]
        ask = rng.choice(("by how much did the temperature rise", "how many degrees did it rise", "what is the difference", "how big is the rise"))
    else:
        facts = [f"one number is {typed[0]}", f"the other is {typed[1]}"]
        ask = rng.choice(("how far apart are they", "what is their distance on the number line", "what is the difference between the larger and the smaller"))
    return computed(compose(rng, facts, ask, rng.choice(("the difference", "the distance")), free=True), apply("-", max(a, b), min(a, b)))


_DEBT = Patterns("[{x} owe{x.s} {y} ${a}|{x} {x.has} a debt of ${a}|{x} borrowed ${a}|{x} {x.be} ${a} in debt]")


@topic(0.8)
def debts(rng: random.Random) -> Short:
    x, y = some_people(rng, 2)
    a, b = rng.randint(2, 90), rng.randint(1, 60)
    slots = {"x": x, "y": y, "a": a}
    if rng.random() < 0.5:
        require(b < a)
        paid = rng.choice((f"{x} pay{x.s} back ${b}", f"{x} return{x.s} ${b}", f"${b} of it is paid back"))
        ask = rng.choice((f"how much {x.do} {x} still owe", "how much debt is left", "what is left to pay", "how many dollars are still owed"))
        return computed(compose(rng, [_DEBT.expand(rng, **slots), paid], ask, "the remaining debt"), apply("-", a, b))
    more = rng.choice((f"{x} borrow{x.s} ${b} more", f"{x} take{x.s} another ${b}", f"later {x} borrow{x.s} ${b}"))
    ask = rng.choice((f"how much {x.do} {x} owe now", "how big is the debt now", "what is the whole debt"))
    return computed(compose(rng, [_DEBT.expand(rng, **slots), more], ask, "the whole debt"), apply("+", a, b))
