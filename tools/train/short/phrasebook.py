"""Wordings as plain text: what people ask, line by line, with the calculation that each section stands for.

    # a - b | a=2-99 b=1-a
    how much [more|bigger] is {a} than {b}?

A header has the calculation, the numbers in the order drawn, and flags. A number is `2-99` (a range, whose ends may
be earlier numbers), `2,5,10` (a choice), `$1-20` (a price), `.1-9` (one decimal) or `=b*c` (computed). Flags: `neg`
allows a negative result, `dec` one that is not whole, `years` has all numbers in plain digits, `unit=km` is said after
the result, and with `from=m` the last line converts `a`: `3 km = 3000 m`. A calculation of several steps names its
results: `d = a * b; d - d / 3`. Of whole things, a step may be `a // b` (so many can be had), `ceil(a / b)` (so many
are needed) or `a % b` (left over).

A line `& {x} has {a} {t} ; {x} eats {b} ; how many are left ; the rest` has facts, the question and what it asks for,
of which `composing.py` makes a text. Any other line is a pattern of `grammar.py`. Slots are the numbers, `{as}` and
`{bs}` for "sevens" or "7s", and the people, things and times of `drawn_words`.
"""

from __future__ import annotations

import ast
import random
import re
from dataclasses import dataclass, field
from fractions import Fraction

from . import story_words as lexicon
from .arithmetic import Worked, apply, remainder
from .composing import compose
from .expressions import Tree, evaluate
from .grammar import Pattern
from .names import PLACES
from .numbers import Hand, Value, decimal, dollars, in_words, require, show
from .question import Short
from .things import person, plural

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_AT_NUMBER = re.compile(r"[-$€£+^/(]\{[a-i]\}|\{[a-i]\}([A-Za-z°€£)%^/-]|\[-)")
_DRAW = re.compile(r"([a-z])=(\S+)")


@dataclass
class Section:
    """One calculation and its wordings."""

    steps: list[tuple[str, ast.expr]]  # a name for the result, empty for the last
    draws: list[tuple[str, str]]
    flags: set[str]
    unit: str = ""
    unit_before: str = ""
    patterns: list[Pattern] = field(default_factory=list)
    needs_digits: bool = False  # a sign or an ending is written at a number
    header: str = ""


def parse(text: str) -> list[Section]:
    sections: list[Section] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("# "):
            calculation, draws, *rest = (part.strip() for part in line[2:].split("|"))
            flags = rest[0].split() if rest else []
            units = {key: value for key, _, value in (flag.partition("=") for flag in flags)}
            steps = [step.rpartition(" = ") for step in calculation.split("; ")]
            expressions = [(name.strip(), ast.parse(text.strip(), mode="eval").body) for name, _, text in steps]
            sections.append(Section(expressions, _DRAW.findall(draws), set(flags), units.get("unit", ""), units.get("from", ""), header=line))
        elif line:
            sections[-1].patterns.append(Pattern(line))
            sections[-1].needs_digits |= bool(_AT_NUMBER.search(line))
    return sections


class Phrasebook:
    """A section is drawn as often as it has wordings, up to a bound."""

    def __init__(self, text: str) -> None:
        self._sections = parse(text)
        self._weights = [min(len(section.patterns), 24) for section in self._sections]

    @property
    def sections(self) -> list[Section]:
        return self._sections

    def draw(self, rng: random.Random) -> Short:
        return self.draw_from(rng.choices(self._sections, self._weights)[0], rng)

    @staticmethod
    def draw_from(section: Section, rng: random.Random) -> Short:
        values: dict[str, Value] = {}
        for name, spec in section.draws:
            values[name] = _drawn(rng, spec, values)
            require(values[name] >= 0)
        slots: dict[str, object] = {f"{name}s": _plural(rng, values[name]) for name in ("a", "b") if name in values}
        drawn = dict(values)
        worked = Worked((), 0)
        for name, expression in section.steps:
            step = (_of_whole_things(expression, values, is_last=not name)
                    or evaluate(_tree(expression, values), top=not name, limit=100_000_000))  # Only the last may be rounded.
            worked = Worked(worked.lines + step.lines, step.value)
            values[name] = step.value
        require(worked.value >= 0 or "neg" in section.flags)
        require(Fraction(worked.value).denominator == 1 or "dec" in section.flags)
        write = show if section.needs_digits or "years" in section.flags else Hand(rng).write
        slots |= {name: write(value) for name, value in drawn.items()}
        slots |= {name: dollars(values[name]) for name, spec in section.draws if spec.startswith("$")}
        words = drawn_words(rng)
        question = " ".join(rng.choice(section.patterns).expand(rng, **slots, **words).split())
        if question.startswith("& "):
            *facts, ask, noun = question[2:].split(" ; ")
            question = compose(rng, facts, ask, noun)
        question = question.replace(f". {words['x']}", f". {str(words['x'])[0].upper()}{str(words['x'])[1:]}")
        lines = worked.lines
        if section.unit_before:
            lines += (f"{show(values['a'])} {section.unit_before} = {show(worked.value)} {section.unit}",)
        elif section.unit:
            lines = (*lines[:-1], f"{lines[-1]} {section.unit}")
        return Short(question[0].upper() + question[1:], "\n".join(lines), show(worked.value), worked.value)


def _plural(rng: random.Random, value: Value) -> str:
    """`sevens`, `7s`."""
    if not isinstance(value, int) or not 0 < value < 100 or rng.random() < 0.3:
        return f"{show(value)}s"
    word = in_words(value)
    return word[:-1] + "ies" if word.endswith("y") else word + ("es" if word.endswith("x") else "s")


def _of_whole_things(node: ast.expr, values: dict[str, Value], is_last: bool) -> Worked | None:
    """A division of which the remainder counts."""
    rounds_up = isinstance(node, ast.Call)
    division = node.args[0] if isinstance(node, ast.Call) else node
    if not isinstance(division, ast.BinOp) or not (rounds_up or isinstance(division.op, ast.FloorDiv | ast.Mod)):
        return None
    a, b = _tree(division.left, values), _tree(division.right, values)
    require(isinstance(a, int) and isinstance(b, int))
    divided = remainder(a, b)
    if isinstance(division.op, ast.Mod):
        return divided
    if not divided.value:
        return apply("/", a, b)
    if rounds_up:
        return Worked((*divided.lines, f"{a // b} + 1 = {a // b + 1}"), a // b + 1)
    return Worked((*divided.lines, *((f"So it is {a // b}.",) if is_last else ())), a // b)


def _tree(node: ast.expr, values: dict[str, Value]) -> Tree:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)], _tree(node.left, values), _tree(node.right, values)
    if isinstance(node, ast.UnaryOp):
        return -_tree(node.operand, values)
    return _number(str(node.value)) if isinstance(node, ast.Constant) else values[node.id]


def _number(text: str) -> Value:
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def _drawn(rng: random.Random, spec: str, values: dict[str, Value]) -> Value:
    if spec.startswith("="):
        exact = {name: Fraction(value) for name, value in values.items()}
        value = Fraction(eval(spec[1:], {"__builtins__": {}}, exact))  # noqa: S307  The text is this package's own.
        return value.numerator if value.denominator == 1 else value
    if "," in spec or spec.isdigit():
        return int(rng.choice(spec.split(",")))
    kind = spec[0] if spec[0] in "$." else ""
    low, high = (int(values.get(end, 0)) if end.isalpha() else int(end) for end in spec[len(kind):].split("-"))
    require(low <= high)
    if kind == "$":
        value = rng.randint(low, high) + Fraction(rng.choice((0, 25, 50, 50, 75, 99, 20, 40, 80, 10, 5)), 100)
        return value.numerator if value.denominator == 1 else value
    if kind == ".":
        return decimal(rng, high, 1)
    span = min(high, low + rng.choice((12, 30, 100, 1000, 10_000)))
    return rng.randint(low, span)


def drawn_words(rng: random.Random) -> dict[str, object]:
    """People, places and things for one question."""
    thing = lexicon.thing(rng)
    x = lexicon.person(rng) if rng.random() < 0.75 else rng.choice(_ONE_ROLES)
    box, day = rng.choice(thing.containers), rng.randrange(7)
    unit = rng.choice(("day", "week", "hour", "minute", "month"))
    noun = thing.noun if rng.random() < 0.8 else plural(rng)
    return {"x": x.name, "y": person(rng), "z": person(rng), "he": x.subject, "him": x.object, "his": x.possessive,
            "He": x.subject.capitalize(), "t": noun, "u": lexicon.thing(rng).noun, "one": lexicon.singular(noun), "boxes": box,
            "box": lexicon.singular(box), "place": rng.choice(PLACES), "day": _DAYS[day], "day2": _DAYS[(day + 1) % 7],
            "day3": _DAYS[(day + 2) % 7], "unit": unit, "units": unit + "s", "kin": rng.choice(_KIN),
            "kids": rng.choice(_KIDS), "job": rng.choice(_JOBS)}


_ONE_ROLES = tuple(role for role in lexicon.ROLES if role.number == "s")
_KIN = ("sister brother mother father mom dad aunt uncle cousin friend neighbor boss grandmother grandma grandpa wife husband "
        "son daughter niece nephew roommate teammate classmate buddy partner twin").split()
_KIDS = ("friends kids children cousins students players guests neighbors brothers sisters workers classmates teammates people "
         "campers scouts helpers volunteers visitors").split()
_JOBS = ("farmer baker teacher nurse driver painter plumber gardener tailor carpenter cook waiter clerk janitor mechanic "
         "florist grocer librarian coach butcher fisherman shopkeeper beekeeper postman chef scientist collector").split()

