"""Mean accepted length of drafters under greedy decoding: the tokens that one step of the target yields.

The target's greedy output does not depend on the drafts, so it is generated once. The drafts at every position of it
are then compared with it, and the rounds of draft and verification follow from how many drafts match at each position.
A round yields the accepted drafts and the token that verification adds; the last one of an answer, what is left of it.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from drafter import Drafter
from target import load_target, target_states
from train_block import ARCHITECTURE as BLOCK, load_block
from train_eagle3 import ARCHITECTURE as EAGLE3, load_eagle3

from documents import ASSISTANT, BOS, EOS, USER
from evaluate import greedy_answers
from model import Llama
from questions import draw_question

_PROBLEMS = "held-out problems"
_ANCHORS_AT_ONCE = 64  # bounds the memory of the mask, which grows with their square
_BARS = {EAGLE3: (4, 3.0), BLOCK: (7, 4.0)}  # drafts per round, and the length wanted on the held-out problems


@dataclass(frozen=True)
class Answered:
    """A prompt and the target's greedy answer: ids, of which the first `num_prompt` are the prompt."""

    ids: list[int]
    num_prompt: int


def load_drafter(folder: Path) -> tuple[str, Drafter]:
    """The architecture and the drafter."""
    (architecture,) = json.loads((folder / "config.json").read_text())["architectures"]
    loaders = {EAGLE3: load_eagle3, BLOCK: load_block}
    if architecture not in loaders:
        raise SystemExit(f"{folder}/config.json: architecture {architecture}; expected {' or '.join(loaders)}")
    return architecture, loaders[architecture](folder).eval().requires_grad_(False)


def questions(model: Path, count: int) -> dict[str, list[str]]:
    """Prompts by set: the held-out problems as text, and held-out short questions as chats."""
    problems = [json.loads(line)["question"] for line in (model / "heldout.jsonl").read_text().splitlines()]
    rng = random.Random("measure/short")
    drawn = [draw_question(rng, heldout=True).text for _ in range(count)]
    return {_PROBLEMS: [f"{BOS}Question: {problem}\nAnswer:" for problem in problems[:count]],
            "short questions in chat": [f"{BOS}{USER}{question.strip()}{EOS}{ASSISTANT}" for question in drawn]}


def answer(target: Llama, tokenizer: Tokenizer, prompts: list[str], max_tokens: int, batch_size: int) -> list[Answered]:
    encoded = [encoding.ids for encoding in tokenizer.encode_batch_fast(prompts, add_special_tokens=False)]
    answers = greedy_answers(target, encoded, tokenizer.token_to_id(EOS), max_tokens, batch_size)
    return [Answered(prompt + ids, len(prompt)) for prompt, ids in zip(encoded, answers, strict=True)]


def num_matching(target: Llama, drafter: Drafter, texts: list[Answered], num_drafts: int) -> list[list[int]]:
    """How many drafts in a row match, for each text by position of its answer (the last one, which has no token after
    it, is left out)."""
    device = target.model.embed_tokens.weight.device
    longest = max(len(text.ids) for text in texts)
    ids = torch.tensor([text.ids + [0] * (longest - len(text.ids)) for text in texts], device=device)
    lengths = torch.tensor([len(text.ids) for text in texts], device=device)
    tapped, _ = target_states(target, ids[:, :-1], drafter.taps)
    first = torch.tensor([text.num_prompt for text in texts], device=device)
    num_anchors = int((lengths - 1 - first).max())  # an answer of one token has none
    if num_anchors <= 0:
        return [[] for _ in texts]
    found = [_matching_at(target, drafter, ids, tapped, lengths, (first[:, None] + offsets).clamp(max=longest - 1),
                          num_drafts)
             for offsets in torch.arange(num_anchors, device=device).split(_ANCHORS_AT_ONCE)]
    matching = torch.cat(found, dim=1).tolist()
    return [row[: len(text.ids) - 1 - text.num_prompt] for row, text in zip(matching, texts, strict=True)]


@torch.no_grad()
def _matching_at(target: Llama, drafter: Drafter, ids: Tensor, tapped: Tensor, lengths: Tensor, anchors: Tensor,
                 num_drafts: int) -> Tensor:
    embedding = target.model.embed_tokens.weight
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        logits = drafter(embedding, ids, tapped, anchors, num_drafts, is_forced=False)
    drafts = drafter.target_ids[logits.argmax(-1)]
    positions = anchors[..., None] + torch.arange(1, num_drafts + 1, device=ids.device)
    rows = torch.arange(len(ids), device=ids.device)[:, None, None]
    is_match = drafts == ids[rows, positions.clamp(max=ids.shape[1] - 1)]
    return (is_match & (positions < lengths[:, None, None])).cumprod(dim=-1).sum(dim=-1)


def rounds(matching: list[int], num_drafts: int) -> list[int]:
    """The tokens of each round. The answer's first token comes from the prompt's step, without a draft."""
    yields = []
    position = 0
    while position < len(matching):
        yields.append(min(1 + min(matching[position], num_drafts), len(matching) - position))
        position += yields[-1]
    return yields


def mean_lengths(matching: list[list[int]], max_drafts: int) -> list[float]:
    """By the number of drafts per round, from 1 on."""
    lengths = []
    for num_drafts in range(1, max_drafts + 1):
        yields = [count for row in matching for count in rounds(row, num_drafts)]
        lengths.append(round(sum(yields) / max(1, len(yields)), 3))
    return lengths


def measure(target: Llama, drafter: Drafter, texts: list[Answered], num_drafts: int, batch_size: int) -> list[float]:
    """The mean accepted lengths, by the number of drafts per round, from 1 on."""
    num_drafts = int(min(num_drafts, drafter.max_drafts))
    by_length = sorted(texts, key=lambda text: len(text.ids))
    batches = (by_length[first : first + batch_size] for first in range(0, len(texts), batch_size))
    matching = [row for batch in batches for row in num_matching(target, drafter, batch, num_drafts)]
    return mean_lengths(matching, num_drafts)


def report(architecture: str, name: str, num_answers: int, lengths: list[float], seconds: float) -> dict[str, object]:
    result: dict[str, object] = {"drafter": architecture, "set": name, "answers": num_answers,
                                 "mean_accepted_length": lengths, "seconds": round(seconds, 1)}
    num_drafts, bar = _BARS[architecture]
    if name == _PROBLEMS and num_drafts <= len(lengths):
        result |= {"num_drafts": num_drafts, "bar": bar, "is_reached": lengths[num_drafts - 1] >= bar}
    return result


def markdown(results: list[dict[str, object]], num_drafts: int) -> str:
    """The table of the model card."""
    rows = [["drafter", "questions", *(f"k = {k}" for k in range(1, num_drafts + 1))], ["---"] * (num_drafts + 2)]
    for result in results:
        lengths = [f"{length:.2f}" for length in result["mean_accepted_length"]]
        rows.append([f"`{result['drafter']}`", f"{result['answers']} {result['set']}", *lengths])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the target; holds heldout.jsonl")
    parser.add_argument("--drafter", type=Path, required=True, action="append", help="folder; may be repeated")
    parser.add_argument("--num-questions", type=int, default=500, help="at most, of each set")
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--num-drafts", type=int, default=7, help="measured from 1 to this")
    parser.add_argument("--batch-size", type=int, default=64 if torch.cuda.is_available() else 8)
    parser.add_argument("--output", type=Path, help="append the results to this JSONL file")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    target = load_target(args.model, device)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    drafters = [load_drafter(folder) for folder in args.drafter]
    results = []
    for name, prompts in questions(args.model, args.num_questions).items():
        start = time.monotonic()
        texts = answer(target, tokenizer, prompts, args.max_tokens, 8 * args.batch_size)
        print(json.dumps({"set": name, "answers": len(texts), "seconds": round(time.monotonic() - start, 1)}), flush=True)
        for architecture, drafter in drafters:
            start = time.monotonic()
            lengths = measure(target, drafter.to(device), texts, args.num_drafts, args.batch_size)
            results.append(report(architecture, name, len(texts), lengths, time.monotonic() - start))
            print(json.dumps(results[-1]), flush=True)
            if args.output:
                with args.output.open("a") as file:
                    print(json.dumps(results[-1]), file=file)
    print(markdown(results, args.num_drafts))


if __name__ == "__main__":
    main()
