"""Several turns: a calculation, then what to do with its result, or the same again with another number."""

from __future__ import annotations

import random

from .arithmetic import Worked, apply
from .expressions import operands
from .grammar import Patterns
from .numbers import Reject, Value, require, show
from .question import Short, Turn, computed
from .time_talk import talk_of_time

_GO_ON = {
    "+": Patterns("""
        [and|And|Now|now|then|Then|ok, now|Next,|][ | please ][add|plus|+] {b}[.|?||!]
        [Add|add] {b} [to that|to it|to the result|more|to this][.||!]
        [What if I|Can you|Now let's] add {b}[?| to it?| to that?]
        [What|How much] is that plus {b}[?|]
        [plus|+|and] {b}[?||.]
        {b} more[?|]
        [What is|How much is|whats] {b} more than that[?|]
        increase it by {b}[.|]
    """),
    "-": Patterns("""
        [and|And|Now|now|then|Then|ok, now|Next,|][ | please ][subtract|minus|take away|-] {b}[.|?||!]
        [Subtract|subtract|take|Take] {b} [from that|from it|from the result][.||!]
        [What|How much] is that minus {b}[?|]
        [minus|-|less] {b}[?||.]
        {b} less[?|]
        [And if|What if] I take away {b}[?|]
        decrease it by {b}[.|]
    """),
    "*": Patterns("""
        [and|And|Now|now|then|Then|ok, now|Next,|][ | please ][times|multiply by|multiply it by|*|x] {b}[.|?||!]
        [Multiply|multiply] [that|it|the result|this] by {b}[.||!]
        [What|How much] is that times {b}[?|]
        [times|*|x] {b}[?||.]
        {b} times that[?|]
        [And|What about|now] {b} times [that|as much|as many][?|]
    """),
    "/": Patterns("""
        [and|And|Now|now|then|Then|ok, now|Next,|][ | please ][divided by|divide by|divide it by|/] {b}[.|?||!]
        [Divide|divide] [that|it|the result|this] by {b}[.||!]
        [What|How much] is that divided by {b}[?|]
        [divided by|/|over] {b}[?||.]
        [split|share] it [between|among] {b}[.|?|]
    """),
}
_SPECIAL = (
    ("*", 2, Patterns("[and|Now|now|then|][ | please ][double|Double] [it|that|the result][.||!|?]")),
    ("*", 3, Patterns("[and|Now|now|then|][ | please ][triple|Triple] [it|that|the result][.||!|?]")),
    ("/", 2, Patterns("""
        [and|Now|now|then|][ | please ][halve|Halve|take half of] [it|that][.||!|?]
        [What is|And|and|what's|] half of [that|it][?|]
    """)),
)
_AGAIN = Patterns("""
    [and|And|What about|what about|How about|how about|and what about|And for|and with|with|Same with|the same with|now with|Now] {b}[?||instead?| instead?| instead]
    [Now|now] [the same|do the same] [with|for] {b}[.|]
    [What|How much] if it [was|were|is] {b}[?| instead?]
""")
_FIRST = Patterns("""
    [What is|what's|How much is|whats|Calculate|compute|] {e}[?||=]
    {e}[=|?|]
    [Tell me|Can you tell me what is] {e}[?|.]
""")
_SIGN = {"+": (" + ", "+", " plus "), "-": (" - ", "-", " minus "), "*": (" * ", "*", " x ", " times ", "x"),
         "/": (" / ", "/", " divided by ", " ÷ ")}


def dialogue(rng: random.Random) -> list[Turn]:
    """Two to four turns."""
    while True:
        try:
            kind = rng.random()
            return _same_again(rng) if kind < 0.27 else talk_of_time(rng) if kind < 0.42 else _going_on(rng)
        except Reject:
            continue


def continued(rng: random.Random, first: Short) -> list[Turn]:
    """Turns that go on from another question's value; none if that does not fit."""
    if first.value is None or abs(first.value) > 9999:
        return []
    try:
        return [_next(rng, first.value)[0]]
    except Reject:
        return []


def _going_on(rng: random.Random) -> list[Turn]:
    operator = rng.choice("++-*/")
    a, b = operands(rng, operator)
    worked = apply(operator, a, b)
    turns = [(_asked(rng, operator, a, b), "\n".join(worked.lines))]
    value = worked.value
    for _ in range(rng.choice((1, 1, 2, 3))):
        turn, value = _next(rng, value)
        turns.append(turn)
    return turns


def _asked(rng: random.Random, operator: str, a: Value, b: Value) -> str:
    return _FIRST.expand(rng, e=f"{show(a)}{rng.choice(_SIGN[operator])}{show(b)}").strip()


def _next(rng: random.Random, value: Value) -> tuple[Turn, Value]:
    operator, b, patterns = rng.choice(_SPECIAL) if rng.random() < 0.2 else _drawn(rng, value)
    worked = apply(operator, value, b)
    require(abs(worked.value) < 1_000_000)
    text = " ".join(patterns.expand(rng, b=b).split())
    return (text, computed(text, worked).reply), worked.value


def _drawn(rng: random.Random, value: Value) -> tuple[str, int, Patterns]:
    operator = rng.choice("++--**/")
    b = rng.randint(2, 12) if operator in "*/" else rng.randint(1, rng.choice((10, 50, 100)))
    if operator == "/":
        divisors = [d for d in range(2, 13) if value % d == 0]
        require(bool(divisors) and value != 0)
        b = rng.choice(divisors)
    return operator, b, _GO_ON[operator]


def _same_again(rng: random.Random) -> list[Turn]:
    """`5 * 3`, then `and 7?`: the last number is exchanged."""
    operator = rng.choice("+-**/")
    a, b = operands(rng, operator)
    require(b != 0)
    turns = [(_asked(rng, operator, a, b), _reply(apply(operator, a, b)))]
    for _ in range(rng.choice((1, 1, 2))):
        other = rng.randint(1, max(2, 2 * int(b)))
        require(operator != "/" or a % other == 0)
        turns.append((_AGAIN.expand(rng, b=other).replace("instead", " instead").replace("  ", " ").strip(),
                      _reply(apply(operator, a, other))))
    return turns


def _reply(worked: Worked) -> str:
    return "\n".join(worked.lines)
