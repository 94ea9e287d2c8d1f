"""Writes heldout.jsonl and shots.jsonl, in GSM8K's format: {"question", "answer"} a line."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from problems import FAMILIES, NoProblem, Problem, draw_problem
from problems.problem import Number

_SEED = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the model's folder")
    parser.add_argument("--num-heldout", type=int, default=500)
    parser.add_argument("--num-shots", type=int, default=64)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    _write(args.output / "heldout.jsonl", sample_split("heldout", args.num_heldout))
    _write(args.output / "shots.jsonl", sample_split("train", args.num_shots))


def sample_split(split: str, count: int) -> list[Problem]:
    """Distinct problems, all families in turn, in random order; always the same ones."""
    rng = random.Random(f"{split}/{_SEED}")
    names: list[str] = []
    while len(names) < count:
        names += rng.sample(list(FAMILIES), len(FAMILIES))
    seen: set[tuple[str, tuple[Number, ...]]] = set()
    problems: list[Problem] = []
    for name in names[:count]:
        problem = _unseen(split, rng, name, seen)
        seen.add((problem.family, problem.numbers))
        problems.append(problem)
    return problems


def _unseen(split: str, rng: random.Random, name: str, seen: set[tuple[str, tuple[Number, ...]]]) -> Problem:
    """A problem of the named family; of any other if it has no new one in the split."""
    while True:
        try:
            for _ in range(100):
                problem = draw_problem(split, rng, name)
                if (name, problem.numbers) not in seen:
                    return problem
        except NoProblem:
            pass
        name = rng.choice(list(FAMILIES))


def _write(path: Path, problems: list[Problem]) -> None:
    lines = [json.dumps({"question": p.question, "answer": p.answer}) for p in problems]
    path.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} problems in {path}")


if __name__ == "__main__":
    main()
