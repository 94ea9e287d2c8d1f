"""A Ray Serve application: each replica of its deployment runs one `quire serve`, and passes requests on to it.

    serve run --working-dir deploy/ray quire_app:app model=Qwen/Qwen3-0.6B num_replicas=2 num_gpus=1

deploy/ray/serve.yaml is the same for `serve deploy` and KubeRay. The arguments are the fields of Arguments.
"""

import asyncio
import os
import re
import shlex
import subprocess
import threading
from collections.abc import AsyncIterator

import aiohttp
import yarl
from pydantic import BaseModel
from ray import serve
from ray.serve.config import RequestRouterConfig
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

# Fields of one connection, which a proxy does not pass on (RFC 9110, 7.6.1), and those that aiohttp or Ray write.
_NOT_PASSED_ON = {
    *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    *("host", "content-length"),
}
_WRITTEN_BY_RAY = {"date", "server", "x-request-id"}
_ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"


class Arguments(BaseModel):
    model: str = ""  # as of `quire serve --model`; empty: the embedded model
    flags: str = ""  # further flags of `quire serve`
    binary: str = "quire"
    num_replicas: int = 1
    num_gpus: float = 0  # per replica; Ray sets CUDA_VISIBLE_DEVICES accordingly
    num_cpus: float = 1  # per replica, as Ray counts them
    # Requests that a replica accepts, running and queued. Ray queues further ones until a replica is free.
    max_ongoing_requests: int = 512
    # Sends requests with the same X-Session-Id to the same replica, which then finds their prefix in its KV cache.
    session_affinity: bool = True
    drain_timeout_s: int = 30


class Quire:
    """One replica. If its server ends, the replica ends too, and Ray starts another one."""

    def __init__(self, arguments: Arguments) -> None:
        # If Ray kills the replica's process, Linux kills its server, so that none keeps a GPU without a replica.
        # Port 0: several replicas of one machine never choose the same port.
        command = [
            *("setpriv", "--pdeathsig", "KILL", arguments.binary, "serve", "--port", "0"),
            *("--drain-timeout", str(arguments.drain_timeout_s)),
        ]
        if arguments.model:
            command += ["--model", arguments.model]
        # Linux takes the thread that starts the server as its parent, so this thread stays: it waits for the server.
        self._line: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._is_stopping = False
        self._process: subprocess.Popen[str] | None = None
        self._session: aiohttp.ClientSession | None = None
        threading.Thread(
            target=self._run, args=(command + shlex.split(arguments.flags),), daemon=True
        ).start()

    def _run(self, command: list[str]) -> None:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError as error:  # for example, setpriv is missing
            self._loop.call_soon_threadsafe(self._line.set_exception, error)
            return
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline()  # a large model takes minutes
        self._loop.call_soon_threadsafe(self._line.set_result, line)
        status = process.wait()
        if not self._is_stopping and line:
            # Requests that Ray has not passed to this replica yet go to others. Those that run here fail.
            print(f"quire serve ended with {status}; ending the replica", flush=True)
            os._exit(1)

    async def _url(self) -> str:
        found = re.fullmatch(r"serving \S+ at (\S+)\n", await asyncio.shield(self._line))
        if found is None:
            raise RuntimeError("quire serve did not start; the log of the replica has its error")
        return found[1]

    async def check_health(self) -> None:
        """Ray calls this periodically, also before a new replica gets requests, and replaces the replica if it raises."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                # A response may take as long as a model generates.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
            )
        async with self._session.get(await self._url() + "/health") as response:
            if response.status != 200:
                raise RuntimeError(f"/health of quire serve is {response.status}: {await response.text()}")

    async def __call__(self, request: Request) -> Response:
        if self._session is None:
            await self.check_health()
        assert self._session is not None
        url = yarl.URL(await self._url() + request.url.path)
        # The path as the server reads it: decoded, without `..`, and without slashes at its end.
        if url.path.rstrip("/") == "/metrics":
            return JSONResponse({"error": "each server has its own metrics"}, 404)
        headers = {k: v for k, v in request.headers.items() if k not in _NOT_PASSED_ON}
        response = await self._session.request(
            request.method, url, params=request.url.query, headers=headers, data=await request.body()
        )

        async def pieces() -> AsyncIterator[bytes]:
            # Leaving this block early, because the client has disconnected, closes the connection to
            # the server, which then cancels the request.
            async with response:
                async for piece in response.content.iter_any():
                    yield piece

        kept = {k: v for k, v in response.headers.items() if k.lower() not in _NOT_PASSED_ON | _WRITTEN_BY_RAY}
        return StreamingResponse(pieces(), response.status, kept)

    async def __del__(self) -> None:
        """Ray calls this when it removes the replica; its requests have ended, or their time is over."""
        self._is_stopping = True
        if self._session is not None:
            await self._session.close()
        if self._process is not None:
            self._process.terminate()
            await asyncio.to_thread(self._process.wait)


def app(arguments: Arguments) -> serve.Application:
    options = {
        "num_replicas": arguments.num_replicas,
        "max_ongoing_requests": arguments.max_ongoing_requests,
        "ray_actor_options": {"num_gpus": arguments.num_gpus, "num_cpus": arguments.num_cpus},
        "health_check_period_s": 2,
        # Ray waits this long for the requests of a replica that it removes.
        "graceful_shutdown_timeout_s": arguments.drain_timeout_s + 10,
    }
    if arguments.session_affinity:
        options["request_router_config"] = RequestRouterConfig(request_router_class=_ROUTER)
    return serve.deployment(Quire).options(name="quire", **options).bind(arguments)
