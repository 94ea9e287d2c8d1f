"""Checks the generator and the committed data files; prints the figures that the data card quotes."""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from tokenizers import Tokenizer

from documents import Mix, sample_document
from make_splits import sample_split
from problems import FAMILIES, SPLITS, Problem, draw_problem, split_of
from problems.problem import shortest

_NUMBER = r"\d+(?:\.\d{1,2})?"
_MARK = re.compile(rf"([\d. +*/-]+) = \$?<<([\d.+*/-]+)=({_NUMBER})>>({_NUMBER})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the model's folder")
    parser.add_argument("--per-family", type=int, default=100, help="problems to check of each family and split")
    parser.add_argument("--train-problems", type=int, default=1_000_000, help="drawn to look for held-out ones among them")
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    check_answers(rng, args.per_family)
    heldout = check_files(args.model)
    check_disjoint(rng, heldout, args.train_problems)
    check_tokenizer(rng, Tokenizer.from_file(str(args.model / "tokenizer.json")))


def check_answers(rng: random.Random, per_family: int) -> None:
    num_steps: Counter[int] = Counter()
    largest = Fraction(0)
    for split in SPLITS:
        for name in FAMILIES:
            for _ in range(per_family):
                problem = draw_problem(split, rng, name)
                results = checked_marks(problem)
                num_steps[len(results)] += 1
                largest = max(largest, *results)
    total = sum(num_steps.values())
    print(f"{total} problems of {len(FAMILIES)} families: every calculator mark is right")
    print("steps a problem:", ", ".join(f"{n}: {c / total:.1%}" for n, c in sorted(num_steps.items())))
    print(f"largest number in a step: {largest}")


def checked_marks(problem: Problem) -> list[Fraction]:
    """The results of all marks, each recomputed from its text; the last one must be the answer."""
    *lines, last = problem.answer.split("\n")
    results = []
    for line in lines:
        marks = _MARK.findall(line)
        assert len(marks) == 1 and line.count("<<") == 1, (problem.family, line)
        shown, marked, result, repeated = marks[0]
        assert shown.replace(" ", "") == marked, (problem.family, line)
        assert evaluate(marked) == Fraction(result) == Fraction(repeated), (problem.family, line)
        results.append(Fraction(result))
    assert last == f"#### {shortest(problem.result)}" and results[-1] == problem.result, (problem.family, last)
    assert "Question" not in problem.question + problem.answer, problem.family  # it is a stop string
    return results


def evaluate(expression: str) -> Fraction:
    """`* /` before `+ -`, each from the left: independent of how the generator computes."""
    total = Fraction(0)
    for sign, product in re.findall(r"([+-]?)([\d.*/]+)", expression):
        value = Fraction(1)
        for operator, number in re.findall(r"([*/]?)([\d.]+)", product):
            value = value / Fraction(number) if operator == "/" else value * Fraction(number)
        total += -value if sign == "-" else value
    return total


def check_files(model: Path) -> list[Problem]:
    """The committed files are what `make_splits.py` writes, and every problem is of its split."""
    for file, split in (("shots.jsonl", "train"), ("heldout.jsonl", "heldout")):
        rows = [json.loads(line) for line in (model / file).read_text().splitlines()]
        problems = sample_split(split, len(rows))
        assert rows == [{"question": p.question, "answer": p.answer} for p in problems], file
        assert {split_of(p) for p in problems} == {split}, file
        num_families = len({p.family for p in problems})
        print(f"{file}: {len(problems)} problems of {num_families} families, all of split {split}")
    return problems


def check_disjoint(rng: random.Random, heldout: list[Problem], num_train: int) -> None:
    questions = {p.question for p in heldout}
    keys = {(p.family, p.numbers) for p in heldout}
    distinct = set()
    for _ in range(num_train):
        problem = draw_problem("train", rng)
        assert problem.question not in questions, problem
        assert (problem.family, problem.numbers) not in keys, problem
        distinct.add(hash(problem.question))
    print(f"{num_train} training problems, {len(distinct)} of them distinct: none is held out")


def check_tokenizer(rng: random.Random, tokenizer: Tokenizer, num_documents: int = 5000) -> None:
    mix = Mix(plain=0.3, chat=0.4, max_shots=8)
    num_tokens = num_bytes = 0
    for _ in range(num_documents):
        parts = [segment.text for segment in sample_document(rng, mix)]
        joined = tokenizer.encode("".join(parts), add_special_tokens=False).ids
        separate = [i for part in parts for i in tokenizer.encode(part, add_special_tokens=False).ids]
        assert joined == separate, parts
        assert tokenizer.decode(joined, skip_special_tokens=False) == "".join(parts), parts
        num_tokens += len(joined)
        num_bytes += len("".join(parts).encode())
    print(f"{num_documents} documents: segments join cleanly and decode exactly; "
          f"{num_bytes / num_tokens:.2f} bytes a token")


if __name__ == "__main__":
    main()
