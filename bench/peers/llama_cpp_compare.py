"""Compares Quire with llama.cpp on this machine's CPU: equal shapes and workloads, alternating.

    scripts/build.sh quire bench_engine
    pip install llama-cpp-python==0.3.36 gguf==0.19.0 numpy==2.4.6      # built from source, for this CPU
    python bench/peers/llama_cpp_compare.py --work /tmp/peers --stories15m DIR

Or with ik_llama.cpp, whose wheel has AVX2 only, and with the 8B shape, of which two copies must fit into
the memory:

    pip install --no-binary :all: --no-deps ik-llama-cpp-python==0.1.5
    python bench/peers/llama_cpp_compare.py --work /tmp/peers --peer ik_llama_cpp --models llama-8b \\
        --dtypes q4_k_m

Or on one GGUF file, such as the model of `quire pull smollm2`:

    python bench/peers/llama_cpp_compare.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --dtypes q4_1 --rounds 3

Both programs stay loaded, each in its own process, and take turns, because the speed of shared
machines drifts. With --apart they run one after the other, for models of which the memory holds
only one copy. For each case, a round is a plain read of the weights' bytes, then Quire, then the
peer. A figure is the median over the rounds; a ratio is the median over the rounds' ratios. Times
cover whole steps: scheduling, model, attention and the greedy choice in Quire; llama_decode and the
greedy choice in the peer, in the better of its two flash-attention settings. The errors beside them
are those of exactness.py.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable

from exactness import Reference
from llama_cpp_models import FILE_TYPES, QUANTIZED, SHAPES, Model, make_model

HERE = Path(__file__).parent
CONTEXT = 2048
# The type of the activations to which Quire rounds as the peers do, by the type of the weights.
ROUNDED = {"bf16": "bf16"} | dict.fromkeys(QUANTIZED, "int8")


@dataclass(frozen=True)
class Case:
    name: str
    num_seqs: int
    prompt_len: int
    output_len: int
    bars: dict[str, float]  # by dtype

    @property
    def is_prefill(self) -> bool:
        return self.output_len == 1

    def work(self, round_idx: int) -> str:
        seed = 1000 + round_idx if self.is_prefill else 0  # a prefill's prompt is always new
        return f"run {self.num_seqs} {self.prompt_len} {self.output_len} {seed}"

    def rate(self, times: dict[str, float]) -> float:
        if self.is_prefill:
            return self.num_seqs * self.prompt_len / times["prefill_s"]
        return times["decode_tokens"] / times["decode_s"]


def cases(length: int) -> list[Case]:
    def bars(wide: float, quantized: float) -> dict[str, float]:
        return {"f32": wide, "f16": wide, "bf16": wide} | dict.fromkeys(QUANTIZED, quantized)

    return [Case("prefill 512", 1, 512, 1, bars(1.1, 1.05)),
            Case("decode, 1 sequence", 1, 8, length, bars(1.2, 1.1)),
            Case("decode, 8 sequences", 8, 8, length, bars(1.4, 1.3)),
            Case("decode, 32 sequences", 32, 8, length, bars(1.5, 1.4)),
            Case("decode behind 1024 tokens", 1, 1024, length, bars(1.25, 1.2))]


class Program:
    """A process that replies to each line with JSON."""

    def __init__(self, command: list[str], nice: int) -> None:
        self.process = subprocess.Popen(["nice", "-n", str(nice), *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        start_new_session=True)
        group = Path(f"/proc/{self.process.pid}/autogroup")  # Linux divides cores between sessions first
        if nice and group.exists():
            group.write_text(str(nice))
        self.hello = self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        time.sleep(0.02)  # its threads stop spinning before the other program runs
        return answer

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Round:
    quire: float  # tokens/s
    flash: float
    no_flash: float
    read_s: float  # a plain read of the weights' bytes, just before


def play_quire(case: Case, quire: Program, round_idx: int) -> dict[str, float]:
    return {"read_s": quire.ask("read")["read_s"], "quire": case.rate(quire.ask(case.work(round_idx)))}


def play_peer(case: Case, peer: Program, round_idx: int) -> dict[str, float]:
    return {"flash": case.rate(peer.ask(f"{case.work(round_idx)} 1")),
            "no_flash": case.rate(peer.ask(f"{case.work(round_idx)} 0"))}


def play_apart(play: Callable[[Case, Program, int], dict[str, float]], program: Program,
               chosen: list[tuple[Case, int]]) -> list[list[dict[str, float]]]:
    """Returns one program's part of every round, by case, and ends the program."""
    parts = []
    for case, num_rounds in chosen:
        play(case, program, 0)  # a warm-up
        parts.append([play(case, program, 1 + i) for i in range(num_rounds)])
    program.close()
    return parts


def summarize(names: dict[str, str], case: Case, rounds: list[Round], weight_bytes: int,
              errors: dict[str, float]) -> dict[str, Any]:
    flash = statistics.median(r.flash for r in rounds)
    no_flash = statistics.median(r.no_flash for r in rounds)
    better = "flash" if flash >= no_flash else "no_flash"
    ratio = statistics.median(r.quire / getattr(r, better) for r in rounds)
    row: dict[str, Any] = {**names, "case": case.name, "quire": statistics.median(r.quire for r in rounds),
                           "peer_flash": flash, "peer_no_flash": no_flash,
                           "ratio": ratio, "bar": case.bars[names["dtype"]], **errors}
    if case.num_seqs == 1 and not case.is_prefill:
        row["plain_read_gb_s"] = statistics.median(weight_bytes / r.read_s / 1e9 for r in rounds)
        row["quire_share_of_read"] = statistics.median(r.quire * r.read_s for r in rounds)
        row["peer_share_of_read"] = statistics.median(getattr(r, better) * r.read_s for r in rounds)
    return row | {"rounds": [asdict(r) for r in rounds]}


def verdict(value: float, bar: float) -> str:
    return "met" if value >= bar else "MISSED"


def print_row(row: dict[str, Any]) -> None:
    errors = "".join(f"{row[key]:9.5f}" if key in row else f"{'-':>9}" for key in ("quire_error", "peer_error"))
    print(f"{row['model']:10} {row['dtype']:6} {row['activations']:4} {row['case']:26} {row['quire']:9.1f} "
          f"{row['peer_flash']:9.1f} {row['peer_no_flash']:9.1f} {row['ratio']:6.2f}x {row['bar']:5.2f} "
          f"{verdict(row['ratio'], row['bar']):6} {errors}", flush=True)
    if row["model"] in SHAPES and row["case"] == "decode, 1 sequence":
        share = row["quire_share_of_read"]
        print(f"{'':16} of a plain read ({row['plain_read_gb_s']:.1f} GB/s): quire {share:.1%}, "
              f"peer {row['peer_share_of_read']:.1%}; bar 88% {verdict(share, 0.88)}", flush=True)


def measure_errors(model: Model, flags: list[str], peer: Program, args: argparse.Namespace) -> dict[str, float]:
    """Quire reads the peer's file, so that both have the same weights."""
    reference = Reference(str(args.quire), model.gguf, args.work or model.gguf.parent)
    return {"quire_error": reference.error_of_quire(*flags),
            "peer_error": reference.error_of_peer(peer.ask(reference.question()))}


def compare(model: Model, dtype: str, activations: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    is_small = model.name == "stories15M"
    threads = str(args.threads)
    flags = [] if dtype in QUANTIZED else ["--dtype", dtype]
    flags += ["--cpu-activations", activations]
    start_quire = partial(Program, [str(args.bench), "--model", str(model.config), *flags, "--threads", threads,
                                    "--max-model-len", str(CONTEXT)], args.nice)
    start_peer = partial(Program, [sys.executable, str(HERE / "llama_cpp_worker.py"), args.peer, str(model.gguf),
                                   threads], args.nice)
    chosen = [(case, args.rounds * (3 if is_small else 1)) for case in cases(129 if is_small else 17)
              if any(part in case.name for part in args.cases)]
    quire = start_quire()
    weight_bytes = quire.hello["weight_bytes"]
    rows = []
    errors: dict[str, float] = {}

    def add_row(case: Case, rounds: list[Round]) -> None:
        names = {"model": model.name, "dtype": dtype, "activations": activations}
        rows.append(summarize(names, case, rounds, weight_bytes, errors))
        print_row(rows[-1])

    if args.apart:
        of_quire = play_apart(play_quire, quire, chosen)
        of_peer = play_apart(play_peer, start_peer(), chosen)
        if args.errors:
            peer = start_peer()
            errors |= measure_errors(model, flags, peer, args)
            peer.close()
        for (case, _), own, others in zip(chosen, of_quire, of_peer):
            add_row(case, [Round(**ours, **theirs) for ours, theirs in zip(own, others)])
        return rows
    peer = start_peer()
    if args.errors:
        errors |= measure_errors(model, flags, peer, args)
    for case, num_rounds in chosen:
        def play(round_idx: int) -> Round:
            return Round(**play_quire(case, quire, round_idx), **play_peer(case, peer, round_idx))

        play(0)  # a warm-up, which also fills the cache before a decode
        add_row(case, [play(1 + i) for i in range(num_rounds)])
    quire.close()
    peer.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="compare on this file; --dtypes is its type, such as q4_1")
    parser.add_argument("--work", type=Path, help="where the models are made (5 GB; 8B: 30 GB)")
    parser.add_argument("--stories15m", type=Path, help="the checkpoint's folder")
    parser.add_argument("--peer", choices=["llama_cpp", "ik_llama_cpp"], default="llama_cpp", help="its package")
    parser.add_argument("--bench", type=Path, default=HERE.parents[1] / "build/bench/bench_engine")
    parser.add_argument("--models", nargs="+", choices=["stories15M", *SHAPES], default=["stories15M", "llama-1b"])
    parser.add_argument("--dtypes", nargs="+", choices=[*FILE_TYPES, *QUANTIZED], default=["f16", "bf16"])
    parser.add_argument("--activations", nargs="+", choices=["f32", "rounded"], default=["f32", "rounded"],
                        help="Quire's, in turn; the peers always round them to the weights' type or 8 bits")
    parser.add_argument("--no-errors", dest="errors", action="store_false",
                        help="measure only speeds; the errors need the memory of the weights in F32")
    parser.add_argument("--quire", type=Path, default=HERE.parents[1] / "build/quire", help="for the errors")
    parser.add_argument("--cases", nargs="+", default=[""], help="only cases with one of these in their names")
    parser.add_argument("--apart", action="store_true", help="the programs run one after the other")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="three times as many of the small model")
    parser.add_argument("--nice", type=int, default=0, help="of both programs; below zero needs root")
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    if args.gguf is None and args.work is None:
        parser.error("expected --work or --gguf")
    if args.gguf is None and "stories15M" in args.models and args.stories15m is None:
        parser.error("stories15M needs --stories15m")
    print(f"{'model':10} {'type':6} {'':4} {'tokens/s':26} {'quire':>9} {'flash':>9} {'no flash':>9} {'ratio':>7} "
          f"{'bar':>5} {'errors:':>7}{'quire':>9}{'peer':>9}")
    rows: list[dict[str, Any]] = []
    models = [(name, dtype) for name in args.models for dtype in args.dtypes]
    for name, dtype in [("", args.dtypes[0])] if args.gguf else models:
        model = (Model(args.gguf.stem, args.gguf, args.gguf) if args.gguf
                 else make_model(name, dtype, args.work, args.stories15m, CONTEXT, args.peer))
        for activations in args.activations:
            if activations == "rounded" and dtype not in ROUNDED:
                continue
            rows += compare(model, dtype, ROUNDED[dtype] if activations == "rounded" else "f32", args)
            if args.json:
                args.json.parent.mkdir(parents=True, exist_ok=True)
                args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
