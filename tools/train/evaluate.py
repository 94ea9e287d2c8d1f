"""Scores greedy answers to questions that training has not seen: those of a checkpoint, by PyTorch, or with `--quire`
those of `quire generate`, which needs no PyTorch.

The last number of an answer counts, as in SGLang's GSM8K benchmark; an answer without a number must be the same text.
`--at-least questions=0.9` fails if fewer are right.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from documents import ASSISTANT, BOS, EOS, USER
from questions import draw_question

if TYPE_CHECKING:
    from model import CausalLm

SETS = Path(__file__).resolve().parents[2] / "models" / "quire-abacus"
_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?")
_STOP = "Question"


@dataclass(frozen=True)
class Row:
    question: str
    answer: str  # the whole of it


@dataclass(frozen=True)
class Task:
    """One set of questions, asked in one form."""

    name: str
    is_chat: bool
    num_shots: int
    rows: Callable[[], list[Row]]


def tasks(sets: Path) -> list[Task]:
    problems = partial(problem_rows, sets / "heldout.jsonl")
    return [Task("heldout-0-shot", False, 0, problems), Task("heldout-8-shot", False, 8, problems),
            Task("heldout-chat", True, 0, problems), Task("questions", True, 0, question_rows)]


def problem_rows(path: Path) -> list[Row]:
    return [Row(record["question"], record["answer"]) for record in read_jsonl(path)]


def question_rows() -> list[Row]:
    rng = random.Random("evaluate/questions")
    drawn = [draw_question(rng, heldout=True) for _ in range(500)]
    return [Row(question.text, question.reply) for question in drawn]


def read_jsonl(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def last_number(text: str) -> float | None:
    numbers = _NUMBER.findall(text.replace(",", ""))
    return float(numbers[-1]) if numbers else None


def is_right(row: Row, text: str) -> bool:
    expected = last_number(row.answer)
    return text.strip() == row.answer if expected is None else last_number(text) == expected


def text_prompt(shots: Sequence[dict[str, str]], question: str) -> str:
    solved = "".join(f"Question: {shot['question']}\nAnswer: {shot['answer']}\n\n" for shot in shots)
    return f"{solved}Question: {question}\nAnswer:"


Answer = Callable[[list[str], bool], list[str]]  # prompts, and whether they are chats


def answers_of_quire(binary: Path, model: Path | None, max_tokens: int) -> Answer:
    command = [str(binary), "generate", *(["--model", str(model)] if model else []), "--temperature", "0",
               "--max-tokens", str(max_tokens), "--format", "json", "--input", "-"]

    def answer(prompts: list[str], is_chat: bool) -> list[str]:
        lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts)
        done = subprocess.run([*command, *(["--chat"] if is_chat else [])], input=lines, stdout=subprocess.PIPE,
                              text=True, check=True)
        return [reply["text"] for reply in sorted(map(json.loads, done.stdout.splitlines()), key=lambda r: r["index"])]

    return answer


def answers_of_checkpoint(folder: Path, max_tokens: int) -> Answer:
    import torch
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    from train import MODELS

    content = json.loads((folder / "config.json").read_text())
    model_type = MODELS[content["model_type"]]
    config = model_type.config_type(**{name: content[name] for name in vars(model_type.config_type())})
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model_type(config)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    model.to(device).eval()
    torch.backends.cuda.enable_cudnn_sdp(False)  # it prepares a plan for every new shape
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def answer(prompts: list[str], is_chat: bool) -> list[str]:
        texts = [f"{BOS}{USER}{prompt.strip()}{EOS}{ASSISTANT}" if is_chat else BOS + prompt for prompt in prompts]
        encoded = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):  # as in training
            found = greedy_answers(model, encoded, tokenizer.token_to_id(EOS), max_tokens, batch_size=256)
        return [tokenizer.decode(ids) for ids in found]

    return answer


def greedy_answers(model: CausalLm, prompts: list[list[int]], eos: int, max_tokens: int, batch_size: int) -> list[list[int]]:
    """The ids that follow each prompt, with the end token if it came within `max_tokens`. Prompts are padded at the end,
    where a causal model does not look; without a cache of keys and values, each step computes all positions."""
    import torch

    answers: list[list[int]] = [[] for _ in prompts]
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    weight = model.model.embed_tokens.weight
    for first in range(0, len(prompts), batch_size):
        chosen = by_length[first : first + batch_size]
        lengths = torch.tensor([len(prompts[i]) for i in chosen], device=weight.device)
        ids = torch.full((len(chosen), int(lengths.max()) + max_tokens), eos, device=weight.device)
        for row, i in enumerate(chosen):
            ids[row, : len(prompts[i])] = torch.tensor(prompts[i], device=weight.device)
        going = torch.arange(len(chosen), device=weight.device)  # the rows without an end yet
        for step in range(max_tokens):
            at = lengths[going] + step
            with torch.no_grad():
                states = model.states(ids[going, : int(at.max())])
                token = (states[torch.arange(len(going), device=weight.device), at - 1] @ weight.T).argmax(-1)
            ids[going, at] = token
            going = going[token != eos]
            if not len(going):
                break
        for row, i in enumerate(chosen):
            new = ids[row, len(prompts[i]) : len(prompts[i]) + max_tokens].tolist()
            answers[i] = new[: new.index(eos) + 1] if eos in new else new
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, help="the binary that answers; default: PyTorch")
    parser.add_argument("--model", type=Path, help="default, with --quire: the embedded model")
    parser.add_argument("--sets", type=Path, default=SETS, help="folder of heldout.jsonl and shots.jsonl")
    parser.add_argument("--only", action="append", help="names of sets; may be repeated; default: all")
    parser.add_argument("--num-questions", type=int, default=500, help="at most, of each set")
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--show-misses", action="store_true", help="print what was answered wrongly")
    parser.add_argument("--output", type=Path, help="append the results to this JSONL file")
    parser.add_argument("--at-least", action="append", default=[], metavar="SET=SHARE")
    args = parser.parse_args()
    if not args.quire and not args.model:
        parser.error("expected --model, --quire or both")

    bounds = dict(text.partition("=")[::2] for text in args.at_least)
    answer = (answers_of_quire(args.quire, args.model, args.max_tokens) if args.quire
              else answers_of_checkpoint(args.model, args.max_tokens))
    shots = read_jsonl(args.sets / "shots.jsonl")
    shares: dict[str, float] = {}
    for task in tasks(args.sets):
        if args.only and task.name not in args.only:
            continue
        start = time.monotonic()
        rows = task.rows()[: args.num_questions]
        prompts = [row.question if task.is_chat else text_prompt(shots[: task.num_shots], row.question) for row in rows]
        texts = [text.partition(_STOP)[0] for text in answer(prompts, task.is_chat)]
        right = [is_right(row, text) for row, text in zip(rows, texts, strict=True)]
        shares[task.name] = sum(right) / len(right)
        result = {"set": task.name, "questions": len(rows), "right": sum(right), "share": round(shares[task.name], 4),
                  "seconds": round(time.monotonic() - start, 1)}
        print(json.dumps(result), flush=True)
        if args.output:
            with args.output.open("a") as file:
                print(json.dumps(result), file=file)
        for row, text, ok in zip(rows, texts, right):
            if args.show_misses and not ok:
                print("  " + json.dumps({"question": row.question, "expected": row.answer, "got": text}))
    missed = [f"{name}: {shares.get(name, 0.0):.3f}, at least {bound} was expected" for name, bound in bounds.items()
              if shares.get(name, 0.0) < float(bound)]
    print(*missed, sep="\n", end="\n" if missed else "", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
