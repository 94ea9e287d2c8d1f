"""Greedy ids of Quire and of llama.cpp on SmolLM2, against the FP64 reference.

    pip install llama-cpp-python==0.3.36 numpy==2.4.6
    python bench/peers/smollm2_exactness.py --model SmolLM2-135M-Instruct.Q4_1.gguf --out RESULT.md

The reference is tests/golden/smollm2.json (tools/golden/smollm2.py). --peer ik_llama_cpp takes
ik-llama-cpp-python 0.1.5, of which there is a wheel with AVX2; --peer none runs Quire alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
Ids = list[list[int]]


def quire_ids(quire: str, model: Path, prompts: Ids, activations: str) -> Ids:
    lines = [json.dumps({"prompt_token_ids": prompt, "max_tokens": 48, "ignore_eos": True})
             for prompt in prompts]
    result = subprocess.run(
        [quire, "generate", "--model", model, "--input", "-", "--format", "json", "--device", "cpu",
         "--temperature", "0", "--cpu-activations", activations],
        input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line)["token_ids"] for line in result.stdout.splitlines()]


def peer_ids(package: str, model: Path, prompts: Ids, flash: bool) -> tuple[str, Ids]:
    import numpy as np
    from llama_cpp_worker import Worker

    worker = Worker(package, str(model), 2)
    all_ids = []
    for prompt in prompts:
        context = worker.context(1, 256, flash)
        worker.peer.remove(context.handle, 0)
        context.decode(np.array([prompt]), 0, len(prompt))
        ids = []
        for i in range(48):
            ids.append(int(context.next_ids[0]))
            context.decode(context.next_ids[:, None], len(prompt) + i, 1)
        all_ids.append(ids)
    return worker.peer.version, all_ids


def cell(ids: list[int], reference: dict) -> str:
    for at, (got, expected) in enumerate(zip(ids, reference["token_ids"], strict=True)):
        if got != expected:
            return f"{at} (margin {reference['margins'][at]:.3f})"
    return "equal"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quire", default=str(ROOT / "build/quire"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--peer", choices=["llama_cpp", "ik_llama_cpp", "none"], default="llama_cpp")
    parser.add_argument("--out", type=Path, required=True, help="the table, as Markdown")
    args = parser.parse_args()
    references = json.loads((ROOT / "tests/golden/smollm2.json").read_text())["prompts"]
    prompts = [reference["prompt_token_ids"] for reference in references]
    columns = {"Quire, activations in F32": quire_ids(args.quire, args.model, prompts, "f32"),
               "Quire, int8": quire_ids(args.quire, args.model, prompts, "int8")}
    if args.peer != "none":
        for flash in (False, True):
            version, ids = peer_ids(args.peer, args.model, prompts, flash)
            columns[f"{args.peer} {version}{', flash attention' if flash else ''}"] = ids
    rows = [f"| prompt | smallest margin | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    counts = [0] * len(columns)
    for i, reference in enumerate(references):
        cells = [cell(ids[i], reference) for ids in columns.values()]
        counts = [count + (text == "equal") for count, text in zip(counts, cells)]
        prompt = reference["prompt"]
        if "user\n" in prompt:
            prompt = prompt.split("user\n")[1].split("<|im_end|>")[0]
        rows.append(f"| {prompt.strip()} | {min(reference['margins']):.3f} | {' | '.join(cells)} |")
    totals = " | ".join(f"**{count} of {len(references)}**" for count in counts)
    rows.append(f"| equal over 48 tokens | | {totals} |")
    args.out.write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
