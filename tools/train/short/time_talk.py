"""Several turns about a time, a weekday, a month, an age or a unit."""

from __future__ import annotations

import random

from .arithmetic import apply
from .grammar import Patterns
from .measures import MONTHS, clock, span, typed_clock, typed_span
from .numbers import require
from .question import Turn

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

_FIRST_TIME = Patterns("""
    [What time is it|What is|whats] {d} after {t}[?|]
    [It's|It is] {t}. [What time is it|What time will it be] in {d}[?|]
    {t} [plus|+] {d}[?|]
    [The|My] [film|lesson|show|shift] [starts|begins] at {t} and takes {d}. When is [the end|it over][?|]
""")
_LATER = Patterns("""
    [and |And |then ]{d} [later|after that|more|on][?|]
    [add|Add|plus|now add] {d}[?|.|]
    [and|And] [if|when] [it takes|it's|there's] {d} more[?|]
    [what about|how about|and] {d} after that[?|]
""")
_EARLIER = Patterns("""
    [and |And |then ]{d} [earlier|before that][?|]
    [minus|subtract|take away|less] {d}[?|.|]
    [what about|how about|and] {d} before that[?|]
    [now|and now|then] [go back|back] {d}[.|?|]
""")
_FIRST_DAY = Patterns("""
    [If|When] today is {w}, what day is it in {n} days[?|]
    [Today is|It's] {w}. [What day|Which day] is it in {n} days[?|]
    what day is {n} days after {w}[?|]
""")
_DAY_ON = Patterns("""
    [and |And |]the day after that[?|]
    [and |And |]{n} days [later|after that][?|]
    [and |And |then ]{n} days more[?|]
    [what about|and what about] {n} days after that[?|]
""")
_DAY_BACK = Patterns("""
    [and |And ]{n} days before that[?|]
    [what about|and] {n} days earlier[?|]
""")
_FIRST_MONTH = Patterns("""
    [what|Which] month is {n} months after {m}[?|]
    [It's|It is] {m}. [What|Which] month is it in {n} months[?|]
""")
_MONTH_ON = Patterns("""
    [and |And |]{n} months [later|after that][?|]
    [and |And |then ]{n} more months[?|]
    [what about|and what about] {n} months after that[?|]
""")
_UNITS = tuple((a, int(n), b) for a, n, b in (line.split() for line in """
hours 60 minutes
minutes 60 seconds
days 24 hours
weeks 7 days
years 12 months
meters 100 cm
cm 10 mm
km 1000 m
kg 1000 g
liters 1000 ml
feet 12 inches
dollars 4 quarters
""".strip().splitlines()))
_FIRST_UNIT = Patterns("""
    [How many|how many] {v} [are|are in|are there in|is] {a} {u}[?|]
    {a} {u} [in|to] {v}[?|]
    {v} in {a} {u}[?|]
    convert {a} {u} to {v}
""")
_UNIT_AGAIN = Patterns("""
    [and|And|what about|And what about|how about|and in|and for] {a}[?| {u}?| {u}|]
    [same|the same|now] [for|with] {a}[?| {u}| {u}?|]
    {a}[ {u}|]?
""")
_UNIT_BACK = Patterns("""
    and {b} {v} [in|to] {u}[?|]
    [the other way|and back|and the other way round]: {b} {v} [in|to] {u}[?|]
    how many {u} are {b} {v} then[?|]
""")
_AGED = (
    ("I am", "will I be", "was I"),
    ("My sister is", "will she be", "was she"),
    ("Our dog is", "will it be", "was it"),
)
_AGE_ON = Patterns("[and|And|what about|how about] {w}[?|]")


def talk_of_time(rng: random.Random) -> list[Turn]:
    return rng.choice((_of_clock, _of_clock, _of_days, _of_months, _of_units, _of_units, _of_ages))(rng)


def _turn(question: str, reply: list[str]) -> Turn:
    return " ".join(question.split()), "\n".join(reply)


def _moved(start: int, minutes: int) -> list[str]:
    lines, now, sign = [], start, 1 if minutes > 0 else -1
    hours, rest = divmod(abs(minutes), 60)
    for part in (60 * hours, rest):
        if part:
            lines.append(f"{clock(now)} {'+' if sign > 0 else '-'} {span(part)} = {clock(now + sign * part)}")
            now += sign * part
    return lines


def _of_clock(rng: random.Random) -> list[Turn]:
    now, turns = 5 * rng.randint(60, 264), []
    for i in range(rng.randint(2, 4)):
        minutes = rng.choice((5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 75, 90, 120, 150, 180))
        back = i > 0 and rng.random() < 0.35
        patterns = _FIRST_TIME if i == 0 else _EARLIER if back else _LATER
        change = -minutes if back else minutes
        turns.append(
            _turn(patterns.expand(rng, t=typed_clock(rng, now), d=typed_span(rng, minutes)), _moved(now, change))
        )
        now += change
    return turns


def _of_days(rng: random.Random) -> list[Turn]:
    day, turns = rng.randrange(7), []
    for i in range(rng.randint(2, 4)):
        n, back = rng.choice((2, 3, 4, 5, 6, 8, 10)), i > 0 and rng.random() < 0.25
        text = (_FIRST_DAY if i == 0 else _DAY_BACK if back else _DAY_ON).expand(rng, w=_DAYS[day], n=n)
        if "the day after" in text:
            n = 1
        step = -1 if back else 1
        lines = [f"{n} / 7 = {n // 7} remainder {n % 7}"] if n >= 7 else []
        if n % 7 > 1:
            lines.append(", ".join(_DAYS[(day + step * k) % 7] for k in range(1, n % 7 + 1)))
        day = (day + step * n) % 7
        turns.append(_turn(text, [*lines, f"It is {_DAYS[day]}."]))
    return turns


def _of_months(rng: random.Random) -> list[Turn]:
    month, turns = rng.randrange(12), []
    for i in range(rng.randint(2, 3)):
        n = rng.randint(2, 9)
        text = (_FIRST_MONTH if i == 0 else _MONTH_ON).expand(rng, m=MONTHS[month], n=n)
        listed = ", ".join(MONTHS[(month + k) % 12] for k in range(1, n + 1))
        month = (month + n) % 12
        turns.append(_turn(text, [listed, f"It is {MONTHS[month]}."]))
    return turns


def _of_units(rng: random.Random) -> list[Turn]:
    large, factor, small = rng.choice(_UNITS)
    amounts = rng.sample(range(2, 21), rng.randint(2, 3))
    turns = []
    for i, a in enumerate(amounts):
        worked = apply("*", a, factor)
        text = (_FIRST_UNIT if i == 0 else _UNIT_AGAIN).expand(rng, a=a, u=large, v=small)
        turns.append(_turn(text, [*worked.lines, f"{a} {_short(large)} = {worked.value} {_short(small)}"]))
    if rng.random() < 0.3:
        b = rng.randint(2, 20) * factor
        back = apply("/", b, factor)
        text = _UNIT_BACK.expand(rng, b=b, u=large, v=small)
        turns.append(_turn(text, [*back.lines, f"{b} {_short(small)} = {back.value} {_short(large)}"]))
    return turns


def _short(unit: str) -> str:
    return "m" if unit == "meters" else unit


def _of_ages(rng: random.Random) -> list[Turn]:
    a, turns = rng.randint(12, 60), []
    for i in range(rng.randint(2, 3)):
        n, back = rng.randint(2, 30), rng.random() < 0.4
        require(not back or n < a)
        when = f"{n} years ago" if back else f"in {n} years"
        if i == 0:
            who, now, past = rng.choice(_AGED)
            text = f"{who} {a}. How old {past if back else now} {when}{rng.choice(('?', '?', ''))}"
        else:
            text = _AGE_ON.expand(rng, w=when)
        worked = apply("-" if back else "+", a, n)
        turns.append(_turn(text, list(worked.lines)))
    return turns
