"""A hub of models on this machine, with the requests of the real one and with faults.

Large files are redirected to a second host (`localhost` for `127.0.0.1`), as the hub redirects to
its content network.
"""

import hashlib
import json
import ssl
import sys
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

LARGE_BYTES = 10_000  # from here on, a file is stored as LFS


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def blob_hash(content: bytes) -> str:
    """The name of a blob in the cache: as the hub's ETag."""
    if len(content) >= LARGE_BYTES:
        return sha256(content)
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Request:
    host: str
    path: str
    headers: dict[str, str]


# Answers the request in place of the server and returns true, or returns false.
Fault = Callable[["Handler", bytes], bool]


@dataclass
class Model:
    files: dict[str, bytes]
    commit: str = "c" * 40
    more_entries: list[dict[str, object]] = field(default_factory=list)  # in the list only
    changed_entries: dict[str, dict[str, object]] = field(default_factory=dict)
    gguf: dict[str, object] | None = None  # the facts that the hub reads from a GGUF file

    def listing(self) -> dict[str, object]:
        siblings: list[dict[str, object]] = []
        for name, content in self.files.items():
            entry: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            if len(content) >= LARGE_BYTES:
                entry["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 134}
            else:
                entry["blobId"] = blob_hash(content)
            siblings.append(entry | self.changed_entries.get(name, {}))
        facts = {} if self.gguf is None else {"gguf": self.gguf}
        return {"sha": self.commit, "siblings": siblings + self.more_entries} | facts


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: "Hub"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        # A client of a proxy sends the whole URL.
        url = urllib.parse.urlsplit(self.path)
        host = url.netloc or self.headers["Host"]
        with self.hub.lock:
            self.hub.requests.append(Request(host, url.path, dict(self.headers)))
        parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            self.send_listing("/".join(parts[2:4]), parts[5])
        elif parts[0] == "cdn":
            self.send_file(self.hub.blobs[parts[1]], parts[2])
        else:
            self.send_resolved("/".join(parts[:2]), parts[3], "/".join(parts[4:]))

    def take_fault(self, name: str) -> Fault | None:
        with self.hub.lock:
            faults = self.hub.faults.get(name, [])
            return faults.pop(0) if faults else None

    def send_listing(self, repository: str, revision: str) -> None:
        fault = self.take_fault("list")
        if fault and fault(self, b""):
            return
        model = self.hub.models.get((repository, revision))
        if model is None:
            known = any(name == repository for name, _ in self.hub.models)
            code = "RevisionNotFound" if known else "RepoNotFound"
            self.send_text(404 if known else 401, b"{}", {"X-Error-Code": code})
            return
        self.send_text(200, json.dumps(model.listing()).encode(), {})

    def send_resolved(self, repository: str, commit: str, name: str) -> None:
        model = next(m for (r, _), m in self.hub.models.items() if r == repository and m.commit == commit)
        content = model.files[name]
        if len(content) < LARGE_BYTES:
            self.send_file(content, name)
            return
        self.hub.blobs[sha256(content)] = content
        location = f"{self.hub.cdn}/cdn/{sha256(content)}/{name}"
        self.send_text(302, b"moved", {"Location": location})

    def send_file(self, content: bytes, name: str) -> None:
        fault = self.take_fault(name)
        if fault and fault(self, content):
            return
        self.send_content(content)

    def begin(self) -> int:
        """The offset that the client asks for."""
        value = self.headers.get("Range", "bytes=0-")
        return int(value.removeprefix("bytes=").removesuffix("-"))

    def send_content(self, content: bytes, cut: int | None = None, pause: threading.Event | None = None) -> None:
        """Sends the range; `cut` closes the connection after so many bytes, `pause` waits there."""
        begin = self.begin()
        if begin and begin >= len(content):
            self.send_text(416, b"", {})
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if cut is None:
            self.wfile.write(content[begin:])
            return
        self.wfile.write(content[begin : begin + cut])
        self.wfile.flush()
        if pause is None:
            self.close_connection = True
        else:
            pause.wait(60)
            self.wfile.write(content[begin + cut :])

    def send_text(self, status: int, text: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def status(code: int, **headers: str) -> Fault:
    """Answers with a status once; `Retry_After` is the header Retry-After."""

    def fault(handler: Handler, content: bytes) -> bool:
        handler.send_text(code, b"an error\n", {name.replace("_", "-"): value for name, value in headers.items()})
        return True

    return fault


def cut(after: int) -> Fault:
    """Closes the connection in the middle."""

    def fault(handler: Handler, content: bytes) -> bool:
        handler.send_content(content, cut=after)
        return True

    return fault


def pause(after: int, event: threading.Event) -> Fault:
    """Waits for the event in the middle."""

    def fault(handler: Handler, content: bytes) -> bool:
        handler.send_content(content, cut=after, pause=event)
        return True

    return fault


def other_content(content: bytes) -> Fault:
    """Sends other bytes than the list promises, and ignores a range."""

    def fault(handler: Handler, _: bytes) -> bool:
        handler.send_text(200, content, {})
        return True

    return fault


def endless(handler: Handler, content: bytes) -> bool:
    """Sends a body until the client closes the connection."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(b" " * (1 << 20))
    except OSError:
        return True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing of a client that closed its connection, which the tests make happen."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Hub:
    """Serves from `with` to its end."""

    handler: type[Handler] = Handler

    def __init__(self, certificate: str | None = None) -> None:
        self.models: dict[tuple[str, str], Model] = {}
        self.faults: dict[str, list[Fault]] = {}  # by file name, or "list"; each is used once
        self.requests: list[Request] = []
        self.blobs: dict[str, bytes] = {}
        self.lock = threading.Lock()
        self.handler_class = type("HubHandler", (self.handler,), {"hub": self})
        self._server = Server(("127.0.0.1", 0), self.handler_class)
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.cdn = f"{scheme}://localhost:{self.port}"

    def add(self, repository: str, model: Model, revision: str = "main") -> Model:
        self.models[(repository, revision)] = model
        return model

    def paths(self) -> list[str]:
        """The last parts of the requested paths, without the redirects to the content network."""
        with self.lock:
            return [r.path.rsplit("/", 1)[1] for r in self.requests if not r.path.startswith("/cdn/")]

    def contents(self, name: str) -> list[Request]:
        """The requests for the content of a file."""
        with self.lock:
            return [r for r in self.requests if r.path.endswith("/" + name)
                    and (r.path.startswith("/cdn/") or name not in self._large_names())]  # fmt: skip

    def _large_names(self) -> set[str]:
        return {name for model in self.models.values() for name, content in model.files.items()
                if len(content) >= LARGE_BYTES}  # fmt: skip

    def __enter__(self) -> "Hub":
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
