"""Questions about Quire with fixed answers, and questions that the embedded model refuses.

`sample(rng)` draws the turns of one conversation; `topics()` lists all answers with their
questions. `quire_questions.py --check BINARY` compares the answers with the program and the docs, and checks the
questions; a test runs `--check-answers`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from quire.about import ABOUT, TALK
from quire.asked import ASKED
from quire.commands import COMMANDS
from quire.contrasts import CONTRASTS
from quire.developing import DEVELOPING
from quire.flags import FLAGS
from quire.further import FURTHER
from quire.more import MORE
from quire.near_misses import NEAR_MISSES
from quire.needs import NEEDS
from quire.operating import OPERATING
from quire.refusals import FLAG_QUESTIONS, LISTS, NO_SUCH_FLAG, SEEDS, UNKNOWN, draw_false_flag, invented
from quire.server import SERVER
from quire.spoken import SPOKEN
from quire.stories import STORIES
from quire.trouble import TROUBLE
from quire.wishes import WISHES, WORLDLY
from quire.wording import FRAMES, expansions, framed, frames_of, in_frame, reworded, typed

_REFUSED_SHARE = 0.24
_FALSE_FLAG_SHARE = 0.03
_SMALL_TALK_SHARE = 0.06
_AGAIN_SHARE = 0.03
_COMMON_WEIGHT = 1.4
_FLAG_ALONE_SHARE = 0.3
_AGAIN = ("can you repeat that", "could you say that again", "what did you say", "pardon", "once more", "again", "sorry, what",
          "what was that again", "can you say it again", "what did you just answer")
_DEFAULT_AGAIN = ("and the default", "what is its default", "what is the default", "and by default", "what's its default value")
_TALK_QUESTIONS = frozenset("who what which how are is can could do does did why where when may were was".split())
_MAX_ANSWER = 180  # characters, about 60 tokens of a small vocabulary


@dataclass
class Topic:
    """One fixed answer and its questions, as lines of `quire/wording.py`."""

    name: str
    answer: str
    weight: float
    lines: list[str] = field(default_factory=list)
    is_talk: bool = False

    @property
    def flag(self) -> str | None:
        return self.name.split()[0] if self.name.startswith("--") else None


def parse(text: str, is_talk: bool = False) -> list[Topic]:
    """Topics in the form `# name @command *weight`, `= answer`, then a question per line."""
    parsed: list[Topic] = []
    for line in text.splitlines():
        if line.startswith("# "):
            header = re.fullmatch(r"# (.*?)(?: @[a-z0-9 ]+?)?(?: \*([\d.]+))?", line)
            parsed.append(Topic(header[1], "", float(header[2] or 1), is_talk=is_talk))
        elif line.startswith("= "):
            parsed[-1].answer = line[2:]
        elif line:
            parsed[-1].lines.append(line)
    return parsed


def with_more(topics_so_far: list[Topic], text: str) -> list[Topic]:
    """The topics, with the further questions that `text` has for them."""
    by_name = {topic.name: topic for topic in topics_so_far}
    for more in parse(text):
        by_name[more.name].lines += more.lines
    return topics_so_far


_TOPICS = [*parse(TALK, is_talk=True),
           *(topic for text in (ABOUT, COMMANDS, FLAGS, SERVER, TROUBLE, FURTHER) for topic in parse(text))]
for _further in (MORE, NEEDS, OPERATING, DEVELOPING, CONTRASTS, WISHES, STORIES, ASKED, SPOKEN):
    with_more(_TOPICS, _further)
_TALK = [topic for topic in _TOPICS if topic.name in ("hello", "thanks", "bye")]
_COMMON = frozenset(topic.name for text in (NEEDS, OPERATING, DEVELOPING, CONTRASTS, ASKED, SPOKEN) for topic in parse(text))
_CUMULATED = list(itertools.accumulate(topic.weight * (_COMMON_WEIGHT if topic.name in _COMMON else 1) for topic in _TOPICS))
_REAL_FLAGS = frozenset(re.findall(r"--[a-z][a-z-]*", " ".join((ABOUT, COMMANDS, FLAGS, SERVER, TROUBLE))))
_SEEDS = [re.sub(r"@(\w+)", lambda found: LISTS[found[1]], line) for line in (SEEDS + NEAR_MISSES + 3 * WORLDLY).split("\n") if line]


def topics() -> list[Topic]:
    return _TOPICS


def refusals() -> list[str]:
    """The seeds of the refused questions, with alternatives in brackets."""
    return _SEEDS


def sample(rng: random.Random) -> list[tuple[str, str]]:
    """The turns of one conversation: questions and their replies."""
    turns = []
    if rng.random() < _SMALL_TALK_SHARE:
        turns.append(topic_turn(rng, _TALK[0]))
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
        turns.append(draw_turn(rng))
        if rng.random() < _AGAIN_SHARE:
            asked = _AGAIN + _DEFAULT_AGAIN if "Default: " in turns[-1][1] else _AGAIN
            turns.append((typed(rng.choice(asked), True, rng), turns[-1][1]))
    if rng.random() < _SMALL_TALK_SHARE:
        turns.append(topic_turn(rng, rng.choice(_TALK[1:])))
    return turns


def draw_turn(rng: random.Random) -> tuple[str, str]:
    draw = rng.random()
    if draw < _REFUSED_SHARE:
        question = invented(framed(rng.choice(_SEEDS), rng, with_synonyms=False), rng)
        return reworded(question, rng, about_quire=False), UNKNOWN
    if draw < _REFUSED_SHARE + _FALSE_FLAG_SHARE:
        question = rng.choice(FLAG_QUESTIONS).format(draw_false_flag(rng, _REAL_FLAGS))
        return reworded(question, rng, about_quire=True), NO_SUCH_FLAG
    return topic_turn(rng, rng.choices(_TOPICS, cum_weights=_CUMULATED)[0])


def topic_turn(rng: random.Random, topic: Topic) -> tuple[str, str]:
    if topic.flag is not None and rng.random() < _FLAG_ALONE_SHARE:
        question = rng.choice(FRAMES["-"]).replace("{}", spelled_flag(topic.flag, rng))
    else:
        question = framed(rng.choice(topic.lines), rng, with_synonyms=not topic.is_talk)
    if topic.is_talk:
        return typed(question, question.split()[0] in _TALK_QUESTIONS, rng), topic.answer
    return reworded(question, rng, about_quire=True), topic.answer


def spelled_flag(flag: str, rng: random.Random) -> str:
    """The flag as users write it: mostly with its dashes; a flag of one word needs them."""
    bare = flag.lstrip("-")
    if "-" not in bare or rng.random() < 0.75:
        return flag
    return rng.choice((bare, bare.replace("-", "_"), bare.replace("-", " "), f"the {bare.replace('-', ' ')} flag"))


# ---- the check ----

_NEEDS_MODEL = frozenset(("serve", "chat", "bench throughput", "bench latency", "eval gsm8k"))
# Names that belong to other programs, so no page of Quire defines them.
_FOREIGN = re.compile(r"CUDA_VISIBLE_DEVICES=?1?|pytorch_model.bin|base_url=|api_key=|client.chat.completions.create|enable_thinking|"
                      r"ollama (?:pull|run)|numactl( --cpunodebind=0 --membind=0)?|git lfs pull|hf auth login|http://(?:HOST|127.0.0.1):8000(?:/v1$)?")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="BINARY", help="compare all answers with this program and with the docs")
    parser.add_argument("--check-answers", metavar="BINARY",
                        help="compare only what the answers say: their commands, flags, defaults and quotations")
    parser.add_argument("--show", type=int, metavar="N", help="print N conversations")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for _ in range(args.show or 0):
        print("\n".join(f"> {question}\n{answer}" for question, answer in sample(rng)), end="\n\n")
    binary = args.check or args.check_answers
    if binary is None:
        return 0
    program = Program(binary)
    faults = [*program.faults(), *doc_faults(program)]
    if args.check:
        faults += [*form_faults(), *ambiguous_questions(), *program.unnamed_flags(), *share_faults(rng)]
    print("\n".join(faults) or f"{len(_TOPICS)} topics and {len(_SEEDS)} refused seeds: all checks passed")
    return 1 if faults else 0


def form_faults() -> list[str]:
    faults = []
    for key in ("name", "answer"):
        counts = Counter(getattr(topic, key) for topic in _TOPICS)
        faults += [f"two topics have this {key}: {text}" for text, count in counts.items() if count > 1]
    for topic in _TOPICS:
        if not 0 < len(topic.answer) <= _MAX_ANSWER or not topic.answer.isascii():
            faults.append(f"{topic.name}: the answer has {len(topic.answer)} characters, or others than ASCII")
        if topic.answer.count("`") % 2:
            faults.append(f"{topic.name}: an open backtick")
        if len(topic.lines) < 5:
            faults.append(f"{topic.name}: only {len(topic.lines)} lines")
    return faults


def all_questions(topic: Topic) -> set[str]:
    asked = set()
    for line in topic.lines:
        frames, text = frames_of(line)
        asked |= {in_frame(frame, text).lower() for text in expansions(text) for frame in frames}
    if topic.flag:
        asked |= {frame.replace("{}", topic.flag) for frame in FRAMES["-"]}
    return asked


def ambiguous_questions() -> list[str]:
    """A question with two answers could not be learned."""
    owner: dict[str, str] = {}
    clashes: dict[tuple[str, str], list[str]] = {}
    for topic in _TOPICS:
        for question in all_questions(topic):
            first = owner.setdefault(question, topic.name)
            if first != topic.name:
                clashes.setdefault((first, topic.name), []).append(question)
    refused = {text for seed in _SEEDS if seed.count("|") < 500 for text in all_questions(Topic("", "", 1, [seed]))}
    known = [f"refused, but answered by {owner[text]}: {text}" for text in sorted(refused & owner.keys())]
    return known + [f"{a} and {b} share {len(texts)} questions: {min(texts, key=len)}" for (a, b), texts in clashes.items()]


class Program:
    """The real program: its help texts, and whether it accepts a command line."""

    def __init__(self, binary: str) -> None:
        self.binary = binary
        self.help: dict[str, str] = {"": self.run("--help")[1]}
        for command in re.findall(r"^  ([a-z]+)  ", self.help[""], re.M):
            self.add(command)

    def add(self, command: str) -> None:
        text = self.run(*command.split(), "--help")[1]
        self.help[command] = text
        for sub in re.findall(r"^  ([a-z0-9]+)  ", text.partition("\nCommands:")[2].partition("\n\n")[0], re.M):
            self.add(f"{command} {sub}")

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout + done.stderr

    def flags(self) -> set[str]:
        return {flag for text in self.help.values() for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text)}

    def unnamed_flags(self) -> list[str]:
        return [f"no topic names {flag}" for flag in sorted(self.flags() - _REAL_FLAGS)]

    def faults(self) -> list[str]:
        flags = self.flags()
        faults = []
        for topic in _TOPICS:
            if topic.flag and topic.flag not in flags:
                faults.append(f"{topic.name}: no help text has this flag")
            for quoted in re.findall(r"`([^`]*)`", topic.answer):
                if quoted.startswith("quire ") and "..." not in quoted:
                    faults += [f"{topic.name}: {fault}" for fault in self.command_faults(quoted)]
                elif not quoted.startswith(("cmake", "ctest", "hf ", "numactl", "openssl", "curl", "scripts/")):
                    faults += [f"{topic.name}: no help text has {flag}" for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", quoted)
                               if flag not in flags and "not expected" in self.run("serve", "/nonexistent", flag)[1]]
            faults += self.default_faults(topic)
        return faults

    def command_faults(self, line: str) -> list[str]:
        """The program reads the command line and then fails for want of files: exit code 2 means that it was wrong."""
        words = shlex.split(re.sub(r"[<>].*", "", line))[1:]
        words = ["/nonexistent" if word in ("DIR", "FILE") else "serve" if word == "COMMAND" else word for word in words]
        if words[0] == "pull":
            words = [re.sub(r"^NAME\b", "no-organization/no-model", word) for word in words]
        command = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in self.help), None)
        if words[0] in ("help", "--version"):
            command = ""
        if command is None:
            return [f"no such command: {line}"]
        if command in _NEEDS_MODEL and not {"--model", "/nonexistent"} & set(words):
            words += ["--model", "/nonexistent"]  # otherwise it would serve, chat or measure
        words = ["1" if word == "N" else "http://127.0.0.1:9" if word.startswith("http:") else word for word in words]
        if command == "bench serve" and "--base-url" not in words:
            words += ["--base-url", "http://127.0.0.1:9"]
        code, output = self.run(*words)
        is_incomplete = command in ("bench", "eval") or "expected either" in output
        return [f"{line}: {output.strip()}"] if code == 2 and not is_incomplete else []

    def default_faults(self, topic: Topic) -> list[str]:
        """A default in a flag's answer stands in some command's help."""
        stated = re.search(r"Default: ([\w.]+[\w])|Default: (\d)", topic.answer)
        if not topic.flag or stated is None or stated[0].split()[-1] in ("the", "off", "none", "no", "all"):
            return []
        value = stated[1] or stated[2]
        shown = [found for text in self.help.values()
                 for found in re.findall(rf"^  (?:--[a-z-]+,)*{topic.flag}[ ,].*(?:\n {{20,}}.*)*", text, re.M)]
        return [] if any(value in block.split(topic.flag)[1] for block in shown) else [
            f"{topic.name}: no help text has the default {value}"]


def doc_faults(program: Program) -> list[str]:
    """Whatever else an answer quotes occurs in the docs, the sources of the server or a help text."""
    root = Path(__file__).resolve().parents[2]
    paths = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("models/*/README.md"), *root.glob("src/server/openai/*"),
             *root.glob("src/cli/*.cc"), root / "CMakePresets.json", root / "deploy/quire.service"]
    known = "\n".join(path.read_text() for path in paths) + "\n".join(program.help.values())
    faults = []
    for topic in _TOPICS:
        for quoted in re.findall(r"`([^`]*)`", topic.answer):
            if quoted.startswith(("quire ", "--")) or quoted in known:
                continue
            quoted = _FOREIGN.sub(" ", quoted)
            missing = [word for word in re.findall(r"[\w./:<>=-]{3,}", quoted.replace('"', " ")) if word.strip(".:<>") not in known]
            if missing:
                faults.append(f"{topic.name}: no page has {missing} of `{quoted}`")
    return faults


def share_faults(rng: random.Random) -> list[str]:
    """No topic is drawn less than a quarter as often as the mean."""
    counts = Counter(answer for _ in range(100_000) for _, answer in sample(rng))
    mean = sum(counts[topic.answer] for topic in _TOPICS) / len(_TOPICS)
    return [f"{topic.name}: drawn {counts[topic.answer]} times, the mean is {mean:.0f}"
            for topic in _TOPICS if counts[topic.answer] < mean / 4]


if __name__ == "__main__":
    sys.exit(main())
