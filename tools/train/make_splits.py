"""Writes heldout.jsonl and shots.jsonl, in GSM8K's format: {"question", "answer"} a line."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from problems import FAMILIES, Problem, draw_problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the model's folder")
    parser.add_argument("--num-heldout", type=int, default=500)
    parser.add_argument("--num-shots", type=int, default=64)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    _write(args.output / "heldout.jsonl", _sample("heldout", args.num_heldout, args.seed))
    _write(args.output / "shots.jsonl", _sample("train", args.num_shots, args.seed))


def _sample(split: str, count: int, seed: int) -> list[Problem]:
    """Distinct problems, all families in turn, in random order."""
    rng = random.Random(f"{split}/{seed}")
    names: list[str] = []
    while len(names) < count:
        names += rng.sample(list(FAMILIES), len(FAMILIES))
    seen: set[tuple[str, tuple[int, ...]]] = set()
    problems: list[Problem] = []
    for name in names[:count]:
        problem = draw_problem(split, rng, name)
        while (name, problem.numbers) in seen:
            problem = draw_problem(split, rng, name)
        seen.add((name, problem.numbers))
        problems.append(problem)
    return problems


def _write(path: Path, problems: list[Problem]) -> None:
    lines = [json.dumps({"question": p.question, "answer": p.answer}) for p in problems]
    path.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} problems in {path}")


if __name__ == "__main__":
    main()
