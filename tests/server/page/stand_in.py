"""A server with the routes of `quire serve`, whose responses a test defines to the byte.

The last message of a chat names its response: a key of `_ANSWERS`, or "refused".
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SOURCE_DIR = Path(__file__).resolve().parents[3]
PAGE_DIR = SOURCE_DIR / "src/server/page"
MODEL = "stand-in"
KATEX_DIR = SOURCE_DIR / ".deps/katex"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".woff2": "font/woff2"}
CONTEXT = 4096

MARKDOWN = """# Title

A paragraph with **bold**, *italics* and `code`.

- one
  - inner
- two

```python
if a < b:
    print("<b>")
```

Read [the page](https://example.org/a_(b)).
"""
HOSTILE = (
    "<img src=x onerror=\"window.pwned=1\"> <script>window.pwned=1</script>\n\n"
    "[run](javascript:window.pwned=1) [data](data:text/html,x) ![i](https://example.org/i.png)\n\n"
    "```<img src=x onerror=window.pwned=1>\n<svg onload=window.pwned=1>\n```\n"
)


def policy() -> str:
    """Returns the policy that the binary sends, read from its source."""
    source = (PAGE_DIR / "page.cc").read_text()
    body = source[source.index("page_security_policy()") :]
    return "".join(re.findall(r'"([^"]*)"', body[: body.index(";\n}")]))


def file_of(path: str) -> Path | None:
    """Returns the page's file of this path."""
    if path == "/":
        return PAGE_DIR / "web/index.html"
    found = re.fullmatch(r"/page/(katex/(?:fonts/)?)?([\w.-]+)", path)
    if not found:
        return None
    return (KATEX_DIR if found[1] else PAGE_DIR / "web") / path.removeprefix("/page/").removeprefix("katex/")


def _chunk(delta: dict[str, Any], num_tokens: int, finish_reason: str | None = None) -> bytes:
    chunk = {
        "object": "chat.completion.chunk",
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": num_tokens},
    }
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def _stream(pieces: list[str], field: str = "content", reason: str = "stop") -> bytes:
    out = _chunk({"role": "assistant", "content": ""}, 0)
    for i, piece in enumerate(pieces):
        out += _chunk({field: piece}, i + 1)
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(pieces)}}
    out += _chunk({}, len(pieces), reason)
    return out + f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode()


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def _slow() -> Iterator[bytes]:
    """Streams until the client disconnects."""
    for i in range(2000):
        yield _chunk({"content": f"word{i} "}, i + 1)
        time.sleep(0.02)


def _hesitant() -> Iterator[bytes]:
    """Begins after half a second, and then streams for one second."""
    time.sleep(0.5)
    for i in range(20):
        yield _chunk({"content": f"word{i} "}, i + 1)
        time.sleep(0.05)
    yield _chunk({}, 20, "stop") + b"data: [DONE]\n\n"


def _lumpy() -> Iterator[bytes]:
    """Sends most of the answer in one piece."""
    yield b"".join(_chunk({"content": f"word{i} "}, i + 1) for i in range(50))
    for i in range(50, 54):
        time.sleep(0.1)
        yield _chunk({"content": f"word{i} "}, i + 1)
    yield _chunk({}, 54, "length") + b"data: [DONE]\n\n"


def _calling() -> Iterator[bytes]:
    """Calls a tool twice; the arguments come in pieces."""
    pieces = [{"index": 0, "id": "call-a", "type": "function",
               "function": {"name": "get_weather", "arguments": ""}},
              {"index": 0, "function": {"arguments": '{"city": "<b>Par'}},
              {"index": 0, "function": {"arguments": 'is</b>", "days": 2}'}},
              {"index": 1, "id": "call-b", "type": "function",
               "function": {"name": "get_time", "arguments": "not json"}}]  # fmt: skip
    for i, piece in enumerate(pieces):
        yield _chunk({"tool_calls": [piece]}, i + 1)
    yield _chunk({}, len(pieces), "tool_calls") + b"data: [DONE]\n\n"


def _odd() -> Iterator[bytes]:
    """Sends lines that end in \\r\\n, comments between events, and every byte by itself."""
    whole = _stream(_pieces("Grüße, 世界 🎈!", 2)).replace(b"\n\n", b"\r\n\r\n: still here\r\n\r\n")
    for at in range(len(whole)):
        yield whole[at : at + 1]


def _thinking() -> Iterator[bytes]:
    thoughts = _stream(["First, ", "<b>think</b>."], "reasoning_content")
    yield thoughts[: thoughts.index(b"data: [DONE]")]
    yield _stream(["Then ", "speak."])


_ERROR = {"message": "the engine stopped", "type": "server_error", "code": 503}
_ANSWERS = {
    "markdown": lambda: iter([_stream(_pieces(MARKDOWN, 3))]),
    "hostile": lambda: iter([_stream(_pieces(HOSTILE, 1))]),
    "long": lambda: iter([_stream([f"Line {i}.\n\n" for i in range(200)])]),
    "table": lambda: iter([_stream(["|name|value|remarks|\n|-|-|-|\n" + "|a long cell of words|12|x y|\n" * 3])]),
    "length": lambda: iter([_stream(["cut"], reason="length")]),
    "slow": _slow,
    "hesitant": _hesitant,
    "lumpy": _lumpy,
    "calls": _calling,
    "odd": _odd,
    "thinking": _thinking,
    "breaks off": lambda: iter([_chunk({"content": "half an"}, 2)]),
    "fails amid": lambda: iter(
        [_chunk({"content": "half an"}, 2), f"data: {json.dumps({'error': _ERROR})}\n\n".encode()]
    ),
    "no json": lambda: iter([b"data: {oops\n\n"]),
}


def num_tokens(call: dict[str, Any]) -> int:
    """Counts one token per word, and one per message."""
    texts = [call["prompt"]] if "prompt" in call else [m["content"] for m in call["messages"]]
    return sum(len(text.split()) for text in texts) + len(call.get("messages", []))


class StandIn:
    def __init__(self) -> None:
        stand_in = self
        self.calls: list[dict[str, Any]] = []  # bodies of chat calls
        self.num_dropped = 0  # streams whose client disconnected
        self.num_metrics_calls = 0
        self.is_up = True
        self.drafts: dict[str, int] = {}  # counters of speculation; empty: the server has none
        self.model = MODEL
        self.status: dict[str, str] | None = None  # of the first model; a server of one has none
        self.more_models: list[dict[str, Any]] = []  # further entries of the list
        self.context = CONTEXT
        self.start_time = 1
        self.key = ""  # the server needs it if it is not empty
        self.num_counts = 0  # calls of /tokenize

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def send_json(self, status: int, value: Any, **headers: str) -> None:
                self.send(status, "application/json", json.dumps(value).encode(), **headers)

            def is_refused(self) -> bool:
                """Routes other than the page's files need the key, if there is one."""
                sent = self.headers["authorization"]
                if file_of(self.path) or not stand_in.key or sent == f"Bearer {stand_in.key}":
                    return False
                error = {"message": "the API key is missing or wrong"}
                self.close_connection = True
                self.send_json(401, {"error": error}, www_authenticate="Bearer")
                return True

            def do_GET(self) -> None:
                if not self.is_refused():
                    stand_in.answer_get(self)

            def do_POST(self) -> None:
                if self.is_refused():
                    return None
                if self.path == "/tokenize":
                    return stand_in.answer_tokenize(self)
                stand_in.answer_chat(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer_get(self, handler: Any) -> None:
        if handler.path == "/v1/models":
            model = {
                "id": self.model, "object": "model", "root": MODEL, "max_model_len": self.context,
                "sampling_defaults": {"temperature": 0.6, "top_p": 0.9, "top_k": 40, "source": "x"},
            }  # fmt: skip
            if self.status:
                model["status"] = self.status
            return handler.send_json(200, {"object": "list", "data": [model, *self.more_models]})
        if handler.path == "/metrics":
            self.num_metrics_calls += 1
            if not self.is_up:
                return handler.send_json(503, {"error": {"message": "the engine stands still"}})
            return handler.send(200, "text/plain; version=0.0.4", self._metrics().encode())
        file = file_of(handler.path)
        if not file or not file.is_file():
            return handler.send_json(404, {"error": {"message": f"there is no {handler.path}"}})
        kind = _TYPES.get(file.suffix, "image/svg+xml")
        handler.send(200, kind, file.read_bytes(), content_security_policy=policy())

    def _metrics(self) -> str:
        label = f'{{model_name="{MODEL}"}}'
        values = {
            "process_start_time_seconds": self.start_time,
            "vllm:num_requests_running": 3,
            "vllm:num_requests_waiting": 2,
            "vllm:kv_cache_usage_perc": 0.25,
            "vllm:generation_tokens_total": round(100 * time.monotonic()),
            "vllm:prefix_cache_queries_total": 200,
            "vllm:prefix_cache_hits_total": 150,
            **self.drafts,
        }
        return "".join(f"# TYPE {name} gauge\n{name}{label} {v}\n" for name, v in values.items())

    def answer_tokenize(self, handler: Any) -> None:
        call = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        self.num_counts += 1
        handler.send_json(200, {"count": num_tokens(call), "max_model_len": self.context})

    def answer_chat(self, handler: Any) -> None:
        call = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        self.calls.append(call)
        wanted = call["messages"][-1]["content"]
        if wanted == "refused":
            error = {"message": "576 of at most 576 sequences are running or queued", "code": 429}
            return handler.send_json(429, {"error": error}, retry_after="2")
        size = num_tokens(call)
        if size >= self.context:
            error = {"message": "the prompt is too long", "code": "context_length_exceeded"}
            return handler.send_json(400, {"error": error})
        said = " and more." if call.get("continue_final_message") else f"You said {wanted[:100]}."
        make = _ANSWERS.get(wanted, lambda: iter([_stream([said])]))
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        try:
            for piece in make():
                handler.wfile.write(piece.replace(b'"prompt_tokens": 7', f'"prompt_tokens": {size}'.encode()))
                handler.wfile.flush()
        except OSError:
            self.num_dropped += 1
        handler.close_connection = True

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
