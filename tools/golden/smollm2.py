"""Greedy reference of SmolLM2-135M-Instruct.Q4_1.gguf, the model of `quire pull smollm2`.

    pip install gguf==0.19.0 numpy==2.4.6 regex==2026.11.19
    python3 tools/golden/smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf --out tests/golden/smollm2.json

The weights are dequantized to FP32; the forward pass is plain numpy in FP64.
Stored per prompt: its text, its ids, the ids of 48 greedy tokens (the end of a reply does not stop
them), and at each of them its log probability, and the difference between the two largest logits, so
that a tie can be told from an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import gguf
import numpy as np
import regex

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NUM_TOKENS = 48
CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
MESSAGES = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain in two sentences how rain forms.",
    "Name three animals that live in Africa.",
    "Why is the sky blue?",
    "Give me a recipe for pancakes.",
    "Translate 'good morning' to Spanish.",
    "What should I pack for a week in the mountains?",
]
TEXTS = ["Once upon a time, in a small village by the river,", "def fibonacci(n):\n"]


class Tokenizer:
    """Byte-level BPE; digits stand alone (the pre-tokenizer "smollm")."""

    WORDS = regex.compile(
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    )

    def __init__(self, reader: gguf.GGUFReader):
        tokens = reader.fields["tokenizer.ggml.tokens"].contents()
        merges = reader.fields["tokenizer.ggml.merges"].contents()
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in plain]
        self.letters = {byte: chr(byte) for byte in plain}
        self.letters |= {byte: chr(256 + i) for i, byte in enumerate(others)}

    def encode(self, text: str) -> list[int]:
        ids = []
        for part in regex.split(r"(<\|im_start\|>|<\|im_end\|>)", text):
            if part in ("<|im_start|>", "<|im_end|>"):
                ids.append(self.ids[part])
                continue
            for piece in regex.split(r"(\p{N})", part):
                for word in self.WORDS.findall(piece):
                    ids += self.encode_word(word)
        return ids

    def encode_word(self, word: str) -> list[int]:
        parts = [self.letters[byte] for byte in word.encode()]
        while len(parts) > 1:
            pairs = [self.ranks.get(pair, 1 << 30) for pair in zip(parts, parts[1:])]
            at = int(np.argmin(pairs))
            if pairs[at] == 1 << 30:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self.ids[part] for part in parts]


class Llama:
    """Llama's decoder in FP64."""

    def __init__(self, reader: gguf.GGUFReader):
        def number(key: str) -> float:
            return reader.fields["llama." + key].contents()

        self.num_layers = int(number("block_count"))
        self.heads = int(number("attention.head_count"))
        self.kv_heads = int(number("attention.head_count_kv"))
        self.eps = number("attention.layer_norm_rms_epsilon")
        self.weights = {
            tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            .astype(np.float32)
            .astype(np.float64)
            for tensor in reader.tensors
        }
        self.head_size = int(number("embedding_length")) // self.heads
        self.frequencies = number("rope.freq_base") ** (
            -np.arange(0, self.head_size, 2, dtype=np.float64) / self.head_size
        )

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * self.weights[name]

    def rotate(self, x: np.ndarray, position: int) -> np.ndarray:
        """Rotates pairs of neighbours: the order in which GGUF files of this family have rows."""
        angles = position * self.frequencies
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        out[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return out

    def logits(self, tokens: list[int], position: int, cache: list[np.ndarray]) -> np.ndarray:
        """[sequences, vocabulary] after one more token of each; stores its keys and values."""
        w = self.weights
        count, group = len(tokens), self.heads // self.kv_heads
        x = w["token_embd.weight"][tokens]
        for layer in range(self.num_layers):
            at = f"blk.{layer}."
            keys, values = cache[2 * layer], cache[2 * layer + 1]  # [sequence, position, head, d]
            normed = self.norm(x, at + "attn_norm.weight")
            q = (normed @ w[at + "attn_q.weight"].T).reshape(count, self.kv_heads, group, -1)
            k = (normed @ w[at + "attn_k.weight"].T).reshape(count, self.kv_heads, -1)
            v = (normed @ w[at + "attn_v.weight"].T).reshape(count, self.kv_heads, -1)
            keys[:, position], values[:, position] = self.rotate(k, position), v
            seen = np.s_[:, : position + 1]
            scores = np.einsum("shgd,sphd->shgp", self.rotate(q, position), keys[seen])
            scores /= np.sqrt(self.head_size)
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            mixed = np.einsum("shgp,sphd->shgd", shares, values[seen]).reshape(count, -1)
            x = x + mixed @ w[at + "attn_output.weight"].T
            normed = self.norm(x, at + "ffn_norm.weight")
            gate = normed @ w[at + "ffn_gate.weight"].T
            up = normed @ w[at + "ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w[at + "ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ w["token_embd.weight"].T

    def greedy(self, prompts: list[list[int]]) -> list[dict[str, list]]:
        """Per prompt the greedy ids, their margins and log probabilities. All sequences have the same positions, so
        that a step reads the weights once; a short prompt begins its output earlier."""
        length = max(map(len, prompts)) + NUM_TOKENS
        shape = (len(prompts), length, self.kv_heads, self.head_size)
        cache = [np.zeros(shape) for _ in range(2 * self.num_layers)]
        texts = [list(prompt) for prompt in prompts]
        margins: list[list[float]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        for position in range(length - 1):
            logits = self.logits([text[position] for text in texts], position, cache)
            for text, margin, logprob, row in zip(texts, margins, logprobs, logits):
                if len(text) > position + 1:
                    continue
                second, first = np.argsort(row)[-2:]
                text.append(int(first))
                margin.append(round(float(row[first] - row[second]), 5))
                logprob.append(round(-float(np.log(np.exp(row - row[first]).sum())), 6))
            print(f"\r{position + 1} of {length - 1} positions", end="", flush=True)
        print()
        return [{"token_ids": text[len(prompt) :][:NUM_TOKENS], "margins": margin[:NUM_TOKENS],
                 "logprobs": logprob[:NUM_TOKENS]}
                for text, prompt, margin, logprob in zip(texts, prompts, margins, logprobs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    digest = hashlib.sha256(args.model.read_bytes()).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{args.model}: got SHA-256 {digest}, expected {SHA256}")
    reader = gguf.GGUFReader(args.model)
    tokenizer, model = Tokenizer(reader), Llama(reader)
    texts = [CHAT.format(message) for message in MESSAGES] + TEXTS
    prompts = [tokenizer.encode(text) for text in texts]
    lines = []
    for text, prompt, reply in zip(texts, prompts, model.greedy(prompts)):
        lines.append(json.dumps({"prompt": text, "prompt_token_ids": prompt} | reply))
        print(min(reply["margins"]), json.dumps(text[-60:]))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(
        f'{{"sha256": "{SHA256}", "prompts": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
