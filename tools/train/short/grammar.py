"""Patterns with alternatives: `[What is|How much is] {a} plus {b}[?|]` stands for every combination.

Brackets with a `#` go together: in `[#cats|dogs] and how many [#paws|tails]`, cats have paws and dogs have tails. Where
that is needed more than once, a digit does the same: `{a} [1:km|miles] a [2:day|week], how many [1] in {c} [2:days|weeks]`,
in which `[1]` repeats the words that were chosen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Linked:
    """Alternatives of which the same place is taken everywhere in a pattern."""

    key: str
    alternatives: tuple[_Sequence, ...]


_Part = str | tuple["_Sequence", ...] | _Linked  # literal text, or alternatives
_Sequence = tuple[_Part, ...]


class Pattern:
    """Brackets hold alternatives and nest; `{name}` is a slot."""

    def __init__(self, text: str) -> None:
        links: dict[str, tuple[_Sequence, ...]] = {}
        (self._parts,), rest = _alternatives(text, 0, links)
        assert rest == len(text), f"[short] unbalanced brackets in {text!r}"
        self.num_forms = _count(self._parts, set())

    def expand(self, rng: random.Random, **slots: object) -> str:
        pieces: list[str] = []
        _expand(self._parts, rng, pieces, {})
        text = "".join(pieces)
        return text.format_map(slots) if "{" in text else text


class Patterns:
    """Several patterns, each equally likely: one a line of the text."""

    def __init__(self, text: str) -> None:
        self._patterns = [Pattern(line) for line in map(str.strip, text.splitlines()) if line]
        self.num_forms = sum(p.num_forms for p in self._patterns)

    def expand(self, rng: random.Random, **slots: object) -> str:
        return rng.choice(self._patterns).expand(rng, **slots)


def _alternatives(text: str, position: int, links: dict[str, tuple[_Sequence, ...]]) -> tuple[tuple[_Sequence, ...], int]:
    """Parses up to the closing bracket or the end."""
    found: list[_Sequence] = []
    parts: list[_Part] = []
    literal_from = position
    is_nested = position > 0
    while position < len(text) and text[position] != "]":
        if text[position] == "[":
            parts.append(text[literal_from:position])
            part, position = _bracket(text, position + 1, links)
            parts.append(part)
            literal_from = position
        elif text[position] == "|" and is_nested:
            found.append((*parts, text[literal_from:position]))
            parts = []
            position = literal_from = position + 1
        else:
            position += 1
    found.append((*parts, text[literal_from:position]))
    return tuple(found), position


def _bracket(text: str, position: int, links: dict[str, tuple[_Sequence, ...]]) -> tuple[_Part, int]:
    """What follows an opening bracket, and where to go on after its closing one."""
    key, after = text[position:position + 1], text[position + 1:position + 2]
    if key == "#":
        inner, closing = _alternatives(text, position + 1, links)
        return _Linked(key, inner), closing + 1
    if not (key.isdigit() and after and after in ":]"):
        inner, closing = _alternatives(text, position, links)
        return inner, closing + 1
    if after == "]":
        return _Linked(key, links[key]), position + 2
    inner, closing = _alternatives(text, position + 2, links)
    assert len(links.setdefault(key, inner)) == len(inner), f"[short] alternatives that do not go together in {text!r}"
    return _Linked(key, inner), closing + 1


def _expand(parts: _Sequence, rng: random.Random, pieces: list[str], taken: dict[str, float]) -> None:
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, tuple):
            _expand(part[int(rng.random() * len(part))], rng, pieces, taken)
        else:
            if part.key not in taken:
                taken[part.key] = rng.random()
            _expand(part.alternatives[int(taken[part.key] * len(part.alternatives))], rng, pieces, taken)


def _count(parts: Sequence[_Part], seen: set[str]) -> int:
    total = 1
    for part in parts:
        if isinstance(part, str) or isinstance(part, _Linked) and part.key in seen:
            continue
        if isinstance(part, _Linked):
            seen.add(part.key)
        alternatives = part.alternatives if isinstance(part, _Linked) else part
        total *= sum(_count(alternative, seen) for alternative in alternatives)
    return total
