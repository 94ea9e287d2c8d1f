"""Starts the routers that docs/scaling.md names, in front of servers of a test."""

import os
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.request
from pathlib import Path
from types import TracebackType

import yaml
from served import free_port

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_BIN = Path(sys.executable).parent
_START_TIMEOUT_S = 60.0


class Router:
    """Runs one router from `with` to its end. It starts when /v1/models can be had through it."""

    name = ""

    def __init__(self, ports: list[int], folder: Path) -> None:
        self.port = free_port()
        self._folder = folder / f"{self.name}-{self.port}"
        self._folder.mkdir(parents=True)
        self._log = self._folder / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command(ports),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=os.environ | self._environment(),
            )

    def __enter__(self) -> "Router":
        end = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise RuntimeError(f"{self.name} did not start: {self.log()}")
            time.sleep(0.1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/v1/models"
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _command(self, ports: list[int]) -> list[str]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return {}

    def _configuration(self, name: str, ports: list[int]) -> str:
        """Returns deploy/NAME with the ports of the test."""
        text = (_DEPLOY / name).read_text()
        for idx, port in enumerate(ports):
            replaced = text.replace(f"127.0.0.1:{8001 + idx}", f"127.0.0.1:{port}")
            assert replaced != text, f"deploy/{name} has no server at port {8001 + idx}"
            text = replaced
        return text


class DebianRouter(Router):
    """A router of the distribution, with the libraries that system_program() has unpacked."""

    @property
    def _unpacked(self) -> Path:
        return self._folder.parent / "debian"

    def _environment(self) -> dict[str, str]:
        folders = [self._unpacked / prefix / "x86_64-linux-gnu" for prefix in ("usr/lib", "lib")]
        return {"LD_LIBRARY_PATH": ":".join(map(str, folders))}


class HaProxy(DebianRouter):
    name = "haproxy"

    def _command(self, ports: list[int]) -> list[str]:
        text = self._configuration("haproxy.cfg", ports)
        path = self._folder / "haproxy.cfg"
        path.write_text(text.replace("bind :8000", f"bind 127.0.0.1:{self.port}"))
        program = system_program("haproxy", self._unpacked)
        return [program, "-db", "-f", str(path)]


class Nginx(DebianRouter):
    name = "nginx"

    def _command(self, ports: list[int]) -> list[str]:
        text = self._configuration("nginx.conf", ports)
        text = text.replace("listen 8000;", f"listen 127.0.0.1:{self.port};")
        # The distribution's folders belong to its user, and may not exist here.
        folders = "".join(
            f"    {kind}_temp_path {self._folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = text.replace("http {\n", "http {\n" + folders)
        path = self._folder / "nginx.conf"
        path.write_text(text)
        globals_ = f"daemon off; pid {self._folder}/pid; user root;"
        program = system_program("nginx", self._unpacked)
        return [program, "-c", str(path), "-g", globals_, "-e", "stderr"]


class VllmRouter(Router):
    name = "vllm-router"
    policy = "cache_aware"

    def _command(self, ports: list[int]) -> list[str]:
        return [
            str(_BIN / "vllm-router"),
            *("--host", "127.0.0.1", "--port", str(self.port), "--policy", self.policy),
            *("--prometheus-port", str(free_port()), "--health-check-interval-secs", "1"),
            *("--cb-timeout-duration-secs", "2"),
            *("--worker-urls", *(f"http://127.0.0.1:{port}" for port in ports)),
        ]


class VllmRouterRandom(VllmRouter):
    name = "vllm-router-random"
    policy = "random"


class Smg(Router):
    name = "smg"

    def _command(self, ports: list[int]) -> list[str]:
        return [
            *(str(_BIN / "smg"), "launch", "--policy", "cache_aware"),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--prometheus-port", str(free_port()), "--health-check-interval-secs", "1"),
            *("--cb-timeout-duration-secs", "2"),
            *("--worker-urls", *(f"http://127.0.0.1:{port}" for port in ports)),
        ]


class Ray(Router):
    """deploy/ray with two replicas, which start their servers themselves."""

    name = "ray"

    def __init__(self, quire: Path, flags: str, folder: Path) -> None:
        # The servers are found by the path of this link.
        self.binary = folder / "quire-of-ray"
        self.binary.symlink_to(quire.resolve())
        self._flags = flags
        super().__init__([], folder)

    def _command(self, ports: list[int]) -> list[str]:
        configuration = yaml.safe_load((_DEPLOY / "ray" / "serve.yaml").read_text())
        configuration["http_options"] |= {"host": "127.0.0.1", "port": self.port}
        (application,) = configuration["applications"]
        application["runtime_env"]["env_vars"]["PYTHONPATH"] = str(_DEPLOY / "ray")
        application["args"] |= {
            **{"binary": str(self.binary), "model": "", "flags": self._flags},
            **{"num_gpus": 0, "num_cpus": 0.5},
        }
        path = self._folder / "serve.yaml"
        path.write_text(yaml.safe_dump(configuration))
        return [str(_BIN / "serve"), "run", "--address", "local", str(path)]

    def _environment(self) -> dict[str, str]:
        # Ray leaves a token in HOME.
        folder = str(self._folder.parent)
        return {"RAY_USAGE_STATS_ENABLED": "0", "HOME": folder, "RAY_TMPDIR": folder}

    def _is_ready(self) -> bool:
        # One replica answers before the router of Ray's proxy knows the other one.
        return ": 2 replicas," in self._log.read_text() and super()._is_ready()

    def replica_pid(self, server_pid: int) -> int:
        """Returns the process of Ray that has started the server."""
        return int(Path(f"/proc/{server_pid}/stat").read_text().rsplit(")", 1)[1].split()[1])

    def server_pids(self) -> list[int]:
        pids = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                is_server = path.read_bytes().startswith(str(self.binary).encode() + b"\0serve")
            except OSError:  # the process has ended
                continue
            if is_server:
                pids.append(int(path.parent.name))
        return pids


def system_program(name: str, folder: Path) -> str:
    """Returns the path of an installed program, or of one from the distribution's package, which is
    unpacked into `folder` and not installed, because the package would start a service. The packages
    that it needs and that are not installed are unpacked beside it."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if found is not None:
        return found
    program = folder / "usr" / "sbin" / name
    if not program.exists():
        folder.mkdir(exist_ok=True)
        # A line of the simulation is `Inst NAME (VERSION ...)`, and of an upgrade `Inst NAME [OLD] (VERSION ...)`.
        install = ["apt-get", "install", "--simulate", "-q", "--no-install-recommends", name]
        needed = re.findall(r"^Inst (\S+) \(", _output_of_apt(name, install), re.MULTILINE)
        _output_of_apt(name, ["apt-get", "download", "-q", *{name, *needed}], folder)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
            package.unlink()
    return str(program)


def _output_of_apt(name: str, command: list[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise unittest.SkipTest(f"{name} is not installed, and there is no apt-get") from None
    if done.returncode != 0:
        raise unittest.SkipTest(f"{name} is not installed, and `{' '.join(command)}` failed: {done.stderr}")
    return done.stdout
