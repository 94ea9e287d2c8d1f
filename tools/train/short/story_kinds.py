"""Stories of one to three steps, put together from states, events and questions."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from . import story_words as lexicon
from .arithmetic import Worked, apply
from .numbers import Hand, Value, dollars, require
from .question import Short, computed, topic
from .story_grammar import (FRAGMENT, FRAGMENT_LEFT, FRAGMENT_NOW, IN_ALL, LEFT, NOW, Clause, Question, asks_own,
                            asks_there, does, finite, say, story, upper_first)
from .story_words import Actor, Thing, singular


_TIDY = (
    (re.compile(r"\b([Aa]) (?=(?!one\b|euro|unit|use|unicorn)[aeiou]|hour)"), r"\1n "),
    (re.compile(r" +(?=[.,?])"), ""),
    (re.compile(r"(?<![\d.,-])(1|[Oo]ne) (dollar|euro|buck|pound)s\b"), r"\1 \2"),
)


def tidied(text: str) -> str:
    """Articles before vowels, no space before a full stop, one dollar."""
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    return text


def _active(verbs: tuple[str, ...]) -> tuple[str, ...]:
    """Verbs that a question with "did" can repeat."""
    return tuple(verb for verb in verbs if not verb.startswith("be "))


class Tally:
    """The number that the story is about, and the lines that lead to it."""

    def __init__(self, value: Value) -> None:
        self.value, self.lines = value, ()

    def do(self, operator: str, other: Value | Worked) -> None:
        """The other number may have to be worked out first."""
        if isinstance(other, Worked):
            self.lines += other.lines
            other = other.value
        step = apply(operator, self.value, other)
        self.lines += step.lines
        self.value = step.value
        require(self.value >= 0)

    def short(self, text: str) -> Short:
        return computed(tidied(text), Worked(self.lines, self.value))


def _limit(rng: random.Random) -> int:
    return rng.choice((10, 12, 20, 20, 30, 50, 100, 100, 200, 500, 1000))


def _amount(rng: random.Random, limit: int, thing: Thing) -> Value:
    """Of liters and the like there may be a half."""
    if " of " in thing.noun and rng.random() < 0.25:
        return Fraction(rng.randint(2, max(4, 2 * min(limit, 40))), 2)
    number = rng.randint(1, limit)
    return number - number % 10 + 10 if limit > 100 and rng.random() < 0.4 else number


def _noun(thing: Thing, n: Value, short: bool = False) -> str:
    noun = thing.short if short else thing.noun
    return singular(noun) if n == 1 else noun


def _full(rng: random.Random, hand: Hand, n: Value, thing: Thing) -> str:
    kind = rng.choice(thing.kinds) if rng.random() < 0.08 and " of " not in thing.noun else ""
    return " ".join(f"{hand.write(n)} {kind} {_noun(thing, n)}".split())


def _more(rng: random.Random, hand: Hand, n: Value, thing: Thing) -> str:
    return say(rng, "[{n} more|{n} more|{n} more {t}|another {n}|{n} {t}|another {n} {t}|{n} additional {t}|{n} extra {t}|{n}]",
               n=hand.write(n), t=_noun(thing, n, short=True))


def _some(rng: random.Random, hand: Hand, n: Value, thing: Thing, who: Actor | None = None) -> str:
    t = thing.short
    own = f"{{n}} of {who.possessive} {t}" if who else "{n} of them"
    if " of " in thing.noun:
        return say(rng, "[{n}|{n} {t}|{n} {t}]", n=hand.write(n), t=_noun(thing, n, short=True))
    return say(rng, f"[{{n}}|{{n}}|{{n}} of them|{{n}} of them|{{n}} {{t}}|{{n}} {{t}}|{{n}} of the {t}|{own}]", n=hand.write(n),
               t=_noun(thing, n, short=True))


def _tail(rng: random.Random, verb: str) -> str:
    return rng.choice(lexicon.TAILS[verb].split("|")) if verb in lexicon.TAILS and rng.random() < 0.2 else ""


def _verb(rng: random.Random, choices: tuple[str, ...], who: Actor) -> str:
    if who in lexicon.INSTITUTIONS:
        choices = tuple(verb for verb in choices if lexicon.fits_institution(verb))
        require(bool(choices))
    return rng.choice(choices)


def _other(rng: random.Random, who: Actor) -> Actor:
    """Somebody else, of the third person."""
    while True:
        other = lexicon.person(rng) if rng.random() < 0.6 else rng.choice(lexicon.ROLES)
        if other.again != who.again:
            return other


def _again(rng: random.Random, who: Actor) -> str:
    return who.subject if rng.random() < 0.55 else who.again


def _count(text: str, n: Value) -> Actor:
    """A number of things as the subject."""
    return Actor(text, text, "they", "them", "their", "s" if n == 1 else "p")


def _owner(rng: random.Random) -> Actor:
    return rng.choice(lexicon.INSTITUTIONS) if rng.random() < 0.1 else lexicon.actor(rng)


def _state(rng: random.Random, who: Actor, what: str, container: str) -> Clause:
    verb = rng.choice(("have", "have", "have", "have", "have", "own", "start with", "begin with", "keep", "start out with"))
    if who in lexicon.INSTITUTIONS:
        verb = rng.choice(("have", "have", "start with", "own"))
    place = f"in a {singular(container)}" if rng.random() < 0.07 else ""
    return Clause(who, verb, what, place)


# Gains and losses -----------------------------------------------------------------------------


def _gain(rng: random.Random, hand: Hand, who: Actor, thing: Thing, limit: int, tally: Tally) -> Clause:
    kind = rng.random()
    if kind < 0.12 and who not in lexicon.INSTITUTIONS:  # in packs
        k, m = rng.randint(2, 9), rng.randint(2, 12)
        tally.do("+", apply("*", k, m))
        packs = rng.choice(thing.containers)
        what = say(rng, "{k} [more |]{p} [of|with] {m} {t}[ each|]" if rng.random() < 0.5 else "{k} {p} [of|with] {m}[ {t}| each| {t} each]",
                   k=hand.write(k), m=hand.write(m), p=packs, t=thing.short)
        return Clause(who, rng.choice(("buy", "get", "receive", "find", "pick up", "order", "bring")), what)
    if kind < 0.16:
        factor, verb = rng.choice(((2, "double"), (3, "triple"), (2, "double")))
        tally.do("*", factor)
        noun = "number" if " of " not in thing.noun else "amount"
        return Clause(who, verb, rng.choice(("them", f"the {noun}", f"that {noun}")))
    n = _amount(rng, limit, thing)
    tally.do("+", n)
    what = _more(rng, hand, n, thing)
    if kind < 0.34:
        giver = _other(rng, who)
        verb = rng.choice(("give", "give", "give", "hand", "send", "bring", "buy", "lend", "offer", "pass"))
        return Clause(giver, verb, f"{who.object} {what}", is_short_ok=False, num=hand.write(n))
    if kind < 0.4:
        return Clause(_count(what, n), rng.choice(("be added", "be delivered", "be brought", "arrive", "come in the mail", "turn up")), num=hand.write(n))
    verb = _verb(rng, lexicon.changing(thing.gains), who)
    return Clause(who, verb, what, _tail(rng, verb), hand.write(n))


def _lose(rng: random.Random, hand: Hand, who: Actor, thing: Thing, limit: int, tally: Tally) -> Clause:
    kind = rng.random()
    if kind < 0.06 and tally.value % 2 == 0 and tally.value > 0:
        tally.do("/", 2)
        return Clause(who, _verb(rng, lexicon.changing(thing.losses), who), rng.choice(("half of them", "half", f"half of the {thing.short}")))
    if kind < 0.18 and who not in lexicon.INSTITUTIONS:
        k, m = rng.randint(2, 8), rng.randint(1, 9)
        require(k * m <= tally.value)
        tally.do("-", apply("*", k, m))
        people = rng.choice(("friends", "kids", "neighbors", "cousins", "children", "classmates", "people", "guests", "brothers"))
        what = say(rng, "[{m} to each of {k} {p}|{m} {t} to each of {k} {p}|{k} {p} {m} [each|{t} each|apiece]|each of {k} {p} {m}[ {t}|]]",
                   m=hand.write(m), k=hand.write(k), p=people, t=_noun(thing, m, short=True))
        return Clause(who, "give", what)
    require(tally.value >= 1)
    n = _amount(rng, min(limit, int(tally.value)), thing)
    require(n <= tally.value)
    tally.do("-", n)
    what, num = _some(rng, hand, n, thing, who), hand.write(n)
    if kind < 0.32:
        taker = _other(rng, who)
        verb, objects = rng.choice((("give", f"{taker.name} {what}"), ("give", f"{what} to {taker.name}"), ("sell", f"{what} to {taker.name}"),
                                    ("lend", f"{what} to {taker.name}"), ("lend", f"{taker.name} {what}"), ("send", f"{what} to {taker.name}"),
                                    ("hand", f"{taker.name} {what}"), ("pass", f"{what} on to {taker.name}")))
        return Clause(who, verb, objects, num=num)
    if kind < 0.42:
        verb = rng.choice(("take", "steal", "borrow", "take away", "grab", "snatch", "get", "carry off", "buy"))
        return Clause(_other(rng, who), verb, f"{what} from {who.object}" if verb in ("get", "buy") or rng.random() < 0.2 else what, num=num)
    if kind < 0.52:
        verb = rng.choice(("be stolen", "get lost", "break", "be sold", "be used", "be taken away", "disappear", "go missing", "be given away",
                           "be lost", "be thrown out", "be damaged and thrown away", "be removed"))
        return Clause(_count(what, n), verb, num=num)
    verb = _verb(rng, lexicon.changing(thing.losses), who)
    return Clause(who, verb, what, _tail(rng, verb), num)


@topic(10)
def changes(rng: random.Random) -> Short:
    """Somebody has things, gets some and loses some."""
    hand, who, thing, limit = Hand(rng), _owner(rng), lexicon.thing(rng), _limit(rng)
    start = _amount(rng, limit, thing)
    tally = Tally(start)
    state = _state(rng, who, _full(rng, hand, start, thing), rng.choice(thing.containers))
    events, is_gain = [], True
    for _ in range(rng.choice((1, 1, 2, 2, 2, 2, 3))):
        is_gain = rng.random() < 0.5
        events.append((_gain if is_gain else _lose)(rng, hand, who, thing, limit, tally))
    ask = asks_own(who, thing.noun if rng.random() < 0.3 else thing.short, NOW if is_gain else LEFT)
    return tally.short(story(rng, state, events, ask, FRAGMENT_NOW if is_gain else FRAGMENT_LEFT))


@topic(2)
def money_changes(rng: random.Random) -> Short:
    hand, who = Hand(rng), _owner(rng)
    limit = rng.choice((20, 50, 100, 100, 200, 500, 1000))
    has_cents = rng.random() < 0.15

    def amount(most: int) -> Value:
        require(most >= 1)
        return Fraction(rng.randint(1, most * 20), 20) if has_cents else rng.randint(1, most)

    unit = rng.choice(("dollars", "dollars", "euros", "$", "$", "$", "€", "bucks", "pounds"))

    def written(n: Value) -> str:
        if unit in "$€":
            return unit + dollars(n)
        return f"{hand.write(n)} {unit[:-1] if n == 1 else unit}"

    start = amount(limit)
    tally = Tally(start)
    state = Clause(who, rng.choice(("have", "have", "own", "start with", "save")), written(start), rng.choice(("", "", "", "in cash", "in the bank", "saved")))
    events, is_gain = [], False
    goods = rng.choice(("a book", "lunch", "a toy", "food", "a ticket", "a gift", "shoes", "a game", "groceries", "candy", "gas", "a haircut", "pens"))
    for _ in range(rng.choice((1, 2, 2, 3))):
        is_gain = rng.random() < 0.45
        n = amount(limit if is_gain else int(tally.value))
        tally.do("+" if is_gain else "-", n)
        num = written(n)
        if is_gain:
            events.append(rng.choice((
                Clause(who, rng.choice(("earn", "get", "find", "win", "receive", "be given", "save", "be paid", "borrow", "make", "collect")),
                       rng.choice((num, num, f"{num} more", f"another {num}")), _tail(rng, "earn"), num),
                Clause(_other(rng, who), rng.choice(("give", "pay", "lend", "send")), f"{who.object} {num}", num=num, is_short_ok=False))))
        else:
            events.append(rng.choice((
                Clause(who, rng.choice(("spend", "spend", "pay", "lose", "donate", "give away", "waste", "pay back")), num, _tail(rng, "spend"), num),
                Clause(who, "spend", num, f"on {goods}", num), Clause(who, "buy", goods, f"for {num}"), Clause(who, "pay", num, f"for {goods}", num),
                Clause(who, "give", f"{_other(rng, who).name} {num}", num=num))))
    ask = asks_own(who, "money", NOW if is_gain else LEFT)
    return tally.short(story(rng, state, events, ask, "[how much?|how much now?|balance?|new balance?|how much is that?|total?]" if is_gain
                             else "[how much is left?|what's left?|balance?|how much remains?|remaining?|left?|how much now?]"))


_MOVERS = (
    ("people", "people, children, students, guests, visitors, customers, players, kids, tourists, men, women, girls, boys",
     "in a room, at a party, in the park, in the museum, in line, in a café, in the pool, in the classroom, on the playground, in the shop, at the meeting"),
    ("riders", "people, passengers, riders, tourists, students", "on a bus, on the train, on a ferry, in an elevator, on the tram, in the bus, on a boat, on a plane"),
    ("birds", "birds, crows, ducks, pigeons, sparrows, swans, butterflies, bees, geese, parrots, owls",
     "in a tree, on the roof, on a wire, in the garden, on the fence, by the pond, on a branch"),
    ("animals", "cows, sheep, goats, rabbits, cats, dogs, horses, monkeys, deer, mice, pigs, foxes, squirrels, chickens, lions, elephants",
     "in the field, in the yard, in the barn, at the zoo, in the forest, on the farm, in a cage, on the hill"),
    ("water", "fish, frogs, turtles, goldfish, crabs, seals, dolphins", "in the tank, in a pond, in the lake, in an aquarium, in the river"),
    ("cars", "cars, trucks, buses, vans, bikes, taxis, trains, boats", "in the parking lot, in a garage, at the station, on the street, in the yard"),
    ("things", "books, apples, eggs, boxes, plates, cookies, toys, coins, pens, marbles, bottles, flowers, balls, chairs, cups, letters, leaves",
     "on the table, in a box, on the shelf, in a basket, in the bag, in the jar, on the plate, in a drawer, in the fridge, in the room, on the desk"),
)


@topic(4)
def movements(rng: random.Random) -> Short:
    """There are so many somewhere; some come, some leave."""
    kind, nouns, places = rng.choice(_MOVERS)
    hand, limit, noun, place = Hand(rng), _limit(rng), rng.choice(nouns.split(", ")), rng.choice(places.split(", "))
    thing = Thing(noun, (), (), ("groups",), ("other",), (1, 1))
    start = rng.randint(2, limit)
    tally, events, is_gain = Tally(start), [], True
    for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
        is_gain = rng.random() < 0.45
        require(is_gain or tally.value >= 1)
        n = rng.randint(1, limit if is_gain else int(tally.value))
        tally.do("+" if is_gain else "-", n)
        verb = rng.choice((lexicon.ARRIVE if is_gain else lexicon.LEAVE)[kind].split(", "))
        what = (_more if is_gain else _some)(rng, hand, n, thing)
        stop = rng.choice(("at the next stop", "at the first stop", "there", "later")) if kind == "riders" and rng.random() < 0.3 else ""
        events.append(Clause(_count(what, n), verb, "", stop, hand.write(n)))
    text = _full(rng, hand, start, Thing(noun, (), (), (), ("small",), (1, 1)))
    where = place.split(" ", 1)[1]
    holder = Actor(where, "the " + where.split(" ")[-1], "it", "it", "its")
    state: Clause | str = f"there are {text} {place}"
    if where.startswith(("a ", "the ", "an ")) and rng.random() < 0.2:
        state = Clause(holder, rng.choice(("have", "hold", "contain", "carry") if kind == "riders" else ("have", "have", "hold")), text)
    elif rng.random() < 0.15:
        state = Clause(_count(text, start), rng.choice(("be", "sit", "wait", "stay") if kind in ("people", "birds", "riders", "animals") else ("be",)), place, is_short_ok=False)
    ask = asks_there(noun, NOW if is_gain else LEFT, place.replace(" an ", " the ").replace(" a ", " the "))
    return tally.short(story(rng, state, events, ask, FRAGMENT_NOW if is_gain else FRAGMENT_LEFT))


# Comparisons ----------------------------------------------------------------------------------


def _compared(rng: random.Random, hand: Hand, base: Value, noun: str, who: str, has: str, than: str) -> tuple[str, Worked]:
    """A sentence that says the other's number, and how it is worked out."""
    kind = rng.randrange(4)
    if kind == 0:
        n = rng.randint(1, 60)
        return say(rng, "{x} {has} {n} more [{t} |]than {y}", x=who, has=has, n=hand.write(n), t=noun, y=than), apply("+", base, n)
    if kind == 1:
        require(base > 1)
        n = rng.randint(1, int(base) - 1)
        return (say(rng, "{x} {has} {n} [fewer|fewer|less] [{t} |]than {y}", x=who, has=has, n=hand.write(n), t=noun, y=than),
                apply("-", base, n))
    if kind == 2:
        n = rng.randint(2, 9)
        times = {2: rng.choice(("twice", "twice", "two times", "2 times")), 3: rng.choice(("three times", "3 times", "thrice"))}.get(n, f"{hand.write(n)} times")
        return say(rng, "{x} {has} {n} as many [{t} |]as {y}", x=who, has=has, n=times, t=noun, y=than), apply("*", base, n)
    n, words = rng.choice(((2, "half"), (2, "half"), (3, "a third"), (4, "a quarter")))
    require(base % n == 0)
    as_many = "half as many {t} as {y}" if n == 2 else f"{words} [as many {{t}} as|of the {{t}} of] {{y}}"
    return say(rng, f"{{x}} {{has}} {as_many}", x=who, has=has, t=noun, y=than), apply("/", base, n)


_VERBS_COMPARED = ("have", "have", "have", "have", "own", "collect", "buy", "get", "find", "bring", "sell", "need", "keep")


@topic(4)
def compared(rng: random.Random) -> Short:
    """One has so many; another has more, fewer, or times as many."""
    hand, thing, verb = Hand(rng), lexicon.thing(rng), rng.choice(_VERBS_COMPARED)
    one = rng.choice((lexicon.I, lexicon.person(rng), lexicon.person(rng), rng.choice(lexicon.ROLES)))
    two = _other(rng, one)
    base, tense = rng.randint(2, min(_limit(rng), 200)), rng.choice(("present", "past"))
    than = rng.choice((one.object, one.again)) if one.number == "i" or one.again == one.name and rng.random() < 0.1 else one.again
    sentence, other = _compared(rng, hand, base, thing.short, two.name, finite(verb, two, tense), than if one.number != "i" else rng.choice(("me", "I do")))
    tally = Tally(base)
    fact = f"{one.name} {finite(verb, one, tense)} {hand.write(base)} {_noun(thing, base)}"
    slots = {"t": thing.short, "d": does(two, tense), "v": verb, "y": two.again, "x": one.again if one.number != "i" else "I"}
    kind = rng.random()
    if kind < 0.5:
        tally.value, tally.lines = other.value, other.lines
        asked = say(rng, "[How many|How many {t}|how many {t}] {d} {y} {v}", **slots)
    elif kind < 0.85:
        tally.do("+", other)
        both = "we" if one.number == "i" else "they"
        asked = say(rng, "[How many [{t} |]do {b} {v} [together|in total|altogether|in all|combined]|How many [{t} |][is that|are there] [together|in total|altogether]"
                    "|What is the total number of {t}|How many do both {v} together]", b=both, **slots)
        if one.number == "i":
            asked = asked.replace("do both", "do we both")
    else:
        operator = "-"
        high, low = max(base, other.value), min(base, other.value)
        step = apply(operator, high, low)
        tally.value, tally.lines = step.value, other.lines + step.lines
        asked = say(rng, "[What is the difference|How big is the difference|By how many do they differ|What's the difference between the two]")
    return tally.short(_told(rng, [fact, sentence], asked))


def _told(rng: random.Random, facts: list[str], asked: str) -> str:
    """Independent facts, in this order, and the question, without its mark, at the end or at the start."""
    asked = asked.rstrip("?")
    lower, upper, joined = asked[0].lower() + asked[1:], upper_first(asked), rng.choice((" and ", ", ", " and ", ", and ")).join(facts)
    sentences = " ".join(upper_first(fact) + "." for fact in facts)
    return rng.choice((
        f"{sentences} {upper}?", f"{sentences} {upper}?", f"{sentences} {upper}?", f"{upper_first(joined)}. {upper}?", f"{upper_first(joined)}, {lower}?",
        f"If {joined}, {lower}?", f"{upper} if {joined}?", f"{upper}? {sentences}", f"{joined} {lower}", f"Suppose {joined}. {upper}?"))


@topic(3)
def two_owners(rng: random.Random) -> Short:
    """Two or three numbers of the same: the difference or the sum."""
    hand, thing, limit = Hand(rng), lexicon.thing(rng), _limit(rng)
    one = lexicon.I if rng.random() < 0.25 else lexicon.person(rng)
    two, tense, verb = _other(rng, one), rng.choice(("present", "past")), rng.choice(_VERBS_COMPARED + _active(thing.gains + thing.losses))
    a, b = rng.randint(1, limit), rng.randint(1, limit)
    noun = _noun(thing, a)
    facts = [f"{one.name} {finite(verb, one, tense)} {hand.write(a)} {noun}",
             say(rng, "{y} {v} {b}[| {t}]", y=two.name, v=finite(verb, two, tense), b=hand.write(b), t=_noun(thing, b, short=True))]
    if rng.random() < 0.5:
        require(a != b)
        more, fewer = (one, two) if a > b else (two, one)
        tally = Tally(max(a, b))
        tally.do("-", min(a, b))
        subject, other, word = (more, fewer, "more") if rng.random() < 0.6 else (fewer, more, rng.choice(("fewer", "less", "fewer")))
        name = {"d": does(subject, tense), "v": verb, "w": word, "t": thing.short, "x": subject.again, "y": "me" if other.number == "i" else other.again}
        return tally.short(_told(rng, facts, say(rng, "[How many {w} {t} {d} {x} {v} than {y}|How many {w} {d} {x} {v}|What is the difference"
                                                 "|How many {w} {t} {d} {x} {v}|By how many is it {w}]", **name).replace("By how many is it " + word, "What's the difference")))
    tally = Tally(a)
    tally.do("+", b)
    if rng.random() < 0.3:
        three = _other(rng, one)
        require(three.again != two.again)
        c = rng.randint(1, limit)
        tally.do("+", c)
        facts.append(f"{three.name} {finite(verb, three, tense)} {hand.write(c)}")
    both = "we" if one.number == "i" else "they"
    d = "did" if tense == "past" else "do"
    return tally.short(_told(rng, facts, say(rng, "[How many [{t} |]{d} {b} {v} [together|in total|altogether|in all|combined]|How many [{t} |][is that|are there] [together|in total]"
                                             "|What is the total|How many {t} altogether|how many all together]", d=d, b=both, v=verb, t=thing.short)))


# Groups, rates and shares ---------------------------------------------------------------------


@topic(4)
def packed(rng: random.Random) -> Short:
    """So many containers with so many in each; then some more, or fewer, or a second kind."""
    hand, thing, who = Hand(rng), lexicon.thing(rng), _owner(rng)
    packs = rng.choice(thing.containers)
    k, m = rng.randint(2, rng.choice((9, 12, 30))), rng.randint(2, rng.choice((9, 12, 50)))
    tally = Tally(k)
    tally.do("*", m)
    nouns = {"k": hand.write(k), "m": hand.write(m), "p": packs, "one": singular(packs), "t": thing.noun}
    what = say(rng, "{k} {p} [of|with] {m} {t}[ each| in each| in every {one}|]", **nouns)
    facts = rng.choice((
        [Clause(who, rng.choice(("have", "have", "buy", "own", "fill", "get", "see", "pack", "carry")), what)],
        [f"there are {what}"], [f"there are {hand.write(k)} {packs}, each with {hand.write(m)} {thing.noun}"],
        [say(rng, "[each|every|a|one] {one} [holds|contains|has] {m} {t} and [there are|we have] {k} [{p}|of them]", **nouns)],
        [say(rng, "{m} {t} [fit in|go into|are in] [each|every|one|a] {one} and [there are|I have] {k} {p}", **nouns)]))[0]
    events, is_gain, owned = [], True, isinstance(facts, Clause)
    if rng.random() < 0.55:
        is_gain = rng.random() < 0.4
        owner = who if owned else rng.choice((lexicon.I, lexicon.person(rng)))
        limit = rng.choice((10, 20, 50))
        events.append((_gain if is_gain else _lose)(rng, hand, owner, thing, limit, tally))
    if owned and rng.random() < 0.8:
        ask: Question = asks_own(who, thing.short, (NOW if is_gain else LEFT) if events else IN_ALL)
    else:
        ask = asks_there(thing.short, (NOW if is_gain else LEFT) if events else IN_ALL)
    return tally.short(story(rng, facts, events, ask, (FRAGMENT_NOW if is_gain else FRAGMENT_LEFT) if events else FRAGMENT))


_PERIODS = (("day", "days"), ("day", "days"), ("week", "weeks"), ("hour", "hours"), ("month", "months"), ("minute", "minutes"), ("night", "nights"))
_HENS = (("a hen", "lay", "eggs"), ("the dog", "eat", "treats"), ("our cat", "catch", "mice"), ("a machine", "make", "screws"), ("a bee", "visit", "flowers"),
         ("a baker", "bake", "loaves"), ("the printer", "print", "pages"), ("a cow", "give", "liters of milk"), ("a car", "use", "liters of fuel"),
         ("a worker", "pack", "boxes"), ("a bus", "carry", "passengers"), ("a tree", "give", "kilos of apples"), ("the robot", "paint", "doors"),
         ("my phone", "send", "messages"), ("a frog", "catch", "flies"), ("the factory", "build", "cars"), ("a spider", "spin", "webs"),
         ("a runner", "run", "miles"), ("our baby", "use", "diapers"), ("the horse", "eat", "kilos of hay"), ("a tap", "lose", "liters of water"),
         ("the mailman", "deliver", "letters"), ("a snail", "crawl", "meters"), ("a cyclist", "ride", "kilometers"), ("the class", "read", "stories"))


@topic(4.5)
def every_day(rng: random.Random) -> Short:
    """So many per day, for so many days; or in the morning and in the evening; or how long it lasts."""
    hand, thing, who = Hand(rng), lexicon.thing(rng), lexicon.actor(rng)
    verb, noun = rng.choice(_active(thing.gains + thing.losses)), thing.short
    if rng.random() < 0.4:
        name, verb, noun = rng.choice(_HENS)
        who = Actor(name, "the " + name.split(" ", 1)[1] if name.startswith("a ") else name, "it", "it", "its")
    unit, units = rng.choice(_PERIODS)
    n, d = rng.randint(1, rng.choice((9, 12, 30))), rng.randint(2, rng.choice((7, 10, 14, 30)))
    tense = rng.choice(("present", "present", "past"))
    does_it, slots = finite(verb, who, tense), {"x": who.name, "n": hand.write(n), "t": singular(noun) if n == 1 else noun, "u": unit, "us": units,
                                                  "d": hand.write(d), "ts": noun, "do": does(who, tense), "v": verb, "again": _again(rng, who)}
    slots["does"] = does_it
    per = "[a {u}|every {u}|each {u}|per {u}]"
    total = "[How many {ts} {do} {again} {v} in {d} {us}|How many {ts} [is that|are that] in {d} {us}|How many in {d} {us}|And in {d} {us}|How many {ts} after {d} {us}]"
    kind = rng.random()
    if kind < 0.4:
        tally = Tally(n)
        tally.do("*", d)
        if rng.random() < 0.5:
            return tally.short(_told(rng, [say(rng, "{x} {does} {n} {t} " + per, **slots)], say(rng, total, **slots)))
        return tally.short(_told(rng, [say(rng, "[for {d} {us} {x} {does} {n} {t} " + per + "|{x} {does} {n} {t} " + per + " for {d} {us}]", **slots)],
                                 say(rng, "[How many {ts} [is that|in total|altogether]|How many {ts} {do} {again} {v}[ in total| altogether|]|How many in all]", **slots)))
    if kind < 0.65:
        m = rng.randint(1, 12)
        tally = Tally(n)
        tally.do("+", m)
        pair = rng.choice((("in the morning", "in the evening"), ("before lunch", "after lunch"), ("in the morning", "at night"), ("at noon", "at night"),
                           ("at breakfast", "at dinner")))
        fact = say(rng, "{x} {does} {n} {t} {one} and {m}[ {ts}|] {two}", m=hand.write(m), one=pair[0], two=pair[1], **slots)
        if rng.random() < 0.65:
            tally.do("*", d)
            return tally.short(_told(rng, [fact + rng.choice((" every day", " each day", " daily"))], say(rng, "[How many {ts} {do} {again} {v} in {d} days"
                                                                                                 "|How many {ts} is that in {d} days|How many in {d} days]", **slots)))
        return tally.short(_told(rng, [fact], say(rng, "[How many {ts} [is that|in total|altogether]|How many {ts} {do} {again} {v} [in total|altogether|that day|]]", **slots)))
    stock = n * d
    if kind < 0.82:
        tally = Tally(stock)
        tally.do("/", n)
        fact = say(rng, "[there are {s} {ts} and {x} [needs|uses] {n} " + per + "|a [pack|box|supply] has {s} {ts} and {n} are used " + per + "]", s=hand.write(stock), **slots)
        if who.number != "s":
            fact = fact.replace(" needs ", " need ").replace(" uses ", " use ")
        return tally.short(_told(rng, [fact], say(rng, "[How many {us} [do they last|does it last|will they last|does that last|is that enough for]|After how many {us} are they gone]", **slots)))
    extra = rng.randint(1, 60)
    used = apply("*", n, d)
    tally = Tally(used.value + extra)
    tally.do("-", used)
    fact = say(rng, "there are {s} {ts}", s=hand.write(used.value + extra), **slots)
    return tally.short(_told(rng, [fact, say(rng, "{n} are [used|eaten|sold|taken|removed] " + per, **slots).replace("1 are", "1 is").replace("one are", "one is")],
                             say(rng, "[How many [{ts} |][are left|remain] after {d} {us}|How many [{ts} |]are still there after {d} {us}|What is left after {d} {us}]", **slots)))


@topic(4)
def shared(rng: random.Random) -> Short:
    """Things are shared, perhaps after some came or went, or among the owner and friends; or put in containers."""
    hand, thing, who = Hand(rng), lexicon.thing(rng), lexicon.actor(rng)
    k, each, kind = rng.randint(2, 12), rng.randint(1, rng.choice((9, 12, 25))), rng.random()
    total, n = k * each, rng.randint(1, 20)
    people = rng.choice(("friends", "kids", "children", "people", "cousins", "students", "sisters", "teams", "neighbors", "guests", "pirates"))
    packs = rng.choice(thing.containers)
    slots = {"k": hand.write(k), "p": people, "b": packs, "one": singular(packs), "t": thing.short, "e": hand.write(each)}
    state_end = None
    if kind < 0.35:
        tally = Tally(total)
    elif kind < 0.55:
        require(total - n > 0)
        tally = Tally(total - n)
        tally.do("+", n)
        state_end = Clause(who, _verb(rng, lexicon.changing(thing.gains), who), _more(rng, hand, n, thing))
    elif kind < 0.8:
        tally = Tally(total + n)
        tally.do("-", n)
        state_end = Clause(who, rng.choice(lexicon.changing(thing.losses) + ("keep",)), _some(rng, hand, n, thing, who))
    else:
        require(k > 2)
        tally = Tally(total)
        state_end = None
    start = total if state_end is None else (total - n if kind < 0.55 else total + n)
    state = Clause(who, rng.choice(("have", "have", "have", "own", "get", "buy")), _full(rng, hand, start, thing))
    rest = "the rest" if state_end and kind >= 0.55 else "them"
    events = [state_end] if state_end else []
    if kind >= 0.8:
        people = rng.choice(("friends", "sisters", "cousins", "brothers", "classmates"))
        with_self = f"{who.subject} and {hand.write(k - 1)} {people}" if rng.random() < 0.5 and who.number == "s" else ""
        if not with_self:
            events.append(Clause(who, "share", f"{rest} equally with {hand.write(k - 1)} {people}"))
        else:
            events.append(Clause(Actor(with_self, with_self, "they", "them", "their", "p"), "share", f"{rest} equally"))
        tally.lines = apply("+", k - 1, 1).lines if k - 1 != 1 else ("1 + 1 = 2",)
        tally.do("/", k)
        ask_text = "[How many [{t} |]does each [person|one|child|] get|How many does everyone get|How many for each]"
    elif rng.random() < 0.6:
        verb, link = rng.choice((("share", "among"), ("split", "between"), ("divide", "among"), ("distribute", "to"), ("give", "to"), ("deal", "to"), ("pass", "to")))
        evenly = rng.choice((" equally", " evenly", " fairly", " in equal parts"))
        events.append(Clause(who, verb, f"{rest}{evenly} {link} {slots['k']} {people}" if rng.random() < 0.6 else f"{rest} {link} {slots['k']} {people}{evenly}"))
        tally.do("/", k)
        ask_text = "[How many [{t} |]does each [{s} |one |]get|How many does everyone get|How many [{t} |]for each|How many each|how much does everybody get]"
    elif rng.random() < 0.5:
        events.append(Clause(who, rng.choice(("put", "pack", "sort", "place", "divide")), f"{rest} {rng.choice(('equally ', 'evenly ', ''))}into {slots['k']} {packs}"))
        tally.do("/", k)
        ask_text = "[How many [{t} |]are in each [{one}|]|How many per {one}|How many [{t} |]does each {one} [hold|have|contain]|How many are in one {one}]"
    else:
        require(each > 1)
        events.append(Clause(who, rng.choice(("put", "pack", "sort", "arrange")), f"{rest} into {packs} of {slots['e']}"))
        tally.do("/", each)
        ask_text = "[How many {b} [are there|is that|are needed|does that make|are filled]|How many {b}|What number of {b} is needed]"
    slots["s"] = singular(people)
    return tally.short(story(rng, state, events, lambda r, tense: say(r, ask_text, **slots).strip() + "?"))


# Money ----------------------------------------------------------------------------------------


def _price(rng: random.Random, thing: Thing) -> Value:
    low, high = thing.cost
    if rng.random() < 0.25 and high < 60:
        return rng.randint(low, high) + Fraction(rng.choice((50, 50, 25, 75, 99, 20, 80)), 100)
    return rng.randint(low, max(high, low + 1))


@topic(5)
def bought(rng: random.Random) -> Short:
    """Prices: the cost of several, of two kinds, the change, what one costs, how many can be bought."""
    thing, hand = lexicon.thing(rng), Hand(rng)
    require(" of " not in thing.noun)
    who = lexicon.actor(rng)
    price, k = _price(rng, thing), rng.randint(2, rng.choice((5, 9, 12)))
    sign = rng.choice(("${}", "${}", "${}", "€{}", "{} dollars", "{} dollars", "{} euros", "{} bucks", "£{}"))

    def paid(value: Value) -> str:
        return sign.format(dollars(value))

    one, slots = singular(thing.noun), {"t": thing.noun, "k": hand.write(k), "p": paid(price), "x": who.name, "again": _again(rng, who)}
    slots |= {"one": one, "a": "an" if one[0] in "aeiou" else "a", "buys": finite(rng.choice(("buy", "buy", "get", "order", "take", "purchase")), who, "present"),
              "has": finite("have", who, "present"), "pays": finite("pay", who, "present"), "do": does(who, "present"), "want": finite("want", who, "present")}
    costs = "[{a} {one} costs {p}|each {one} costs {p}|{t} [cost|are] {p} [each|apiece|per {one}|a piece|each]|one {one} is {p}|the price of {a} {one} is {p}|{a} {one} is [sold for|] {p}]"
    buys = "[{x} {buys} {k} {t}|{x} {buys} {k} of them|{x} {want} {k}|{x} {buys} {k}]"
    at = "{x} {buys} {k} {t} [at {p} each|for {p} each|for {p} apiece|at {p} per {one}|, {p} each|that cost {p} each|at {p} a piece]"
    total_asked = "[How much [is that|does it cost|do they cost|in total|altogether|money is that]|How much {do} {again} [pay|spend|have to pay][ in total|]|What is the total[ cost| price|]|What does [it|that] cost[ in total|]]"
    kind = rng.random()
    cost = apply("*", k, price)
    if kind < 0.3:
        tally = Tally(k)
        tally.do("*", price)
        if rng.random() < 0.35:
            asked = say(rng, "[How much do {k} {t} cost|What do {k} {t} cost|What is the price of {k} {t}|How much for {k}|How much are {k}|Price for {k} {t}]", **slots)
            return tally.short(_told(rng, [say(rng, costs, **slots)], asked))
        facts = [say(rng, costs, **slots), say(rng, buys, **slots)] if rng.random() < 0.5 else [say(rng, at, **slots)]
        return tally.short(_told(rng, facts, say(rng, total_asked, **slots)))
    if kind < 0.48:
        note = next(n for n in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if n > cost.value)
        tally = Tally(rng.choice((note, note, int(cost.value) + rng.randint(1, 40))))
        start = tally.value
        tally.do("-", cost)
        tense_facts = rng.choice(([say(rng, at, **slots), say(rng, "{x} {pays} with [{n}|a {n} bill|{n}]", n=paid(start), **slots)],
                                  [say(rng, "{x} {has} {n} and {buys} {k} {t} [for|at] {p} [each|apiece]", n=paid(start), **slots)],
                                  [say(rng, "{x} {has} {n}", n=paid(start), **slots), say(rng, at, **slots)]))
        return tally.short(_told(rng, tense_facts, say(rng, "[How much [money |]is left|How much {do} {again} have left|How much change {do} {again} get|What is the change|How much change is that"
                                                       "|What is left|How much money remains|What's the balance]", **slots)))
    if kind < 0.7:
        second, j = lexicon.thing(rng), rng.randint(1, 9)
        require(" of " not in second.noun and second.noun != thing.noun)
        other = _price(rng, second)
        first_cost, second_cost = apply("*", k, price), apply("*", j, other)
        tally = Tally(first_cost.value)
        tally.lines = first_cost.lines
        tally.do("+", second_cost if j > 1 else other)
        each = lambda number: rng.choice(("each", "apiece", "a piece")) if number > 1 else ""  # noqa: E731  It is said once per kind.
        name = _noun(second, j)
        fact = " ".join(f"{who.name} {slots['buys']} {slots['k']} {thing.noun} {rng.choice(('for', 'at'))} {paid(price)} {each(k)} and {hand.write(j)} {name} for {paid(other)} {each(j)}".split())
        return tally.short(_told(rng, [fact], say(rng, total_asked, **slots)))
    if kind < 0.85:
        require(isinstance(price, int) or price.denominator in (1, 2))
        tally = Tally(cost.value)
        tally.do("/", k)
        fact = say(rng, "[{k} {t} cost {c}|{x} {pays} {c} for {k} {t}|{t} are {k} for {c}|{k} {t} are {c}|the price of {k} {t} is {c}|a pack of {k} {t} costs {c}]", c=paid(cost.value), **slots)
        if rng.random() < 0.6:
            return tally.short(_told(rng, [fact], say(rng, "[How much [is|does] [one|one {one}|each|a single one][ cost|]|What is the price [of one|each|per {one}|apiece]|What does one [{one} |]cost|How much per {one}]", **slots)))
        m = rng.randint(2, 12)
        require(m != k)
        tally.do("*", m)
        return tally.short(_told(rng, [fact], say(rng, "[How much [are|do] {m}[ {t}|][ cost|]|What do {m} [{t} |]cost|What is the price of {m}]", m=hand.write(m), **slots)))
    require(isinstance(price, int) and price > 0)
    tally = Tally(price * k)
    tally.do("/", price)
    return tally.short(_told(rng, [f"{who.name} {slots['has']} {paid(price * k)}", say(rng, costs, **slots)],
                             say(rng, "[How many [{t} |]can {again} [buy|get|afford|pay for]|How many {t} can be bought|How many [{t} |]is that]", **slots)))


@topic(3)
def saved(rng: random.Random) -> Short:
    """Saving and earning: a goal, what is missing, how long it takes, what is left after a purchase."""
    hand, who, unit = Hand(rng), lexicon.actor(rng), rng.choice(("hour", "day", "week", "month"))
    n, d = rng.choice((rng.randint(2, 20), rng.randint(1, 20) * 5)), rng.randint(2, 12)
    sign = rng.choice(("${}", "${}", "{} dollars", "€{}", "{} euros"))
    act = rng.choice(("save", "earn", "make", "get", "put aside")) if unit != "hour" else rng.choice(("earn", "make", "get", "be paid"))
    slots = {"x": who.name, "again": _again(rng, who), "n": sign.format(n), "d": hand.write(d), "u": unit, "us": unit + "s", "do": does(who, "present"),
             "acts": finite(act, who, "present"), "has": finite("have", who, "present"), "want": finite(rng.choice(("want", "need")), who, "present"),
             "spends": finite("spend", who, "present"), "works": finite("work", who, "present"), "g": rng.choice(("bike", "phone", "game", "trip", "jacket", "camera", "guitar", "tent"))}
    per = "[a {u}|every {u}|each {u}|per {u}]"
    total, kind = apply("*", n, d), rng.random()
    if kind < 0.3:
        tally = Tally(n)
        tally.do("*", d)
        if rng.random() < 0.5:
            c = rng.randint(1, int(total.value))
            tally.do("-", c)
            slots["c"] = sign.format(c)
            return tally.short(_told(rng, [say(rng, "{x} {acts} {n} " + per + " for {d} {us}", **slots), say(rng, "{again} {spends} {c}", **slots)],
                                     say(rng, "[How much [money |]is left|How much {do} {again} have left|How much remains|What is left]", **slots)))
        return tally.short(_told(rng, [say(rng, "{x} {acts} {n} " + per, **slots), say(rng, "{x} {works} {d} {us}" if unit == "hour" else "this goes on for {d} {us}", **slots)]
                                 if rng.random() < 0.4 else [say(rng, "{x} {acts} {n} " + per + " for {d} {us}", **slots)],
                                 say(rng, "[How much [money |]is that[ in total|]|How much in total|How much in all|What is the total]", **slots)))
    if kind < 0.55:
        start = rng.randint(1, 200)
        tally = Tally(start)
        tally.do("+", total)
        return tally.short(_told(rng, [f"{who.name} {slots['has']} {sign.format(start)}", say(rng, "{again} {acts} {n} [more |]" + per + " for {d} {us}", **slots)],
                                 say(rng, "[How much [money |]{do} {again} have [then|in the end|after that|now]|How much is that in total|How much {do} {again} have after {d} {us}]", **slots)))
    if kind < 0.75:
        tally = Tally(total.value)
        tally.do("/", n)
        goal = say(rng, "[a {g} costs {c}|{x} {want} {c}|{x} {want} a {g} for {c}]", c=sign.format(total.value), **slots)
        return tally.short(_told(rng, [goal, say(rng, "{x} {acts} {n} " + per, **slots)], say(rng, "[How many {us} does it take|How long does it take|After how many {us} can {again} buy it|How many {us} until {again} [have|has] enough|How many {us}]"
                                 if "costs" in goal or " a " in goal else "[How many {us} does it take|How many {us}|How long does it take]", **slots)))
    has = rng.randint(1, 200)
    tally = Tally(total.value + has)
    tally.do("-", has)
    goal = say(rng, "[a {g} costs {c}|{x} {want} {c} for a {g}|the price of a {g} is {c}]", c=sign.format(total.value + has), **slots)
    facts = [goal, say(rng, "{again} [already |]{has} {h}", h=sign.format(has), **slots) if "costs" not in goal and "price" not in goal else f"{who.name} {slots['has']} {sign.format(has)}"]
    if rng.random() < 0.45:
        tally.do("/", n)
        return tally.short(_told(rng, facts + [say(rng, "{again} {acts} {n} " + per, **slots)], say(rng, "[How many {us} does it take|How many more {us}|How many {us} are needed]", **slots)))
    return tally.short(_told(rng, facts, say(rng, "[How much more [money |]{do} {again} need|How much [money |]{do} {again} still need|How much [money |]is [still |]missing|How much more is needed|What is missing]", **slots)))


# Unknowns -------------------------------------------------------------------------------------


@topic(3.5)
def unknown(rng: random.Random) -> Short:
    """The start or the change is asked for."""
    hand, who, thing, limit = Hand(rng), lexicon.actor(rng), lexicon.thing(rng), _limit(rng)
    is_gain, asks_start = rng.random() < 0.5, rng.random() < 0.5
    start, n = rng.randint(2, limit), rng.randint(2, limit)
    require(is_gain or n < start)
    end = start + n if is_gain else start - n
    verb = rng.choice(_active(lexicon.changing(thing.gains if is_gain else thing.losses)))
    slots = {"x": who.name, "again": _again(rng, who), "a": hand.write(start), "b": hand.write(n), "c": hand.write(end), "t": thing.noun, "s": thing.short,
             "did": finite(verb, who, "past"), "v": verb, "had": finite("have", who, "past"), "has": finite("have", who, "present")}
    now = "[now {again} {has} {c}|{again} [now {has} {c}|{has} {c} now|{has} {c} left]|{c} are left now]" if not is_gain else "[now {again} {has} {c}|{again} now {has} {c}|{again} {has} {c} [{s} |]now|now there are {c}]"
    what = "more" if is_gain else "of them"
    if asks_start:
        tally = Tally(end)
        tally.do("-" if is_gain else "+", n)
        had = say(rng, "[{x} {had} some {t}|{x} {had} a few {t}|{x} {had} {t}]", **slots)
        act = say(rng, f"{{again}} {{did}} {{b}}[ {what}|]", **slots)
        facts = [had, act, say(rng, now, **slots)] if rng.random() < 0.6 else [say(rng, "after {x} {did} {b} {t}, " + now, **slots)]
        return tally.short(_told(rng, facts, say(rng, "[How many [{s} |]did {again} have [at first|before|at the beginning|at the start|originally|to begin with|in the beginning]|How many were there [before|at first|at the start]"
                                                 "|How many did {again} start with|With how many did {again} start]", **slots)))
    tally = Tally(end if is_gain else start)
    tally.do("-", start if is_gain else end)
    had = say(rng, "{x} {had} {a} {t}", **slots)
    act = say(rng, f"{{again}} {{did}} some{'' if rng.random() < 0.5 else ' ' + what}", **slots)
    facts = rng.choice(([had, act, say(rng, now, **slots)], [had, say(rng, now, **slots)], [had + " " + rng.choice(("yesterday", "this morning", "at first", "on Monday")), say(rng, now, **slots)]))
    return tally.short(_told(rng, facts, say(rng, "[How many [{s} |]did {again} {v}|How many [{s} |][were added|came]|How many more are there now]" if is_gain and len(facts) == 2
                                             else "[How many [{s} |]did {again} {v}|How many [{s} |]did {again} {v}|How many was that]", **slots)))


@topic(3)
def parts(rng: random.Random) -> Short:
    """Some of all are of one kind: how many are of the other; or several kinds: how many are all."""
    hand, thing, limit = Hand(rng), lexicon.thing(rng), _limit(rng)
    groups = (("a class", "children", "girls", "boys"), ("a farm", "animals", "cows", "pigs"), ("a choir", "singers", "women", "men"), ("a team", "players", "old", "new"),
              ("a bus", "seats", "taken", "free"), ("a parking lot", "spaces", "full", "empty"), ("a hotel", "rooms", "occupied", "free"),
              ("a test", "questions", "easy", "hard"), ("a library", "books", "novels", "comics"), ("the zoo", "birds", "parrots", "owls"),
              ("a theater", "seats", "sold", "empty"), ("a book", "pages", "read", "unread"), ("a box", "chocolates", "dark", "white"))
    where, noun, one, two = rng.choice(groups)
    if rng.random() < 0.5:
        where, noun = f"a {singular(rng.choice(thing.containers))}", thing.short
        require(len(set(thing.kinds)) > 1)
        one, two = rng.sample(thing.kinds, 2)
    a, b, third = rng.randint(2, limit), rng.randint(1, limit), rng.randint(1, limit)
    slots = {"w": where, "t": noun, "n": hand.write(a + b), "a": hand.write(a), "b": hand.write(b), "one": one, "two": two, "c": hand.write(third)}
    kind = rng.random()
    if kind < 0.5:
        tally = Tally(a + b)
        tally.do("-", a)
        says_rest = one in thing.kinds or rng.random() < 0.5  # Other kinds leave only two choices.
        rest = "[ and the rest {two}|, the others {two}| and the rest are {two}]" if says_rest else ""
        return tally.short(_told(rng, [say(rng, "[{w} has {n} {t}|there are {n} {t} in {w}|in {w} there are {n} {t}]", **slots), say(rng, "{a} [of them |of the {t} |]are {one}" + rest, **slots)],
                                 say(rng, "[How many are {two}|How many [{t} |]are {two}|How many are not {one}|How many {t} are not {one}|How many are {two}]", **slots)))
    tally = Tally(a)
    tally.do("+", b)
    facts = say(rng, "[{w} has|there are] {a} {one} and {b} {two} {t}" if one in thing.kinds else "[in {w} there are|{w} has] {t}: {a} are {one} and {b} are {two}", **slots)
    if kind < 0.75:
        return tally.short(_told(rng, [facts], say(rng, "[How many {t} are there[ in total| altogether| in all|]|How many {t} is that|What is the total|How many are there in all]", **slots)))
    require(1 < third <= a + b)
    tally.do("-", third)
    return tally.short(_told(rng, [facts, say(rng, "{c} [of the {t} |]are [removed|taken away|gone|sold|counted out]", **slots)],
                             say(rng, "[How many [{t} |][are left|remain]|How many {t} are there now|How many are still there]", **slots)))


@topic(3)
def needed(rng: random.Random) -> Short:
    """A goal, a plan or a room: what is missing, what is free."""
    hand, who, thing = Hand(rng), lexicon.actor(rng), lexicon.thing(rng)
    limit = _limit(rng)
    b, c, missing = rng.randint(1, limit), rng.randint(1, limit), rng.randint(0, limit)
    two = rng.random() < 0.55
    goal = b + (c if two else 0) + missing
    slots = {"x": who.name, "again": _again(rng, who), "g": hand.write(goal), "b": hand.write(b), "c": hand.write(c), "t": thing.noun, "s": thing.short, "do": does(who, "present"),
             "need": finite(rng.choice(("need", "want", "need", "have to get")), who, "present"), "has": finite("have", who, "present"),
             "gets": finite(rng.choice(lexicon.changing(thing.gains)), who, "present"), "v": rng.choice(("need", "still need"))}
    require(goal > 1)
    tally = Tally(goal)
    if rng.random() < 0.25:
        room = rng.choice(("bus", "room", "theater", "boat", "plane", "parking garage", "tent", "box", "hall", "train", "stadium"))
        noun = {"parking garage": "cars", "box": thing.short}.get(room, "people")
        tally.do("-", b)
        if two:
            tally.do("-", c)
        return tally.short(_told(rng, [say(rng, "[a {r} [holds|has room for|has space for|can take] {g} {n}|there is room for {g} {n} in a {r}]", r=room, n=noun, **slots),
                                       say(rng, "{b} are [already there|in it|inside]" + (" and {c} more come" if two else ""), **slots)],
                                 say(rng, "[How many more [{n} |]fit[ in|]|How many places are [left|free|empty]|How many more can come|How many spaces remain]", n=noun)))
    tally.do("-", b)
    facts = [say(rng, "{x} {need} {g} {t}", **slots), say(rng, "{again} [already |]{has} {b}[ of them|]", **slots)]
    if two:
        facts.append(say(rng, "{again} {gets} {c} more", **slots))
        tally.do("-", c)
    elif rng.random() < 0.3:
        facts = [say(rng, "{x} {has} {b} {t} but {need} {g}", **slots)]
    return tally.short(_told(rng, facts, say(rng, "[How many more [{s} |]{do} {again} {v}|How many [{s} |]{do} {again} still need|How many [{s} |]are [still |]missing|How many more are needed|How many more to go|What is missing]", **slots)))


@topic(2.5)
def days(rng: random.Random) -> Short:
    """The same act on two or three days: the sum or the difference."""
    hand, who, thing, limit = Hand(rng), _owner(rng), lexicon.thing(rng), _limit(rng)
    verb, tense = _verb(rng, _active(thing.gains + thing.losses), who), rng.choice(("present", "past", "past"))
    times = list(rng.choice((("on Monday", "on Tuesday", "on Wednesday"), ("yesterday", "today", "this evening"), ("in the morning", "in the afternoon", "at night"),
                             ("in May", "in June", "in July"), ("last week", "this week", "today"), ("on Saturday", "on Sunday", "on Monday"), ("first", "then", "later"))))
    a, b, c = (rng.randint(1, limit) for _ in range(3))
    number = rng.choice((2, 2, 3))
    slots = {"x": who.name, "did": finite(verb, who, tense), "do": does(who, tense), "v": verb, "again": _again(rng, who), "t": thing.short}
    values = (a, b, c)[:number]
    words = [f"{hand.write(n)} {_noun(thing, n, index > 0) if index == 0 or rng.random() < 0.3 else ''}".strip() + f" {times[index]}" for index, n in enumerate(values)]
    front = rng.random() < 0.3
    if front:
        words = [f"{times[index]} {hand.write(n)} {_noun(thing, n) if index == 0 else ''}".strip() for index, n in enumerate(values)]
        fact = f"{times[0]} {who.name} {slots['did']} {hand.write(a)} {_noun(thing, a)}, " + " and ".join(words[1:])
    else:
        fact = f"{who.name} {slots['did']} " + (", ".join(words[:-1]) + " and " + words[-1])
    if rng.random() < 0.35:
        rate = rng.choice((2, 2, 3))
        other = apply("*", a, rate)
        times_word = {2: rng.choice(("twice as many", "double that")), 3: "three times as many"}[rate]
        fact = f"{who.name} {slots['did']} {hand.write(a)} {_noun(thing, a)} {times[0]} and {times_word} {times[1]}"
        tally = Tally(a)
        tally.do("+", other)
    elif number == 2 and a != b and rng.random() < 0.3:
        tally = Tally(max(a, b))
        tally.do("-", min(a, b))
        high, low = (times[0], times[1]) if a > b else (times[1], times[0])
        return tally.short(_told(rng, [fact], say(rng, "[How many more [{t} |]{do} {again} {v} {h} than {l}|What is the difference|How many fewer [{t} |]{do} {again} {v} {l} than {h}]", h=high, l=low, **slots)))
    else:
        tally = Tally(a)
        for n in values[1:]:
            tally.do("+", n)
    return tally.short(_told(rng, [fact], say(rng, "[How many [{t} |]{do} {again} {v} [in total|altogether|in all|all together]|How many [{t} |]is that[ in total| altogether|]|What is the total|How many in all|How many {t} altogether]", **slots)))
