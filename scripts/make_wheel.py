#!/usr/bin/env python3
"""Makes a Python wheel of an installed tree: make_wheel.py TREE VERSION OUTPUT_DIR

pip puts the binary into the environment's bin folder and its libraries into lib/quire, where the
binary looks for them. No Python runs when `quire` is called.
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

MAIN = '''"""`python -m quire` runs the binary of this environment."""
import importlib.metadata
import os
import sys

# pip has recorded where it put the binary: in an environment, or below ~/.local.
installed = importlib.metadata.files("quire")
binary = next(str(file.locate()) for file in installed if file.parts[-2:] == ("bin", "quire"))
os.execv(binary, [binary, *sys.argv[1:]])
'''
METADATA = """Metadata-Version: 2.1
Name: quire
Version: {version}
Summary: Serves large language models from one native binary
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: make_wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def oldest_glibc(files):
    """The glibc of the oldest systems on which the files run, for example (2, 35)."""
    # The C++ run time is the system's. Systems with GCC 12's, which Debian 12 builds with, have at
    # least this glibc.
    found = {(2, 35)}
    for file in files:
        symbols = subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True)
        found |= {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols.stdout)}
    return max(found)


def contents(tree, version):
    """(name in the wheel, bytes, whether it is executable) of every file but RECORD, and the tag."""
    binary = tree / "bin" / "quire"
    libraries = sorted((tree / "lib" / "quire").iterdir())
    tag = "py3-none-manylinux_{}_{}_x86_64".format(*oldest_glibc([binary, *libraries]))
    # A wheel cannot hold symbolic links. The loader asks for the names of the links.
    targets = {path.resolve() for path in libraries if path.is_symlink()}
    info, data = f"quire-{version}.dist-info", f"quire-{version}.data"
    readme = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    files = [(f"{data}/scripts/quire", binary.read_bytes(), True)]
    files += [(f"{data}/data/lib/quire/{path.name}", path.read_bytes(), True)
              for path in libraries if path.is_symlink() or path.resolve() not in targets]
    files += [(f"{info}/licenses/{path.relative_to(tree / 'share/doc/quire')}", path.read_bytes(), False)
              for path in sorted((tree / "share/doc/quire").rglob("*")) if path.is_file()]
    files += [("quire/__init__.py", b'"""The binary of Quire; `quire --help` tells more."""\n', False),
              ("quire/__main__.py", MAIN.encode(), False),
              (f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode(), False),
              (f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), False)]
    return files, tag


def main():
    tree, version, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    files, tag = contents(tree, version)
    record = ""
    with zipfile.ZipFile(output / f"quire-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        def write(name, content, is_executable=False):
            entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if is_executable else 0o100644) << 16
            wheel.writestr(entry, content)

        for name, content, is_executable in files:
            write(name, content, is_executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        name = f"quire-{version}.dist-info/RECORD"
        write(name, (record + f"{name},,\n").encode())


if __name__ == "__main__":
    main()
