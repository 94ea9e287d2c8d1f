"""How the newer themes tell their stories: nouns with both numbers, and facts in any order."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from decimal import Decimal

from .problem import Calc, Draw, Reject, Story

# A tuple is one sentence in several wordings; a list holds sentences that may come in any order.
Part = str | tuple[str, ...] | list

TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}
PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 8: "an eighth",
         10: "a tenth"}
SHARES = {(1, 2): "half", (1, 3): "one third", (2, 3): "two thirds", (1, 4): "one quarter",
          (3, 4): "three quarters", (1, 5): "one fifth", (2, 5): "two fifths",
          (3, 5): "three fifths", (4, 5): "four fifths"}
_SPELLED = ("zero one two three four five six seven eight nine ten eleven twelve").split()

_PLURAL_OF_ONE = re.compile(r"(?<![\d.,:])1 (?!is\b|was\b|has\b|plus\b|less\b|minus\b|bus\b|across\b)"
                            r"(\w*[^\Ws]s|are|were|have|people|children|men|women)\b")


@dataclass(frozen=True)
class Noun:
    """`x(3)` is "3 apples", `x(1)` is "1 apple"; in a text `x` stands for the plural."""

    one: str
    many: str

    def __call__(self, number: int | Calc | Decimal) -> str:
        value = number.value if isinstance(number, Calc) else number
        return f"{number} {self.one if value == 1 else self.many}"

    def __str__(self) -> str:
        return self.many

    @property
    def Many(self) -> str:
        return capital(self.many)

    @property
    def A(self) -> str:
        return capital(self.a)

    @property
    def a(self) -> str:
        vowel = self.one[0] in "aeiou" and not self.one.startswith(("uni", "uku", "one"))
        return f"{'an' if vowel or self.one.startswith('hour') else 'a'} {self.one}"


def nouns(text: str) -> list[Noun]:
    """Nouns from a text such as "apple, toy car, leaf/leaves"."""
    return [noun(entry.strip()) for entry in text.split(",")]


def noun(entry: str) -> Noun:
    one, _, many = entry.partition("/")
    return Noun(one, many or _plural(one))


def _plural(one: str) -> str:
    if one.endswith(("s", "x", "ch", "sh", "z")):
        return one + "es"
    if one.endswith("y") and one[-2] not in "aeiou":
        return one[:-1] + "ies"
    return one + "s"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def spelled(d: Draw, number: int) -> str:
    """The number, sometimes as a word."""
    return _SPELLED[number] if 1 < number <= 12 and d.pick(range(3)) == 0 else str(number)


def tell(d: Draw, *parts: Part) -> str:
    """A question: one wording of each sentence; the sentences of a list come in any order."""
    return " ".join(filter(None, (_tell_part(d, part) for part in parts)))


def _tell_part(d: Draw, part: Part) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, tuple):
        return d.pick(part)
    return tell(d, *d.pick(list(itertools.permutations(part))))


def maybe(d: Draw, *wordings: str) -> str:
    """One of the wordings, or nothing: a fact that the question does not need."""
    return d.pick(wordings) if d.pick(range(3)) == 0 else ""


def amount(d: Draw, *ranges: tuple[int, int]) -> int:
    """A number of one of the ranges, each range equally likely: small numbers stay frequent."""
    low, high = d.pick(ranges)
    return d.int(low, high)


def share(d: Draw, least: int = 1) -> tuple[int, int]:
    """A fraction of SHARES with at least this numerator; it counts as a number drawn."""
    shares = [s for s in SHARES if s[0] >= least]
    return shares[d.number_from(range(len(shares)))]


def story(question: str, lines: list[str], result: int | Calc) -> Story:
    """The story, unless it says something like "1 apples"."""
    if any(_PLURAL_OF_ONE.search(text) for text in (question, *lines)):
        raise Reject
    return Story(question, lines, result)
