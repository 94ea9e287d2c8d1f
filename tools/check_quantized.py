"""Compares the output of `quire quantize` with what other programs read from it.

    pip install llama-cpp-python==0.3.36 numpy==2.4.6
    python3 tools/check_quantized.py gguf build/quire FILE.gguf
    pip install compressed-tensors==0.20.0 safetensors==0.8.0 torch==2.15.0 transformers==5.24.0
    python3 tools/check_quantized.py w4a16 DIR SOURCE_DIR
    python3 tools/check_quantized.py logprobs build/quire DIR TEXT

`gguf` generates greedily by llama.cpp and by Quire from the same file and prompts, and compares the ids
of the tokens. llama.cpp computes attention in F16 and rounds activations to 8 bits, so that a choice
between two nearly equal logits may differ; the command prints where. `w4a16` decompresses every quantized
matrix of a copy without calibration by compressed-tensors, and compares the numbers with the nearest
multiples of the scales. `logprobs` loads any `w4a16` copy, also one that --calibration-file scaled, by
transformers and compressed-tensors, and compares the log probabilities of the first 1,500 characters of
a text with Quire's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

PROMPTS = [
    "<|user|>What is 12 + 30?<|end|><|assistant|>",
    "<|user|>Tom has 17 apples and buys 5 more. How many has he now?<|end|><|assistant|>",
    "<|user|>A shelf has 8 rows of 12 books. 7 are lent. How many remain?<|end|><|assistant|>",
    "Question: What is 3 + 4?\nAnswer:",
]
MAX_TOKENS = 40
MAX_CHARACTERS = 1500
# Quire rounds the activations of products with integers to 16 bits, and transformers does not round them.
MAX_DIFFERENCE = 0.02


def quire_output(binary: str, model: str, prompt: str) -> tuple[list[int], list[int]]:
    command = [binary, "generate", "--model", model, "--prompt", prompt, "--temperature", "0",
               "--max-tokens", str(MAX_TOKENS), "--format", "json", "--device", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    output = json.loads(result.stdout)
    return output["prompt_token_ids"], output["token_ids"]


def check_gguf(binary: str, model: str) -> int:
    import llama_cpp

    llama = llama_cpp.Llama(model, n_ctx=1024, verbose=False, logits_all=False)
    num_equal = 0
    for prompt in PROMPTS:
        prompt_ids, expected = quire_output(binary, model, prompt)
        tokens = llama.tokenize(prompt.encode(), add_bos=True, special=True)
        llama.reset()
        got = []
        for token in llama.generate(tokens, temp=0.0, top_k=1, repeat_penalty=1.0):
            got.append(token)
            if len(got) == len(expected):
                break
        same_prompt = tokens == prompt_ids
        first = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), len(expected))
        print(f"prompt ids {'equal' if same_prompt else 'differ'}; "
              f"{first} of {len(expected)} greedy ids equal: {prompt[:40]!r}")
        num_equal += same_prompt and got == expected
    print(f"{num_equal} of {len(PROMPTS)} prompts are equal")
    return 0 if num_equal == len(PROMPTS) else 1


def check_w4a16(written: Path, source: Path) -> int:
    import torch
    from compressed_tensors.compressors import PackedQuantizationCompressor
    from compressed_tensors.quantization import QuantizationScheme
    from safetensors import safe_open

    config = json.loads((written / "config.json").read_text())["quantization_config"]
    scheme = QuantizationScheme(**config["config_groups"]["group_0"])
    num_matrices = 0
    with safe_open(written / "model.safetensors", "pt") as packed, \
            safe_open(source / "model.safetensors", "pt") as plain:
        for name in packed.keys():
            if not name.endswith(".weight_packed"):
                continue
            stem = name.removesuffix("_packed")
            parts = {f"weight_{part}": packed.get_tensor(f"{stem}_{part}")
                     for part in ("packed", "scale", "shape")}
            got = PackedQuantizationCompressor.decompress(parts, scheme)["weight"]
            wide = parts["weight_scale"].repeat_interleave(scheme.weights.group_size, dim=1)
            steps = plain.get_tensor(stem).float() / wide.float()
            expected = torch.clamp(torch.round(steps), -8, 7).to(wide.dtype) * wide
            if got.dtype != expected.dtype or not torch.equal(got, expected):
                print(f"{stem}: the numbers differ", file=sys.stderr)
                return 1
            num_matrices += 1
    print(f"{num_matrices} matrices are equal")
    return 0 if num_matrices > 0 else 1


def check_logprobs(binary: str, written: Path, text: str) -> int:
    import torch
    from transformers import AutoModelForCausalLM

    command = [binary, "generate", "--model", str(written), "--prompt", text, "--temperature", "0",
               "--max-tokens", "1", "--prompt-logprobs", "0", "--format", "json", "--device", "cpu",
               "--kv-cache-dtype", "f32"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    output = json.loads(result.stdout)
    ids = torch.tensor(output["prompt_token_ids"])
    model = AutoModelForCausalLM.from_pretrained(written, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(ids[None]).logits[0].double()
    expected = logits.log_softmax(-1)[:-1].gather(1, ids[1:, None])[:, 0]
    got = torch.tensor([position[0]["logprob"] for position in output["prompt_logprobs"][1:]])
    largest = (got - expected).abs().max().item()
    print(f"{len(ids)} tokens, mean log probability {got.double().mean():.5f}, of transformers "
          f"{expected.mean():.5f}; largest difference {largest:.5f}")
    return 0 if largest < MAX_DIFFERENCE else 1


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    gguf = commands.add_parser("gguf")
    gguf.add_argument("binary")
    gguf.add_argument("model")
    w4a16 = commands.add_parser("w4a16")
    w4a16.add_argument("written", type=Path)
    w4a16.add_argument("source", type=Path)
    logprobs = commands.add_parser("logprobs")
    logprobs.add_argument("binary")
    logprobs.add_argument("written", type=Path)
    logprobs.add_argument("text", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "gguf":
        sys.exit(check_gguf(arguments.binary, arguments.model))
    if arguments.command == "logprobs":
        sys.exit(check_logprobs(arguments.binary, arguments.written,
                                arguments.text.read_text()[:MAX_CHARACTERS]))
    sys.exit(check_w4a16(arguments.written, arguments.source))


if __name__ == "__main__":
    main()
