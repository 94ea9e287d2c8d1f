"""Scores what `quire generate` answers, greedily, to the sets of `scoring.py`: the figures of the model's card.

Needs no PyTorch. `--at-least short_questions=0.9` fails if fewer are right; a kind of question is named as in
`quire_questions/unknown=0.8`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scoring import cut_at_stop, is_right, read_jsonl, report, share, tasks, text_prompt

EMBEDDED = Path(__file__).resolve().parents[2] / "models" / "quire-abacus"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("--model", type=Path, help="default: the binary's embedded model")
    parser.add_argument("--sets", type=Path, default=EMBEDDED, help="folder of the sets and of shots.jsonl")
    parser.add_argument("--gsm8k-test", type=Path, help="GSM8K's test.jsonl")
    parser.add_argument("--only", action="append", help="names of tasks; may be repeated; default: all")
    parser.add_argument("--num-questions", type=int, default=2000, help="at most, of each set")
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--show-misses", action="store_true", help="print what was answered wrongly")
    parser.add_argument("--at-least", action="append", default=[], metavar="TASK[/KIND]=SHARE")
    args = parser.parse_args()

    bounds = {name: float(bound) for name, _, bound in (text.partition("=") for text in args.at_least)}
    command = [str(args.quire), "generate", *([str(args.model)] if args.model else []),
               "--temperature", "0", "--max-tokens", str(args.max_tokens), "--format", "json", "--input", "-"]
    shots = read_jsonl(args.sets / "shots.jsonl")
    shares: dict[str, float] = {}
    for task in tasks(args.sets, args.sets, args.gsm8k_test):
        if args.only and task.name not in args.only:
            continue
        start = time.monotonic()
        rows = task.rows()[: args.num_questions]
        if task.form == "chat":
            replies = ask([*command, "--chat"], [row.question for row in rows])
        else:
            replies = ask(command, [text_prompt(task.form, shots, row.question) for row in rows])
        right = [is_right(row, reply) for row, reply in zip(rows, replies, strict=True)]
        shares[task.name] = share(right)
        for kind in {row.kind for row in rows}:
            shares[f"{task.name}/{kind}"] = share(ok for row, ok in zip(rows, right) if row.kind == kind)
        print(json.dumps({"task": task.name, "form": task.form, "questions": len(rows), "right": sum(right),
                          "accuracy": shares[task.name], "seconds": round(time.monotonic() - start, 1)}), flush=True)
        report(rows, replies, right, args.show_misses)

    missed = [f"{name}: {shares.get(name, 0.0)}, at least {bound} was expected" for name, bound in bounds.items()
              if shares.get(name, 0.0) < bound]
    print(*missed, sep="\n", end="\n" if missed else "", file=sys.stderr)
    return 1 if missed else 0


def ask(command: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """The replies, in the order of the prompts."""
    lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts)
    answered = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    replies = sorted(map(json.loads, answered.stdout.splitlines()), key=lambda reply: reply["index"])
    return [cut_at_stop(reply["text"]) for reply in replies]


if __name__ == "__main__":
    sys.exit(main())
