"""Follows the prefix cache of the real binary as a router does: by its KV events over ZeroMQ.

kv_events_test.py --quire BINARY [TEST …]
"""

import hashlib
import json
import os
import unittest.mock
import urllib.request
from typing import Any

import cbor2
import msgpack
import zmq

from client_case import ServedCase, main

TOPIC = "kv@pod-1@quire"
END = 2**64 - 1
CONFIG = {
    "enable_kv_cache_events": True,
    "publisher": "zmq",
    "endpoint": "tcp://*:0",
    "replay_endpoint": "tcp://*:0",
    "topic": TOPIC,
}
BLOCK = 16
TIMEOUT_MS = 10000


def sha256_cbor(value: Any) -> bytes:
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


def block_hashes(ids: list[int], seed: str, salt: str = "") -> list[bytes]:
    """The hashes of the full blocks of a prompt, as vLLM computes them."""
    hashes = []
    parent = sha256_cbor(seed)
    for begin in range(0, len(ids) - BLOCK + 1, BLOCK):
        extra_keys = (("cache_salt", salt),) if salt and begin == 0 else None
        parent = sha256_cbor((parent, tuple(ids[begin : begin + BLOCK]), extra_keys))
        hashes.append(parent)
    return hashes


def as_int(block_hash: bytes) -> int:
    return int.from_bytes(block_hash, "big") & (2**64 - 1)


class Follower:
    """Subscribes to one source, and asks for the batches that it lacks."""

    def __init__(self, source: dict[str, Any]) -> None:
        self._context = zmq.Context()
        self._sub = self._open(zmq.SUB, source["endpoint"])
        self._sub.setsockopt_string(zmq.SUBSCRIBE, source["topic"])
        self._replay = self._open(zmq.DEALER, source["replay_endpoint"])
        self.cached: set[Any] = set()
        self.batches: list[Any] = []  # applied, by number

    def _open(self, kind: int, endpoint: str) -> zmq.Socket:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        socket.connect(endpoint.replace("*", "127.0.0.1"))
        return socket

    def close(self) -> None:
        self._context.destroy(linger=0)

    def receive(self) -> tuple[int, Any]:
        topic, number, payload = self._sub.recv_multipart()
        assert topic.decode() == TOPIC, topic
        return int.from_bytes(number, "big"), msgpack.unpackb(payload)

    def repeat(self, first: int) -> list[tuple[int, Any]]:
        self._replay.send_multipart([b"", first.to_bytes(8, "big")])
        batches = []
        while True:
            delimiter, topic, number, payload = self._replay.recv_multipart()
            assert delimiter == b"", delimiter
            if int.from_bytes(number, "big") == END:
                assert topic == payload == b""
                return batches
            assert topic.decode() == TOPIC, topic
            batches.append((int.from_bytes(number, "big"), msgpack.unpackb(payload)))

    def catch_up(self) -> None:
        """Applies every batch that the server has published."""
        for number, batch in self.repeat(len(self.batches)):
            assert number == len(self.batches), (number, len(self.batches))
            self.batches.append(batch)
            for event in batch[1]:
                self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        if event["type"] == "BlockStored":
            assert not self.cached & set(event["block_hashes"]), "stored again"
            self.cached |= set(event["block_hashes"])
        elif event["type"] == "BlockRemoved":
            assert self.cached >= set(event["block_hashes"]), "removed what was not stored"
            self.cached -= set(event["block_hashes"])
        else:
            raise AssertionError(event)


class KvEventsCase(ServedCase):
    environment: dict[str, str] = {}
    flags = ("--kv-events-config", json.dumps(CONFIG), "--block-size", str(BLOCK))

    @classmethod
    def setUpClass(cls) -> None:
        with unittest.mock.patch.dict(os.environ, cls.environment):
            super().setUpClass()

    def setUp(self) -> None:
        self.source = self.get("/kv_event_sources")["0"]
        self.follower = Follower(self.source)
        self.addCleanup(self.follower.close)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.served.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        request = urllib.request.Request(
            self.served.url + path,
            json.dumps(body).encode(),
            {"content-type": "application/json"}
            | {k.replace("_", "-"): v for k, v in headers.items()},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            self.assertEqual(
                response.headers["x-request-id"],
                headers.get("x_request_id", response.headers["x-request-id"]),
            )
            return json.load(response)

    def complete(self, prompt: Any, **more: Any) -> dict[str, Any]:
        body = {"prompt": prompt, "max_tokens": 2, "temperature": 0} | more
        return self.post("/v1/completions", body)["usage"]["prompt_tokens_details"]


class EventsTest(KvEventsCase):
    seed = "vllm-none-hash"

    def wanted(self, ids: list[int], salt: str = "") -> set[Any]:
        return {as_int(value) for value in block_hashes(ids, self.seed, salt)}

    def test_sources_name_the_bound_ports(self) -> None:
        self.assertRegex(self.source["endpoint"], r"^tcp://\*:[1-9][0-9]*$")
        self.assertEqual(self.source["topic"], TOPIC)
        self.assertEqual(self.source["buffer_steps"], 10000)

    def test_a_router_finds_the_blocks_of_a_rendered_prompt(self) -> None:
        chat = {"messages": [{"role": "user", "content": "Tom has 3 apples and buys 5. " * 4}]}
        rendered = self.post("/v1/chat/completions/render", chat, x_request_id="router-7")
        self.assertEqual(rendered["request_id"], "chatcmpl-router-7")
        ids = rendered["token_ids"]
        wanted = self.wanted(ids)
        self.assertGreater(len(wanted), 1)
        self.follower.catch_up()
        self.assertFalse(wanted & self.follower.cached)
        answer = self.post(
            "/v1/chat/completions", chat | {"max_tokens": 2}, x_request_id="router-8"
        )
        self.assertEqual(answer["id"], "chatcmpl-router-8")
        self.assertEqual(answer["usage"]["prompt_tokens"], len(ids))
        self.follower.catch_up()
        self.assertLessEqual(wanted, self.follower.cached)

    def test_events_have_the_fields_of_vllm(self) -> None:
        ids = list(range(1000, 1000 + 40))
        self.follower.catch_up()
        num_known = len(self.follower.batches)
        self.complete(ids, cache_salt="tenant")
        self.follower.catch_up()
        timestamp, events, rank = self.follower.batches[num_known]
        self.assertIsInstance(timestamp, float)
        self.assertEqual(rank, 0)
        first, second = block_hashes(ids, self.seed, "tenant")
        self.assertEqual(
            events,
            [
                {
                    "type": "BlockStored",
                    "block_hashes": [as_int(first), as_int(second)],
                    "parent_block_hash": None,
                    "token_ids": ids[:32],
                    "block_size": BLOCK,
                    "lora_id": None,
                    "medium": "CPU",
                    "lora_name": None,
                    "extra_keys": [["tenant"], None],
                    "group_idx": 0,
                    "kv_cache_spec_kind": "full_attention",
                }
            ],
        )

    def test_a_subscriber_repairs_what_it_lost(self) -> None:
        numbers: list[int] = []
        lost: list[int] = []
        self.follower._sub.setsockopt(zmq.RCVTIMEO, 200)
        for i in range(30):
            self.complete([2000 + 50 * i + k for k in range(40)])
            try:
                number, _ = self.follower.receive()
            except zmq.Again:  # not connected yet
                continue
            (lost if i % 3 == 0 else numbers).append(number)  # drops every third message
        self.assertGreater(len(lost), 2)
        self.follower.catch_up()
        self.assertEqual([number for number, _ in self.follower.repeat(lost[0])][0], lost[0])
        for i in range(30):
            self.assertLessEqual(
                self.wanted([2000 + 50 * i + k for k in range(40)]), self.follower.cached
            )

    def test_usage_says_why_a_prefix_missed(self) -> None:
        ids = list(range(30, 30 + 48))
        self.assertEqual(self.complete(ids), {"cached_tokens": 0, "cache_miss_cause": "first_use"})
        self.assertEqual(self.complete(ids), {"cached_tokens": 32})
        self.assertEqual(
            self.complete(ids[:32] + list(range(500, 532))),
            {"cached_tokens": 32, "cache_miss_cause": "changed_prompt"},
        )
        self.assertEqual(
            self.complete(ids[:8]), {"cached_tokens": 0, "cache_miss_cause": "too_short"}
        )

    def test_the_server_describes_itself(self) -> None:
        info = self.get("/server_info")
        self.assertEqual(info, self.get("/get_server_info"))
        self.assertEqual(info["served_model_name"], self.model)
        self.assertEqual((info["tp_size"], info["dp_size"], info["page_size"]), (1, 1, BLOCK))


class SmallCacheTest(KvEventsCase):
    """The cache holds few prompts, so that blocks are evicted. Hashes are bytes, of another seed."""

    environment = {"PYTHONHASHSEED": "42", "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES": "0"}
    flags = (
        *KvEventsCase.flags,
        "--max-model-len",
        "256",
        "--max-num-seqs",
        "2",
        "--kv-cache-memory",
        "4M",
    )

    def test_evicted_blocks_are_removed(self) -> None:
        prompts = [[100 + 300 * i + k for k in range(200)] for i in range(8)]
        prompts = [[token % 2000 for token in prompt] for prompt in prompts]
        reasons = []
        for _ in range(2):
            for prompt in prompts:
                reasons.append(self.complete(prompt).get("cache_miss_cause"))
        self.follower.catch_up()
        kinds = {event["type"] for batch in self.follower.batches for event in batch[1]}
        self.assertEqual(kinds, {"BlockStored", "BlockRemoved"})
        self.assertIn("evicted", reasons)
        last = block_hashes(prompts[-1], "42")
        self.assertLessEqual(set(last), self.follower.cached)
        self.assertNotIn(block_hashes(prompts[0], "42")[-1], self.follower.cached)


if __name__ == "__main__":
    main(__doc__)
