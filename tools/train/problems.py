"""Word problems from the table in families.txt, which says how a family is written.

The text of a step and its value come from the same calculation, so they cannot disagree. The wording of a question
varies; the wording of its answer is fixed by the family, so that greedy decoding has one right continuation.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from arithmetic import Line, Reject, Value, chain, in_words, require, show, simplest

_WOMEN = ("Anna Maria Lily Sofia Emma Olivia Ava Mia Grace Chloe Zoe Nora Hannah Leila Aisha Priya Mei Yuki Elena Carmen "
          "Rosa Julia Clara Alice Ruth Tina Maya Lena Ann Kate").split()
_MEN = ("James Liam Noah Ethan Lucas Henry Jack Leo Oscar Felix Omar Raj Wei Kenji Lars Ivan Pedro Carlos Marco Paul Peter "
        "Tom Ben Sam Max Daniel David Kevin Victor Jamal").split()
_SYLLABLES = "ba da fi go ka la li ma mi na no pa ra ri ro sa se ta ti to va ve za zu".split()
_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth"}
_CENTS = (0, 0, 0, 50, 50, 25, 75, 99, 20, 80)
_PERCENTAGES = (5, 10, 10, 15, 20, 20, 25, 25, 30, 40, 50, 60, 75, 80, 90)
_MAX_DRAWS = 2000
_NUM_BUCKETS = 50  # one of them is held out: 2 % of the combinations of numbers
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{([^{}]+)\}")
_RANGE = re.compile(r"(\$?)(\d+)\.\.(\d+)(?:/(\d+))?(?:\*(\w+))?")
_TOKEN = re.compile(r"\w+|[+*/-]")


@dataclass(frozen=True)
class Problem:
    family: str
    numbers: tuple[Value, ...]  # every number drawn, in the order drawn
    question: str
    answer: str  # as text: one step a line, each with its mark, then `#### result`
    reply: str  # in a chat: the calculations alone
    result: Value

    @property
    def is_heldout(self) -> bool:
        """A function of the family and its numbers, never of the wording."""
        key = f"{self.family}:{','.join(map(str, self.numbers))}"
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") % _NUM_BUCKETS == 0


@dataclass
class Family:
    name: str
    words: dict[str, str]  # by letter: a range of numbers, or the name of a list
    questions: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def _read(path: Path) -> tuple[dict[str, list[str]], dict[str, Family]]:
    lists: dict[str, list[str]] = {}
    families: dict[str, Family] = {}
    for line in path.read_text().splitlines():
        if line.startswith("@"):
            name, _, entries = line[1:].partition(": ")
            lists[name] = entries.split(", ")
        elif re.match(r"[a-z_]+:", line):
            name, _, words = line.partition(":")
            family = families[name] = Family(name, dict(word.split("=", 1) for word in words.split()))
        elif line.startswith("? "):
            family.questions.append(line[2:])
        elif line and not line.startswith("#"):
            family.steps.append(line)
    return lists, families


_LISTS, FAMILIES = _read(Path(__file__).with_name("families.txt"))
_NAMES = tuple(FAMILIES)


def plural(entry: str) -> str:
    one, _, many = entry.partition("/")
    if many:
        return many
    if one.endswith(("s", "x", "ch", "sh", "z")):
        return one + "es"
    return one[:-1] + "ies" if one.endswith("y") and one[-2] not in "aeiou" else one + "s"


def made_up(rng: random.Random) -> str:
    """A name that has to be copied, as nobody has it."""
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3))).capitalize()


def choose(rng: random.Random, text: str) -> str:
    """Replaces each `[this|that]`, the inner ones first."""
    while "[" in text:
        text = _CHOICE.sub(lambda match: rng.choice(match[1].split("|")), text)
    return text


class _Story:
    """The draws of one problem."""

    def __init__(self, family: Family, rng: random.Random) -> None:
        self._family, self._rng = family, rng
        self.values: dict[str, Value] = {}
        self.numbers: list[Value] = []
        self.lines: list[Line] = []
        self._words: dict[str, str] = {}  # entries of lists by letter
        self._people: dict[str, tuple[str, tuple[str, str, str]]] = {}
        for letter, kind in family.words.items():
            if kind in _LISTS:
                self._words[letter] = rng.choice([w for w in _LISTS[kind] if w not in self._words.values()])
            else:
                self.values[letter] = self._number(kind)
                self.numbers.append(self.values[letter])

    def _number(self, kind: str) -> Value:
        if kind == "percent":
            return self._rng.choice(_PERCENTAGES)
        money, low, high, step, factor = _RANGE.fullmatch(kind).groups()
        value: Value = self._rng.randrange(int(low), int(high) + 1, int(step or 1))
        if self._rng.random() < 0.3 and not step and int(high) > 3 * int(low):  # small numbers stay frequent
            value = self._rng.randint(int(low), 3 * int(low))
        if money:
            value = simplest(value + Fraction(self._rng.choice(_CENTS), 100))
        return value * (self.values[factor] if factor in self.values else int(factor)) if factor else value

    def question(self) -> str:
        text = choose(self._rng, self._rng.choice(self._family.questions))
        text = _SLOT.sub(lambda match: self._slot(match, spell=True), text)
        return re.sub(r" (?=[ ?.,])", "", text)

    def step(self, text: str) -> list[str]:
        """The step, after the lines that lead to its result."""
        first = len(self.lines)
        text = _SLOT.sub(lambda match: self._slot(match, spell=False), text)
        return [*(line.marked() for line in self.lines[first:-1]), text[:1].upper() + text[1:]]

    def _slot(self, match: re.Match[str], spell: bool) -> str:
        name, is_result, expression = match[1].partition("=")
        if is_result:
            return self._stated(name, expression) if spell else self._calculated(name, expression)
        name, _, form = re.fullmatch(r"(\w+)([.:]?)(\w*)", name).groups()
        if name in self.values:
            return self._shown(match, self.values[name], form, spell)
        if name in self._words:
            return self._words[name].partition("/")[0] if form == "one" else plural(self._words[name])
        if name in _LISTS:
            return self._rng.choice(_LISTS[name])
        return self._person(name, form)

    def _stated(self, name: str, expression: str) -> str:
        """A number of the question that follows from others, as a total does from its parts."""
        self.values[name] = eval(expression, {"__builtins__": {}}, dict(self.values))  # noqa: S307  The table is ours.
        return show(self.values[name])

    def _calculated(self, name: str, expression: str) -> str:
        first, *rest = _TOKEN.findall(expression)
        operands = [self._value(operand) for operand in rest[1::2]]
        worked = chain(self._value(first), list(zip(rest[::2], operands, strict=True)))
        is_money = name.startswith("$")
        require(worked.value >= 1 and places_of_at_most(worked.value, 2 if is_money else 0))
        self.values[name.lstrip("$")] = worked.value
        self.lines += worked.lines
        return worked.lines[-1].marked("$" if is_money else "")

    def _value(self, name: str) -> Value:
        return int(name) if name.isdigit() else self.values[name]

    def _shown(self, match: re.Match[str], value: Value, form: str, spell: bool) -> str:
        if form:
            text = (_TIMES if form.lower() == "times" else _PARTS)[int(value)]
            return text.capitalize() if form[0].isupper() else text
        text = match.string
        before, after = text[: match.start()][-1:], text[match.end():][:2]
        if spell and isinstance(value, int) and 1 < value <= 12 and before != "$" and re.fullmatch(" [a-z]", after):
            return in_words(value) if self._rng.random() < 0.15 else show(value)
        if before == "$" and not isinstance(value, int):
            return f"{float(value):.2f}"
        return show(value)

    def _person(self, letter: str, form: str) -> str:
        while letter not in self._people:
            is_she = self._rng.random() < 0.5
            name = made_up(self._rng) if self._rng.random() < 0.2 else self._rng.choice(_WOMEN if is_she else _MEN)
            if all(name != other for other, _ in self._people.values()):
                self._people[letter] = name, ("she", "her", "her") if is_she else ("he", "his", "him")
        name, pronouns = self._people[letter]
        if not form:
            return name
        text = dict(zip(("they", "their", "them"), pronouns))[form.lower()]
        return text.capitalize() if form[0].isupper() else text


def places_of_at_most(value: Value, places: int) -> bool:
    return isinstance(value, int) or Fraction(value * 10**places).denominator == 1


def make_problem(name: str, rng: random.Random) -> Problem:
    """One problem of the named family. Draws again until the numbers make sense."""
    while True:
        try:
            story = _Story(FAMILIES[name], rng)
            question = story.question()
            question = question[:1].upper() + question[1:]
            text = [line for step in FAMILIES[name].steps for line in story.step(step)]
        except Reject:
            continue
        result = story.values["r"]
        reply = "\n".join(map(str, story.lines))
        return Problem(name, tuple(story.numbers), question, "\n".join([*text, f"#### {show(result)}"]), reply, result)


def draw_problem(rng: random.Random, *, heldout: bool = False, name: str | None = None) -> Problem:
    """A problem of the named family, or of any, each equally likely; held out, or never so.

    Rejected where a small family has, as it seems, no held-out problem.
    """
    for _ in range(_MAX_DRAWS):
        problem = make_problem(name or rng.choice(_NAMES), rng)
        if problem.is_heldout == heldout:
            return problem
    raise Reject
