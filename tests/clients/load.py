"""Tests the real binary under load: overload, slow clients, clients that disconnect, and a long run.

    load.py --quire BINARY [--size ci|full] [--report FILE.md] [TEST …]

Latencies are reported. They are limited only by --health-ms and --loris-effect, which are for a
machine that does nothing else: elsewhere another process can hold up any single request.
"""

import argparse
import asyncio
import random
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import calls
from http1 import Connection
from prober import HealthProber, Probes, quantile
from served import Served

CACHE = ("--kv-cache-memory", "64M")  # small enough that the warm-up touches all of it
QUIET = ("--log-level", "error")
MIB = 1 << 20


class Report:
    """Prints lines, and writes them to a file."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, test: str, line: str) -> None:
        print(f"{test}: {line}", file=sys.stderr, flush=True)
        self.lines.append(f"- **{test}**: {line}")


def check(is_right: bool, message: str) -> None:
    if not is_right:
        raise AssertionError(message)


def check_health(probes: Probes, limit_ms: float | None) -> None:
    check(probes.num_failed == 0, f"/health failed: {probes}")
    if limit_ms is not None:
        check(1000 * probes.quantile(0.99) <= limit_ms, f"/health was slow: {probes}")


async def in_bounded_time(work: Awaitable[None], seconds: float) -> None:
    await asyncio.wait_for(work, seconds)


async def overload(options: argparse.Namespace, report: Report) -> None:
    """Sends all requests at once to 64 slots and the default queue: each gets 200, 429 or 503."""
    num_requests = {"ci": 1024, "full": 4096}[options.size]
    statuses: Counter[int] = Counter()

    async def one(port: int, idx: int) -> None:
        rng = random.Random(idx)
        async with Connection(port) as connection:
            is_stream = idx % 2 == 0
            body = calls.completion(rng, 16, stream=is_stream, return_token_ids=is_stream)
            answer = await connection.call("POST", calls.COMPLETIONS, body)
            statuses[answer.status] += 1
            if answer.status == 200 and is_stream:
                calls.check_stream(answer, 16)
            elif answer.status == 200:
                calls.check_whole(answer, 16)
            else:
                calls.check_error(answer, answer.status)
                check(answer.headers.get("retry-after") == "1", f"no Retry-After: {answer}")

    with Served(options.quire, "--max-num-seqs", "64", *QUIET) as served:
        with HealthProber(served.port) as prober:
            await asyncio.sleep(1)
            idle = prober.stop()
        with HealthProber(served.port) as prober:
            begin = time.monotonic()
            work = asyncio.gather(*(one(served.port, i) for i in range(num_requests)))
            await in_bounded_time(work, 300)
            seconds = time.monotonic() - begin
            probes = prober.stop()
        served.seconds_until_free()
    report.add("overload", f"{num_requests} requests at once, {seconds:.1f} s: {dict(statuses)}")
    report.add("overload", f"/health meanwhile: {probes}; idle before: {idle}")
    check(set(statuses) <= {200, 429, 503}, f"other statuses: {statuses}")
    check(statuses[200] >= min(num_requests, 64), f"too few were let in: {statuses}")
    check_health(probes, options.health_ms)


async def streams(options: argparse.Namespace, report: Report) -> None:
    """Streams that are open at the same time are all complete."""
    wanted = {"ci": 500, "full": 5000}[options.size]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200
    num_streams = min(wanted, most)
    num_tokens = 8
    all_open = asyncio.Event()
    num_open = 0
    memory = connections = 0.0

    async def one(served: Served, idx: int) -> None:
        nonlocal num_open, memory, connections
        rng = random.Random(idx)
        async with Connection(served.port) as connection:
            body = calls.completion(rng, num_tokens, stream=True, return_token_ids=True)
            await connection.send("POST", calls.COMPLETIONS, body)
            answer = await connection.head()
            num_open += 1
            if num_open == num_streams:  # before any stream continues
                memory = served.rss_bytes()
                connections = served.metrics()["quire_http_open_connections"]
                all_open.set()
            await all_open.wait()
            answer.body = b"".join([piece async for piece in connection.pieces(answer)])
            calls.check_stream(answer, num_tokens)

    # All sequences run: each stream has its head and first token before any is read to its end.
    flags = ("--max-num-seqs", str(num_streams), "--max-num-queued-reqs", str(num_streams))
    with Served(options.quire, *flags, *QUIET) as served:
        before = served.rss_bytes()
        with HealthProber(served.port) as prober:
            begin = time.monotonic()
            work = asyncio.gather(*(one(served, i) for i in range(num_streams)))
            await in_bounded_time(all_open.wait(), 500)
            opened = time.monotonic() - begin
            await in_bounded_time(work, 500)
            seconds = time.monotonic() - begin
            probes = prober.stop()
        served.seconds_until_free()
    report.add("streams", f"{num_streams} open at once after {opened:.1f} s (the limit of open "
               f"files allows {most}), all whole after {seconds:.1f} s, "
               f"{(memory - before) / num_streams / 1024:.1f} KiB of memory each with its KV blocks")  # fmt: skip
    report.add("streams", f"/health meanwhile: {probes}")
    check(connections >= num_streams, f"{connections} connections are open")
    check_health(probes, options.health_ms)


async def slow_loris(options: argparse.Namespace, report: Report) -> None:
    """Heads that never end do not slow the others down."""
    num_slow, num_rounds, per_round = {"ci": (300, 3, 60), "full": (1000, 10, 100)}[options.size]
    is_over = asyncio.Event()

    async def crawl(port: int, idx: int) -> None:
        while not is_over.is_set():
            try:
                async with Connection(port) as connection:
                    await connection.send_raw(b"POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
                    while not is_over.is_set():
                        await asyncio.sleep(1 + idx % 100 / 100)
                        await connection.send_raw(b"a")
            except OSError:
                continue  # the server closed the connection: connect again

    async def latencies(port: int) -> list[float]:
        rng = random.Random(5)
        seconds = []
        async with Connection(port) as connection:
            for _ in range(per_round):
                begin = time.monotonic()
                body = calls.completion(rng, 4)
                calls.check_whole(await connection.call("POST", calls.COMPLETIONS, body), 4)
                seconds.append(time.monotonic() - begin)
        return seconds

    alone: list[float] = []
    beside: list[float] = []
    with Served(options.quire, *QUIET) as served:
        await latencies(served.port)
        for _ in range(num_rounds):  # alternating, because the machine's other load changes
            alone += await latencies(served.port)
            is_over.clear()
            crawlers = [asyncio.create_task(crawl(served.port, i)) for i in range(num_slow)]
            while served.metrics()["quire_http_open_connections"] < num_slow:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            beside += await latencies(served.port)
            is_over.set()
            await asyncio.gather(*crawlers)
            while served.metrics()["quire_http_open_connections"] > 10:
                await asyncio.sleep(0.05)
        timeouts = served.metrics()["quire_http_timeouts_total"]
    effect = quantile(beside, 0.99) / quantile(alone, 0.99) - 1
    report.add("slow_loris", f"{num_slow} crawling heads, {len(beside)} requests of others: p50 "
               f"{1000 * quantile(alone, 0.5):.1f} → {1000 * quantile(beside, 0.5):.1f} ms, p99 "
               f"{1000 * quantile(alone, 0.99):.1f} → {1000 * quantile(beside, 0.99):.1f} ms "
               f"({100 * effect:+.0f} %), {timeouts:.0f} timed out")  # fmt: skip
    if options.loris_effect is not None:
        check(effect < options.loris_effect, f"p99 grew by {100 * effect:.0f} %")


async def cancels(options: argparse.Namespace, report: Report) -> None:
    """When clients disconnect, everything that their requests held is soon free."""
    num_cancels = {"ci": 200, "full": 1000}[options.size]
    with Served(options.quire, "--max-num-seqs", "16", *QUIET) as served:
        freed = []
        for is_stream in (True, False):
            for _ in range(5):
                async with Connection(served.port) as connection:
                    body = calls.completion(random.Random(1), 4000, stream=is_stream)
                    await connection.send("POST", calls.COMPLETIONS, body)
                    while served.num_used_blocks() == 0:
                        await asyncio.sleep(0.01)
                freed.append(served.seconds_until_free())
        waited = await _seconds_until_waiter_is_gone(served)

        async def one(worker: int) -> None:
            rng = random.Random(worker)
            async with Connection(served.port) as connection:
                for _ in range(num_cancels // 32 + 1):
                    await asyncio.sleep(0.1 * rng.random())
                    await calls.call_and_go(connection, rng)
                    await calls.call_whole(connection, rng)  # other requests still succeed

        begin = time.monotonic()
        await in_bounded_time(asyncio.gather(*(one(i) for i in range(32))), 400)
        seconds = time.monotonic() - begin
        leftover = served.seconds_until_free()
        num_seen = served.metrics()["quire_requests_cancelled_total"]
    report.add("cancels", f"one alone, 5 streamed and 5 not: blocks free after median "
               f"{1000 * statistics.median(freed):.1f}, most {1000 * max(freed):.1f} ms; "
               f"a waiting one is out of the queue after {1000 * waited:.1f} ms")  # fmt: skip
    report.add("cancels", f"{num_seen:.0f} under load in {seconds:.1f} s: every block free "
               f"{1000 * leftover:.1f} ms after the last")  # fmt: skip
    check(statistics.median(freed) < 0.1, f"blocks were held for {freed} s")


async def _seconds_until_waiter_is_gone(served: Served) -> float:
    """Cancels a request that waits because all slots are in use."""
    async with Connection(served.port) as runner, Connection(served.port) as waiter:
        await runner.send("POST", calls.COMPLETIONS, calls.completion(random.Random(1), 3000, n=16))
        while served.metrics()["vllm:num_requests_running"] < 16:
            await asyncio.sleep(0.01)
        await waiter.send("POST", calls.COMPLETIONS, calls.completion(random.Random(2), 3000))
        while served.metrics()["vllm:num_requests_waiting"] < 1:
            await asyncio.sleep(0.01)
        await waiter.drop()
        begin = time.monotonic()
        while served.metrics()["vllm:num_requests_waiting"] > 0:
            check(time.monotonic() - begin < 10, "it waits on")
        waited = time.monotonic() - begin
    served.seconds_until_free()
    return waited


async def soak(options: argparse.Namespace, report: Report) -> None:
    """Sends all kinds of requests for a long time: memory does not grow, no block is lost, and the server is idle after."""
    num_requests = options.num_requests or {"ci": 1000, "full": 10_000}[options.size]
    kinds: list[tuple[calls.Kind, int]] = [
        (calls.call_whole, 25),
        (calls.call_stream, 25),
        (calls.call_chat, 15),
        (calls.call_wrong, 15),
        (calls.call_text, 10),
        (calls.call_and_go, 10),
        (calls.call_grammar, 10),
    ]
    num_parts = 20
    with Served(options.quire, *CACHE, *QUIET) as served:
        counts: Counter[str] = Counter()

        async def one(worker: int, num: int) -> None:
            rng = random.Random(worker)
            async with Connection(served.port) as connection:
                for _ in range(num):
                    [kind] = rng.choices([k for k, _ in kinds], [w for _, w in kinds])
                    counts[kind.__name__] += 1
                    await asyncio.wait_for(kind(connection, rng), 120)  # type: ignore[arg-type]

        rss = []
        begin = time.monotonic()
        for part in range(num_parts):
            workers = (one(32 * part + i, num_requests // num_parts // 32 + 1) for i in range(32))
            await asyncio.gather(*workers)
            served.seconds_until_free()
            rss.append(served.rss_bytes())
        seconds = time.monotonic() - begin
        before = served.cpu_seconds()
        await asyncio.sleep(options.idle_s)
        idle_share = (served.cpu_seconds() - before) / options.idle_s
    total = sum(counts.values())
    settled = rss[num_parts // 4 :]
    slope = statistics.linear_regression(range(len(settled)), settled).slope
    per_10k = slope * num_parts / total * 10_000
    mix = ", ".join(f"{n} {kind.removeprefix('call_')}" for kind, n in counts.items())
    report.add("soak", f"{total} requests in {seconds:.0f} s ({total / seconds:.0f}/s): {mix}")
    report.add("soak", f"memory {settled[0] / MIB:.1f} → {settled[-1] / MIB:.1f} MiB after the "
               f"first quarter, {per_10k / MIB:+.2f} MiB per 10,000 requests; no block held; "
               f"idle {100 * idle_share:.2f} % of a core")  # fmt: skip
    check(idle_share < 0.01, f"idle, it takes {100 * idle_share:.1f} % of a core")
    if total >= 10_000:  # with fewer, one or two pages decide
        check(per_10k < MIB, f"memory grows by {per_10k / MIB:.2f} MiB per 10,000 requests")


TESTS: dict[str, Callable[[argparse.Namespace, Report], Awaitable[None]]] = {
    "overload": overload,
    "streams": streams,
    "slow_loris": slow_loris,
    "cancels": cancels,
    "soak": soak,
}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("--size", choices=["ci", "full"], default="ci")
    parser.add_argument("--report", type=Path, help="also write the figures to this file")
    parser.add_argument("--num-requests", type=int, help="of the soak")
    parser.add_argument("--health-ms", type=float, help="also fail above this p99 of /health")
    parser.add_argument("--loris-effect", type=float, help="also fail if p99 grows by this share")
    parser.add_argument("--idle-s", type=float, default=5)
    parser.add_argument("tests", nargs="*", help=", ".join(TESTS))
    options = parser.parse_args()
    unknown = set(options.tests) - set(TESTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    options = parse_options()
    report = Report()
    failed = []
    for name in options.tests or TESTS:
        try:
            asyncio.run(TESTS[name](options, report))
        except (AssertionError, TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            failed.append(name)
            report.add(name, f"FAILED: {type(error).__name__} {str(error)[:2000]}")
    if options.report is not None:
        options.report.write_text("\n".join(report.lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
