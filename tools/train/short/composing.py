"""Facts and a question, put together in the many orders that people use.

A topic gives its facts as clauses without a full stop, the question as a clause without a question
mark, and the thing asked for as a noun phrase; the syntax is drawn here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .grammar import Patterns
from .things import person

_LAYOUTS = Patterns("""
    {Facts}. {Ask}?
    {Facts}. {Ask}?
    {Facts}. {Ask}?
    {Facts}. {Ask}?
    {Facts}. {Noun}?
    {Facts}[; | -> | - |: |, |... ]{noun}[?||=?]
    {Joined}. {Ask}?
    {Joined}. {Ask}?
    {Joined}. [What is|What's|what is|Find|Calculate|Work out|Give|Tell me|Determine|I need|I want to know|Please compute] {noun}[?|.]
    {Joined}[, so|, then|: |. So|. Then|. Now| --] {ask}?
    [If|if|When|Suppose|Say|Given that|Assuming|Assume|Let's say|Imagine|In case|Knowing that|Provided that] {joined}, {ask}[?|]
    [If|if|When|Given that|Suppose] {joined}, [then |]what is {noun}[?|]
    {Ask} [if|when|given that|provided that|in case|assuming that|, if|knowing that] {joined}[?|]
    {Ask}? {Facts}[.|]
    {Ask}[: |, ]{joined}[?|.|]
    {Noun}? {Facts}[.|]
    [What is|What's|Find|Calculate|Work out|Give me|whats|Determine|compute] {noun} [if|when|given that|where] {joined}[?|.]
    [Can you tell me|Do you know|Please tell me|I want to know|I wonder|I'd like to know|Who knows|Tell me|Could you say|Help me:|Question:] {ask}[?|.] {Facts}[.|]
    {Facts}. [Can you tell me|Do you know|Please tell me|I want to know|I wonder|I'd like to know|Tell me|The question is:|My question:|So I ask,|Could you work out|We want to know|My teacher asks] {ask}[?|.]
    {telegram}[: |; |. | - |, |? ]{noun}[?||=|: ?]
    {telegram}. {ask}[?|]
""")


def compose(rng: random.Random, facts: list[str], ask: str, noun: str, free: bool = False) -> str:
    """`free`: the facts may come in any order, as the reply does not follow it."""
    facts = list(facts)
    if free and len(facts) > 1 and rng.random() < 0.35:
        rng.shuffle(facts)
    joined = _joined(rng, facts)
    separator = rng.choice((". ", ". ", ". ", "; ", ", "))
    separate = separator.join(_upper(f) if separator == ". " else f for f in facts)
    return _LAYOUTS.expand(
        rng, Facts=_upper(separate), joined=joined, Joined=_upper(joined), ask=ask, Ask=_upper(ask), noun=noun,
        Noun=_upper(noun), telegram=rng.choice((", ", "; ", " / ", ", ")).join(_telegram(f) for f in facts))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _joined(rng: random.Random, facts: list[str]) -> str:
    if len(facts) == 1:
        return facts[0]
    middle = rng.choice((", ", " and ", ", ")) if len(facts) > 2 else ""
    return middle.join(facts[:-1]) + rng.choice((" and ", " and ", ", and ", ", ", " while ")) + facts[-1]


_DROPPED = {"the", "a", "an", "is", "are", "was", "am", "it", "at", "has", "have", "does", "its", "his", "her"}


def _telegram(fact: str) -> str:
    """Without the small words."""
    return " ".join(word for word in fact.split() if word.lower() not in _DROPPED)


@dataclass(frozen=True)
class Who:
    """Somebody, with the forms of the verbs that go with them: `{x} {x.has}`, `{x} work{x.s}`."""

    name: str
    be: str = "is"
    was: str = "was"
    has: str = "has"
    s: str = "s"
    es: str = "es"
    do: str = "does"
    own: str = "its"
    pronoun: str = "it"

    def __str__(self) -> str:
        return self.name

    @property
    def of(self) -> str:
        return {"I": "my", "we": "our", "you": "your", "they": "their", "he": "his", "she": "her"}.get(self.name, f"{self.name}'s")


_KIN = ("sister brother mother father mom dad aunt uncle cousin friend neighbor boss grandmother grandfather grandma "
        "grandpa wife husband son daughter niece nephew roommate colleague teacher coach classmate").split()
_OWNERS = "my my my my my your our his her Anna's Tom's Maria's".split()
_JOBS = ("farmer baker teacher nurse driver painter plumber student singer doctor cook waiter gardener tailor carpenter "
         "pilot clerk cleaner mechanic miner sailor writer dancer lawyer judge fisherman shepherd runner cyclist swimmer "
         "guest boy girl child kid man woman customer tourist hiker traveler worker chef manager king queen knight "
         "pirate soldier postman butcher barber dentist potter weaver smith carrier courier").split()


def who(rng: random.Random, first_person: bool = True) -> Who:
    kind = rng.random()
    if first_person and kind < 0.2:
        return Who("I", "am", "was", "have", "", "", "do", "my", "I")
    if first_person and kind < 0.25:
        return Who("we", "are", "were", "have", "", "", "do", "our", "we")
    if first_person and kind < 0.29:
        return Who("you", "are", "were", "have", "", "", "do", "your", "you")
    if kind < 0.62:
        return Who(person(rng))
    if kind < 0.8:
        return Who(f"{rng.choice(_OWNERS)} {rng.choice(_KIN)}")
    return Who(f"{rng.choice(('the', 'the', 'the', 'the', 'a'))} {rng.choice(_JOBS)}")


def named_again(rng: random.Random, x: Who) -> Who:
    """The name, or a pronoun for it."""
    if x.be != "is" or rng.random() < 0.7:
        return x
    name = rng.choice(("he", "she"))
    return Who(name, own={"he": "his", "she": "her"}[name], pronoun=name)


def some_people(rng: random.Random, count: int, first_person: bool = False) -> list[Who]:
    """Different ones."""
    found: dict[str, Who] = {}
    while len(found) < count:
        someone = who(rng, first_person and not found)
        found[someone.name.removeprefix("a ").removeprefix("the ")] = someone
    return list(found.values())
