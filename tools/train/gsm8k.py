"""GSM8K's training split as it is, and the same problems with other names and other numbers."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from problems import words

_MARK = re.compile(r"<<([\d.+*/() -]+)=([\d.]+)>>([\d.,]+)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)")
_NAMES = sorted({name for _, name in words.PEOPLE})
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,9}\b|^[A-Z][a-z]{2,9}\b")
_BY_PRONOUN = [[name for (they, *_), name in words.PEOPLE if they == pronoun] for pronoun in ("she", "he")]


@dataclass(frozen=True)
class Row:
    question: str
    answer: str
    names: tuple[str, ...]  # people whose names may be exchanged


class Gsm8k:
    def __init__(self, path: Path) -> None:
        self._rows = [_row(json.loads(line)) for line in path.read_text().splitlines()]

    def __len__(self) -> int:
        return len(self._rows)

    def sample(self, rng: random.Random, renumbered_share: float = 0.35) -> tuple[str, str]:
        row = rng.choice(self._rows)
        question, answer = row.question, row.answer
        if row.names and rng.random() < 0.6:
            question, answer = _renamed(row, rng)
        if rng.random() < renumbered_share:
            return renumbered(question, answer, rng) or (question, answer)
        return question, answer


def _row(record: dict[str, str]) -> Row:
    question, answer = record["question"].strip(), record["answer"].strip()
    known = set(_NAMES)
    names = tuple(sorted({w for w in _CAPITAL.findall(question) if w in known}))
    return Row(question, answer, names)


def _renamed(row: Row, rng: random.Random) -> tuple[str, str]:
    """Every known name becomes one of the same pronoun."""
    taken: set[str] = set(row.names)
    question, answer = row.question, row.answer
    for name in row.names:
        options = next((names for names in _BY_PRONOUN if name in names), _NAMES)
        new = rng.choice(options)
        if new in taken:
            continue
        taken.add(new)
        pattern = re.compile(rf"\b{name}\b")
        question, answer = pattern.sub(new, question), pattern.sub(new, answer)
    return question, answer


def renumbered(question: str, answer: str, rng: random.Random) -> tuple[str, str] | None:
    """One number of the question is changed and every mark recomputed; None if that is not safe.

    It is safe if the number stands once in the question, if every mark's operands are numbers of the
    question, earlier results or constants that do not equal the changed number, and if all results
    stay whole and positive where they were so.
    """
    candidates = [n for n in _NUMBER.findall(question) if 2 <= len(set(_NUMBER.findall(question))) and "." not in n]
    if not candidates:
        return None
    old = rng.choice(candidates)
    if candidates.count(old) != 1 or int(old) < 3 or int(old) in (7, 12, 24, 30, 52, 60, 100, 365):
        return None
    if f"{old}%" in question or f"{old} percent" in question or not _is_operand(old, answer):
        return None
    new = str(rng.randint(max(2, int(old) // 2), int(old) * 2))
    in_question = set(_NUMBER.findall(question))
    if any(result in in_question for _, result, _ in _MARK.findall(answer)):
        return None
    replaced = {old: new}
    lines = []
    for line in answer.split("\n")[:-1]:
        changed = _renumbered_line(line, replaced)
        if changed is None:
            return None
        lines.append(changed)
    last = answer.split("\n")[-1].removeprefix("#### ").replace(",", "")
    if last not in replaced:
        return None
    pattern = re.compile(rf"(?<![\w.]){old}(?![\w.]*\d)")
    return pattern.sub(new, question), "\n".join([*lines, f"#### {replaced[last]}"])


def _is_operand(number: str, answer: str) -> bool:
    return any(number in re.findall(r"[\d.]+", expression) for expression, _, _ in _MARK.findall(answer))


def _renumbered_line(line: str, replaced: dict[str, str]) -> str | None:
    """The line with all its numbers mapped; a new result joins the map. One old number has one new one."""
    marks = _MARK.findall(line)
    if len(marks) != 1 or line.count("<<") != 1:
        return None
    expression, result, shown = marks[0]
    if not re.fullmatch(r"[\d.+*/-]+", expression) or shown.replace(",", "").rstrip(".") != result:
        return None
    new_expression = _mapped(expression, replaced)
    value, before = evaluated(new_expression), evaluated(expression)
    if value is None or before is None or before != Fraction(result) or value <= 0 or value.denominator != 1:
        return None
    if result in replaced and replaced[result] != str(value):
        return None
    head, tail = line[: line.index("<<")], line[line.index(">>") + 2 :]
    if not head.rstrip(" $").endswith("=") or _NUMBER.search(tail[len(shown):]):
        return None
    replaced[result] = str(value)
    new_head = _mapped(head, replaced)
    return f"{new_head}<<{new_expression}={value}>>{value}{'.' if shown.endswith('.') else ''}{tail[len(shown):]}"


def _mapped(text: str, replaced: dict[str, str]) -> str:
    return re.sub(r"\d+(?:\.\d+)?", lambda m: replaced.get(m.group(), m.group()), text)


def evaluated(expression: str) -> Fraction | None:
    """`* /` before `+ -`; None if it is no such expression."""
    total = Fraction(0)
    for sign, product in re.findall(r"([+-]?)([\d.*/]+)", expression):
        value = Fraction(1)
        for operator, number in re.findall(r"([*/]?)([\d.]+)", product):
            if number.count(".") > 1 or number in (".", "") or operator == "/" and not float(number):
                return None
            value = value / Fraction(number.strip(".")) if operator == "/" else value * Fraction(number.strip("."))
        total += -value if sign == "-" else value
    return total
