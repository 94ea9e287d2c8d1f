"""Checks that comments, docs and names are plain technical English: no new match of prose_patterns.txt."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("src", "include", "tests", "fuzz", "bench", "examples", "cmake", "scripts", ".ci")
CODE = {".h", ".cc", ".cu", ".cuh", ".inc", ".js"}
SCRIPTS = {".cmake", ".py", ".sh"}
COMMENT = re.compile(r"(?:^|\s)//+\s?(.*)$")
SCRIPT_COMMENT = re.compile(r"(?:^|\s)#\s(.*)$")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass
class Pattern:
    count: int
    where: str
    regex: re.Pattern[str]
    instead: str
    example: str
    line: str


@dataclass
class Text:
    place: str  # file:line
    text: str


def read_patterns(path: Path) -> list[Pattern]:
    patterns = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        # A pattern may contain a bare "|"; only " | " separates.
        count, where, regex, instead, example = line.split(" | ")
        patterns.append(Pattern(int(count), where, re.compile(regex, re.I if where == "text" else 0),
                                instead, example, line))
    return patterns


def files_below(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", *FOLDERS, "docs", "*.md"],
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0:  # not a git checkout: a source archive
        return [path for folder in (*FOLDERS, "docs") for path in sorted((root / folder).rglob("*"))]
    return [root / line for line in dict.fromkeys(listed.stdout.splitlines())]


def comments_of(lines: list[str], pattern: re.Pattern[str], place: str) -> list[Text]:
    """Neighbouring comment lines are one comment; a comment after code stands alone."""
    comments: list[Text] = []
    is_open = False
    for number, line in enumerate(lines, 1):
        found = pattern.search(STRING.sub('""', line))
        if found is None:
            is_open = False
            continue
        if is_open and found.start() == len(line) - len(line.lstrip()) - (found.group(0)[0] in " \t"):
            comments[-1].text += " " + found.group(1)
        else:
            comments.append(Text(f"{place}:{number}", found.group(1)))
        is_open = True
    return comments


def docstrings_of(source: str, place: str) -> list[Text]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [Text(f"{place}:{node.body[0].lineno}", " ".join(ast.get_docstring(node).split()))
            for node in ast.walk(ast.parse(source))
            if isinstance(node, documented) and ast.get_docstring(node)]


def texts_of(root: Path, skip: Path) -> dict[str, list[Text]]:
    texts: dict[str, list[Text]] = {"start": [], "text": [], "name": []}
    for path in files_below(root):
        if not path.is_file() or path.parent == skip:
            continue
        place = str(path.relative_to(root))
        if path.suffix == ".md":
            texts["text"] += [Text(f"{place}:{n}", line)
                              for n, line in enumerate(path.read_text().splitlines(), 1)]
        elif path.suffix in CODE | SCRIPTS or path.name == "CMakeLists.txt" or path.parent.name == ".ci":
            source = path.read_text()
            lines = source.splitlines()
            is_code = path.suffix in CODE
            comments = comments_of(lines, COMMENT if is_code else SCRIPT_COMMENT, place)
            if path.suffix == ".py":
                comments += docstrings_of(source, place)
            texts["start"] += comments
            texts["text"] += comments
            if is_code:
                texts["name"] += [Text(f"{place}:{n}", COMMENT.sub("", STRING.sub('""', line)))
                                  for n, line in enumerate(lines, 1)]
    return texts


def matches(pattern: Pattern, texts: list[Text]) -> list[Text]:
    search = pattern.regex.match if pattern.where == "start" else pattern.regex.search
    return [text for text in texts if search(text.text)]


def main() -> int:
    root = Path(sys.argv[1])
    here = Path(__file__).resolve().parent
    path = here / "prose_patterns.txt"
    patterns = read_patterns(path)
    texts = texts_of(root.resolve(), here)
    if len(texts["start"]) < 1000:
        print(f"only {len(texts['start'])} comments were found below {root}: is it the source tree?")
        return 1
    faults = []
    for pattern in patterns:
        if not matches(pattern, [Text("", pattern.example)]):
            faults.append(f"prose_patterns.txt: the pattern does not match its example: {pattern.line}")
        found = matches(pattern, texts[pattern.where])
        if "--write" in sys.argv:
            path.write_text(path.read_text().replace(
                pattern.line, re.sub(r"^\d+", str(len(found)), pattern.line)))
        elif len(found) > pattern.count:
            faults.append(f"{len(found)} matches of \"{pattern.regex.pattern}\", expected at most "
                          f"{pattern.count}; write {pattern.instead}:")
            faults += [f"  {text.place}: {text.text[:90]}" for text in found]
        elif len(found) < pattern.count:
            faults.append(f"prose_patterns.txt: only {len(found)} matches of "
                          f"\"{pattern.regex.pattern}\" remain; lower its count from {pattern.count}")
    print("\n".join(faults) if faults else f"{len(patterns)} patterns: no new match")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
