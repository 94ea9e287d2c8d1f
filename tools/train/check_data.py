"""Checks the generators: every calculation is right, the committed problems are those of their split.

With `--write` it writes heldout.jsonl and shots.jsonl, in GSM8K's format: {"question", "answer"} a line. Needs no
package; with `--tokenizer` also the package tokenizers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from fractions import Fraction
from pathlib import Path

from arithmetic import Reject
from documents import Mix, document
from evaluate import SETS, read_jsonl
from problems import FAMILIES, Problem, draw_problem
from questions import draw_question

_SEED = 2
_MARK = re.compile(r"([\d.()+*/ -]+) = \$?<<([\d.()+*/-]+)=(-?[\d.]+)>>(-?\d+(?:\.\d+)?)")
_EQUATION = re.compile(r"(-?[\d.()][\d.()+*/ -]*) = (-?[\d.]+)")


def value(expression: str) -> Fraction:
    """From left to right, as the generators calculate; a product and a sum never share a line."""
    first, *rest = re.findall(r"\(-[\d.]+\)|^-[\d.]+|[\d.]+|[+*/-]", expression.replace(" ", ""))
    total = Fraction(first.strip("()"))
    for operator, text in zip(rest[::2], rest[1::2], strict=True):
        operand = Fraction(text.strip("()"))
        total = {"+": total + operand, "-": total - operand, "*": total * operand,
                 "/": total / operand if operand else total}[operator]
    return total


def check_problem(problem: Problem) -> None:
    *lines, last = problem.answer.split("\n")
    results = []
    for line in lines:
        (shown, marked, result, repeated), = _MARK.findall(line)
        assert shown.replace(" ", "") == marked and value(marked) == Fraction(result) == Fraction(repeated), line
        results.append(result)
    assert last == f"#### {results[-1]}" and Fraction(results[-1]) == problem.result, problem
    assert problem.reply.rpartition(" = ")[2] == results[-1], problem
    check_equations(problem.reply, problem.question)
    assert not re.search(r"[{}\[\]]|  | \?|Question", problem.question + problem.answer), problem


def check_equations(reply: str, question: str) -> int:
    found = [_EQUATION.fullmatch(line) for line in reply.split("\n")]
    equations = [match for match in found if match]
    assert all(value(match[1]) == Fraction(match[2]) for match in equations), (question, reply)
    return len(equations)


def sample_split(*, heldout: bool, count: int) -> list[Problem]:
    """Distinct problems, all families in turn, in random order; always the same ones."""
    rng = random.Random(f"{heldout}/{_SEED}")
    problems: dict[tuple[str, tuple[object, ...]], Problem] = {}
    while len(problems) < count:
        for name in rng.sample(list(FAMILIES), len(FAMILIES)):
            try:
                problem = draw_problem(rng, heldout=heldout, name=name)
            except Reject:
                continue
            problems.setdefault((name, problem.numbers), problem)
    return list(problems.values())[:count]


def split_files() -> dict[str, list[dict[str, str]]]:
    chosen = {"heldout.jsonl": sample_split(heldout=True, count=500), "shots.jsonl": sample_split(heldout=False, count=64)}
    return {name: [{"question": p.question, "answer": p.answer} for p in problems] for name, problems in chosen.items()}


def check_tokenizer(path: Path, num_documents: int) -> None:
    """Segments join cleanly and decode exactly."""
    from tokenizers import Tokenizer

    tokenizer, rng, num_tokens = Tokenizer.from_file(str(path)), random.Random(6), 0
    for _ in range(num_documents):
        parts = [segment.text for segment in document(Mix(0.2, 0.5, 0.2, 8), rng)]
        joined = tokenizer.encode("".join(parts), add_special_tokens=False).ids
        assert joined == [i for part in parts for i in tokenizer.encode(part, add_special_tokens=False).ids], parts
        assert tokenizer.decode(joined, skip_special_tokens=False) == "".join(parts), parts
        num_tokens += len(joined)
    print(f"{num_documents} documents of {num_tokens / num_documents:.0f} tokens each join and decode exactly")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="DIR", help="write heldout.jsonl and shots.jsonl there")
    parser.add_argument("--per-family", type=int, default=50, help="problems to check of each family")
    parser.add_argument("--questions", type=int, default=5000, help="short questions to check")
    parser.add_argument("--tokenizer", type=Path, help="the model's tokenizer.json")
    args = parser.parse_args()

    rng = random.Random(4)
    for name in FAMILIES:
        for _ in range(args.per_family):
            check_problem(draw_problem(rng, name=name))
    print(f"{args.per_family} problems of each of {len(FAMILIES)} families are right")
    drawn = [draw_question(rng) for _ in range(args.questions)]
    num_equations = sum(check_equations(question.reply, question.text) for question in drawn)
    print(f"{len(drawn)} short questions: {num_equations} equations are right")
    files = split_files()
    if args.write:
        for name, rows in files.items():
            (args.write / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        assert all(read_jsonl(SETS / name) == rows for name, rows in files.items()), "run check_data.py --write"
    if args.tokenizer:
        check_tokenizer(args.tokenizer, 2000)


if __name__ == "__main__":
    main()
