"""Simulates policies of routers in front of many replicas, on a trace of conversations.

    python3 bench/router_policies.py [--replicas 1000] [--load 0.5] [--seed 1] [POLICY …]

Prints a table in Markdown, the same for the same arguments. Only the standard library is needed.

The trace: conversations begin at random (Poisson). Each has one of 500 system prompts, by Zipf's law, of
500 to 6,000 tokens. Its turns, 6 in the mean, add 300 tokens each in the mean (exponential) and get 400
tokens each in the mean; 10 s in the mean pass between a response and the next turn. A turn's prompt is the
system prompt and all earlier turns.

A replica: prompts are computed one after another in chunks, and each chunk's step takes along one token
of every response that is generated. Its KV cache keeps conversations and system prompts, the least
recently used ones leave first. Times are those of Llama-3.1-8B in BF16 on an H200, in round numbers.

The load is the rate of conversations, divided by the rate at which the fleet would always be busy if each question and
response were computed once as a part of a prompt, and responses were generated in batches of 48.
"""

import argparse
import bisect
import heapq
import math
import random
from collections import OrderedDict, deque

STEP_S = 0.004  # one step of decode with an empty batch: the weights are read once
STEP_PER_SEQUENCE_S = 0.00004  # more per sequence in the batch: its KV cache is read
PREFILL_TOKENS_PER_S = 30_000.0
CHUNK = 2_048
CACHE_TOKENS = 1_500_000  # 98 GB with an FP8 KV cache of 64 KiB per token
NUM_SYSTEM_PROMPTS = 500
MEAN_TURNS = 6
MEAN_USER, MEAN_OUTPUT = 300.0, 400.0
MEAN_PAUSE_S = 10.0
FULL_STEP_S = STEP_S + STEP_PER_SEQUENCE_S * 48
WARM_UP_S, MEASURED_S = 80.0, 30.0
POLL_S = 1.0
NUM_ROUTERS = 16


class Replica:
    """The state of one replica, as of the last event that concerns it."""

    __slots__ = ("outstanding", "decoding", "free_at", "busy_s", "cache", "cached", "prefill_share", "seen_at")

    def __init__(self) -> None:
        self.outstanding = 0  # requests that are here
        self.decoding = 0
        self.free_at = 0.0  # when all prompts that are here will have been computed
        self.busy_s = 0.0  # time for prompts, within the measured time
        self.cache: OrderedDict[int, int] = OrderedDict()  # tokens, by conversation or system prompt
        self.cached = 0
        self.prefill_share = 0.0  # of the last seconds
        self.seen_at = 0.0

    def take(self, now: float, conversation: "Conversation") -> tuple[int, float, float]:
        """Returns the cached tokens of a turn, its time to the first token and the time of the other tokens."""
        hit = max(self.cache.get(conversation.key, 0), self.cache.get(conversation.system, 0))
        hit = min(hit, conversation.prompt - 1)
        tokens = conversation.prompt - hit
        step = STEP_S + STEP_PER_SEQUENCE_S * self.decoding
        work = tokens / PREFILL_TOKENS_PER_S + math.ceil(tokens / CHUNK) * step
        begin = max(now, self.free_at)
        self.free_at = begin + work
        if now >= WARM_UP_S:
            self.busy_s += work
        # The share of time that prompts take decays over 5 s; responses are slower by it.
        self.prefill_share *= math.exp((self.seen_at - now) / 5.0)
        self.prefill_share += work / 5.0
        self.seen_at = now
        slowdown = 1.0 / (1.0 - min(self.prefill_share, 0.9))
        self.keep(conversation.system, conversation.system_tokens)
        self.keep(conversation.key, conversation.prompt + conversation.output)
        return hit, self.free_at - now, conversation.output * step * slowdown

    def keep(self, key: int, tokens: int) -> None:
        self.cached += tokens - self.cache.pop(key, 0)
        self.cache[key] = tokens
        while self.cached > CACHE_TOKENS:
            self.cached -= self.cache.popitem(last=False)[1]


class Conversation:
    __slots__ = ("key", "system", "system_tokens", "prompt", "output", "turns_left", "home")

    def __init__(self, key: int, system: int, system_tokens: int, turns: int) -> None:
        self.key = key
        self.system = system  # negative, as a key of the cache
        self.system_tokens = system_tokens
        self.prompt = system_tokens
        self.output = 0
        self.turns_left = turns
        self.home = -1  # the replica of the last turn

    def next_turn(self, rng: random.Random) -> None:
        self.prompt += self.output + 1 + int(rng.expovariate(1 / MEAN_USER))
        self.output = 1 + int(rng.expovariate(1 / MEAN_OUTPUT))
        self.turns_left -= 1


class Fewest:
    """Finds an index with the smallest count, in constant time; among equals a random one."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._levels: list[list[int]] = [list(range(size))]
        self._place = list(range(size))
        self._count = [0] * size
        self._least = 0
        self._rng = rng

    def pick(self) -> int:
        return self._rng.choice(self._levels[self._least])

    def add(self, idx: int, change: int) -> None:
        level = self._levels[self._count[idx]]
        last = level.pop()
        if last != idx:
            level[self._place[idx]] = last
            self._place[last] = self._place[idx]
        self._count[idx] += change
        if self._count[idx] == len(self._levels):
            self._levels.append([])
        level = self._levels[self._count[idx]]
        self._place[idx] = len(level)
        level.append(idx)
        self._least = min(self._least, self._count[idx])
        while not self._levels[self._least]:
            self._least += 1


class Ring:
    """Consistent hashing with 100 points per replica."""

    def __init__(self, size: int, rng: random.Random) -> None:
        points = sorted((rng.random(), idx) for idx in range(size) for _ in range(100))
        self._hashes = [point for point, _ in points]
        self._replicas = [idx for _, idx in points]

    def walk(self, key: int):
        place = bisect.bisect(self._hashes, random.Random(key).random())
        for offset in range(len(self._replicas)):
            yield self._replicas[(place + offset) % len(self._replicas)]


class Fleet:
    def __init__(self, policy: str, size: int, rng: random.Random) -> None:
        self.replicas = [Replica() for _ in range(size)]
        self._rng = rng
        self._choose = getattr(self, "_" + policy.replace("-", "_"))
        self._turn = 0
        self._total = 0
        self._fewest = Fewest(size, rng)
        self._ring = Ring(size, rng)
        self._polled = [0] * size
        self._polled_at = 0.0
        self._own = [Fewest(size, rng) for _ in range(NUM_ROUTERS)] if policy.endswith("own") else []
        self._holders: dict[int, deque[int]] = {}  # of a system prompt, the last 64 that computed it

    def send(self, now: float, conversation: Conversation) -> tuple[int, int]:
        """Returns the replica and the router of a turn."""
        router = self._rng.randrange(NUM_ROUTERS)
        idx = self._choose(now, conversation, router)
        self._change(idx, router, 1)
        conversation.home = idx
        return idx, router

    def end(self, idx: int, router: int) -> None:
        self._change(idx, router, -1)

    def _change(self, idx: int, router: int, change: int) -> None:
        self.replicas[idx].outstanding += change
        self._total += change
        self._fewest.add(idx, change)
        if self._own:
            self._own[router].add(idx, change)

    def _bound(self, factor: float) -> float:
        return math.ceil(factor * (self._total + 1) / len(self.replicas))

    def _two(self) -> int:
        first, second = (self._rng.randrange(len(self.replicas)) for _ in range(2))
        return min(first, second, key=lambda idx: self.replicas[idx].outstanding)

    def _random(self, now: float, conversation: Conversation, router: int) -> int:
        return self._rng.randrange(len(self.replicas))

    def _round_robin(self, now: float, conversation: Conversation, router: int) -> int:
        self._turn += 1
        return self._turn % len(self.replicas)

    def _least_outstanding(self, now: float, conversation: Conversation, router: int) -> int:
        return self._fewest.pick()

    def _least_outstanding_own(self, now: float, conversation: Conversation, router: int) -> int:
        return self._own[router].pick()

    def _power_of_two(self, now: float, conversation: Conversation, router: int) -> int:
        return self._two()

    def _poll(self, now: float) -> list[int]:
        if now - self._polled_at >= POLL_S:
            self._polled = [replica.outstanding for replica in self.replicas]
            self._polled_at = now
        return self._polled

    def _least_outstanding_polled(self, now: float, conversation: Conversation, router: int) -> int:
        loads = self._poll(now)
        return min(range(len(loads)), key=loads.__getitem__)

    def _power_of_two_polled(self, now: float, conversation: Conversation, router: int) -> int:
        loads = self._poll(now)
        first, second = (self._rng.randrange(len(loads)) for _ in range(2))
        return min(first, second, key=loads.__getitem__)

    def _session_hash(self, now: float, conversation: Conversation, router: int) -> int:
        return next(self._ring.walk(conversation.key))

    def _session_hash_bounded(self, now: float, conversation: Conversation, router: int) -> int:
        bound = self._bound(1.5)
        return next(idx for idx in self._ring.walk(conversation.key) if self.replicas[idx].outstanding < bound)

    def _prompt_hash_bounded(self, now: float, conversation: Conversation, router: int) -> int:
        bound = self._bound(1.5)
        return next(idx for idx in self._ring.walk(conversation.system) if self.replicas[idx].outstanding < bound)

    def _prefix_affinity(self, now: float, conversation: Conversation, router: int) -> int:
        bound = self._bound(1.5)
        home = conversation.home
        if home >= 0 and self.replicas[home].outstanding < bound:
            return home
        holders = self._holders.setdefault(conversation.system, deque(maxlen=64))
        if holders:
            idx = min(
                (self._rng.choice(holders) for _ in range(2)),
                key=lambda idx: self.replicas[idx].outstanding,
            )
            if self.replicas[idx].outstanding < bound:
                return idx
        idx = self._two()
        holders.append(idx)
        return idx


POLICIES = {
    "random": "random",
    "round-robin": "round robin",
    "least-outstanding": "least outstanding, exact",
    "least-outstanding-own": f"least outstanding, {NUM_ROUTERS} routers that count their own",
    "least-outstanding-polled": f"least outstanding, polled every {POLL_S:g} s",
    "power-of-two": "power of two choices, exact",
    "power-of-two-polled": f"power of two choices, polled every {POLL_S:g} s",
    "session-hash": "consistent hash of the session",
    "session-hash-bounded": "the same, at most 1.5 times the mean load",
    "prompt-hash-bounded": "consistent hash of the system prompt, at most 1.5 times the mean load",
    "prefix-affinity": "prefix affinity, at most 1.5 times the mean load",
}


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))] if values else math.nan


def num_turns(rng: random.Random) -> int:
    return 1 + int(rng.expovariate(1 / (MEAN_TURNS - 0.5)))


def conversations_per_s(num_replicas: int, load: float) -> float:
    tokens = MEAN_USER + MEAN_OUTPUT
    turn_s = tokens / PREFILL_TOKENS_PER_S + FULL_STEP_S + MEAN_OUTPUT * FULL_STEP_S / 48
    return load * num_replicas / (MEAN_TURNS * turn_s)


def simulate(policy: str, num_replicas: int, load: float, seed: int) -> dict[str, float]:
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(NUM_SYSTEM_PROMPTS)]
    lengths = [rng.randint(500, 6000) for _ in weights]
    cumulative = [sum(weights[: idx + 1]) for idx in range(len(weights))]
    fleet = Fleet(policy, num_replicas, random.Random(seed + 1))
    rate = conversations_per_s(num_replicas, load)

    first_s: list[float] = []
    token_s: list[float] = []
    hits = possible = 0
    # The time, a number that orders equal times, the kind, and what it concerns.
    events: list[tuple] = [(rng.expovariate(rate), 0, "begin", None)]
    num_events = 0
    num_conversations = 0

    def begin() -> Conversation:
        nonlocal num_conversations
        num_conversations += 1
        system = bisect.bisect(cumulative, rng.random() * cumulative[-1])
        return Conversation(num_conversations, -1 - system, lengths[system], num_turns(rng))

    # The conversations of a steady state. Turns have no memory: as many lie behind as ahead, in the mean.
    cycle_s = MEAN_PAUSE_S + MEAN_OUTPUT * FULL_STEP_S
    for _ in range(int(rate * MEAN_TURNS * cycle_s)):
        conversation = begin()
        for _ in range(num_turns(rng) - 1):
            conversation.next_turn(rng)
            conversation.turns_left += 1
        num_events += 1
        heapq.heappush(events, (rng.random() * cycle_s, num_events, "turn", conversation))
    end_s = WARM_UP_S + MEASURED_S
    while events:
        now, _, kind, subject = heapq.heappop(events)
        if now > end_s:
            break
        num_events += 1
        if kind == "begin":
            subject = begin()
            heapq.heappush(events, (now + rng.expovariate(rate), num_events, "begin", None))
            kind = "turn"
        if kind == "turn":
            known = subject.prompt + subject.output
            subject.next_turn(rng)
            idx, router = fleet.send(now, subject)
            replica = fleet.replicas[idx]
            hit, to_first_s, others_s = replica.take(now, subject)
            if now >= WARM_UP_S:
                first_s.append(to_first_s)
                token_s.append(others_s / subject.output)
                hits += hit
                possible += known
            heapq.heappush(events, (now + to_first_s, num_events, "first", replica))
            end = (idx, router, replica, subject)
            heapq.heappush(events, (now + to_first_s + others_s, num_events, "end", end))
        elif kind == "first":
            subject.decoding += 1
        else:
            idx, router, replica, conversation = subject
            replica.decoding -= 1
            fleet.end(idx, router)
            if conversation.turns_left > 0:
                pause_s = rng.expovariate(1 / MEAN_PAUSE_S)
                heapq.heappush(events, (now + pause_s, num_events, "turn", conversation))
    busy = [replica.busy_s / MEASURED_S for replica in fleet.replicas]
    mean = sum(busy) / len(busy)
    return {
        "turns/s": len(first_s) / MEASURED_S / num_replicas,
        "of possible": hits / possible,
        "ttft p50": quantile(first_s, 0.5),
        "ttft p99": quantile(first_s, 0.99),
        "token p99": quantile(token_s, 0.99),
        "busy mean": mean,
        "busy max": max(busy) / mean,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help=", ".join(POLICIES))
    args = parser.parse_args()
    print(
        "| policy | turns/s per replica | prefix hits, of possible | TTFT p50, ms | TTFT p99, ms | per token p99, ms "
        "| time for prompts, mean | fullest replica, of mean |\n|---|---|---|---|---|---|---|---|"
    )
    for policy in args.policies or POLICIES:
        result = simulate(policy, args.replicas, args.load, args.seed)
        print(
            f"| {POLICIES[policy]} | {result['turns/s']:.1f} | {result['of possible']:.0%} | {1e3 * result['ttft p50']:.0f} "
            f"| {1e3 * result['ttft p99']:.0f} | {1e3 * result['token p99']:.1f} "
            f"| {result['busy mean']:.0%} | {result['busy max']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
