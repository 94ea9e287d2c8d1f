"""Times swaps of models: from a request for a model that is not loaded to its first text.

    scripts/build.sh quire
    python bench/peers/model_swaps.py --quire build/quire --llama-server llama-server \\
        --models SmolLM2-135M-Instruct.Q4_1.gguf quire-abacus.gguf --rounds 10
    python bench/peers/model_swaps.py --quire build-cuda/quire --models Llama-3.2-1B Llama-3.1-8B --log quire.log

Each program serves the models with room for one loaded model, so that every request for the other
model unloads one and loads one. The programs take turns, a request each, and both are idle otherwise.
A time is from the connection to the first piece of text in the stream; a figure is the median, and
the largest time stands beside it. Both programs have a context of 2,048 tokens per sequence, one
sequence, and the prompt and threads are the same. The files are in the page cache, as a model's are
that has been used before. Without --llama-server, Quire is timed alone, and a model may be a folder.
"""

import argparse
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

START_TIMEOUT_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of several models, of which one is loaded at a time."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self.port = port
        self.log = log
        self.process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} does not serve:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)

    def is_ready(self) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def first_text_s(self, model: str) -> float:
        """Returns the seconds until the first text, and reads the stream to its end."""
        body = json.dumps({"model": model, "prompt": "Once upon a time", "max_tokens": 4, "temperature": 0, "stream": True})
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_TIMEOUT_S)
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        first = None
        for line in response:
            if response.status != 200:
                raise SystemExit(f"status {response.status}: {line.decode()}")
            if first is None and line.startswith(b"data: {") and json.loads(line[6:])["choices"][0].get("text"):
                first = time.monotonic() - begin
        if first is None:
            raise SystemExit(f"{model} gave no text; see {self.log}")
        return first

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def start_quire(binary: str, models: dict[str, Path], threads: int, folder: Path) -> Server:
    sections = "".join(f"[{name}]\nmodel = {path}\n\n" for name, path in models.items())
    (folder / "quire.ini").write_text(f"[*]\nmax-num-seqs = 1\nmax-model-len = 2048\nthreads = {threads}\n\n{sections}")
    port = free_port()
    return Server([binary, "serve", "--models", str(folder / "quire.ini"), "--max-loaded-models", "1", "--port", str(port)],
                  port, folder / "quire.log")


def start_llama(binary: str, models: dict[str, Path], threads: int, folder: Path) -> Server:
    sections = "".join(f"[{name}]\nmodel = {path}\n\n" for name, path in models.items())
    (folder / "llama.ini").write_text(f"version = 1\n\n[*]\nc = 2048\nnp = 1\nthreads = {threads}\n\n{sections}")
    port = free_port()
    return Server([binary, "--models-preset", str(folder / "llama.ini"), "--models-max", "1", "--port", str(port)],
                  port, folder / "llama.log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quire", required=True, help="the binary")
    parser.add_argument("--llama-server", help="llama.cpp's llama-server; without it, Quire is timed alone")
    parser.add_argument("--models", required=True, nargs="+", type=Path, help="at least two GGUF files, or folders")
    parser.add_argument("--rounds", type=int, default=10, help="swaps per model and program")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--log", type=Path, help="keep Quire's log in this file")
    arguments = parser.parse_args()
    models = {path.name.removesuffix(".gguf"): path.resolve() for path in arguments.models}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        servers = {"Quire": start_quire(str(Path(arguments.quire).resolve()), models, arguments.threads, folder)}
        if arguments.llama_server:
            servers["llama-server"] = start_llama(arguments.llama_server, models, arguments.threads, folder)
        times: dict[tuple[str, str], list[float]] = {}
        try:
            for round_idx in range(arguments.rounds + 1):
                for model in models:
                    for program, server in servers.items():
                        seconds = server.first_text_s(model)
                        if round_idx > 0:  # the first round reads the files into the page cache
                            times.setdefault((model, program), []).append(seconds)
        finally:
            for server in servers.values():
                server.stop()
            if arguments.log:
                arguments.log.write_bytes(servers["Quire"].log.read_bytes())
    print("| model | program | median, s | largest, s |\n|---|---|---|---|")
    for (model, program), values in times.items():
        print(f"| {model} | {program} | {statistics.median(values):.3f} | {max(values):.3f} |")
    for model in models if arguments.llama_server else ():
        ratios = [b / a for a, b in zip(times[model, "Quire"], times[model, "llama-server"])]
        print(f"{model}: llama-server takes {statistics.median(ratios):.2f} times as long (median of the rounds' ratios)")


if __name__ == "__main__":
    main()
