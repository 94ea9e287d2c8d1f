"""Runs `quire pull` against a hub on this machine, and uses what it downloaded.

    pull_test.py --quire BINARY --source DIR [TEST …]
"""

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import hub_server
from hub_server import Hub, Model, blob_hash
from pull_case import NAME, PullTest
from quire_case import options, parse_options, run_tests

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]


def embedded_files() -> dict[str, bytes]:
    """The checkpoint of the embedded model, and files that Quire does not read."""
    folder = options.abacus
    names = [CONFIG, "generation_config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS]
    files = {name: (folder / name).read_bytes() for name in names}
    return files | {"README.md": b"# a model", "pytorch_model.bin": b"x" * 20_000, "onnx/model.onnx": b"y"}


def sharded_files() -> dict[str, bytes]:
    folder = options.source / "tests" / "golden" / "models" / "mistral_sharded"
    files = {name: (folder / name).read_bytes() for name in [*SHARDS, WEIGHTS + ".index.json"]}
    return files | {CONFIG: (folder / "default.config.json").read_bytes(), "model-extra.safetensors": b"z"}


class Layout(PullTest):
    def test_a_pulled_model_runs_by_its_name(self) -> None:
        model = self.hub.add(NAME, Model(embedded_files()))
        snapshot = self.pull()
        self.assertEqual(snapshot, self.folder() / "snapshots" / model.commit)
        self.assertEqual((self.folder() / "refs" / "main").read_text(), model.commit)
        needed = {CONFIG, "generation_config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS}
        self.assertEqual({path.name for path in snapshot.iterdir()}, needed)
        for path in snapshot.iterdir():
            content = model.files[path.name]
            self.assertEqual(os.readlink(path), f"../../blobs/{blob_hash(content)}")
            self.assertEqual(path.read_bytes(), content)
        self.assertEqual(len(list((self.folder() / "blobs").iterdir())), len(needed))
        self.assertIn("skipping 3 files that Quire does not read (20.0 KB): README.md", self.err)
        self.assertEqual(set(self.hub.paths()) - {"main"}, needed)

        answer = self.run_quire("generate", "--model", NAME, "--max-tokens", "4", "--prompt", "1 + 1 =")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        tokens = self.run_quire("tokenize", "--tokenizer", NAME, "--text", "one")
        self.assertEqual(tokens.stdout, self.run_quire("tokenize", "--text", "one").stdout)
        self.assertIn(f"{NAME} (", self.run_quire("doctor", "--model", NAME).stdout)

    def test_an_embedding_model_comes_with_its_modules(self) -> None:
        folder = options.source / "tests" / "golden" / "pooling" / "embedding"
        names = [CONFIG, "tokenizer.json", "modules.json", "1_Pooling/config.json", WEIGHTS]
        model = self.hub.add(NAME, Model({name: (folder / name).read_bytes() for name in names}))
        snapshot = self.pull()
        for name in names:
            self.assertEqual((snapshot / name).read_bytes(), model.files[name])
        self.assertIn("embed: last-token pooling", self.run_quire("doctor", "--model", NAME).stdout)

    def test_nothing_is_requested_twice(self) -> None:
        self.hub.add(NAME, Model(embedded_files()))
        self.pull()
        self.hub.requests.clear()
        self.pull()
        self.assertEqual(self.hub.paths(), ["main"])

    def test_the_index_says_which_shards_are_needed(self) -> None:
        self.hub.add(NAME, Model(sharded_files()))
        snapshot = self.pull()
        self.assertEqual({path.name for path in snapshot.iterdir()}, {CONFIG, WEIGHTS + ".index.json", *SHARDS})
        ids = self.run_quire("generate", "--model", NAME, "--prompt-ids", "1,2,3", "--max-tokens", "2")
        self.assertEqual(ids.returncode, 0, ids.stderr)

    def test_a_new_commit_replaces_the_old_one_only_when_it_is_complete(self) -> None:
        old = self.hub.add(NAME, Model(embedded_files()))
        self.pull()
        new = Model(embedded_files() | {WEIGHTS: b"w" * 50_000}, commit="d" * 40)
        self.hub.add(NAME, new)
        self.hub.faults[WEIGHTS] = [hub_server.status(404)]
        self.refuse("model.safetensors")
        self.assertEqual((self.folder() / "refs" / "main").read_text(), old.commit)
        self.hub.requests.clear()
        snapshot = self.pull()
        self.assertEqual(snapshot.name, new.commit)
        self.assertEqual((self.folder() / "refs" / "main").read_text(), new.commit)
        self.assertEqual(self.hub.paths(), ["main", WEIGHTS])
        self.assertEqual((self.folder() / "snapshots" / old.commit / WEIGHTS).read_bytes(), old.files[WEIGHTS])

    def test_revisions(self) -> None:
        self.hub.add(NAME, Model(sharded_files()), revision="refs/pr/1")
        self.pull(NAME + "@refs/pr/1")
        self.assertEqual((self.folder() / "refs" / "refs" / "pr" / "1").read_text(), "c" * 40)
        for name, code in ((f"{NAME}@refs/pr/1", 0), (f"{NAME}@{'c' * 40}", 0), (NAME, 1)):
            found = self.run_quire("generate", "--model", name, "--prompt-ids", "1", "--max-tokens", "1", HF_HUB_OFFLINE="1")
            self.assertEqual(found.returncode, code, found.stderr)
        self.assertIn(f"not its revision main (it has refs/pr/1, {'c' * 40})", found.stderr)
        self.assertIn(f"quire pull {NAME}", found.stderr)


    def test_another_commit_than_the_one_asked_for_is_refused(self) -> None:
        wanted = "d" * 40
        self.hub.add(NAME, Model(sharded_files()), revision=wanted)
        self.refuse(f"answered with commit {'c' * 40}; expected {wanted}", name=f"{NAME}@{wanted}")
        self.assertFalse(self.folder().exists())


class Lookup(PullTest):
    def error(self, model: str) -> str:
        done = self.run_quire("generate", "--model", model, "--prompt", "a", HF_HUB_OFFLINE="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_the_error_names_what_is_missing(self) -> None:
        error = self.error(NAME)
        self.assertIn(f"{NAME} is neither a directory nor a model in the hub's cache, {self.cache}", error)
        self.assertIn(f"`quire pull {NAME}` downloads it", error)
        self.assertIn("--model: ./no/such does not exist; expected a directory", self.error("./no/such"))
        self.assertEqual(self.hub.requests, [])

        self.hub.add(NAME, Model(sharded_files()))
        snapshot = self.pull()
        (snapshot / SHARDS[1]).resolve().unlink()
        error = self.error(NAME)
        self.assertIn(f"is only partly in the hub's cache: {snapshot} lacks {SHARDS[1]}; `quire pull {NAME}`", error)
        self.assertIn(f"which has {NAME}", self.error(NAME.upper()))
        self.pull()
        done = self.run_quire("generate", "--model", NAME, "--prompt-ids", "1", "--max-tokens", "1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_folder_wins_over_the_cache(self) -> None:
        self.hub.add(NAME, Model(sharded_files()))
        self.pull()
        (self.home / NAME).mkdir(parents=True)
        self.assertIn(f"{NAME} has no config.json", self.error(NAME))


class Token(PullTest):
    def sent(self, host: str) -> set[str | None]:
        return {r.headers.get("Authorization") for r in self.hub.requests if r.host.startswith(host)}

    def test_goes_to_the_hub_and_not_to_the_host_that_it_redirects_to(self) -> None:
        self.hub.add(NAME, Model(embedded_files()))
        self.pull(HF_TOKEN="hf_secret")
        self.assertEqual(self.sent("127.0.0.1"), {"Bearer hf_secret"})
        self.assertEqual(self.sent("localhost"), {None})
        self.assertNotIn("hf_secret", self.err)

    def test_is_read_from_its_file(self) -> None:
        self.hub.add(NAME, Model(sharded_files()))
        (self.home / "token").write_text("hf_filed\n")
        self.pull()
        self.assertEqual(self.sent("127.0.0.1"), {"Bearer hf_filed"})
        other = self.home / "other"
        other.write_text("hf_other")
        self.hub.requests.clear()
        self.pull(HF_TOKEN_PATH=str(other))
        self.assertEqual(self.sent("127.0.0.1"), {"Bearer hf_other"})

    def test_that_would_add_a_header_is_refused(self) -> None:
        error = self.refuse("the token of HF_TOKEN has a blank", HF_TOKEN="a\r\nX-Evil: hf_secret")
        self.assertNotIn("hf_secret", error)
        self.assertEqual(self.hub.requests, [])


class Faults(PullTest):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.hub.add(NAME, Model(embedded_files()))
        self.content = self.model.files[WEIGHTS]

    def leave_partial(self, content: bytes) -> None:
        self.partial(self.content).parent.mkdir(parents=True)
        self.partial(self.content).write_bytes(content)

    def check(self) -> None:
        self.assertEqual(self.blob(self.content).read_bytes(), self.content)
        self.assertFalse(self.partial(self.content).exists())

    def test_a_partial_file_is_continued(self) -> None:
        self.leave_partial(self.content[:1_000_000])
        self.pull()
        self.assertEqual([r.headers.get("Range") for r in self.hub.contents(WEIGHTS)], ["bytes=1000000-"])
        self.assertIn("31.7 MB, 1.0 MB of them in the cache already", self.err)
        self.check()

    def test_a_server_may_ignore_the_range(self) -> None:
        self.leave_partial(self.content[:1_000_000])
        self.hub.faults[WEIGHTS] = [hub_server.other_content(self.content)]
        self.pull()
        self.assertEqual(len(self.hub.contents(WEIGHTS)), 1)
        self.check()

    def test_a_damaged_partial_file_is_replaced(self) -> None:
        self.leave_partial(b"?" * 1_000_000)
        self.pull()
        self.assertIn("damaged; starting again", self.err)
        self.check()

    def test_a_partial_file_that_is_a_link_is_not_followed(self) -> None:
        victim = self.home / "victim"
        victim.write_bytes(b"mine")
        self.partial(self.content).parent.mkdir(parents=True)
        self.partial(self.content).symlink_to(victim)
        self.refuse(f"cannot write {self.partial(self.content)}: Too many levels of symbolic links")
        self.assertEqual(victim.read_bytes(), b"mine")

    def test_a_partial_file_that_is_too_long_is_replaced(self) -> None:
        self.leave_partial(self.content + b"?")
        self.pull()
        self.check()

    def test_lost_connections_are_continued(self) -> None:
        self.hub.faults[WEIGHTS] = [hub_server.cut(2_000_000), hub_server.cut(3_000_000)]
        self.pull()
        ranges = [r.headers.get("Range") for r in self.hub.contents(WEIGHTS)]
        self.assertEqual(ranges, [None, "bytes=2000000-", "bytes=5000000-"])
        self.assertIn("was lost", self.err)
        self.check()

    def test_temporary_errors_are_repeated(self) -> None:
        self.hub.faults["list"] = [hub_server.status(503)]
        self.hub.faults[WEIGHTS] = [hub_server.status(429, Retry_After="2"), hub_server.status(500)]
        self.pull()
        self.assertIn("limits the rate of requests (429)", self.err)
        self.assertIn("trying again in 2.0 s", self.err)
        self.check()

    def test_a_hub_that_asks_for_an_hour_is_not_waited_for(self) -> None:
        self.hub.faults["list"] = [hub_server.status(429, Retry_After="3600")]
        self.refuse("limits the rate of requests (429); try again later, or set HF_TOKEN")

    def test_a_wrong_hash_leaves_nothing(self) -> None:
        self.hub.faults[WEIGHTS] = [hub_server.other_content(b"?" * len(self.content))]
        self.refuse("the content of model.safetensors does not have the hash")
        self.assertFalse(self.blob(self.content).exists())
        self.assertFalse(self.partial(self.content).exists())
        self.hub.faults[CONFIG] = [hub_server.other_content(b"?" * len(self.model.files[CONFIG]))]
        shutil.rmtree(self.cache)
        self.refuse("the content of config.json does not have the hash")
        self.pull()
        self.check()

    def test_a_body_of_the_wrong_length_is_refused(self) -> None:
        self.hub.faults[WEIGHTS] = [hub_server.endless]
        self.refuse(f"sends more of {WEIGHTS} than the {len(self.content)} bytes")
        self.assertFalse(self.partial(self.content).exists())
        # The list promises one byte more than there is.
        self.model.changed_entries[CONFIG] = {"size": len(self.model.files[CONFIG]) + 1}
        shutil.rmtree(self.cache)
        self.refuse("answered config.json with status 416")

    def test_a_failed_write_is_named_and_continued(self) -> None:
        limit = 5_000_000
        process = subprocess.run([options.quire, "pull", NAME], env=self.environment(), capture_output=True, text=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
        self.assertEqual(process.returncode, 1)
        self.assertIn(f"cannot write {self.partial(self.content)}: File too large", process.stderr)
        self.assertEqual(self.partial(self.content).read_bytes(), self.content[:limit])
        self.pull()
        self.assertEqual(self.hub.contents(WEIGHTS)[-1].headers.get("Range"), f"bytes={limit}-")
        self.check()

    def test_no_network_and_no_certificate_are_said_as_such(self) -> None:
        self.refuse("127.0.0.1:9 cannot be reached", "HF_ENDPOINT", HF_ENDPOINT="http://127.0.0.1:9")
        self.refuse("HF_ENDPOINT is not the address of a hub", HF_ENDPOINT="ftp://127.0.0.1")
        certificate = self.home / "both.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout",
                        self.home / "key.pem", "-out", self.home / "cert.pem"],
                       check=True, capture_output=True)  # fmt: skip
        certificate.write_bytes((self.home / "key.pem").read_bytes() + (self.home / "cert.pem").read_bytes())
        with Hub(str(certificate)) as secure:
            secure.add(NAME, self.model)
            self.refuse("certificate", "SSL_CERT_FILE", HF_ENDPOINT=secure.url)
            self.assertEqual(secure.requests, [])
            self.pull(HF_ENDPOINT=secure.url, SSL_CERT_FILE=str(self.home / "cert.pem"))
        with Hub(str(certificate)) as secure:
            secure.add(NAME, self.model)
            secure.cdn = self.hub.url  # not encrypted
            shutil.rmtree(self.cache)
            self.refuse("failed", HF_ENDPOINT=secure.url, SSL_CERT_FILE=str(self.home / "cert.pem"))

    def test_a_proxy_is_used(self) -> None:
        self.hub.cdn = "http://cdn.invalid"
        self.pull(HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.url)
        self.assertEqual({r.host for r in self.hub.requests}, {"hub.invalid", "cdn.invalid"})
        self.check()
        self.refuse("cannot be reached", HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.url,
                    no_proxy="hub.invalid")  # fmt: skip


class Refusals(PullTest):
    def test_access(self) -> None:
        self.hub.add(NAME, Model(sharded_files()))
        self.refuse("has no model no/such, or it is private (401)", "set HF_TOKEN", name="no/such")
        self.refuse(f"{NAME} has no revision 'other'", name=NAME + "@other")
        gated = [hub_server.status(403, X_Error_Code="GatedRepo")]
        self.hub.faults[CONFIG] = list(gated)
        self.refuse(f"{NAME} is gated: ask for access at {self.hub.url}/{NAME}, then set HF_TOKEN to a token")
        self.hub.faults[CONFIG] = list(gated)
        self.refuse("is gated", "check that the token (HF_TOKEN) belongs to an account", HF_TOKEN="hf_x")
        self.hub.faults["list"] = [hub_server.status(403, X_Error_Message="for\x1bbidden")]
        self.refuse("is forbidden (403: for\\x1bbidden)")

    def test_names(self) -> None:
        for name in ("../x", "/etc", "a/b/c", "https://example.com/a/b", "a/b:", "a/b:Q4:1", "a/b@../c", "a/b@"):
            done = self.run_quire("pull", name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"got '{name}', expected smollm2, ORG/NAME[@REVISION][:TAG]", done.stderr)

    def test_weights_in_other_formats(self) -> None:
        config = {CONFIG: b"{}"}
        for files, text in (
            ({"pytorch_model.bin": b"x"}, "has PyTorch weights"),
            ({"adapter_model.safetensors": b"x"}, "has only an adapter"),
            ({"README.md": b"x"}, "has neither model.safetensors nor model.safetensors.index.json nor a GGUF file"),
        ):
            self.hub.add(NAME, Model(config | files))
            self.refuse(text)
        self.hub.add(NAME, Model({WEIGHTS: b"x"}))
        self.refuse("has no config.json")
        self.assertFalse(self.cache.exists())

    def test_a_model_that_quire_cannot_run_costs_no_download_of_weights(self) -> None:
        config = json.loads(embedded_files()[CONFIG]) | {"architectures": ["OtherForCausalLM"]}
        self.hub.add(NAME, Model(embedded_files() | {CONFIG: json.dumps(config).encode()}))
        self.refuse("OtherForCausalLM", "its weights were not downloaded")
        self.assertEqual(self.hub.contents(WEIGHTS), [])

    def test_a_disk_that_is_too_small(self) -> None:
        model = self.hub.add(NAME, Model(embedded_files()))
        lfs = {"sha256": "a" * 64, "size": 4 * 10**12}
        model.changed_entries[WEIGHTS] = {"size": lfs["size"], "lfs": lfs}
        self.refuse("free, and the download needs 4.0 TB")
        self.assertEqual(self.hub.contents(WEIGHTS), [])

    def test_offline(self) -> None:
        self.hub.add(NAME, Model(sharded_files()))
        self.refuse("HF_HUB_OFFLINE is set", HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.requests, [])
        snapshot = self.pull()
        self.hub.requests.clear()
        self.assertEqual(self.pull(HF_HUB_OFFLINE="1"), snapshot)
        self.assertEqual(self.hub.requests, [])


class HostileHub(PullTest):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.hub.add(NAME, Model(embedded_files()))

    def check_nothing_written(self) -> None:
        self.assertEqual([path.name for path in self.home.rglob("*") if path.is_file()], [])

    def test_names_that_leave_the_repository(self) -> None:
        for name in ("../config.json", "/etc/passwd", "a/../../b", "a//b", ".", "a\\b", "a\nb", ""):
            self.model.more_entries = [{"rfilename": name, "size": 1, "blobId": "0" * 40}]
            self.refuse("expected a relative path inside the repository")
        self.check_nothing_written()

    def test_hashes_and_sizes_that_are_none(self) -> None:
        for change, text in (
            ({"blobId": "../../../evil"}, "the hash '../../../evil'"),
            ({"blobId": "A" * 40}, "expected 40 hexadecimal digits"),
            ({"blobId": None}, "?blobs=true"),
            ({"size": -1}, "the size -1"),
            ({"size": 1 << 60}, "expected 0 to"),
            ({"size": (1 << 30) + 1}, "expected 0 to 1073741824 bytes"),
            ({"lfs": {"sha256": "e" * 40, "size": 1}}, "expected 64 hexadecimal digits"),
        ):
            self.model.changed_entries[CONFIG] = change
            self.refuse(text)
        self.check_nothing_written()

    def test_lists_that_are_none(self) -> None:
        for text, expected in (
            (b"<html>", "the hub's list of files"),
            (b"[]", "is not a list of files"),
            (b'{"sha": "../..", "siblings": []}', "is not a list of files"),
            (b'{"siblings": ' * 100_000, "the hub's list of files"),
        ):
            self.hub.faults["list"] = [hub_server.other_content(text)]
            self.refuse(expected)
        self.hub.faults["list"] = [hub_server.endless]
        self.refuse("list of files is longer than 33554432 bytes")
        self.model.more_entries = [{"rfilename": str(i)} for i in range(100_001)]
        self.refuse("expected at most 100000")
        self.check_nothing_written()

    def test_an_index_with_paths(self) -> None:
        files = sharded_files() | {WEIGHTS + ".index.json": b'{"weight_map": {"a": "../../evil"}}'}
        self.hub.add(NAME, Model(files))
        self.refuse("expected a plain file name")
        self.hub.add(NAME, Model(sharded_files() | {WEIGHTS + ".index.json": b'{"weight_map": {"a": "b"}}'}))
        self.refuse("the repository lacks the file b, which model.safetensors.index.json lists")

    def test_redirects_to_files_and_in_circles(self) -> None:
        for location, text in (
            ("file:///etc/passwd", "the download from 127.0.0.1"),
            (f"{self.hub.url}/api/models/{NAME}/revision/main", "redirects more than 10 times"),
        ):
            self.hub.faults["list"] = [hub_server.status(302, Location=location)] * 20
            self.refuse(text)
        self.check_nothing_written()


class Together(PullTest):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.hub.add(NAME, Model(embedded_files()))
        self.content = self.model.files[WEIGHTS]
        self.event = threading.Event()
        self.addCleanup(self.event.set)

    def read_until(self, process: subprocess.Popen[str], mark: str) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            if mark in line:
                return
        self.fail(f"no {mark!r}")

    def wait_for_content(self) -> None:
        """Waits until half of the weights is in the cache."""
        path = self.partial(self.content)
        while not path.exists() or path.stat().st_size < 4_000_000:
            threading.Event().wait(0.02)

    def test_two_pulls_download_each_file_once(self) -> None:
        self.hub.faults[WEIGHTS] = [hub_server.pause(4_000_000, self.event)]
        with self.start("pull", NAME) as first:
            self.wait_for_content()
            with self.start("pull", NAME) as second:
                self.read_until(second, "waiting for another download of model.safetensors")
                self.event.set()
                for process in (first, second):
                    process.communicate()
                    self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.hub.contents(WEIGHTS)), 1)
        self.assertEqual(self.blob(self.content).read_bytes(), self.content)

    def test_the_lock_of_another_program_is_respected(self) -> None:
        """huggingface_hub locks the same file by flock, and leaves it."""
        locks = self.cache / ".locks" / self.folder().name
        locks.mkdir(parents=True)
        with (locks / f"{blob_hash(self.content)}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.start("pull", NAME) as process:
                self.read_until(process, "waiting for another download of model.safetensors")
                self.blob(self.content).write_bytes(self.content)
                fcntl.flock(lock, fcntl.LOCK_UN)
                process.communicate()
                self.assertEqual(process.returncode, 0)
        self.assertEqual(self.hub.contents(WEIGHTS), [])

    def test_an_interrupted_pull_is_continued(self) -> None:
        self.hub.faults[WEIGHTS] = [hub_server.pause(4_000_000, self.event)]
        with self.start("pull", NAME) as process:
            self.wait_for_content()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertRegex(err.splitlines()[-1], r"interrupted with \d.* in the cache; the same command continues")
        kept = self.partial(self.content).stat().st_size
        self.assertEqual(self.partial(self.content).read_bytes(), self.content[:kept])
        self.hub.requests.clear()
        self.pull()
        self.assertEqual([r.headers.get("Range") for r in self.hub.contents(WEIGHTS)], [f"bytes={kept}-"])
        self.assertEqual(self.blob(self.content).read_bytes(), self.content)


def main() -> None:
    parse_options(__doc__, "--abacus")
    run_tests()


if __name__ == "__main__":
    main()
