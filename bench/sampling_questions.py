"""Chooses sampling defaults for a small model: everyday questions under several settings.

    python3 bench/sampling_questions.py --quire build/quire --model MODEL --out RESULT.md

Every question of bench/data/everyday_questions.jsonl (or --data) is asked in the model's chat template, with
each setting and seed. A reply counts as right if its first 20 words contain an accepted answer. The
table has the share of right replies, the questions that were right for all seeds and for none, and
the replies that run in a circle or do not end. Tasks of bench/data/everyday_tasks.jsonl have no
accepted answers, and only the latter count:

    python3 bench/sampling_questions.py … --data bench/data/everyday_tasks.jsonl --max-tokens 1024
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import time
from pathlib import Path

OFF = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1}
SETTINGS = [
    {"temperature": 0},
    {"temperature": 0, "repetition_penalty": 1.03},
    {"temperature": 0, "repetition_penalty": 1.05},
    {"temperature": 0, "repetition_penalty": 1.1},
    {"temperature": 0.2, "top_p": 0.9},
    {"temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.05},
    {"temperature": 0.2, "top_p": 0.9, "repetition_penalty": 1.1},
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
    OFF,
]
NUM_FIRST_WORDS = 20


def is_right(reply: str, answers: list[str]) -> bool:
    reply = " ".join(reply.split()[:NUM_FIRST_WORDS])
    if not answers:
        return False
    words = "|".join(re.escape(answer) for answer in answers)
    return re.search(rf"(?<!\w)({words})(?!\w)", reply, re.IGNORECASE) is not None


def repeats(reply: str) -> bool:
    """Whether six words in a row occur again: the reply runs in a circle."""
    words = reply.split()
    groups = [tuple(words[i : i + 6]) for i in range(len(words) - 5)]
    return len(groups) != len(set(groups))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quire", default="build/quire")
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path,
                        default=Path(__file__).parent / "data" / "everyday_questions.jsonl")
    parser.add_argument("--seeds", type=int, default=2, help="of settings that are not greedy")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--out", type=Path, required=True, help="the table, as Markdown")
    args = parser.parse_args()
    questions = [{"answers": []} | json.loads(line) for line in args.data.read_text().splitlines()]
    runs = []
    for setting in SETTINGS:
        seeds = 1 if setting["temperature"] == 0 else args.seeds
        runs += [(setting, seed, question) for seed in range(seeds) for question in questions]
    lines = [json.dumps({"prompt": question["question"], "seed": seed,
                         "max_tokens": args.max_tokens, **OFF, **setting})
             for setting, seed, question in runs]
    start = time.monotonic()
    result = subprocess.run(
        [args.quire, "generate", "--model", args.model, "--chat", "--input", "-", "--format",
         "json"],
        input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    replies = [json.loads(line) for line in result.stdout.splitlines()]
    seconds = time.monotonic() - start

    table = []
    for setting in SETTINGS:
        rights: dict[str, list[bool]] = collections.defaultdict(list)
        circles = cut = tokens = 0
        for (used, _, question), reply in zip(runs, replies, strict=True):
            if used is not setting:
                continue
            rights[question["question"]].append(is_right(reply["text"], question["answers"]))
            circles += repeats(reply["text"])
            cut += reply["finish_reason"] == "length"
            tokens += len(reply["token_ids"])
        total = sum(map(len, rights.values()))
        right = sum(map(sum, rights.values()))
        name = ", ".join(f"{key} {value}" for key, value in setting.items())
        table.append(
            f"| {name} | {right} of {total} ({100 * right / total:.0f} %) "
            f"| {sum(all(r) for r in rights.values())} | {sum(not any(r) for r in rights.values())} "
            f"| {sum(rights[questions[0]['question']])} of {total // len(questions)} "
            f"| {circles} | {cut} | {tokens / total:.0f} |")
    text = (
        f"| setting (others off) | right replies | always right | never right "
        f"| capital of France | in a circle | not ended after {args.max_tokens} tokens "
        f"| tokens per reply |\n|---|---|---|---|---|---|---|---|\n" + "\n".join(table) + "\n")
    args.out.write_text(text)
    print(text + f"\n{len(runs)} replies in {seconds:.0f} s")
    with args.out.with_suffix(".jsonl").open("w") as file:
        for (setting, seed, question), reply in zip(runs, replies):
            file.write(json.dumps({"setting": setting, "seed": seed,
                                   "question": question["question"], "reply": reply["text"],
                                   "right": is_right(reply["text"], question["answers"])}) + "\n")


if __name__ == "__main__":
    main()
