"""Compares Quire's tokenizers with the `tokenizers` package on the same mixed text: the ids must be
equal, and the speed of both on one thread is the shortest CPU time of several calls in one run.

    pip install tokenizers==0.23.3
    python3 bench/peers/tokenizer.py --bench BUILD/bench/bench_tokenizer --tokenizers DIR...
"""

from __future__ import annotations

import argparse
import array
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "golden"))

ROUNDS = 3

import tokenizers  # noqa: E402
from tokenizer_text import mixed_text  # noqa: E402


def first_difference(text: str, peer: tokenizers.Tokenizer, ours: list[int]) -> str:
    encoding = peer.encode(text, add_special_tokens=False)
    theirs = encoding.ids
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    start = encoding.offsets[min(at, len(theirs) - 1)][0]
    around = text[max(start - 20, 0):start + 20]
    return f"id {at}: ours {ours[at:at + 5]}, theirs {theirs[at:at + 5]}, at {around!r}"


def best_peer_seconds(peer: tokenizers.Tokenizer, text: str, budget: float) -> float:
    """Returns the faster of its two modes: with offsets, and without."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 2 or spent < budget:
        start = time.process_time()
        if runs % 2 == 0:
            peer.encode(text, add_special_tokens=False)
        else:
            peer.encode_batch_fast([text], add_special_tokens=False)
        taken = time.process_time() - start
        best, spent, runs = min(best, taken), spent + taken, runs + 1
    return best


def run_bench(directory: Path, bench: Path, text: str, seconds: float) -> tuple[dict[str, float], list[int]]:
    with tempfile.TemporaryDirectory() as scratch:
        text_file, ids_file = Path(scratch) / "text", Path(scratch) / "ids"
        text_file.write_bytes(text.encode())
        output = subprocess.run([str(bench), str(directory), str(text_file), str(ids_file), str(seconds)],
                                check=True, capture_output=True, text=True).stdout
        ids = array.array("i")
        ids.frombytes(ids_file.read_bytes())
    return json.loads(output), ids.tolist()


def compare(directory: Path, bench: Path, text: str, seconds: float) -> bool:
    start = time.process_time()
    peer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    peer_load = time.process_time() - start
    ours: dict[str, float] = {}
    theirs = float("inf")
    ids: list[int] = []
    for _ in range(ROUNDS):  # alternating, so that slow phases of the machine affect both
        figures, ids = run_bench(directory, bench, text, seconds / ROUNDS)
        ours = {key: min(value, ours.get(key, value)) for key, value in figures.items()}
        theirs = min(theirs, best_peer_seconds(peer, text, seconds / ROUNDS))
    same = ids == peer.encode(text, add_special_tokens=False).ids
    megabytes = ours["num_bytes"] / 1e6
    print(f"{directory.name:20} ids {'equal' if same else 'DIFFER':6} {len(ids):8} | "
          f"encode MB/s: quire {megabytes / ours['encode_s']:6.1f} (first call {megabytes / ours['first_encode_s']:5.1f}), "
          f"tokenizers {megabytes / theirs:5.2f}, ratio {theirs / ours['encode_s']:5.1f} | "
          f"load s: {ours['load_s']:.3f}, {peer_load:.3f} | decode MB/s: {megabytes / ours['decode_s']:.1f}")
    if not same:
        print("   ", first_difference(text, peer, ids))
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True, help="the built bench_tokenizer")
    parser.add_argument("--tokenizers", type=Path, nargs="+", required=True, help="folders with a tokenizer.json")
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time for each")
    parser.add_argument("--assigned-only", action="store_true", help="no random code points in the text")
    args = parser.parse_args()
    text = mixed_text(args.bytes, args.seed, unassigned=not args.assigned_only)
    print(f"{len(text.encode())} bytes, seed {args.seed}, tokenizers {tokenizers.__version__}, one thread")
    results = [compare(directory, args.bench, text, args.seconds) for directory in args.tokenizers]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
