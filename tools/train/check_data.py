"""Checks the generators and the committed data files; writes the figures that the model card quotes.

Without `--model` only the generators are checked, which needs no package.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import bare
import quire_questions
import short
from documents import Mix, Source
from gsm8k import Gsm8k, evaluated
from make_splits import sample_split
from problems import FAMILIES, NoProblem, Problem, draw_problem, split_of
from problems.problem import shortest
from short.numbers import Reject
from short.phrasebook import Phrasebook, Section
from short.phrases import BOOKS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NUMBER = r"\d+(?:\.\d{1,2})?"
_MARK = re.compile(rf"([\d. +*/-]+) = \$?<<([\d.+*/-]+)=({_NUMBER})>>({_NUMBER})")


class Report:
    """Prints its lines and keeps them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, *parts: object) -> None:
        self.lines.append(" ".join(map(str, parts)))
        print(self.lines[-1], flush=True)


say = Report()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="the model's folder, whose files are checked too")
    parser.add_argument("--per-family", type=int, default=100, help="problems to check of each family and split")
    parser.add_argument("--train-problems", type=int, default=300_000, help="drawn to look for held-out ones among them")
    parser.add_argument("--short-questions", type=int, default=200_000, help="to check, and to count the distinct ones")
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's train.jsonl, to check what is made from it")
    parser.add_argument("--sets", type=Path, nargs="*", default=[],
                        help="JSONL files of evaluation questions; counts those that training may draw")
    parser.add_argument("--report", type=Path, help="write the figures to this file as well")
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    check_answers(rng, args.per_family)
    check_phrasebooks(rng)
    drawn = check_short(rng, args.short_questions)
    drawn |= check_quire(rng, args.short_questions // 10)
    for path in args.sets:
        check_unseen(path, drawn)
    if args.gsm8k:
        check_gsm8k(rng, Gsm8k(args.gsm8k), 20_000)
    if args.model:
        from tokenizers import Tokenizer

        check_disjoint(rng, check_files(args.model), args.train_problems)
        check_tokenizer(rng, Tokenizer.from_file(str(args.model / "tokenizer.json")))
    if args.report:
        args.report.write_text("".join(f"- {line}\n" for line in say.lines))


def check_answers(rng: random.Random, per_family: int) -> None:
    num_steps: Counter[int] = Counter()
    largest = Fraction(0)
    for split in ("train", "heldout"):
        for name in FAMILIES:
            for problem in _some_of(split, name, rng, per_family):
                results = checked_marks(problem)
                check_bare(problem)
                num_steps[len(results)] += 1
                largest = max(largest, *results)
    total = sum(num_steps.values())
    say(f"{total} problems of {len(FAMILIES)} families: every calculator mark is right")
    say("steps per problem:", ", ".join(f"{n}: {c / total:.1%}" for n, c in sorted(num_steps.items())))
    say(f"largest number in a step: {largest}")


def checked_marks(problem: Problem) -> list[Fraction]:
    """The results of all marks, each recomputed from its text; the last one must be the answer."""
    *lines, last = problem.answer.split("\n")
    results = []
    for line in lines:
        marks = _MARK.findall(line)
        assert len(marks) == 1 and line.count("<<") == 1, (problem.family, line)
        shown, marked, result, repeated = marks[0]
        assert shown.replace(" ", "") == marked, (problem.family, line)
        assert evaluated(marked) == Fraction(result) == Fraction(repeated), (problem.family, line)
        results.append(Fraction(result))
    assert last == f"#### {shortest(problem.result)}" and results[-1] == problem.result, (problem.family, last)
    assert "Question" not in problem.question + problem.answer, problem.family  # it is a stop string
    return results


def check_bare(problem: Problem) -> None:
    """The calculations of a chat's reply are right, and the last one has the answer."""
    reply = bare.as_marked(problem.answer)
    drawn = short.Short(problem.question, reply, shortest(problem.result))
    assert all(_checked_equation(line, drawn) for line in reply.split("\n")), drawn
    assert Fraction(reply.rpartition("= ")[2]) == problem.result, drawn


def _some_of(split: str, name: str, rng: random.Random, count: int) -> list[Problem]:
    """None if the family is too small to have any in the split."""
    try:
        return [draw_problem(split, rng, name) for _ in range(count)]
    except NoProblem as error:
        say(error)
        return []


_EQUATION = re.compile(r"-?[\d.()][\d.()+*/ -]*")
_LAST = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?(?:/\d+)?")


def check_phrasebooks(rng: random.Random) -> None:
    """Every calculation can be drawn: numbers that are always rejected would make a silent gap."""
    sections = [section for book in BOOKS for section in book.sections]
    for section in sections:
        assert any(_can_draw(section, rng) for _ in range(500)), section.header
    num_patterns = sum(len(section.patterns) for section in sections)
    num_forms = sum(pattern.num_forms for section in sections for pattern in section.patterns)
    say(f"{len(sections)} calculations in the phrasebooks, all of them drawn: {num_patterns} patterns, {num_forms} wordings")


def _can_draw(section: Section, rng: random.Random) -> bool:
    try:
        Phrasebook.draw_from(section, rng)
    except Reject:
        return False
    return True


def check_unseen(path: Path, drawn: set[str]) -> None:
    """Compared without case, spaces and marks. The questions are not printed, as they are not to be known here."""
    asked = {_plain(json.loads(line)["question"]) for line in path.read_text().splitlines()}
    num_seen = len(asked & drawn)
    say(f"{path.name}: {num_seen} of its {len(asked)} questions are among {len(drawn)} that were drawn for training")


def _plain(text: str) -> str:
    return re.sub(r"[^\w+*/%.-]", "", text.lower()).strip(".")


def check_short(rng: random.Random, count: int) -> set[str]:
    """Every equation of every reply is recomputed; the reply ends in the answer. The same seed draws the same again."""
    assert [short.draw_short(random.Random(i)) for i in range(100)] == [short.draw_short(random.Random(i)) for i in range(100)]
    questions: set[str] = set()
    longest = num_equations = 0
    for index in range(count):
        name = list(short.TOPICS)[index % len(short.TOPICS)]
        drawn = short.draw_short(rng, name=name)
        questions.add(drawn.question)
        longest = max(longest, len(drawn.reply))
        for line in drawn.reply.split("\n"):
            num_equations += _checked_equation(line, drawn)
        last_line = drawn.reply.split("\n")[-1]
        numbers = _LAST.findall(drawn.reply)
        is_number = _LAST.fullmatch(drawn.answer)
        assert drawn.answer in last_line or (is_number and Fraction(numbers[-1]) == Fraction(drawn.answer)), drawn
        assert not is_number or Fraction(numbers[-1]) == Fraction(drawn.answer), drawn
    say(f"{count} short questions of {len(short.TOPICS)} topics, {len(questions)} of them distinct: "
          f"{num_equations} equations are right; longest reply {longest} characters")
    return set(map(_plain, questions))


def _checked_equation(line: str, drawn: short.Short) -> bool:
    """`3 * 4 + 1 = 13`; a quotient may be rounded to two places. Other lines are left alone."""
    sides = [side.strip() for side in line.split(" = ")]
    if len(sides) < 2 or not all(_EQUATION.fullmatch(side) for side in sides) or not re.search(r"[+*/-] ", line):
        return False
    values = [_value(side) for side in sides]
    is_rounded = "/" in line and abs(values[-1] - values[0]) <= Fraction(1, 200)
    assert len(set(values)) == 1 or is_rounded, (line, drawn)
    return True


def _value(text: str) -> Fraction:
    """A tight `3/4` is one number; brackets enclose negative numbers only."""
    parts = text.replace("(", "").replace(")", "").split(" ")
    values, operators = [Fraction(part) for part in parts[::2]], parts[1::2]
    total, product, sign = Fraction(0), values[0], 1
    for operator, value in zip(operators, values[1:], strict=True):
        if operator == "*":
            product *= value
        elif operator == "/":
            product /= value
        else:
            total, product, sign = total + sign * product, value, 1 if operator == "+" else -1
    return total + sign * product


def check_quire(rng: random.Random, count: int) -> set[str]:
    turns = [turn for _ in range(count) for turn in quire_questions.sample(rng)]
    replies = {reply for _, reply in turns}
    assert all(user.strip() and reply.strip() for user, reply in turns)
    questions = {user for user, _ in turns}
    say(f"{len(turns)} turns about Quire, {len(questions)} distinct questions, {len(replies)} replies")
    return set(map(_plain, questions))


def check_gsm8k(rng: random.Random, gsm8k: Gsm8k, count: int) -> None:
    """Marks that can be recomputed are right wherever GSM8K's own are; the answer is the last number."""
    distinct, num_bare = set(), 0
    for _ in range(count):
        question, answer = gsm8k.sample(rng)
        distinct.add(question)
        assert "\n#### " in answer and answer.count("####") == 1, answer
        reply = bare.worked_out(answer)
        num_bare += reply is not None
        for line in (reply or "").split("\n"):
            _checked_equation(line, short.Short(question, reply or "", ""))
    say(f"{count} draws from GSM8K's {len(gsm8k)} training problems: {len(distinct)} distinct questions; "
        f"{num_bare / count:.1%} have calculations that can stand alone")


def check_files(model: Path) -> list[Problem]:
    """The committed files are what `make_splits.py` writes, and every problem is of its split."""
    for file, split in (("shots.jsonl", "train"), ("heldout.jsonl", "heldout")):
        rows = [json.loads(line) for line in (model / file).read_text().splitlines()]
        problems = sample_split(split, len(rows))
        assert rows == [{"question": p.question, "answer": p.answer} for p in problems], file
        assert {split_of(p) for p in problems} == {split}, file
        num_families = len({p.family for p in problems})
        say(f"{file}: {len(problems)} problems of {num_families} families, all of split {split}")
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
    say(f"{num_train} training problems, {len(distinct)} of them distinct: none is held out")


def check_tokenizer(rng: random.Random, tokenizer: Tokenizer, num_documents: int = 5000) -> None:
    source = Source(Mix(problem=0.2, chat=0.5, short_text=0.2, max_shots=8))
    num_tokens = num_bytes = 0
    for _ in range(num_documents):
        parts = [segment.text for segment in source.document(rng)]
        joined = tokenizer.encode("".join(parts), add_special_tokens=False).ids
        separate = [i for part in parts for i in tokenizer.encode(part, add_special_tokens=False).ids]
        assert joined == separate, parts
        assert tokenizer.decode(joined, skip_special_tokens=False) == "".join(parts), parts
        num_tokens += len(joined)
        num_bytes += len("".join(parts).encode())
    say(f"{num_documents} documents: segments join cleanly and decode exactly; "
          f"{num_bytes / num_tokens:.2f} bytes per token")


if __name__ == "__main__":
    main()
