#!/usr/bin/env python3
"""Checks quire_apply_patches() of cmake/patches.cmake in a folder inside a git repository."""
import pathlib
import subprocess
import sys
import tempfile

CMAKE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
PATCH = """--- a/sub/kernel.h
+++ b/sub/kernel.h
@@ -1,3 +1,4 @@
 one
 two
+two and a half
 three
"""


def apply(folder):
    script = folder / "apply.cmake"
    script.write_text(
        f"cmake_minimum_required(VERSION 3.25)\n"
        f"include({ROOT}/cmake/patches.cmake)\n"
        f"quire_apply_patches(SOURCE_DIR {folder}/from OUTPUT_DIR {folder}/build/to\n"
        f"                    PATCHES {folder}/fix.patch)\n"
    )
    return subprocess.run([CMAKE, "-P", script], capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["git", "init", "-q", folder], check=True)
        source, patched = folder / "from/sub/kernel.h", folder / "build/to/sub/kernel.h"
        source.parent.mkdir(parents=True)
        source.write_text("one\ntwo\nthree\n")
        (folder / "from/other.h").write_text("other\n")
        (folder / "fix.patch").write_text(PATCH)

        done = apply(folder)
        assert done.returncode == 0, done.stderr
        assert patched.read_text() == "one\ntwo\ntwo and a half\nthree\n", patched.read_text()
        assert source.read_text() == "one\ntwo\nthree\n", "the source itself was patched"

        # A second run writes nothing, so that nothing is compiled again, and removes what is gone.
        written = patched.stat().st_mtime_ns
        (folder / "from/other.h").unlink()
        assert apply(folder).returncode == 0
        assert patched.stat().st_mtime_ns == written, "an unchanged file was written again"
        assert not (folder / "build/to/other.h").exists(), "a file without a source was kept"

        source.write_text("one\nanother\nthree\n")
        done = apply(folder)
        text = " ".join(done.stderr.split())
        assert done.returncode != 0, "a patch that does not apply was accepted"
        assert f"{folder}/fix.patch does not apply: sub/kernel.h:1;" in text, text


main()
