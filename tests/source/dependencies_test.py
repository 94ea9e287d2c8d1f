"""Dependencies point one way: a room includes only what its CMake list says it depends on.

Static libraries would link either way, so the lists are compared with the #include lines here.
"""

import re
import sys
from pathlib import Path

LIBRARY = re.compile(r"^quire_library\(\s*(\w+)(.*?)\)\s*$", re.S | re.M)
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def words_after(keyword: str, text: str) -> list[str]:
    found = re.search(rf"\b{keyword}\s+(.*?)(?=\b(?:SOURCES|DEPS|LIBS)\b|\Z)", text, re.S)
    return found.group(1).split() if found else []


class Room:
    def __init__(self, name: str, folder: Path, sources: list[Path], deps: list[str]) -> None:
        self.name = name
        self.folder = folder
        self.sources = sources
        self.deps = deps


def read_rooms(src: Path) -> dict[str, Room]:
    rooms: dict[str, Room] = {}
    for lists in sorted(src.rglob("CMakeLists.txt")):
        for name, body in LIBRARY.findall(lists.read_text()):
            sources = [lists.parent / word for word in words_after("SOURCES", body)]
            rooms.setdefault(name, Room(name, lists.parent, [], []))
            rooms[name].sources += [path for path in sources if path.exists()]
            rooms[name].deps += words_after("DEPS", body)
    return rooms


def owners(rooms: dict[str, Room], src: Path) -> dict[str, set[str]]:
    """Which rooms' CMake lists stand in a folder: a header belongs to any of them."""
    found: dict[str, set[str]] = {}
    for room in rooms.values():
        for folder in {room.folder, *(path.parent for path in room.sources)}:
            found.setdefault(str(folder.relative_to(src)), set()).add(room.name)
    return found


def reachable(rooms: dict[str, Room], name: str) -> set[str]:
    seen: set[str] = set()
    todo = [name]
    while todo:
        room = todo.pop()
        if room in seen:
            continue
        seen.add(room)
        todo += rooms[room].deps if room in rooms else []
    return seen


def check(src: Path) -> list[str]:
    rooms = read_rooms(src)
    owner = owners(rooms, src)
    faults = []
    for room in rooms.values():
        allowed = reachable(rooms, room.name)
        headers = [path.with_suffix(".h") for path in room.sources]
        for path in sorted({*room.sources, *(h for h in headers if h.exists())}):
            for include in INCLUDE.findall(path.read_text()):
                folder = str(Path(include).parent)
                if folder not in owner or owner[folder] & allowed:
                    continue
                faults.append(f"{path.relative_to(src)} includes {include}; {room.name} depends on "
                              f"none of {', '.join(sorted(owner[folder]))}")
    return faults


def main() -> int:
    src = Path(sys.argv[1])
    rooms = read_rooms(src)
    if len(rooms) < 10:
        print(f"only {len(rooms)} rooms were found below {src}: is it the source tree?")
        return 1
    faults = check(src)
    print("\n".join(faults) if faults else f"{len(rooms)} rooms keep to their lists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
