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
from fractions import Fraction
from typing import TypeVar

from . import words

T = TypeVar("T")


class Reject(Exception):
    """The drawn numbers make no sensible problem; draw again."""


@dataclass(frozen=True)
class Problem:
    family: str
    numbers: tuple[int, ...]  # every number drawn, in the order drawn
    question: str
    answer: str  # the worked steps, one a line; the last line is `#### result`
    result: int

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


class Calc:
    """One calculator call. `f"{c}"` is `4 * 6 = <<4*6=24>>24`; `f"{c:$}"` marks the result as money."""

    def __init__(self, *terms: int | str | Calc) -> None:
        operands = [t.value if isinstance(t, Calc) else t for t in terms]
        value = Fraction(operands[0])
        for operator, operand in zip(operands[1::2], operands[2::2], strict=True):
            value = _apply(value, str(operator), int(operand))
        if value.denominator != 1 or value < 0:
            raise Reject
        self.value = int(value)
        self._operands = operands

    def __int__(self) -> int:
        return self.value

    def __format__(self, spec: str) -> str:
        shown = " ".join(map(str, self._operands))
        marked = "".join(map(str, self._operands))
        return f"{shown} = {spec}<<{marked}={self.value}>>{self.value}"


def _apply(left: Fraction, operator: str, right: int) -> Fraction:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right
    raise ValueError(f"[problems] unknown operator; got {operator!r}, expected one of + - * /")


def calc(*terms: int | str | Calc) -> Calc:
    """`calc(a, "+", b, "+", c)`: applied left to right, so do not mix `+ -` with `* /`."""
    return Calc(*terms)


class Draw:
    """The random choices of one problem. Numbers are remembered: they say which split it is in."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names: set[str] = set()
        self.numbers: list[int] = []

    def int(self, low: int, high: int, step: int = 1) -> int:
        value = self._rng.randrange(low, high + 1, step)
        self.numbers.append(value)
        return value

    def number_from(self, options: Sequence[int]) -> int:
        value = self._rng.choice(options)
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

    def tell(self, *sentences: Sequence[str] | str) -> str:
        """A question: one wording of each sentence, chosen independently."""
        return " ".join(s if isinstance(s, str) else self.pick(s) for s in sentences)


@dataclass(frozen=True)
class Story:
    """What a family returns: the question, the worked lines and the value that is asked for."""

    question: str
    lines: Sequence[str]
    result: int | Calc


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
        result = int(story.result)
        answer = "\n".join([*story.lines, f"#### {result}"])
        return Problem(name, tuple(draw.numbers), story.question, answer, result)
