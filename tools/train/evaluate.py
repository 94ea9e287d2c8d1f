"""Scores the saved checkpoint by greedy decoding, through transformers. `scoring.py` says which replies are
right; `evaluate_served.py` scores what `quire serve` answers.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from scoring import Row, cut_at_stop, is_right, read_jsonl, report, share, tasks, text_prompt


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
        rows = task.rows()[: args.num_questions]
        prompts = [prompt_ids(tokenizer, task.form, shots, row.question) for row in rows]
        completions = generate_all(model, tokenizer, prompts, args.batch_size, args.max_tokens)
        right = [is_right(row, completion.text) for row, completion in zip(rows, completions, strict=True)]
        result = {"task": task.name, "form": task.form, "dtype": args.dtype, **score(rows, completions, right),
                  "seconds": round(time.monotonic() - start, 1)}
        print(json.dumps(result), flush=True)
        report(rows, [completion.text for completion in completions], right, args.show_misses)
        if args.output:
            with args.output.open("a") as file:
                print(json.dumps(result), file=file)


def generate_all(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[list[int]],
                 batch_size: int, max_tokens: int) -> list[Completion]:
    """Prompts of like lengths share a batch, since the shorter ones are padded."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    found: dict[int, Completion] = {}
    for first in range(0, len(order), batch_size):
        chosen = order[first:first + batch_size]
        found |= zip(chosen, generate(model, tokenizer, [prompts[i] for i in chosen], max_tokens))
    return [found[i] for i in range(len(prompts))]


def prompt_ids(tokenizer: PreTrainedTokenizerFast, form: str, shots: list[dict[str, str]], question: str) -> list[int]:
    if form == "chat":
        text = tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True,
                                             tokenize=False)
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokenizer(text_prompt(form, shots, question))["input_ids"]


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


if __name__ == "__main__":
    main()
