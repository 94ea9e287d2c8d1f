"""Stories of one or two sentences: more, fewer, groups, shares, differences. Answered by one calculation."""

from __future__ import annotations

import random

from .arithmetic import Worked, apply, chain
from .grammar import Patterns
from .numbers import Hand, require
from .question import Short, computed, topic
from .things import person, plural, subject, two_people

_GAIN = Patterns("""[buys|buys|gets|finds|receives|picks|earns|wins|collects|makes|takes|borrows|adds|catches|is given|gathers|orders|steals|brings home|is handed|picks up|discovers|draws|bakes]""")
_GAINED = Patterns("""[bought|got|found|received|picked|won|collected|made|took|was given|gathered|earned|added]""")
_GAIN_I = Patterns("""[buy|get|find|receive|pick|win|collect|make|take|am given|earn|add]""")
_LOSE = Patterns("""[eats|loses|sells|gives away|drops|uses|breaks|throws away|donates|spends|hands out|gives back|gives her friend|gives to a friend|hides|burns|drinks|misplaces|returns|gets rid of|lends|gives {y}]""")
_LOST = Patterns("""[ate|lost|sold|gave away|dropped|used|broke|threw away|donated|gave {y}]""")
_LOSE_I = Patterns("""[eat|lose|sell|give away|drop|use|break|throw away|donate|give {y}]""")
_HOW_MANY = Patterns("""
    How many [{t} |][does {x} have|has {x}|does {x} have now|are there|does {x} now have|does {x} have in all|are there now|has {x} now][?|]
    [How many|how many|How many now|How many {t}|How many in all|How many are there|Now how many|How many does that make|how many {t} now][?|]
    What is the [total|number of {t}] [now|][?|]
""")
_HOW_MANY_LEFT = Patterns("""
    How many [{t} |][are left|does {x} have left|remain|does {x} have now|does {x} still have|has {x} left|are there now|does {x} keep][?|]
    [How many|How many left|How many now|How many {t} now|how many remain|How many are left|what is left][?|]
""")
_MORE = Patterns("""
    {x} [has|had|owns|starts with|holds|begins with] {a} {t} [and|and then|and later|, then] {g} {b} [more|more|other ones||more {t}]. {q}
    {x} has {a} {t}. [{x}|Then {x}|Later {x}|Today {x}] {g} {b} [more|more {t}||]. {q}
    {x} [has|had] {a} {t}, {g} {b} [more|][.|,] {q}
    {x} had {a} {t}. [Then {x}|{x}] {d} {b} [more|]. {q}
    {x} {g} {a} {t} and [then |]{b} more. {q}
    [If|Suppose] {x} has {a} {t} and {g} {b} more, how many [{t} |][is that|does {x} have|are there][?|]
    I [have|had|own] {a} {t} and {i} {b} [more|]. [How many {t} do I have|How many do I have|How many now|how many is that|how many have I got][?|]
    [If I have|I have] {a} {t} and {i} {b} more, how many [do I have|{t} do I have|is that|have I got][?|]
    There [are|were] {a} {t} [in the box|on the table|in a bag|on a shelf|in the garden|here|] and {b} more [come|arrive|are added|are put there|appear]. [How many are there|How many {t} are there now|How many in all|How many][?|]
    {a} {t} [and|plus] {b} [more |]{t}[?|, how many?|, how many is that?| make how many?|. How many in total?]
    [You have|You've got|A box has|A bag holds|A tree has] {a} {t}. [You get|Someone adds|We add|We put in] {b} more. [How many now|How many are there|Total|How many {t}][?|]
    {x} has {a} {t} and {y} has {b}. How many [{t} |][do they have together|do they have in total|together|altogether|do both have|in all][?|]
    {x} has {a} {t}. {y} has {b} more [than {x}|]. How many [{t} |]does {y} have[?|]
    {y} has {b} more {t} than {x}, who has {a}. How many [{t} |]does {y} have[?|]
    [On Monday|Yesterday|In the morning] {x} {d} {a} {t}[ and | and ]{b} [on Tuesday|today|in the evening]. [How many in total|How many altogether|How many {t} is that][?|]
    {a} [red|old|big|boys and|green] {t} and {b} [blue|new|small|yellow] ones. How many [{t}|in total|altogether|are there][?|]
    [how many|How many] {t} [are|is] {a} {t} [plus|and] {b} {t}[?|]
""")
_FEWER = Patterns("""
    {x} [has|had|owns|starts with|holds] {a} {t} [and|and then|but|, then] {l} {b} [of them||]. {q}
    {x} has {a} {t}. [{x}|Then {x}|Later {x}|Today {x}] {l} {b} [of them|]. {q}
    {x} [has|had] {a} {t}, {l} {b}[.|,] {q}
    {x} had {a} {t}. {x} {s} {b}. {q}
    [If|Suppose] {x} has {a} {t} and {l} {b}, how many [{t} |][are left|remain|does {x} have left][?|]
    I [have|had] {a} {t} and {i} {b}[ of them|]. [How many {t} do I have left|How many are left|How many do I have now|how many left][?|]
    [If I have|I have] {a} {t} and {i} {b}, how many [do I have left|are left|remain][?|]
    There [are|were] {a} {t} [in the box|on the table|on a plate|in a tree|here|]. {b} [are taken away|are eaten|fall down|go away|are sold|disappear|leave|are removed]. [How many are left|How many remain|How many {t} are left][?|]
    {b} of {a} {t} [are gone|are broken|were eaten|were sold|are red]. How many [are left|are not|remain|others are there][?|]
    [You have|A shop has|A box has] {a} {t} and [you lose|sells|{b} are taken, so minus] {b}. [How many are left|How many remain][?|]
    {a} {t}[, | minus | take away ]{b} [gone|are gone|eaten|lost]. [How many left?|How many are left?|left?]
    {x} has {a} {t} and {y} has {b}. How many more [{t} |]does {x} have[?| than {y}?]
    {x} has {a} {t}. {y} has {b} fewer [than {x}|]. How many [{t} |]does {y} have[?|]
    {x} [needs|wants] {a} {t} and has {b}. How many [more |][{t} |][are missing|does {x} need|are still needed][?|]
    [A bus|A train|The bus] has {a} [people|passengers] and {b} get off. How many [are left|remain|stay][?|]
""")
_GROUPS = Patterns("""
    {x} has {a} [bags|boxes|baskets|packs|jars|shelves|bowls|rows] [with|of|that hold|containing] {b} {t} [each|in each|]. How many {t} [are there|does {x} have|is that|in all|altogether|][?|]
    [There are|We have|I have|I buy] {a} [bags|boxes|baskets|packs|jars|shelves|tables|rows|plates] [with|of] {b} {t} [each|in each|]. How many {t} [are there|is that|in all|in total|altogether][?|]
    {a} [bags|boxes|packs|rows|groups] of {b} {t}[?|, how many?|, how many {t}?|. How many {t} in total?| is how many?]
    [Each|Every] [bag|box|child|student|friend|table] [has|gets|holds] {b} {t}. [There are {a}|We have {a}] of them. How many {t} [are there|in total|are needed|][?|]
    [Each|Every] of {a} [kids|friends|people|boxes] [has|gets|holds|takes] {b} {t}. How many {t} [is that|are there|in total|are needed][?|]
    {x} [buys|packs|eats|reads|makes|draws] {b} {t} [a day|every day|per day|each day] for {a} days. How many [{t} |][is that|in total|altogether|][?|]
    How many {t} are in {a} [bags|boxes|packs|rows] of {b}[?|]
    If [one|a] [box|bag|pack] [holds|has|contains] {b} {t}, how many [{t} |][are|do] [in |]{a} [boxes|bags|packs][ hold| have|][?|]
    {x} has {a} times as many {t} as {y}, who has {b}. How many [{t} |]does {x} have[?|]
    {y} has {b} {t}. {x} has {a} times as many. How many [{t} |]does {x} have[?|]
""")
_SHARES = Patterns("""
    {x} [has|shares|divides|splits|gives] {a} {t} [equally |evenly |][among|between|to] {b} [friends|people|children|boxes|bags|kids][.|, so] How many [{t} |][does each get|for each|does each one get|are in each|each][?|]
    {a} {t} are [shared|split|divided] [equally |evenly |][among|between|into|by] {b} [friends|people|children|boxes|groups|kids]. How many [{t} |][does each get|for each|in each|each][?|]
    {b} [friends|kids|people|children] share {a} {t} [equally|evenly|fairly]. How many [{t} |][does each get|for each|each|per person][?|]
    {x} puts {a} {t} into [bags|boxes|groups|rows|packs] of {b}. How many [bags|boxes|groups|rows|packs|of them] [are there|does {x} need|is that|][?|]
    How many [bags|boxes|groups|teams|rows] of {b} [can be made from|do {a} {t} make, with {a} {t}, that is] {a} {t}[?|]
    [If|When] {b} [boxes|bags|people] [have|hold|get] {a} {t} [in total|together|], how many [does each have|are in each|is that each][?|]
    {a} {t} in {b} equal [rows|groups|piles|boxes]. How many [in|per|in each] [each|one|row|group][?|]
    [Share|Divide|Split] {a} {t} [among|between] {b} [people|friends|kids]. [How many each?|Each gets?|How many does each get?]
""")


def _slots(rng: random.Random, a: int, b: int) -> dict[str, object]:
    x, y = two_people(rng)
    if rng.random() < 0.2:
        x = subject(rng)
    hand = Hand(rng)
    return {"x": x, "y": y, "t": plural(rng), "a": hand.write(a), "b": hand.write(b)}


def _size(rng: random.Random) -> int:
    return rng.choice((12, 12, 20, 50, 100, 100, 500))


@topic(1)
def more(rng: random.Random) -> Short:
    limit = _size(rng)
    a, b = rng.randint(1, limit), rng.randint(1, limit)
    slots = _slots(rng, a, b)
    slots |= {"g": _GAIN.expand(rng), "d": _GAINED.expand(rng), "i": _GAIN_I.expand(rng), "q": _HOW_MANY.expand(rng, **slots)}
    return computed(_MORE.expand(rng, **slots), apply("+", a, b))


@topic(1)
def fewer(rng: random.Random) -> Short:
    limit = _size(rng)
    a = rng.randint(2, limit)
    b = rng.randint(1, a)
    slots = _slots(rng, a, b)
    slots |= {"l": _LOSE.expand(rng, **slots), "s": _LOST.expand(rng, **slots), "i": _LOSE_I.expand(rng, **slots),
              "q": _HOW_MANY_LEFT.expand(rng, **slots)}
    return computed(_FEWER.expand(rng, **slots), apply("-", a, b))


@topic(0.75)
def groups(rng: random.Random) -> Short:
    a, b = rng.randint(2, 12), rng.choice((rng.randint(2, 12), rng.randint(2, 50)))
    return computed(_GROUPS.expand(rng, **_slots(rng, a, b)), apply("*", a, b))


@topic(0.75)
def shares(rng: random.Random) -> Short:
    b, each = rng.randint(2, 12), rng.choice((rng.randint(1, 12), rng.randint(1, 25)))
    return computed(_SHARES.expand(rng, **_slots(rng, b * each, b)), apply("/", b * each, b))


_TWO_CHANGES = Patterns("""
    {x} [has|had] {a} {t}, {g} {b} [more |]and [then |]{l} {c}. {q}
    {x} has {a} {t}. {x} {l} {c} and [then |]{g} {b}. {q}
    {x} {g} {a} {t} [on Monday|today|first] and {b} [more |][on Tuesday|later|after that], then {l} {c}. {q}
    I have {a} {t}, {i} {b} [more|] and [then |]{j} {c}. How many [{t} |][do I have|are left|now][?|]
    [A bus|A train|The bus] has {a} people. {b} get on and {c} get off. How many [people are on it|are there now|now][?|]
    There are {a} {t}. {b} more come and {c} [leave|go away|are taken]. How many [are there|are left|now][?|]
    {x} had {a} {t} and {l} {c}. Then {x} {g} {b}. {q}
""")


@topic(0.5)
def two_changes(rng: random.Random) -> Short:
    limit = rng.choice((12, 20, 50, 100))
    a, b = rng.randint(2, limit), rng.randint(1, limit)
    c = rng.randint(1, a)
    slots = _slots(rng, a, b)
    slots["c"] = c
    slots |= {"g": _GAIN.expand(rng), "l": _LOSE.expand(rng, **slots), "i": _GAIN_I.expand(rng),
              "j": _LOSE_I.expand(rng, **slots), "q": _HOW_MANY_LEFT.expand(rng, **slots)}
    text = _TWO_CHANGES.expand(rng, **slots)
    gains_at, loses_at = text.find(f" {slots['g']} {slots['b']}"), text.find(f" {slots['l']} {c}")
    steps = (("-", c), ("+", b)) if 0 <= loses_at < gains_at else (("+", b), ("-", c))
    return computed(text, chain(a, *steps))


_GROUPS_AND = Patterns("""
    {x} [buys|has] {a} [bags|boxes|packs] of {b} {t} and {c} [single ones|more|loose ones]. How many [{t} |][in total|altogether|does {x} have|is that][?|]
    {a} [boxes|bags|packs] with {b} {t} each [and|plus] {c} more[, how many?|. How many {t}?|. How many in all?]
""")
_GROUPS_LESS = Patterns("""
    {x} [buys|has] {a} [bags|boxes|packs] of {b} {t} and [eats|loses|sells|gives away|uses] {c}. How many [{t} |][are left|remain|does {x} have left][?|]
    {a} [boxes|bags] of {b} {t}, {c} are [gone|broken|sold]. How many are left[?|]
""")
_SHARED_REST = Patterns("""
    {x} has {n} {t}, [keeps|eats|uses] {c} and shares the rest [equally |]with {b} [friends|people|kids], not {x}. How many does each [friend |]get[?|]
    From {n} {t} {c} are [taken|eaten|sold]. The rest goes [equally |]into {b} [boxes|bags]. How many in each[?|]
""")
_SUM_OF_PARTS = Patterns("""
    {x} has {b} {t}. {y} has {m} [as many|as many {t}]. How many do they have together[?|]
    {y} has {m} as many {t} as {x}, who has {b}. How many [{t} |]in total[?|]
""")


@topic(0.5)
def two_steps(rng: random.Random) -> Short:
    a, b, c = rng.randint(2, 10), rng.randint(2, 12), rng.randint(1, 12)
    slots = _slots(rng, a, b)
    slots["c"] = c
    kind = rng.randrange(4)
    if kind == 0:
        return computed(_GROUPS_AND.expand(rng, **slots), chain(a, ("*", b), ("+", c)))
    if kind == 1:
        require(c < a * b)
        return computed(_GROUPS_LESS.expand(rng, **slots), chain(a, ("*", b), ("-", c)))
    if kind == 2:
        n = a * b + c
        return computed(_SHARED_REST.expand(rng, n=n, **slots), chain(n, ("-", c), ("/", b)))
    operator, factor, words = rng.choice((("*", 2, "twice"), ("*", 3, "three times"), ("/", 2, "half")))
    require(operator == "*" or b % 2 == 0)
    other = apply(operator, b, factor)
    total = apply("+", b, other.value)
    return computed(_SUM_OF_PARTS.expand(rng, m=words, **slots), Worked(other.lines + total.lines, total.value))


_HALF = Patterns("""
    {x} has {a} {t} and [eats|gives away|loses|sells] half of them. How many [are left|{t} are left|remain|does {x} have left][?|]
    {x} has {a} {t}. {y} has half as many. How many [{t} |]does {y} have[?|]
    Half of {a} {t} are [red|gone|sold|broken]. How many [is that|are they|][?|]
    [A class|A group] has {a} [children|students]. Half of them are [girls|boys]. How many [girls|boys] is that[?|]
""")
_TWICE = Patterns("""
    {x} has {a} {t}. {y} has twice as many. How many [{t} |]does {y} have[?|]
    {y} has [twice as many|double the] {t} [as|of] {x}, who has {a}. How many [{t} |]does {y} have[?|]
    {x} has {a} {t} and doubles them. How many now[?|]
""")


@topic(0.4)
def halves_and_doubles(rng: random.Random) -> Short:
    a, is_half = rng.randint(1, 60), rng.random() < 0.5
    if is_half:
        a *= 2
    slots = _slots(rng, a, 1) | {"x": person(rng)}
    return computed((_HALF if is_half else _TWICE).expand(rng, **slots), apply("/" if is_half else "*", a, 2))
