"""Compares docs/life-of-a-request.md with the calls of a real run: its files, in order, and no other.

  life_of_a_request_test.py TRACED_BINARY SOURCE_DIR [--print]

The binary is built under ThreadSanitizer with call_trace.cc, which writes the call stack at the first call of
every function by each caller. For each table of the page:
  - every function that a row names is called, and first calls come in the order of the rows;
  - every file of src/ on the stack of a named function has a row: the page leaves no file out.
src/base (helpers) and rows below src/cuda, which run on a GPU only, are exempt. --print shows the stacks that
the rows lead to, to write the page by.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "source"))
from pages_test import ROW  # noqa: E402: the form of the page's rows

HELPERS = ("src/base/",)


@dataclass(frozen=True)
class Function:
    name: str  # qualified, without parameters
    path: str  # below the source folder


@dataclass
class Call:
    order: int
    thread: int
    stack: list[Function] = field(default_factory=list)  # the called function last


def plain_name(name: str) -> str:
    """'quire::(anonymous namespace)::Reader::read(int) const' -> 'quire::Reader::read'"""
    name = name.replace("(anonymous namespace)::", "").replace("[abi:cxx11]", "")
    depth = 0
    text = ""
    for c in name:
        depth += (c in "<(") - (c in ">)")
        if c in "(" and depth == 1:
            break
        if depth == 0 and c != ">":
            text += c
    return text.split(" ")[-1]


def find_functions(binary: Path, source: Path, addresses: list[str]) -> dict[str, Function]:
    # An address points to the instruction after the call into the runtime. Either of the two may
    # have no line.
    before = [f"{int(address, 16) - 1:x}" for address in addresses]
    text = subprocess.run(["addr2line", "-a", "-i", "-f", "-C", "-e", binary], input="\n".join(addresses + before),
                          capture_output=True, text=True, check=True).stdout
    # Per address: the address, then a name and a place of each inlined function and of the function itself.
    blocks = [block.splitlines() for block in re.split(r"^0x[0-9a-f]+\n", text, flags=re.M)[1:]]
    functions = {}
    for address, (*_, name, place) in zip(addresses * 2, blocks, strict=True):
        path = os.path.normpath(os.path.join(binary.parent, place.rsplit(":", 1)[0]))
        # A build tree may have been made below another name of the source folder.
        inner = re.search(r"(?:^|/)((?:src|include)/.*)$", path)
        if inner is not None and (source / inner[1]).exists():
            functions[address] = Function(plain_name(name), inner[1])
    return {address: functions.get(address, Function("", "")) for address in addresses}


def read_trace(binary: Path, source: Path, path: Path) -> list[Call]:
    records = [line.split() for line in path.read_text().splitlines()]
    addresses = sorted({address for record in records for address in record[2:]})
    functions = find_functions(binary, source, addresses)
    calls = [Call(int(order), int(thread), [functions[address] for address in stack])
             for order, thread, *stack in records]
    return sorted(calls, key=lambda call: call.order)


def environment(trace: Path) -> dict[str, str]:
    return {**os.environ, "QUIRE_CALL_TRACE": str(trace)}


def generate(binary: Path, trace: Path) -> None:
    command = [binary, "generate", "--prompt", "Tom has 3 apples.", "--max-tokens", "4", "--threads", "2"]
    subprocess.run(command, env=environment(trace), check=True, stdout=subprocess.DEVNULL, timeout=300)


def serve(binary: Path, trace: Path) -> None:
    folder = trace.parent
    path = folder / "socket"
    server = subprocess.Popen([binary, "serve", "--uds", path, "--threads", "2"], env=environment(trace),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    body = b'{"messages": [{"role": "user", "content": "Tom has 3 apples."}], "max_tokens": 4, "stream": true}'
    try:
        for _ in range(1200):
            if path.exists() and ask(path, b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
                break
            if server.poll() is not None:
                sys.exit(f"the server did not start: {server.stderr.read()}")
            time.sleep(0.1)
        head = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        answer = ask(path, head + body)
        if b" 200 " not in answer or b"[DONE]" not in answer:
            sys.exit(f"the request failed: {answer[:500]!r}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=120)


def ask(path: Path, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(120)
        try:
            connection.connect(str(path))
        except OSError:
            return b""
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def is_call_of(call: Call, path: str, function: str) -> bool:
    # addr2line leaves out the class of a function into which others were inlined.
    called = call.stack[-1]
    known = function if "::" in called.name else function.split("::")[-1]
    return called.path == path and ("::" + called.name).endswith("::" + known)


def check(rows: list[tuple[str, str]], calls: list[Call], show: bool) -> list[str]:
    named = {path for path, _ in rows}
    faults = []
    last = (-1, "")
    for path, function in rows:
        if path.startswith(("src/cuda/", "include/")):
            continue
        found = [call for call in calls if is_call_of(call, path, function)]
        if not found:
            faults.append(f"{function} of {path} is not called")
            continue
        # Takes the call of this request, not one at start.
        found = next((call for call in found if call.order > last[0]), found[-1])
        if show:
            print(f"{found.order:6} thread {found.thread}: " +
                  " > ".join(f"{f.name} [{f.path}]" for f in found.stack if f.path))
        if found.order < last[0]:
            faults.append(f"{function} of {path} is called before {last[1]}, which the page names earlier")
        last = (found.order, function)
        for frame in found.stack:
            is_known = frame.path in named or frame.path.startswith(HELPERS)
            # On a GPU, src/cuda takes the place of src/cpu.
            is_replaced = frame.path.startswith("src/cpu/") and any(p.startswith("src/cuda/") for p in named)
            if frame.path.startswith("src/") and not is_known and not is_replaced:
                faults.append(f"{function} is reached through {frame.path} ({frame.name}), which has no row")
    return sorted(set(faults), key=faults.index)


def main() -> int:
    binary, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    show = "--print" in sys.argv
    sections = (source / "docs/life-of-a-request.md").read_text().split("\n## ")
    tables = [rows for rows in (ROW.findall(section) for section in sections) if rows]
    if len(tables) != 2:
        print(f"the page has {len(tables)} tables of files, expected 2: generate on a CPU, and HTTP to a GPU")
        return 1
    faults = []
    # The server's main thread only starts it.
    ways = ((generate, 0), (serve, 1))
    for (run, first_thread), rows in zip(ways, tables):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace"
            run(binary, trace)
            calls = [call for call in read_trace(binary, source, trace) if call.thread >= first_thread]
            faults += [f"{run.__name__}: {fault}" for fault in check(rows, calls, show)]
    print("\n".join(faults) if faults else "the page names the files of both ways, in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
