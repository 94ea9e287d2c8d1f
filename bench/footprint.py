"""Measures a Quire process: time to the first token, resident memory, and CPU time while idle.

    python bench/footprint.py --quire build/quire --config-1b CONFIG.json
"""

import argparse
import os
import re
import statistics
import subprocess
import time
from pathlib import Path

PROMPT = "Sam has 3 apples and buys 4 more. How many apples does Sam have?"
MIB = 1 << 20


def first_token_s(quire: str) -> float:
    """Returns the seconds from the process's start to the first byte of its output."""
    start = time.perf_counter()
    process = subprocess.Popen([quire, "generate", "--chat", "--prompt", PROMPT, "--temperature", "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    os.read(process.stdout.fileno(), 1)
    elapsed = time.perf_counter() - start
    process.stdout.read()
    process.wait()
    return elapsed


def memory(name: str, command: list[str]) -> None:
    """Compares the peak resident memory with the memory plan."""
    process = subprocess.Popen([*command, "--log-level", "info"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    log = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    plan = re.search(r"weights ([\d.]+) MiB, KV cache ([\d.]+) MiB .* (\d+) tokens", log)
    if status != 0 or plan is None:
        raise SystemExit(f"{' '.join(command)} failed:\n{log}")
    weights, kv = float(plan[1]), float(plan[2])
    resident = usage.ru_maxrss * 1024 / MIB
    over = (resident - weights - kv) * MIB / 1e6
    above_weights = (resident - weights) * MIB / 1e6
    print(f"{name}: resident {resident:.1f} MiB; weights {weights:.1f}, planned KV {kv:.1f}; above weights + KV "
          f"{over:.1f} MB, above weights alone (with the KV that was touched) {above_weights:.1f} MB; bar 60 MB")


def idle_share(quire: str, seconds: float) -> float:
    """Returns the CPU time that `quire chat` takes while idle, as a share of one core."""
    process = subprocess.Popen([quire, "chat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    assert process.stdin and process.stdout
    process.stdin.write(PROMPT.encode() + b"\n")
    process.stdin.flush()
    os.read(process.stdout.fileno(), 1)
    time.sleep(3)  # the output ends

    def ticks() -> int:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])  # utime, stime

    before = ticks()
    time.sleep(seconds)
    share = (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds
    if process.poll() is not None:
        raise SystemExit(f"quire chat ended with {process.returncode} instead of waiting")
    process.stdin.close()
    process.stdout.read()
    process.wait()
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", default="build/quire")
    parser.add_argument("--config-1b", type=Path, help="a config.json, for dummy weights of its shape")
    parser.add_argument("--runs", type=int, default=11)
    args = parser.parse_args()
    times = [first_token_s(args.quire) for _ in range(args.runs)]
    print(f"start to first token: median {statistics.median(times):.3f} s, worst {max(times):.3f} s; bar 0.3 s")
    memory("embedded model", [args.quire, "generate", "--chat", "--prompt", PROMPT])
    if args.config_1b:
        memory("1B shape, BF16", [args.quire, "generate", "--model", str(args.config_1b), "--load-format", "dummy",
                                  "--dtype", "bf16", "--prompt-ids", "1,2,3", "--max-tokens", "4",
                                  "--max-model-len", "2048", "--kv-cache-memory", "128M"])
    print(f"idle: {idle_share(args.quire, 10):.2%} of a core; bar 1%")


if __name__ == "__main__":
    main()
