"""Runs a `quire serve` for one test, on a free port."""

import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from types import TracebackType

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_SAMPLE = re.compile(r"^([a-z_:]+)(?:\{.*\})? (\S+)$")


def free_port() -> int:
    """Returns a port of the loopback interface that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Served:
    """Runs from `with` to its end, where SIGTERM must end the server with exit code 0."""

    def __init__(self, binary: Path, *flags: str, port: int = 0) -> None:
        self._process = subprocess.Popen(
            [str(binary.resolve()), "serve", "--port", str(port), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._log: list[str] = []
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._log.extend, args=(self._process.stderr,))
        self._reader.start()
        self.url = self._wait_for_url()
        self.port = int(self.url.rsplit(":", 1)[1])

    def _wait_for_url(self) -> str:
        """Waits until the server prints its line, or ends."""
        timer = threading.Timer(_START_TIMEOUT_S, self._process.kill)
        timer.start()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        timer.cancel()
        found = re.fullmatch(r"serving (\S+) at (\S+)\n", line)
        if found is None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            raise RuntimeError(f"the server did not start: {line!r} {self.log()}")
        self.model = found[1]
        return found[2]

    def __enter__(self) -> "Served":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = self.stop()
        if kind is None and status != 0:
            raise AssertionError(f"SIGTERM ended the server with {status}: {self.log()[-2000:]}")

    def stop(self) -> int:
        self._process.terminate()
        try:
            status = self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._close()
        return status

    def kill(self) -> None:
        """Ends the server without a drain. The system has closed its connections when this returns."""
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._reader.join()
        assert self._process.stdout is not None and self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()

    def log(self) -> str:
        return "".join(self._log)

    def metrics(self) -> dict[str, float]:
        """Returns the metrics without labels; values that differ only in their labels are added."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as answer:
            text = answer.read().decode()
        sums: dict[str, float] = {}
        for line in text.splitlines():
            sample = _SAMPLE.match(line)
            if sample is not None:
                sums[sample[1]] = sums.get(sample[1], 0.0) + float(sample[2])
        return sums

    def num_used_blocks(self) -> int:
        metrics = self.metrics()
        return int(metrics["quire_kv_blocks"] - metrics["quire_kv_blocks_free"])

    def num_unfinished(self) -> int:
        """Returns the requests that the server has. The engine may have finished one that still takes a place of the queue."""
        with urllib.request.urlopen(self.url + "/load", timeout=30) as answer:
            return int(json.load(answer)["server_load"])

    def seconds_until_free(self, timeout_s: float = 10.0) -> float:
        """Returns the seconds until the server has no request and no block is in use."""
        begin = time.monotonic()
        while self.num_unfinished() > 0 or self.num_used_blocks() > 0:
            if time.monotonic() - begin > timeout_s:
                raise AssertionError(f"still held after {timeout_s} s: {self.metrics()}")
        return time.monotonic() - begin

    def rss_bytes(self) -> int:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("the server is gone")

    def cpu_seconds(self) -> float:
        # Fields 14 and 15 are counted from the end of the name, which may contain spaces.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
