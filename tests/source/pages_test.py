"""Checks that the files, functions, tests and presets that the pages name exist, and that lists are complete.

docs/life-of-a-request.md   every row of its tables names a file of the tree and a function in it, each
                            file once per table; no table is longer than it says
docs/contributing.md        every section that says "names `WORD`" lists exactly the files that do
docs/glossary.md            the last column names files that exist and types or functions in them
SECURITY.md, contributing   every test, fuzzer, script and preset in `code` exists
README.md, CHANGELOG.md     are at most 80 and 100 lines long
user's pages                no cell of a table is longer than 100 characters, every link within the tree
                            leads to a file and a heading
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\|[^|]*\| `([^`]+\.\w+)` \| `([^`]+)` \|", re.M)
PLACE = re.compile(r"^\| `([^`]+)` \|", re.M)  # a row that begins with a file
LIMIT = re.compile(r"at most (\d+) files")
CODE = re.compile(r"`([^`\n]+)`")
CELL = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
USER_PAGES = ("README.md", "CHANGELOG.md", "docs/api.md", "docs/benchmarks.md", "docs/cli.md", "docs/install.md",
              "docs/migration.md", "docs/serving.md")
DECLARED = re.compile(r"(?:quire_test|quire_fuzzer|add_test)\(\s*(?:NAME\s+)?(\w+)")


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True)
        if listed.returncode != 0:
            sys.exit(77)  # not a checkout; CTest reports a skip
        self.files = [path for path in listed.stdout.splitlines() if (root / path).exists()]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def check_life(tree: Tree) -> list[str]:
    page = "docs/life-of-a-request.md"
    faults = []
    num_rows = 0
    for section in tree.text(page).split("\n## "):
        rows = ROW.findall(section)
        num_rows += len(rows)
        paths = [path for path, _ in rows]
        for path in sorted({path for path in paths if paths.count(path) > 1}):
            faults.append(f"{page} names {path} twice in one table")
        limit = LIMIT.search(section)
        if limit and len(paths) > int(limit[1]):
            faults.append(f"{page} promises at most {limit[1]} files, and names {len(paths)}")
        for path, function in rows:
            name = function.split("::")[-1]
            if path not in tree.files:
                faults.append(f"{page} names {path}, which does not exist")
            elif not re.search(rf"\b{re.escape(name)}\b", tree.text(path)):
                faults.append(f"{page}: {path} has no {function}")
    if num_rows == 0:
        faults.append(f"{page} has no table of files")
    return faults


def check_places(tree: Tree) -> list[str]:
    """Each walk-through lists all the files that name its example."""
    page = "docs/contributing.md"
    faults = []
    examples = 0
    for section in tree.text(page).split("\n### "):
        word = re.search(r"names `(\w+)`", section)
        if not word:
            continue
        examples += 1
        pattern = re.compile(rf"\b{word[1]}\b")
        real = {path for path in tree.files
                if path.startswith(("src/", "tests/", "include/", "fuzz/"))
                and Path(path).suffix in {".h", ".cc", ".cu", ".cuh"} and pattern.search(tree.text(path))}
        listed = set(PLACE.findall(section))
        faults += [f"{page}: `{word[1]}` is also in {path}" for path in sorted(real - listed)]
        faults += [f"{page}: {path} does not contain `{word[1]}`" for path in sorted(listed - real)]
    if examples < 6:
        faults.append(f"{page} has {examples} walk-throughs, expected 6")
    return faults


def check_glossary(tree: Tree) -> list[str]:
    page = "docs/glossary.md"
    faults = []
    for row in tree.text(page).splitlines():
        if not row.startswith("| ") or "in the code" in row:
            continue
        words = CODE.findall(row.split("|")[3])
        paths = [word for word in words if "/" in word]
        faults += [f"{page} names {path}, which does not exist" for path in paths if not (tree.root / path).exists()]
        text = "".join(tree.text(path) for path in paths if path in tree.files)
        for word in words:
            name = word.split("::")[-1].rstrip("()")
            if "/" not in word and not re.search(rf"\b{re.escape(name)}\b", text):
                faults.append(f"{page}: {word} is in none of {', '.join(paths)}")
    return faults


def check_names(tree: Tree) -> list[str]:
    lists = [path for path in tree.files if path.endswith(("CMakeLists.txt", ".cmake"))]
    declared = set()
    for path in lists:
        declared |= set(DECLARED.findall(tree.text(path)))
        declared |= {f"{name}_fuzz" for name in re.findall(r"quire_fuzzer\(\s*(\w+)", tree.text(path))}
    presets = {preset["name"] for preset in json.loads(tree.text("CMakePresets.json"))["configurePresets"]}
    faults = []
    for page in ("SECURITY.md", "docs/contributing.md"):
        for code in CODE.findall(tree.text(page)):
            if re.fullmatch(r"\w+_(test|fuzz)", code) and code not in declared:
                faults.append(f"{page} names the test {code}, which does not exist")
            if re.fullmatch(r"(scripts|deploy|src|tests|docs|fuzz|include)/[\w./-]*\.\w+", code) and code not in tree.files:
                faults.append(f"{page} names {code}, which does not exist")
        for name in re.findall(r"--preset ([a-z][\w-]*)", tree.text(page)):
            if name not in presets:
                faults.append(f"{page} names the preset {name}, which does not exist")
        for name in re.findall(r"ctest [^\n]*-R '?\^?(\w+_test)", tree.text(page)):
            if name not in declared:
                faults.append(f"{page} runs the test {name}, which does not exist")
    return faults


def check_polled_routes(tree: Tree) -> list[str]:
    logs = tree.text("docs/serving.md").split("\n## Logs\n")[1].split("\n## ")[0]
    routes = re.findall(r'\{"GET", "([^"]+)"[^{}]*kPolled\}', tree.text("src/server/routes/routes.cc"))
    if not routes:
        return ["src/server/routes/routes.cc has no polled route: is its table written in another way?"]
    return [f"docs/serving.md does not say below Logs that {route} is logged at debug level only"
            for route in routes if f"`{route}`" not in logs]


def anchors(text: str) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def check_user_pages(tree: Tree) -> list[str]:
    faults = []
    for page, most in (("README.md", 80), ("CHANGELOG.md", 100)):
        count = len(tree.text(page).splitlines())
        if count > most:
            faults.append(f"{page} has {count} lines, expected at most {most}")
    for page in USER_PAGES:
        text = tree.text(page)
        for line in text.splitlines():
            cells = CELL.split(line)[1:-1] if line.startswith("|") else []
            faults += [f"{page}: a cell has {len(cell.strip())} characters, expected at most 100: {cell.strip()[:60]}…"
                       for cell in cells if len(cell.strip()) > 100]
        for target, anchor in LINK.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
            path = (tree.root / page).parent / target if target else tree.root / page
            if "://" in target:
                continue
            if not path.exists():
                faults.append(f"{page} links to {target}, which does not exist")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
                faults.append(f"{page} links to {target}#{anchor}, which is no heading")
    return faults


def main() -> int:
    tree = Tree(Path(sys.argv[1]))
    faults = check_life(tree) + check_places(tree) + check_glossary(tree) + check_names(tree) + check_user_pages(tree)
    faults += check_polled_routes(tree)
    print("\n".join(faults) if faults else "the pages name what exists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
