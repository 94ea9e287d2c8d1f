"""Two servers of the embedded model behind each router that docs/scaling.md names, as deploy/ configures it.

    routers_test.py --quire BINARY [TEST …]

Exits with 77, which CTest reports as skipped, if a router is missing.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import calls
from http1 import Connection
from routers import HaProxy, Nginx, Ray, Router, Smg, VllmRouter, VllmRouterRandom
from served import Served, free_port

options = argparse.Namespace()

_FLAGS = ("--kv-cache-memory", "64M", "--max-num-seqs", "32")
_NUM_CONVERSATIONS = 13
_NUM_TURNS = 5
_NUM_CLIENTS = 12


async def converse(port: int, idx: int) -> int:
    """One conversation: each turn sends all earlier ones, and begins when the last one has ended."""
    rng = random.Random(idx)
    # 150 to 200 tokens, which differ from the first one on.
    system = f"{idx}. " + " ".join(calls.prompt(rng) for _ in range(6))
    messages = [{"role": "system", "content": system}]
    num_cached = 0
    for _ in range(_NUM_TURNS):
        messages.append({"role": "user", "content": calls.prompt(rng)})
        body = {"model": "quire-abacus", "messages": messages, "max_tokens": 16, "temperature": 0}
        async with Connection(port) as connection:
            answer = await connection.call("POST", calls.CHAT, body, x_session_id=f"trace-{idx}")
        assert answer.status == 200, answer
        response = answer.json()
        messages.append(response["choices"][0]["message"])
        num_cached += response["usage"]["prompt_tokens_details"]["cached_tokens"]
    return num_cached


async def trace(port: int) -> int:
    """Returns the prompt tokens of all conversations that were found in a KV cache."""
    return sum(await asyncio.gather(*(converse(port, idx) for idx in range(_NUM_CONVERSATIONS))))


async def stream(port: int) -> None:
    """Checks that a router passes tokens on when they come, and disconnects a client's server with the client."""
    body = calls.completion(random.Random(0), 300, model="quire-abacus", stream=True)
    async with Connection(port) as connection:
        begin_s = time.monotonic()
        await connection.send("POST", calls.COMPLETIONS, body)
        head = await connection.head()
        arrivals_s = [time.monotonic() - begin_s async for _ in connection.pieces(head)]
    assert arrivals_s[0] < 0.5 * arrivals_s[-1], f"the stream was buffered: {arrivals_s}"
    async with Connection(port) as connection:
        await connection.send("POST", calls.COMPLETIONS, body | {"max_tokens": 3500})
        head = await connection.head()
        await anext(connection.pieces(head))


async def check_metrics(port: int) -> None:
    """Checks that no spelling of /metrics, which the servers decode, reaches the metrics of a server."""
    spellings = "/metrics /metrics/ /metrics// /metrics?a /%6detrics /metrics%2F //metrics /a/../metrics /%256detrics"
    for path in spellings.split():
        async with Connection(port) as connection:
            answer = await connection.call("GET", path)
        assert answer.status == 404, f"{path}: {answer.status}"


@dataclass
class Call:
    """One request of the load, and how it ended."""

    request_id: str
    begin_s: float
    end_s: float = 0.0
    error: str | None = None


class Load:
    """Clients that send requests of 4 to 40 tokens one after another, half of them streamed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = False
        self.calls: list[Call] = []

    async def __aenter__(self) -> "Load":
        self._tasks = [asyncio.create_task(self._client(idx)) for idx in range(_NUM_CLIENTS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), 60)

    async def _client(self, idx: int) -> None:
        rng = random.Random(idx)
        while not self._is_over:
            call = Call(f"load-{idx}-{len(self.calls)}", time.monotonic())
            self.calls.append(call)
            try:
                await self._one(rng, call.request_id)
            except (AssertionError, KeyError, OSError, ValueError, asyncio.IncompleteReadError) as error:
                call.error = f"{type(error).__name__} {str(error)[:300]}"
            call.end_s = time.monotonic()

    async def _one(self, rng: random.Random, request_id: str) -> None:
        num_tokens = rng.randint(4, 40)
        body = calls.completion(rng, num_tokens, model="quire-abacus")
        is_stream = rng.random() < 0.5
        if is_stream:
            body |= {"stream": True, "return_token_ids": True}
        async with Connection(self._port) as connection:
            answer = await connection.call(
                "POST", calls.COMPLETIONS, body, x_request_id=request_id
            )
        if is_stream:
            calls.check_stream(answer, num_tokens)
        else:
            calls.check_whole(answer, num_tokens)


async def until(condition: Callable[[], bool], seconds: float, message: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, message
        await asyncio.sleep(0.02)


def has_done(served: Served, num_calls: int) -> bool:
    return served.log().count("request_id=load-") >= num_calls


class Checks:
    """The tests of one router. The class that derives from it is also a unittest.TestCase."""

    kind: type[Router]

    def test_prefix(self) -> None:
        """A multi-turn trace finds at least 90 % of the prefixes that one server with all requests finds."""
        self.assertGreaterEqual(asyncio.run(prefix_share(self.kind)), 0.9)

    def test_stream(self) -> None:
        asyncio.run(self._stream())

    async def _stream(self) -> None:
        with Served(options.quire, *_FLAGS) as one, Served(options.quire, *_FLAGS) as other:
            with self.kind([one.port, other.port], options.folder) as router:
                await stream(router.port)
                # 3,500 tokens would take longer than these 5 s.
                one.seconds_until_free(5)
                other.seconds_until_free(5)

    def test_failures(self) -> None:
        """Under load, one server is killed and started again, and then the other one drains. Only requests that
        ran on the killed server are lost."""
        asyncio.run(self._failures())

    async def _failures(self) -> None:
        first = Served(options.quire, *_FLAGS, port=free_port())
        second = Served(options.quire, *_FLAGS)
        try:
            with self.kind([first.port, second.port], options.folder) as router:
                async with Load(router.port) as load:
                    await until(
                        lambda: has_done(first, 20) and has_done(second, 20),
                        30,
                        f"a server got no requests: {router.log()}",
                    )
                    await until(lambda: first.num_unfinished() > 0, 10, "no request runs")
                    begin_kill_s = time.monotonic()
                    first.kill()
                    end_kill_s = time.monotonic()
                    num_before = len(load.calls)
                    await asyncio.sleep(2)
                    num_meanwhile = len(load.calls) - num_before
                    first = Served(options.quire, *_FLAGS, port=first.port)
                    await until(
                        lambda: has_done(first, 20),
                        30,
                        f"the server that came back got no requests: {router.log()}",
                    )
                    status = await asyncio.to_thread(second.stop)
                    self.assertEqual(status, 0, second.log()[-2000:])
                    await asyncio.sleep(1)
        finally:
            first.stop()
            second.stop()
        self.assertGreater(num_meanwhile, 20, "the server that stayed got few requests")
        for call in check_lost(self, self.kind.name, load, begin_kill_s, end_kill_s):
            self.assertNotIn(f"request_id={call.request_id} ", second.log(), "lost elsewhere")


def check_lost(
    case: unittest.TestCase, name: str, load: Load, begin_kill_s: float, end_kill_s: float
) -> list[Call]:
    """Checks that all lost requests ran when a server was killed, and returns them."""
    lost = [call for call in load.calls if call.error is not None]
    print(f"{name}: {len(lost)} of {len(load.calls)} requests lost with the killed server", file=sys.stderr)
    for call in lost:
        did_run = call.begin_s < end_kill_s and call.end_s > begin_kill_s
        case.assertTrue(did_run, f"{call} did not run when the server was killed, at {end_kill_s}")
    return lost


async def prefix_share(kind: type[Router]) -> float:
    """Returns the cached tokens of the trace behind a router, divided by those of one server alone."""
    with Served(options.quire, *_FLAGS) as served:
        ideal = await trace(served.port)
    with Served(options.quire, *_FLAGS) as one, Served(options.quire, *_FLAGS) as other:
        with kind([one.port, other.port], options.folder) as router:
            num_cached = await trace(router.port)
        queries = [served.metrics()["vllm:prefix_cache_queries_total"] for served in (one, other)]
    print(f"{kind.name}: {num_cached} of {ideal} cached tokens; prompt tokens {queries}", file=sys.stderr)
    return num_cached / ideal


class ProxyChecks(Checks):
    def test_metrics(self) -> None:
        with Served(options.quire, *_FLAGS) as one, Served(options.quire, *_FLAGS) as other:
            with self.kind([one.port, other.port], options.folder) as router:
                asyncio.run(check_metrics(router.port))


class HaProxyTest(ProxyChecks, unittest.TestCase):
    kind = HaProxy


class NginxTest(ProxyChecks, unittest.TestCase):
    kind = Nginx


class SmgTest(Checks, unittest.TestCase):
    kind = Smg


class VllmRouterTest(Checks, unittest.TestCase):
    kind = VllmRouter

    def test_random_policy(self) -> None:
        """The trace tells policies apart: a random one finds less than any other test accepts."""
        self.assertLess(asyncio.run(prefix_share(VllmRouterRandom)), 0.85)


class RayTest(unittest.TestCase):
    """Ray takes 10 s to start, so all its tests share one. It starts a new replica when one ends."""

    def test_all(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        with Served(options.quire, *_FLAGS) as served:
            ideal = await trace(served.port)
        with Ray(options.quire, " ".join(_FLAGS), options.folder) as ray:
            num_cached = await trace(ray.port)
            print(f"{ray.name}: {num_cached} of {ideal} cached tokens", file=sys.stderr)
            self.assertGreaterEqual(num_cached / ideal, 0.9)
            await stream(ray.port)
            await check_metrics(ray.port)
            async with Load(ray.port) as load:
                await until(lambda: len(load.calls) > 60, 30, f"few requests: {ray.log()}")
                pid = ray.server_pids()[0]
                replica_pid = ray.replica_pid(pid)
                begin_kill_s = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                await until(lambda: not Path(f"/proc/{replica_pid}").exists(), 10, "the replica stays")
                end_kill_s = time.monotonic()
                num_before = len(load.calls)
                await until(lambda: len(ray.server_pids()) == 2, 60, f"no new replica: {ray.log()}")
                num_meanwhile = len(load.calls) - num_before
                await asyncio.sleep(2)
        check_lost(self, ray.name, load, begin_kill_s, end_kill_s)
        self.assertGreater(num_meanwhile, 10, "the replica that stayed got few requests")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("tests", nargs="*", help="names, as unittest's")
    parser.parse_args(namespace=options)
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        options.folder = Path(folder)
        program = unittest.main(argv=[sys.argv[0], "-v", *options.tests], exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    if program.result.skipped:
        sys.exit(77)


if __name__ == "__main__":
    main()
