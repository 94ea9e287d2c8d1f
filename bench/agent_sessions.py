"""Plays sessions of agents against a running server, and checks which old tokens their turns compute again.

    python3 bench/agent_sessions.py [--url http://127.0.0.1:8000] [--sessions 8] [--turns 50] [OPTION …]

Prompts are token ids, so no tokenizer is needed, and the history is exact; only the standard library is needed.

A session begins with a long first prompt (instructions, tools, files); a part of it is common to all sessions. Each
turn appends the answer and a new message, whose length is drawn from a log-normal distribution, as tool results have
it: most are short, few are long. --kinds gives the relative numbers of turns of each kind:

    plain      the prompt before, its answer, and a new message
    stripped   the same, but the first half of the answer (the reasoning) is left out
    edited     the last message ends in another way, and its answer is dropped
    retried    the client leaves in the middle of the answer, and sends the same prompt again
    parallel   three continuations of one history at once, each with its own message
    samples    as plain, with two answers; the session continues with the second

A boundary is the end of a prompt, of an answer, or of the history before a message. For each turn, `again` is the
number of tokens from where the cached prefix ends to the last boundary up to which the prompt repeats the session.
The promise for models with recurrent states is: at most 64, unless the state of that boundary was evicted. The exit
code is 1 if a turn breaks it.

--cold measures, after each plain turn, the time that the turn would need without its snapshot: a prompt of the same
context in which the turn's new tokens and the 512 before them are random, after a snapshot that another request has
left exactly there. The server should be idle otherwise (--sessions 1, no --load).

A server that is stopped and started again meanwhile is waited for; what it has lost is no breach.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import math
import random
import statistics
import sys
import threading
import time
import urllib.parse
from dataclasses import asdict, dataclass, field

MOST_AGAIN = 64
COLD_TOKENS = 512  # before the new ones, which a cold prompt computes too
FIRST_ID = 10  # smaller ids may be special tokens
MOST_ANSWER = 512
NUM_PARALLEL = 3
PATIENCE_S = 300.0  # for a server that is started again
KINDS = ("plain", "stripped", "edited", "retried", "parallel", "samples")


@dataclass
class Response:
    first_token_s: float = math.nan
    answers: dict[int, list[int]] = field(default_factory=dict)  # token ids, by sample
    cached: int = 0
    cause: str = ""


@dataclass
class Turn:
    session: int
    number: int
    kind: str
    prompt: int  # tokens
    new: int  # tokens after those that the session has sent or got before
    cached: int
    again: int | None  # None: the session had no boundary before
    cause: str
    first_token_s: float
    cold_s: float | None = None
    restarted: bool = False

    def is_breach(self) -> bool:
        return self.again is not None and self.again > MOST_AGAIN and self.cause != "evicted"


class Server:
    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self.num_failures = 0  # connections that broke: after one, the server may have lost its cache
        self.model = json.loads(self.get("/v1/models"))["data"][0]["id"]
        self.vocab_size = json.loads(self.get("/tokenizer_info"))["vocab_size"]

    def get(self, path: str) -> str:
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        if response.status != 200:
            raise RuntimeError(f"GET {path}: got status {response.status}, expected 200: {text[:200]}")
        return text

    def num_preemptions(self) -> int:
        lines = self.get("/metrics").splitlines()
        return int(sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_preemptions_total")))

    def complete(self, prompt: list[int], max_tokens: int, n: int = 1, leave_after: int = 0) -> Response:
        """Leaves after that many tokens, if any. Sends the request again if the connection breaks."""
        body = json.dumps({"model": self.model, "prompt": prompt, "max_tokens": max_tokens, "n": n,
                           "temperature": 0 if n == 1 else 1, "ignore_eos": True, "stream": True,
                           "return_token_ids": True, "stream_options": {"include_usage": True}})
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._try(body, leave_after)
            except (OSError, http.client.HTTPException) as error:
                self.num_failures += 1
                if time.monotonic() > deadline:
                    raise RuntimeError(f"no response within {PATIENCE_S:.0f} s") from error
                time.sleep(0.2)

    def _try(self, body: str, leave_after: int) -> Response:
        result = Response()
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        try:
            begin = time.monotonic()
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status == 503:  # it is shutting down
                raise http.client.HTTPException("status 503")
            if response.status != 200:
                raise RuntimeError(f"got status {response.status}, expected 200: {response.read()[:400].decode()}")
            response.peek(1)  # the first event also has the prompt's ids, which are read afterwards
            result.first_token_s = time.monotonic() - begin
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                if line.startswith(b"data: [DONE]"):
                    return result
                self._read(json.loads(line[6:]), result)
                if leave_after and len(result.answers.get(0, [])) >= leave_after:
                    return result
            raise http.client.HTTPException("the stream has ended without [DONE]")
        finally:
            connection.close()

    @staticmethod
    def _read(event: dict, result: Response) -> None:
        if "error" in event:
            raise http.client.HTTPException(str(event["error"]))
        for choice in event["choices"]:
            result.answers.setdefault(choice["index"], []).extend(choice.get("token_ids") or [])
        if event.get("usage"):
            details = event["usage"].get("prompt_tokens_details") or {}
            result.cached = details.get("cached_tokens") or 0
            result.cause = details.get("cache_miss_cause") or ""


class Texts:
    """Random token ids, in lengths as agents have them."""

    def __init__(self, rng: random.Random, vocab_size: int, args: argparse.Namespace) -> None:
        self._rng, self._vocab_size, self._args = rng, vocab_size, args

    def ids(self, count: int) -> list[int]:
        return [self._rng.randrange(FIRST_ID, self._vocab_size) for _ in range(count)]

    def length(self, median: int, most: int) -> int:
        return min(max(int(self._rng.lognormvariate(math.log(median), 1.0)), 4), most)

    def message(self) -> list[int]:
        return self.ids(self.length(self._args.new_tokens, self._args.most_new_tokens))

    def num_answer(self) -> int:
        return self.length(self._args.answer_tokens, MOST_ANSWER)


def num_common(a: list[int], b: list[int]) -> int:
    end = min(len(a), len(b))
    return next((i for i in range(end) if a[i] != b[i]), end)


class Session:
    def __init__(self, number: int, server: Server, common: list[int], args: argparse.Namespace) -> None:
        self._number, self._server, self._args = number, server, args
        self._rng = random.Random(f"{args.seed} {number}")
        self._texts = Texts(self._rng, server.vocab_size, args)
        self._common = common
        self._prompt: list[int] = []
        self._answer: list[int] = []
        self._history = 0  # tokens of the prompt before its last message
        self._boundaries: list[int] = []  # of prompt and answer
        self._num_failures = server.num_failures
        self.turns: list[Turn] = []
        self.error = ""  # that ended the session

    def play(self) -> None:
        try:
            self._play()
        except RuntimeError as error:
            self.error = str(error)

    def _play(self) -> None:
        kinds = [kind for kind, count in self._args.kinds.items() for _ in range(count)]
        first = self._common + self._texts.ids(max(self._args.first_tokens - len(self._common), 1))
        self._take_turn(0, "first", first, len(self._common))
        for number in range(1, self._args.turns):
            if self._args.pause:
                time.sleep(self._rng.expovariate(1 / self._args.pause))
            kind = self._rng.choice(kinds)
            if kind == "edited":
                kept = self._history + (len(self._prompt) - self._history) // 2
                prompt = self._prompt[:kept] + self._texts.ids(len(self._prompt) - kept + 1)
                self._take_turn(number, kind, prompt, self._history)
            elif kind == "retried":
                self._take_turn(number, kind, self._prompt, self._history)
            else:
                left_out = len(self._answer) // 2 if kind == "stripped" else 0
                history = self._prompt + self._answer[left_out:]
                self._take_turn(number, kind, history + self._texts.message(), len(history))

    def _take_turn(self, number: int, kind: str, prompt: list[int], history: int) -> None:
        num_answer = self._texts.num_answer()
        if kind == "retried":
            self._server.complete(prompt, num_answer, leave_after=max(num_answer // 2, 1))
        siblings, threads = [], []
        if kind == "parallel":
            for _ in range(NUM_PARALLEL - 1):
                other = prompt[:history] + self._texts.message()
                threads.append(threading.Thread(target=lambda ids=other: siblings.append(
                    (ids, self._server.complete(ids, num_answer)))))
                threads[-1].start()
        response = self._server.complete(prompt, num_answer, n=2 if kind == "samples" else 1)
        for thread in threads:
            thread.join()
        for other, its_response in siblings:
            self._record(number, kind, other, its_response)
        turn = self._record(number, kind, prompt, response)
        if self._args.cold and kind == "plain":
            turn.cold_s = self._measure_cold(prompt, turn.new)
        known = turn.prompt - turn.new
        self._boundaries = [end for end in self._boundaries if end <= known]
        self._prompt, self._history = prompt, history
        self._answer = response.answers[max(response.answers)]
        self._boundaries += [len(prompt), len(prompt) + len(self._answer)]

    def _record(self, number: int, kind: str, prompt: list[int], response: Response) -> Turn:
        known = num_common(self._prompt + self._answer, prompt)
        restarted = self._server.num_failures > self._num_failures
        self._num_failures = self._server.num_failures
        if restarted:
            self._boundaries = []
        reached = [end for end in self._boundaries if end <= known]
        # The last token of a prompt is always computed.
        boundary = min(max(reached), len(prompt) - 1) if reached else None
        again = None if boundary is None else max(boundary - response.cached, 0)
        turn = Turn(self._number, number, kind, len(prompt), len(prompt) - known, response.cached, again,
                    response.cause, response.first_token_s, restarted=restarted)
        self.turns.append(turn)
        return turn

    def _measure_cold(self, prompt: list[int], new: int) -> float | None:
        """None: the context is too short, or the snapshot was evicted at once."""
        kept = (len(prompt) - new - COLD_TOKENS) // 64 * 64  # a multiple of any block size
        if kept < 64:
            return None
        self._server.complete(prompt[:kept + 1], 1)  # a snapshot is left at the last full block
        response = self._server.complete(prompt[:kept] + self._texts.ids(new + COLD_TOKENS), 1)
        return response.first_token_s if response.cached == kept else None


class Load:
    """Requests that have nothing to do with the sessions, always `num_streams` of them."""

    def __init__(self, server: Server, args: argparse.Namespace) -> None:
        self._server, self._args = server, args
        self._is_over = threading.Event()
        self.num_done = 0
        self.error = ""  # of a stream that has ended
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(args.load)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        try:
            self._send(number)
        except RuntimeError as error:
            self.error = str(error)

    def _send(self, number: int) -> None:
        texts = Texts(random.Random(f"{self._args.seed} load {number}"), self._server.vocab_size, self._args)
        while not self._is_over.is_set():
            self._server.complete(texts.ids(texts.length(self._args.load_tokens, 8 * self._args.load_tokens)),
                                  texts.num_answer())
            self.num_done += 1

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else math.nan


def print_table(turns: list[Turn]) -> None:
    print("| turns | number | hits | prompt, median | new, median | again: median | p90 | max "
          "| first token, ms: median | p90 | max |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for kind in ("first", *KINDS):
        group = [turn for turn in turns if turn.kind == kind]
        if not group:
            continue
        again = [turn.again for turn in group if turn.again is not None]
        hits = sum(value <= MOST_AGAIN for value in again)
        times = [1000 * turn.first_token_s for turn in group]
        cells = [kind, len(group), hits if again else "", f"{statistics.median(turn.prompt for turn in group):.0f}",
                 f"{statistics.median(turn.new for turn in group):.0f}"]
        cells += [f"{percentile(again, share):.0f}" if again else "" for share in (0.5, 0.9, 1)]
        cells += [f"{percentile(times, share):.1f}" for share in (0.5, 0.9, 1)]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


def print_summary(turns: list[Turn], num_preemptions: int, num_load: int, seconds: float) -> None:
    missed = [turn for turn in turns if turn.again is not None and turn.again > MOST_AGAIN]
    causes = collections.Counter(turn.cause or "none" for turn in missed)
    print(f"\n{len(turns)} turns in {seconds:.0f} s beside {num_load} other requests; preemptions: {num_preemptions}")
    print("misses by cause: " + (", ".join(f"{cause} {count}" for cause, count in causes.items()) or "none"))
    lost = [turn for turn in turns if turn.restarted]
    if lost:
        print(f"turns at which the server was started again: {len(lost)}")
    cold = [(turn.first_token_s / turn.cold_s, turn) for turn in turns if turn.cold_s]
    if cold:
        ratios = [ratio for ratio, _ in cold]
        print(f"time to the first token / cold time of (new + {COLD_TOKENS}) tokens, {len(cold)} turns: "
              f"median {percentile(ratios, 0.5):.3f}, p90 {percentile(ratios, 0.9):.3f}, max {max(ratios):.3f}; "
              f"cold, ms: median {1000 * statistics.median(turn.cold_s for _, turn in cold):.1f}")


def parse_kinds(text: str) -> dict[str, int]:
    kinds = {name: int(count) for name, _, count in (part.partition(":") for part in text.split(","))}
    if not set(kinds) <= set(KINDS) or sum(kinds.values()) < 1 or min(kinds.values()) < 0:
        raise argparse.ArgumentTypeError(f"got {text}, expected KIND:NUMBER,… with KIND of {', '.join(KINDS)}")
    return kinds


def not_negative(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"got {text}, expected a number of at least 0")
    return number


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text}, expected a number of at least 1")
    return number


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--sessions", type=positive, default=1, help="at the same time")
    parser.add_argument("--turns", type=positive, default=20, help="of each session")
    parser.add_argument("--first-tokens", type=positive, default=30000, help="of the first prompt")
    parser.add_argument("--common-tokens", type=int, default=2000, help="of it, that all sessions share")
    parser.add_argument("--new-tokens", type=positive, default=200, help="of a message, in the median")
    parser.add_argument("--most-new-tokens", type=positive, default=4000)
    parser.add_argument("--answer-tokens", type=positive, default=60, help="in the median")
    parser.add_argument("--pause", type=not_negative, default=0, help="seconds before a turn, in the mean")
    parser.add_argument("--kinds", type=parse_kinds, default="plain:1", help="plain:4,stripped:1,…")
    parser.add_argument("--load", type=int, default=0, help="other requests at any time")
    parser.add_argument("--load-tokens", type=positive, default=1000, help="of their prompts, in the median")
    parser.add_argument("--cold", action="store_true", help="measure the cold time of each plain turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=argparse.FileType("w", encoding="utf-8"), help="the file for the turns")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    try:
        server = Server(args.url)
    except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
        print(f"{args.url} is no running server: {error}; start one, or name it by --url", file=sys.stderr)
        return 2
    common = Texts(random.Random(args.seed), server.vocab_size, args).ids(min(args.common_tokens, args.first_tokens))
    sessions = [Session(number, server, common, args) for number in range(args.sessions)]
    num_preemptions = server.num_preemptions()
    begin = time.monotonic()
    load = Load(server, args)
    threads = [threading.Thread(target=session.play) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    load.end()
    turns = [turn for session in sessions for turn in session.turns]
    print_table(turns)
    num_preemptions = server.num_preemptions() - (0 if server.num_failures else num_preemptions)
    print_summary(turns, num_preemptions, load.num_done, seconds)
    if args.json:
        with args.json as file:
            options = {key: value for key, value in vars(args).items() if key != "json"}
            json.dump({"options": options, "turns": [asdict(turn) for turn in turns]}, file)
    errors = [one.error for one in (*sessions, load) if one.error]
    if errors:
        print(f"{len(errors)} sessions or loads ended early, the first with: {errors[0]}")
        return 1
    breaches = [turn for turn in turns if turn.is_breach()]
    for turn in breaches:
        print(f"session {turn.session}, turn {turn.number} ({turn.kind}): computed {turn.again} old tokens again, "
              f"expected at most {MOST_AGAIN}; cause {turn.cause or 'none'}; {turn.cached} of {turn.prompt} cached")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
