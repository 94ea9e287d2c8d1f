"""Drives a headless Chromium through its DevTools protocol: one tab, its keys, and its log."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "Space": (" ", 32, " "),
}
_SHIFT = 8


def find_chromium() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """The browser's process, with a new profile that is removed at the end."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [
            find_chromium() or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--font-render-hinting=none", "--hide-scrollbars", "--remote-debugging-port=0",
            f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._port = self._wait_for_port()

    def _wait_for_port(self) -> int:
        file = Path(self._profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if file.exists() and (lines := file.read_text().split()):
                return int(lines[0])
            if self._process.poll() is not None:
                raise RuntimeError(f"chromium ended with {self._process.returncode}")
            time.sleep(0.1)
        raise RuntimeError("chromium opened no DevTools port within a minute")

    def new_tab(self) -> "Tab":
        url = f"http://127.0.0.1:{self._port}/json/new?about:blank"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT")) as answer:
            target = json.load(answer)
        return Tab(target["webSocketDebuggerUrl"])

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()


class Tab:
    def __init__(self, url: str) -> None:
        # No pings: a tab that is busy with a hostile text does not answer them.
        self._socket = connect(url, max_size=None, proxy=None, ping_interval=None)
        self._next_id = 0
        self.on_event: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.complaints: list[str] = []  # errors in the console, exceptions, policy violations
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _post(self, method: str, **params: Any) -> int:
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params}
        self._socket.send(json.dumps(message))
        return self._next_id

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        wanted = self._post(method, **params)
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if "method" in message:
                self._take_event(message["method"], message["params"])
            elif message["id"] == wanted:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def post(self, method: str, **params: Any) -> None:
        """Sends a command without waiting for its result, for use in on_event."""
        self._post(method, **params)

    def _take_event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            entry = params["entry"]
            # The browser logs a refused request as a network error; tests check these errors
            # themselves.
            if entry["level"] == "error" and entry["source"] != "network":
                self.complaints.append(entry["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.complaints.append(str(params["args"]))
        if method in self.on_event:
            self.on_event[method](params)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        result = self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = 30) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            if self.evaluate(f"Boolean({expression})"):
                return
            if time.monotonic() > deadline:
                body = self.evaluate("document.body?.innerText.slice(0, 2000)")
                raise AssertionError(f"not within {timeout_s} s: {expression}\nthe page: {body}")
            time.sleep(0.05)

    def press(self, name: str, shift: bool = False) -> None:
        key, code, text = _KEYS[name]
        event = {"key": key, "code": name, "windowsVirtualKeyCode": code}
        if shift:
            event["modifiers"] = _SHIFT
        if text:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        event.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Types into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        box = self.evaluate(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)});"
            "node.scrollIntoView({ block: 'nearest' });"
            "const box = node.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left",
                clickCount=1,
            )  # fmt: skip

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, file: Path) -> None:
        image = self.call("Page.captureScreenshot", format="png")["data"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(image))

    def text(self, selector: str) -> str:
        """Returns the visible text of all elements that match."""
        return self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map((node) => node.innerText).join('\\n')"
        )

    def close(self) -> None:
        self._socket.close()


def number_in(text: str) -> float | None:
    found = re.search(r"\d[\d,]*(?:\.\d+)?", text)
    return float(found.group().replace(",", "")) if found else None
