"""The error of a program's products: the mean difference of log probabilities from those that Quire
computes from the same weights dequantized to F32.

    python bench/peers/exactness.py --work DIR FILE.gguf

prints it for Quire's default, for --cpu-activations int8 and for llama.cpp, all with a KV cache in
F32. llama_cpp_compare.py prints it beside each speed. The text is TEXT, or random ids if the file
has no vocabulary. Per position, the tokens are the 20 most likely ones of F32.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "docs/architecture.md"
NUM_TOKENS = 256
TOP = 20  # log probabilities per position

LogProbs = list[dict[int, float]]  # by id, per position from the second on


def write_f32(source: Path, out: Path) -> None:
    """Copies a GGUF file with all tensors dequantized."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(out, architecture, use_temp_file=True)
    for name, entry in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = entry.types[0]
        item_kind = entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, entry.contents(), kind, sub_type=item_kind)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def text_ids(quire: str, path: Path) -> list[int]:
    """The ids of the text, or random ones below the vocabulary's size if the file has no tokenizer."""
    fields = gguf.GGUFReader(path).fields
    if fields["tokenizer.ggml.model"].contents() == "no_vocab":
        architecture = fields["general.architecture"].contents()
        size = fields[f"{architecture}.vocab_size"].contents()
        return [int(i) for i in np.random.default_rng(3).integers(3, size, NUM_TOKENS)]
    command = [quire, "tokenize", "--tokenizer", str(path), "--input", "-"]
    line = json.dumps(TEXT.read_text())
    output = subprocess.run(command, input=line, capture_output=True, text=True, check=True).stdout
    return json.loads(output)[:NUM_TOKENS]


def quire_logprobs(quire: str, path: Path, ids: list[int], *flags: str) -> LogProbs:
    command = [quire, "generate", "--model", str(path), "--device", "cpu", "--format", "json",
               "--prompt-ids", ",".join(map(str, ids)), "--prompt-logprobs", str(TOP), "--temperature", "0",
               "--max-tokens", "1", "--ignore-eos", "--max-model-len", str(NUM_TOKENS + 64),
               "--kv-cache-dtype", "f32", *flags]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    entries = json.loads(output.splitlines()[0])["prompt_logprobs"][1:]
    return [{token["token_id"]: token["logprob"] for token in entry} for entry in entries]


def mean_difference(got: LogProbs, expected: LogProbs) -> float:
    """Over the tokens that both sides have."""
    differences = [abs(got[i][token] - logprob) for i, entry in enumerate(expected)
                   for token, logprob in entry.items() if token in got[i]]
    return float(np.mean(differences))


class Reference:
    """The log probabilities of F32, and the errors against them."""

    def __init__(self, quire: str, path: Path, work: Path) -> None:
        """Keeps them in `work`, but not the copy of the weights."""
        self.quire, self.path = quire, path
        kept = work / f"{path.stem}.f32-logprobs.json"
        if not kept.exists():
            plain = work / f"{path.stem}.as-f32.gguf"
            write_f32(path, plain)
            ids = text_ids(quire, path)
            entries = [list(entry.items()) for entry in quire_logprobs(quire, plain, ids)]
            plain.unlink()
            kept.write_text(json.dumps({"ids": ids, "logprobs": entries}))
        stored = json.loads(kept.read_text())
        self.ids: list[int] = stored["ids"]
        self.expected: LogProbs = [dict(entry) for entry in stored["logprobs"]]

    def error_of_quire(self, *flags: str) -> float:
        return mean_difference(quire_logprobs(self.quire, self.path, self.ids, *flags), self.expected)

    def question(self) -> str:
        """A line for llama_cpp_worker.py, whose reply error_of_peer() takes."""
        return "logprobs " + json.dumps({"ids": self.ids, "tokens": [list(entry) for entry in self.expected]})

    def error_of_peer(self, reply: dict[str, Any]) -> float:
        got = [dict(zip(entry, row)) for entry, row in zip(self.expected, reply["logprobs"])]
        return mean_difference(got, self.expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="for the copy in F32, and the kept log probabilities")
    parser.add_argument("--quire", default=str(ROOT / "build/quire"))
    parser.add_argument("--peer", choices=["llama_cpp", "ik_llama_cpp", "none"], default="llama_cpp")
    args = parser.parse_args()
    reference = Reference(args.quire, args.model, args.work)
    print(f"Quire {reference.error_of_quire():.5f}")
    print(f"Quire, int8 {reference.error_of_quire('--cpu-activations', 'int8'):.5f}")
    if args.peer == "none":
        return
    command = [sys.executable, str(Path(__file__).parent / "llama_cpp_worker.py"), args.peer, str(args.model), "2"]
    output = subprocess.run(command, input=reference.question() + "\n", capture_output=True, text=True, check=True)
    print(f"{args.peer} {reference.error_of_peer(json.loads(output.stdout.splitlines()[1])):.5f}")


if __name__ == "__main__":
    main()
