"""Exact match of greedy answers, by transformers on the saved checkpoint, as SGLang's GSM8K benchmark counts."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

STOPS = ("Question", "Assistant:", "<|separator|>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="default: heldout.jsonl of the model")
    parser.add_argument("--form", choices=["0-shot", "8-shot", "chat"], action="append",
                        help="may be repeated; default: all three")
    parser.add_argument("--num-questions", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=250)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16", help="of the computation")
    parser.add_argument("--show-misses", action="store_true", help="print what was answered wrongly")
    parser.add_argument("--output", type=Path, help="append the results to this JSONL file")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).to(device).eval()
    problems = read_jsonl(args.data or args.model / "heldout.jsonl")[: args.num_questions]
    shots = read_jsonl(args.model / "shots.jsonl")
    for form in args.form or ["0-shot", "8-shot", "chat"]:
        start = time.monotonic()
        prompts = [prompt_ids(tokenizer, form, shots, p["question"]) for p in problems]
        completions: list[Completion] = []
        for first in range(0, len(prompts), args.batch_size):
            completions += generate(model, tokenizer, prompts[first:first + args.batch_size], args.max_tokens)
        result = score(problems, completions)
        result = {"form": form, "dtype": args.dtype, "device": device, **result,
                  "longest_prompt": max(map(len, prompts)), "seconds": round(time.monotonic() - start, 1)}
        print(json.dumps(result), flush=True)
        if args.output:
            with args.output.open("a") as file:
                print(json.dumps(result), file=file)
        for problem, completion in zip(problems, completions, strict=True):
            if args.show_misses and last_number(completion.text) != last_number(problem["answer"]):
                print(json.dumps({**problem, "completion": completion.text}))


def read_jsonl(path: Path) -> list[dict[str, str]]:
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
    margins = best[..., 0] - best[..., 1]
    completions = []
    for ids, margin in zip(output.sequences[:, batch["input_ids"].shape[1]:].tolist(), margins, strict=True):
        ended = tokenizer.eos_token_id in ids
        length = ids.index(tokenizer.eos_token_id) + 1 if ended else len(ids)
        text = tokenizer.decode(ids[:length], skip_special_tokens=True)
        completions.append(Completion(text, ended, margin[:length].min().item()))
    return completions


def cut_at_stop(text: str) -> str:
    return text[: min((i for i in map(text.find, STOPS) if i >= 0), default=len(text))]


def last_number(text: str) -> int | None:
    numbers = re.findall(r"\d+", text.replace(",", ""))
    return int(numbers[-1]) if numbers else None


def score(problems: list[dict[str, str]], completions: list[Completion]) -> dict[str, object]:
    answers = [last_number(c.text) for c in completions]
    expected = [last_number(p["answer"]) for p in problems]
    margins = sorted(c.smallest_margin for c in completions)
    return {
        "questions": len(problems),
        "accuracy": share(a == e for a, e in zip(answers, expected, strict=True)),
        "invalid": share(a is None for a in answers),
        "same_text": share(c.text.strip() == p["answer"] for c, p in zip(completions, problems, strict=True)),
        "ended": share(c.ended for c in completions),
        "smallest_margin_median": round(margins[len(margins) // 2], 3),
        "smallest_margin_1_percent": round(margins[len(margins) // 100], 3),
    }


def share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return round(sum(values) / len(values), 4)


if __name__ == "__main__":
    main()
