"""Scores the saved checkpoint by greedy decoding, through transformers.

Word problems (held-out ones and GSM8K's test split) count by the last number of the answer, as in SGLang's
GSM8K benchmark. Short questions are asked in chat and have a list of accepted answers. Questions about
Quire have the parts of a right reply instead: each is a text that must occur, or a list of texts of which
one must.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

import short

STOPS = ("Question", "Assistant:", "<|separator|>")
_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?(?:/\d+)?")


@dataclass(frozen=True)
class Task:
    """One set of questions, asked in one form."""

    name: str
    form: str  # 0-shot, 8-shot or chat
    rows: list[Row]


@dataclass(frozen=True)
class Row:
    question: str
    accepted: tuple[str, ...]
    must: tuple[tuple[str, ...], ...] = ()  # parts of a right reply, each with its alternative wordings
    kind: str = "all"
    reference: str = ""  # the whole answer, if there is one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sets", type=Path, help="folder of short_questions.jsonl and quire_questions.jsonl; "
                        "default: the model's")
    parser.add_argument("--gsm8k-test", type=Path, help="GSM8K's test.jsonl")
    parser.add_argument("--only", action="append", help="names of tasks; may be repeated; default: all")
    parser.add_argument("--num-questions", type=int, default=2000, help="at most, of each set")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16", help="of the computation")
    parser.add_argument("--show-misses", action="store_true", help="print what was answered wrongly")
    parser.add_argument("--output", type=Path, help="append the results to this JSONL file")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).to(device).eval()
    shots = read_jsonl(args.model / "shots.jsonl")
    for task in tasks(args.model, args.sets or args.model, args.gsm8k_test):
        if args.only and task.name not in args.only:
            continue
        start = time.monotonic()
        rows = task.rows[: args.num_questions]
        prompts = [prompt_ids(tokenizer, task.form, shots, row.question) for row in rows]
        completions = generate_all(model, tokenizer, prompts, args.batch_size, args.max_tokens)
        right = [is_right(row, completion.text) for row, completion in zip(rows, completions, strict=True)]
        result = {"task": task.name, "form": task.form, "dtype": args.dtype, **score(rows, completions, right),
                  "seconds": round(time.monotonic() - start, 1)}
        report(result, rows, completions, right, args.show_misses)
        if args.output:
            with args.output.open("a") as file:
                print(json.dumps(result), file=file)


def tasks(model: Path, sets: Path, gsm8k_test: Path | None) -> Iterator[Task]:
    heldout = problem_rows(model / "heldout.jsonl")
    for form in ("0-shot", "8-shot", "chat"):
        yield Task(f"heldout-{form}", form, heldout)
    rng = random.Random("evaluate/short")
    generated = [short.draw_short(rng, heldout=True) for _ in range(1000)]
    yield Task("generated-short", "chat", [Row(s.question, (s.answer,), reference=s.reply) for s in generated])
    for name in ("short_questions", "quire_questions"):
        path = sets / f"{name}.jsonl"
        if path.exists():
            yield Task(name, "chat", [accepted_row(record) for record in read_jsonl(path)])
        else:
            print(f"{path} does not exist; it is left out")
    if gsm8k_test:
        yield Task("gsm8k-test", "0-shot", problem_rows(gsm8k_test))


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


def report(result: dict[str, object], rows: list[Row], completions: list[Completion], right: list[bool],
           show_misses: bool) -> None:
    print(json.dumps(result), flush=True)
    totals, hits = Counter(row.kind for row in rows), Counter(row.kind for row, ok in zip(rows, right) if ok)
    if len(totals) > 1:
        for kind, total in sorted(totals.items(), key=lambda item: hits[item[0]] / item[1]):
            print(f"  {kind:28} {hits[kind]:4} of {total:4}  {hits[kind] / total:.1%}")
    for row, completion, ok in zip(rows, completions, right, strict=True):
        if show_misses and not ok:
            print("  " + json.dumps({"question": row.question, "accepted": row.accepted, "must": row.must,
                                      "reply": completion.text}, ensure_ascii=False))


def generate_all(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]],
                 batch_size: int, max_tokens: int) -> list[Completion]:
    """Prompts of like lengths share a batch, since the shorter ones are padded."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    found: dict[int, Completion] = {}
    for first in range(0, len(order), batch_size):
        chosen = order[first:first + batch_size]
        found |= zip(chosen, generate(model, tokenizer, [prompts[i] for i in chosen], max_tokens))
    return [found[i] for i in range(len(prompts))]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def prompt_ids(tokenizer: PreTrainedTokenizerFast, form: str, shots: list[dict[str, str]], question: str) -> list[int]:
    if form == "chat":
        text = tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True,
                                             tokenize=False)
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    solved = shots[:8] if form == "8-shot" else []
    text = "".join(f"Question: {s['question']}\nAnswer: {s['answer']}\n\n" for s in solved)
    return tokenizer(f"{text}Question: {question}\nAnswer:")["input_ids"]


class Completion:
    def __init__(self, text: str, ended: bool, smallest_margin: float) -> None:
        self.text = cut_at_stop(text)
        self.ended = ended  # with the end token, rather than by a stop string or the limit
        self.smallest_margin = smallest_margin  # between the two best logits, over the tokens


@torch.inference_mode()
def generate(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]],
             max_tokens: int) -> list[Completion]:
    batch = tokenizer.pad({"input_ids": prompts}, return_tensors="pt").to(model.device)
    output = model.generate(**batch, max_new_tokens=max_tokens, do_sample=False, return_dict_in_generate=True,
                            output_logits=True)
    best = torch.stack([logits.float().topk(2).values for logits in output.logits], dim=1)
    margins = (best[..., 0] - best[..., 1]).cpu()
    completions = []
    for ids, margin in zip(output.sequences[:, batch["input_ids"].shape[1]:].tolist(), margins, strict=True):
        ended = tokenizer.eos_token_id in ids
        length = ids.index(tokenizer.eos_token_id) + 1 if ended else len(ids)
        text = tokenizer.decode(ids[:length], skip_special_tokens=True)
        completions.append(Completion(text, ended, margin[:length].min().item()))
    return completions


def cut_at_stop(text: str) -> str:
    return text[: min((i for i in map(text.find, STOPS) if i >= 0), default=len(text))]


def score(rows: list[Row], completions: list[Completion], right: list[bool]) -> dict[str, object]:
    margins = sorted(c.smallest_margin for c in completions)
    return {
        "questions": len(rows),
        "accuracy": share(right),
        "same_text": share(c.text.strip() == row.reference for c, row in zip(completions, rows, strict=True)),
        "ended": share(c.ended for c in completions),
        "smallest_margin_median": round(margins[len(margins) // 2], 3),
        "smallest_margin_1_percent": round(margins[len(margins) // 100], 3),
    }


def share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return round(sum(values) / len(values), 4)


if __name__ == "__main__":
    main()
