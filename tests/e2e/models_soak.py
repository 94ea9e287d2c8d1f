"""Loads a server of three models for hours, with everything that goes wrong in practice, and checks that nothing is
lost and that memory is flat.

    models_soak.py --quire BINARY --models DIR [--hours 8] [--seed 1]

DIR has quire-abacus and quire-abacus-deepseek. The server keeps two of three models at a time, so that requests swap
them. Meanwhile children are killed, clients leave in the middle of an answer and of an upload, and the file system of
the server's caches fills up. A greedy answer must equal its model's answer before the faults; an error is allowed
only near a kill of that model's process, and never ends the server. The resident memory of the server is
compared between the second quarter of the time and the last one. Needs root to mount the small file system; without
it, that fault is left out, and the summary says so.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

PROMPTS = [f"What is {a} + {b}?" for a in range(2, 12) for b in range(3, 40, 7)]
MAX_TOKENS = 24
NUM_CLIENTS = 6
NEAR_KILL_S = 60.0  # after a kill, errors of the killed model are expected
KILL_EVERY_S = 45.0  # in the mean
FULL_DISK_EVERY_S = 300.0
PATIENCE_S = 180.0
DISK_BYTES = 64 << 20
MOST_GROWTH = 1.05
MIB = 1 << 20


class Server:
    """`quire serve --models FILE` with two of three models loaded at a time."""

    def __init__(self, quire: str, models: Path, scratch: Path, disk: Path) -> None:
        self.names = ["abacus", "abacus-int8", "deepseek"]
        presets = scratch / "models.ini"
        presets.write_text("[*]\nkv-cache-memory = 64M\nthreads = 1\n"
                           f"[abacus]\nmodel = {models}/quire-abacus/model.gguf\n"
                           f"[abacus-int8]\nmodel = {models}/quire-abacus/model.gguf\nkv-cache-dtype = int8\n"
                           f"[deepseek]\nmodel = {models}/quire-abacus-deepseek\n")
        self.cache = disk / "cache"
        self.cache.mkdir()
        self._log = (scratch / "server.log").open("w")
        environment = os.environ | {"XDG_CACHE_HOME": str(self.cache)}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [quire, "serve", "--models", str(presets), "--max-loaded-models", "2", "--port", str(self.port)],
            stdout=self._log, stderr=self._log, env=environment)
        deadline = time.monotonic() + 60
        while not self.is_healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start:\n{self.log()}")
            time.sleep(0.1)

    def log(self) -> str:
        return Path(self._log.name).read_text()[-4000:]

    def is_healthy(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        return False

    def children(self) -> dict[str, int]:
        """Process ids by model name, from the models' paths in the command lines of the children."""
        found = {}
        # The children of each thread.
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        for pid in [int(pid) for path in lists for pid in path.read_text().split()]:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                is_int8, is_deepseek = (any(part in word for word in words) for part in ("int8", "deepseek"))
                found["deepseek" if is_deepseek else "abacus-int8" if is_int8 else "abacus"] = pid
        return found

    def resident_bytes(self) -> int:
        """The memory of the server's own process: the models' processes come and go."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def stop(self) -> list[str]:
        """Ends the server, and returns its faults."""
        children = self.children()
        self.process.send_signal(signal.SIGTERM)
        faults = []
        try:
            status = self.process.wait(timeout=60)
            if status != 0:
                faults.append(f"SIGTERM ended the server with {status}, expected 0")
        except subprocess.TimeoutExpired:
            self.process.kill()
            faults.append("the server did not end within 60 s of SIGTERM")
        left = [name for name, pid in children.items() if Path(f"/proc/{pid}").exists()]
        if left:
            faults.append(f"the processes of {', '.join(left)} outlived the server")
        return faults


class Soak:
    def __init__(self, server: Server, end: float, seed: int) -> None:
        self._server, self._end, self._seed = server, end, seed
        self._lock = threading.Lock()
        self._expected: dict[tuple[str, str], str] = {}
        self._killed: dict[str, float] = collections.defaultdict(lambda: -1e9)
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []
        self.resident: list[tuple[float, int]] = []

    def is_over(self) -> bool:
        return time.monotonic() >= self._end or len(self.faults) > 20

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def learn(self) -> None:
        """The greedy answers of all models, before anything goes wrong."""
        for model in self._server.names:
            for prompt in PROMPTS:
                self._expected[model, prompt] = self._ask(model, prompt, streams=False)

    @contextlib.contextmanager
    def _post(self, model: str, prompt: str, streams: bool) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE_S)
        try:
            body = json.dumps({"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0,
                               "max_tokens": MAX_TOKENS, "stream": streams})
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            yield connection.getresponse()
        finally:
            connection.close()

    def _ask(self, model: str, prompt: str, streams: bool, leaves: bool = False) -> str:
        """Raises an error for every response but a whole one."""
        with self._post(model, prompt, streams) as response:
            if response.status != 200:
                raise RuntimeError(f"status {response.status}: {response.read()[:300].decode(errors='replace')}")
            if not streams:
                return json.load(response)["choices"][0]["message"]["content"]
            text = ""
            for line in response:
                if line.startswith(b"data: [DONE]"):
                    return text
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line[6:])
                if "error" in event:
                    raise RuntimeError(f"an error in the stream: {event['error']}")
                for choice in event["choices"]:
                    text += choice["delta"].get("content") or ""
                if leaves and text:
                    return ""
            raise RuntimeError("the stream ended without [DONE]")

    def _cut_upload(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._server.port), 10) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b'Content-Length: 100000\r\n\r\n{"model": "abacus", "messages": [')
            time.sleep(0.05)

    def play(self, number: int) -> None:
        rng = random.Random(f"{self._seed} {number}")
        while not self.is_over():
            if rng.random() < 0.05:
                self._cut_upload()
                self.count("uploads cut")
                continue
            # A model is kept for a few requests, as one client does, or every request would swap.
            model = rng.choice(self._server.names)
            for _ in range(rng.randrange(1, 12)):
                self._check(model, rng.choice(PROMPTS), rng)

    def _check(self, model: str, prompt: str, rng: random.Random) -> None:
        begin = time.monotonic()
        leaves = rng.random() < 0.1
        try:
            answer = self._ask(model, prompt, streams=leaves or rng.random() < 0.5, leaves=leaves)
        except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
            since_kill = begin - self._killed[model]
            if since_kill < NEAR_KILL_S or self._killed[model] > begin:
                self.count("errors of a killed model")
            else:
                self._fail(f"{model}: {error}; its process was not killed before")
            time.sleep(0.5)
            return
        if leaves:
            self.count("clients that left")
        elif answer == self._expected[model, prompt]:
            self.count("right answers")
        else:
            self._fail(f"{model}, {prompt!r}: got {answer!r}, expected {self._expected[model, prompt]!r}")

    def _fail(self, fault: str) -> None:
        with self._lock:
            self.faults.append(fault)
        print(f"FAULT {fault}", flush=True)

    def kill_children(self) -> None:
        rng = random.Random(f"{self._seed} kills")
        while not self.is_over():
            time.sleep(min(rng.expovariate(1 / KILL_EVERY_S), max(self._end - time.monotonic(), 0.1)))
            children = self._server.children()
            if not children:
                continue
            name = rng.choice(sorted(children))
            self._killed[name] = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(children[name], signal.SIGKILL)
                self.count("kills")

    def fill_disk(self) -> None:
        filler = self._server.cache / "filler"
        while not self.is_over():
            with contextlib.suppress(OSError), filler.open("wb") as file:  # No space left on device
                while True:
                    file.write(bytes(MIB))
                    file.flush()
            self.count("times the disk was full")
            time.sleep(min(FULL_DISK_EVERY_S / 2, max(self._end - time.monotonic(), 0.1)))
            filler.unlink(missing_ok=True)
            time.sleep(min(FULL_DISK_EVERY_S / 2, max(self._end - time.monotonic(), 0.1)))

    def watch(self) -> None:
        while not self.is_over():
            self.resident.append((time.monotonic(), self._server.resident_bytes()))
            if self._server.process.poll() is not None:
                self._fail(f"the server ended with {self._server.process.returncode}")
                self._end = 0.0
            time.sleep(min(10.0, max(self._end - time.monotonic(), 0.1)))


def growth(resident: list[tuple[float, int]], begin: float, end: float) -> float:
    """The last quarter's median over the second quarter's."""
    quarter = (end - begin) / 4

    def median(first: float, last: float) -> float:
        return statistics.median(size for at, size in resident if first <= at < last)

    return median(begin + 3 * quarter, end + 1) / median(begin + quarter, begin + 2 * quarter)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mounts a small file system at the folder, if that is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "quire-soak", str(folder)]
    is_mounted = shutil.which("mount") is not None and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def run(options: argparse.Namespace, scratch: Path) -> int:
    (scratch / "disk").mkdir()
    with small_disk(scratch / "disk") as has_small_disk:
        server = Server(options.quire, options.models.resolve(), scratch, scratch / "disk")
        soak = Soak(server, time.monotonic() + 1e9, options.seed)
        try:
            soak.learn()
            begin = time.monotonic()
            soak._end = begin + 3600 * options.hours
            work = [soak.kill_children, soak.watch] + ([soak.fill_disk] if has_small_disk else [])
            threads = [threading.Thread(target=target) for target in work]
            threads += [threading.Thread(target=soak.play, args=(number,)) for number in range(NUM_CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            end = time.monotonic()
        finally:
            soak.faults += server.stop()
    for what, count in sorted(soak.counts.items()):
        print(f"{what}: {count}")
    if not has_small_disk:
        print("the disk was never full: mounting a small one needs root")
    for what in ("right answers", "kills", "clients that left", "uploads cut"):
        if soak.counts[what] == 0:
            soak.faults.append(f"no {what}: the test ran too little")
    ratio = growth(soak.resident, begin, end)
    print(f"resident memory of the server: {soak.resident[-1][1] / MIB:.1f} MiB, {ratio:.3f} of the second quarter's")
    if ratio > MOST_GROWTH:
        soak.faults.append(f"the server's memory grew by {ratio:.3f}, expected at most {MOST_GROWTH}")
    for fault in soak.faults:
        print(f"FAULT {fault}")
    if soak.faults:
        print(server.log())
    return 1 if soak.faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return run(options, Path(scratch))


if __name__ == "__main__":
    sys.exit(main())
