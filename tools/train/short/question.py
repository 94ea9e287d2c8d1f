"""What a short question is, and the register of the functions that write them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .arithmetic import Worked
from .numbers import Reject, Value, show


@dataclass(frozen=True)
class Short:
    """A question and its reply, of which the last line ends in the answer."""

    question: str
    reply: str
    answer: str  # the last number of the reply, or words of its last line
    value: Value | None = None  # that a next turn can go on with
    is_fixed: bool = False  # spelled as it must be: no typing errors, no politeness


Turn = tuple[str, str]
Topic = Callable[[random.Random], Short]
TOPICS: dict[str, Topic] = {}
WEIGHTS: dict[str, float] = {}


def topic(weight: float) -> Callable[[Topic], Topic]:
    """Registers a function; the weight is how often it is drawn, against the other topics."""

    def register(function: Topic) -> Topic:
        assert function.__name__ not in TOPICS, function.__name__
        TOPICS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def draw_topic(name: str, rng: random.Random) -> Short:
    while True:
        try:
            return TOPICS[name](rng)
        except Reject:
            continue


def computed(question: str, worked: Worked) -> Short:
    """The reply is the calculation."""
    return Short(question, "\n".join(worked.lines), show(worked.value), worked.value)


def with_unit(question: str, worked: Worked, line: str) -> Short:
    """The calculation, then a line that ends in the answer and its unit."""
    return Short(question, "\n".join((*worked.lines, line)), show(worked.value), worked.value)


def said(question: str, reply: str, answer: Value | str) -> Short:
    is_number = isinstance(answer, int | Fraction)
    return Short(question, reply, show(answer) if is_number else answer, answer if is_number else None)
