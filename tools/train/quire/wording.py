"""Many wordings of one question: alternatives, sentence frames, synonyms, greetings, typing errors.

A line of a topic is a question in lower case, or begins with a sign that names its frames:
`~` a thing to do, `?` a thing to explain, `^` an ability, `%` a feature, `!` a setting, `+` a state
that is wished for, `*` a symptom.
`[a|b|]` in a line stands for one of its alternatives.
"""

from __future__ import annotations

import random
import re

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
_QUESTION_WORDS = frozenset(
    "how what which can could does do did is are was where who why when whom whose should will would must may "
    "am has have what's where's who's how's isn't doesn't".split())

FRAMES = {
    "~": (
        "how do I {}", "how do I {}", "how can I {}", "how to {}", "how would I {}", "how does one {}", "how do you {}",
        "how do we {}", "how should I {}", "I want to {}", "I would like to {}", "I need to {}", "I'd like to {}",
        "can I {}", "can you tell me how to {}", "tell me how to {}", "show me how to {}", "explain how to {}",
        "is it possible to {}", "is there a way to {}", "what is the command to {}", "what command do I use to {}",
        "which command would {}", "what do I type to {}", "what is the way to {}", "what must I do to {}",
        "{}", "I am trying to {}", "help me {}", "command to {}", "way to {}", "steps to {}",
        "what is the best way to {}", "what is the easiest way to {}", "how am I supposed to {}", "I have to {}",
        "do you know how to {}", "could you show me how to {}", "what should I do to {}", "my goal is to {}",
        "what do I need to {}", "we want to {}", "how is it done: {}", "what's the quickest way to {}",
        "what is the simplest way to {}", "any idea how to {}", "any way to {}", "is there an easy way to {}", "please {}",
        "I can't figure out how to {}", "I don't know how to {}", "where can I {}", "let me {}", "how could one {}",
        "what would I run to {}", "which flags do I need to {}", "can somebody tell me how to {}", "what does it take to {}",
        "my team wants to {}", "my boss asked me to {}", "I am not sure how to {}", "I'm looking for a way to {}",
        "remind me how to {}", "how exactly do I {}", "instructions to {}", "I tried to {}", "am I able to {}",
        "I've been asked to {}", "what's the right command to {}", "could I {}", "do I need anything special to {}",
        "there must be some way to {}", "somebody asked me to {}", "is it hard to {}", "tomorrow I have to {}", "how hard is it to {}",
        "the task is to {}", "the plan is to {}", "my wish: {}", "I would love to {}", "it would be nice to {}", "how about a way to {}",
    ),
    "?": (
        "what is {}", "what is {}", "what's {}", "what does {} mean", "explain {}", "tell me about {}", "describe {}",
        "{}", "{} meaning", "can you explain {}", "what do you know about {}", "what is meant by {}", "define {}",
        "what about {}", "give me a short explanation of {}", "I do not understand {}", "information about {}",
        "please explain {}", "say something about {}", "what exactly is {}", "what should I know about {}",
        "{} explained", "could you describe {}", "how do you explain {}", "I've read about {}, what is it", "what's {} about",
        "can you tell me something about {}", "tell me something about {}", "give me details about {}", "{}, what is that",
        "what do people mean by {}", "I keep reading {}", "help me understand {}", "in short, what is {}",
        "what can you tell me about {}", "why would I care about {}", "who needs {}", "how would you define {}",
    ),
    "^": (
        "can quire {}", "can quire {}", "does quire {}", "can it {}", "does it {}", "can I {}", "is it possible to {}",
        "will quire {}", "is quire able to {}", "could quire {}", "can the server {}", "is there a way to {}",
        "I want to {}", "am I able to {}", "how do I {}", "would quire {}", "can you {}", "could I {}",
        "do you know if quire can {}", "I wonder if quire can {}", "may I {}", "tell me if quire can {}", "{}",
        "any chance quire can {}", "is it able to {}", "will it {}", "can I use quire to {}", "can one {}", "I'd like to {}",
    ),
    "%": (
        "does quire support {}", "does quire support {}", "is {} supported", "is there support for {}", "{} support",
        "can quire do {}", "does quire have {}", "is there {}", "can I use {}", "{} supported", "do you support {}",
        "does it support {}", "does the server support {}", "what about {}", "support for {}", "is {} available",
        "is {} possible", "can quire handle {}", "will {} work", "does {} work", "how about {}", "I need {}",
        "I want to use {}", "I would like {}", "tell me about {}", "{}", "is {} implemented", "how do I use {}",
        "do you know if {} works", "are you able to do {}", "quire and {}", "any support for {}", "I've got {}", "I have {}",
        "is {} OK", "are there plans for {}", "can it deal with {}", "does it come with {}", "have you got {}",
        "would {} work", "what if I need {}", "can it take {}", "do I get {}", "is {} planned", "can I have {}",
    ),
    "!": (
        "which flag sets {}", "what flag sets {}", "flag for {}", "which option sets {}", "is there a flag for {}",
        "is there an option for {}", "how do I set {}", "how do I change {}", "where do I set {}", "setting for {}",
        "option for {}", "I want to change {}", "how can I configure {}", "set {}", "change {}", "configure {}",
        "what is the flag for {}", "which parameter controls {}", "which flag controls {}", "what controls {}",
        "can I change {}", "can I set {}", "how is {} set", "tell me the flag for {}", "adjust {}", "what is {}",
        "how do I control {}", "{} flag", "{} option", "which switch is for {}", "name the flag for {}",
        "is {} configurable", "what determines {}", "{}", "I need to change {}", "how to set {}",
    ),
    "+": (
        "how do I make sure that {}", "how can I make sure that {}", "I want to be sure that {}", "how do I ensure that {}",
        "what do I do so that {}", "what must I set so that {}", "what do I have to change so that {}", "I'd like it if {}",
        "can it be arranged that {}", "what ensures that {}", "my aim is that {}", "we need a setup in which {}", "I wish that {}",
        "which setting makes sure that {}", "it is important to me that {}", "what guarantees that {}", "{}, how do I get there",
        "goal: {}", "I'd be glad if {}", "{}: how", "how do I get to the point that {}", "our customer demands that {}",
        "what does it take so that {}", "is there a way so that {}", "can I have it so that {}", "I must be certain that {}",
    ),
    "*": (
        "{}", "{}, why", "{}, what now", "{}, what can I do", "{}, what should I do", "why is it that {}", "for some reason {}",
        "it seems that {}", "I noticed that {}", "my problem is that {}", "what can I do when {}", "what helps if {}",
        "{}, how do I fix that", "{}, any ideas", "problem: {}", "since this morning {}", "what do I do if {}", "{}. help",
        "{} and I don't know what to do", "suddenly {}", "{}, how do I change that", "somehow {}", "{}, is there a remedy",
        "I am annoyed: {}", "what if {}", "how come {}", "{}. what would you do",
    ),
    "-": (
        "what does {} do", "what does {} do", "what is {}", "what is {} for", "{}", "{}", "explain {}", "meaning of {}",
        "what does {} mean", "what is the default of {}", "default of {}", "default value of {}", "{} default",
        "which values does {} take", "what can I pass to {}", "how do I use {}", "when do I need {}", "what about {}",
        "tell me about {}", "describe {}", "what happens if I set {}", "what happens with {}", "{} meaning",
        "what unit is {} in", "should I set {}", "help with {}", "I do not understand {}", "what effect does {} have",
        "what is the purpose of {}", "why would I use {}", "usage of {}", "what does {} set", "what does {} control",
        "what value should {} have", "how does {} work", "is there {}", "does quire have {}", "can I use {}",
        "what is {} good for", "explain what {} does", "documentation of {}", "what does the option {} do",
        "what does the flag {} do", "what is the flag {}", "explain the flag {}", "what does the parameter {} mean",
    ),
}

_SYNONYMS = {
    "folder": ("directory", "dir", "path", "location"),
    "start": ("launch", "run", "begin"),
    "GPU": ("graphics card", "NVIDIA GPU", "CUDA GPU", "gpu", "video card"),
    "graphics card": ("GPU",),
    "flag": ("option", "switch", "parameter", "argument", "setting"),
    "option": ("flag", "setting"),
    "show": ("print", "display", "see", "list"),
    "set": ("change", "configure", "choose", "specify"),
    "server": ("service", "API server", "HTTP server"),
    "requests": ("queries", "calls"),
    "request": ("query", "call"),
    "my model": ("my checkpoint", "my weights", "my own model", "a local model", "my LLM"),
    "my own model": ("my model", "my own checkpoint", "my own weights", "a model of mine", "my local model"),
    "checkpoint": ("model", "weights"),
    "limit": ("bound", "restrict", "cap"),
    "turn off": ("disable", "switch off", "deactivate"),
    "turn on": ("enable", "switch on", "activate"),
    "default": ("standard", "preset"),
    "use": ("utilize", "work with", "employ"),
    "supported": ("possible", "available"),
    "find": ("get", "see", "look up"),
    "make": ("create", "produce"),
    "machine": ("computer", "host", "box"),
    "need": ("require",),
    "fast": ("quick", "speedy"),
    "error": ("message", "failure", "problem"),
    "number of": ("amount of", "count of"),
    "several": ("multiple", "many", "some", "a few"),
    "give": ("pass", "provide", "supply"),
    "see": ("view", "look at", "inspect"),
    "list": ("enumerate", "list"),
    "largest": ("biggest", "maximum", "greatest"),
    "most": ("maximum",),
    "refused": ("rejected", "denied", "not accepted", "declined"),
    "allow": ("permit", "let in", "accept"),
    "wait": ("queue", "be queued"),
    "faster": ("quicker",),
    "slow": ("sluggish", "not fast"),
    "measure": ("benchmark", "time", "determine"),
    "another": ("a different", "some other"),
    "answer": ("reply", "response"),
    "answers": ("replies", "responses", "outputs"),
    "terminal": ("shell", "console", "command line"),
    "save": ("store", "keep"),
    "choose": ("pick", "select"),
    "select": ("choose", "pick"),
    "happens": ("occurs",),
    "example": ("sample", "demo"),
    "clients": ("users", "callers"),
    "on another machine": ("on a different computer", "elsewhere"),
    "does not": ("doesn't",),
    "cannot": ("can't", "can not"),
    "what is": ("what's",),
    "how is": ("how's",),
    "I want to": ("I'd like to", "I wanna", "I wish to"),
    "do I": ("do I", "does one", "would I", "can I", "should I"),
    "is not": ("isn't",),
}
_SYNONYM = re.compile(r"(?<![\w/.`-])(" + "|".join(sorted(map(re.escape, _SYNONYMS), key=len, reverse=True)) + r")(?![\w/.`-])")

_OPENINGS = (
    "hi, ", "hello, ", "hey, ", "hi! ", "hello! ", "good morning, ", "quick question: ", "question: ", "one question: ",
    "please tell me: ", "please: ", "ok, ", "okay, ", "so ", "and ", "also, ", "I have a question: ", "sorry, ",
    "excuse me, ", "help: ", "another question: ", "next question: ", "now ", "tell me, ", "just wondering, ",
    "a question: ", "I was wondering: ", "well, ", "hm, ", "small question: ", "can you help? ", "please help: ",
    "I am curious: ", "good evening, ", "hi there, ", "simple question: ", "last question: ", "thanks. ", "great, ",
)
_QUIRE_OPENINGS = (
    "in quire, ", "with quire, ", "for quire: ", "about quire: ", "quire: ", "quire question: ", "I am new to quire. ",
    "I use quire. ", "I just installed quire. ", "when I use quire, ", "a question about quire: ", "regarding quire: ",
    "in this program, ", "with this tool, ", "I have quire on my machine. ",
)
_CONTEXTS = (
    "I have a machine with 64 GB. ", "We are a small team. ", "My boss asked me. ", "I am on Debian. ", "I use an H100. ",
    "It is my first day with it. ", "I come from vLLM. ", "I have used llama.cpp before. ", "We have a cluster. ",
    "I read the README. ", "The docs are long. ", "I am writing a script. ", "This is for a project at work. ",
    "My server has 16 cores. ", "I am a student. ", "I tried a lot. ", "It is urgent. ", "I run Ubuntu. ", "I am stuck. ",
    "I have an A100. ", "I built it yesterday. ", "It runs now. ", "I downloaded a model. ", "We test it at the moment. ",
)
# A user's situation, which decides nothing about the answer; `[a|b]` as in a topic's line.
_SITUATIONS = (
    "[we are|our team is|I work for] [a hospital|a bank|a small startup|a university lab|a school|a law firm|a game studio] and "
    "[run|look after|plan|write] [a chatbot|an internal assistant|a helper for homework|a tool for our support team]. ",
    "[yesterday|last week|this morning|two days ago] I [installed|built|updated|copied] it on [our server|my workstation|"
    "a rented machine|an old desktop], [and everything worked|and the first test was fine|which took a while]. ",
    "[my colleague|my boss|a friend|our admin|a customer|my teacher] [told me to ask you|said you would know|thinks this is easy|"
    "wants to know this by tonight]. ",
    "I am [not a programmer|an admin|a developer|a beginner|a student|new to all this|a researcher] [and my English is not good|"
    "and I have little time|and a bit lost|but I learn fast|]. ",
    "[I have read half of the pages|I searched the whole day|I looked everywhere|I asked in a forum] and [found nothing|did not "
    "understand it|got three different answers]. ",
    "[before I forget it|one thing is still unclear|here is my situation|maybe you can help|this may be a silly question]. ",
    "[the demo is tomorrow|we go live on Monday|the customer waits|I have five minutes left|it is late at night here]. ",
)
_CLOSINGS = (
    ", please", " please", " thanks", ", thank you", ", thanks!", "? thanks", " exactly", " here", "? please be brief",
    " again", " now", "? I forgot", "? I cannot find it", "? be short", "? answer briefly",
)
_QUIRE_CLOSINGS = (" in quire", " with quire", " in quire", " with quire", " using quire", " in this program", " here", " for quire")


def expand(line: str, rng: random.Random) -> str:
    while True:
        line, replaced = _ALTERNATIVES.subn(lambda found: rng.choice(found[1].split("|")), line)
        if not replaced:
            return " ".join(line.split())


def expansions(line: str) -> list[str]:
    """All texts that `expand` may return."""
    found = _ALTERNATIVES.search(line)
    if found is None:
        return [" ".join(line.split())]
    return [text for choice in found[1].split("|")
            for text in expansions(line[:found.start()] + choice + line[found.end():])]


def frames_of(line: str) -> tuple[tuple[str, ...], str]:
    """The frames of a line, and the text that they hold. A flag alone has frames, a sentence that begins with one has not."""
    if line.startswith("-"):
        return (("{}",) if " " in line or "|" in line else FRAMES["-"]), line
    if line[0] in FRAMES:
        return FRAMES[line[0]], line[1:]
    return ("{}",), line


_MODELS = ("llama", "qwen", "mistral", "gemma", "foo", "my-model", "llama-3.1-8b", "qwen3-8b", "gemma-3-4b", "test", "chatty")
_FILLED = re.compile(r"@(port|path|model|tokens|count|bytes|few|share)\b")
_FILLERS = {
    "port": lambda rng: str(rng.choice((80, 443, 3000, 5000, 7860, 8001, 8080, 8081, 8888, 9000, 11434, rng.randint(1024, 65535)))),
    "path": lambda rng: rng.choice(("/models/", "~/models/", "/data/", "./", "/srv/models/", "/mnt/", "~/")) + rng.choice(_MODELS),
    "model": lambda rng: rng.choice(_MODELS),
    "tokens": lambda rng: rng.choice(("512", "1024", "2048", "4096", "8192", "16384", "32768", "4k", "8k", "16K", "32k", "128k")),
    "count": lambda rng: str(rng.choice((1, 2, 4, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000))),
    "few": lambda rng: rng.choice(("two", "three", "four", "five", "2", "3", "4", "5", "8", "ten")),
    "bytes": lambda rng: rng.choice(("1G", "2 GB", "4 GB", "8G", "16 GiB", "512M", "10 GB", "24 GB")),
    "share": lambda rng: rng.choice(("0.5", "0.7", "0.8", "0.95", "half", "80 %", "50 percent", "a third")),
}


def filled(text: str, rng: random.Random) -> str:
    """The text with ports, paths, names and amounts for their placeholders."""
    return _FILLED.sub(lambda found: _FILLERS[found[1]](rng), text)


def framed(line: str, rng: random.Random, with_synonyms: bool = True) -> str:
    """The line as a question or request, in lower case."""
    frames, text = frames_of(line)
    text = filled(expand(text, rng), rng)
    if with_synonyms and rng.random() < 0.5:
        text = _SYNONYM.sub(lambda found: rng.choice(_SYNONYMS[found[1]]) if rng.random() < 0.5 else found[1], text)
    return in_frame(rng.choice(frames), text)


def in_frame(frame: str, text: str) -> str:
    """`{bare}` stands for the text without its article."""
    return frame.replace("{bare}", text.removeprefix("the ")).replace("{}", text)


def reworded(text: str, rng: random.Random, about_quire: bool) -> str:
    """The question as some user might type it."""
    is_question = any(part.split(" ", 1)[0].lower() in _QUESTION_WORDS for part in (text, re.split(r"[.,:] ", text)[-1]))
    has_quire = "quire" in text.lower()
    if about_quire and not has_quire and rng.random() < 0.12:
        text += rng.choice(_QUIRE_CLOSINGS)
    elif rng.random() < 0.08:
        text += rng.choice(_CLOSINGS)
        is_question = is_question and "? " not in text
    draw = rng.random()
    if draw < 0.12:
        text = rng.choice(_OPENINGS) + text
    elif draw < 0.2 and about_quire and not has_quire:
        text = rng.choice(_QUIRE_OPENINGS) + text
    elif draw < 0.24:
        text = rng.choice(_CONTEXTS) + text
    elif draw < 0.3:
        text = situation(rng) + text
    return typed(text, is_question, rng)


def situation(rng: random.Random) -> str:
    """One to three sentences that precede a question."""
    return "".join(expand(line, rng).replace(" .", ".") + " " for line in rng.sample(_SITUATIONS, rng.choice((1, 1, 2, 3))))


def typed(text: str, is_question: bool, rng: random.Random) -> str:
    """Capitals and punctuation, or none, and now and then a typing error."""
    if rng.random() < 0.08:
        text = mistyped(text, rng)
    ending = "" if text[-1] in "?!.:" else "?" if is_question else "."
    style = rng.random()
    if style < 0.5:
        text = re.sub(r"(?<![\w/.-])quire(?= |$|[,.?:])(?! (?:serve|chat|generate|bench|tune|doctor|help|eval|tokenize|"
                      r"detokenize|template|completion|--))", "Quire", text)
        return sentence_case(text) + ending
    if style < 0.7:
        return text.lower() + (ending if rng.random() < 0.4 else "")
    if style < 0.9:
        return text + (ending if rng.random() < 0.5 else "")
    if style < 0.99:
        return sentence_case(text) + ("" if rng.random() < 0.7 else ending)
    return text.upper() + ending


def sentence_case(text: str) -> str:
    text = re.sub(r"(?<=[.?!] )[a-z]", lambda found: found[0].upper(), text)
    return text[0].upper() + text[1:]


def mistyped(text: str, rng: random.Random) -> str:
    """One long word loses, doubles or swaps a letter; flags, commands and numbers stay."""
    places = [found for found in re.finditer(r"(?<![\w/.`-])[a-z]{5,}(?![\w/.`-])", text)]
    if not places:
        return text
    word = rng.choice(places)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    a, b = text[at], text[at + 1]
    return text[:at] + rng.choice((b + a, b, a + a + b)) + text[at + 2:]
