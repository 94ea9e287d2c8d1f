"""What a problem is, and the small vocabulary in which families write them.

A family is a function `Draw -> Problem`. It draws its numbers and words, does its arithmetic with
`calc`, and tells the story; the text of a step and the step's value come from the same `Calc`, so
they cannot disagree. The wording of a question varies freely, the wording of its answer is fixed
by the question: greedy decoding then has one right continuation, with a wide margin.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, TypeVar

from . import words
from .steps import worked_out

T = TypeVar("T")
N = TypeVar("N", int, Decimal)
Number: TypeAlias = int | Decimal


class Reject(Exception):
    """The drawn numbers make no sensible problem; draw again."""


@dataclass(frozen=True)
class Problem:
    family: str
    numbers: tuple[Number, ...]  # every number drawn, in the order drawn
    question: str
    answer: str  # the worked steps, one a line; the last line is `#### result`
    result: Number

    def bucket(self, num_buckets: int) -> int:
        """A bucket that depends on the family and its numbers only, never on the wording."""
        key = f"{self.family}:{','.join(map(str, self.numbers))}"
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % num_buckets


@dataclass(frozen=True)
class Person:
    name: str
    they: str
    their: str
    them: str

    def __str__(self) -> str:
        return self.name

    @property
    def They(self) -> str:
        return self.they.capitalize()

    @property
    def Their(self) -> str:
        return self.their.capitalize()


def shortest(value: Number) -> str:
    """`7.50` as `7.5`, `7.00` as `7`."""
    return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, Decimal) and value % 1 else str(int(value))


def dollars(value: Number) -> str:
    """Whole dollars as `7`, anything else with its cents, as `7.50`."""
    return f"{value:.2f}" if value % 1 else str(int(value))


def exact_decimal(value: Fraction) -> Decimal | None:
    """The number with at most two places; None if it has more."""
    cents = value * 100
    return Decimal(int(cents)) / 100 if cents.denominator == 1 else None


class Calc:
    """One calculator call. `f"{c}"` is `4 * 6 = <<4*6=24>>24`; `f"{c:$}"` marks the result as money."""

    def __init__(self, *terms: Number | str | Calc) -> None:
        operands = [t.value if isinstance(t, Calc) else t for t in terms]
        value = Fraction(operands[0])
        for operator, operand in zip(operands[1::2], operands[2::2], strict=True):
            value = _apply(value, str(operator), Fraction(operand))
        number = exact_decimal(value)
        is_whole = all(isinstance(t, int | str) for t in operands)
        if number is None or number < 0 or (is_whole and number % 1):
            raise Reject
        self.value: Number = int(number) if is_whole else number
        self._operands = [t if isinstance(t, str) else shortest(t) for t in operands]

    def __int__(self) -> int:
        return int(self.value)

    def __str__(self) -> str:
        return format(self)

    def __format__(self, spec: str) -> str:
        shown, marked = " ".join(self._operands), "".join(self._operands)
        result = dollars(self.value) if spec == "$" else shortest(self.value)
        return f"{shown} = {spec}<<{marked}={shortest(self.value)}>>{result}"


def _apply(left: Fraction, operator: str, right: Fraction) -> Fraction:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        if right == 0:
            raise Reject
        return left / right
    raise ValueError(f"[problems] unknown operator; got {operator!r}, expected one of + - * /")


def calc(*terms: Number | str | Calc) -> Calc:
    """`calc(a, "+", b, "+", c)`: applied left to right, so do not mix `+ -` with `* /`.

    Rejects a negative result, one of more than two decimals, and one of whole numbers that is not
    whole; a Decimal among the operands (`d.price`, `d.decimal`, `Decimal(n)`) allows decimals."""
    return Calc(*terms)


class Draw:
    """The random choices of one problem. Numbers are remembered: they say which split it is in."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names: set[str] = set()
        self.numbers: list[Number] = []

    def int(self, low: int, high: int, step: int = 1) -> int:
        return self._drawn(self._rng.randrange(low, high + 1, step))

    def number_from(self, options: Sequence[N]) -> N:
        return self._drawn(self._rng.choice(options))

    def price(self, low: int, high: int) -> Decimal:
        """From `low` to under `high + 1` dollars, with usual cents. Written as `${price}`."""
        cents = self._rng.choice(_USUAL_CENTS)
        return self._drawn(Decimal(f"{self._rng.randint(low, high)}{cents}"))

    def decimal(self, low: int, high: int, places: int = 1) -> Decimal:
        """From `low` to `high`, of at most `places` decimals, in its shortest form."""
        scale = 10**places
        value = Decimal(self._rng.randint(low * scale, high * scale)) / scale
        return self._drawn(Decimal(shortest(value)))

    def percent(self) -> int:
        """A percentage that people use. Written as `{percent}%`."""
        return self.number_from(_USUAL_PERCENTAGES)

    def _drawn(self, value: N) -> N:
        self.numbers.append(value)
        return value

    def pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)

    def pick_two(self, options: Sequence[T]) -> tuple[T, T]:
        first, second = self._rng.sample(options, 2)
        return first, second

    def person(self) -> Person:
        """Somebody not yet in this story. Some names are made up, so that names must be copied."""
        while True:
            (they, their, them), name = self.pick(words.PEOPLE)
            if self._rng.random() < 0.2:
                name = self._made_up_name()
            if name not in self._names:
                self._names.add(name)
                return Person(name, they, their, them)

    def _made_up_name(self) -> str:
        syllables = self._rng.choices(words.SYLLABLES, k=self._rng.randint(2, 3))
        return "".join(syllables).capitalize()

    def require(self, condition: bool) -> None:
        if not condition:
            raise Reject

    def number_words(self, value: int) -> str:
        """The number for the question's text: a small one in words at times, otherwise in digits."""
        in_words = value < len(words.NUMBERS) and self._rng.random() < 0.4
        return words.NUMBERS[value] if in_words else str(value)

    def maybe(self, sentence: Sequence[str] | str) -> str:
        """A sentence that the answer does not need (a distractor), or nothing."""
        return self._worded(sentence) if self._rng.random() < 0.4 else ""

    def shuffled(self, *facts: Sequence[str] | str) -> list[Sequence[str] | str]:
        """Independent facts in any order: `d.tell(*d.shuffled(first, second), question)`."""
        return self._rng.sample(facts, len(facts))

    def tell(self, *sentences: Sequence[str] | str) -> str:
        """A question: one wording of each sentence, chosen independently; empty ones are left out."""
        return " ".join(filter(None, map(self._worded, sentences)))

    def _worded(self, sentence: Sequence[str] | str) -> str:
        return sentence if isinstance(sentence, str) else self.pick(sentence)


_USUAL_CENTS = ("", "", "", ".50", ".50", ".25", ".75", ".99", ".95", ".20", ".80", ".05")
_USUAL_PERCENTAGES = (5, 10, 10, 12, 15, 20, 20, 25, 25, 30, 40, 50, 60, 75, 80, 90)


@dataclass(frozen=True)
class Story:
    """What a family returns: the question, the worked lines and the value that is asked for."""

    question: str
    lines: Sequence[str]
    result: Number | Calc


Family = Callable[[Draw], Story]
FAMILIES: dict[str, Family] = {}


def family(function: Family) -> Family:
    """Registers a family under its function's name."""
    assert function.__name__ not in FAMILIES, function.__name__
    FAMILIES[function.__name__] = function
    return function


def make_problem(name: str, rng: random.Random) -> Problem:
    """One problem of the named family. Draws again until the numbers make sense."""
    while True:
        draw = Draw(rng)
        try:
            story = FAMILIES[name](draw)
        except Reject:
            continue
        result = story.result.value if isinstance(story.result, Calc) else story.result
        lines = (step for line in story.lines for step in worked_out(line))
        answer = "\n".join([*lines, f"#### {shortest(result)}"])
        return Problem(name, tuple(draw.numbers), story.question, answer, result)
