"""The requests of the load tests, and the responses that each must get."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from http1 import Answer, Connection

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"
_WORDS = "Tom Rosa Ivan has buys three apples cards and gives half away then sells 12 7 48".split()


def prompt(rng: random.Random) -> str:
    return "Question: " + " ".join(rng.choices(_WORDS, k=rng.randint(2, 20))) + "?\nAnswer:"


def completion(rng: random.Random, max_tokens: int, **more: object) -> dict:
    """A completion of exactly max_tokens."""
    return {
        "prompt": prompt(rng),
        "max_tokens": max_tokens,
        "ignore_eos": True,
        "seed": rng.randrange(1 << 30),
        **more,
    }


def conversation(rng: random.Random, max_tokens: int, **more: object) -> dict:
    message = {"role": "user", "content": prompt(rng)}
    return {"messages": [message], "max_tokens": max_tokens, **more}


def check_stream(answer: Answer, num_tokens: int | None = None) -> None:
    """Checks that all events are there, up to [DONE], and that none is an error."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"].startswith("text/event-stream"), answer
    events = answer.body.removesuffix(DONE)
    assert events != answer.body, f"no [DONE] at the end: {answer.body[-300:]!r}"
    chunks = [json.loads(event[6:]) for event in events.decode().split("\n\n") if event]
    assert all("choices" in chunk for chunk in chunks), answer.body
    assert chunks[-1]["choices"][0]["finish_reason"] is not None, answer.body
    if num_tokens is not None:
        with_ids = [chunk["choices"][0]["token_ids"] for chunk in chunks]
        assert sum(len(ids) for ids in with_ids) == num_tokens, answer.body


def check_whole(answer: Answer, num_tokens: int) -> None:
    assert answer.status == 200, answer
    assert answer.json()["usage"]["completion_tokens"] == num_tokens, answer.body


def check_error(answer: Answer, status: int) -> None:
    assert answer.status == status, answer
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, answer.body


@dataclass(frozen=True)
class WrongCall:
    status: int
    path: str
    body: object


def wrong_calls() -> list[WrongCall]:
    deep = b'{"prompt":' + b"[" * 100_000 + b"}"
    return [
        WrongCall(400, COMPLETIONS, b"{"),
        WrongCall(400, COMPLETIONS, b'{"prompt":"\xff\xfe"}'),
        WrongCall(400, COMPLETIONS, deep),
        WrongCall(400, COMPLETIONS, []),
        WrongCall(400, COMPLETIONS, {"prompt": "x", "temperature": "hot"}),
        WrongCall(400, COMPLETIONS, {"prompt": "x", "n": 1000}),
        WrongCall(400, COMPLETIONS, {"prompt": [1] * 5000}),
        WrongCall(400, COMPLETIONS, {"prompt": [999_999]}),
        WrongCall(400, COMPLETIONS, {"prompt": "x", "stream": True, "top_p": 7}),
        WrongCall(400, CHAT, {"messages": []}),
        WrongCall(400, CHAT, {"messages": [{"role": "nobody", "content": "x"}]}),
        WrongCall(400, CHAT, {"messages": [{"role": "user", "content": "x"}],
                              "response_format": {"type": "json_schema", "json_schema":
                                                  {"schema": {"type": 7}}}}),
        WrongCall(404, COMPLETIONS, {"prompt": "x", "model": "other"}),
        WrongCall(404, "/v1/nothing", {}),
        WrongCall(405, "/v1/models", {}),
    ]  # fmt: skip


Kind = Callable[[Connection, random.Random], object]


async def call_whole(connection: Connection, rng: random.Random) -> None:
    n = rng.choice([1, 1, 2])
    body = completion(rng, rng.randint(1, 12), n=n, logprobs=rng.choice([None, 0, 3]))
    check_whole(await connection.call("POST", COMPLETIONS, body), n * body["max_tokens"])


async def call_stream(connection: Connection, rng: random.Random) -> None:
    body = completion(rng, rng.randint(1, 12), stream=True, return_token_ids=True)
    check_stream(await connection.call("POST", COMPLETIONS, body), body["max_tokens"])


async def call_chat(connection: Connection, rng: random.Random) -> None:
    body = conversation(rng, rng.randint(1, 12), stream=True, top_logprobs=2, logprobs=True)
    check_stream(await connection.call("POST", CHAT, body))


async def call_grammar(connection: Connection, rng: random.Random) -> None:
    digits = rng.randint(1, 6)
    body = conversation(rng, 16, structured_outputs={"regex": f"[0-9]{{{digits}}}-[a-c]"})
    answer = await connection.call("POST", CHAT, body)
    assert answer.status == 200, answer
    text = answer.json()["choices"][0]["message"]["content"]
    assert len(text) == digits + 2 and text[:digits].isdigit() and text[digits] == "-", text


async def call_wrong(connection: Connection, rng: random.Random) -> None:
    wrong = rng.choice(wrong_calls())
    answer = await connection.call("POST", wrong.path, wrong.body)
    check_error(answer, wrong.status)


async def call_text(connection: Connection, rng: random.Random) -> None:
    text = prompt(rng)
    body = {"prompt": text, "add_special_tokens": False}
    answer = await connection.call("POST", "/tokenize", body)
    again = await connection.call("POST", "/detokenize", {"tokens": answer.json()["tokens"]})
    assert again.json()["prompt"] == text, again


async def call_and_go(connection: Connection, rng: random.Random) -> None:
    """A client that disconnects before its response begins or during it, streaming or not."""
    body = completion(rng, 2000, stream=rng.random() < 0.5, n=rng.choice([1, 1, 3]))
    await connection.send("POST", COMPLETIONS, body)
    if body["stream"] and rng.random() < 0.7:
        head = await connection.head()
        num_left = rng.randint(1, 8)
        async for _ in connection.pieces(head):
            num_left -= 1
            if num_left == 0:
                break
    await connection.drop()
    await connection.open()
