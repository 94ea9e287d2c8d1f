"""The sets of questions that the embedded model is measured on, and which replies are right.

Word problems (held-out ones and GSM8K's test split) count by the last number of the answer, as in SGLang's
GSM8K benchmark. Short questions are asked in chat and have a list of accepted answers. Questions about
Quire have the parts of a right reply instead: each is a text that must occur, or a list of texts of which
one must.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import short

STOPS = ("Question", "Assistant:", "<|separator|>")
_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?(?:/\d+)?")


@dataclass(frozen=True)
class Task:
    """One set of questions, asked in one form."""

    name: str
    form: str  # 0-shot, 8-shot or chat
    rows: Callable[[], list[Row]]  # reads or generates them, which can take seconds


@dataclass(frozen=True)
class Row:
    question: str
    accepted: tuple[str, ...]
    must: tuple[tuple[str, ...], ...] = ()  # parts of a right reply, each with its alternative wordings
    kind: str = "all"
    reference: str = ""  # the whole answer, if there is one


def tasks(model: Path, sets: Path, gsm8k_test: Path | None) -> Iterator[Task]:
    for form in ("0-shot", "8-shot", "chat"):
        yield Task(f"heldout-{form}", form, partial(problem_rows, model / "heldout.jsonl"))
    yield Task("generated-short", "chat", generated_rows)
    for name in ("short_questions", "quire_questions"):
        path = sets / f"{name}.jsonl"
        if path.exists():
            yield Task(name, "chat", partial(accepted_rows, path))
        else:
            print(f"{path} does not exist; it is left out")
    if gsm8k_test:
        yield Task("gsm8k-test", "0-shot", partial(problem_rows, gsm8k_test))


def generated_rows() -> list[Row]:
    rng = random.Random("evaluate/short")
    generated = [short.draw_short(rng, heldout=True) for _ in range(1000)]
    return [Row(s.question, (s.answer,), reference=s.reply) for s in generated]


def accepted_rows(path: Path) -> list[Row]:
    return [accepted_row(record) for record in read_jsonl(path)]


def problem_rows(path: Path) -> list[Row]:
    return [Row(r["question"], (r["answer"].rpartition("#### ")[2].replace(",", ""),), reference=r["answer"])
            for r in read_jsonl(path)]


def accepted_row(record: dict[str, Any]) -> Row:
    answers = tuple(map(str, record.get("answers", ())))
    must = tuple(tuple(part) if isinstance(part, list) else (part,) for part in record.get("must", ()))
    return Row(str(record["question"]), answers, must, str(record.get("kind", "all")))


def is_right(row: Row, text: str) -> bool:
    """Each part of `must` occurs in one of its wordings; without `must`, one of the accepted answers is the reply's."""
    if row.must:
        return all(any(wording.lower() in text.lower() for wording in part) for part in row.must)
    return any(accepts(answer, text) for answer in row.accepted)


def accepts(answer: str, text: str) -> bool:
    """A number is the reply's last one; words occur in its last line."""
    wanted = answer.strip().lstrip("$€£").rstrip("%").replace(",", "")
    if _NUMBER.fullmatch(wanted):
        return last_number(text) == Fraction(wanted)
    lines = text.strip().splitlines()
    return bool(lines) and re.search(rf"(?<!\w){re.escape(answer.strip().lower())}(?!\w)", lines[-1].lower()) is not None


def last_number(text: str) -> Fraction | None:
    numbers = _NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", text))
    return None if not numbers or numbers[-1].endswith("/0") else Fraction(numbers[-1])


def report(rows: Sequence[Row], replies: Sequence[str], right: Sequence[bool], show_misses: bool) -> None:
    """Prints the hits of each kind, and the misses."""
    totals, hits = Counter(row.kind for row in rows), Counter(row.kind for row, ok in zip(rows, right) if ok)
    if len(totals) > 1:
        for kind, total in sorted(totals.items(), key=lambda item: hits[item[0]] / item[1]):
            print(f"  {kind:28} {hits[kind]:4} of {total:4}  {hits[kind] / total:.1%}")
    for row, reply, ok in zip(rows, replies, right, strict=True):
        if show_misses and not ok:
            print("  " + json.dumps({"question": row.question, "accepted": row.accepted, "must": row.must,
                                      "reply": reply}, ensure_ascii=False))


def text_prompt(form: str, shots: Sequence[dict[str, str]], question: str) -> str:
    solved = shots[:8] if form == "8-shot" else []
    text = "".join(f"Question: {s['question']}\nAnswer: {s['answer']}\n\n" for s in solved)
    return f"{text}Question: {question}\nAnswer:"


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cut_at_stop(text: str) -> str:
    return text[: min((i for i in map(text.find, STOPS) if i >= 0), default=len(text))]


def share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return round(sum(values) / len(values), 4)
