"""The common part of the tests of downloads: the binary in an empty home folder."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

options = argparse.Namespace()


class QuireCase(unittest.TestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="quire_hub_"))
        self.addCleanup(shutil.rmtree, self.home)

    def own_variables(self) -> dict[str, str]:
        """Returns the variables of the test's hub and folders."""
        raise NotImplementedError

    def environment(self, **variables: str) -> dict[str, str]:
        """Without the caller's settings of pip, hubs, proxies and certificates."""
        kept = {name: value for name, value in os.environ.items()
                if not name.upper().startswith(("HF_", "SSL_", "PIP_", "XDG_")) and not name.lower().endswith(("_proxy", "_ca_bundle"))}  # fmt: skip
        return kept | self.own_variables() | variables

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen([str(options.quire), *arguments], env=self.environment(**variables),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.home)  # fmt: skip

    def run_quire(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments, **variables) as process:
            timer = threading.Timer(120, process.kill)
            timer.start()
            out, err = process.communicate()
            timer.cancel()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def succeed(self, *arguments: str, **variables: str) -> str:
        done = self.run_quire(*arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.err = done.stderr
        return done.stdout

    def refuse_pull(self, name: str, *expected: str, **variables: str) -> str:
        """Fails with one last line that has all these texts. Returns what the command wrote."""
        done = self.run_quire("pull", name, **variables)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        last = done.stderr.splitlines()[-1]
        for text in expected:
            self.assertIn(text, last)
        self.assertIn("quire pull: [", last)
        return done.stderr


def parse_options(description: str | None, *paths: str) -> None:
    """Reads --quire, --source and these paths."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("--source", type=Path, required=True, help="the root of the source")
    for path in paths:
        parser.add_argument(path, type=Path, required=True)
    parser.add_argument("tests", nargs="*", help="names, as unittest's")
    parser.parse_args(namespace=options)
    options.quire = options.quire.absolute()  # the commands run in other folders


def embedded_gguf() -> bytes:
    """The embedded model as a GGUF file, which runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        subprocess.run([options.quire, "quantize", "--model", "embedded", "--to", "q8_0", "--out", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        return path.read_bytes()


def run_tests() -> None:
    unittest.main(argv=[sys.argv[0], *options.tests])
