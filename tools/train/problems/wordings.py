"""Helpers of the newer themes: people of many names, sentences in any order, prices. Nouns are telling's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

from . import words_shopping
from .problem import Calc, Draw, Number, Person


def people(d: Draw, count: int) -> list[Person]:
    """Different people; half of them have a name of this module's own lists."""
    found: dict[str, Person] = {}
    while len(found) < count:
        if d.pick((True, False)):
            person = d.person()
        else:
            (they, their, them), name = d.pick(words_shopping.PEOPLE)
            person = Person(name, they, their, them)
        found.setdefault(person.name, person)
    return list(found.values())


def person(d: Draw) -> Person:
    return people(d, 1)[0]


def adult(d: Draw) -> Person:
    """Somebody who may be called by a title, for stories that are no child's."""
    if d.pick((True, False, False)):
        (they, their, them), title = d.pick(words_shopping.TITLES)
        return Person(f"{title} {d.pick(words_shopping.SURNAMES)}", they, their, them)
    return person(d)


def shuffled(d: Draw, *facts: Sequence[str], stray: Sequence[str] = ()) -> str:
    """One wording of each fact, in any order; in half of the draws with a fact that is of no use."""
    chosen = [d.pick(fact) for fact in facts]
    if stray and d.pick((True, False)):
        chosen.append(d.pick(stray))
    return " ".join(map(capitalized, d.pick(tuple(permutations(chosen)))))


def tell(d: Draw, *parts: Sequence[str] | str) -> str:
    """A question: one wording of each part. A part may be left out with an empty wording."""
    chosen = [part if isinstance(part, str) else d.pick(part) for part in parts]
    return " ".join(capitalized(text) for text in chosen if text)


def capitalized(text: str) -> str:
    """The text with a capital letter at the beginning of each sentence, and `an` before 8, 11 and 18."""
    text = re.sub(r"\b([Aa]) (?=\$?(8[\d,]*|11|18)(?![\d,]))", r"\1n ", text)
    return re.sub(r"(^|[.?!] )[a-z]", lambda match: match[0].upper(), text)


def grouped(d: Draw, number: int) -> str:
    """A large number with its thousands set off in half of the draws."""
    return f"{number:,}" if d.pick((True, False)) else str(number)


def several(d: Draw, *values: Number | Calc) -> None:
    """Draws again unless each value is at least 2, so that a plural is right."""
    d.require(all(int(value) > 1 for value in values))


def cost(d: Draw, low: int, high: int) -> Number:
    """A price, in whole dollars in half of the draws."""
    return d.int(low, high) if d.pick((True, False)) else d.price(low, high)
