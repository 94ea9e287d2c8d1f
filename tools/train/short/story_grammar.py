"""How a story is told: clauses in a tense, sentences of clauses, and the question before, after or among them.

A topic of `stories.py` decides which state and which events there are, and what they do to the number. Here they become
text: `Tom has 5 apples. He eats 2.`, `How many apples are left if Tom had 5 and ate 2?`, `Tom: 5 apples, 2 eaten. left?`
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .grammar import Pattern
from .story_words import Actor, form

_patterns: dict[str, Pattern] = {}


def say(rng: random.Random, text: str, **slots: object) -> str:
    """Expands a pattern, which is parsed once."""
    if text not in _patterns:
        _patterns[text] = Pattern(text)
    return " ".join(_patterns[text].expand(rng, **slots).split())


def finite(verb: str, who: Actor, tense: str) -> str:
    """`tense`: present, past, perfect, progressive, or bare, which is how some learners write."""
    first, _, rest = verb.partition(" ")
    if tense == "perfect":
        return f"{'has' if who.number == 's' else 'have'} {form(verb, 'part')}"
    if tense == "progressive":
        return f"{_be(who, 'present')} {form(verb, 'ing')}"
    if first == "be" and tense != "bare":
        return f"{_be(who, tense)} {rest}".strip()
    if tense == "past":
        return form(verb, "past")
    return form(verb, "s") if who.number == "s" and tense == "present" else verb


def _be(who: Actor, tense: str) -> str:
    if tense == "past":
        return "were" if who.number == "p" else "was"
    return {"s": "is", "p": "are", "i": "am"}[who.number]


def does(who: Actor, tense: str) -> str:
    if tense == "past":
        return "did"
    return "does" if who.number == "s" else "do"


@dataclass(frozen=True)
class Clause:
    """`Tom` `eats` `2 of them` `for lunch`; without a verb the object alone is a state: there are so many."""

    who: Actor
    verb: str
    what: str = ""
    tail: str = ""
    num: str = ""  # the number alone, for telegrams
    is_short_ok: bool = True  # a telegram may say `2 eaten`
    before: str = ""  # "on Monday", where it begins the sentence

    def predicate(self, tense: str) -> str:
        return " ".join(part for part in (finite(self.verb, self.who, tense), self.what, self.tail) if part)

    def finite(self, tense: str, subject: str | None = None) -> str:
        return f"{self.who.name if subject is None else subject} {self.predicate(tense)}"

    def gerund(self) -> str:
        return " ".join(part for part in (form(self.verb, "ing"), self.what, self.tail) if part)

    def telegram(self) -> str:
        verb = self.verb.removeprefix("be ") if self.verb.startswith("be ") else form(self.verb, "part")
        return f"{self.num} {verb}" if self.num and self.is_short_ok else self.predicate("present")


_STARTS = "[Then|Later|After that|Next|Today|The next day|In the evening|A bit later|Afterwards|Now|Soon|An hour later|On Tuesday|This morning|Finally]"
_SCENES = ("It is a sunny day.", "It is raining.", "Here is what happened.", "School is out.", "Imagine this.", "It was a long day.",
           "We played a game.", "Listen.", "It is the weekend.")


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


Question = Callable[[random.Random, str], str]  # of the tense; ends in a question mark


def story(rng: random.Random, state: Clause | str, events: Sequence[Clause], question: Question, fragment: str = "") -> str:
    """The state may be a sentence without an actor; `fragment` is a pattern of short questions."""
    tense = rng.choice(("present", "present", "present", "past", "past", "past", "perfect", "bare" if rng.random() < 0.3 else "past"))
    now = "past" if tense == "past" else "present" if tense != "bare" else "bare"
    asked = question(rng, "past" if tense == "past" and rng.random() < 0.35 else "bare" if tense == "bare" else "present")
    if fragment and rng.random() < 0.16:
        asked = upper_first(say(rng, fragment)) if rng.random() < 0.6 else say(rng, fragment)
    first = state if isinstance(state, str) else state.finite(now)
    if isinstance(state, str) and now == "past":
        first = first.replace("there are ", "there were ").replace("there is ", "there was ")
    is_question = asked.lower().startswith(("how", "what"))
    ways: list[Callable[[], str]] = [lambda: _sentences(rng, state, first, events, tense) + f" {asked}"] * 5
    ways += [lambda: f"{upper_first(_joined(rng, state, first, events, tense))}{rng.choice(('. ', '. ', ', '))}{asked}"] * 4
    if is_question:
        facts = _joined(rng, state, first, events, tense)
        body = asked.rstrip("?.")
        lower = body[0].lower() + body[1:]
        word = rng.choice(("If", "If", "Suppose", "Say", "When", "Let's say", "Given that"))
        ways += [lambda: f"{word} {facts}, {lower}?"] * 2
        ways += [lambda: f"{upper_first(body)} {rng.choice(('if', 'if', 'when', 'given that'))} {facts}?"] * 2
        ways.append(lambda: f"{upper_first(body)}? {_sentences(rng, state, first, events, tense)}")
        ways.append(lambda: f"{facts} {lower}")
    if isinstance(state, Clause) and state.is_short_ok and events:
        ways += [lambda: _telegram(rng, state, events, asked)] * (2 if all(e.num for e in events) else 0)
        if is_question and all(event.who == state.who for event in events):
            ways.append(lambda: _after(rng, state, first, events, asked))
    return rng.choice(ways)()


def _subject(rng: random.Random, clause: Clause, previous: Actor | None) -> str:
    who = clause.who
    if previous is not None and previous == who:
        return who.subject if rng.random() < 0.75 else who.again
    return who.name


def _sentences(rng: random.Random, state: Clause | str, first: str, events: Sequence[Clause], tense: str) -> str:
    """Each fact is a sentence; two events may share one."""
    text = upper_first(first) + "."
    if rng.random() < 0.03:
        text = f"{rng.choice(_SCENES)} {text}"
    owner = None if isinstance(state, str) else state.who
    index = 0
    while index < len(events):
        event = events[index]
        subject = _subject(rng, event, owner)
        start = event.before or (say(rng, _STARTS) + rng.choice(("", ",")) if rng.random() < 0.4 else "")
        sentence = event.finite(tense, subject)
        if index + 1 < len(events) and rng.random() < 0.45:
            index += 1
            sentence += rng.choice((" and ", " and then ", ", then ", " and also ", " but ")) + _elided(rng, events[index], event.who, tense)
        text += " " + upper_first(f"{start} {sentence}".strip()) + "."
        index += 1
    return text


def _elided(rng: random.Random, clause: Clause, previous: Actor | None, tense: str) -> str:
    if previous == clause.who and rng.random() < 0.8:
        return clause.predicate(tense)
    return clause.finite(tense, _subject(rng, clause, previous))


def _joined(rng: random.Random, state: Clause | str, first: str, events: Sequence[Clause], tense: str) -> str:
    """All facts in one sentence."""
    text, owner = first, None if isinstance(state, str) else state.who
    for index, event in enumerate(events):
        is_last = index == len(events) - 1
        text += rng.choice((" and ", " and then ", ", then ", " and ", ", and ") if is_last else (", ", ", ", " and ", ", then "))
        text += _elided(rng, event, owner, tense)
        owner = event.who
    return text


def _telegram(rng: random.Random, state: Clause, events: Sequence[Clause], asked: str) -> str:
    """`Tom: 5 apples, 2 eaten, how many left?`"""
    parts = [event.telegram() if rng.random() < 0.8 else event.predicate("present") for event in events]
    who = upper_first(state.who.name)
    head = rng.choice((f"{who}: {state.what}", state.what, f"{state.what}", f"{who} has {state.what}" if state.who.number == "s" else state.what))
    separator = rng.choice((", ", ", ", "; ", " - ", ". "))
    return separator.join((head, *parts)) + rng.choice((". ", ", ", separator)) + asked


def _after(rng: random.Random, state: Clause, first: str, events: Sequence[Clause], asked: str) -> str:
    """`Tom has 5 apples. After eating 2 of them, how many does he have?`"""
    acts = " and ".join(event.gerund() for event in events)
    body = asked.rstrip("?.")
    lower = body[0].lower() + body[1:]
    return rng.choice((f"{upper_first(first)}. After {acts}, {lower}?", f"After {acts}, {lower} if {first}?",
                       f"{upper_first(first)}. {upper_first(body)} after {acts}?"))


# Questions ------------------------------------------------------------------------------------


def asks_own(who: Actor, noun: str, end: str) -> Question:
    """How many of them an actor has; `end` is a pattern of adverbs."""

    def ask(rng: random.Random, tense: str) -> str:
        name = who.subject if rng.random() < 0.55 else who.again
        slots = {"d": does(who, tense), "x": name, "t": noun, "g": finite("have", who, "present"),
                 "has": finite("have", who, "past" if tense == "past" else "present"),
                 "how": "How much" if noun == "money" else "How many"}
        if tense == "bare":
            return say(rng, f"{{how}} {{t}} {{x}} [have|has] {end}[?|]", **slots)
        return say(rng, f"""[{{how}} [{{t}}|{{t}}|] {{d}} {{x}} have {end}?|{{how}} [{{t}}|] {{g}} {{x}} got {end}?|{{how}} [{{t}}|] {{d}} {{x}} have {end}?"""
                   f"""|[What is the [total|final|new] number of {{t}}|What number of {{t}} {{d}} {{x}} have {end}|And how many {{t}} {{d}} {{x}} have {end}]?"""
                   f"""|[So how many|Now how many|How many] [{{t}} |][are there|is that|does that make] {end}?|[Tell me|Find|Calculate|Work out] how many {{t}} {{x}} {{has}} {end}.]""", **slots).replace("number of money", "amount of money").replace("ow many money", "ow much money")

    return ask


def asks_there(noun: str, end: str, place: str = "") -> Question:
    def ask(rng: random.Random, tense: str) -> str:
        are = "were" if tense == "past" and rng.random() < 0.5 else "are"
        return say(rng, f"[How many [{{t}}|{{t}}|] {are} [there|there {{p}}|{{p}}] {end}?|How many [{{t}}|] are [there|there {{p}}] {end}?"
                   f"|[What is the [total|new] number of {{t}}|What's the number of {{t}} {end}|How many {{t}} does that make]?"
                   f"|[Find|Tell me|Count] how many {{t}} there {are} {end}.]", t=noun, p=place)

    return ask


LEFT = "[left|left|now|still|left over|left now|at the end|in the end||remaining]"
NOW = "[now|now|in total|altogether|in all|at the end|then||all together|in the end]"
IN_ALL = "[in total|altogether|in all|together|all together|]"
FRAGMENT_LEFT = "[left?|how many left?|how many are left?|how many remain?|what remains?|what is left?|remaining?|how many now?|the rest?|balance?|what's left]"
FRAGMENT_NOW = "[how many now?|now?|total?|in total?|how many in all?|how many?|what is the total?|result?|new total?|how many is that?|sum?|altogether?]"
FRAGMENT = "[total?|how many?|how many in total?|altogether?|in all?|what's the total?|total|how many is that?|sum?]"
