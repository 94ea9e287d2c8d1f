"""Dependencies point one way: a library includes only headers of libraries in its CMake list.

Static libraries would link either way, so this test compares the lists with the #include lines.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^quire_library\(\s*(\w+)(.*?)\)\s*$", re.S | re.M)
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def words_after(keyword: str, text: str) -> list[str]:
    found = re.search(rf"\b{keyword}\s+(.*?)(?=\b(?:SOURCES|DEPS|LIBS)\b|\Z)", text, re.S)
    return found.group(1).split() if found else []


class Library:
    def __init__(self, name: str, folder: Path, sources: list[Path], deps: list[str]) -> None:
        self.name = name
        self.folder = folder
        self.sources = sources
        self.deps = deps


def read_libraries(src: Path) -> dict[str, Library]:
    libraries: dict[str, Library] = {}
    for lists in sorted(src.rglob("CMakeLists.txt")):
        for name, body in DECLARATION.findall(lists.read_text()):
            sources = [lists.parent / word for word in words_after("SOURCES", body)]
            libraries.setdefault(name, Library(name, lists.parent, [], []))
            libraries[name].sources += [path for path in sources if path.exists()]
            libraries[name].deps += words_after("DEPS", body)
    return libraries


def owners(libraries: dict[str, Library], src: Path) -> dict[str, set[str]]:
    """The libraries with sources in each folder; a header belongs to any of them."""
    found: dict[str, set[str]] = {}
    for library in libraries.values():
        for folder in {library.folder, *(path.parent for path in library.sources)}:
            found.setdefault(str(folder.relative_to(src)), set()).add(library.name)
    return found


def reachable(libraries: dict[str, Library], name: str) -> set[str]:
    seen: set[str] = set()
    todo = [name]
    while todo:
        library = todo.pop()
        if library in seen:
            continue
        seen.add(library)
        todo += libraries[library].deps if library in libraries else []
    return seen


def check(src: Path) -> list[str]:
    libraries = read_libraries(src)
    owner = owners(libraries, src)
    faults = []
    for library in libraries.values():
        allowed = reachable(libraries, library.name)
        headers = [path.with_suffix(".h") for path in library.sources]
        for path in sorted({*library.sources, *(h for h in headers if h.exists())}):
            for include in INCLUDE.findall(path.read_text()):
                folder = str(Path(include).parent)
                if folder not in owner or owner[folder] & allowed:
                    continue
                faults.append(f"{path.relative_to(src)} includes {include}; {library.name} depends on "
                              f"none of {', '.join(sorted(owner[folder]))}")
    return faults


def main() -> int:
    src = Path(sys.argv[1])
    libraries = read_libraries(src)
    if len(libraries) < 10:
        print(f"only {len(libraries)} libraries were found below {src}: is it the source tree?")
        return 1
    faults = check(src)
    print("\n".join(faults) if faults else f"{len(libraries)} libraries keep to their lists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
