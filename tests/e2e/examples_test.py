"""Runs every example of the help pages, and every `quire` command of the pages, because a reader copies them.

    examples_test.py BINARY SOURCE_DIR

The commands run as they are printed, one after the other, in a folder that has `models` and the files that they name.
`smollm2` is the embedded model, and ~/models/llama a small checkpoint of the tree. A command that NOT_RUN matches is only
checked for its flags: the help of its command has them. Commands of docs/serving.md in ```bash blocks need servers, so
serving_commands.sh runs them. Counts in SHORTER are smaller here.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The first pattern that occurs in a command gives the reason why it is not run.
NOT_RUN = (
    (r"quire pull ", "needs a network"),
    (r"quire rm ", "deletes a model"),
    (r"quire serve\b", "does not end; serving_commands.sh runs the examples of its page"),
    (r"quire bench serve|--base-url|--url ", "needs a server"),
    (r"Qwen/|ORG/|\bDIR\b", "needs a large model"),
    (r"quire tune|quire bench attention", "measures for minutes"),
    (r"--tensor-parallel-size|-tp |--data-parallel-size|--backends native", "needs a GPU"),
    (r"fpath", "is for zsh"),
)
SHORTER = (
    (r"(--num-questions) \d+", r"\1 2"),
    (r"(--num-prompts) \d+", r"\1 2"),
    (r"(--num-iters) \d+", r"\1 1"),
    (r"(--num-shots) \d+", r"\1 1"),
    (r"(--max-tokens) 1000", r"\1 200"),
    (r"(--perplexity-tokens) \d+", r"\1 300"),
)
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:build/)?quire\b|\| *(?:build/)?quire ")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
FLAG = re.compile(r"(?<=\s)--[a-z][a-z0-9-]*|(?<=\s)-[a-z]+(?=\s)")
TIMEOUT_S = 300


def commands_of(text: str) -> list[str]:
    """The commands of quire; a line that ends inside quotes or with a backslash continues in the next line."""
    commands = []
    command = ""
    for line in text.splitlines():
        command = f"{command}\n{line}" if command else line
        unended = subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode != 0
        if command.endswith("\\") or unended:
            continue
        if COMMAND.search(command):
            commands.append(command)
        command = ""
    return commands


class Examples:
    def __init__(self, binary: Path, source: Path, folder: Path) -> None:
        self.binary = binary
        self.source = source
        self.folder = folder
        self.faults: list[str] = []
        self.helps: dict[str, str] = {}
        self.num_run = 0
        self.num_checked = 0
        home = folder / "home"
        self.environment = {**os.environ, "HOME": str(home), "QUIRE_MODELS": str(home / "quire-models"),
                            "XDG_RUNTIME_DIR": str(folder), "PATH": f"{folder}/build:{os.environ['PATH']}"}
        for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            self.environment.pop(name, None)

    def quire(self, *words: str) -> str:
        return subprocess.run([self.binary, *words], env=self.environment, capture_output=True, text=True, check=True).stdout

    def prepare(self) -> None:
        home = self.folder / "home"
        checkpoint = self.source / "models" / "quire-abacus-deepseek"
        for path in ("home/models", "home/quire-models/smollm2", "build", "home/.config/fish/completions",
                     "home/.local/share/bash-completion/completions"):
            (self.folder / path).mkdir(parents=True)
        (self.folder / "build" / "quire").symlink_to(self.binary)
        (self.folder / "models").symlink_to(self.source / "models")
        for name in ("llama", "llama-instruct"):
            (home / "models" / name).symlink_to(checkpoint)
        self.quire("quantize", "--to", "q8_0", "--out", str(home / "quire-models" / "smollm2" / "smollm2.gguf"))
        shutil.copy(checkpoint / "config.json", self.folder)
        problem = '{"question": "What is 3 + 4?", "answer": "#### 7"}\n'
        turn = '{"from": "human", "value": "What is 3 + 4?"}, {"from": "gpt", "value": "3 + 4 = 7"}'
        batch_line = '{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "3 + 4"}}\n'
        for name, text in {"question.txt": "What is 3 + 4?\n", "prompts.jsonl": '{"prompt": "3 + 4", "max_tokens": 4}\n',
                           "requests.jsonl": batch_line, "texts.jsonl": '"Once"\n', "ids.jsonl": "[1, 7]\n", "test.jsonl": 12 * problem,
                           "train.jsonl": 12 * problem, "wiki.test.raw": "Three and four are seven.\n" * 100,
                           "conversation.json": '{"messages": [{"role": "user", "content": "Hi"}]}',
                           "sharegpt.json": f'[{{"conversations": [{turn}]}}]', "keys.txt": "key\n"}.items():
            (self.folder / name).write_text(text)

    def help_of(self, words: str) -> str:
        if words not in self.helps:
            self.helps[words] = self.quire("help", *words.split())
        return self.helps[words]

    def check_flags(self, where: str, command: str) -> None:
        self.num_checked += 1
        for part in re.split(r"[|;&]", re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", command)):
            called = re.search(r"quire ((?:bench |eval )?[a-z]+)", part)
            if not called:
                continue
            known = self.help_of(called[1])
            for flag in FLAG.findall(re.sub(r"#.*", "", part)):
                if not re.search(rf"(?:^|[ ,]){re.escape(flag)}(?:[ ,=]|$)", known, re.M):
                    self.faults.append(f"{where}: quire help {called[1]} has no {flag}: {command}")

    def run(self, where: str, command: str) -> None:
        self.num_run += 1
        print(f"$ {command}", flush=True)
        for pattern, shorter in SHORTER:
            command = re.sub(pattern, shorter, command)
        # `chat` gets a command to leave; the others do not read it.
        try:
            done = subprocess.run(["bash", "-c", command.replace("/tmp/", f"{self.folder}/")], cwd=self.folder,
                                  env=self.environment, input="/quit\n", capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.faults.append(f"{where}: does not end in {TIMEOUT_S} s: {command}")
            return
        if done.returncode != 0:
            self.faults.append(f"{where}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def take(self, where: str, command: str) -> None:
        if any(re.search(pattern, command) for pattern, _ in NOT_RUN):
            self.check_flags(where, command)
        else:
            self.run(where, command)

    def take_helps(self) -> None:
        names = re.findall(r"^  (\w+) {2,}", self.quire("help").split("Commands:")[-1], re.M)
        pages = [""] + names
        pages += [f"{name} {sub}" for name in ("bench", "eval")
                  for sub in re.findall(r"^  (\w+) {2,}", self.quire("help", name).split("Commands:")[-1], re.M)]
        assert {"generate", "chat", "serve", "bench attention"} <= set(pages), pages
        for page in pages:
            example = re.search(r"^Examples?:\n((?: .*\n|\n)+)", self.help_of(page), re.M)
            if not example:
                continue
            text = re.sub(r"^  |(?<=\w) {3,}\S.*$", "", example[1], flags=re.M)  # without indents and remarks
            for command in commands_of(text):
                self.take(f"quire help {page}", command)

    def take_pages(self) -> None:
        for path in ["README.md", *sorted(f"docs/{page.name}" for page in (self.source / "docs").glob("*.md")),
                     "models/quire-abacus/README.md"]:
            for kind, body in BLOCK.findall((self.source / path).read_text()):
                if kind in ("sh", "text") or (kind == "bash" and path != "docs/serving.md"):
                    for command in commands_of(body):
                        self.take(path, command)


def main() -> None:
    binary, source = (Path(word).resolve() for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        examples = Examples(binary, source, Path(folder))
        examples.prepare()
        examples.take_helps()
        examples.take_pages()
    print(f"{examples.num_run} examples run, {examples.num_checked} checked for their flags")
    if examples.faults or examples.num_run < 20 or examples.num_checked < 10:
        sys.exit("\n".join(examples.faults) or "too few examples were found")


main()
