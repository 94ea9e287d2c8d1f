"""Which split a problem belongs to: a pure function of its family and its numbers."""

from __future__ import annotations

import random

from .problem import FAMILIES, Problem, make_problem

SPLITS = ("train", "validation", "heldout")
_MAX_DRAWS = 3000
_NUM_BUCKETS = 50  # one bucket each for validation and held-out: 2 % of the number combinations


def split_of(problem: Problem) -> str:
    return {0: "heldout", 1: "validation"}.get(problem.bucket(_NUM_BUCKETS), "train")


class NoProblem(LookupError):
    """The family has too few combinations of numbers to have a problem in the split."""


def draw_problem(split: str, rng: random.Random, name: str | None = None) -> Problem:
    """A problem of one split; of the named family, or of any, each equally likely."""
    chosen = name or rng.choice(_NAMES)
    for _ in range(_MAX_DRAWS):
        problem = make_problem(chosen, rng)
        if split_of(problem) == split:
            return problem
    raise NoProblem(f"[problems] no problem of family {chosen} in split {split} after {_MAX_DRAWS} draws")


_NAMES = tuple(FAMILIES)
