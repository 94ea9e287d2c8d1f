"""Patterns with alternatives: `[What is|How much is] {a} plus {b}[?|]` stands for every combination."""

from __future__ import annotations

import random
from collections.abc import Sequence

_Part = str | tuple["_Sequence", ...]  # literal text, or alternatives
_Sequence = tuple[_Part, ...]


class Pattern:
    """Brackets hold alternatives and nest; `{name}` is a slot."""

    def __init__(self, text: str) -> None:
        (self._parts,), rest = _alternatives(text, 0)
        assert rest == len(text), f"[short] unbalanced brackets in {text!r}"
        self.num_forms = _count(self._parts)

    def expand(self, rng: random.Random, **slots: object) -> str:
        pieces: list[str] = []
        _expand(self._parts, rng, pieces)
        text = "".join(pieces)
        return text.format_map(slots) if "{" in text else text


class Patterns:
    """Several patterns, each equally likely: one a line of the text."""

    def __init__(self, text: str) -> None:
        self._patterns = [Pattern(line) for line in map(str.strip, text.splitlines()) if line]
        self.num_forms = sum(p.num_forms for p in self._patterns)

    def expand(self, rng: random.Random, **slots: object) -> str:
        return rng.choice(self._patterns).expand(rng, **slots)


def _alternatives(text: str, position: int) -> tuple[tuple[_Sequence, ...], int]:
    """Parses up to the closing bracket or the end."""
    found: list[_Sequence] = []
    parts: list[_Part] = []
    literal_from = position
    is_nested = position > 0
    while position < len(text) and text[position] != "]":
        if text[position] == "[":
            parts.append(text[literal_from:position])
            inner, closing = _alternatives(text, position + 1)
            parts.append(inner)
            position = literal_from = closing + 1
        elif text[position] == "|" and is_nested:
            found.append((*parts, text[literal_from:position]))
            parts = []
            position = literal_from = position + 1
        else:
            position += 1
    found.append((*parts, text[literal_from:position]))
    return tuple(found), position


def _expand(parts: _Sequence, rng: random.Random, pieces: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        else:
            _expand(part[int(rng.random() * len(part))], rng, pieces)


def _count(parts: Sequence[_Part]) -> int:
    total = 1
    for part in parts:
        if not isinstance(part, str):
            total *= sum(_count(alternative) for alternative in part)
    return total
