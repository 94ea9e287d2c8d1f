"""A minimal HTTP/1.1 client that can hold thousands of connections and close them at any time."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes = b""

    def json(self) -> dict:
        return json.loads(self.body)


class Connection:
    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> "Connection":
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.drop()

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def drop(self) -> None:
        """Closes the connection at once, even if the server still sends."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._reader = self._writer = None
            await asyncio.sleep(0)  # the loop closes the socket in its next round

    async def send_raw(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> None:
        """`body`: bytes as they are, anything else as JSON. `x_request_id="1"` is the field X-Request-Id."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        for name, value in headers.items():
            head += f"{name.replace('_', '-')}: {value}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        await self.send_raw(head.encode() + b"\r\n" + (data if body is not None else b""))

    async def head(self) -> Answer:
        assert self._reader is not None
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return Answer(int(lines[0].split(" ")[1]), headers)

    async def pieces(self, head: Answer) -> AsyncIterator[bytes]:
        assert self._reader is not None
        if head.headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(head.headers["content-length"]))
            return
        while size := int((await self._reader.readline()).strip(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)

    async def answer(self) -> Answer:
        answer = await self.head()
        answer.body = b"".join([piece async for piece in self.pieces(answer)])
        return answer

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        await self.send(method, path, body, **headers)
        return await self.answer()
