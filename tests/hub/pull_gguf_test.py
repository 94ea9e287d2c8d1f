"""Runs `quire pull ORG/NAME:TAG` against a hub on this machine; names, list and rm of GGUF models.

    pull_gguf_test.py --quire BINARY --source DIR --abacus DIR [TEST …]
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import hub_server
from hub_server import Model, blob_hash
from pull_case import PullTest
from quire_case import embedded_gguf, options, parse_options, run_tests

NAME = "tiny/Stories-GGUF"
Q8 = "Stories-Q8_0.gguf"
Q4 = "Stories-Q4_K_M.gguf"
MMPROJ = "mmproj-Stories-F16.gguf"


def gguf_key(name: str, value: int) -> bytes:
    """A key of the metadata with a uint32."""
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<II", 4, value)


def with_keys(gguf: bytes, **values: int) -> bytes:
    """Adds keys, and a text that makes their size a multiple of the alignment, 32."""
    keys = b"".join(gguf_key(name.replace("_", "."), value) for name, value in values.items())
    head = struct.pack("<Q", 6) + b"filler" + struct.pack("<I", 8)
    length = -(len(keys) + len(head) + 8) % 32
    keys += head + struct.pack("<Q", length) + b"x" * length
    magic, version, num_tensors, num_keys = struct.unpack_from("<4sIQQ", gguf)
    return struct.pack("<4sIQQ", magic, version, num_tensors, num_keys + len(values) + 1) + keys + gguf[24:]


def split_gguf(gguf: bytes, count: int) -> list[bytes]:
    """The first file has all tensors, and the others have none."""
    num_tensors = struct.unpack_from("<Q", gguf, 8)[0]
    empty = struct.pack("<4sIQQ", b"GGUF", 3, 0, 0) + b"\0" * 8
    return [with_keys(empty if i else gguf, split_no=i, split_count=count, split_tensors_count=num_tensors)
            for i in range(count)]  # fmt: skip


class GgufTest(PullTest):
    """A hub with a repository of GGUF files."""

    name = NAME

    def setUp(self) -> None:
        super().setUp()
        self.gguf = options.gguf
        self.q4 = with_keys(self.gguf, another=4)
        self.model = self.hub.add(NAME, Model({"README.md": b"# a model", MMPROJ: b"m" * 20_000, Q4: self.q4, Q8: self.gguf}))

    def own_variables(self) -> dict[str, str]:
        return super().own_variables() | {"QUIRE_MODELS": str(self.home / "models")}

    def snapshot(self) -> Path:
        return self.folder() / "snapshots" / self.model.commit

    def blob_names(self) -> set[str]:
        return {path.name for path in (self.folder() / "blobs").iterdir()}

    def generate(self, model: str, **variables: str) -> str:
        return self.succeed("generate", "--model", model, "--max-tokens", "4", "--temperature", "0", "--prompt", "1 + 1 =",
                            **variables)  # fmt: skip


class Choice(GgufTest):
    def test_a_tag_names_a_file(self) -> None:
        for name in (f"{NAME}:q8_0", f"https://hf.co/{NAME}:Q8_0", f"huggingface.co/{NAME}:{Q8}"):
            self.assertEqual(self.pull(name), self.snapshot() / Q8)
        self.assertEqual(os.readlink(self.snapshot() / Q8), f"../../blobs/{blob_hash(self.gguf)}")
        self.assertEqual((self.folder() / "refs" / "main").read_text(), self.model.commit)
        self.assertEqual(self.blob_names(), {blob_hash(self.gguf)})
        self.assertEqual(self.hub.paths(), ["main", Q8, "main", "main"])
        self.assertIn(f"skipping 1 file that Quire does not read (20.0 KB): {MMPROJ}", self.err)
        self.assertIn(f"{NAME}:{Q8} at cccccccccccc: {Q8}, ", self.err)

    def test_every_command_takes_the_name(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.hub.requests.clear()
        answer = self.generate(str(self.snapshot() / Q8))
        for name in (f"{NAME}:Q8_0", f"hf.co/{NAME}:q8_0", NAME):
            self.assertEqual(self.generate(name), answer)
            plain = self.succeed("tokenize", "--text", "one")
            self.assertEqual(self.succeed("tokenize", "--tokenizer", name, "--text", "one"), plain)
        self.assertIn(f"model                {NAME}:Q8_0 (", self.succeed("doctor", f"{NAME}:Q8_0"))
        done = self.run_quire("quantize", f"{NAME}:Q8_0", "--to", "q4_0", "--out", "x")
        self.assertIn("already quantized", done.stderr)
        self.assertEqual(self.hub.requests, [])

    def test_without_a_tag_llama_cpp_s_order(self) -> None:
        self.assertEqual(self.pull().name, Q4)
        del self.model.files[Q4]
        self.assertEqual(self.pull().name, Q8)
        self.model.files = {"b-Q2_K.gguf": self.gguf, "a-Q6_K.gguf": self.gguf}
        self.assertEqual(self.pull().name, "a-Q6_K.gguf")

    def test_safetensors_win_without_a_tag(self) -> None:
        names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
        self.model.files |= {name: (options.abacus / name).read_bytes() for name in names}
        self.assertEqual(self.pull(f"{NAME}:Q8_0"), self.snapshot() / Q8)
        self.assertEqual(self.pull(), self.snapshot())
        self.assertEqual({path.name for path in self.snapshot().iterdir()}, {Q8, *names})
        self.assertIn(f"{NAME} (", self.succeed("doctor", NAME))

    def test_a_tag_that_no_file_has(self) -> None:
        self.refuse("has no GGUF file Q2_K; expected one of Q4_K_M, Q8_0", name=f"{NAME}:Q2_K")
        self.refuse("no GGUF file Q4_K; expected one of", name=f"{NAME}:Q4_K")
        self.refuse("no GGUF file mmproj", name=f"{NAME}:{MMPROJ}")
        self.model.files = {"README.md": b"x"}
        self.refuse("has no GGUF file, and so no Q8_0", name=f"{NAME}:Q8_0")
        self.assertFalse(self.cache.exists())

    def test_shards_are_joined(self) -> None:
        names = [f"Q8_0/Stories-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
        self.model.files |= dict(zip(names, split_gguf(self.gguf, 3), strict=True))
        del self.model.files[Q8]
        whole = self.home / "whole.gguf"
        whole.write_bytes(self.gguf)
        answer = self.generate(str(whole))
        self.assertEqual(self.pull(f"{NAME}:Q8_0"), self.snapshot() / names[0])
        self.assertEqual(self.generate(f"{NAME}:Q8_0"), answer)
        paths = [r.path for r in self.hub.requests if "/resolve/" in r.path]
        self.assertEqual(sorted(paths), [f"/{NAME}/resolve/{self.model.commit}/{name}" for name in names])
        (self.snapshot() / names[1]).unlink()
        error = self.run_quire("generate", "--model", f"{NAME}:Q8_0", "--prompt", "a", HF_HUB_OFFLINE="1").stderr
        self.assertIn("has 2 of 3 files; `quire pull", error)
        del self.model.files[names[1]]
        self.refuse("the repository has only 2 of 3 files of Q8_0", name=f"{NAME}:Q8_0")

    def test_another_commit_does_not_hide_an_earlier_file(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.model = self.hub.add(NAME, Model(self.model.files | {"README.md": b"new"}, commit="d" * 40))
        self.pull(f"{NAME}:Q4_K_M")
        self.hub.requests.clear()
        self.assertEqual({path.name for path in self.snapshot().iterdir()}, {Q4, Q8})
        self.generate(f"{NAME}:Q8_0", HF_HUB_OFFLINE="1")

    def test_models_that_quire_cannot_run(self) -> None:
        self.model.gguf = {"architecture": "clip"}  # of the projector
        self.pull(f"{NAME}:Q8_0")
        self.succeed("rm", NAME)
        del self.model.files[MMPROJ]
        self.model.gguf = {"architecture": "whisper"}
        self.refuse("the hub lists the architecture whisper; expected one of", "nothing was downloaded")
        self.assertFalse(self.folder().exists())
        self.model.gguf = {"architecture": "llama"}
        self.model.files[Q8] = b"no GGUF file" * 2000
        self.refuse("[gguf]", f"`quire rm {NAME}:Q8_0` removes the download", name=f"{NAME}:Q8_0")
        self.succeed("rm", f"{NAME}:Q8_0")
        self.assertFalse(self.folder().exists())


class Faults(GgufTest):
    def setUp(self) -> None:
        super().setUp()
        self.event = threading.Event()
        self.addCleanup(self.event.set)
        self.half = len(self.gguf) // 2

    def wait_for_half(self) -> None:
        path = self.partial(self.gguf)
        while not path.exists() or path.stat().st_size < self.half:
            time.sleep(0.02)

    def start_paused(self) -> subprocess.Popen[str]:
        """Starts a pull that waits for the event in the middle."""
        self.hub.faults[Q8] = [hub_server.pause(self.half, self.event)]
        process = self.start("pull", f"{NAME}:Q8_0")
        self.wait_for_half()
        return process

    def test_a_killed_pull_is_continued(self) -> None:
        with self.start_paused() as process:
            process.kill()
            process.communicate()
        error = self.run_quire("generate", "--model", f"{NAME}:Q8_0", "--prompt", "a", HF_HUB_OFFLINE="1").stderr
        self.assertIn(f"no GGUF file Q8_0 of {NAME}; `quire pull {NAME}:Q8_0`", error)
        self.hub.requests.clear()
        self.pull(f"{NAME}:Q8_0")
        self.assertEqual([r.headers.get("Range") for r in self.hub.contents(Q8)], [f"bytes={self.half}-"])
        self.assertEqual(self.blob(self.gguf).read_bytes(), self.gguf)
        self.assertEqual(self.blob_names(), {blob_hash(self.gguf)})

    def test_two_pulls_download_the_file_once(self) -> None:
        with self.start_paused() as first, self.start("pull", f"{NAME}:{Q8}") as second:
            assert second.stderr is not None
            while f"waiting for another download of {Q8}" not in second.stderr.readline():
                pass
            self.event.set()
            for process in (first, second):
                process.communicate()
                self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.hub.contents(Q8)), 1)

    def test_the_token_stays_with_the_hub(self) -> None:
        self.pull(f"{NAME}:Q8_0", HF_TOKEN="hf_secret")
        sent = {(r.host.split(":")[0], r.headers.get("Authorization")) for r in self.hub.requests}
        self.assertEqual(sent, {("127.0.0.1", "Bearer hf_secret"), ("localhost", None)})

    def test_a_wrong_hash_leaves_nothing(self) -> None:
        self.hub.faults[Q8] = [hub_server.other_content(b"?" * len(self.gguf))]
        self.refuse(f"the content of {Q8} does not have the hash", name=f"{NAME}:Q8_0")
        self.assertEqual(self.blob_names(), set())
        self.assertEqual(list(self.snapshot().iterdir()), [])

    def test_access(self) -> None:
        self.refuse("or it is private (401)", "set HF_TOKEN", name="no/such:Q8_0")
        for status in (401, 403):
            self.hub.faults[Q8] = [hub_server.status(status, X_Error_Code="GatedRepo")]
            self.refuse(f"{NAME} is gated: ask for access", "set HF_TOKEN", name=f"{NAME}:Q8_0")
        self.hub.faults[Q8] = [hub_server.status(404)]
        self.refuse(f"has no {Q8}, though the hub lists it", name=f"{NAME}:Q8_0")

    def test_repeated_attempts_end(self) -> None:
        self.hub.faults[Q8] = [hub_server.status(429, Retry_After="1"), hub_server.cut(1000), hub_server.cut(1000),
                               hub_server.status(503), hub_server.cut(1000)]  # fmt: skip
        self.refuse("was lost", name=f"{NAME}:Q8_0")
        self.assertEqual(len(self.hub.contents(Q8)), 5)
        self.pull(f"{NAME}:Q8_0")
        self.assertEqual(self.hub.contents(Q8)[-1].headers.get("Range"), "bytes=3000-")

    def test_a_disk_that_fills_up_meanwhile(self) -> None:
        disk = self.home / "disk"
        disk.mkdir()
        mounted = f"mount -t tmpfs -o size={len(self.gguf) + 1_000_000} none {disk}"
        if subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True).returncode != 0:
            self.skipTest("needs the right to mount")
        self.hub.faults[Q8] = [hub_server.pause(self.half, self.event)]
        command = f"{mounted} && exec {options.quire} pull {NAME}:Q8_0"
        process = subprocess.Popen(["unshare", "-rm", "sh", "-c", command], text=True, stderr=subprocess.PIPE,
                                   env=self.environment(HF_HUB_CACHE=str(disk)))  # fmt: skip
        inside = Path(f"/proc/{process.pid}/root{disk}")
        while not any(path.stat().st_size >= self.half for path in inside.rglob("*.incomplete")):
            time.sleep(0.02)
        try:
            (inside / "filler").write_bytes(b"f" * (self.half + 1_000_000))
        except OSError:
            pass  # the disk is full
        self.event.set()
        _, err = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("the disk is full: cannot write", err.splitlines()[-1])
        self.assertIn("free some space and run the same command again", err.splitlines()[-1])

    def test_a_disk_that_is_too_small(self) -> None:
        lfs = {"sha256": "a" * 64, "size": 4 * 10**12}
        self.model.changed_entries[Q8] = {"size": lfs["size"], "lfs": lfs}
        self.refuse("free, and the download needs 4.0 TB", name=f"{NAME}:Q8_0")
        self.assertEqual(self.hub.contents(Q8), [])


class HostileHub(GgufTest):
    def test_names(self) -> None:
        for name in ("../x-Q8_0.gguf", "/x-Q8_0.gguf", "a/../x-Q8_0.gguf", "x\n-Q8_0.gguf"):
            self.model.more_entries = [{"rfilename": name, "size": 1, "blobId": "0" * 40}]
            self.refuse("expected a relative path inside the repository", name=f"{NAME}:Q8_0")
        self.model.more_entries = [{"rfilename": Q8, "size": 1, "blobId": "0" * 40}]
        self.refuse(f"lists {Q8} twice")
        self.model.more_entries = [{"rfilename": Q8 + "/x", "size": 1, "blobId": "0" * 40}]
        self.pull(f"{NAME}:Q8_0")
        self.model.files = {f"x{i}-00001-of-99999.gguf": b"x" for i in range(1000)}
        self.model.more_entries = []
        self.refuse("has only 1 of 99999 files of", name=NAME)

    def test_sizes_and_hashes(self) -> None:
        for entry, text in (
            ({"lfs": {"sha256": "a" * 64, "size": 1 << 60}}, "the size"),
            ({"lfs": {"sha256": "a" * 64, "size": -1}}, "the size -1"),
            ({"lfs": {"sha256": "../../evil", "size": 1}}, "the hash"),
            ({"lfs": {"size": 1}}, "the hash ''"),
        ):
            self.model.changed_entries[Q8] = entry
            self.refuse(text, name=f"{NAME}:Q8_0")
        self.assertFalse(self.cache.exists())


class Missing(GgufTest):
    def test_a_missing_model_is_pulled_first(self) -> None:
        answer = self.generate(f"{NAME}:Q8_0")
        self.assertIn(f"{NAME}:Q8_0 is neither a path nor complete on this machine: quire pull {NAME}:Q8_0 "
                      "(HF_HUB_OFFLINE=1 forbids it)", self.err)  # fmt: skip
        self.assertEqual(self.generate(str(self.snapshot() / Q8)), answer)
        self.hub.requests.clear()
        self.assertEqual(self.generate(f"{NAME}:Q8_0"), answer)
        self.assertNotIn("quire pull", self.err)
        self.assertEqual(self.hub.requests, [])

    def test_chat_and_serve_do_it_too(self) -> None:
        self.run_quire("chat", NAME, "--max-tokens", "4")
        self.assertTrue((self.snapshot() / Q4).exists())
        with self.start("serve", f"{NAME}:Q8_0", "--port", "0") as process:
            assert process.stdout is not None
            self.assertRegex(process.stdout.readline(), f"^serving {NAME}:Q8_0 at http://127.0.0.1:")
            process.send_signal(signal.SIGTERM)
            process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue((self.snapshot() / Q8).exists())

    def test_what_is_not_pulled(self) -> None:
        for arguments in (("doctor", NAME), ("tokenize", "--tokenizer", NAME, "--text", "a"),
                          ("bench", "latency", NAME), ("generate", "--model", "./tiny/x", "--prompt", "a"),
                          ("generate", "--model", "tiny/x.gguf", "--prompt", "a")):  # fmt: skip
            self.assertEqual(self.run_quire(*arguments).returncode, 1, arguments)
        done = self.run_quire("generate", NAME, "Hello", HF_HUB_OFFLINE="1")
        self.assertIn(f"`quire pull {NAME}` downloads it", done.stderr)
        self.assertEqual(self.hub.requests, [])

    def test_the_error_of_a_pull_is_the_commands(self) -> None:
        done = self.run_quire("generate", "no/such", "Hello")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.assertIn("has no model no/such, or it is private (401)", done.stderr)


class ListAndRemove(GgufTest):
    def listed(self) -> dict[str, dict[str, object]]:
        return {model["name"]: model for model in json.loads(self.succeed("list", "--json"))}

    def test_each_tag_is_listed(self) -> None:
        self.assertEqual(self.listed(), {})
        self.pull(f"{NAME}:Q8_0")
        self.pull(f"{NAME}:Q4_K_M")
        os.utime(self.blob(self.gguf), (1_000_000_000, 1_000_000_000))
        models = self.listed()
        self.assertEqual(list(models), [f"{NAME}:Q4_K_M", f"{NAME}:Q8_0"])
        self.assertEqual(models[f"{NAME}:Q8_0"], {"name": f"{NAME}:Q8_0", "size": len(self.gguf), "source": "hub",
                                                  "last_use": 1_000_000_000, "folder": str(self.folder())})  # fmt: skip
        lines = self.succeed("list", TZ="UTC").splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "SIZE", "LAST", "USE", "SOURCE", "FOLDER"])
        self.assertRegex(lines[2], rf"^{NAME}:Q8_0 +\d+\.\d MB  2001-09-09  hub +{self.folder()}$")

    def test_a_tag_is_removed_alone(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.pull(f"{NAME}:Q4_K_M")
        done = self.run_quire("rm", f"{NAME}:Q2_K")
        self.assertIn("expected one of Q4_K_M, Q8_0", done.stderr)
        self.assertEqual(self.run_quire("rm", f"{NAME}:Q4_K").returncode, 1)
        self.assertRegex(self.succeed("rm", f"hf.co/{NAME}:q8_0"), r"^removed .*:q8_0: freed \d+\.\d MB in ")
        self.assertEqual(list(self.listed()), [f"{NAME}:Q4_K_M"])
        self.assertEqual(self.blob_names(), {blob_hash(self.q4)})
        self.assertEqual([path.name for path in self.snapshot().iterdir()], [Q4])
        self.generate(NAME)
        self.succeed("rm", f"{NAME}:Q4_K_M")
        self.assertEqual([path.name for path in self.cache.iterdir()], [".locks"])
        self.assertEqual(list((self.cache / ".locks").iterdir()), [])

    def test_a_name_without_a_tag_is_the_whole_repository(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.pull(f"{NAME}:Q4_K_M")
        self.succeed("rm", NAME)
        self.assertFalse(self.folder().exists())
        self.assertEqual(self.run_quire("rm", f"{NAME}:Q8_0").returncode, 1)

    def test_files_that_other_names_link_to_stay(self) -> None:
        self.model.files["Copy-F16.gguf"] = self.gguf
        self.pull(f"{NAME}:Q8_0")  # links the copy, too
        self.assertIn("freed 0 bytes", self.succeed("rm", f"{NAME}:F16"))
        self.assertEqual(self.blob(self.gguf).read_bytes(), self.gguf)
        self.pull(f"{NAME}:Q8_0")
        other = self.folder() / "snapshots" / ("d" * 40)
        other.mkdir()
        (other / "README.md").symlink_to(f"../../blobs/{blob_hash(self.gguf)}")
        self.succeed("rm", f"{NAME}:F16")
        self.assertIn("freed 0 bytes", self.succeed("rm", f"{NAME}:Q8_0"))
        self.assertEqual(self.blob(self.gguf).read_bytes(), self.gguf)
        self.assertEqual([path.name for path in (self.folder() / "snapshots").iterdir()], ["d" * 40])

    def test_an_unfinished_download_of_another_tag_stays(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.partial(self.q4).write_bytes(self.q4[:1000])
        self.assertEqual(self.listed()[NAME]["source"], "hub, not complete for Quire")
        self.succeed("rm", f"{NAME}:Q8_0")
        self.assertEqual(self.partial(self.q4).read_bytes(), self.q4[:1000])
        self.pull(f"{NAME}:Q4_K_M")
        self.assertEqual(self.hub.contents(Q4)[-1].headers.get("Range"), "bytes=1000-")

    def test_old_commits_are_removed_too(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        self.model = self.hub.add(NAME, Model({Q8: with_keys(self.gguf, newer=1)}, commit="d" * 40))
        self.pull(f"{NAME}:Q8_0")
        self.assertEqual(len(self.blob_names()), 2)
        self.succeed("rm", f"{NAME}:Q8_0")
        self.assertFalse(self.folder().exists())

    def test_nothing_outside_the_cache_is_removed(self) -> None:
        self.pull(f"{NAME}:Q8_0")
        outside = self.home / "outside.gguf"
        outside.write_bytes(b"kept")
        (self.snapshot() / "Evil-F16.gguf").symlink_to(outside)
        (self.snapshot() / "Dots-F32.gguf").symlink_to("../../blobs/../../../outside.gguf")
        for tag in ("F16", "F32"):
            self.assertIn("freed 0 bytes", self.succeed("rm", f"{NAME}:{tag}"))
        self.assertEqual(outside.read_bytes(), b"kept")
        moved = self.home / "moved"
        shutil.move(self.folder() / "blobs", moved)
        (self.folder() / "blobs").symlink_to(moved)
        done = self.run_quire("rm", f"{NAME}:Q8_0")
        self.assertIn("blobs is a link, so nothing was removed", done.stderr)
        self.assertEqual(len(list(moved.iterdir())), 1)
        self.assertTrue((self.snapshot() / Q8).exists())


def main() -> None:
    parse_options(__doc__, "--abacus")
    options.gguf = embedded_gguf()
    run_tests()


if __name__ == "__main__":
    main()
