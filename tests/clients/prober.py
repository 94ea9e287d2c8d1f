"""Polls /health from a separate process, so that a busy test does not slow it down."""

import multiprocessing
import socket
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType

_TIMEOUT_S = 30.0


@dataclass
class Probes:
    seconds: list[float]
    num_failed: int

    def quantile(self, share: float) -> float:
        return quantile(self.seconds, share)

    def __str__(self) -> str:
        in_ms = [1000 * self.quantile(share) for share in (0.5, 0.99, 1.0)]
        return (
            f"{len(self.seconds)} probes, p50 {in_ms[0]:.1f}, p99 {in_ms[1]:.1f}, "
            f"most {in_ms[2]:.1f} ms, {self.num_failed} failed"
        )


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class HealthProber:
    """Sends GET /health on a new connection each time, until `stop`."""

    def __init__(self, port: int, interval_s: float = 0.02) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_probe, args=(theirs, port, interval_s))

    def __enter__(self) -> "HealthProber":
        self._process.start()
        self._ours.recv()  # the prober has started
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()

    def stop(self) -> Probes:
        self._ours.send(None)
        probes: Probes = self._ours.recv()
        self._process.join()
        return probes


def _probe(pipe: Connection, port: int, interval_s: float) -> None:
    probes = Probes([], 0)
    _is_healthy(port)
    pipe.send(None)
    while not pipe.poll(interval_s):
        begin = time.monotonic()
        if not _is_healthy(port):
            probes.num_failed += 1
        probes.seconds.append(time.monotonic() - begin)
    pipe.send(probes)


def _is_healthy(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := client.recv(4096):
                answer += piece
        return answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'{"status":"ok"}')
    except OSError:
        return False
